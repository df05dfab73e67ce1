"""Time steps of a robot with contacts on half-spaces, as traced algorithms.

The deepest points of a shape on a half-space have rows. Inputs of all steps: q, nq [rad
| m]; qd, nv [rad/s | m/s]; tau, nv, constant over the step [N·m | N]; dt [s]; warm,
impulses of the step before, normal and two tangents of each of c contacts, by
half-space, then shape, m = 3 c, zeros in the first step [N·s]; f_ext, force on each
body in its coordinates, nb + 1, entry 0 not read [N·m; N]. Errors of the slots pass
through. Of the contact solver are residuals, 5 (primal, dual, complementarity,
dissipation, law), and status, 0: converged, else an index in STATUSES. Velocities of
floating bodies turn with their axes: dt w x v is added; qd_next is along those at the
end.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from dyn_core.authoring import (
    Force,
    Matrix,
    Motion,
    TracedSolver,
    Vector,
    advance,
    cross3,
    gyroscopic_change,
    hookimpl,
    join_v,
    rate_in_initial_axes,
    split_q,
    split_v,
    total,
    where,
)
from dyn_core.contact import ConstraintLayout, best_part, check_options
from dyn_core.contact.collision.halfspaces import HalfSpace, candidate_points
from dyn_core.contact.rows import contact_biases
from dyn_core.contact.rows.constraints import tangents
from dyn_core.errors import UnsupportedError
from dyn_core.problems import (
    BIAS_FORCE,
    CONTACT_SOLVE,
    CONTACT_STEP,
    FORWARD_DYNAMICS,
    MASS_MATRIX,
)
from dyn_core.validation import shown
from dyn_plugins._options import CORRECTION
from dyn_plugins.dynamics._articulated import (
    accelerations_from_forces,
    articulated_joints,
    delassus_matrix,
    propagate_to_base,
)
from dyn_plugins.kinematics.body_motion import outward
from dyn_plugins.loops.loops import constraint_forces

ROUNDING = 1e-9  # gain that counts as rounding, relative to the energy of impulses
SLOTS = {
    "forward_dynamics": FORWARD_DYNAMICS,
    "contact_solver": CONTACT_SOLVE,
    "bias": BIAS_FORCE,
    "mass_matrix": MASS_MATRIX,
}
FILLS = {
    "forward_dynamics": "aba",
    "contact_solver": "projected_gauss_seidel",
    "bias": "bias",
    "mass_matrix": "crba",
}


class DeepestPoints:
    """The deeper half of a shape's points on a half-space, in their order.

    An odd number of points is halved downwards; a shape with one or two has all of
    them. Of equal gaps, the earlier count as deeper. The other points lie above: a
    velocity that the deeper points allow never brings them below, unless the shape is
    inside of the half-space. The choice depends on values, so it is traced. `points`
    are ContactCandidates in gap, place and forces alone; `count` counts the shape's.
    """

    def __init__(self, points):
        """Choose from `points`: all ContactCandidates of a shape on a half-space."""
        self.points, self.count = points, len(points)
        self._few = self.count // 2 if self.count > 2 else self.count
        if self._few == self.count:
            return
        deeper = [0.0] * self.count  # number of deeper points, for each point
        for j, point in enumerate(points):
            for i in range(j):
                less = where(point.gap < points[i].gap, 1.0, 0.0)
                deeper[i], deeper[j] = deeper[i] + less, deeper[j] + (1.0 - less)
        self._chosen = [count < self._few - 0.5 for count in deeper]
        self._until, count = [], 0.0  # number of chosen points up to each, inclusive
        for chosen in self._chosen:
            count = count + where(chosen, 1.0, 0.0)
            self._until.append(count)
        places = self.of_half([[point.gap, *point.place] for point in points])
        self.points = [
            point.placed(gap, Vector(xyz))
            for point, (gap, *xyz) in zip(points, places, strict=False)
        ]

    def of_half(self, lists):
        """Return the deeper half of `lists`, which has one for each point, in order."""
        picked = []
        for place in range(self._few):
            # The last point that can have this index in the half.
            last = place + self.count - self._few
            values = lists[last]
            for i in reversed(range(place, last)):
                values = _either(self._until[i] > place + 0.5, lists[i], values)
            picked.append(values)
        return picked

    def of_all(self, lists):
        """Return a list of numbers for each point, zeros outside of the deeper half.

        `lists` itself is returned if no point is outside.
        """
        if self._few == self.count:
            return lists
        spread = []
        for i, chosen in enumerate(self._chosen):
            first = max(0, i - self.count + self._few)
            values = lists[first]
            for place in range(first + 1, min(i + 1, self._few)):
                values = _either(self._until[i] > place + 0.5, lists[place], values)
            spread.append([where(chosen, x, 0.0) for x in values])
        return spread


def _either(condition, a, b):
    """Return list a if the condition holds, else list b, element by element."""
    return [where(condition, x, y) for x, y in zip(a, b, strict=True)]


def points_by_shape(touching, deepest):
    """Return DeepestPoints by shape and half-space, or by point unless `deepest`."""
    shapes = {}
    for k, point in enumerate(touching):
        shapes.setdefault(point.pair if deepest else k, []).append(point)
    return [DeepestPoints(points) for points in shapes.values()]


def impulses_of_half(shapes, impulses):
    """Return the impulses of points with rows from those of all, three for each."""
    return _by_shape([(x.of_half, x.count) for x in shapes], impulses)


def impulses_of_all(shapes, impulses):
    """Return the impulses of all points, three for each; zero without rows."""
    return _by_shape([(x.of_all, len(x.points)) for x in shapes], impulses)


def _by_shape(changes, impulses):
    """Return impulses, three for each point, to which functions are applied by shape.

    changes: Pairs (function of a list of triples, number of points), by shape.
    """
    first, changed = 0, []
    for change, count in changes:
        starts = range(first, first + 3 * count, 3)
        for three in change([list(impulses[k : k + 3]) for k in starts]):
            changed += three
        first += 3 * count
    return Vector(changed)


def contact_euler(model, q, qd, tau, dt, warm, f_ext, **parts):
    """Return the state one step later, with contact constraints on the gaps at its end.

        qd_next = qd + dt FD(q, qd, tau) + gyroscopic change + H^-1 J.T lambda
        q_next = q (+) dt qd_next
        0 <= lambda_n  orthogonal to  u_n + gap / dt >= 0,   friction cones

    Every point of the robot's shapes that can touch a half-space of the world has three
    rows, near or far; the gap of a far point makes its impulse zero. For an overlap the
    bias is max(erp gap / dt, -push_out_speed) in place of gap / dt; a contact that
    closes faster than the restitution threshold bounces. A shape with more than two
    points (box, cylinder) has rows for the deeper half of them; the others have no
    impulse. The Delassus matrix comes from the articulated inertias. With the solver
    projected_gauss_seidel the whole step is one kernel.

    Shapes other than sphere, capsule, box and cylinder, and invalid options, raise
    UnsupportedError when the Program is built; errors of the slots pass through. A
    contact solver that does not converge is no error: see the status.

    Args:
        model, q, qd, tau, dt, warm, f_ext: Robot, and inputs as in the module.
        parts: The slots forward_dynamics, contact_solver (of CONTACT_SOLVE), bias and
            mass_matrix, and the options: world, list of half-spaces; links, names of
            the links whose shapes touch, None for all; erp, fraction of an overlap that
            a step corrects; push_out_speed, largest speed of this correction [m/s];
            restitution_threshold, speed of approach below which there is no restitution
            [m/s]; solver_options, options of the contact solver.

    Returns:
        q_next, nq; qd_next, nv; impulses in the order of the contacts (normal and two
        tangents of each), m = 3 c [N·s]; gaps before the step, c [m]; and residuals,
        iterations and status of the contact solver. Contacts are ordered by half-space,
        then by shape in the order of model.shapes.

    Source: LCP-4 (Stewart-Trinkle), LCP-10 (Newton's restitution), LCP-11, LCP-3.
    """
    inputs = StepInputs(model, q, qd, tau, dt, warm, f_ext)
    u, proof = _velocity_and_outputs(contact_biases.stewart_trinkle, inputs, parts)
    return *advance(model, q, u, dt), *proof


def contact_anitescu_potra(model, q, qd, tau, dt, warm, f_ext, **parts):
    """Return the state one step later, with velocity constraints at touching contacts.

        gap <= 0:  0 <= lambda_n  orthogonal to  u_n + e u_n(before) >= 0

    e is the restitution. Overlaps are also corrected by erp. A gap above 1e-9 m has no
    impulse. UnsupportedError: a shape is no sphere, capsule, box or cylinder.

    Args:
        model, q, qd, tau, dt, warm, f_ext: Robot, and inputs as in the module.
        parts: Slots forward_dynamics, contact_solver, bias, mass_matrix; options world,
            links, erp, push_out_speed, restitution_threshold, solver_options.

    Returns:
        q_next, nq; qd_next, nv; impulses, m [N·s]; gaps before the step, c [m]; and
        residuals, iterations and status of the contact solver.

    Source: LCP-4 (Anitescu-Potra), LCP-10.
    """
    inputs = StepInputs(model, q, qd, tau, dt, warm, f_ext)
    u, proof = _velocity_and_outputs(contact_biases.anitescu_potra, inputs, parts)
    return *advance(model, q, u, dt), *proof


def contact_moreau_jean(model, q, qd, tau, dt, warm, f_ext, **parts):
    """Return the state one step later by the midpoint scheme of Moreau and Jean.

        q_m = q (+) dt qd / 2,   q_next = q_m (+) dt qd_next / 2
        gap(q_m) <= 0:  0 <= lambda_n  orthogonal to  u_n + e u_n(before) >= 0

    e is the restitution. Contacts with gap(q_m) above 1e-9 m have no impulse in this
    step. UnsupportedError: a shape is no sphere, capsule, box or cylinder.

    Args:
        model, q, qd, tau, dt, warm, f_ext: Robot, and inputs as in the module.
        parts: Slots forward_dynamics, contact_solver, bias, mass_matrix; options world,
            links, erp (0 unless given, as in Moreau's scheme), push_out_speed,
            restitution_threshold, solver_options.

    Returns:
        q_next, nq; qd_next, nv; impulses, m [N·s]; gaps at the midpoint, c [m]; and
        residuals, iterations and status of the contact solver.

    Source: LCP-4 (Moreau-Jean), LCP-10; dynamics are evaluated at q_m.
    """
    q, qd = advance(model, q, qd, dt * 0.5)
    inputs = StepInputs(model, q, qd, tau, dt, warm, f_ext, remaining=0.5)
    u, proof = _velocity_and_outputs(contact_biases.moreau_jean, inputs, parts)
    return *advance(model, q, u, dt * 0.5), *proof


def _velocity_and_outputs(rule, inputs, parts):
    """Return the velocity after the step, along the initial axes, and other outputs.

    The latter are a tuple of impulses, gaps, residuals, iterations and status.
    """
    solved = solved_contacts(rule, inputs, StepParts.of(**parts), deepest=True)
    return solved.velocity, solved.outputs


class StepInputs(NamedTuple):
    """Robot and inputs of a step with contacts, as in the module; gaps are taken at q.

    remaining: Part of the step that follows q; 0.5 in a midpoint scheme.
    """

    model: Any
    q: Any
    qd: Any
    tau: Any
    dt: Any
    warm: Any
    f_ext: Any
    remaining: float = 1.0


class StepParts(NamedTuple):
    """Slots, half-spaces, touching links (None: all) and options of a contact step."""

    forward_dynamics: Any
    contact_solver: Any
    bias: Any
    mass_matrix: Any
    world: Any
    links: Any
    solver_options: Any
    rule_options: Any

    @classmethod
    def of(cls, **parts):
        """Return StepParts; other names: rule_options; a missing name is a KeyError."""
        step = {name: parts.pop(name) for name in cls._fields[:-1]}
        return cls(**step, rule_options=parts)


class SolvedContacts(NamedTuple):
    """Contacts of a step and its solution; lists by point with rows (DeepestPoints).

    Attributes:
        velocity: Velocity after the step along the initial axes, nv [rad/s | m/s].
        motions: Pairs of the motion of its body before the step, and after it without
            contacts, body coordinates.
        active: Whether it takes part in the step: a condition, or True.
        bias: Bias of the normal velocity [m/s].
        G: Delassus matrix of the points with rows, three rows for each.
        mean: Arguments force, dt and remaining of gyroscopic_change.
        outputs: Impulses and gaps of all points, residuals, iterations and status of
            CONTACT_STEP.
    """

    velocity: Vector
    touching: list[Any]
    motions: list[Any]
    active: list[Any]
    bias: list[Any]
    G: Any
    mean: tuple[Any, ...]
    outputs: tuple[Any, ...]


def solved_contacts(rule, inputs, parts, deepest=False):
    """Solve the contacts of a step, and return its SolvedContacts.

    `rule`, of contact_biases.py, says which contacts are active, and their bias. With
    `deepest`, only the DeepestPoints have rows. If no shape can touch a half-space,
    lists are empty, numbers zero, and the velocity is the one without contacts.

    Source: LCP-3, LCP-4.
    """
    model, q, qd, tau, dt, warm, f_ext, remaining = inputs
    qdd = parts.forward_dynamics(q, qd, tau, f_ext[1:])
    free = qd + rate_in_initial_axes(model, qd, qdd) * dt
    mean = tau - parts.bias(q, qd, f_ext[1:]), dt, remaining
    free = free + gyroscopic_change(model, parts.mass_matrix(q), qd, *mean)
    position, speed = split_q(model, q), split_v(model, free)
    X, S, v, _ = outward(model, position, speed, speed, Motion.zero())
    before = outward(model, position, split_v(model, qd), speed, Motion.zero())[2]
    joints, _ = articulated_joints(model, X, S)
    touching = contacts(model, X, parts.world, parts.links)
    if not touching:
        nothing = Vector(()), Vector(()), Vector.zeros(5), 0.0, 0.0
        return SolvedContacts(free, [], [], [], [], Matrix(()), mean, nothing)
    gaps, shapes = Vector(x.gap for x in touching), points_by_shape(touching, deepest)
    touching = [point for shape in shapes for point in shape.points]
    warm = impulses_of_half(shapes, warm)
    rows, b, motions, taking_part, biases = [], [], [], [], []
    for contact in touching:
        i, forces = contact.body, contact.forces
        motions.append((before[i], v[i]))
        active, opening = normal_bias(
            rule, contact, contact.gap, motions[-1], dt, parts.rule_options
        )
        if active is not True:
            mask = where(active, 1.0, 0.0)
            # Without forces and with an opening velocity, the impulse is zero.
            forces = [f * mask for f in forces]
            opening = where(active, opening, 1.0)
        taking_part.append(active)
        biases.append(opening)
        b += [forces[0] @ v[i] + opening, *(f @ v[i] for f in forces[1:])]
        rows += [_ContactRow(i, f) for f in forces]
    layout = ConstraintLayout(tuple(("contact", 3) for _ in touching))
    responses = [propagate_to_base(model, joints, *row.body_forces[0]) for row in rows]
    G, mu = delassus_matrix(joints, responses), Vector(x.mu for x in touching)
    zeros, unbounded = Vector.zeros(layout.m), Vector([float("inf")] * layout.m)
    bounds = zeros, unbounded, zeros, warm
    solution = parts.contact_solver(
        layout, G, Vector(b), mu, *bounds, **parts.solver_options
    )
    impulse, velocity, residuals, iterations, status = solution
    impulse = without_gain(impulse, velocity, b)
    forces, pulls = constraint_forces(model, rows, impulse)
    push = [-f for f in forces]
    change = accelerations_from_forces(model, joints, pulls, push).qdd
    outputs = impulses_of_all(shapes, impulse), gaps, residuals, iterations, status
    u = free + join_v(model, change)
    return SolvedContacts(u, touching, motions, taking_part, biases, G, mean, outputs)


def without_gain(impulse, velocity, b):
    """Return impulses that add no energy, m: the solver's, scaled down if necessary.

        s b . lambda + s² lambda . G lambda / 2

    is the energy that s lambda adds. With s = 1 it is positive only if the solver has
    not converged; then s in [0, 1] minimises it. A gain within rounding is accepted.

    Args:
        impulse, velocity: lambda and G lambda + b, m.
        b: Velocity without impulses, plus the bias of the normal rows, m.

    Source: ours.
    """
    power = total(x * y for x, y in zip(impulse, b, strict=True))
    square = total(x * y for x, y in zip(impulse, velocity, strict=True)) - power
    part = best_part(power, square)
    part = where(power + 0.5 * square > ROUNDING * square, part, 1.0)
    return Vector(x * part for x in impulse)


def normal_bias(rule, contact, gap, motions, dt, parameters, approach=None):
    """Return whether a contact takes part (condition or True), and its bias [m/s].

    motions: Of the body before the step, and after it without contacts, body axes.
    approach: Normal velocity before, closing below 0 [m/s]; None: of the motions.
    """
    before, free = (contact.forces[0] @ v for v in motions)
    approach = before if approach is None else approach
    part, bias, _ = rule(gap, free, approach, dt, contact.restitution, **parameters)
    return part, bias


class _ContactRow:
    """A unit impulse on a body, with the attributes of a LoopRow.

    body_forces is one pair (index of the body, Force in its coordinates).
    """

    joint_forces = ()

    def __init__(self, body, force):
        self.body_forces = [(body, force)]


@dataclass(eq=False)
class ContactCandidate:
    """A point of a shape that can touch a half-space.

    Attributes:
        pair: Index of the pair of shape and half-space.
        gap: Distance from the half-space; negative: overlap [m].
        place: Contact point midway between the surfaces, body coordinates [m].
        axes, turned: Normal, out of the half-space, and two tangents, in base and body
            coordinates.
        material, mu, restitution: Combined of the two surfaces.
        centre, radius: Ball at the point of the shape, body coordinates [m].
        forces: Unit forces at the contact point along the axes, body coordinates.
    """

    pair: int
    body: int
    gap: Any
    place: Vector
    axes: list[Vector]
    turned: list[Vector]
    material: Any
    centre: Vector
    radius: float
    forces: list[Force] = field(init=False)

    def __post_init__(self):
        self.mu, self.restitution = self.material.mu, self.material.restitution
        self.forces = [Force(cross3(self.place, axis), axis) for axis in self.turned]

    def placed(self, gap, place):
        """Return a copy with another gap [m], place (body axes [m]), and so forces."""
        return replace(self, gap=gap, place=place)


def contacts(model, X, world, links):
    """Return a ContactCandidate for each point of shapes that can touch a half-space.

        gap = n . (R x + p) - n . p_0 - radius

    Args:
        model: Robot.
        X: By body, its Transform from its parent; entry 0 is not read.
        world: Half-spaces.
        links: Names of the links whose shapes count; None: all.

    Returns:
        List in the order of `pairs`, near and far points alike; its length does not
        depend on X.

    Raises:
        UnsupportedError: A shape is no sphere, capsule, box or cylinder.

    Source: LCP-2.
    """
    X_0, points = [None], []
    for i in model.bodies:
        p = model.parent[i]
        X_0.append(X[i] @ X_0[p] if p else X[i])
    for pair, (half, placed) in enumerate(pairs(model, world, links)):
        X_i = X_0[placed.body]
        n = Vector(half.normal)
        in_base = [n, *(Vector(t.tolist()) for (t,) in tangents([half.normal]))]
        axes = [X_i.E @ axis for axis in in_base]
        lowest = n @ X_i.r - n @ Vector(half.point)
        material = model.material(placed.link).combined(half.material)
        for x, radius in candidate_points(placed, axes[0]):
            point = x - axes[0] * radius
            gap = axes[0] @ point + lowest
            place = point - axes[0] * (gap * 0.5)  # midway between the surfaces
            known = pair, placed.body, gap, place, in_base, axes, material, x, radius
            points.append(ContactCandidate(*known))
    return points


def half_spaces(model, world):
    """Raise UnsupportedError unless `world` has HalfSpaces only, TypeError for None."""
    for half in world:
        if not isinstance(half, HalfSpace):
            raise UnsupportedError(f"world: {shown(half)}; valid: a list of HalfSpace")


def linked_shapes(model, links):
    """Check `links`, a list, set or None; with a model, also that all have shapes."""
    if links is not None and not isinstance(links, (list, tuple, set, frozenset)):
        raise UnsupportedError(f"links {shown(links)}; valid: a list of links, or None")
    if model is None:
        return
    known = [placed.link for placed in model.shapes]
    for name in links or ():
        if name not in known:
            raise UnsupportedError(
                f"links: '{name}' has no shape; valid:"
                f" {', '.join(dict.fromkeys(known)) or 'none has'}"
            )


def pairs(model, world, links):
    """Return a list of pairs (half-space, placed shape) in the order of the contacts.

    All shapes of the first half-space of `world` come first, in the order of
    model.shapes. Shapes fixed to the base, and shapes of links not in `links` (None:
    all), are left out.
    """
    return [
        (half, placed)
        for half in world
        for placed in model.shapes
        if placed.body and (links is None or placed.link in links)
    ]


def sizes(model, options):
    """Return the named sizes of the Ports, {"m": rows, "c": contacts}, with m = 3 c.

    Args:
        model: Robot.
        options: Options of the solver; `world` and `links` select the contacts.

    Raises:
        UnsupportedError: A shape is no sphere, capsule, box or cylinder.
    """
    count = 0
    for half, placed in pairs(model, options["world"], options["links"]):
        count += len(candidate_points(placed, Vector(half.normal)))
    return {"m": 3 * count, "c": count}


class ContactStep(TracedSolver):
    """A step whose slot contact_solver is built while the algorithm runs.

    Its layout is known only then; its options are checked before.
    """

    def _adapter(self, model, common, chosen):
        """Return the Adapter of the algorithm for a model; check solver_options."""
        adapter = super()._adapter(model, common, chosen)
        solver = adapter.slots["contact_solver"].solver
        check_options(solver, adapter.options["solver_options"])
        return adapter


VALID = {"world": half_spaces, "links": linked_shapes, **CORRECTION}


def step_options(erp):
    """Return {name: default} of the options of contact steps; erp gives its default."""
    return {
        "world": (HalfSpace(),),
        "links": None,
        "erp": erp,
        "push_out_speed": contact_biases.PUSH_OUT_SPEED,
        "restitution_threshold": 0.05,
        "solver_options": {},
    }


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    steps = {contact_euler: 0.2, contact_anitescu_potra: 0.2, contact_moreau_jean: 0.0}
    return [
        ContactStep(
            algorithm.__name__,
            CONTACT_STEP,
            algorithm,
            slots=SLOTS,
            fills=FILLS,
            options=step_options(erp),
            valid=VALID,
            sizes=sizes,
            by_joint=False,
        )
        for algorithm, erp in steps.items()
    ]
