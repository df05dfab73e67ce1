"""A robot as a VisualScene, moved by the library's own forward kinematics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import InfeasibleError
from dyn_core.model import Model
from dyn_core.model.checks.robots import beyond_limits, many_turns
from dyn_core.model.frames import roll_pitch_yaw
from dyn_core.simulation.loop_closure import close_loops
from dyn_core.solving.registry import solver
from dyn_core.spatial import Vector
from dyn_core.spatial.lie import quat_matrix
from dyn_core.validation import one_state
from dyn_core.view.robot_parts import RobotParts, pose_of
from dyn_core.view.scene import COLLISION, VISUAL, Part, Slider, VisualScene, still

TURN = 3.14  # range of a joint without limits, both ways [rad]


class _Knob(NamedTuple):
    """The sliders of one joint.

    `first` is the index of the first one. `kind` is "direct": coordinates of the joint;
    "ball": roll, pitch, yaw; "floating": x, y, z, roll, pitch, yaw.
    """

    body: int
    first: int
    kind: str
    sliders: int


class RobotScene(VisualScene):
    """A robot; a state is its position q, (nq,).

    Body numbers are those of the model; body 0 is the base.

    Args:
        model: Robot. Driven joints have their positions at time 0.
        sketched: Whether rods and joints (`sketch`) replace meshes until `parts` reads
            these; no effect for robots without meshes.
        start: Initial position, (nq,), before loops are closed; one beyond the limits
            stays, with a note. None: zero, moved into the limits.

    Attributes:
        model: Robot.
        size: Approximate reach [m].
        weight: Weight of all bodies [N]; without gravity, their mass [kg].
    """

    def __init__(
        self, model: Model, sketched: bool = False, start: np.ndarray | None = None
    ) -> None:
        super().__init__(model.name, ("base", *model.names[1:]))
        self.model = model
        self._maker = RobotParts(model)
        self.size = self._maker.size
        gravity = float(np.linalg.norm([float(x) for x in model.a_grav.lin]))
        self.weight = float(model.mass) * (gravity or 1.0)
        links = _links(model)
        self._shown = [i for i in model.bodies if links[i]]
        self._to_body = np.array(
            [np.linalg.inv(pose_of(model.frame(links[i]).X)) for i in self._shown]
        ).reshape(-1, 4, 4)
        self._program: Callable[..., Any] | None = None
        if self._shown:
            self._program = solver("forward_kinematics").build(
                model,
                frames=[links[i] for i in self._shown],
                inputs=["time"] if model.driven else [],
                engine="graph",  # needs no compilation
            )
        self._height = 0.0  # of a base that was put on the ground [m]
        self.joints = tuple(_force_names(model))
        by_entry = [(model.v_slices[i].start, i) for i in model.independent]
        self.joint_bodies = [0] * model.nv
        for first, i in by_entry:
            for k in range(model.joint[i].nv):
                self.joint_bodies[first + k] = i
        self.effort_limit = np.asarray(model.effort_limit, float)
        if sketched and self._maker.has_meshes():
            self.sketch = tuple(self._maker.skeleton())
        if start is not None:
            checks = beyond_limits, many_turns
            doubts = [check(model, "q0", start, "the start") for check in checks]
            self.notes += filter(None, doubts)
        self._start = self._standing(start_position(model, start))
        self.sliders, self._knobs = _sliders(model, self._start, self.size)

    def _make(self, role: str) -> Sequence[Part]:
        if role == VISUAL:
            parts = self._maker.visual()
        elif role == COLLISION:
            parts = self._maker.collision()
        else:
            parts = self._maker.inertia()
        self.notes = list(dict.fromkeys([*self.notes, *self._maker.notes]))
        return parts

    def parts(self, role: str = VISUAL) -> tuple[Part, ...]:
        """Return the surfaces of a role, made on first use and then stored.

        Roles are "visual" and "collision"; all others count as "inertia". The first
        call for visuals ends a sketch: `sketch` becomes empty, and a floating base is
        placed on the ground by the visuals, so that `start` may change.
        """
        made = super().parts(role)
        if role == VISUAL and self.sketch:
            self.sketch = ()
            self._start = self._standing(self._start)
        return made

    def start(self) -> np.ndarray:
        """Return a copy of the initial position, (nq,), with loops closed.

        It is the `start` of the constructor; for None zero, moved into the limits.
        Loops that cannot be closed stay open. The floating base of a robot without
        loops stands on the ground, z = 0, unless `start` has another height than 0.
        """
        return self._start.copy()

    def state(self, values: Sequence[float], moved: int | None = None) -> np.ndarray:
        """Return the position of the sliders' values, (nq,), with loops closed.

        Coordinates without a slider have their initial values before loops are closed.
        This may change all values but those of the joint of `moved`.

        Args:
            values: Value of each slider [rad | m], also beyond its range: roll, pitch,
                yaw for a quaternion.
            moved: Index of the slider that was moved, or None.

        Raises:
            ShapeError: There is not one number for each slider.
            InfeasibleError: The loops cannot be closed.
            SingularError, NonFiniteError: Their residuals cannot be evaluated.
        """
        model, q = self.model, self._start.copy()
        numbers = one_state("values", values, len(self.sliders)).tolist()
        for knob in self._knobs:
            x = numbers[knob.first : knob.first + knob.sliders]
            place = model.q_slices[knob.body]
            if knob.kind == "direct":
                q[place] = x
            elif knob.kind == "ball":
                q[place] = _quaternion(x)
            else:
                q[place] = [*x[:3], *_quaternion(x[3:])]
        if not model.loops:
            return q
        fixed = [
            model.names[knob.body]
            for knob in self._knobs
            if moved is not None and knob.first <= moved < knob.first + knob.sliders
        ]
        return close_loops(model, q, fixed=fixed, tolerance=1e-9)

    def values(self, state: np.ndarray) -> np.ndarray:
        """Return the value of each slider at a position, (sliders,) [rad | m].

        Values are not clipped to the sliders; quaternions give roll, pitch and yaw.

        Args:
            state: Position, (nq,); the number of entries is not checked.
        """
        standing: list[float] = []
        for knob in self._knobs:
            x = np.asarray(state, float)[self.model.q_slices[knob.body]]
            if knob.kind == "direct":
                standing += x.tolist()
            elif knob.kind == "ball":
                standing += _angles(x)
            else:
                standing += [*x[:3].tolist(), *_angles(x[3:])]
        return np.array(standing)

    def poses(self, states: np.ndarray) -> np.ndarray:
        """Return the poses of all bodies in the world, (..., nb + 1, 4, 4).

        The pose of a body without a link is the identity.

        Args:
            states: Positions q, (..., nq); another width raises ShapeError, unless
                there is no row or no body with a link.
        """
        q = np.asarray(states, float)
        rows = q.reshape(-1, q.shape[-1])
        poses = np.tile(still(self.model.nb + 1), (len(rows), 1, 1, 1))
        if self._program is not None and len(rows):
            time = (np.zeros(len(rows)),) if self.model.driven else ()
            frames = np.asarray(self._program(rows, *time))
            poses[:, self._shown] = frames @ self._to_body
        return poses.reshape(*q.shape[:-1], self.model.nb + 1, 4, 4)

    def between(self, a: np.ndarray, b: np.ndarray, share: float) -> np.ndarray:
        """Return the position at a share, 0..1, of the shortest path from a to b.

        All are (nq,). Angles change linearly, whole turns are kept; quaternions take
        the shorter way.
        """
        step = share * np.asarray(self.model.difference(a, b))
        return np.asarray(self.model.integrate(a, step))

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Return a random position, (nq,).

        Joints are drawn by Model.random, which heeds only the limits of joints of one
        coordinate, if both are finite. Loops are then closed, which may move joints
        beyond them. A floating base stays at its initial position. Returns the initial
        position if the loops cannot be closed. Raises SingularError or NonFiniteError
        if their residuals cannot be evaluated.
        """
        model, q = self.model, self.model.random(rng)
        for knob in self._knobs:
            if knob.kind == "floating":
                place = model.q_slices[knob.body]
                q[place] = self._start[place]
        if model.loops:
            try:
                return close_loops(model, q, tolerance=1e-9)
            except InfeasibleError:
                return self.start()
        return q

    def mass_centre(self, poses: np.ndarray) -> np.ndarray | None:
        """Return the centre of mass in the world, (3,) [m]; None if there is no mass.

        The mass of the base, body 0, does not count.

        Args:
            poses: Poses of the bodies in the world, (nb + 1, 4, 4).
        """
        m = np.array([float(self.model.I[i].m) for i in self.model.bodies])
        if not m.sum() > 0:
            return None
        c = np.array(
            [
                [float(x) for x in self.model.I[i].c] if m[i - 1] > 0 else (0.0,) * 3
                for i in self.model.bodies
            ]
        )
        places = np.einsum("nij,nj->ni", poses[1:, :3, :3], c) + poses[1:, :3, 3]
        centre: np.ndarray = m @ places / m.sum()
        return centre

    def _standing(self, q: np.ndarray) -> np.ndarray:
        """Move a floating base so that the lowest surface is at height 0; return q.

        The position q (nq,) is modified in place. It is not changed if the first
        independent joint is not floating, or has another height than 0 and than the
        last call gave it, or if the robot has loops. The surfaces are the parts of the
        sketch; without a sketch, the visual parts, which are built.
        """
        model = self.model
        first = next(iter(model.independent), None)
        if first is None or model.joint[first].kind != "floating" or model.loops:
            return q
        if q[model.q_slices[first].start + 2] not in (0.0, self._height):
            return q
        poses, lowest = self.poses(q), np.inf
        for part in self.sketch or self.parts():
            lowest = min(
                lowest, part.triangles.moved(poses[part.body]).vertices[:, 2].min()
            )
        if np.isfinite(lowest):
            q[model.q_slices[first].start + 2] -= lowest
            self._height = q[model.q_slices[first].start + 2]
        return q


def start_position(model: Model, q: np.ndarray | None = None) -> np.ndarray:
    """Return a new position, (nq,), with loops closed, or open where that fails.

    It begins with q, also beyond limits, or for None with the neutral position moved
    into the limits. Limits of joints with quaternions are ignored; closing may exceed
    those of others.
    """
    q = model.start() if q is None else q.copy()
    if model.loops:
        try:
            return close_loops(model, q, tolerance=1e-9, tries=20)
        except InfeasibleError:
            return q
    return q


def _links(model: Model) -> list[str]:
    """Return the name of a link that is fixed to each body, by body number, or "".

    The list has nb + 1 entries, entry 0 for the base. It is the first such link in
    model.frames, wherever its frame is in the body.
    """
    links = [""] * (model.nb + 1)
    for name, frame in model.frames.items():
        links[frame.body] = links[frame.body] or name
    return links


def _force_names(model: Model) -> list[str]:
    """Return a name for each entry of tau: JOINT, or JOINT[0], JOINT[1], ..."""
    names = [""] * model.nv
    for i in model.independent:
        count = model.joint[i].nv
        for k in range(count):
            mark = "" if count == 1 else f"[{k}]"
            names[model.v_slices[i].start + k] = f"{model.names[i]}{mark}"
    return names


def _sliders(
    model: Model, q: np.ndarray, size: float
) -> tuple[tuple[Slider, ...], list[_Knob]]:
    """Return the sliders of all independent joints, and a _Knob for each one, in order.

    A floating joint has x, y, z, roll, pitch and yaw, a joint with a quaternion roll,
    pitch and yaw, another one a slider for each entry of its position. Roll, pitch and
    yaw are the whole orientation, and start at 0 whatever q (nq,) is; others start at
    q, within their range. `size` is the range of lengths without limits [m], to either
    side of q for a floating joint, else of 0; turns without limits have +-3.14 rad.
    """
    sliders: list[Slider] = []
    knobs = []
    for i in model.independent:
        joint, name, first = model.joint[i], model.names[i], len(sliders)
        x = q[model.q_slices[i]]
        if joint.kind == "floating":
            sliders += [
                Slider(f"{name} {axis}", x[k] - size, x[k] + size, float(x[k]), "m")
                for k, axis in enumerate("xyz")
            ]
            sliders += _turns(name)
        elif joint.nq == 4 and joint.nv == 3:
            sliders += _turns(name)
        else:
            sliders += _direct(model, i, x, size)
        kind = "floating" if joint.kind == "floating" else "direct"
        kind = "ball" if joint.nq == 4 and joint.nv == 3 else kind
        knobs.append(_Knob(i, first, kind, len(sliders) - first))
    return tuple(sliders), knobs


def _turns(name: str) -> list[Slider]:
    """Return sliders of roll, pitch and yaw of a joint, which start at 0."""
    return [
        Slider(f"{name} {word}", -high, high, 0.0, "rad")
        for word, high in (("roll", TURN), ("pitch", TURN / 2), ("yaw", TURN))
    ]


def _direct(model: Model, i: int, x: np.ndarray, size: float) -> list[Slider]:
    """Return a slider for each entry of a joint's position, within its limits.

    An entry without a limit has the range -3.14..3.14 rad if it turns, else
    -size..size, extended to the initial position and the other limit. Joints with nq !=
    nv have the range -size..size, in m. Sliders start at x (nq,) of joint i, clipped.
    """
    joint, name, v = model.joint[i], model.names[i], model.v_slices[i]
    S = np.zeros((6, joint.nv))
    if joint.nq == joint.nv:
        columns = joint.S(Vector([float(y) for y in x])).columns
        S = np.array(
            [[float(y) for y in (*column.ang, *column.lin)] for column in columns]
        ).T
    sliders = []
    for k in range(joint.nq):
        turns = k < S.shape[1] and bool(np.abs(S[:3, k]).max() > 1e-9)
        reach = TURN if turns else size
        low, high = -reach, reach
        if joint.nq == joint.nv:
            low, high = float(model.lower[v][k]), float(model.upper[v][k])
            low = low if np.isfinite(low) else min(-reach, float(x[k]), high)
            high = high if np.isfinite(high) else max(reach, float(x[k]), low)
        label = name if joint.nq == 1 else f"{name} [{k}]"
        unit = "rad" if turns else "m"
        start = float(np.clip(x[k], low, high))
        sliders.append(Slider(label, low, high, start, unit))
    return sliders


def _quaternion(rpy: Sequence[float]) -> list[float]:
    """Return the quaternion (x, y, z, w) of roll, pitch, yaw about fixed axes [rad]."""
    roll, pitch, yaw = (0.5 * float(angle) for angle in rpy)
    (sr, sp, sy), (cr, cp, cy) = np.sin([roll, pitch, yaw]), np.cos([roll, pitch, yaw])
    q = (
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    )
    return [float(x) for x in q]


def _angles(quaternion: np.ndarray) -> list[float]:
    """Return [roll, pitch, yaw] [rad] of a unit quaternion (x, y, z, w).

    At pitch = ±pi / 2 roll is 0.
    """
    entries = Vector([float(x) for x in quaternion])
    return [float(x) for x in roll_pitch_yaw(quat_matrix(entries))]


__all__ = ["RobotScene", "start_position"]
