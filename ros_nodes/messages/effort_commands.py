"""Effort commands of messages as checked arrays; without ROS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import DynError, unknown_name

MOST_ORDERS = 16  # largest number of cached sequences of names


class RefusedCommand(DynError):
    """A command that is not applied; `kind` is the counter of such refusals."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, str(self))


class _Order(NamedTuple):
    """Assignment of a message's efforts to joints.

    `places` are the indices in the message of `joints`, `foreign` of all other names.
    """

    places: np.ndarray
    joints: np.ndarray
    foreign: tuple[int, ...]


class EffortReader:
    """Reads the efforts of all joints from a message, in the order of the joints.

    Attributes:
        joints: Names of the n joints that accept efforts.
        unlimited: Names, by index in joints, of joints without an effort limit; these
            must not be driven.
        timeout: Largest age of a stamp, into the past or the future [s].
        others: Whether a JointState had finite positions or velocities (no effect).
    """

    def __init__(
        self, joints: Sequence[str], unlimited: Mapping[int, str], timeout: float
    ) -> None:
        self.joints, self.unlimited = list(joints), unlimited
        self.timeout, self.others = timeout, False
        self._orders: dict[tuple[str, ...], _Order] = {}
        self._index = {name: k for k, name in enumerate(self.joints)}

    def array(self, message: Any) -> np.ndarray:
        """Return the efforts of a Float64MultiArray, (n,) [N·m | N], in its order.

        RefusedCommand: wrong size, not finite, or not 0 where there is no effort limit.
        """
        tau = np.asarray(message.data, float)
        if tau.shape != (len(self.joints),):
            raise RefusedCommand(
                "command of wrong size",
                f"{tau.size} efforts for {', '.join(self.joints)}",
            )
        return self._checked(tau)

    def joint_state(self, message: Any, age: float | None) -> np.ndarray:
        """Return the efforts of a JointState, (n,) [N·m | N]; unnamed joints have zero.

        `age` is the time since its stamp, negative in the future [s]. NaN means no
        effort for a name that is no joint here. RefusedCommand: as of `array`, a stamp
        beyond `timeout`, an unknown or double name, or no effort at all.
        """
        self._check_age(age)
        names, efforts = tuple(message.name), np.asarray(message.effort, float)
        for values in (message.position, message.velocity):
            if len(values) and not self.others:
                self.others = bool(np.isfinite(np.asarray(values, float)).any())
        if np.isnan(efforts).all():
            raise RefusedCommand(
                "command without effort", "only efforts move this robot; valid: effort"
            )
        if efforts.shape != (len(names),):
            raise RefusedCommand(
                "command of wrong size",
                f"{efforts.size} efforts for {len(names)} names",
            )
        order = self._orders.get(names)
        if order is None:
            order = self._match(names)
            # A publisher that permutes its names must not fill the memory.
            if len(self._orders) > MOST_ORDERS:
                self._orders.clear()
            self._orders[names] = order
        for place in order.foreign:
            if not np.isnan(efforts[place]):
                reason = unknown_name("joint", names[place], self.joints, "efforts")
                raise RefusedCommand("command of unknown joint", reason)
        tau = np.zeros(len(self.joints))
        tau[order.joints] = efforts[order.places]
        return self._checked(tau)

    def _match(self, names: tuple[str, ...]) -> _Order:
        """Return where the joints are in a message; a name that is twice is refused."""
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise RefusedCommand(
                "command of unknown joint", f"joint '{twice}' is there more than once"
            )
        places = [k for k, name in enumerate(names) if name in self._index]
        foreign = tuple(k for k in range(len(names)) if k not in places)
        joints = [self._index[names[k]] for k in places]
        return _Order(np.array(places, int), np.array(joints, int), foreign)

    def _check_age(self, age: float | None) -> None:
        """Refuse a stamp more than `timeout` [s] in the past or future; None passes."""
        if age is None or abs(age) <= self.timeout:
            return
        when = "old" if age > 0 else "in the future: is it of another clock?"
        raise RefusedCommand(
            "command late",
            f"stamped {abs(age):.3g} s {when}; command_timeout is {self.timeout:g} s",
        )

    def _checked(self, tau: np.ndarray) -> np.ndarray:
        """Return finite efforts, zero where a joint has no limit; refuse others."""
        good = np.isfinite(tau)
        if not good.all():
            k = int(np.flatnonzero(~good)[0])
            reason = f"effort of joint '{self.joints[k]}' is {tau[k]:g}"
            raise RefusedCommand("command not finite", reason)
        for k, name in self.unlimited.items():
            if tau[k]:
                raise RefusedCommand(
                    "command without limit",
                    f"joint '{name}' has no effort limit (0 or absent in the model"
                    f" never means unlimited); set effort_limits.{name} > 0",
                )
        return tau
