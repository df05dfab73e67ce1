"""States of joints that come in parts, from several publishers: sorted and merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import SettingError, ShapeError

NONE, PART, WHOLE = "none of the joints", "a part of them", "all of them"
FIELDS = ("position", "velocity", "effort")
MEMORY = 1.0  # time for which a publisher counts after its last state [s]
MOST = 32  # sets of names that are remembered


class MergedState(NamedTuple):
    """A state of all joints, as old as its oldest part.

    Attributes:
        t: Time of receipt of the oldest part, monotonic [s].
        stamp: Time stamp of the oldest part [s]; None where parts have none.
        fields: position, velocity and effort by name, (n,); a field that a part lacks
            is left out.
    """

    t: float
    stamp: float | None
    fields: dict[str, np.ndarray]


class Sources:
    """Sets of joint names that states have, and who seems to publish them.

    A gripper beside an arm publishes states with none of the arm's joints: it is no
    second robot.

    Attributes:
        joints: Controlled joints.
    """

    def __init__(self, joints: Sequence[str]) -> None:
        self.joints = frozenset(joints)
        self._seen: dict[tuple[str, ...], tuple[str, float]] = {}

    def sort(self, t: float, names: tuple[str, ...]) -> str:
        """Return NONE, PART or WHOLE for the names of a state, and note them."""
        known = self._seen.get(names)
        share = known[0] if known else self._share(names)
        if known is None and len(self._seen) >= MOST:
            self._seen.clear()
        self._seen[names] = share, t
        return share

    def _share(self, names: tuple[str, ...]) -> str:
        common = self.joints.intersection(names)
        return WHOLE if common == self.joints else PART if common else NONE

    def recent(self, t: float, share: str) -> list[tuple[str, ...]]:
        """Return the sets of names of a kind that came of late."""
        return [
            names
            for names, (kind, seen) in self._seen.items()
            if kind == share and t - seen <= MEMORY
        ]

    def robots(self, t: float, publishers: int) -> int:
        """Return how many of the publishers of a topic may be robots of these joints.

        Each set of names is taken for one publisher, and parts for one robot.
        """
        parts = len(self.recent(t, PART))
        others = len(self.recent(t, NONE)) + parts
        return max(publishers - others, 0) + (parts > 0)


class PartMerger:
    """Merges states of parts of the joints into states of all.

    A merged state is complete when each joint has come since the last one: no part is
    used twice, and where a publisher dies nothing is merged any more. The stamps of its
    parts, and the times of their receipt, differ by less than `spread`; a part that is
    older is dropped.

    Attributes:
        joints: Controlled joints, in the order of the merged arrays.
        spread: Largest difference in time of parts that belong together [s].
    """

    def __init__(self, joints: Sequence[str], spread: float) -> None:
        self.joints, self.spread = tuple(joints), spread
        self._index = {name: k for k, name in enumerate(self.joints)}
        self._values = {name: np.zeros(len(self.joints)) for name in FIELDS}
        self.restart()

    def restart(self) -> None:
        """Drop all parts."""
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
        """Return the state that a part completes, or None while joints are missing.

        Args:
            t: Time of receipt, monotonic [s].
            names: Names of the part; those of other joints are ignored.
            fields: position, velocity and effort, each with a number for each name, or
                empty.
            stamp: Time stamp [s]; None: it has none.

        Raises:
            ShapeError: A joint is there twice, or a field has not the size of names.
            SettingError: Earlier parts are too far from this one in time, and dropped.
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
        """Drop the parts that are too far from the newest one, and say so."""
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
        """Return the state of all parts, each of which is used up."""
        stamp = None if np.isnan(self._stamps).any() else float(self._stamps.min())
        fields = {k: v.copy() for k, v in self._values.items() if self._has[k].all()}
        merged = MergedState(float(self._t.min()), stamp, fields)
        self.restart()
        return merged


def _field(what: str, values: Any, count: int) -> np.ndarray | None:
    """Return a field of a part as an array; None if it is empty."""
    array = np.asarray(values, float)
    if array.size == 0:
        return None
    if array.shape != (count,):
        wanted = f"{count} numbers, one for each name, or none"
        raise ShapeError(what, wanted, str(array.size))
    return array
