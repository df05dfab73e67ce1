"""Comparison of a model's joint forces with measured ones.

    residual = measured - tau(q, qd, qdd)

with accelerations from filtered velocities. The shape of the residual indicates missing
effects, such as friction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dyn_core.errors import IdentificationError, SettingError, UnsupportedError
from dyn_core.identification.estimation import identify
from dyn_core.identification.fitting.measurements import absent_forces, doubtful_forces
from dyn_core.identification.result import Identification
from dyn_core.identification.selection import law_numbers
from dyn_core.model import Model
from dyn_core.model.checks.robots import check_robot, in_degrees
from dyn_core.model.parameter_vector import check_switch
from dyn_core.recordings import MotionRecord, Recording
from dyn_core.recordings.doubts import STILL, doubtful_times, unlike_slopes
from dyn_core.recordings.motion import motion_of
from dyn_core.recordings.signals import check_delay, without_turns
from dyn_core.recordings.smoothing import GAP, TRIM, SmoothMotion, smooth_motion
from dyn_core.solving.registry import solver

NOTHING = 1e-9  # fraction of the largest measured force that counts as no load
NOTABLE = 0.01  # fraction of the measured force below which a residual needs no cause
NAMED = 0.5  # fraction of a residual that a cause must explain to be named
UNMOVED = 1e-9  # speed below which nothing moves at all [rad/s | m/s]
DELAY_FITS = 5  # maximum number of fits of a delay
SETTLED = 0.05  # change of the delay that ends the fits, in standard deviations
ROW = 5e-3  # duration of a row of an identification: joints reverse in 10 ms [s]
# Maximum number of blocks, each a quarter of the filter's period, in an identification.
MOST_BLOCKS = 2000


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Joint forces of a model compared with measured ones, by joint.

    Attributes:
        model: Robot.
        motion: Filtered motion with the measured joint forces.
        tau: Joint forces of the model for this motion, springs included, through the
            same filter, (samples, nv) [N·m | N].
        joint_friction: Whether the model's friction is in tau.
        against: Measured quantity: effort, or command where no effort was measured.
        explained: For each possible cause ("an offset", "friction", "inertia", "gravity
            or a spring"), the fraction of the residual's mean square that it explains,
            (nv,).
        notes: Sentences on doubtful properties of the measurement.
    """

    model: Model
    motion: SmoothMotion
    tau: np.ndarray
    joint_friction: bool
    against: str = "effort"
    explained: dict[str, np.ndarray] = field(init=False)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        causes = _explained(self.residual, self.motion, _widths(self.model))
        object.__setattr__(self, "explained", causes)

    @property
    def names(self) -> tuple[str, ...]:
        """Joint of each column."""
        return self.model.joint_names

    @property
    def residual(self) -> np.ndarray:
        """Measured minus computed joint forces, (samples, nv) [N·m | N]."""
        return np.asarray(self.motion.tau - self.tau)

    @property
    def rms(self) -> np.ndarray:
        """Root mean square of the residual, (nv,) [N·m | N]."""
        return _rms(self.residual)

    @property
    def largest(self) -> np.ndarray:
        """Largest absolute residual, (nv,) [N·m | N]."""
        return np.asarray(np.abs(self.residual).max(axis=0))

    @property
    def bias(self) -> np.ndarray:
        """Mean of the residual, (nv,) [N·m | N]."""
        return np.asarray(self.residual.mean(axis=0))

    @property
    def share(self) -> np.ndarray:
        """Rms of the residual divided by the rms of the measured force, (nv,).

        It is NaN or infinite for a joint whose measured force is always zero.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.rms / _rms(self.motion.tau))

    @property
    def causes(self) -> tuple[str, ...]:
        """For each joint, the cause that explains most of its residual.

        It is a key of `explained`; empty if `share` is below 0.01, or no cause explains
        half of the residual's mean square.
        """
        names, parts = list(self.explained), np.array([*self.explained.values()])
        notable = ~(self.share < NOTABLE)
        return tuple(
            names[k] if notable[j] and parts[k, j] >= NAMED else ""
            for j, k in enumerate(parts.argmax(axis=0))
        )

    def lines(self) -> list[str]:
        """Return the report: a line on the motion, a table, and a line for each note.

        The table has a head and a line for each joint. "-" stands for a cause that is
        not named, or of a residual that is only rounding, and for the share in a
        measured force that is only rounding.
        """
        motion, width = self.motion, max(map(len, ("joint", *self.names)))
        friction = "with" if self.joint_friction else "without"
        lines = [
            f"{len(motion.t)} samples, {motion.rate:.4g} Hz, filtered at"
            f" {motion.cutoff:.4g} Hz; measured {self.against} against"
            f" '{self.model.name}' {friction} joint friction",
            f"{'joint':{width}}  {'unit':4} {'measured':>9} {'rms':>9} {'max':>9}"
            f" {'bias':>9} {'share':>7}  residual is mostly",
        ]
        measured, worst = _rms(motion.tau), np.abs(self.residual).argmax(axis=0)
        for j, name in enumerate(self.names):
            cause = self.causes[j] if self.rms[j] > NOTHING * measured.max() else ""
            why = f"{cause} ({100 * self.explained[cause][j]:.0f} %)" if cause else "-"
            loaded = measured[j] > NOTHING * measured.max()
            share = f"{100 * self.share[j]:.1f} %" if loaded else "-"
            lines.append(
                f"{name:{width}}  {self._unit(name):4} {measured[j]:9.4g}"
                f" {self.rms[j]:9.4g} {self.largest[j]:9.4g} {self.bias[j]:+9.4g}"
                f" {share:>7}  {why}; max at {motion.t[worst[j]]:.3f} s"
            )
        return lines + [f"note: {sentence}" for sentence in self.notes]

    def _unit(self, name: str) -> str:
        """Return the unit of the force of a moving joint, N or N·m, by its name."""
        return "N" if self.model.joint_kind(name) == "prismatic" else "N·m"

    def identify(self, delay: bool = False, **options: Any) -> Identification:
        """Identify the robot's parameters from this motion, see dyn.identify.

        Each row averages samples, of measured as of computed joint forces, over 5 ms;
        there are at least four rows in a period of the filter. Of a long motion evenly
        spaced parts are used. Joint forces are not filtered, because filtering would
        smear dry friction where a joint reverses. Without joint_friction the model's
        friction counts for nothing, unless a law is sought. Defaults are partial=True,
        consistent=True, friction=self.joint_friction, and friction_speed=True for each
        law with dry friction.

        Args:
            delay: Whether the joint forces may be delayed; the delay is then
                identified, too.
            options: Options of dyn.identify.

        Raises:
            DynError: An option is invalid, or the motion does not determine the
                parameters, see dyn.identify.
        """
        check_switch("delay", delay)
        options = {"partial": True, "consistent": True, **options}
        law = options.setdefault("friction", self.joint_friction)
        options.setdefault("friction_speed", "friction" in law_numbers(law))
        acts = self.joint_friction or bool(law)
        if not delay:
            return _identified(self.model, self.motion, None, options, acts)
        return _identified_late(self.model, self.motion, options, acts)

    def without_delay(self, seconds: float) -> Evaluation:
        """Return the evaluation without a delay of the joint forces.

        The joint forces at t are compared with the motion at t - seconds; the model's
        forces are computed again. Samples without such a motion in the same part of the
        recording (between gaps) are left out.

        Args:
            seconds: Delay of the joint forces, as in `Identification.delay`, of any
                sign [s].

        Raises:
            SettingError: The delay is not a finite number.
            IdentificationError: No part of the recording is longer than the delay.
        """
        check_delay(seconds)
        motion = self.motion.earlier(seconds)
        tau = _torque(self.model, motion, self.joint_friction)
        return replace(self, motion=motion, tau=tau)

    def of(self, model: Model) -> Evaluation:
        """Return the evaluation of another model, such as an identified one.

        Motion, measured forces and notes are those of this object.

        Raises:
            SettingError: Its joints differ in name or order.
        """
        if model.joint_names != self.names:
            raise SettingError(
                f"'{model.name}' has the joints {', '.join(model.joint_names)}; valid:"
                f" those of the evaluation in their order, {', '.join(self.names)}",
                "model",
            )
        return replace(
            self, model=model, tau=_torque(model, self.motion, self.joint_friction)
        )


def evaluate(
    model: Model,
    record: MotionRecord | Recording,
    cutoff: float | None = None,
    joint_friction: bool = True,
    report: Callable[[str], object] | None = None,
) -> Evaluation:
    """Compare the joint forces of a model with a recording.

    Args:
        model: Robot whose joints have one coordinate each.
        record: Measured motion with joint forces, or a Recording; if no effort was
            measured, the commands are used.
        cutoff: Cut-off frequency of the low-pass filter [Hz]; None: 10 Hz, or 0.2 times
            the sampling rate if that is less.
        joint_friction: Whether the model's damping and dry friction act.
        report: Function called with a line for each stage; None: no reports.

    Raises:
        UnsupportedError: The robot has loops, no joint, or joints with several
            coordinates; `model` is no robot, or `record` no motion.
        SettingError: A joint was not measured, the cut-off frequency is out of range,
            or an option is invalid.
        IdentificationError: No joint forces were measured, or there are too few
            samples.
        ShapeError: The columns are numbered, and not as many as the robot's.
    """
    check_switch("joint_friction", joint_friction)
    say = report or (lambda line: None)
    check_robot(model, "evaluate")
    _check_model(model)
    mine = motion_of(record, "evaluate").of(model)
    tau, against = _measured_forces(mine)
    say(f"filtering {len(mine.t)} samples")
    motion = smooth_motion(mine.t, _unwrapped(model, mine.q), mine.qd, tau, cutoff)
    say(f"inverse dynamics of {len(motion.t)} samples")
    computed = _torque(model, motion, joint_friction)
    doubts = doubtful_forces(motion.tau, computed), absent_forces(tau, mine.t)
    notes = (*mine.notes, *filter(None, doubts), *_notes(model, mine, motion))
    return Evaluation(model, motion, computed, joint_friction, against, notes)


def _identified(
    model: Model,
    motion: SmoothMotion,
    rate: np.ndarray | None,
    options: dict[str, Any],
    acts: bool,
) -> Identification:
    """Return the identification from a motion, each row a mean over samples.

    Of a long motion at most 4000 blocks of samples are used. `rate` is the time
    derivative of the joint forces, to identify a delay, too. `acts`: the measured
    forces contain friction.
    """
    n = len(motion.t)
    step = max(int(motion.rate / (4 * motion.cutoff)), 1)
    short = max(min(int(motion.rate * ROW), step), 1)
    step = step // short * short
    rows = _chosen(n, step, max(n // (step * MOST_BLOCKS), 1))
    forces = motion.unfiltered
    if not acts:  # identify subtracts friction that is not sought
        both = (_unfiltered_torque(model, motion, x) for x in (True, False))
        forces = forces + np.subtract(*both)
    signals = (motion.q, motion.qd, motion.qdd, forces)
    choices = {"average": short, **options}
    if rate is not None:
        choices["tau_rate"] = rate[rows]
    return identify(model, *(x[rows] for x in signals), **choices)


def _identified_late(
    model: Model, motion: SmoothMotion, options: dict[str, Any], acts: bool
) -> Identification:
    """Return the identification from a motion and joint forces with a delay.

    A fit finds the change of the delay to first order, using the rate of the joint
    forces that the robot of the previous fit predicts: the rate of measured forces is
    noisy, and filtering them smears dry friction. `acts`: the measured forces contain
    friction.
    """
    once, late = {**options, "folds": 0}, 0.0
    moved, rate = motion, motion.tau_rate
    result = _identified(model, moved, rate, once, acts)
    prior = result.prior
    for _ in range(DELAY_FITS - 1):
        if abs(result.delay) <= SETTLED * result.standard_deviations[-1]:
            break
        late += result.delay
        moved = motion.earlier(late)
        rate = moved.tau_rate
        if result.model is not None:
            rate = moved.rate_of(_unfiltered_torque(result.model, moved, acts))
        result = _identified(model, moved, rate, _since(late, once), acts)
    if options.get("folds"):
        result = _identified(model, moved, rate, _since(late, options), acts)
    parameters = result.parameters.copy()
    parameters[-1] += late
    return replace(result, parameters=parameters, prior=prior)


def _since(late: float, options: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of options; prior and bounds of the delay are less by late [s]."""
    moved = dict(options)
    prior, bounds = options.get("prior"), options.get("bounds")
    if prior is None or isinstance(prior, Mapping):
        entry = (prior or {}).get("delay", 0.0)
        value, deviation = entry if isinstance(entry, tuple) else (entry, np.inf)
        pair = np.asarray(value) - late, deviation
        moved["prior"] = {**(prior or {}), "delay": pair}
    else:
        moved["prior"] = np.array(prior, float)
        moved["prior"][-1] -= late
    if isinstance(bounds, Mapping) and "delay" in bounds:
        ends = tuple(float(x) - late for x in bounds["delay"])
        moved["bounds"] = {**bounds, "delay": ends}
    return moved


def _chosen(count: int, step: int, thin: int) -> np.ndarray:
    """Return indices of every `thin`-th block of `step` samples, from the first."""
    blocks = np.arange(count // step * step).reshape(-1, step)
    return np.asarray(blocks[::thin].ravel())


def _check_model(model: Model) -> None:
    """Refuse loops, and robots without joints or with joints of several coordinates."""
    if model.loops:
        raise UnsupportedError(
            f"'{model.name}' has loops: its measured joint forces do not follow from"
            " inverse dynamics of the tree alone; valid: model.without_loops()"
        )
    wide = [n for n in model.joint_names if len(_columns(model, n)) != 1]
    if wide or not model.nv:
        what = f"joint '{wide[0]}' has several coordinates" if wide else "nothing moves"
        raise UnsupportedError(
            f"'{model.name}': {what}; valid: a robot whose joints have one each"
        )


def _columns(model: Model, name: str) -> range:
    """Return the indices in qd of a moving joint, a range; ModelError for another."""
    columns = model.v_slice(name)
    return range(columns.start, columns.stop)


def _measured_forces(record: MotionRecord) -> tuple[np.ndarray, str]:
    """Return the measured joint forces, (rows, nv), and "effort" or else "command"."""
    for against, array in (("effort", record.tau), ("command", record.command)):
        if array is not None and np.isfinite(array).any(axis=0).all():
            return array, against
    missing = [] if record.tau is None else [
        name
        for name, column in zip(record.names("tau"), record.tau.T, strict=True)
        if not np.isfinite(column).any()
    ]  # fmt: skip
    which = f" of {', '.join(missing)}" if missing else ""
    raise IdentificationError(
        f"no joint forces{which} were measured; valid: efforts in the joint states, or"
        " commands beside them"
    )


def _unwrapped(model: Model, q: np.ndarray) -> np.ndarray:
    """Return positions (rows, nv) with steps of at most half a turn, in a copy."""
    columns = zip(model.joint_names, q.T, strict=True)
    return np.column_stack([without_turns(model, name, x) for name, x in columns])


def _torque(model: Model, motion: SmoothMotion, joint_friction: bool) -> np.ndarray:
    """Return the model's joint forces with springs, filtered as measured ones are."""
    return motion.filtered(_unfiltered_torque(model, motion, joint_friction))


def _unfiltered_torque(
    model: Model, motion: SmoothMotion, joint_friction: bool
) -> np.ndarray:
    """Return the model's joint forces with springs, (samples, nv) [N·m | N]."""
    program = solver("rnea").build(
        model, joint_friction=bool(joint_friction), joint_springs=True
    )
    return np.asarray(program(motion.q, motion.qd, motion.qdd))


def _rms(x: np.ndarray) -> np.ndarray:
    """Return the root mean square of each column, (n,), for x: (samples, n)."""
    return np.asarray(np.sqrt((x * x).mean(axis=0)))


def _widths(model: Model) -> np.ndarray:
    """Return friction_speed of each joint, of one coordinate, (nv,) [rad/s | m/s]."""
    return np.array(
        [float(model.parameter(f"{n}.friction_speed")[0]) for n in model.joint_names]  # type: ignore[arg-type]
    )


def _explained(
    residual: np.ndarray, motion: SmoothMotion, widths: np.ndarray
) -> dict[str, np.ndarray]:
    """Return for each cause the fraction of the residual's mean square it explains.

    "an offset" is the mean; the others are fitted to the rest, each alone. Fractions
    are (nv,), for residuals (samples, nv).
    """
    square = (residual * residual).mean(axis=0)
    centred = residual - residual.mean(axis=0)
    dry = np.tanh(motion.qd / widths)
    shapes = {
        "friction": [dry, motion.qd],
        "inertia": [motion.qdd],
        "gravity or a spring": [np.sin(motion.q), np.cos(motion.q)],
    }
    parts = {"an offset": residual.mean(axis=0) ** 2}
    for cause, signals in shapes.items():
        parts[cause] = np.array(
            [_fitted(centred[:, j], [x[:, j] for x in signals])
             for j in range(residual.shape[1])]
        )  # fmt: skip
    floor = np.where(square > 0, square, 1.0)
    return {cause: part / floor for cause, part in parts.items()}


def _fitted(y: np.ndarray, signals: list[np.ndarray]) -> float:
    """Return the mean square of A x nearest to y; A: signals without their means."""
    A = np.column_stack([x - x.mean() for x in signals])
    fit = A @ np.linalg.lstsq(A, y, rcond=None)[0]
    return float((fit * fit).mean())


def _notes(model: Model, record: MotionRecord, motion: SmoothMotion) -> list[str]:
    """Return sentences on doubtful properties of the measurement."""
    doubts = doubtful_times(model, record), in_degrees(model, "q", record.q)
    notes = [doubt for doubt in doubts if doubt]
    if motion.dropped:
        notes.append(
            f"{motion.dropped} of {len(record.t)} samples were left out: not finite, or"
            " not later than the one before"
        )
    if motion.parts:
        count = len(motion.parts) + 1
        notes.append(
            f"pauses of more than {GAP:g} periods part the recording into {count}"
            f" pieces, each without {TRIM / motion.cutoff:.2g} s at both ends"
        )
    notes += unlike_slopes(model.joint_names, motion.qd, motion.slope)
    speed = _rms(motion.slope)
    still = [n for n, v in zip(model.joint_names, speed, strict=True) if v < STILL]
    if len(still) == model.nv:
        moves = "hardly anything moves" if speed.max() > UNMOVED else "nothing moves"
        notes.append(f"{moves}: the weight is compared, inertia and friction are not")
    elif still:
        slow = f"slower than {STILL:g} rad/s (m/s), rms"
        notes.append(f"hardly any motion of {', '.join(still)}: {slow}")
    return notes
