"""Constraints of joints as arrays: limits, dry friction, gears, prescribed motion."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Sized
from dataclasses import dataclass, field

import numpy as np

from dyn_core.contact.problem.layout import KINDS
from dyn_core.contact.rows.constraints import Constraint, JointConstraints
from dyn_core.contact.rows.step_tables import ROLES, DenseRows, JointRows
from dyn_core.contact.rows.structure import Structure
from dyn_core.errors import ModelError
from dyn_core.model import Model

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py


@dataclass
class JointTable:
    """JointRows of a robot, their constraints, and the rows of prescribed joints."""

    rows: JointRows
    constraints: list[Constraint]
    prescribed: dict[str, list[int]] = field(default_factory=dict)

    @property
    def ids(self) -> list[Hashable]:
        """Key of each row's constraint, equal in all steps."""
        return [c.id for c in self.constraints]


def joint_table(
    model: Model,
    tables: Structure,
    joints: JointConstraints,
    limits: bool,
    limit_restitution: float,
    dry_friction: bool,
    prescribed: Sequence[str],
) -> JointTable:
    """Return the constraints of joints that have one row, in the order of reports.

    Limits, dry friction, gears, then prescribed motion with the acceleration 0. Row k
    has the id -1 - k.
    """
    constraints: list[Constraint] = []
    gaps: list[tuple[list[tuple[int, float]], float]] = []
    if limits:
        for block, terms, constant in joints.linear_limits():
            constraints.append(block)
            gaps.append((terms, constant))
    if dry_friction:
        constraints += joints.dry_friction()
    gaps += [([], 0.0)] * (len(constraints) - len(gaps))
    for block, terms, constant in joints.linear_gears():
        constraints.append(block)
        gaps.append((terms, constant))
    by_joint: dict[str, list[int]] = {}
    for name in prescribed:
        motion = joints.prescribed(name)
        if model.v_slice(name) in map(model.v_slice, by_joint):
            valid = "each joint once, and no joint that follows one of them"
            raise ModelError(
                f"joint '{name}' is prescribed twice; valid: {valid}", name
            )
        by_joint[name] = [len(constraints) + k for k in range(len(motion))]
        constraints += motion
    gaps += [([], 0.0)] * (len(constraints) - len(gaps))
    place = np.argsort(tables.coordinate)
    terms_of = [
        [(int(place[k]), float(c.J[0, k])) for k in np.flatnonzero(c.J[0])]
        for c in constraints
    ]
    ranges = np.array([c.force_range for c in constraints]).reshape(-1, 2)
    e = [limit_restitution if c.role == "limit" else 0.0 for c in constraints]
    rows = JointRows(
        role=_ints(ROLES.index(c.role) for c in constraints),
        kind=_ints(KINDS.index(c.kind) for c in constraints),
        id=-1 - np.arange(len(constraints)),
        term_start=_starts(terms_of),
        place=_ints(k for terms in terms_of for k, _ in terms),
        value=_floats(x for terms in terms_of for _, x in terms),
        gap_start=_starts([terms for terms, _ in gaps]),
        gap_place=_ints(k for terms, _ in gaps for k, _ in terms),
        gap_value=_floats(x for terms, _ in gaps for _, x in terms),
        constant=_floats(constant for _, constant in gaps),
        lo=np.ascontiguousarray(ranges[:, 0]),
        hi=np.ascontiguousarray(ranges[:, 1]),
        restitution=_floats(e),
        acceleration=np.zeros(len(constraints)),
    )
    return JointTable(rows, constraints, by_joint)


def dense_rows(
    tables: Structure, constraints: Sequence[Constraint], first_id: int
) -> DenseRows:
    """Return the limits of balls and the loops, in the order of contact_terms.

    `constraints` are at a generic state, where an entry of J is zero only if it always
    is: the other entries, and their ancestors in the tree, are the support of each
    block. Ids descend from `first_id`.
    """
    place = np.argsort(tables.coordinate)
    supports = []
    for c in constraints:
        touched = {int(place[k]) for k in np.flatnonzero(np.any(c.J != 0.0, axis=0))}
        closed = touched.union(*(tables.places_above(k) for k in touched))
        supports.append(sorted(closed))
    return DenseRows(
        role=_ints(ROLES.index(c.role) for c in constraints),
        kind=_ints(KINDS.index(c.kind) for c in constraints),
        id=first_id - np.arange(len(constraints)),
        start=_starts([c.J for c in constraints]),
        restitution=_floats(c.restitution for c in constraints),
        support_start=_starts(supports),
        support=_ints(k for part in supports for k in part),
    )


def _ints(values: Iterable[int]) -> np.ndarray:
    return np.array(list(values), np.int64)


def _floats(values: Iterable[float]) -> np.ndarray:
    return np.array(list(values), float)


def _starts(lists: Iterable[Sized]) -> np.ndarray:
    return np.cumsum([0, *map(len, lists)]).astype(np.int64)
