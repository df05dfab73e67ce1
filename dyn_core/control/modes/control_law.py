"""Control laws in a controller: Programs, their inputs, and the torque of a cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dyn_core.errors import SettingError, unknown_name
from dyn_core.problems import Signature
from dyn_core.solving.control_mode import ControlMode, ModeMessage
from dyn_core.solving.registry import default_registry, solver, solver_of
from dyn_core.solving.solver import AUTO


def control_mode(name: Any) -> ControlMode:
    """Return the mode of a name, from the installed plugins; refuse an unknown one."""
    modes = default_registry().modes()
    if not isinstance(name, str) or name not in modes:
        raise SettingError(f"mode '{name}'; valid: {', '.join(modes)}", "mode")
    return modes[name]


def build_options(
    host: Any,
    problem: Signature,
    engine: Any,
    paths: Sequence[str] = (),
    inputs: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the keyword arguments with which the solver of a law is built.

    They are `engine`; `finite`, True: the Program raises NonFiniteError for results
    that are not finite; each of problem.acting, True: joint springs and friction act
    where the problem has them; and `inputs`, a list of the optional inputs: `inputs`,
    then "time" if the model has driven joints, then `paths`.
    """
    time = ["time"] if host.model.driven else []
    return {
        "engine": engine,
        "finite": True,
        **dict.fromkeys(problem.acting, True),
        "inputs": [*inputs, *time, *paths],
    }


class ControlLaw:
    """A control law in a Controller.

    The controller calls `build` once for the law and once for a shadow, then in each
    cycle `advance` and `torque`. `begin`, `brake`, `clear`, `check`, `change` and
    `receive` do nothing here, or refuse.

    Attributes:
        host: The Controller.
        mode: Its mode.

    Args:
        host: The Controller; its samples and follower do not exist yet.
    """

    def __init__(self, host: Any) -> None:
        self.host, self.mode = host, host.control_mode

    def build(self, chosen: Any, engine: Any, wrap: Sequence[str]) -> Any:
        """Return the prepared Program of the law.

        Args:
            chosen: Solver of the mode's slot, by name or as object; auto: the default.
            engine: Engine of the Program.
            wrap: Joints whose position error is wrapped to [-pi, pi).

        Raises:
            NotImplementedError: The subclass does not define this method.
        """
        raise NotImplementedError

    def torque(self, program: Any) -> np.ndarray:
        """Return the torque for the present state, (nv,) [N·m | N].

        Reference and integral do not change, so that a shadow may be called after it.

        Args:
            program: Program from `build`.

        Raises:
            NotImplementedError: The subclass does not define this method.
        """
        raise NotImplementedError

    @property
    def frame(self) -> str | None:
        """Link whose speed the envelope bounds if no other one is named; here None."""
        return None

    @property
    def status(self) -> str:
        """What /diagnostics says while a law acts that follows no trajectory.

        Here it is the status of the mode.
        """
        return self.mode.status

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the log on what the law cannot do for a robot; here none."""
        return ()

    @property
    def warnings(self) -> dict[str, str]:
        """Sentences for a WARN in /diagnostics of an acting law, by key; here none."""
        return {}

    def check_sampling(self, period: float, share: float) -> None:
        """Raise a SettingError if the states' period makes it unstable; here never.

        Joint gains are checked by the controller.

        Args:
            period: Period of the states [s].
            share: Factor on the bounds, above 1 while the period is roughly known.
        """

    def begin(self) -> None:
        """Start at the present state, as the law begins to act; here do nothing."""

    def advance(self, t: float) -> None:
        """Advance references to time t, host.now [s]; here do nothing."""

    def brake(self) -> None:
        """Bring references to rest, because of a stop; here do nothing."""

    def clear(self) -> None:
        """Discard references, because the controller is reset; here do nothing."""

    def check(self, values: Mapping[str, Any]) -> None:
        """Raise a SettingError if parameters of the mode are not valid; here never.

        Args:
            values: Values of all parameters of the mode, by name.
        """

    def change(self) -> None:
        """Use changed host.parameters, which `check` has accepted; here do nothing."""

    def receive(self, message: ModeMessage) -> None:
        """Use a message of a topic of the mode; here every message is refused.

        Raises:
            DynError: The message is invalid, and the previous one stays in force; here
                a SettingError that names the topics of the mode.
        """
        known = [each.name for each in self.mode.topics]
        why = unknown_name(f"topic of mode {self.mode.name}", message.topic, known)
        raise SettingError(why, "topic")


class JointLaw(ControlLaw):
    """A law of the joints, whose inputs are found by the names of its Ports.

    | Port | value |
    |---|---|
    | q, qd | state |
    | q_ref, qd_ref, qdd_ref | reference |
    | kp, kd; stiffness, damping | joint gains; 0 where the mode follows no trajectory |
    | a parameter of the mode | its value, shaped like the Port |

    If the mode follows trajectories, the integral is added to qdd_ref where gains act
    before the inertia, else to the torque, and the feed-forward effort to the torque.

    Args:
        host: The Controller.

    Raises:
        SettingError: An input of the law's solver has none of these names.
    """

    def __init__(self, host: Any) -> None:
        super().__init__(host)
        signature = solver(self.mode.solver, self.mode.problem).signature
        self.ports = [port for port in signature.inputs if not port.optional]
        known = ["q", "qd", "q_ref", "qd_ref", "qdd_ref"]
        known += ["kp", "kd", "stiffness", "damping", *host.parameters]
        for port in self.ports:
            if port.name not in known:
                raise SettingError(
                    f"mode {self.mode.name}: "
                    + unknown_name("input of the law", port.name, known),
                    "mode",
                )

    def build(self, chosen: Any, engine: Any, wrap: Sequence[str]) -> Any:
        """Return the prepared Program of the law.

        If the slot of the mode is its problem, `chosen` replaces the law's solver.
        Position errors are wrapped only if the law has the option `wrap`.

        Args:
            chosen: Solver of the mode's slot, by name or as object; auto: the default.
            engine: Engine of the Program.
            wrap: Joints whose position error is wrapped to [-pi, pi).

        Raises:
            SettingError: A solver is chosen for the slot of the mode, but the law of
                the mode has no such slot.
            SolverNotFound: No solver has the name `chosen`.
            SignatureError: It solves another problem. Errors of the build pass through.
        """
        host, mode = self.host, self.mode
        law: Any = solver(mode.solver, mode.problem)
        whole = mode.slot == mode.problem.name  # the law itself is chosen
        if whole and chosen != AUTO:
            law = solver_of(chosen, mode.problem)
        options = build_options(host, law.signature, engine, host.carried.paths)
        if mode.slot in getattr(law, "slots", ()):
            options[mode.slot] = chosen
        elif not whole and chosen != AUTO:
            raise SettingError(
                f"mode {mode.name}: the law '{law.name}' has no slot {mode.slot};"
                f" valid: {AUTO}",
                mode.slot,
            )
        if "wrap" in getattr(law, "options", ()):
            options["wrap"] = tuple(wrap)
        program = law.build(host.robot, **options)
        program.prepare()
        return program

    def torque(self, program: Any) -> np.ndarray:
        """Return the torque for the present state and reference, (nv,) [N·m | N].

        If the mode follows trajectories, host.integral.part is included, and with
        host.feed_forward the effort of the trajectory; host.compare is called with both
        positions, for host.error. Otherwise gains are zero, and nothing is added.
        Errors of the Program pass through, such as NonFiniteError.

        Args:
            program: Program from `build`.
        """
        host, q, qd = self.host, self.host.samples.q, self.host.samples.qd
        q_ref, qd_ref, qdd_ref = host.follower.reference
        if not self.mode.follows:
            idle = np.zeros(host.model.nv)
            inputs = self._inputs(q, qd, q_ref, qd_ref, qdd_ref, idle, idle)
            return called(program, *inputs)
        host.compare(q, q_ref)
        if not self.mode.stiff:
            qdd_ref = qdd_ref + host.integral.part
        inputs = self._inputs(q, qd, q_ref, qd_ref, qdd_ref, host.kp, host.kd)
        tau = called(program, *inputs)
        if self.mode.stiff:
            tau = tau + host.integral.part
        return tau + host.follower.effort if host.feed_forward else tau

    def _inputs(
        self, q: Any, qd: Any, q_ref: Any, qd_ref: Any, qdd_ref: Any, kp: Any, kd: Any
    ) -> tuple[Any, ...]:
        """Return inputs of the Program: by its Ports, then host.further_inputs()."""
        host = self.host
        named = {
            **host.parameters,
            "q": q,
            "qd": qd,
            "q_ref": q_ref,
            "qd_ref": qd_ref,
            "qdd_ref": qdd_ref,
            "kp": kp,
            "kd": kd,
            "stiffness": kp,
            "damping": kd,
        }
        return (*(named[port.name] for port in self.ports), *host.further_inputs())


def called(law: Any, *inputs: Any) -> np.ndarray:
    """Return the result of a law for copies of arrays: a plugin could change them."""
    return law(*[x.copy() if isinstance(x, np.ndarray) else x for x in inputs])
