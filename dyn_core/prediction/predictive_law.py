"""The law of mode predictive: plans that are made anew while the robot moves."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from typing import Any, ClassVar, NamedTuple
from weakref import finalize

import numpy as np

from dyn_core.control.joint_values import whole_turns
from dyn_core.control.modes.control_law import ControlLaw, build_options, called
from dyn_core.control.modes.tool_targets import POSE, ToolTargets
from dyn_core.control.reference.trajectory import Reference
from dyn_core.errors import DynError, NonFiniteError, SettingError, TargetError
from dyn_core.model.passive_forces import without_dry_friction
from dyn_core.prediction import cost
from dyn_core.prediction.planning import plan
from dyn_core.prediction.problem import require_tree
from dyn_core.prediction.result import (
    CONVERGED,
    MAX_ITERATIONS,
    REASONS,
    STALLED,
    PlanPoint,
    PlanResult,
)
from dyn_core.problems import FORWARD_KINEMATICS, TRACKING_CONTROL
from dyn_core.solving.control_mode import ModeMessage, ModeTopic
from dyn_core.solving.registry import solver
from dyn_core.validation import Field, ListOf, Name, Quantity, Whole

POSTURE = "target_posture"
GOOD = [REASONS[k] for k in (CONVERGED, MAX_ITERATIONS, STALLED)]
SAME = 1e-9  # largest difference of a posture that comes again [rad | m]
FIRST = 2.0  # longest wait for the first plan [s]
_WEIGHTS = ListOf(Quantity(0.0, 1e9))
PREDICTIVE_FIELDS = (
    Field("predictive.horizon", Quantity(0.01, 100.0), "length of a plan", "s", 1.0),
    Field("predictive.knots", Whole(2, 1000), "steps of a plan", "", 50),
    Field("predictive.replan_rate", Quantity(0.1, 2000.0),
        "rate at which plans are made", "Hz", 20.0),
    Field("predictive.plan_timeout", Quantity(1.0, 1000.0),
        "age of the last plan at which the robot stops, in periods of replan_rate",
        "", 5.0),
    Field("predictive.iterations", Whole(1, 1000),
        "largest number of iterations of the solver for a plan", "", 10),
    Field("predictive.frame", Name(),
        "link that ~/target_pose leads; empty: the joints alone have a target", "", ""),
    Field("predictive.pose_weight", _WEIGHTS,
        "weight of the link's displacement from its target, angular before linear: one"
        " number, or six", "1/rad², 1/m²", [10.0, 10.0, 10.0, 100.0, 100.0, 100.0]),
    Field("predictive.posture_weight", _WEIGHTS,
        "weight of the displacement from the target posture: one number, or one a"
        " joint",
        "1/rad², 1/m²", [1.0]),
    Field("predictive.velocity_weight", _WEIGHTS,
        "weight of the joint velocities: one number, or one a joint",
        "s²/rad², s²/m²", [4.0]),
    Field("predictive.effort_weight", _WEIGHTS,
        "weight of the joint efforts: one number, or one a joint",
        "1/(N·m)², 1/N²", [1e-4]),
    Field("predictive.end_factor", Quantity(0.0, 1e6),
        "factor on the weights of pose, posture and velocity at the end of a plan",
        "s", 10.0),
)  # fmt: skip
PREDICTIVE_TOPICS = (
    ModeTopic(POSE, "geometry_msgs/PoseStamped",
        "pose to which plans lead predictive.frame"),
    ModeTopic(POSTURE, "std_msgs/Float64MultiArray",
        "joint positions to which plans lead, in the order of the joints"),
)  # fmt: skip


class PlanJob(NamedTuple):
    """What a plan is made of.

    `t` is the time of the state on the clock of the references [s], `guess` the
    followed plan or None, `steps` the number of its steps that are over, `targets`
    those of costs by name.
    """

    t: float
    q: np.ndarray
    qd: np.ndarray
    guess: PlanResult | None
    steps: int
    targets: dict[str, Any]


class Planner:
    """Makes plans in a thread of its own, one at a time; the caller never waits.

    The thread is a daemon; it ends when nobody refers to the Planner any more, after
    the job that runs. Without a thread (`threaded` False) a job ends before `submit`
    returns. `answer` is the time of the state, and the plan or error, of the last job
    that has ended; the reader sets it to None. `solve` returns the plan of a job.
    """

    def __init__(
        self, solve: Callable[[PlanJob], PlanResult], threaded: bool = True
    ) -> None:
        self.answer: tuple[float, PlanResult | DynError] | None = None
        self.busy = False
        self._solve, self._jobs = solve, SimpleQueue[Any]()
        self._threaded = threaded
        if threaded:
            threading.Thread(
                target=_serve, args=(self._jobs,), name="dyn_planner", daemon=True
            ).start()
            finalize(self, self._jobs.put, None)

    def submit(self, job: PlanJob) -> None:
        """Begin a job; its plan or error comes in `answer`.

        `busy` must be False, which is not checked.
        """
        self.busy = True
        if self._threaded:
            self._jobs.put((self._run, job))
        else:
            self._run(job)

    def _run(self, job: PlanJob) -> None:
        """Make the plan of a job, and store (job.t, plan) in `answer`.

        Then `busy` is False. An exception is not raised, but stored as a DynError in
        place of the plan, and so is a plan that ended well with numbers that are not
        finite.
        """
        try:
            plan = self._solve(job)
            if plan.reason in GOOD and not _finite(plan):
                raise NonFiniteError("its numbers are not finite")
            self.answer = job.t, plan
        except DynError as error:
            self.answer = job.t, error
        except Exception as error:  # of a plugin: the thread goes on
            self.answer = job.t, DynError(f"{type(error).__name__}: {error}")
        self.busy = False


def _serve(jobs: SimpleQueue[Any]) -> None:
    """Call run(job) for each pair (run, job) of the queue until None comes."""
    while (item := jobs.get()) is not None:
        run, job = item
        run(job)
        del item, run, job  # a planner that nobody uses ends the thread


class PredictiveLaw(ControlLaw):
    """A law that follows plans, which a thread makes one after the other.

        tau = tau_k + K_k dx

    The torque is the feedback around the last plan, see PlanResult.control. Each plan
    starts at a measured state, and its guess is the plan before. Until the first plan
    the joint gains hold the robot, for at most 2 s (FIRST). A plan that failed is
    dropped: the one before is followed until its end, or for predictive.plan_timeout
    periods of replan_rate after its start. Then the robot stops. Plans take damping and
    springs of the joints into account, but not dry friction, which is not smooth and
    takes many iterations. They keep the robot's limits of position and velocity; a
    robot beyond one is led back in the course of a plan.

    Class attributes:
        fields: Parameters of a mode with this law.
        topics: Its topics.
        threaded: Whether plans are made in a thread.

    Attributes:
        plan: The problem and its solver.
        followed: Time of the start and plan that is followed; None before the first,
            and in a stop because plans were late.
        refused: Why the last plan was dropped; empty if it was not.

    Raises:
        SettingError: A parameter is invalid, or the payload shall change.
        UnsupportedError: The robot has loops or driven joints.
    """

    fields: ClassVar[tuple[Field, ...]] = PREDICTIVE_FIELDS
    topics: ClassVar[tuple[ModeTopic, ...]] = PREDICTIVE_TOPICS
    threaded: ClassVar[bool] = True

    def __init__(self, host: Any) -> None:
        super().__init__(host)
        model = host.robot
        if host.carried.paths:
            raise SettingError(
                "payload_link: mode predictive plans for one payload; valid: none, with"
                " the payload in the robot's file",
                "payload_link",
            )
        require_tree(model)
        self._links = tuple(model.frame_names)
        poses = solver(FORWARD_KINEMATICS.name).build(
            model, frames=list(self._links), engine=host.engine
        )
        self._poses = poses
        self.targets = ToolTargets(self._links, lambda: poses(host.samples.q))
        self.targets.jump, self.targets.oldest = math.inf, host.rules.max_state_age
        self._goals: dict[str, Any] = {}
        self.followed: tuple[float, PlanResult] | None = None
        self.refused = ""
        self._due = self._since = -math.inf
        self._point: PlanPoint | None = None
        self._q: np.ndarray | None = None
        self._rest, self._turning = np.zeros(model.nv), bool(host.wrapped.any())
        self._planner: Planner | None = None

    def build(self, chosen: Any, engine: Any, wrap: Sequence[str]) -> Any:
        """Return the Program of the joint gains that hold the robot; set up the plans.

        One plan is made now, from the start position at rest, to compile all of it.

        Args:
            chosen: Name of a solver of optimal_control; "auto" for box_fddp.
            engine: Engine of the Program.
            wrap: Names of joints whose position error is wrapped to [-pi, pi).

        Raises:
            SettingError: It is called a second time, as for a shadow, or a parameter is
                invalid.
            ModelError: The robot has no link predictive.frame.
            SolverNotFound, SignatureError: `chosen` is no solver of optimal_control.
            UnsupportedError: `chosen` has no option max_iterations, or does not suit
                the robot.
        """
        host, read = self.host, self.host.parameters
        if self._planner is not None:
            raise SettingError("mode predictive has no shadow; valid: none", "shadow")
        model, frame = host.robot, read["predictive.frame"]
        factor = read["predictive.end_factor"]
        costs = [cost.effort(_weight(read, "effort", model.nv))]
        for when, share in (("running", 1.0), ("end", factor)):
            name = "" if when == "running" else " at the end"
            velocity = share * _weight(read, "velocity", model.nv)
            posture = share * _weight(read, "posture", model.nv)
            costs.append(cost.velocity(velocity, when=when, name=f"velocity{name}"))
            costs.append(cost.posture(None, posture, when, f"posture{name}"))
            if frame:
                weight = share * _weight(read, "pose", 6)
                costs.append(
                    cost.pose(frame, np.eye(4), weight, when, name=f"pose{name}")
                )
        limits = dict(zip(model.joint_names, host.limit.tolist(), strict=True))
        self.plan = plan(
            without_dry_friction(model), costs, read["predictive.horizon"],
            read["predictive.knots"],
            "box_fddp" if chosen == "auto" else chosen,
            effort_limits={k: None if math.isinf(x) else x for k, x in limits.items()},
            step_options={"joint_friction": True, "joint_springs": True},
            max_iterations=read["predictive.iterations"],
        )  # fmt: skip
        self.plan.slack = math.inf
        self._frame = frame
        start = model.start()
        self.plan.solve(start, np.zeros(model.nv))  # compiled now, not while it moves
        self._planner = Planner(self._solve, self.threaded)
        law = solver(TRACKING_CONTROL.name)
        options = build_options(host, law.signature, engine)
        if "wrap" in getattr(law, "options", ()):
            options["wrap"] = tuple(wrap)
        program = law.build(model, **options)
        program.prepare()
        return program

    def _solve(self, job: PlanJob) -> PlanResult:
        """Return the plan of a job; an invalid state or target raises a DynError.

        The guess is moved on here: in the cycle it took the time of six.
        """
        guess = job.guess and job.guess.moved_on(job.steps)
        result: PlanResult = self.plan.solve(job.q, job.qd, guess, job.targets)
        return result

    @property
    def frame(self) -> str | None:
        """Link of the pose costs (predictive.frame), or None if there are none.

        The envelope bounds its speed, if no other link is named.
        """
        return self._frame or None

    @property
    def status(self) -> str:
        """What /diagnostics says: "holding until the first plan" or "planning".

        The former also in a stop because plans were late.
        """
        return "holding until the first plan" if self.followed is None else "planning"

    @property
    def warnings(self) -> dict[str, str]:
        """Why the last plan was dropped, by the key "plan"; {} if it was not."""
        return {"plan": f"plan dropped: {self.refused}"} if self.refused else {}

    # ---- a cycle

    def begin(self) -> None:
        """Hold the present pose and posture, and plan from here on.

        Requires a state.
        """
        self.clear()
        self.brake()

    def brake(self) -> None:
        """Make the present pose and posture the target of the next plan.

        The next `advance` begins it, or a later one if a plan is being made, which is
        still followed. Requires a state.
        """
        q = self.host.samples.q
        if self._frame:
            k = self._links.index(self._frame)
            self.targets.hold(np.asarray(self._poses(q))[k])
        self._goals[POSTURE] = self._position().copy()
        self._due = -math.inf

    def clear(self) -> None:
        """Discard plans, targets and `refused`; a plan being made, once it is ready.

        The next `advance` begins the time FIRST for a first plan anew.
        """
        self.targets.clear()
        self._goals.clear()
        self.followed, self.refused, self._q = None, "", None
        self._due = self._since = -math.inf

    def advance(self, t: float) -> None:
        """Take over a finished plan, begin the next one, and stop if plans are late.

        The next one begins at the rate replan_rate, but not while one is being made. In
        a stop the joint gains hold the robot where plans became late. The reference
        becomes the state of the followed plan at time t.

        Requires `build` (else AssertionError) and `begin` after the last `clear` (else
        KeyError). An error of a plan is not raised: it is stored in `refused`.

        Args:
            t: Time, host.now [s].
        """
        host, planner = self.host, self._planner
        assert planner is not None
        if self._since == -math.inf:
            self._since = self._due = t
        self._receive_plan()
        if t >= self._due and not planner.busy:
            self._due = t + 1.0 / self._rate
            planner.submit(self._job(t))
            self._receive_plan()
        late = self._lateness(t)
        if late and host.safety.running is None:
            host.safety.violated(host.seen, late)
        elif late and self.followed is not None:  # in a stop that holds
            self.followed = None
            host.follower.rest(host.samples.q)
        if self.followed is not None:
            start, followed = self.followed
            self._point = point = followed.point(t - start)
            host.follower.reference = Reference(point.q, point.qd, self._rest)

    @property
    def _rate(self) -> float:
        """Rate of plans [Hz]."""
        return float(self.host.parameters["predictive.replan_rate"])

    def _lateness(self, t: float) -> str:
        """Return why there is no plan to follow at time t, as a sentence, or "".

        "" while the followed plan is older neither than plan_timeout / replan_rate nor
        than its duration; without one, for FIRST (2 s) since the activation.
        """
        reason = f": {self.refused}" if self.refused else ""
        if self.followed is None:
            waited = t - self._since
            if waited <= FIRST:
                return ""
            return f"no plan within {FIRST:g} s{reason}"
        age = t - self.followed[0]
        longest = self.host.parameters["predictive.plan_timeout"] / self._rate
        longest = min(longest, self.plan.problem.duration)
        if age <= longest:
            return ""
        return (
            f"the last plan is {age:.3g} s old{reason}; valid: at most {longest:.3g} s"
        )

    def _receive_plan(self) -> None:
        """Follow the plan that is ready, if its search did not fail.

        Else `refused` says why not, and the plan before is followed. A plan from before
        the activation is discarded. Nothing happens if no plan is ready.
        """
        planner = self._planner
        if planner is None or planner.answer is None:
            return
        (t, answer), planner.answer = planner.answer, None
        if t < self._since:
            return
        if isinstance(answer, DynError):
            self.refused = str(answer)
        elif answer.reason not in GOOD:
            self.refused = f"{answer.reason} {answer.detail}".strip()
        else:
            self.followed, self.refused = (t, answer), ""

    def _job(self, t: float) -> PlanJob:
        """Return the job of a plan from a copy of the present state, at time t [s].

        Targets have the keys "posture" and "posture at the end" and, with
        predictive.frame, "pose" and "pose at the end".
        """
        guess, steps = None, 0
        if self.followed is not None:
            start, guess = self.followed
            steps = min(round((t - start) / guess.dt), len(guess.tau))
        posture = self._goals[POSTURE]
        targets = {"posture": posture, "posture at the end": posture}
        if self._frame:
            targets |= dict.fromkeys(("pose", "pose at the end"), self.targets.pose)
        q, qd = np.array(self._position()), np.array(self.host.samples.qd)
        return PlanJob(t, q, qd, guess, steps, targets)

    def _position(self) -> np.ndarray:
        """Return the last position, (nv,), with the turns of wrapped joints counted.

        They are counted from the last `clear` on, by differences of less than half a
        turn: encoders may report angles between -pi and pi, and plans know no turns.
        """
        q = self.host.samples.q
        if self._turning and self._q is not None:
            q = q + whole_turns(q, self._q, self.host.wrapped)
        self._q = q
        return np.asarray(q)

    def torque(self, program: Any) -> np.ndarray:
        """Return the torque for the present state, (nv,) [N·m | N]; not limited.

        It is the feedback of the followed plan, after its end around its last knot.
        Without a plan, before the first or in a stop because plans are late, it is that
        of the joint gains. The controller's error is set. Requires a state; errors of
        `program` pass through.

        Args:
            program: Program of the joint gains, from `build`; called without a plan
                only.
        """
        host, samples = self.host, self.host.samples
        reference = host.follower.reference
        host.compare(samples.q, reference.q)
        if self.followed is None or self._point is None:
            return called(program, samples.q, samples.qd, *reference, host.kp, host.kd)
        return self.followed[1].feedback(self._point, self._position(), samples.qd)

    # ---- targets

    def receive(self, message: ModeMessage) -> None:
        """Use a target; the next plan leads there.

        `message` has a pose of predictive.frame, or joint positions in the order of the
        joints [rad | m], as its topic says. Wrapped joints go the short way from where
        they are now; a target that comes again stays as it is.

        Raises:
            TargetError: It is invalid: not finite, of wrong size, beyond a position
                limit, or a pose without predictive.frame, in an unknown frame or with a
                wrong stamp; or no target is followed now, as the controller is disabled
                or stopped. The previous target stays in force.
            SettingError: The topic is unknown.
        """
        topic, host = message.topic, self.host
        if topic not in [each.name for each in self.mode.topics]:
            super().receive(message)
        if host.idle or not self._goals:
            why = host.idle or "no plan leads yet; valid: after the first state"
            raise TargetError(f"{topic}: no target is followed: {why}")
        if topic == POSE:
            if not self._frame:
                raise TargetError(f"{topic}: valid: with predictive.frame set")
            self.targets.receive(message)
            return
        q = np.asarray(message.values, float)
        low, high = host.limits.lower, host.limits.upper
        if q.shape != low.shape or not np.isfinite(q).all():
            valid = f"{len(low)} finite numbers, one a joint"
            raise TargetError(f"{topic} is {message.values}; valid: {valid}")
        for k in np.flatnonzero((q < low) | (q > high))[:1]:
            raise TargetError(
                f"{topic}: {q[k]:g} for joint '{host.model.joint_names[k]}'; valid:"
                f" {low[k]:g} to {high[k]:g}"
            )
        goal, wrapped = self._goals[POSTURE], host.wrapped
        again = q + whole_turns(q, goal, wrapped)
        if not np.allclose(again, goal, rtol=0.0, atol=SAME):
            self._goals[POSTURE] = q + whole_turns(q, self._position(), wrapped)


def _weight(read: Mapping[str, Any], what: str, size: int) -> np.ndarray:
    """Return predictive.WHAT_weight, (size,), a new array; one number is for all."""
    name = f"predictive.{what}_weight"
    values = np.asarray(read[name], float)
    if values.shape not in ((1,), (size,)):
        raise SettingError(f"{name}: {len(values)} numbers; valid: 1 or {size}", name)
    return np.broadcast_to(values, size).copy()


def _finite(plan: PlanResult) -> bool:
    """Return whether states, joint forces and gains of a plan are finite."""
    return all(np.isfinite(x).all() for x in (plan.q, plan.qd, plan.tau, plan.gains))
