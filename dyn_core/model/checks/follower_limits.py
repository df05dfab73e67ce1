"""Position limits of a joint that others follow, bounded by their limits."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dyn_core.model.description import JointSpec

Range = tuple[float, float]


def bounded_range(
    leader: JointSpec, followers: Sequence[tuple[JointSpec, Range]]
) -> tuple[Range, list[str]]:
    """Return the leader's position limits, bounded by its followers', and warnings.

        [max(lower, low_1, ...), min(upper, high_1, ...)]

    A follower is ignored, with a warning, if its limits leave the leader an empty range
    or a single point, other than the leader's own. If only the combination of followers
    does so, all of them are ignored, with one warning. Each follower comes with the
    leader's range within its limits [rad | m].
    """
    limits, warnings = (leader.lower, leader.upper), list[str]()
    if not followers:
        return limits, warnings
    fitting = []
    for joint, allowed in followers:
        if _leaves_range(_common([limits, allowed]), limits):
            fitting.append((joint, allowed))
        else:
            warnings.append(_warning(leader, [(joint, allowed)]))
    bounded = _common([limits, *(allowed for _, allowed in fitting)])
    if _leaves_range(bounded, limits):
        return bounded, warnings
    return limits, [*warnings, _warning(leader, fitting)]


def _common(ranges: Sequence[Range]) -> Range:
    """Return the intersection of ranges, all (low, high); low > high if it is empty."""
    return max(low for low, _ in ranges), min(high for _, high in ranges)


def _leaves_range(bounded: Range, limits: Range) -> bool:
    """Return whether the leader keeps its limits, or a range wider than rounding."""
    low, high = bounded
    if bounded == limits:
        return True
    return low < high and not math.isclose(low, high, rel_tol=1e-9, abs_tol=1e-12)


def _warning(leader: JointSpec, followers: Sequence[tuple[JointSpec, Range]]) -> str:
    """Return the text of the warning about followers whose limits are ignored.

    Each follower comes with the range (low, high) that it leaves the leader.
    """
    parts = [
        f"'{joint.name}' [{joint.lower:g}, {joint.upper:g}] (for the leader"
        f" [{low + 0.0:g}, {high + 0.0:g}])"  # no -0
        for joint, (low, high) in followers
    ]
    return (
        f"joint '{leader.name}' keeps its limits [{leader.lower:g}, {leader.upper:g}]:"
        f" those of its follower{'s' * (len(parts) > 1)} {' and '.join(parts)} leave it"
        " no range"
    )
