"""Inverse kinematics for users: several starts at once, chosen by where they are.

The solvers of INVERSE_KINEMATICS go from one start; what they reach from it may be a
limit or a bad place. Here the starts come from a pool of random positions, those first
whose frames are nearest to the pose that is wanted, and a batch goes from all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import NonFiniteError, RequireError, SettingError, ShapeError
from dyn_core.kinematics.poses import one_pose, pose_matrices
from dyn_core.model import Model
from dyn_core.problems import INVERSE_KINEMATICS
from dyn_core.solving.registry import solver
from dyn_core.validation import known_keywords, one_state, state_array

STEPS = 10  # of a round; most starts that lead to the pose have led there
ROUNDS = 3  # from one start
CLOSE = 1e-2  # error from which another round is worth it
BLOCK, CACHED = 8192, 512  # poses that go at once, that look for starts at once
CHOICE = np.float32  # half the memory: which starts are tried needs no more digits
_ROWS = {"pose": slice(0, 6), "orientation": slice(0, 3), "position": slice(3, 6)}


@dataclass(frozen=True)
class Reached:
    """What inverse kinematics reached; of many poses each field has a row for each.

    Attributes:
        q: Joint positions, nq: those wanted, or the best that the search met.
        converged: Whether the frame is where it is wanted, within the tolerance.
        error: Displacement that is left, [angular; linear], frame's axes [rad; m].
        residual: Length of the error, of the part that was asked for.
        iterations: Steps that led there, from its start.
        seed: Number of the start that it came from; 0 is `near` where it is given,
            then those of the pool, nearest first.
    """

    q: np.ndarray
    converged: Any
    error: np.ndarray
    residual: Any
    iterations: Any
    seed: Any


@known_keywords
class InverseKinematics:
    """Joint positions that bring a link to poses: built once, called for each pose.

        reach = InverseKinematics(model, "tool")
        result = reach(pose)  # (4, 4), or x, y, z, qx, qy, qz, qw
        result.q, result.converged

    Calls of the same object with the same arguments give the same answer, whatever was
    called before: the starts are drawn once.
    """

    def __init__(
        self,
        model: Model,
        frame: str,
        *,
        part: str = "pose",
        fixed: Sequence[str] = (),
        tolerance: float = 1e-10,
        seeds: int = 8,
        restarts: int = 3,
        pool: int = 256,
        rng: np.random.Generator | int = 0,
        engine: str | None = None,
        threads: int | None = None,
    ) -> None:
        """Build the Program and draw the starts.

        Args:
            model: Robot.
            frame: Name of the link.
            part: What is to agree: pose, position or orientation.
            fixed: Joints that stay as in `near`; without it neutral, inside limits.
            tolerance: Length of the error at which the frame is there [rad | m].
            seeds: Starts that are tried at once; a multiple of the lanes of the
                machine's vectors (8 or 4) takes the least time for each.
            restarts: How often others are tried where none leads there.
            pool: Number of random positions that starts are chosen from.
            rng: Seed of these, or a generator.
            engine, threads: Of the Program, see BuildOptions; None: the default.

        Raises:
            SettingError: A number is out of range, or the pool is smaller than what
                is tried.
        """
        for name, number, least in (
            ("seeds", seeds, 1), ("restarts", restarts, 0), ("pool", pool, 1),
        ):  # fmt: skip
            if not isinstance(number, int) or number < least:
                text = f"{name} is {number!r}; valid: a whole number, {least} or more"
                raise SettingError(text, name)
        if isinstance(rng, int) and rng < 0:
            raise SettingError(f"rng is {rng}; valid: a whole number, 0 or more", "rng")
        if pool < seeds * (1 + restarts):
            least = seeds * (1 + restarts)
            text = f"pool is {pool}; valid: {least} or more, seeds (1 + restarts)"
            raise SettingError(text, "pool")
        self.model, self.frame, self.part = model, frame, part
        self.seeds, self.restarts = seeds, restarts
        choices = {"engine": engine, "threads": threads}
        self.program = solver("inverse_kinematics", INVERSE_KINEMATICS).build(
            model,
            frame=frame,
            part=part,
            fixed=fixed,
            tolerance=tolerance,
            max_iterations=STEPS,
            **{name: x for name, x in choices.items() if x is not None},
        )
        self._still = _still_places(model, frame, fixed)
        self._draw(pool, np.random.default_rng(rng))

    def _draw(self, pool: int, rng: np.random.Generator) -> None:
        """Draw the pool, and prepare how far its frames are from a pose.

        |p_i - p|²/s² + |R_i - R|² = const - 2 (p_i.p/s² + R_i:R) + |p_i|²/s²

        s is half the root mean square distance of the places p_i from their middle.
        """
        model, still = self.model, _inside_limits(self.model, self.model.neutral())
        self._pool = np.array([model.random(rng) for _ in range(pool)])
        self._pool = self._pool.reshape(pool, model.nq)
        self._pool[:, self._still] = still[self._still]
        kinematics = solver("forward_kinematics").build(
            model, frames=[self.frame], engine="graph"
        )
        poses = kinematics(self._pool)[:, 0]
        places = poses[:, :3, 3]
        spread = float(np.sqrt(((places - places.mean(0)) ** 2).sum(1).mean()))
        weights = np.zeros((4, 4))
        if self.part != "position":
            weights[:3, :3] = 1.0
        if self.part != "orientation":
            weights[:3, 3] = (2.0 / spread) ** 2 if spread > 1e-9 else 0.0
        weighted = (poses * weights).reshape(pool, 16)
        half = 0.5 * (weighted * poses.reshape(pool, 16)).sum(1)
        self._half, self._weighted = half.astype(CHOICE), weighted.T.astype(CHOICE)

    def __call__(self, pose: ArrayLike, near: ArrayLike | None = None) -> Reached:
        """Return a position at which the link has a pose, or comes near it.

        A pose out of reach has the best position that the search met, which need not be
        the closest of all. Of several the one that is nearest to `near`, or without it
        of the least error.

        Args:
            pose: Pose of the link in the base, (4, 4), or (x, y, z, qx, qy, qz, qw).
            near: Position to start from, too, (nq,).

        Raises:
            ShapeError, NonFiniteError: Of an array.
            RotationError: The rotation is none.
        """
        wanted = one_pose(pose)
        start = None if near is None else _position(self.model, near)
        distances = self._distances(wanted)[0]
        best: Reached | None = None
        for attempt in range(self.restarts + 1):
            first = attempt * self.seeds
            chosen = _smallest(distances, first, self.seeds)
            starts = self._starts(chosen, start, first == 0)
            result = self._go(starts, wanted)
            reached = self._picked(result, start, first)
            if best is None or reached.residual < best.residual:
                best = reached
            if reached.converged:
                return reached
        assert best is not None
        return best

    def _starts(
        self, chosen: np.ndarray, near: np.ndarray | None, first: bool
    ) -> np.ndarray:
        """Return positions of the pool, joints that stay as in `near`."""
        starts = self._pool[chosen]
        if near is not None:
            starts[:, self._still] = near[self._still]
            if first:
                starts[0] = near
        return starts

    def _go(self, starts: np.ndarray, pose: np.ndarray) -> list[np.ndarray]:
        """Go from all starts, round by round, until one is there."""
        result = self._round(starts, pose)
        for _ in range(ROUNDS - 1):
            if not result[3].all():
                break
            before = result[2]
            result = self._round(result[0], pose)
            result[2] += before
        return result

    def _round(self, starts: np.ndarray, pose: np.ndarray) -> list[np.ndarray]:
        """Return q, error, iterations and status of a round."""
        try:
            return list(self.program(starts, pose))
        except RequireError as error:  # all starts of one pose: rows mean nothing
            raise error.of_rows(None) if pose.ndim == 2 else error from None

    def _picked(
        self, result: Sequence[np.ndarray], near: np.ndarray | None, first: int
    ) -> Reached:
        """Return the best of several positions."""
        q, error, iterations, status = result
        wanted = error[:, _ROWS[self.part]]
        squares = np.einsum("ni,ni->n", wanted, wanted)
        if near is None or status.all():
            k = int(squares.argmin())
        else:
            shift = _differences(self.model, near, q)
            k = int(np.where(status == 0.0, (shift * shift).sum(1), np.inf).argmin())
        return Reached(
            q[k], bool(status[k] == 0.0), error[k], float(squares[k]) ** 0.5,
            int(iterations[k]), first + k,
        )  # fmt: skip

    def many(self, poses: ArrayLike, near: ArrayLike | None = None) -> Reached:
        """Return positions for many poses: one start after the other, for those left.

        This takes several times less than calls, which try all starts at once.

        Args:
            poses: (n, 4, 4), or (n, 7).
            near: Positions to start from first, (n, nq) or (nq,).

        Raises:
            ShapeError, NonFiniteError, RotationError: As a call; rows are named.
        """
        wanted = pose_matrices(poses)
        n = len(wanted)
        starts = None if near is None else _positions(self.model, near, n)
        parts = [
            self._block(
                wanted[k : k + BLOCK], None if starts is None else starts[k : k + BLOCK]
            )
            for k in range(0, max(n, 1), BLOCK)
        ]
        columns = [np.concatenate(x) for x in zip(*parts, strict=True)]
        q, error, iterations, status, residual, seed = columns
        return Reached(q, status == 0.0, error, residual, iterations, seed)

    def _block(self, poses: np.ndarray, near: np.ndarray | None) -> list[np.ndarray]:
        """Return q, error, iterations, status, residual and seed by pose."""
        n = len(poses)
        first = np.concatenate(
            [
                self._distances(poses[k : k + CACHED]).argmin(1)
                for k in range(0, max(n, 1), CACHED)
            ]
        )
        starts = self._pool[first] if near is None else np.array(near)
        best = [*self._first_round(starts, poses), np.zeros(n, int)]
        left = np.flatnonzero(best[3])
        distances = self._distances(poses[left])
        if near is None:
            distances[np.arange(len(left)), first[left]] = np.inf
        for seed in range(1, self.seeds * (self.restarts + 1)):
            if not len(left):
                break
            chosen = distances.argmin(1)
            distances[np.arange(len(left)), chosen] = np.inf
            starts = self._pool[chosen]
            if near is not None:
                starts[:, self._still] = near[left][:, self._still]
            result = [*self._first_round(starts, poses[left]), np.full(len(left), seed)]
            nearer = result[4] < best[4][left]
            for column, values in zip(best, result, strict=True):
                column[left[nearer]] = values[nearer]
            kept = result[3] != 0.0
            left, distances = left[kept], distances[kept]
        return best

    def _distances(self, poses: np.ndarray) -> np.ndarray:
        """Return how far the frames of the pool are from poses, up to a constant."""
        flat = poses.reshape(-1, 16).astype(CHOICE)
        return np.asarray(self._half - flat @ self._weighted)

    def _first_round(self, starts: np.ndarray, poses: np.ndarray) -> list[np.ndarray]:
        """Go from one start to each pose; where that is close, go on."""
        q, error, iterations, status = self._round(starts, poses)
        residual = self._lengths(error)
        on = np.flatnonzero((status != 0.0) & (residual < CLOSE))
        if len(on):
            *result, steps, status[on] = self._round(q[on], poses[on])
            q[on], error[on] = result
            iterations[on] += steps
            residual[on] = self._lengths(error[on])
        return [q, error, iterations.astype(int), status, residual]

    def _lengths(self, error: np.ndarray) -> np.ndarray:
        """Return the lengths of errors, of the part that is asked for."""
        wanted = error[:, _ROWS[self.part]]
        return np.asarray(np.sqrt(np.einsum("ni,ni->n", wanted, wanted)))


def inverse_kinematics(
    model: Model,
    frame: str,
    pose: ArrayLike,
    near: ArrayLike | None = None,
    **settings: Any,
) -> Reached:
    """Return joint positions that bring a link to a pose, inside the limits.

    For many poses build an InverseKinematics once.

    Args:
        model: Robot.
        frame: Name of the link.
        pose: Its pose in the base, (4, 4), or (x, y, z, qx, qy, qz, qw).
        near: Position to start from, too, (nq,).
        settings: Those of InverseKinematics: part, fixed, tolerance, seeds, rng, ...

    Raises:
        ModelError: The robot has no such link.
        ShapeError, NonFiniteError, RotationError: What is wrong with the pose.
    """
    return InverseKinematics(model, frame, **settings)(pose, near)


def _position(model: Model, q: ArrayLike) -> np.ndarray:
    """Return one position to start from, finite."""
    position = one_state("near", q, model.nq)
    if not np.isfinite(position).all():
        raise NonFiniteError("near: it holds NaN or infinity", "near")
    return position


def _positions(model: Model, q: ArrayLike, count: int) -> np.ndarray:
    """Return so many positions to start from, finite; one may serve all."""
    positions = state_array("near", q, model.nq)
    if positions.ndim == 2 and len(positions) != count:
        wanted = f"shape ({count}, {model.nq}) or ({model.nq},)"
        raise ShapeError("near", wanted, f"shape {positions.shape}")
    if not np.isfinite(positions).all():
        raise NonFiniteError("near: it holds NaN or infinity", "near")
    return np.broadcast_to(positions, (count, model.nq))


def _still_places(model: Model, frame: str, fixed: Sequence[str]) -> np.ndarray:
    """Return the places in q of joints that do not move a frame, or may not."""
    moving, i = set(), model.frame(frame).body
    while i > 0:
        moving.add(model.q_slices[i].start)
        i = model.parent[i]
    moving -= {model.q_slice(name).start for name in fixed}
    places = [
        range(model.q_slices[i].start, model.q_slices[i].stop)
        for i in model.independent
        if model.q_slices[i].start not in moving
    ]
    return np.array([k for part in places for k in part], int)


def _inside_limits(model: Model, q: np.ndarray) -> np.ndarray:
    """Return a position with coordinates beyond a limit on it."""
    q = q.copy()
    for i in model.independent:
        if model.joint[i].nq == model.joint[i].nv:
            part, limits = model.q_slices[i], model.v_slices[i]
            q[part] = np.clip(q[part], model.lower[limits], model.upper[limits])
    return q


def _smallest(distances: np.ndarray, first: int, count: int) -> np.ndarray:
    """Return the places of the smallest numbers, from one rank on, in order."""
    last = first + count
    if last < len(distances):
        nearest = distances.argpartition(last - 1)[:last]
    else:
        nearest = np.arange(len(distances))
    return nearest[distances[nearest].argsort()][first:last]


def _differences(model: Model, q0: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the displacements from one position to several, (n, nv)."""
    if all(model.joint[i].nq == model.joint[i].nv for i in model.independent):
        return q - q0
    return np.asarray(model.difference(np.broadcast_to(q0, q.shape), q))
