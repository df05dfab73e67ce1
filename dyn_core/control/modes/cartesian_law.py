"""The law of mode cartesian: impedance or operational-space control of a tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from dyn_core.control.modes.control_law import ControlLaw, build_options, called
from dyn_core.control.modes.tool_sampling import sampling_program
from dyn_core.control.modes.tool_targets import (
    POSE,
    SENSOR,
    STIFFNESS,
    TWIST,
    WRENCH,
    ToolTargets,
    in_axes,
)
from dyn_core.control.modes.wrench_control import (
    WRENCH_FIELDS,
    WRENCH_TOPIC,
    WrenchControl,
    check_integral,
)
from dyn_core.errors import SettingError, TargetError
from dyn_core.model import Model
from dyn_core.problems import FORWARD_KINEMATICS, FRAME_VELOCITY, JACOBIAN
from dyn_core.solving.control_mode import ModeMessage, ModeTopic
from dyn_core.solving.registry import solver, solver_of
from dyn_core.validation import Field, ListOf, Name, Quantity, numbers

AXES = ("aligned", "local")
RANK, LENGTH = 1e-6, 0.1  # of the Jacobian; by which angles and lengths compare [m]
UNBOUNDED = 1e12  # energy of a spring that is not limited [J]
INPUTS = (
    "v_ref",
    "f_ref",
    "ratio",
    "energy_limit",
    "q_rest",
    "rest_stiffness",
    "rest_damping",
)
_POSITIVE = ListOf(Quantity(0.0, 1e7))
CARTESIAN_FIELDS = (
    Field("cartesian.frame", Name(),
        "link that is the tool; mode cartesian needs one", "", ""),
    Field("cartesian.reference", Name(AXES),
        "axes of cartesian.stiffness: aligned with the root, or local, those of the"
        " reference pose", "", AXES[0]),
    Field("cartesian.stiffness", numbers(),
        "stiffness of the tool, angular before linear: 6 numbers, or the 36 of a"
        " symmetric matrix without negative eigenvalues, row by row",
        "N·m/rad, N/m", [10.0, 10.0, 10.0, 400.0, 400.0, 400.0], structure=False),
    Field("cartesian.ratio", _POSITIVE,
        "damping ratio: one number, or one of each axis", "1", [1.0], structure=False),
    Field("cartesian.energy_limit", Quantity(0.0, 1e7),
        "energy of the spring beyond which it pulls no harder; 0: none",
        "J", 0.0, structure=False),
    Field("cartesian.rest_stiffness", _POSITIVE,
        "stiffness towards the posture at activation, of motions that leave the tool"
        " where it is: one number, or one a joint",
        "N·m/rad, N/m", [2.0], structure=False),
    Field("cartesian.rest_damping", _POSITIVE,
        "damping of such motions: one number, or one a joint",
        "N·m·s/rad, N·s/m", [0.5], structure=False),
    Field("cartesian.target_timeout", Quantity(1e-3, 10.0),
        "age at which a target twist or wrench has faded to zero; for half of it it"
        " counts in full", "s", 0.1, structure=False),
    Field("cartesian.target_jump", Quantity(1e-4, 10.0),
        "largest distance of a target pose from the reference, and of a reference that"
        " a twist moves from the tool", "rad, m", 0.1, structure=False),
    Field("cartesian.stiffness_rate", ListOf(Quantity(1e-3, 1e9), 2),
        "largest change of the stiffness in a second: of angular entries, of others",
        "N·m/(rad s), N/(m s)", [50.0, 2000.0], structure=False),
    *WRENCH_FIELDS,
)  # fmt: skip
CARTESIAN_TOPICS = (
    ModeTopic(POSE, "geometry_msgs/PoseStamped", "pose of the reference, held"),
    ModeTopic(TWIST, "geometry_msgs/TwistStamped",
        "velocity of the reference, which it moves; fades"),
    ModeTopic(WRENCH, "geometry_msgs/WrenchStamped",
        "wrench that the tool exerts besides; fades"),
    ModeTopic(STIFFNESS, "geometry_msgs/WrenchStamped",
        "stiffness of the axes: torque in N·m/rad, force in N/m"),
    WRENCH_TOPIC,
)  # fmt: skip


class CartesianLaw(ControlLaw):
    """A law that holds and leads a tool by a solver of CARTESIAN_CONTROL.

    The pose of the tool at which the law begins to act is held until the first target.
    The posture of the joints at that time is the rest posture.

    Class attributes:
        fields: Parameters of a mode with this law.
        topics: Its topics.

    Attributes:
        targets: Reference of the tool, see ToolTargets.
        wrench: Control of the target wrench by a sensor, see WrenchControl.
        stiffness: Present stiffness, in the axes of cartesian.reference, (6, 6).
        link: Name of the tool's link.

    Args:
        host: The Controller.

    Raises:
        SettingError: cartesian.frame is no link that moves, or a parameter is invalid.
    """

    fields: ClassVar[tuple[Field, ...]] = CARTESIAN_FIELDS
    topics: ClassVar[tuple[ModeTopic, ...]] = CARTESIAN_TOPICS

    def __init__(self, host: Any) -> None:
        super().__init__(host)
        self.link = host.parameters["cartesian.frame"]
        model = host.model
        self._driven = bool(model.driven)
        links = tuple(model.frame_names)
        moving_link(model, self.link)
        self._aligned = host.parameters["cartesian.reference"] == AXES[0]
        self.targets = ToolTargets(links, self.poses)
        self.wrench = WrenchControl(self)
        self._goal: np.ndarray  # see change
        self.check(host.parameters)
        self.change()
        self.stiffness = self._goal
        self._time: float | None = None
        self._kinematics = self._program(FORWARD_KINEMATICS, frames=list(links))
        self._tool = self._program(FORWARD_KINEMATICS, frames=[self.link])
        self._turn: np.ndarray | None = None  # axes of the tool, if the law uses them
        self._jacobian, self._velocity = (
            self._program(problem, frame=self.link, reference="aligned")
            for problem in (JACOBIAN, FRAME_VELOCITY)
        )
        axes = host.parameters["cartesian.reference"]
        more = host.engine, host.carried.paths
        self._sampled = sampling_program(model, self.link, axes, *more)
        self._missing = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence if the joints move the tool in less than six directions.

        It is alone in a tuple, which is empty if they move it in all six at one of
        eight random positions, and for a robot with loops.
        """
        model, rng = self.host.model, np.random.default_rng(0)
        if model.loops:
            return ()
        time = (0.0,) if self._driven else ()
        drawn = [self._jacobian(model.random(rng), *time) for _ in range(8)]
        rank = max(int(np.linalg.matrix_rank(J, RANK)) for J in drawn)
        if rank == 6:
            return ()
        return (
            f"mode cartesian: the joints move '{self.link}' in {rank} of 6 directions;"
            " a target is met as far as they reach, and /diagnostics names the others",
        )

    def _name_missing(self, T: np.ndarray) -> str:
        """Return, as text, directions in tool axes in which the tool cannot move."""
        J = np.asarray(self._jacobian(self.host.samples.q, *self._clock()))
        scale = np.repeat([LENGTH, 1.0], 3)
        U, s, _ = np.linalg.svd(scale[:, None] * J)
        weak = U[:, int((s > RANK).sum()) :].T @ np.kron(np.eye(2), T[:3, :3])
        names = []
        for u in weak:
            turns = np.linalg.norm(u[:3]) >= np.linalg.norm(u[3:])
            axis = u[:3] if turns else u[3:]
            axis = axis / np.linalg.norm(axis)
            listed = ", ".join(f"{x:.2g}" for x in np.round(axis, 2) + 0.0)
            names.append(f"{'turn about' if turns else 'move along'} ({listed})")
        return f"; it cannot {' or '.join(names)} of its axes here" if names else ""

    @property
    def frame(self) -> str:
        """Name of the tool's link: the envelope bounds its speed if none is named."""
        return str(self.link)

    @property
    def status(self) -> str:
        """What /diagnostics says while the law acts.

        It tells whether a target came within the last target_timeout, and the
        directions in which the tool could not move when the law began.
        """
        targets, status = self.targets, "holding the tool"
        if targets.received is not None and self._time is not None:
            if self._time - targets.received <= targets.timeout:
                status = "following targets of the tool"
        return status + self._missing

    @property
    def warnings(self) -> dict[str, str]:
        """Sentences on the loss of "sensor" and "contact", by these keys.

        Empty if neither is lost, or no wrench is controlled.
        """
        return self.wrench.warnings

    def _program(self, problem: Any, **options: Any) -> Any:
        """Return the prepared Program of a kinematic problem, by the default solver.

        Its last input is the time if the model has driven joints.
        """
        inputs = ["time"] if self._driven else []
        program = solver(problem.name).build(
            self.host.model, engine=self.host.engine, inputs=inputs, **options
        )
        program.prepare()
        return program

    def build(self, chosen: Any, engine: Any, wrap: Sequence[str]) -> Any:
        """Return the prepared Program of a solver of CARTESIAN_CONTROL.

        Args:
            chosen: Solver, by name or as object; auto: the default of the mode.
            engine: Engine of the Program.
            wrap: Ignored.

        Raises:
            SolverNotFound: No solver has the name `chosen`.
            SignatureError: It solves another problem. Errors of the build pass through.
        """
        host, mode = self.host, self.mode
        law = solver_of(mode.solver if chosen == "auto" else chosen, mode.problem)
        options = build_options(host, law.signature, engine, host.carried.paths, INPUTS)
        axes = host.parameters["cartesian.reference"]
        program = law.build(host.robot, frame=self.link, reference=axes, **options)
        program.prepare()
        return program

    # ---- a cycle

    def begin(self) -> None:
        """Hold the present pose of the tool, with the stiffness of the parameters.

        Earlier targets, the contact and the integral of the wrench are dropped.
        Raises ShapeError before the first state.
        """
        self.targets.clear()
        T = self.pose()
        self.targets.hold(T)
        self._missing = self._name_missing(T)
        self._goal = self._read_stiffness(self.host.parameters)
        self.stiffness, self._time = self._goal, None
        self.wrench.clear()

    def brake(self) -> None:
        """Hold the reference pose, if there is one; twist and wrench become zero.

        The contact and the integral of the wrench are dropped.
        """
        self.targets.rest()
        self.wrench.clear()

    def clear(self) -> None:
        """Discard the reference, the targets and their stamps.

        The contact, the integral of the wrench and their warnings are dropped, too.
        """
        self.targets.clear()
        self.wrench.clear()
        self._time = None

    def advance(self, t: float) -> None:
        """Advance reference, wrench and stiffness to time t, host.now [s].

        After `begin` or `clear` the first step has the length zero. Without a reference
        only the time is stored.
        """
        step = 0.0 if self._time is None else max(t - self._time, 0.0)
        self._time = t
        if self.targets.R is None:
            return
        self._turn = None if self._aligned else self.pose()[:3, :3]
        self.targets.advance(t, self.pose)
        self._force = self.wrench.wrench(t, step, self._turn)
        if self.stiffness is not self._goal:
            change = self._goal - self.stiffness
            rates = np.full((6, 6), self._rates[1])
            rates[:3, :3] = self._rates[0]
            longest = float((np.abs(change) / rates).max())
            share = 1.0 if longest <= step else step / longest
            self.stiffness = (
                self._goal if share == 1.0 else self.stiffness + share * change
            )

    def torque(self, program: Any) -> np.ndarray:
        """Return the torque for the present state, (nv,) [N·m | N].

        `begin` and then `advance` must have been called. Effort limits are not
        applied; errors of the Program pass through.

        Args:
            program: Program from `build`.
        """
        host, targets = self.host, self.targets
        q, qd = host.samples.q, host.samples.qd
        rest = q + host.samples.change(q, host.follower.reference.q)
        return called(
            program,
            q,
            qd,
            targets.pose,
            self.stiffness,
            in_axes(targets.v, self._turn),
            self._force,
            self._ratio,
            self._energy,
            rest,
            self._rest[0],
            self._rest[1],
            *host.further_inputs(),
        )

    def pose(self) -> np.ndarray:
        """Return the pose of the tool in the base at the last state, (4, 4).

        Without a state, ShapeError is raised, as in `poses` and `velocity`.
        """
        return np.asarray(self._tool(self.host.samples.q, *self._clock()))[0]

    def poses(self) -> np.ndarray:
        """Return the poses of all links in the base at the last state, (links, 4, 4).

        In the order of model.frame_names. Raises ShapeError before the first state.
        """
        return np.asarray(self._kinematics(self.host.samples.q, *self._clock()))

    def _clock(self) -> tuple[float, ...]:
        """Return the time of driven joints [s] in a tuple, empty if there are none."""
        return (self.host.now,) if self._driven else ()

    # ---- parameters

    def check(self, values: Mapping[str, Any]) -> None:
        """Raise a SettingError if a parameter is invalid, or unstable when sampled.

        Sampling is tested only if the period of the states is known, that of stiffness
        and damping only after a state.

        Args:
            values: Values of all parameters of the mode, by name.
        """
        stiffness = self._read_stiffness(values)
        ratio = _axes(values, "cartesian.ratio")
        _, damping = self._read_rest(values)
        self._check_sampling(stiffness, ratio, damping)
        check_integral(values, self.host.period)

    def change(self) -> None:
        """Use the parameters of the host, which `check` has accepted.

        The stiffness changes gradually, at cartesian.stiffness_rate, all others at
        once. A tare may begin, see WrenchControl.change.
        """
        values, targets = self.host.parameters, self.targets
        targets.timeout = values["cartesian.target_timeout"]
        targets.jump = values["cartesian.target_jump"]
        targets.oldest = self.host.rules.max_state_age
        self._rates = values["cartesian.stiffness_rate"]
        self.wrench.change()
        self._goal = self._read_stiffness(values)
        self._ratio = _axes(values, "cartesian.ratio")
        self._energy = values["cartesian.energy_limit"] or UNBOUNDED
        self._rest = self._read_rest(values)

    def _read_rest(self, values: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Return stiffness and damping of the posture, (nv,); one number is for all."""
        rows = []
        for name in ("cartesian.rest_stiffness", "cartesian.rest_damping"):
            row, nv = np.asarray(values[name], float), self.host.model.nv
            if row.shape not in ((1,), (nv,)):
                raise SettingError(
                    f"{name} has {row.size} numbers; valid: one, or {nv}", name
                )
            rows.append(np.broadcast_to(row, (nv,)).copy())
        return rows[0], rows[1]

    def _read_stiffness(self, values: Mapping[str, Any]) -> np.ndarray:
        """Return the stiffness, (6, 6), angular first; 6 numbers are its diagonal."""
        name = "cartesian.stiffness"
        x = np.asarray(values[name], float)
        if x.shape not in ((6,), (36,)):
            raise SettingError(f"{name} has {x.size} numbers; valid: 6 or 36", name)
        K = np.diag(x) if x.size == 6 else x.reshape(6, 6)
        scale = float(np.abs(K).max())
        if not np.allclose(K, K.T, rtol=0, atol=1e-9 * scale):
            raise SettingError(f"{name} is not symmetric", name)
        least = float(np.linalg.eigvalsh(K)[0])
        if least < -1e-9 * scale:
            raise SettingError(
                f"{name} has the eigenvalue {least:.6g}; valid: none below 0", name
            )
        return (K + K.T) / 2

    # ---- sampling

    def check_sampling(self, period: float, share: float) -> None:
        """Raise a SettingError if the period of the states makes the law unstable.

        The integral of the wrench control is tested, then the damping of the tool and
        of its posture, with the present stiffness and with the one that it changes to.
        Nothing is tested before the first state.

        Args:
            period: Period of the states [s].
            share: Factor on the bounds, above 1 while the period is roughly known.
        """
        if self.host.samples.q is None:
            return
        check_integral(self.host.parameters, period, share)
        for stiffness in (self.stiffness, self._goal):
            self._check_sampling(stiffness, self._ratio, self._rest[1], period, share)

    def velocity(self) -> np.ndarray:
        """Return the velocity of the tool at the last state, base axes, (6,).

        It is [angular; linear of the link's origin] [rad/s; m/s]. Raises ShapeError
        before the first state.
        """
        samples = self.host.samples
        return np.asarray(self._velocity(samples.q, samples.qd, *self._clock()))

    def mobility(self) -> np.ndarray:
        """Return diag(J H^-1 J.T) in the axes of cartesian.reference, (6,).

        Angular before linear [1/(kg·m²); 1/kg]: the squared rates of springs of
        stiffness 1, at the link's origin and the last state. Raises ShapeError before
        the first state.
        """
        one, zero = np.ones(6), np.zeros(6)
        inputs = self.host.samples.q, one, zero, np.zeros(self.host.model.nv)
        return np.asarray(self._sampled(*inputs, *self.host.further_inputs())[1]) ** 2

    def _check_sampling(
        self,
        K: np.ndarray,
        ratio: np.ndarray,
        damping: np.ndarray,
        period: float | None = None,
        share: float = 1.0,
    ) -> None:
        """Raise a SettingError if the measured period makes the tool unstable.

        With m_i the mass that a force along axis i alone moves, and D_i = 2 ratio_i
        sqrt(K_ii m_i), the sampled robot is stable if

            T lambda_max(H^-1 (J.T D J + rest_damping)) < 2
            T sqrt(K_ii / m_i) < 4 ratio_i

        which are the bounds of control.gain_limits along each axis, scaled by `share`.
        Nothing is tested before a state, or while the period is unknown. K, (6, 6), is
        in the axes of cartesian.reference.
        """
        host = self.host
        period = host.period if period is None else period
        samples = getattr(host, "samples", None)
        if not period or samples is None or samples.q is None:
            return
        k = np.maximum(np.diag(K), 0.0)
        inputs = samples.q, k, ratio, damping, *host.further_inputs()
        rate, rates = self._sampled(*inputs)
        if not period * rate < 2.0 * share:
            raise SettingError(
                f"damping of the tool and its posture: rate {rate:.4g} 1/s; valid: less"
                f" than {2 * share / period:.4g} 1/s, where states come each"
                f" {period:.4g} s: sampled beyond it the tool is unstable; lower"
                " cartesian.stiffness, ratio or rest_damping",
                "cartesian.stiffness",
            )
        fast = (period * rates >= 4.0 * ratio * share) & (rates > 0)
        if fast.any():
            i = int(np.flatnonzero(fast)[0])
            least = period * float(rates[i]) / (4.0 * share)
            raise SettingError(
                f"cartesian.ratio of axis {i} is {ratio[i]:g}; valid: above"
                f" {least:.4g}, where states come each {period:.4g} s: sampled below it"
                " the tool is unstable",
                "cartesian.ratio",
            )

    # ---- targets

    def receive(self, message: ModeMessage) -> None:
        """Use a target pose, twist, wrench or stiffness, or a sample of the sensor.

        Samples are used at any time, targets only while the law acts without a stop. A
        new stiffness is reached gradually.

        Args:
            message: Message of one of the mode's topics.

        Raises:
            TargetError: It is invalid, or a target that cannot be used now; the
                previous one stays in force.
            SettingError: The topic is unknown, or sampling makes the stiffness
                unstable.
        """
        topic, host = message.topic, self.host
        if topic not in [each.name for each in self.mode.topics]:
            super().receive(message)
        if topic == SENSOR:
            self.wrench.receive(message)
            return
        if host.idle:
            raise TargetError(f"{topic}: no target is followed: {host.idle}")
        if self.targets.R is None:
            raise TargetError(f"{topic}: no target is followed before the law acts")
        turn = np.eye(6) if self._aligned else np.kron(np.eye(2), self.targets.R)

        def check(K: np.ndarray) -> None:
            self._check_sampling(turn.T @ K @ turn, self._ratio, self._rest[1])

        K = self.targets.receive(message, check)
        if topic == STIFFNESS:
            self._goal = turn.T @ K @ turn


def moving_link(model: Model, link: str, more: str = "") -> None:
    """Raise a SettingError, which ends with `more`, unless joints move the link."""
    moving = [name for name in model.frame_names if model.frame(name).body]
    if link not in moving:
        raise SettingError(
            f"cartesian.frame is '{link}'; valid: {', '.join(moving)}{more}",
            "cartesian.frame",
        )


def _axes(values: Mapping[str, Any], name: str) -> np.ndarray:
    """Return a parameter of six axes, angular first; one number stands for all."""
    row = np.asarray(values[name], float)
    if row.shape not in ((1,), (6,)):
        raise SettingError(f"{name} has {row.size} numbers; valid: one, or 6", name)
    return np.broadcast_to(row, (6,)).copy()
