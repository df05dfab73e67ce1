"""Model: the robot class of the public interface.

The attributes are inherited from Tree; the methods call functions of the other files of
this folder, none of which imports this file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import ModelError, unknown_name
from dyn_core.model import parameter_paths, passive_forces
from dyn_core.model.assembly.assemble import assemble_tree
from dyn_core.model.assembly.build import Build, ForceFunction, ForceOfPotential
from dyn_core.model.assembly.lost_changes import refuse_lost_changes
from dyn_core.model.assembly.tree import Immutable, Tree
from dyn_core.model.checks.description import check_choices
from dyn_core.model.checks.findings import warn_of
from dyn_core.model.checks.tree import check_loops
from dyn_core.model.coordinates import by_name, clusters, order, pivots
from dyn_core.model.coordinates import configuration_space as space
from dyn_core.model.frames import Follower
from dyn_core.model.joints import Joint
from dyn_core.model.joints.moving_pose import Drive
from dyn_core.model.loops.loop_constraints import LoopConstraint, row_names
from dyn_core.model.material import Material
from dyn_core.model.shape_reader import place_shapes
from dyn_core.model.shapes import PlacedShape
from dyn_core.model.sources.origin import Origin
from dyn_core.numbers.scalar import Scalar
from dyn_core.plots.pages import table
from dyn_core.problems.system import System
from dyn_core.spatial import Vector
from dyn_core.validation import random_generator, shown, state_array
from dyn_core.validation.quoting import html_text

_HEADER = ("joint", "kind", "lower", "upper", "velocity", "effort", "carries")
MOST = 60  # maximum number of joints shown
# Attributes of Tree with one number for each body and coordinate.
BY_COORDINATE = [x.name for x in fields(Tree) if x.type == "tuple[Vector, ...]"]


def html_table(tree: Tree) -> str:
    """Return a robot's name, sizes and table of joints (at most MOST) as HTML."""
    rows = [_cells(tree, i) for i in tree.bodies][:MOST]
    more = f"<p>and {tree.nb - MOST} more</p>" if tree.nb > MOST else ""
    return (
        f"<div><b>{html_text(tree.name)}</b>: {tree.nb} moving bodies, nq {tree.nq},"
        f" nv {tree.nv}{table(_HEADER, rows)}{more}</div>"
    )


def _cells(tree: Tree, i: int) -> tuple[str, ...]:
    """Return the row of body i in the table: one text for each name in _HEADER.

    Limits are empty if they are infinite, for followers and for joints that do not have
    exactly one coordinate; an effort limit of 0 counts as infinite.
    """
    leader, k = tree.leader[i].body, tree.v_slices[i].start
    kind, limits = tree.joint[i].kind, [""] * 4
    if leader != i:
        kind += f", follows {tree.names[leader]}"
    elif tree.joint[i].nv == 1:
        values = (
            tree.lower[k],
            tree.upper[k],
            tree.velocity_limit[k],
            tree.effort_limit[k] or np.inf,
        )
        limits = [f"{x:.4g}" if np.isfinite(x) else "" for x in values]
    m = tree.I[i].m
    carried = f"{m:.4g} kg" if isinstance(m, (int, float)) else ""
    return (tree.names[i], kind, *limits, carried)


Values = TypeVar("Values", Vector, np.ndarray)


def assemble(build: Build) -> Model:
    """Return the Model assembled from a Build; its warnings are not issued.

    Raises:
        ModelError: The description or a choice of the Build is not valid, or doubtful
            and the Build is strict.
    """
    tree = assemble_tree(build)
    return Model(**{field.name: getattr(tree, field.name) for field in fields(tree)})


class Model(Immutable, Tree, System):
    """A robot: numbered bodies, joints, limits, and functions of its coordinates.

    A Model is immutable; methods such as `lock` and `reorder` return a changed copy.
    Its data are the attributes of Tree: bodies 1..nb, parents first, body 0 the base.

        model = dyn.load("robot.urdf")
        q = model.position({"elbow": 0.5})
        arm = model.lock({"gripper": 0.0})
    """

    kind = "robot"

    def __repr__(self) -> str:
        joints = len(self.joint_names)
        m = self.mass
        mass = f"{m:.6g} kg" if isinstance(m, (int, float)) else "not a number yet"
        root = next(iter(self.frames), "none")
        return (
            f"Model '{self.name}'\n"
            f"  joints: {joints} independent, {len(self.followers)} followers;"
            f" nq={self.nq}, nv={self.nv}\n"
            f"  bodies: {self.nb}, mass {mass}, {len(self.frames)} frames\n"
            f"  root: link '{root}', {self.build.root_joint}\n"
            f"  loops: {len(self.loops)}, warnings: {len(self.warnings)}"
        )

    def _repr_html_(self) -> str:
        """Return the robot's name, sizes and table of joints as HTML, for notebooks."""
        return html_table(self)

    # The interface of System, for Signatures and solvers.

    @property
    def sizes(self) -> dict[str, int]:
        """Named sizes of Ports: nq, nv and nb."""
        return {"nq": self.nq, "nv": self.nv, "nb": self.nb}

    def parameter(self, path: str) -> list[Scalar]:
        """Return the numbers of a parameter path as a flat list of floats or symbols.

        Raises ModelError for an unknown path, see model/parameter_paths; TraceError for
        `com` or `inertia` of a link whose mass is a symbol.
        """
        return parameter_paths.numbers(self, path)

    def unit(self, path: str) -> str:
        """Return the SI unit of a parameter path, such as "kg" or "m/s²".

        It is "SI" where it depends on the joint (of an offset "rad | m") and for a
        payload, "m; rad" of frames, "-" of directions and ratios. Raises ModelError for
        an unknown path.
        """
        return parameter_paths.kind_of(self, path).unit

    def with_values(self, values: Mapping[str, Sequence[Scalar] | Scalar]) -> Model:
        """Return a robot with the values of some parameters replaced.

        `lock`, `drive`, `with_joint` and `with_forces` refuse a robot with changed
        numbers: call them before.

        Args:
            values: Numbers or symbols by parameter path (model/parameter_paths); a path
                of one number, such as `elbow.damping`, also accepts a bare number.

        Raises:
            ModelError: Unknown path, wrong number of values, or numbers that are not
                finite or that files refuse, such as a negative mass or damping. Of
                payloads and inertias without sense simulations and the doctor tell.
            SingularError: An axis has length 0, or is -z for a planar joint.
        """
        return parameter_paths.with_values(self, values)

    def resisting(self, friction: bool, springs: bool) -> Model:
        """Return the robot without joint friction, springs or both; else itself.

        Args:
            friction: Whether damping and dry friction remain.
            springs: Whether joint springs, point springs with their dampers, and the
                user's passive forces remain.
        """
        robot = self if springs else passive_forces.without_springs(self)
        return robot if friction else robot.without_friction()

    def require_position(self, q: Sequence[Scalar]) -> Sequence[Scalar]:
        """Return `q` (nq) unchanged, after requiring unit quaternions in it.

        A quaternion's length may differ from 1 by 1e-3. Else, or with NaN, a
        QuaternionError is raised, by the running Program where the numbers are traced.
        """
        space.require_unit_quaternions(self, Vector(q))
        return q

    def missing(self, inputs: Sequence[str]) -> str | None:
        """Return why a Program with these inputs cannot be built, or None if it can.

        The only reason is a driven joint (Model.drive) without the input `time`.

        Args:
            inputs: Names of the additional inputs, as in the build option `inputs`.
        """
        if not self.driven or "time" in inputs:
            return None
        return (
            f"the place of {', '.join(self.driven)} is driven; give the time:"
            " build(model, inputs=['time'])"
        )

    @property
    def source(self) -> Origin:
        """Origin of the description: file, collection, sidecar, packages."""
        return self.build.origin

    # Joints, links and their surfaces.

    @property
    def driven(self) -> tuple[str, ...]:
        """Names of joints that Model.drive moves in time, in order of the bodies."""
        suffix = len(".drive")
        names = [self.names[i] for i in self.bodies if self.joint[i].kind == "driven"]
        return tuple(name[:-suffix] for name in names)

    @property
    def quaternion_joints(self) -> tuple[str, ...]:
        """Names of joints with a quaternion (x, y, z, w) in q, in the order of q."""
        return space.quaternion_joints(self)

    @property
    def ball_limits(self) -> dict[int, tuple[float, tuple[float, float]]]:
        """Swing and twist limits of ball joints by body, also of followers [rad].

        Each entry is (largest swing, (lower, upper) twist); the swing is the angle
        between the joint's two z axes. A limit that is not set is infinite; bodies
        whose joint has no finite limit are absent.

        Source: TAZZ-4.7.
        """
        specs = {j.name: j for j in self.build.description.joints}
        limits = {}
        for i in self.bodies:
            spec = specs.get(self.names[i])
            if spec and (np.isfinite(spec.swing) or np.isfinite(spec.twist).any()):
                limits[i] = spec.swing, spec.twist
        return limits

    @property
    def acceleration_limit(self) -> np.ndarray:
        """Smaller of the acceleration and deceleration limits, (nv,).

        Infinite where there is none [rad/s² | m/s²].
        """
        return np.minimum(self._limit("acceleration"), self._limit("deceleration"))

    @property
    def jerk_limit(self) -> np.ndarray:
        """Limits of the acceleration's rate, (nv,); inf: none [rad/s³ | m/s³]."""
        return self._limit("jerk")

    def _limit(self, what: str) -> np.ndarray:
        """Return an attribute of JointSpec (a limit) by velocity coordinate, (nv,).

        All coordinates of a joint have the same value; it is infinite where the file
        has no limit, and for joints that are not in the file.
        """
        specs = {joint.name: joint for joint in self.build.description.joints}
        limits = np.full(self.nv, np.inf)
        for i in self.independent:
            if self.names[i] in specs:
                limits[self.v_slices[i]] = getattr(specs[self.names[i]], what)
        return limits

    @property
    def active_joints(self) -> tuple[str, ...]:
        """Names of joints that have independent coordinates and a motor, in order of q.

        `passive` of a joint in the file tells whether it has no motor. Without it,
        floating and free_rpy joints, such as a floating base, have none, and all other
        joints have one.
        """
        passive = {j.name: j.passive for j in self.build.description.joints}
        for i in self.independent:
            if passive.get(self.names[i]) is None:
                passive[self.names[i]] = self.joint[i].unactuated
        return tuple(name for name in self.joint_names if not passive[name])

    @property
    def followers(self) -> dict[str, Follower]:
        """Rules of mimic and geared joints by name of the follower.

        Each rule refers to the independent joint at the end of the chain of leaders;
        multiplier and offset are of the whole chain: numbers, or arrays (n, m) and (n,)
        for a follower with n and a leader with m coordinates, if not n = m = 1. Locked
        followers are absent.
        """
        rules: dict[str, Follower] = {}
        for i in self.bodies:
            lead, ratio, offset = self.leader[i]
            if ratio is None:
                continue
            leader = self.names[lead]
            if self.joint[i].nv == self.joint[lead].nv == 1:
                rules[self.names[i]] = Follower(leader, ratio[0, 0], offset[0])
            else:
                matrix = np.asarray(ratio, float)
                shift = np.asarray(offset, float)
                rules[self.names[i]] = Follower(leader, matrix, shift)
        return rules

    @property
    def child_links(self) -> tuple[str, ...]:
        """By body: name of the link that its joint carries.

        It is empty for the base (entry 0) and for the bodies that Model.drive inserts.
        """
        child = {j.name: j.child for j in self.build.description.joints}
        for i in [i for i in self.bodies if self.joint[i].kind != "driven"][:1]:
            child.setdefault(self.names[i], next(iter(self.frames)))
        return tuple(child.get(name, "") for name in self.names)

    @property
    def shapes(self) -> tuple[PlacedShape, ...]:
        """Collision shapes of all links, placed in bodies, ordered as frame_names."""
        return place_shapes(self.frames, self.build.description)

    def material(self, link: str) -> Material:
        """Return the surface material of a link.

        A link without its own material has the robot's `default` material, or
        Material() if there is none; so have an unknown link and None.
        """
        materials = self.build.description.materials
        default = materials.get("default", Material())
        return materials.get(link, default) if isinstance(link, str) else default

    @property
    def clusters(self) -> tuple[clusters.Cluster, ...]:
        """Clusters of bodies whose joints share coordinates, parents first.

        A body without couplings is a cluster by itself.
        """
        return clusters.find_clusters(self)

    @property
    def pivot_tolerances(self) -> tuple[tuple[float, ...], ...]:
        """By body and coordinate: largest pivot of a singular joint [kg·m² | kg].

        Followers of a joint are included in its tolerances. Entry 0 has no meaning.
        """
        return pivots.pivot_tolerances(self)

    def flat(self, what: str) -> np.ndarray:
        """Return an attribute of Tree as an array of floats in the order of qd, (nv,).

        Values of followers are omitted. The unit is the attribute's.

        Args:
            what: Name of an attribute with one number for each body and coordinate,
                such as "armature"; another name is a ModelError.
        """
        if what not in BY_COORDINATE:
            raise ModelError(unknown_name("attribute", what, BY_COORDINATE), str(what))
        result = np.zeros(self.nv)
        for i in self.independent:
            result[self.v_slices[i]] = list(getattr(self, what)[i])
        return result

    # Positions and velocities.

    def neutral(self) -> np.ndarray:
        """Return the neutral position (nq,): zeros, and identity quaternions.

        A custom joint is at its `neutral` coordinates.
        """
        return space.neutral(self)

    def start(self) -> np.ndarray:
        """Return the neutral position moved into the limits, (nq,); loops stay open.

        A coordinate whose limits exclude its neutral value is at the nearer limit,
        but for joints with quaternions. Runs and the viewer begin there.
        """
        return space.start(self)

    def random(self, rng: np.random.Generator | int | None = None) -> np.ndarray:
        """Return a random position (nq,).

        A joint of one coordinate is uniform within its limits if both are finite. All
        other joints ignore limits: they draw angles up to a half turn either way, away
        from singularities, and lengths mostly within 1 m of zero; a custom joint draws
        within its `span`. Loops are not closed.

        Args:
            rng: Generator, or a seed, a whole number >= 0; None: another position at
                each call.

        Raises:
            SettingError: `rng` is none of these.
        """
        return space.random(self, random_generator(rng))

    def integrate(self, q: Values, dv: Values) -> Values:
        """Return the position q displaced by dv, (nq,); batches too.

            integrate(q0, difference(q0, q1)) = q1

        Args:
            q: Position (nq,), or positions (n, nq); one goes with n displacements.
            dv: Displacement at q, (nv,) or (n, nv), likewise [rad | m]; of joints with
                quaternions in body axes, [angular; linear].

        Raises ShapeError for other shapes, ValueError if batches do not broadcast.
        """
        return space.on_arrays(self, space.integrate, "q", q=q, dv=dv)

    def difference(self, q0: Values, q1: Values) -> Values:
        """Return the displacement dv (nv,) from q0 to q1; batches too.

        It lies in the tangent space at q0: integrate(q0, dv) = q1.

        Args:
            q0, q1: Positions (nq,) or (n, nq); one goes with each row of a batch.

        Raises ShapeError for other shapes, ValueError if batches do not broadcast.
        """
        return space.on_arrays(self, space.difference, "v", q0=q0, q1=q1)

    def normalize(self, q: Values) -> Values:
        """Return the position with its quaternions scaled to unit length, (nq,).

        Batches (n, nq) are valid, too.

        Raises:
            ShapeError: `q` has another shape.
            NonFiniteError: A quaternion's length is below 1.5e-154 or above 1.3e154;
                NaN passes. A Vector `q` is not checked at all.
        """
        if not isinstance(q, Vector):
            space.refuse_zero_quaternions(self, state_array("q", q, self.nq))
        return space.on_arrays(self, space.normalize, "q", q=q)

    def position_rate(self, q: Values, qd: Values) -> Values:
        """Return the rate of the coordinates, dq/dt = Q(q) qd, (nq,); batches too.

        Args:
            q: Position (nq,) or (n, nq); one goes with n velocities.
            qd: Joint velocity (nv,) or (n, nv), likewise.

        Raises ShapeError for other shapes, ValueError if batches do not broadcast.

        Source: RBD5-3.4 (quasi-velocities).
        """
        return space.on_arrays(self, space.position_rate, "q", q=q, qd=qd)

    def tangent_rate(self, u: Values, qd: Values) -> Values:
        """Return du/dt (nv,) of a displacement u(t) from a fixed position.

            u = difference(q0, q(t)),   q moves with velocity qd

        For joints with quaternions it is accurate to fourth order in u.

        Args:
            u: Displacement from q0, (nv,) or (n, nv); one goes with n velocities.
            qd: Joint velocity at the displaced position, (nv,) or (n, nv), likewise.

        Raises ShapeError for other shapes, ValueError if batches do not broadcast.
        """
        return space.on_arrays(self, space.tangent_rate, "v", u=u, qd=qd)

    def position(
        self,
        joints: Mapping[str, float],
        tolerance: float = 1e-6,
        project: bool = False,
    ) -> np.ndarray:
        """Return q (nq,) with given positions by joint name; other joints are neutral.

        Loops are not closed. Angles that look like degrees are a ModelWarning.

        Args:
            joints: Positions by name [rad | m], of joints with one coordinate;
                followers may be among them, and determine a leader that is not.
            tolerance: Allowed difference of a follower from its rule, its multiplier
                times the position of its leader plus its offset [rad | m].
            project: Whether to ignore the tolerance and return the least-squares
                solution over the given joints of each leader.

        Raises:
            ModelError: `joints` is no mapping, a joint is unknown, it or its leader has
                not exactly one coordinate, a value is not a finite number, or a
                follower is off its rule by more than the tolerance.

        Source: TAZZ-5.1 (position level), TAZZ-5.3.
        """
        allowed = None if project else tolerance
        return by_name.coordinates_by_name(self, joints, "position", allowed)

    def velocity(
        self,
        joints: Mapping[str, float],
        tolerance: float = 1e-6,
        project: bool = False,
    ) -> np.ndarray:
        """Return qd (nv,) with given velocities by joint name; others are zero.

        Loops are not considered. 5 times the velocity limit is a ModelWarning.

        Args:
            joints: Velocities by name [rad/s | m/s], of joints with one coordinate;
                followers may be among them, and determine a leader that is not.
            tolerance: Allowed difference of a follower from its multiplier times the
                velocity of its leader [rad/s | m/s].
            project: Whether to ignore the tolerance and return the least-squares
                solution over the given joints of each leader.

        Raises:
            ModelError: `joints` is no mapping, a joint is unknown, it or its leader has
                not exactly one coordinate, a value is not a finite number, or a
                follower is off its rule.
        """
        allowed = None if project else tolerance
        return by_name.coordinates_by_name(self, joints, "velocity", allowed)

    # Other robots made of this one.

    def rebuilt(self, **changes: Any) -> Model:
        """Return the robot assembled anew with some fields of its Build replaced.

        Coordinates have the order of a new assembly. If this robot was reordered, those
        that remain keep their order, and new ones come last.

        Args:
            changes: New values of fields of Build, by the field's name; another name is
                a TypeError.

        Raises:
            ModelError: The changed Build is not valid, or numbers of this robot were
                replaced after its assembly and would be lost.
        """
        before, made = assemble(self.build), assemble(replace(self.build, **changes))
        refuse_lost_changes(self, before.reorder(self.joint_names))
        if before.joint_names == self.joint_names:
            return made
        kept = [name for name in self.joint_names if name in made.joint_names]
        return made.reorder([*kept, *(x for x in made.joint_names if x not in kept)])

    def lock(self, joints: Mapping[str, ArrayLike]) -> Model:
        """Return the robot with some joints fixed; their bodies are merged exactly.

        Followers of a locked joint are fixed, too; the leader of a locked follower
        stays free. New warnings, as of a position beyond limits, are one ModelWarning.

        Args:
            joints: Position of each joint by name, as many numbers as it has position
                coordinates [rad | m]. Joints locked earlier stay locked; a new position
                replaces an earlier one.

        Raises:
            ModelError: `joints` is no mapping, a joint is unknown, fixed in the file,
                in a Coupling or of a floating root, a position is not valid or
                contradicts a locked leader's, or changed numbers would be lost.
        """
        check_choices("warn", () if joints is None else joints)  # None: no lock there
        made = self.rebuilt(lock={**self.build.lock, **joints})
        warn_of(self.name, [x for x in made.warnings if x not in self.warnings])
        return made

    def drive(self, joint: str, pose: Drive) -> Model:
        """Return the robot with the placement of a joint driven as a function of time.

        A body without mass is inserted between the joint and its parent. Programs then
        need `inputs=["time"]`. An earlier function of the same joint is replaced.

        Args:
            joint: Name of a moving joint.
            pose: Function of t [s] that returns (R, p): rotation and position of the
                moved placement, relative to the placement in the file; R as three rows
                or None for no rotation, p as three numbers [m]. It must use the
                functions of dyn_core.authoring, such as its sin, not NumPy's.

        Raises:
            ModelError: The joint is unknown, fixed or locked, `pose` is not callable or
                gives no (R, p) at t = 0, or changed numbers would be lost.

        Source: RBD5-3.4 (time-dependent joints).
        """
        self.body_of_joint(joint)
        if not callable(pose):
            raise ModelError(
                f"drive of joint '{joint}' is {pose!r}; valid: a function of the time"
                " that returns (R, p)",
                joint,
            )
        return self.rebuilt(drives={**self.build.drives, joint: pose})

    def with_joint(self, name: str, joint: Joint) -> Model:
        """Return the robot with a joint replaced by another (Custom, Product, ...).

        It replaces the joint of the same name in the file, whatever its type there, and
        stays in place when the robot is locked, cut to a sub-chain or reordered.

        Args:
            name: Name of the joint.
            joint: Joint object.

        Raises:
            ModelError: Unknown joint, no Joint or one that does not fit a follower's
                rule or a Coupling, or changed numbers would be lost.

        Source: KIM-2.4 (user-defined joints).
        """
        if not isinstance(name, str) or not isinstance(joint, Joint):
            raise ModelError(
                f"with_joint({shown(name)}, {shown(joint)}); valid: a name and a Joint"
            )
        return self.rebuilt(joints={**self.build.joints, name: joint})

    def with_forces(
        self, function: ForceFunction, potential: Callable[..., Scalar] | None = None
    ) -> Model:
        """Return the robot with further passive forces, see model/passive_forces.py.

        Args:
            function: (model, q, qd) -> joint forces, nv [N·m | N]. It is not called nor
                checked here; a wrong result raises ModelError in Programs.
            potential: (model, q) -> potential energy of these forces [J]; None: they
                have none, and `energy` raises an error.

        Raises:
            ModelError: Numbers of this robot were changed and would be lost.

        Source: KIM-S2.
        """
        if potential is not None:
            function = ForceOfPotential(function, potential)
        return self.rebuilt(forces=(*self.build.forces, function))

    def reorder(self, names: Sequence[str]) -> Model:
        """Return the same robot with its coordinates in the order of `names`.

        Limits and slices are reordered alike; numbers of bodies do not change.

        Raises:
            ModelError: `names` is no list of names, or no permutation of joint_names.
        """
        return order.reordered(self, names)

    def without_friction(self) -> Model:
        """Return the same robot with zero damping, dry and Stribeck friction.

        Dampers of point springs stay. `lock`, `drive`, `with_joint` and `with_forces`
        refuse a robot that this has changed: call them before (see `rebuilt`).
        """
        return passive_forces.without_friction(self)

    @property
    def loops(self) -> tuple[LoopConstraint, ...]:
        """Loop and Coupling constraints that close the tree; the file's come first."""
        return self.build.constraints

    @property
    def loop_rows(self) -> list[str]:
        """Names of the constraint rows of all loops, in the order of the rows."""
        return row_names(self.loops)

    def without_loops(self) -> Model:
        """Return the robot without Loop and Coupling constraints, as an open tree.

        Mimic joints and gears stay followers; changed numbers are kept.
        """
        description = replace(self.build.description, loops=())
        return replace(
            self, build=replace(self.build, description=description, loops=())
        )

    def with_loops(self, *loops: LoopConstraint) -> Model:
        """Return the robot with further loops (make_loop, user_loop, coupling).

        The loops are appended to `loops`; changed numbers are kept.

        Raises:
            ModelError: An argument is no loop, unknown link or joint, name missing or
                used twice, both frames on one link, or a coupling of joints that are
                fixed or have several coordinates.

        Source: KIM-3.0.
        """
        for loop in loops:
            if not isinstance(loop, LoopConstraint):
                raise ModelError(
                    f"a loop is {shown(loop)}; valid: results of dyn.make_loop,"
                    " dyn.user_loop or dyn.coupling, each an argument of its own"
                )
        build = replace(self.build, loops=(*self.build.loops, *loops))
        closed = replace(self, build=build)
        check_loops(closed)
        return closed
