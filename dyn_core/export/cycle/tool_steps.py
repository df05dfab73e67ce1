"""The steps of a control cycle whose law leads a tool: targets, reference, stiffness.

The same as ToolTargets and CartesianLaw of dyn_core.control.modes, for one state.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from dyn_core.control.modes.tool_targets import FULL, LARGEST, UNIT
from dyn_core.export.cycle.cycle_steps import (
    NONE,
    STATE_NUMBERS,
    STATE_VECTORS,
    Cycle,
    CycleInputs,
    Settings,
    all_finite,
    displacement,
)
from dyn_core.numbers.scalar import (
    absolute,
    equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    sqrt,
    where,
)
from dyn_core.spatial import Matrix, Vector
from dyn_core.spatial.lie import (
    log3,
    normalized,
    quat_exp,
    quat_matrix,
    quat_product,
)
from dyn_core.spatial.vectors import total

RUNS_WHILE_TRACED = "wings"  # a mark, see engines/llvm/cached/fingerprint.py
# What becomes of a target: no words, or why it is refused.
ANSWERS = (
    "",
    "used",
    "no target is followed before the law acts, disabled or stopped",
    f"valid: finite numbers from {-LARGEST:g} to {LARGEST:g}",
    f"valid: a quaternion of the length 1 within {UNIT:g}, a stiffness from 0 to"
    f" {LARGEST:g}",
    "from the reference; valid: at most target_jump of each, so lead it there",
)
_NOTHING, _USED, _CLOSED, _NOT_FINITE, _INVALID, _FAR = map(float, range(6))
# Of each variable its numbers; those of the posture are nv.
TOOL_STATE = {
    "leads": 1,  # whether there is a reference
    "drives": 1,  # whether the law has acted since it began at the robot's state
    "led_at": 1,  # time of the reference [s]
    "twist_at": 1,  # when the last twist came [s]
    "wrench_at": 1,
    "place": 3,  # position of the reference in the base
    "turn": 4,  # its quaternion x, y, z, w
    "twist": 6,  # last target, in the axes of the base
    "wrench": 6,
    "stiffness": 36,  # present one
    "goal": 36,  # towards which it changes
}
_NUMBERS = [name for name, size in TOOL_STATE.items() if size == 1]
TRUE = equal(0.0, 0.0)


class ToolCycle(Cycle):
    """The steps of a cycle that leads a tool; the variables of TOOL_STATE are added.

    The constructor receives the targets and advances the reference. Then the law is
    called with `law_inputs`, and `led` with the effort of the law. Targets have the
    numbers k = 0 (pose), 1 (twist), 2 (wrench) and 3 (stiffness). The argument `tool`
    has the other inputs of CARTESIAN_CYCLE by name; `poses` returns for q the pose of
    the tool, a list of one (4, 4).

    Attributes:
        v, f: Velocity [angular; linear] and wrench [moment; force] of the reference in
            base axes, (6,).
        R, p: Pose of the tool in the base at the last good state.
        answers: Index in ANSWERS for each target: 0 no news, 1 used, or the reason of
            its refusal: 2 no law acts, 3 not finite, 4 not valid, 5 too far.
        apart: Angle [rad] and distance [m] of a new pose from the reference.
    """

    leads: Any
    drives: Any
    led_at: Any
    twist_at: Any
    wrench_at: Any
    place: Any
    turn: Any
    twist: Any
    wrench: Any
    stiffness: Any
    goal: Any
    rest: Any

    def __init__(
        self,
        model: Any,
        settings: Settings,
        weight: Any,
        now: CycleInputs,
        tool: Mapping[str, Any],
        poses: Any,
    ) -> None:
        super().__init__(model, settings, weight, now)
        self.tool, self.names = tool, [*TOOL_STATE.items(), ("rest", model.nv)]
        start = len(STATE_NUMBERS) + len(STATE_VECTORS) * model.nv
        for name, size in self.names:
            value = Vector(now.state[start : start + size])
            setattr(self, name, value[0] if name in _NUMBERS else value)
            start += size
        self.stated = Vector(x for row in tool["stiffness"].rows for x in row)
        self.goal = where(equal(tool["news"][4], 1.0), self.stated, self.goal)
        self.answers: list[Any] = []
        self.followed = reduce(
            logical_and,
            (self.leads > 0.0, equal(self.stop, NONE), logical_not(self.disabled)),
        )
        self.followed = logical_and(self.followed, logical_not(self.resets))
        self._receive_pose()
        self.twist, self.twist_at = self._received(1, tool["target_twist"], "twist")
        self.wrench, self.wrench_at = self._received(2, tool["target_wrench"], "wrench")
        self._receive_stiffness()
        (T,) = poses(self.q)
        self.R = Matrix(row[:3] for row in T[:3])
        self.p = Vector(row[3] for row in T[:3])
        self._begin()
        self._advance()

    def _answer(self, k: int, numbers: Any, valid: Any, near: Any) -> Any:
        """Append the answer to target k; return the condition that it is used.

        Calls come in the order of k: 0 pose, 1 twist, 2 wrench, 3 stiffness. A target
        is used if it is new, the law follows targets, its frame is finite, its numbers
        are finite and within ±1e7, and `valid` and `near` hold. Otherwise the answer is
        the first of the other ANSWERS that applies; 3 is for a frame or numbers that
        are not finite, and for numbers beyond ±1e7.
        """
        finite = all_finite(self.tool["frames"].rows[k])
        finite = reduce(logical_and, (absolute(x) <= LARGEST for x in numbers), finite)
        result: Any = where(near, _USED, _FAR)
        result = where(finite, where(valid, result, _INVALID), _NOT_FINITE)
        result = where(self.followed, result, _CLOSED)
        self.answers.append(where(equal(self.tool["news"][k], 1.0), result, _NOTHING))
        return equal(self.answers[-1], _USED)

    def _frame(self, k: int) -> tuple[Matrix, Vector]:
        """Return R and p [m] of target k's frame in the base, maybe not finite."""
        row = self.tool["frames"].rows[k]
        rows = [row[i : i + 4] for i in (0, 4, 8)]
        return Matrix(x[:3] for x in rows), Vector(x[3] for x in rows)

    def _receive_pose(self) -> None:
        """Move the reference to a new pose; append the answer, and always set `apart`.

        The pose is used if its quaternion has unit length within 1e-3 and it is at most
        target_jump from the reference, in angle [rad] and distance [m].
        """
        x, (R, p) = self.tool["target_pose"], self._frame(0)
        q = Vector(x[k] for k in range(3, 7))
        length, jump = sqrt(q @ q), self.tool["target_limits"][1]
        unit = absolute(length - 1.0) <= UNIT
        p = p + R @ Vector(x[k] for k in range(3))
        R = R @ quat_matrix(q * (1.0 / where(unit, length, 1.0)))
        self.apart = _distances(R, p, quat_matrix(self.turn), self.place)
        near = logical_and(self.apart[0] <= jump, self.apart[1] <= jump)
        used = self._answer(0, x, unit, near)
        self.turn = where(used, _quaternion(R), self.turn)
        self.place = where(used, p, self.place)

    def _received(self, k: int, six: Any, name: str) -> tuple[Any, Any]:
        """Return twist or wrench turned to base axes, (6,), and time of receipt [s].

        Without a new valid one, both are of the last one that was used. Appends the
        answer to target k (1 twist, 2 wrench): calls come in the order of k. The
        attributes are set by the caller.
        """
        used = self._answer(k, six, TRUE, TRUE)
        turned = _turned(self._frame(k)[0], six)
        since = where(used, self.t, getattr(self, f"{name}_at"))
        return where(used, turned, getattr(self, name)), since

    def _receive_stiffness(self) -> None:
        """Set `goal`, which the stiffness changes to, from a target; append the answer.

        The six numbers, not negative, are a diagonal in the axes of the target's frame;
        `goal` is the matrix (6, 6) by rows in base axes, or, if not settings.aligned,
        in those of the reference.
        """
        x, R = self.tool["target_stiffness"], self._frame(3)[0]
        used = self._answer(3, x, reduce(logical_and, (y >= 0.0 for y in x)), TRUE)
        if not self.settings.aligned:
            R = quat_matrix(self.turn).T @ R
        rows = [[0.0] * 6 for _ in range(6)]
        for first in (0, 3):
            block = R @ Matrix.diagonal([x[first + i] for i in range(3)]) @ R.T
            for i, row in enumerate(block.rows):
                rows[first + i][first : first + 3] = row
        goal = Vector(y for row in rows for y in row)
        self.goal = where(used, goal, self.goal)

    def _begin(self) -> None:
        """Start the reference if the law begins to act; call it once in each cycle.

        It begins with the first effort of the law, and again after the controller has
        waited or the history of states was reset: at rest at the pose of the tool,
        without wrench, with the position as rest posture, and stiffness and goal of the
        parameter. `drives` and `leads` are set in any case.
        """
        fresh = logical_or(self.broke, self.drives <= 0.0)
        begins = logical_and(self.acts, fresh)
        zero = Vector.zeros(6)
        for name, value in (
            ("turn", _quaternion(self.R)), ("place", self.p), ("rest", self.q),
            ("twist", zero), ("wrench", zero), ("led_at", self.t),
            ("stiffness", self.stated), ("goal", self.stated),
        ):  # fmt: skip
            setattr(self, name, where(begins, value, getattr(self, name)))
        ends = logical_or(self.broke, self.waits)
        self.drives = where(self.acts, 1.0, where(ends, 0.0, self.drives))
        self.leads = where(self.acts, 1.0, where(self.broke, 0.0, self.leads))

    def _advance(self) -> None:
        """Advance reference (turn, place) and stiffness, if the law or a stop acts.

        Sets `v` and `f` in any case: the last twist and wrench, which fade (see
        _share). A reference that would be farther than target_jump [rad and m] from the
        tool, and farther than before, or would turn by more in this cycle, does not
        move, and `v` is zero. All entries of the stiffness near `goal` in proportion,
        none faster than its stiffness_rate; led_at becomes the time of this cycle.
        """
        timeout, jump, *rates = (self.tool["target_limits"][k] for k in range(4))
        step = maximum(self.t - self.led_at, 0.0)
        self.f = self.wrench * self._share(self.wrench_at, timeout)
        v = self.twist * self._share(self.twist_at, timeout)
        way = v * minimum(step, timeout)
        turn = normalized(quat_product(quat_exp(way[:3]), self.turn))
        place = self.place + way[3:]
        before = _distances(self.R, self.p, quat_matrix(self.turn), self.place)
        after = _distances(self.R, self.p, quat_matrix(turn), place)
        near = [b <= maximum(a, jump) for a, b in zip(before, after, strict=True)]
        # Whole turns in one step would end where they began.
        small = way[:3] @ way[:3] <= jump * jump
        near = logical_and(small, logical_and(*near))
        self.v = where(near, v, Vector.zeros(6))
        moves = logical_and(self.acts, near)
        moves = logical_and(moves, total(absolute(x) for x in v) > 0.0)
        self.turn = where(moves, turn, self.turn)
        self.place = where(moves, place, self.place)
        change = self.goal - self.stiffness
        longest: Any = 0.0
        for k, x in enumerate(change):
            angular = k < 18 and k % 6 < 3
            longest = maximum(longest, absolute(x) / rates[0 if angular else 1])
        goes_on = step < longest
        part = change * (step / where(goes_on, longest, 1.0))
        stiffness = where(goes_on, self.stiffness + part, self.goal)
        self.stiffness = where(self.acts, stiffness, self.stiffness)
        self.led_at = where(self.acts, self.t, self.led_at)

    def _share(self, since: Any, timeout: Any) -> Any:
        """Return the share, 0 to 1, with which a twist or wrench counts now.

        It is 1 for half of the timeout, then falls linearly to 0.
        """
        age = (self.t - since) / timeout
        return minimum(maximum((1.0 - age) / (1.0 - FULL), 0.0), 1.0)

    def law_inputs(self) -> tuple[Any, ...]:
        """Return q, pose_ref, stiffness, v_ref, f_ref and q_rest of the law.

        The pose (7,) is position [m] and quaternion x, y, z, w in the base. The
        stiffness is (6, 6), v_ref and f_ref are (6,), angular first, in the axes of the
        base if settings.aligned, else of the tool. All are valid numbers where the law
        does not act, so that it raises nothing.
        """
        q = where(self.acts, Vector(self.q_now), self.zero)
        whole = absolute(self.turn @ self.turn - 1.0) <= UNIT
        turn = where(whole, self.turn, Vector((0.0, 0.0, 0.0, 1.0)))
        K = Matrix(self.stiffness[6 * i : 6 * i + 6] for i in range(6))
        R = Matrix.identity(3) if self.settings.aligned else self.R.T
        rest = q + displacement(q, self.rest, self.settings.wrapped)
        pose = Vector((*self.place, *turn))
        return q, pose, K, _turned(R, self.v), _turned(R, self.f), rest

    def led(self, tau: Any, finite: Any) -> tuple[Any, Any, Any, Any]:
        """Return effort, next state, report and answers; to be called once.

        The next state has the variables of Cycle, then those of TOOL_STATE and the rest
        posture; the answers are `answers`, (4,), and `apart`, (2,). `finite`: see run.
        """
        effort, state, report = self.run(tau, finite, self.zero)
        rows = [getattr(self, name) for name, _ in self.names]
        more = (x for row in rows for x in (row if hasattr(row, "__iter__") else [row]))
        return effort, Vector((*state, *more)), report, (*self.answers, *self.apart)


def _turned(R: Matrix, six: Any) -> Vector:
    """Return [R angular; R linear] of six numbers [angular; linear], R (3, 3)."""
    first, second = ([six[k + i] for i in range(3)] for k in (0, 3))
    return Vector((*(R @ Vector(first)), *(R @ Vector(second))))


def _quaternion(R: Matrix) -> Vector:
    """Return the quaternion x, y, z, w of a rotation matrix, with w >= 0."""
    return quat_exp(log3(R))


def _distances(R: Matrix, p: Vector, R_ref: Matrix, p_ref: Vector) -> tuple[Any, Any]:
    """Return angle [rad] and distance [m] from pose (R_ref, p_ref) to pose (R, p)."""
    w, r = log3(R_ref.T @ R), p - p_ref
    return sqrt(w @ w), sqrt(r @ r)
