"""Joint states that arrive in parts from several publishers: classified and merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import SettingError, ShapeError

NONE, PART, WHOLE = "none of the joints", "a part of them", "all of them"
FIELDS = ("position", "velocity", "effort")
MEMORY = 1.0  # time after its last state for which a publisher is counted [s]
MOST = 32  # maximum number of stored sets of names


class MergedState(NamedTuple):
    """State of all joints, with the receipt time and stamp of its oldest part [s].

    `stamp` is None if a part has none. `fields` are arrays (n,) by name: position,
    velocity and effort, without a field that any part lacks.
    """

    t: float
    stamp: float | None
    fields: dict[str, np.ndarray]


class Sources:
    """Counts the probable publishers of a topic by the joint names of their states.

    A gripper beside an arm, whose states have none of `joints`, is no second robot.
    """

    def __init__(self, joints: Sequence[str]) -> None:
        self.joints = frozenset(joints)
        self._seen: dict[tuple[str, ...], tuple[str, float]] = {}

    def sort(self, t: float, names: tuple[str, ...]) -> str:
        """Return how many controlled joints a state has: NONE, PART or WHOLE.

        Names are stored with the time of receipt t [s] for `recent`; a new set beyond
        MOST (32) first removes all earlier ones.
        """
        known = self._seen.get(names)
        share = known[0] if known else self._share(names)
        if known is None and len(self._seen) >= MOST:
            # Bounded memory, should a publisher invent ever new names.
            self._seen.clear()
        self._seen[names] = share, t
        return share

    def _share(self, names: tuple[str, ...]) -> str:
        """Return NONE, PART or WHOLE, by the controlled joints among `names`."""
        common = self.joints.intersection(names)
        return WHOLE if common == self.joints else PART if common else NONE

    def recent(self, t: float, share: str) -> list[tuple[str, ...]]:
        """Return the sets of names of one share received in the second before t [s]."""
        return [
            names
            for names, (kind, seen) in self._seen.items()
            if kind == share and t - seen <= MEMORY
        ]

    def robots(self, t: float, publishers: int) -> int:
        """Return how many publishers of a topic may be robots with these joints.

        Each set of names without the joints, in the second before t [s], counts as one
        publisher that is no robot; all publishers of parts together count as one robot.
        """
        parts = len(self.recent(t, PART))
        others = len(self.recent(t, NONE)) + parts
        return max(publishers - others, 0) + (parts > 0)


class PartMerger:
    """Merges states of some joints into states of all joints, in the order of `joints`.

    A merged state is complete when each joint has come since the last one: no part is
    used twice, and when a publisher dies nothing is merged any more. Parts whose stamps
    or times of receipt are older by `spread` [s] are dropped.
    """

    def __init__(self, joints: Sequence[str], spread: float) -> None:
        self.joints, self.spread = tuple(joints), spread
        self._index = {name: k for k, name in enumerate(self.joints)}
        self._values = {name: np.zeros(len(self.joints)) for name in FIELDS}
        self.restart()

    def restart(self) -> None:
        """Drop all parts, with their times and stamps."""
        n = len(self.joints)
        self._t, self._stamps = np.full(n, np.nan), np.full(n, np.nan)
        self._has = {name: np.zeros(n, bool) for name in FIELDS}

    def add(
        self,
        t: float,
        names: Sequence[str],
        fields: Mapping[str, Any],
        stamp: float | None,
    ) -> MergedState | None:
        """Add a part; return the merged state if it is complete, else None.

        A newer part of a joint replaces its older one. `fields` has the keys position,
        velocity and effort; each value has one number per name, or is empty.

        A part is ignored with a ShapeError if a controlled joint is repeated, or a
        field has not one number per name. SettingError: earlier parts differ by
        `spread` or more in time from this one, or one has a stamp and the other none.
        They are dropped; this part is retained.
        """
        places = [k for k, name in enumerate(names) if name in self._index]
        joints = [self._index[names[k]] for k in places]
        if len(set(joints)) < len(joints):
            twice = next(names[k] for k in places if list(names).count(names[k]) > 1)
            got = "there more than once"
            raise ShapeError(f"joint '{twice}'", "one entry in name", got)
        arrays = {name: _field(name, fields[name], len(names)) for name in FIELDS}
        self._t[joints] = t
        self._stamps[joints] = np.nan if stamp is None else stamp
        for name, array in arrays.items():
            self._has[name][joints] = array is not None
            if array is not None:
                self._values[name][joints] = array[places]
        self._drop_distant(t, stamp)
        return None if np.isnan(self._t).any() else self._merged()

    def _drop_distant(self, t: float, stamp: float | None) -> None:
        """Drop parts too far in time from the newest one, then raise a SettingError.

        Too far is `spread` or more between times or stamps, or only one with a stamp.
        """
        there = ~np.isnan(self._t)
        unstamped = np.isnan(self._stamps)
        with np.errstate(invalid="ignore"):
            near = t - self._t < self.spread
            if stamp is None:
                near &= unstamped
            else:
                near &= np.abs(self._stamps - stamp) < self.spread
        distant = there & ~near
        if not distant.any():
            return
        k = int(np.flatnonzero(distant)[0])
        other = None if unstamped[k] else float(self._stamps[k])
        late = t - float(self._t[k])
        self._t[distant] = np.nan
        if (other is None) != (stamp is None):
            what = "one has a stamp, another none"
        elif stamp is not None and other is not None:
            what = f"their stamps differ by {abs(stamp - other):.3g} s"
            if abs(stamp - other) < self.spread:
                what = f"they came {late:.3g} s apart"
        else:
            what = f"they came {late:.3g} s apart"
        raise SettingError(
            f"parts of the state do not belong together: {what} (joint"
            f" '{self.joints[k]}'); valid: less than {self.spread:g} s (state_timeout)",
            "merge_joint_states",
        )

    def _merged(self) -> MergedState:
        """Return the state merged from the parts, one for each joint, and drop them.

        A field that a part lacks is left out; time and stamp are the earliest ones.
        """
        stamp = None if np.isnan(self._stamps).any() else float(self._stamps.min())
        fields = {k: v.copy() for k, v in self._values.items() if self._has[k].all()}
        merged = MergedState(float(self._t.min()), stamp, fields)
        self.restart()
        return merged


def _field(what: str, values: Any, count: int) -> np.ndarray | None:
    """Return the values of a field, (count,); None if there are none."""
    array = np.asarray(values, float)
    if array.size == 0:
        return None
    if array.shape != (count,):
        wanted = f"{count} numbers, one for each name, or none"
        raise ShapeError(what, wanted, str(array.size))
    return array
