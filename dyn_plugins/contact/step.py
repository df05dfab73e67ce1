"""A step of a robot with contacts as one text: points of its shapes on half-spaces."""

from dyn_core import (
    CONTACT_SOLVE,
    CONTACT_STEP,
    FORWARD_DYNAMICS,
    Force,
    Motion,
    TextSolver,
    UnsupportedError,
    Vector,
    advance,
    cross3,
    hookimpl,
    join_v,
    split_q,
    split_v,
    start_axes,
)
from dyn_core.contact import ConstraintLayout, stepping
from dyn_core.contact.halfspaces import HalfSpace, candidate_points
from dyn_core.contact.rows import tangents
from dyn_core.scalar import minimum, where
from dyn_plugins.aba import articulated, respond
from dyn_plugins.loops import pushed
from dyn_plugins.motion import outward
from dyn_plugins.response import felt_above, meet


def contact_euler(model, q, qd, tau, dt, warm, f_ext, **parts):
    """Give the state one step later, with contacts held at its end.

        qd_next = qd + dt FD(q, qd, tau) + H^-1 J.T lambda,   q_next = q (+) dt qd_next
        0 <= lambda_n  orthogonal to  u_n + gap / dt >= 0,   friction cones

    Every point of the robot's shapes that can touch a half-space of the world has three
    rows, far or near: what is far has no impulse by its gap. The Delassus matrix comes
    from the articulated inertias; H is never formed. With the solver
    projected_gauss_seidel all of it is one kernel.

    Args:
        model: Robot with shapes.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        tau: Joint forces, nv, constant over the step [N·m | N].
        dt: Step [s].
        warm: Impulses of the step before, m; zeros to begin [N·s].
        f_ext: Force on each body, body coordinates [N·m; N].
        parts: The slots forward_dynamics and contact_solver (of CONTACT_SOLVE), and
            the options: world, half-spaces; links, names of those whose shapes touch,
            None for all; erp, part of an overlap that is taken away in a step; slow,
            speed of approach below which nothing bounces [m/s]; solver_options, of the
            contact solver.

    Returns:
        q_next, qd_next, impulses in the order of the contacts (normal and two tangents
        of each), gaps before the step, and what the contact solver says.

    Source: LCP-4 (Stewart-Trinkle), LCP-10 (Newton's restitution), LCP-11, LCP-3.
    """
    u, proof = _kept(
        stepping.stewart_trinkle, model, q, qd, tau, dt, warm, f_ext, **parts
    )
    return *advance(model, q, u, dt), *proof


def contact_anitescu_potra(model, q, qd, tau, dt, warm, f_ext, **parts):
    """Give the state one step later, with the contacts that touch before it held.

        gap <= 0:  0 <= lambda_n  orthogonal to  u_n + e u_n(before) >= 0

    Args:
        model, q, qd, tau, dt, warm, f_ext: As contact_euler takes them.
        parts: The slots and options of contact_euler.

    Returns:
        As contact_euler gives it.

    Source: LCP-4 (Anitescu-Potra), LCP-10.
    """
    u, proof = _kept(
        stepping.anitescu_potra, model, q, qd, tau, dt, warm, f_ext, **parts
    )
    return *advance(model, q, u, dt), *proof


def contact_moreau_jean(model, q, qd, tau, dt, warm, f_ext, **parts):
    """Give the state one step later by the midpoint scheme of Moreau and Jean.

        q_m = q (+) dt qd / 2,   q_next = q_m (+) dt qd_next / 2
        gap(q_m) <= 0:  0 <= lambda_n  orthogonal to  u_n + e u_n(before) >= 0

    Args:
        model, q, qd, tau, dt, warm, f_ext: As contact_euler takes them.
        parts: The slots and options of contact_euler; erp is 0 in Moreau's own scheme.

    Returns:
        As contact_euler gives it, gaps half a step ahead.

    Source: LCP-4 (Moreau-Jean), LCP-10; dynamics are taken at q_m.
    """
    q, qd = advance(model, q, qd, dt * 0.5)
    u, proof = _kept(stepping.moreau_jean, model, q, qd, tau, dt, warm, f_ext, **parts)
    return *advance(model, q, u, dt * 0.5), *proof


def _kept(
    rule,
    model,
    q,
    qd,
    tau,
    dt,
    warm,
    f_ext,
    forward_dynamics,
    contact_solver,
    world,
    links,
    erp,
    slow,
    solver_options,
):
    """Give the velocity at the end in the start's axes, and the other outputs."""
    qdd = forward_dynamics(q, qd, tau, f_ext[1:])
    free = qd + start_axes(model, qd, qdd) * dt

    def solve(layout, G, b, mu):
        none = Vector.zeros(layout.m)
        most = Vector([float("inf")] * layout.m)
        options = solver_options
        return contact_solver(layout, G, b, mu, none, most, none, warm, **options)

    return held(model, q, qd, free, dt, (world, links, rule, (slow, erp)), solve)


def held(model, q, qd, free, dt, place, solve):
    """Give the velocity at the end in the start's axes, and the other outputs.

    Args:
        model: Robot with shapes.
        q: Where contacts are looked at, nq.
        qd: Velocity before the step, nv.
        free: Velocity after it without contacts, nv.
        dt: Step [s].
        place: World, links, the rule of stepping.py, and its numbers (slow, erp).
        solve: Gives the answer of a contact solver for layout, G, b and mu.

    Source: LCP-3, LCP-4.
    """
    world, links, rule, numbers = place
    parts = split_q(model, q), split_v(model, free), split_v(model, free)
    X, S, v, _ = outward(model, *parts, Motion.zero())
    before = outward(model, parts[0], split_v(model, qd), parts[1], Motion.zero())[2]
    felt, _ = articulated(model, X, S)
    touching = contacts(model, X, world, links)
    if not touching:
        return free, (Vector(()), Vector(()), Vector.zeros(5), 0.0, 0.0)
    kicks, b, mu = [], [], []
    for contact in touching:
        i, forces = contact.body, contact.forces
        approach = forces[0] @ before[i]
        gap = contact.gap
        if rule is stepping.stewart_trinkle and contact.restitution > 0:
            ahead = gap + minimum(forces[0] @ v[i], 0.0) * dt
            gap = where(ahead <= 0.0, minimum(gap, 0.0), gap)  # met within the step
        on, push = rule(gap, approach, dt, contact.restitution, *numbers)
        if on is not True:
            part = where(on, 1.0, 0.0)
            forces = [f * part for f in forces]
            push = where(on, push, 1.0)
        b += [forces[0] @ v[i] + push, *(f @ v[i] for f in forces[1:])]
        kicks += [_Row(i, f) for f in forces]
        mu.append(contact.mu)
    layout = ConstraintLayout(tuple(("contact", 3) for _ in touching))
    rows = [felt_above(model, felt, *kick.pushes[0]) for kick in kicks]
    found = solve(layout, meet(felt, rows), Vector(b), Vector(mu))
    impulse, _, residuals, iterations, status = found
    forces, pulls = pushed(model, kicks, impulse)
    change, _, _ = respond(model, felt, pulls, [-f for f in forces])
    gaps = Vector(contact.gap for contact in touching)
    proof = impulse, gaps, residuals, iterations, status
    return free + join_v(model, change), proof


class _Row:
    """What a unit impulse pushes, as loops have it."""

    joints = ()

    def __init__(self, body, force):
        self.pushes = [(body, force)]


class Touching:
    """A point of a shape and a half-space.

    Attributes:
        body: Number of the body.
        gap: Distance from the half-space; negative: overlap [m].
        forces: Unit forces along the normal and two tangents, body coordinates.
        mu, restitution: Of the pair of surfaces.
        words: What touches what.
    """

    def __init__(self, body, gap, forces, material, words):
        self.body, self.gap, self.forces, self.words = body, gap, forces, words
        self.mu, self.restitution = material.mu, material.restitution


def contacts(model, X, world, links):
    """Give all points of shapes that can touch half-spaces, in a fixed order.

        gap = n . (R x + p) - n . p_0 - radius

    Args:
        model: Robot.
        X: By body, transform from its parent.
        world: Half-spaces.
        links: Names of links, or None for all.

    Source: LCP-2.
    """
    X_0, found = [None], []
    for i in model.bodies:
        p = model.parent[i]
        X_0.append(X[i] @ X_0[p] if p else X[i])
    for half, placed in pairs(model, world, links):
        X_i = X_0[placed.body]
        n = Vector(half.normal)
        axes = [n, *(Vector(t.tolist()) for (t,) in tangents([half.normal]))]
        axes = [X_i.E @ axis for axis in axes]
        lowest = n @ X_i.r - n @ Vector(half.point)
        material = model.material(placed.link).combined(half.material)
        for k, (x, radius) in enumerate(candidate_points(placed, axes[0])):
            at = x - axes[0] * radius
            words = f"{placed.link}, point {k} on {half.name}"
            gap = axes[0] @ at + lowest
            at = at - axes[0] * (gap * 0.5)  # midway between the surfaces
            forces = [Force(cross3(at, axis), axis) for axis in axes]
            found.append(Touching(placed.body, gap, forces, material, words))
    return found


def pairs(model, world, links):
    """Give the pairs (half-space, placed shape) in the order of the contacts."""
    known = [placed.link for placed in model.shapes]
    for name in links or ():
        if name not in known:
            raise UnsupportedError(
                f"contact_euler: link '{name}' has no shape; valid:"
                f" {', '.join(dict.fromkeys(known)) or 'none has'}"
            )
    return [
        (half, placed)
        for half in world
        for placed in model.shapes
        if placed.body and (links is None or placed.link in links)
    ]


def _sizes(model, options):
    """Give the numbers of rows and contacts."""
    count = 0
    for half, placed in pairs(model, options["world"], options["links"]):
        count += len(candidate_points(placed, Vector(half.normal)))
    return {"m": 3 * count, "c": count}


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    steps = {contact_euler: 0.2, contact_anitescu_potra: 0.2, contact_moreau_jean: 0.0}
    return [
        TextSolver(
            text.__name__,
            CONTACT_STEP,
            text,
            slots={
                "forward_dynamics": FORWARD_DYNAMICS,
                "contact_solver": CONTACT_SOLVE,
            },
            fills={
                "forward_dynamics": "aba",
                "contact_solver": "projected_gauss_seidel",
            },
            options={
                "world": (HalfSpace(),),
                "links": None,
                "erp": erp,
                "slow": 0.05,
                "solver_options": {},
            },
            sizes=_sizes,
            by_joint=False,
        )
        for text, erp in steps.items()
    ]
