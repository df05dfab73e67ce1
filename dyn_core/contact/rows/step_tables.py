"""Records of arrays from which the problem of a step is assembled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.collision.detection import detection_arrays as collision
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
    """States, and outputs of contact_terms at them; first axis: state, n.

    Attributes:
        poses: Rotation row by row, then position, of each body from 0, (n, nb + 1, 12).
        columns: Columns of the bodies' joints in the world, (n, nc, 6).
        factor: L of H + dt B = L.T L: inverse of its diagonal by place, then the
            entries of Structure.above, (n, entries).
        free: Velocity after a step without constraints, (n, nv).
        rows, gaps: (n, rows, nv) and (n, rows), of limits of balls and loops.
    """

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
        role, kind: Index into ROLES and KINDS.
        id: Negative number of each constraint, equal in all steps.
        term_start, gap_start: Terms of row k are from start[k] to start[k + 1].
        gap_place, place: Index in q, and in the order of elimination (see Structure).
        lo, hi: Bounds of the force [N·m | N].
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
    """Blocks whose rows and gaps are in Terms: limits of balls, loops.

    role, kind and id are as in JointRows; `start` is the first row of each block in
    Terms.rows, (blocks + 1,). `support` has the places that a block may involve, with
    all their ancestors, from support_start on.
    """

    role: IntArray
    kind: IntArray
    id: IntArray
    start: IntArray
    restitution: FloatArray
    support_start: IntArray
    support: IntArray


class BlockFacts(NamedTuple):
    """Data of each block for reports, beside its Rows.

    Attributes:
        source: Index of the contact or joint row; first row in Terms of a dense block.
        id: Number of the constraint, equal in all steps; negative if it is no contact.
        gap: Gap; position error of a gear, or of a loop's first row; else 0 [m | rad].
        approach: Velocity of the first row before the step [m/s | rad/s].
        rebound: Minimum velocity of the first row after the step by restitution; 0
            where nothing bounces [m/s | rad/s].
        bias: By row, what `Rows.b` contains beside the free velocity [m/s | rad/s].
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
    """Length of a step, and its treatment of gaps.

    Attributes:
        scheme: STEWART_TRINKLE, ANITESCU_POTRA or MOREAU_JEAN.
        erp: Fraction of an overlap or error that a step corrects through velocities.
        compliance: Of contacts, limits, loops and gears [(m/s)/(N·s)].
        threshold: Speed of approach below which nothing bounces [m/s | rad/s].
        push: Maximum speed at which an overlap is corrected [m/s | rad/s].
        apart: Fraction that is corrected in positions, without a change of velocity.
        margin: Maximum gap of a contact; a limit takes part up to this plus twice the
            distance of a step at the present speed.
        dt: Step [s].
        remaining: Time in the step for which the velocity after it moves positions [s].
        rest: Lower bound of the scale of velocities: gravity times the step [m/s].
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
    """Memory of the assembly of one problem.

    A place is the index of a coordinate in the order of elimination, see Structure.

    Attributes:
        where: Index of each place in the current support, (nv,).
        free, qd: Velocity of a free step, and before the step, by place, (nv,).
        z, change: Y.T impulse, and L^-1 of it: the change of velocity by place, (nv,).
        J: Rows of a block along its support, (rows, nv); of contacts only of those that
            meet within the step.
        known: 1 if `columns` of a body is computed in this step, (nb + 1,).
        columns: C L^-1 of each body, and its velocities; see contact_rows.fill_body.
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
    """Impulses of the previous step for each state, by number of the constraint.

    A state has `known` blocks, each with the constraint's id, its first row `start`,
    and `height` rows, (n, blocks); `impulse` is by row, (n, rows).
    """

    known: IntArray
    id: IntArray2
    start: IntArray2
    height: IntArray2
    impulse: FloatArray2


class Scene(NamedTuple):
    """Constant data of steps: the robot, its world, and the rule for gaps.

    Attributes:
        tables: Coordinates and bodies.
        shapes, pairs: Shapes of the robot and its world, and the tested pairs.
        joints: Limits, dry friction, gears, prescribed motion.
        dense: Limits of balls, and loops.
        rule: Length of a step, and its treatment of gaps.
        fast: Tables for bodies that move fast, see fast_tables.
    """

    tables: Structure
    shapes: collision.Shapes
    pairs: collision.Pairs
    joints: JointRows
    dense: DenseRows
    rule: Rule
    fast: FastTables


class StepArrays(NamedTuple):
    """Variable data of steps: states, and buffers for one problem at a time.

    `contacts`, `rows` and `blocks` are the problem of one state; `normals` corrects its
    positions, and shares the arrays y and support with `rows`. `qd_next`, in the axes
    of q, and `correction`, a velocity that moves positions only, are of each state, (n,
    nv); so is `earlier`, replaced by the impulses of the step.
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
    """Return BlockFacts of zeros for at most `blocks` blocks and `rows` rows."""
    role, source, number = (np.zeros(blocks, np.int64) for _ in range(3))
    gap, restitution, approach, rebound = (np.zeros(blocks) for _ in range(4))
    bias = np.zeros(rows)
    return BlockFacts(role, source, number, gap, restitution, approach, rebound, bias)


def allocate_earlier(states: int, blocks: int, rows: int) -> Earlier:
    """Return Earlier without impulses, with room for blocks and rows in each state."""
    number, start, height = (np.zeros((states, blocks), np.int64) for _ in range(3))
    known, impulse = np.zeros(states, np.int64), np.zeros((states, rows))
    return Earlier(known, number, start, height, impulse)


def allocate_terms(states: int, nq: int, nv: int, shapes: Mapping[str, Any]) -> Terms:
    """Return Terms of zeros; `shapes` of contact_terms are without axis of states."""
    parts = [np.zeros((states, *shapes[name])) for name in Terms._fields[2:]]
    return Terms(np.zeros((states, nq)), np.zeros((states, nv)), *parts)


def allocate_step(tables: Structure, widest: int) -> StepMemory:
    """Return StepMemory of zeros; `widest` is the maximum number of rows of a block."""
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
