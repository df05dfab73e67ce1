"""Records of arrays from which the problem of a step is assembled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.collision.detection import tables as collision
from dyn_core.contact.fast_bodies.fast_tables import FastMemory, FastTables
from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.rows.structure import Structure
from dyn_core.engines.machine_code import (
    FloatArray,
    FloatArray2,
    FloatArray3,
    IntArray,
    IntArray2,
)

ROLES = ("contact", "limit", "friction", "loop", "gear", "prescribed")
CONTACT_ROLE, LIMIT, FRICTION, LOOP, GEAR, PRESCRIBED = range(len(ROLES))
STEWART_TRINKLE, ANITESCU_POTRA, MOREAU_JEAN = range(3)
SCHEMES = {
    "stewart_trinkle": STEWART_TRINKLE,
    "anitescu_potra": ANITESCU_POTRA,
    "moreau_jean": MOREAU_JEAN,
}


class Terms(NamedTuple):
    """States, and outputs of contact_terms there, one behind the other, (n, ...)."""

    q: FloatArray2
    qd: FloatArray2
    poses: FloatArray3
    columns: FloatArray3
    factor: FloatArray2
    free: FloatArray2
    rows: FloatArray3
    gaps: FloatArray2


class JointRows(NamedTuple):
    """Constraints of one row whose gap and velocity are linear in coordinates.

        u = sum of value * qd[place],   gap = constant + sum of gap_value * q[gap_place]

    Attributes:
        role, kind: Index into ROLES and KINDS, (n,).
        id: Lasting number of each, negative, (n,).
        term_start, place, value: Terms of u, those of row k from term_start[k] on.
        gap_start, gap_place, gap_value, constant: Likewise those of the gap.
        lo, hi: Least and largest force [N·m | N].
        restitution: e.
        acceleration: Of a prescribed row, written before each step [rad/s² | m/s²].
    """

    role: IntArray
    kind: IntArray
    id: IntArray
    term_start: IntArray
    place: IntArray
    value: FloatArray
    gap_start: IntArray
    gap_place: IntArray
    gap_value: FloatArray
    constant: FloatArray
    lo: FloatArray
    hi: FloatArray
    restitution: FloatArray
    acceleration: FloatArray


class DenseRows(NamedTuple):
    """Blocks whose rows and gaps are among the terms: limits of balls, loops.

    Attributes:
        role, kind, id: By block.
        start: First row of each block among those of Terms, (blocks + 1,).
        restitution: By block.
        support_start, support: Places that each block may touch, closed upwards.
    """

    role: IntArray
    kind: IntArray
    id: IntArray
    start: IntArray
    restitution: FloatArray
    support_start: IntArray
    support: IntArray


class BlockFacts(NamedTuple):
    """What a report says of each block beside its Rows.

    Attributes:
        role: Index into ROLES.
        source: Number of the contact or joint row, first row of a dense block.
        id: Lasting number.
        gap: Gap of the block, or 0 [m | rad].
        restitution: e.
        approach: Velocity of the first row before the step [m/s | rad/s].
        rebound: Least velocity of it after the step by restitution; 0 where nothing
            bounces [m/s | rad/s].
        bias: By row, what `Rows.b` has beyond the free velocity [m/s | rad/s].
    """

    role: IntArray
    source: IntArray
    id: IntArray
    gap: FloatArray
    restitution: FloatArray
    approach: FloatArray
    rebound: FloatArray
    bias: FloatArray


class Rule(NamedTuple):
    """How long a step is, and how it treats gaps.

    Attributes:
        scheme: STEWART_TRINKLE, ANITESCU_POTRA or MOREAU_JEAN.
        erp: Part of an overlap or error that a step corrects.
        compliance: Of contacts, limits, loops and gears [(m/s)/(N·s)].
        threshold: Speed of approach below which nothing bounces [m/s | rad/s].
        push: Largest speed at which an overlap is corrected [m/s | rad/s].
        apart: Part of it that is corrected in positions, without a change of velocity.
        margin: Largest gap of a limit that takes part, beside the way of a step.
        dt: Step [s].
        remaining: Time for which the velocity after the step acts in it [s].
        rest: Least scale of velocities: what gravity gives in a step [m/s].
    """

    scheme: int
    erp: float
    compliance: float
    threshold: float
    push: float
    apart: float
    margin: float
    dt: float
    remaining: float
    rest: float


class StepMemory(NamedTuple):
    """Memory.

    Attributes:
        where: Where each place is in a support, (nv,).
        free, qd: Velocities by place, (nv,).
        z, change: Y.T impulse, and L^-1 of it: the change of velocity by place, (nv,).
        J: Rows of a block that is no contact, (rows, nv).
        known: Whether the columns of a body are those of this step, (nb + 1,).
        columns: C L^-1 of each body, and its velocities; see contact_rows.fill_body.
        union: Places while supports are joined.
    """

    where: IntArray
    free: FloatArray
    qd: FloatArray
    z: FloatArray
    change: FloatArray
    J: FloatArray2
    known: IntArray
    columns: FloatArray3
    union: IntArray


class Earlier(NamedTuple):
    """Impulses of the step before, for each state: blocks by their lasting numbers.

    Attributes:
        known: Number of blocks, (n,).
        id, start, height: Number, first row and rows of each block, (n, blocks).
        impulse: By row, (n, rows).
    """

    known: IntArray
    id: IntArray2
    start: IntArray2
    height: IntArray2
    impulse: FloatArray2


class Scene(NamedTuple):
    """What stays: the robot, its world, and how a step treats gaps.

    Attributes:
        tables: Coordinates and bodies.
        shapes, pairs: Shapes of the robot and its world, and the tested pairs.
        joints: Limits, dry friction, gears, prescribed motion.
        dense: Limits of balls, and loops.
        rule: How gaps act.
        fast: How bodies hang together, and how thick shapes are.
    """

    tables: Structure
    shapes: collision.Shapes
    pairs: collision.Pairs
    joints: JointRows
    dense: DenseRows
    rule: Rule
    fast: FastTables


class StepArrays(NamedTuple):
    """What changes: states, and room for one problem at a time.

    Attributes:
        terms: States and their dynamics.
        qd_next: Velocity after the step, in the axes of q, for each state, (n, nv).
        correction: Velocity that moves positions alone, (n, nv).
        earlier: Impulses for the warm start, then those of the step.
        contacts, rows, blocks: The problem of one state.
        normals: The problem that corrects its positions; y and support are those of
            `rows`.
        collision, work, fast: Memory.
    """

    terms: Terms
    qd_next: FloatArray2
    correction: FloatArray2
    earlier: Earlier
    contacts: collision.Contacts
    rows: Rows
    blocks: BlockFacts
    normals: Rows
    collision: collision.Work
    work: StepMemory
    fast: FastMemory


def allocate_blocks(blocks: int, rows: int) -> BlockFacts:
    """Return empty BlockFacts."""
    role, source, number = (np.zeros(blocks, np.int64) for _ in range(3))
    gap, restitution, approach, rebound = (np.zeros(blocks) for _ in range(4))
    bias = np.zeros(rows)
    return BlockFacts(role, source, number, gap, restitution, approach, rebound, bias)


def allocate_earlier(states: int, blocks: int, rows: int) -> Earlier:
    """Return no earlier impulses, and room for some."""
    number, start, height = (np.zeros((states, blocks), np.int64) for _ in range(3))
    known, impulse = np.zeros(states, np.int64), np.zeros((states, rows))
    return Earlier(known, number, start, height, impulse)


def allocate_terms(states: int, nq: int, nv: int, shapes: Mapping[str, Any]) -> Terms:
    """Return empty Terms; `shapes` are those of the outputs of contact_terms."""
    parts = [np.zeros((states, *shapes[name])) for name in Terms._fields[2:]]
    return Terms(np.zeros((states, nq)), np.zeros((states, nv)), *parts)


def allocate_step(tables: Structure, widest: int) -> StepMemory:
    """Return memory for a robot; `widest` is the largest number of rows of a block."""
    nv, bodies = tables.nv, len(tables.moved_start) - 1
    longest = int(np.diff(tables.moved_start).max(initial=0))
    return StepMemory(
        where=np.zeros(nv, np.int64),
        free=np.zeros(nv),
        qd=np.zeros(nv),
        z=np.zeros(nv),
        change=np.zeros(nv),
        J=np.zeros((widest, nv)),
        known=np.zeros(bodies, np.int64),
        columns=np.zeros((bodies, longest + 2, 6)),
        union=np.zeros(2 * nv, np.int64),
    )
