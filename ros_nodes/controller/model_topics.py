"""Topics on the robot's model at its present state, made while somebody listens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from std_msgs.msg import Float64MultiArray, MultiArrayDimension, MultiArrayLayout

from dyn_core.errors import DynError, SettingError, unknown_name
from dyn_core.solving.registry import solver
from dyn_core.spatial.conventions.common import quaternion
from ros_nodes.base.qos import publisher

RATE, FRAME = "model_topics.rate", "model_topics.frame"
TWIST = [f"{part}_{axis}" for part in ("angular", "linear") for axis in "xyz"]


@dataclass(frozen=True, eq=False)
class _Moment:
    """A state of the robot, which the control thread does not change.

    `more` has the time, if joints are driven, then the payload's numbers.
    """

    q: np.ndarray
    qd: np.ndarray
    more: tuple[Any, ...]
    stamp: Any


class ModelTopics:
    """Publishes quantities of the model of a ComputedTorqueNode at model_topics.rate.

        ~/mass_matrix       H(q), (nv, nv); not for robots with loops
        ~/coriolis_force    C(q, qd) qd, (nv,)
        ~/gravity_force     g(q), (nv,); also where the robot compensates its weight
        ~/jacobian          of a link's origin, (6, nv): [angular; linear], root axes
        ~/frame_pose        pose of the link in the root link
        ~/manipulability    singular values of the Jacobian, then their product

    The link is model_topics.frame, or that of mode cartesian; without one, the last
    three are not there. Arrays are row by row; the label of a dimension lists the names
    of its entries, separated by commas. The payload counts; friction and springs do
    not. Programs are built and called in the worker thread of the node, and only for
    topics that have subscribers. `publishers` is empty if the rate is 0.
    """

    def __init__(self, node: Any) -> None:
        self.node, self._session = node, node.session
        self._controller = node.controller
        self._model = node.controller.model
        self._names = list(self._model.joint_names)
        self._programs: dict[str, Any] = {}
        self._busy = False
        rate, frame = node.value(RATE), node.value(FRAME)
        links = tuple(self._model.frame_names)
        if frame and frame not in links:
            raise SettingError(f"{FRAME}: {unknown_name('link', frame, links)}", FRAME)
        self._frame = frame or self._controller.control_law.frame or ""
        self._quantities = self._offered() if rate else {}
        self.publishers = {
            topic: publisher(
                node, PoseStamped if topic == "~/frame_pose" else Float64MultiArray,
                topic, 1,
            )
            for topic in self._quantities
        }  # fmt: skip
        if rate:
            node.every_idle(1.0 / rate, self.look)

    def _offered(self) -> dict[str, Callable[[_Moment], Any]]:
        """Return the function that makes each topic's message, by topic name."""
        offered: dict[str, Callable[[_Moment], Any]] = {
            "~/coriolis_force": self._coriolis,
            "~/gravity_force": self._gravity,
        }
        if not self._model.loops:
            offered["~/mass_matrix"] = self._mass
        if self._frame:
            offered |= {
                "~/jacobian": self._jacobian,
                "~/frame_pose": self._pose,
                "~/manipulability": self._manipulability,
            }
        return offered

    def look(self) -> None:
        """Submit the topics with subscribers to the worker, unless it is busy."""
        node, controller = self.node, self._controller
        if self._busy or not self._session.active or controller.q is None:
            return
        each = self.publishers.items()
        heard = [name for name, made in each if made.get_subscription_count()]
        if not heard:
            return
        state = _Moment(
            controller.q.copy(),
            controller.qd.copy(),
            controller.further_inputs(),
            node.get_clock().now().to_msg(),
        )
        self._busy = True
        self._session.submit(
            "model topics", lambda: self._publish(heard, state), self._done, self._done
        )

    def _done(self, result: Any = None) -> None:
        """Be ready for the next state; log and count a failure of the last one."""
        self._busy = False
        if isinstance(result, DynError):
            self.node.refuse("model topics", str(result))

    def _publish(self, topics: Sequence[str], state: _Moment) -> None:
        """Compute and publish topics in the worker thread; the first failure ends it.

        The worker passes the failure to `_done`. Nothing is published once the node is
        inactive, also when a later configuration is active: the publishers are gone.
        """
        for topic in topics:
            message = self._quantities[topic](state)
            if self._session.active:
                self.publishers[topic].publish(message)

    def _call(self, problem: str, state: _Moment, *values: Any, **options: Any) -> Any:
        """Return the result of the default solver of a problem.

        Its Program is stored by the problem's name alone, so `options` must be the same
        in each call. With options, the payload is left out of `more`: solvers for a
        link have none as input.
        """
        times = ["time"] if self._model.driven else []
        more = state.more[: len(times)] if options else state.more
        if problem not in self._programs:
            paths = [] if options else self._controller.carried.paths
            program = solver(problem).build(
                self._model,
                engine=self._controller.engine,
                inputs=[*times, *paths],
                **options,
            )
            program.prepare()
            self._programs[problem] = program
        return self._programs[problem](*values, *more)

    # ---- quantities

    def _mass(self, state: _Moment) -> Float64MultiArray:
        H = self._call("mass_matrix", state, state.q)
        return labelled_array(H, self._names, self._names)

    def _forces(self, state: _Moment, qd: np.ndarray) -> np.ndarray:
        """Return C(q, qd) qd + g(q) at a velocity qd, (nv,) [N·m | N]."""
        return np.asarray(
            self._call("inverse_dynamics", state, state.q, qd, np.zeros(len(qd)))
        )

    def _coriolis(self, state: _Moment) -> Float64MultiArray:
        weight = self._forces(state, np.zeros(len(state.qd)))
        return labelled_array(self._forces(state, state.qd) - weight, self._names)

    def _gravity(self, state: _Moment) -> Float64MultiArray:
        return labelled_array(self._forces(state, 0.0 * state.qd), self._names)

    def _jacobian(self, state: _Moment) -> Float64MultiArray:
        options = {"frame": self._frame, "reference": "aligned"}
        J = self._call("jacobian", state, state.q, **options)
        return labelled_array(J, TWIST, self._names)

    def _pose(self, state: _Moment) -> PoseStamped:
        names = [self._frame]
        (T,) = self._call("forward_kinematics", state, state.q, frames=names)
        message = PoseStamped()
        message.header.stamp = state.stamp
        message.header.frame_id = self._model.frame_names[0]
        place, turn = message.pose.position, message.pose.orientation
        place.x, place.y, place.z = (float(x) for x in T[:3, 3])
        turn.x, turn.y, turn.z, turn.w = (float(x) for x in quaternion(T[:3, :3]))
        return message

    def _manipulability(self, state: _Moment) -> Float64MultiArray:
        sigma, product = self._call("manipulability", state, state.q, frame=self._frame)
        names = [f"singular_value_{k + 1}" for k in range(len(sigma))]
        return labelled_array([*sigma, product], [*names, "product"])


def labelled_array(values: Any, *labels: Sequence[str]) -> Float64MultiArray:
    """Return an array as Float64MultiArray, row by row, with a label for each axis.

    A label has the names of the entries along the axis, separated by commas.
    """
    flat, size = np.asarray(values, float).ravel(), 1
    dimensions = []
    for names in reversed(labels):
        size *= len(names)
        label = ",".join(names)
        dimensions.append(
            MultiArrayDimension(label=label, size=len(names), stride=size)
        )
    layout = MultiArrayLayout(dim=dimensions[::-1])
    return Float64MultiArray(layout=layout, data=flat.tolist())
