"""Inverse kinematics for users: searches from several start positions at once.

The solvers of INVERSE_KINEMATICS search from one start and may end at a joint limit or
a local minimum. The class here draws a pool of random positions and starts first from
the positions whose frames are nearest to the wanted pose, as one batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import (
    NonFiniteError,
    RequireError,
    SettingError,
    ShapeError,
    warn,
)
from dyn_core.kinematics.poses import one_pose, pose_matrices
from dyn_core.model import Model
from dyn_core.model.checks.robots import in_degrees
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.problems import INVERSE_KINEMATICS
from dyn_core.solving.registry import solver
from dyn_core.validation import (
    Whole,
    known_keywords,
    one_state,
    random_generator,
    shown,
    state_array,
)

STEPS = 10  # iterations of a round; most successful starts need no more
ROUNDS = 3  # maximum number of rounds from one start
CLOSE = 1e-2  # error from which another round is worth it
FAR = 2.0  # ratio to the farthest random position from which none is near the reach
BLOCK, CACHED = 8192, 512  # poses per batch; poses per table of distances to the pool
CHOICE = np.float32  # half the memory: which starts are tried needs no more digits
_ROWS = {"pose": slice(0, 6), "orientation": slice(0, 3), "position": slice(3, 6)}


@dataclass(frozen=True)
class Reached:
    """Result of inverse kinematics; for many poses each field has a row for each pose.

    Attributes:
        q: Joint positions, (nq,) [rad | m]: a solution, or the best position of the
            search.
        converged: Whether the error of the frame is within the tolerance.
        error: Remaining displacement of the frame, [angular; linear], frame
            coordinates, (6,) [rad; m].
        residual: Norm of the error, over the matched part only [rad | m].
        iterations: Number of steps from the start to q.
        seed: Index of the start; 0 is `near` if it was given, else the pool position
            nearest to the pose; higher indices are farther pool positions.
        reason: Sentence for a link that no joint moves, or a position far out of reach,
            such as one in millimetres, with both distances; "" otherwise.
    """

    q: np.ndarray
    converged: Any
    error: np.ndarray
    residual: Any
    iterations: Any
    seed: Any
    reason: Any = ""


@known_keywords
class InverseKinematics:
    """Search for joint positions that bring a link to poses, for repeated calls.

        reach = InverseKinematics(model, "tool")
        result = reach(pose)  # (4, 4), or x, y, z, qx, qy, qz, qw
        result.q, result.converged

    Calls of the same object with the same arguments give the same answer, whatever was
    called before: the starts are drawn once. An `error` is [angular; linear], 6 numbers
    in frame coordinates [rad; m].

    Attributes:
        model, frame, part, seeds, restarts: As given.
        program: Program of inverse_kinematics, with at most 10 (STEPS) iterations a
            call.
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
        """Build the Program and draw the pool of start positions.

        Args:
            model: Robot.
            frame: Name of the link.
            part: Part of the pose to match: pose, position or orientation.
            fixed: Names of joints that do not move: they stay as in `near`, or neutral
                inside their limits.
            tolerance: Norm of the error, over the matched part, at which the search has
                converged [rad | m].
            seeds: Number of starts that are searched at once; a multiple of the vector
                lanes of the machine (8 or 4) takes the least time per start.
            restarts: Number of further groups of `seeds` starts that are tried if none
                converges.
            pool: Number of random positions to choose starts from, at most a million.
            rng: Seed of the random numbers, or a generator, which is advanced.
            engine, threads: Options of the Program, see BuildOptions; None: the
                default.

        Raises:
            SettingError: A keyword is unknown, a number is out of range, or the pool is
                smaller than seeds (1 + restarts).
            ModelError: The robot has no such link.
            UnsupportedError: `part`, `fixed`, `tolerance`, `engine` or `threads` is
                invalid, such as an unknown joint in `fixed`, or the solver does not
                support the robot.
        """
        for name, number, kind in (
            ("seeds", seeds, Whole(1)), ("restarts", restarts, Whole()),
            ("pool", pool, Whole(1, 1_000_000)),
        ):  # fmt: skip
            if not kind.takes(number):
                value = shown(number) if number is not None else None
                text = f"{name} is {value}; valid: {kind.valid}"
                raise SettingError(text, name)
        generator = random_generator(rng)
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
        self._draw(pool, generator)
        self._unmoved = ""  # why nothing moves the frame, if so
        if len(self._still) == model.nq:
            alone = len(_still_places(model, frame, ())) == model.nq
            place = ", ".join(f"{x + 0.0:.4g}" for x in self._middle)
            self._unmoved = (
                f"no joint moves '{frame}', which stays at ({place}) m in the base"
                if alone
                else f"`fixed` has all joints that move '{frame}'"
            )

    def _draw(self, pool: int, rng: np.random.Generator) -> None:
        """Draw the pool, and precompute its terms in the distance to a wanted pose.

            |p_i - p|²/s² + |R_i - R|² = const - 2 (p_i.p/s² + R_i:R) + |p_i|²/s²

        s is half the root mean square distance of the positions p_i from their mean;
        only the terms of the matched part count, and none of positions where s is zero.
        The results are stored: _pool, the positions (pool, nq), in which joints that
        are fixed or do not move the frame are neutral inside their limits, the terms
        _half (pool,) and _weighted (16, pool), the mean _middle (3,) of the p_i, and
        _reach, the largest distance from it [m], infinite if a joint that moves the
        frame slides without limits.
        """
        model, still = self.model, self.model.start()
        self._pool = np.array([model.random(rng) for _ in range(pool)])
        self._pool = self._pool.reshape(pool, model.nq)
        self._pool[:, self._still] = still[self._still]
        kinematics = solver("forward_kinematics").build(
            model, frames=[self.frame], engine="graph"
        )
        poses = kinematics(self._pool)[:, 0]
        places = poses[:, :3, 3]
        self._middle = places.mean(0)
        squares = ((places - self._middle) ** 2).sum(1)
        slides = np.array(coordinates_of(model).velocity_units) == "m"
        slides &= np.isinf(model.lower) | np.isinf(model.upper)
        fixed = set(self._still)
        endless = any(
            slides[model.v_slices[i]].any() and model.q_slices[i].start not in fixed
            for i in model.independent
        )
        self._reach = np.inf if endless else float(np.sqrt(squares.max()))
        spread = float(np.sqrt(squares.mean()))
        weights = np.zeros((4, 4))
        if self.part != "position":
            weights[:3, :3] = 1.0
        if self.part != "orientation":
            # A frame that cannot leave its position (spread 0) is compared by rotation
            # alone.
            weights[:3, 3] = (2.0 / spread) ** 2 if spread > 1e-9 else 0.0
        weighted = (poses * weights).reshape(pool, 16)
        half = 0.5 * (weighted * poses.reshape(pool, 16)).sum(1)
        self._half, self._weighted = half.astype(CHOICE), weighted.T.astype(CHOICE)

    def __call__(self, pose: ArrayLike, near: ArrayLike | None = None) -> Reached:
        """Return a position at which the link has the given pose, or comes near it.

        If no start converges, the result is the best position of the search, which need
        not be the closest possible; its `converged` is False. Starts are searched in
        groups of `seeds`; among the solutions of the first group that has one, the
        result is the nearest to `near`, or without `near` the one with the least error.

        Args:
            pose: Pose of the link in the base, (4, 4), or (x, y, z, qx, qy, qz, qw), or
                (x, y, z) if only the position is matched. A quaternion is scaled to
                unit length, with a DynWarning if it is off by more than 0.001.
            near: Position (nq,) that is used as the first start, and whose values the
                joints that do not move keep; None: no such position.

        Raises:
            ShapeError: `pose` or `near` has another shape, or is not numeric.
            NonFiniteError: `pose` or `near` has NaN or infinity, or a quaternion is
                zero.
            RotationError: The rotation of the pose is not orthonormal, or a reflection.
        """
        wanted = one_pose(self._complete(pose))
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
        return replace(best, reason=self._reason(wanted))

    def _complete(self, pose: ArrayLike) -> ArrayLike:
        """Return a pose; three numbers get a rotation where only positions count.

        They become seven, with the quaternion 0, 0, 0, 1; other poses are not checked.
        """
        try:
            array = pose if isinstance(pose, np.ndarray) else np.array(pose, object)
        except ValueError:  # parts that do not fit, such as (R, p): no numbers
            return pose
        if array.shape != (3,) or any(isinstance(x, (list, tuple)) for x in array):
            return pose
        if self.part != "position":
            wanted = "shape (4, 4) or (7,), or (3,) with part='position'"
            raise ShapeError("pose", wanted, "shape (3,)")
        return [*array, 0.0, 0.0, 0.0, 1.0]

    def _reason(self, pose: np.ndarray) -> str:
        """Return why no position leads to a pose, (4, 4), else "".

        Nothing moves the frame, or the pose is far out of reach.
        """
        if self._unmoved:
            return self._unmoved
        distance = float(np.linalg.norm(pose[:3, 3] - self._middle))
        if self.part == "orientation" or distance <= FAR * self._reach + 1e-6:
            return ""
        return (
            f"out of reach: {distance:.4g} m from the middle of random positions of"
            f" '{self.frame}', of which none is farther from it than {self._reach:.4g}"
            " m; valid: a position in metres, in the base"
        )

    def _starts(
        self, chosen: np.ndarray, near: np.ndarray | None, first: bool
    ) -> np.ndarray:
        """Return start positions, (n, nq), from the pool.

        Joints that do not move have their values of `near` (nq,), if given; if `first`,
        it also replaces the first start.
        """
        starts = self._pool[chosen]
        if near is not None:
            starts[:, self._still] = near[self._still]
            if first:
                starts[0] = near
        return starts

    def _go(self, starts: np.ndarray, pose: np.ndarray) -> list[np.ndarray]:
        """Search from all starts (n, nq), until one has converged, in up to 3 rounds.

        The result is q, error, iterations over all rounds, and status (0: converged),
        by start.
        """
        result = self._round(starts, pose)
        for _ in range(ROUNDS - 1):
            if not result[3].all():
                break
            before = result[2]
            result = self._round(result[0], pose)
            result[2] += before
        return result

    def _round(self, starts: np.ndarray, pose: np.ndarray) -> list[np.ndarray]:
        """Run the Program once from each start (n, nq); return its outputs by start.

        They are q, error, iterations and status (0: converged). The pose is one, (4,
        4), or one for each start, (n, 4, 4); the `rows` of an error are None if it is
        one.
        """
        try:
            return list(self.program(starts, pose))
        except RequireError as error:  # the rows are starts: no rows of the user
            raise error.of_rows(None) if pose.ndim == 2 else error from None

    def _picked(
        self, result: Sequence[np.ndarray], near: np.ndarray | None, first: int
    ) -> Reached:
        """Return the best of several results of one pose.

        It is the converged one nearest to `near`, by the norm of _differences; without
        `near`, or if none has converged, the one with the least error over the matched
        part. `result` has q, error, iterations and status by start; `first` is the
        index of the first start.
        """
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
        """Return positions for many poses: each field of the result has a row a pose.

        Each start, of seeds (restarts + 1) at most, is tried for all poses that have
        not converged yet, so that the result is the first solution found, not the
        nearest to `near`. This takes several times less than single calls, which search
        from all starts at once. A pose that no start reaches has the result with the
        least error, and `converged` False.

        Args:
            poses: Wanted poses, (n, 4, 4), or (n, 7) as (x, y, z, qx, qy, qz, qw).
            near: Positions that are used as first starts, (n, nq), or (nq,) for all
                poses; None: the first starts are from the pool. Joints that do not move
                keep their values of `near`.

        Raises:
            ShapeError, NonFiniteError, RotationError: As for a single pose;
                RotationError, and NonFiniteError about `poses`, name rows.
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
        reason = np.full(n, "", object)
        for k in np.flatnonzero(status):
            reason[k] = self._reason(wanted[k])
        return Reached(q, status == 0.0, error, residual, iterations, seed, reason)

    def _block(self, poses: np.ndarray, near: np.ndarray | None) -> list[np.ndarray]:
        """Search for a block of poses, (n, 4, 4); return the best result of each.

        The best has the smallest residual. Poses that did not converge are searched
        again from other pool positions, at most seeds (restarts + 1) starts in all.
        First starts are `near` (n, nq), or the nearest pool positions; later starts
        have its positions of the joints that stay still.

        The result is q, error, iterations (of this start alone), status (0: converged),
        residual and seed (number of the start, from 0), by pose.
        """
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
        """Return distances of poses (n, 4, 4) to the pool positions, (n, pool).

        They are half the squared distances of position (scaled) and rotation matrix,
        over the matched part, less a term that depends on the pose alone: values of one
        row can be compared, values of different rows cannot.
        """
        flat = poses.reshape(-1, 16).astype(CHOICE)
        return np.asarray(self._half - flat @ self._weighted)

    def _first_round(self, starts: np.ndarray, poses: np.ndarray) -> list[np.ndarray]:
        """Search from one start (n, nq) for each pose (n, 4, 4).

        A search that ended without convergence, but with a residual below CLOSE (0.01),
        gets a second round. The result is q, error, iterations over both rounds, status
        (0: converged) and residual, by pose.
        """
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
        """Return the norms (n,) [rad | m] of errors (n, 6) over the matched part."""
        wanted = error[:, _ROWS[self.part]]
        return np.asarray(np.sqrt(np.einsum("ni,ni->n", wanted, wanted)))


def inverse_kinematics(
    model: Model,
    frame: str,
    pose: ArrayLike,
    near: ArrayLike | None = None,
    **settings: Any,
) -> Reached:
    """Return joint positions that bring a link to a pose, inside the joint limits.

    A pose out of reach is no error: the result then has `converged` False, and, of a
    position far out of reach or a link that no joint moves, a `reason`. For many poses
    build an InverseKinematics once.

    Args:
        model: Robot.
        frame: Name of the link.
        pose: Wanted pose in the base, (4, 4), or (x, y, z, qx, qy, qz, qw), or
            (x, y, z) with part="position".
        near: Position (nq,) that is used as the first start; of several solutions found
            at once, the nearest to it is returned. A DynWarning asks whether one that
            looks so is in degrees.
        settings: Keywords of InverseKinematics: part, fixed, tolerance, seeds,
            restarts, pool, rng, engine, threads.

    Raises:
        SettingError: A keyword is unknown, or a number is out of range.
        ModelError: The robot has no such link.
        UnsupportedError: Another setting is invalid, such as an unknown joint in
            `fixed`, or the solver does not support the robot.
        ShapeError, NonFiniteError, RotationError: The pose or `near` is not valid.
    """
    return InverseKinematics(model, frame, **settings)(pose, near)


def _position(model: Model, q: ArrayLike) -> np.ndarray:
    """Return q, the argument `near`, as one finite position (nq,)."""
    position = one_state("near", q, model.nq)
    if not np.isfinite(position).all():
        raise NonFiniteError("near: it holds NaN or infinity", "near")
    _ask_for_degrees(model, position[None])
    return position


def _positions(model: Model, q: ArrayLike, count: int) -> np.ndarray:
    """Return q, the argument `near`, as finite positions (count, nq).

    One position (nq,) is repeated in all rows. The result is a view that must not be
    written to.
    """
    positions = state_array("near", q, model.nq, real=True)
    if positions.ndim == 2 and len(positions) != count:
        wanted = f"shape ({count}, {model.nq}) or ({model.nq},)"
        raise ShapeError("near", wanted, f"shape {positions.shape}")
    if not np.isfinite(positions).all():
        raise NonFiniteError("near: it holds NaN or infinity", "near")
    _ask_for_degrees(model, np.atleast_2d(positions))
    return np.broadcast_to(positions, (count, model.nq))


def _ask_for_degrees(model: Model, near: np.ndarray) -> None:
    """Issue a DynWarning if positions `near`, (rows, nq), look like degrees."""
    if near.size and np.abs(near).max() > 2 * np.pi:
        if doubt := in_degrees(model, "near", near):
            warn(f"inverse kinematics: {doubt}")


def _still_places(model: Model, frame: str, fixed: Sequence[str]) -> np.ndarray:
    """Return the indices into q of all joints that do not move the frame or are fixed.

    They are ascending, (count,).
    """
    places, moving, i = range(model.nq), set[int](), model.frame(frame).body
    while i > 0:
        moving.update(places[model.q_slices[i]])
        i = model.parent[i]
    for name in fixed:
        moving.difference_update(places[model.q_slice(name)])
    return np.array([k for k in places if k not in moving], int)


def _smallest(distances: np.ndarray, first: int, count: int) -> np.ndarray:
    """Return the indices of the smallest distances, in ascending order of distance.

    The `first` smallest are left out; `count` indices follow, or fewer at the end.
    Which of equal distances comes first is not determined.
    """
    last = first + count
    if last < len(distances):
        nearest = distances.argpartition(last - 1)[:last]
    else:
        nearest = np.arange(len(distances))
    return nearest[distances[nearest].argsort()][first:last]


def _differences(model: Model, q0: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the displacements from position q0 to each of the positions q, (n, nv).

    They are in the tangent space at q0 [rad | m]. Full turns of continuous joints are
    not removed.
    """
    if all(model.joint[i].nq == model.joint[i].nv for i in model.independent):
        return q - q0
    return np.asarray(model.difference(np.broadcast_to(q0, q.shape), q))
