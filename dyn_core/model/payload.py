"""The payload of a link, such as a part in a gripper, changed while a Program runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.spatial import RigidInertia, Vector
from dyn_core.validation import known_keywords, shown

TRIANGLE = 1e-9  # relative slack of the triangle inequality


@known_keywords
@dataclass(frozen=True)
class Payload:
    """A rigid body that is fixed to a link, in the frame of that link.

    Attributes:
        mass: Mass [kg].
        com: Centre of mass, 3 [m].
        inertia: xx xy xz yy yz zz about the centre of mass [kg·m²]; zero: a point mass.

    Raises:
        SettingError: A value is not finite, no body has such a mass and inertia, or a
            keyword is unknown.
    """

    mass: float
    com: Sequence[float] = (0.0, 0.0, 0.0)
    inertia: Sequence[float] = (0.0,) * 6

    def __post_init__(self) -> None:
        rows = _row("mass", [self.mass], 1), _row("com", self.com, 3)
        moments = _row("inertia", self.inertia, 6)
        mass = float(rows[0][0])
        if mass < 0 or (mass == 0 and moments.any()):
            raise SettingError(
                f"payload: mass {mass:g} kg; valid: above 0, or 0 without inertia",
                "mass",
            )
        xx, xy, xz, yy, yz, zz = moments
        matrix = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        small, middle, large = np.linalg.eigvalsh(matrix).tolist()
        slack = TRIANGLE * abs(large)
        if small < -slack or large > small + middle + slack:
            raise SettingError(
                f"payload: principal moments of inertia {small:.6g}, {middle:.6g},"
                f" {large:.6g}; valid: none negative, none more than the other two",
                "inertia",
            )
        object.__setattr__(self, "mass", mass)
        object.__setattr__(self, "com", tuple(rows[1].tolist()))
        object.__setattr__(self, "inertia", tuple(moments.tolist()))

    @property
    def parameters(self) -> np.ndarray:
        """The ten values of the parameter path LINK.payload, (10,).

        They are m [kg], m c [kg·m], Ixx, Ixy, Iyy, Ixz, Iyz, Izz [kg·m²] about the
        link's origin.
        """
        body = RigidInertia.of(self.mass, Vector(self.com), self.inertia)
        return np.array(body.parameters, float)


@known_keywords
class PayloadInput:
    """The payload of a link as an input of Programs.

    Attributes:
        link: Name of the link that carries it; empty: there is no such input.
        payload: The present payload, or None.
        paths: Parameter paths for the build option `inputs`, 0 or 1.
        values: Values of these inputs in each call.

    A new payload may be blended in: its ten parameters, of which joint forces are
    linear functions, then change linearly in time.
    """

    def __init__(self, link: str = "") -> None:
        self.link = link
        self.paths = [f"{link}.payload"] if link else []
        self.attach(None)

    def check(self, payload: Payload | None) -> None:
        """Raise SettingError for another type, and for a Payload without a link.

        None is valid, also if `link` is empty.
        """
        if not isinstance(payload, Payload | None):
            valid = "Payload(mass, com, inertia), or None"
            raise SettingError(f"payload is {shown(payload)}; valid: {valid}")
        if payload is not None and not self.link:
            raise SettingError(
                "a payload needs the link that carries it: set payload_link",
                "payload_link",
            )

    def attach(self, payload: Payload | None, duration: float = 0.0) -> None:
        """Replace the present payload; None: remove it.

        Updates `payload`, and `values` immediately or, with a duration, by `advance`. A
        transition that is under way continues from its present values to the new
        payload.

        Args:
            payload: New payload.
            duration: Blending time, from the next `advance` on [s]; 0 or less:
                immediately.

        Raises:
            SettingError: It is no Payload, or there is no link for it; nothing is
                changed.
        """
        self.check(payload)
        self.payload = payload
        self._blend: _Blend | None = None
        if not self.link:
            self.values: tuple[np.ndarray, ...] = ()
            return
        ten = np.zeros(10) if payload is None else payload.parameters
        if duration > 0 and not np.array_equal(ten, self.values[0]):
            self._blend = _Blend(self.values[0], ten, duration)
        else:
            self.values = (ten,)

    def advance(self, t: float) -> None:
        """Update `values` for the time t [s] while a payload is blended in.

        Otherwise nothing happens.
        """
        blend = self._blend  # a watchdog's thread may ask, too
        if blend is not None:
            self.values = (blend.parameters(t),)
            if blend.over:
                self._blend = None


class _Blend:
    """Linear transition between the ten parameters of two payloads.

    `duration` [s] is above 0. `start` is the time of the first call of `parameters`, or
    None [s]; `over` tells whether the last call was at or after the end.
    """

    def __init__(self, before: np.ndarray, after: np.ndarray, duration: float) -> None:
        self.before, self.after, self.duration = before, after, duration
        self.start: float | None = None
        self.over = False

    def parameters(self, t: float) -> np.ndarray:
        """Return the ten parameters at time t [s]; the first call starts.

        A time before the start restarts the transition.
        """
        if self.start is None or t < self.start:
            self.start = t
        share = (t - self.start) / self.duration
        self.over = share >= 1.0
        return (
            self.after
            if self.over
            else self.before + share * (self.after - self.before)
        )


def _row(name: str, values: Any, size: int) -> np.ndarray:
    """Return `size` finite numbers as an array, (size,); an array is not copied."""
    try:
        row = np.asarray(values, float)
    except (TypeError, ValueError, OverflowError):
        row = np.full(0, np.nan)
    if row.shape != (size,) or not np.isfinite(row).all():
        count = "a finite number" if size == 1 else f"{size} finite numbers"
        raise SettingError(f"payload: {name} is {values!r}; valid: {count}", name)
    return row
