"""Wrench that a force-torque sensor at a link reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dyn_core.errors import SettingError, UnsupportedError, unknown_name
from dyn_core.model import Model
from dyn_core.model.payload import PayloadInput
from dyn_core.solving.registry import solver


class WrenchSensor:
    """A sensor between a link and what carries it: a moving or a fixed joint.

        w = contacts + weight - rate of momentum,   of all that hangs on the link
          = -(force through its joint),             [moment; force]

    about the origin and in the axes of the link. So a tool at rest that presses on a
    floor with 10 N reads 10 N upwards, and its own weight downwards.

    Attributes:
        model: Robot.
        link: Name of the link.

    Args:
        model, link: As the attributes.
        carried: Payload of the robot.
        engine: Engine of the Program.

    Raises:
        SettingError: The robot has no such link, or nothing moves it.
        UnsupportedError: The robot has loops, or a moving joint hangs on a link that
            the body of `link` has in front of the sensor.
    """

    def __init__(
        self, model: Model, link: str, carried: PayloadInput, engine: str | None
    ) -> None:
        self.model, self.link = model, link
        links = tuple(model.frame_names)
        if link not in links or not model.frame(link).body:
            moving = [name for name in links if model.frame(name).body]
            raise SettingError(unknown_name("moving link", link, moving), "link")
        if model.loops:
            names = ", ".join(loop.name for loop in model.loops)
            raise UnsupportedError(f"wrench of {link}: the robot has loops ({names})")
        place = model.frame(link)
        self._body, self._turn = place.body, np.asarray(place.X.force_matrix(), float)
        joints = model.build.description.joints
        behind = {link, *_behind(joints, link)}
        before = [
            name
            for name in links
            if model.frame(name).body == place.body and name not in behind
        ]
        for joint in joints:
            if joint.parent in before and joint.child not in (*before, link):
                raise UnsupportedError(
                    f"wrench of {link}: joint '{joint.name}' hangs on '{joint.parent}',"
                    " in front of the sensor and of the same body"
                )
        nothing = {
            f"{name}.{x}": np.zeros(size)
            for name in before
            for x, size in (("mass", 1), ("com", 3), ("inertia", 6))
        }
        self._counts = not carried.link or carried.link not in before
        self._program = solver("joint_reactions").build(
            model.with_values(nothing) if nothing else model,
            inputs=["f_ext", *carried.paths],
            engine=engine,
        )
        self._program.prepare()

    def read(
        self, motion: Sequence[np.ndarray], payload: Sequence[np.ndarray]
    ) -> np.ndarray:
        """Return the wrench, (6,) [N·m; N].

        Args:
            motion: q, qd, qdd, and external forces on the bodies, (nb, 6). Those on the
                body of the link act behind the sensor.
            payload: Values of the payload's input.
        """
        if not self._counts:
            payload = [0.0 * np.asarray(x) for x in payload]
        f = np.asarray(self._program(*motion, *payload)[0])[self._body - 1]
        return -self._turn @ f


def _behind(joints: Any, link: str) -> Iterator[str]:
    """Yield all links that hang on a link."""
    for joint in joints:
        if joint.parent == link:
            yield joint.child
            yield from _behind(joints, joint.child)
