"""Runs and steps with contacts beside peers; a table of solvers x problems."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.cases import STATES, Robot, named
from bench.contact import (
    contact_batches,
    contact_peers,
    contact_protocols,
    contact_runs,
)
from bench.contact.contact_peers import PeerTiming, StandingStates
from bench.printed_tables import Progress, Table
from bench.rollout import version
from dyn_core import robots
from dyn_core.commands.timing import per_call
from dyn_core.contact import ConstraintLayout, ConstraintProblem, solve
from dyn_core.errors import UnsupportedError
from dyn_core.model import Model, load_urdf
from dyn_core.model.sources import example_robots
from dyn_core.problems import CONTACT_SOLVE
from dyn_core.sharing import cached_property
from dyn_core.solving.registry import solver, solvers

ROWS, DT, SETTLE = 4096, 1e-3, 400
STAND = (0.0, 0.7, -1.4) * 4  # abduction, hip and knee of each leg [rad]
STIFF, DAMP = 60.0, 1.5  # of the springs that hold it [N·m/rad], [N·m·s/rad]
STEPS = ("contact_euler", "contact_anitescu_potra", "contact_moreau_jean")
SINGLE = ("contact_euler", "float32", 1e-6)  # 24 bits reach no smaller tolerance
SLOW = 0.05  # solutions that take longer are timed once [s]
GRAVITY, H = 9.81, 0.01
SIZES = (2, 6, 12)  # contacts of the random problems
SHORT = {"converged": "ok", "max_iterations": "limit", "not_unique": "many"}
LEGEND = f"""\
{contact_runs.LEGEND}
{contact_protocols.LEGEND}
{contact_batches.LEGEND}
Steps: the shipped quadruped, floating, on its four spheres; {DT * 1e3:g} ms a step;
{STATES} states after {SETTLE} steps under springs from joints to a stance; joint forces
constant over the step, warm starts. us: one call from Python; k/s: a batch of {ROWS}
rows on one core; law: the largest relative residual of the exact law of Coulomb, in the
batch. Tolerance: 1e-9 in Pinocchio, MuJoCo's own there. mujoco: the
same URDF on a plane, elliptic cones, dense Jacobian, limits and dry friction of joints
off; it solves a softened, convex problem; its batch is mujoco.rollout on one thread.
pinocchio: free velocity, inertia, Delassus operator and solver, called from Python;
where feet touch is given, and nothing is integrated. call, batch: how much faster the
first row is. Derivatives: by state, joint forces, friction and gaps, the step within;
solved: with the step's own impulses as warm start; flagged: share of states at a border
of modes; humanoid: G1 of example-robot-data, four spheres or a box a foot. Solvers:
status, residual of the solver's own law (relative) / largest residual of the exact laws
[N·s, m/s, J], iterations, us of a solution from zero. '-': not for this kind or size of
problem. A solver that relaxes the laws is 'ok' by its own and not by the exact ones."""


class Shaped(Robot):
    """A robot that keeps its shapes."""

    @cached_property
    def model(self) -> Model:
        """The robot here."""
        return load_urdf(self.path, root_joint="floating")


def quadruped() -> Shaped:
    """Return the shipped quadruped on its own feet."""
    name = "quadruped"
    return Shaped(name, robots.path(name), floating=True)


def tables(progress: Progress) -> Iterator[tuple[str, Table]]:
    """Return titles and tables, one after the other as they are measured."""
    yield from contact_runs.tables(progress)
    yield "steps warm and cold, beside both cones", contact_protocols.table(progress)
    yield "batches of the scenes, one core", contact_batches.table(progress)
    yield "contact steps of a standing quadruped, 18 dof", _steps(progress)
    yield "derivatives of contact steps", _derivatives(progress)
    yield "solvers: status law/exact iterations us", _solvers(progress)


def standing(program: Any, model: Model, rows: int, steps: int) -> StandingStates:
    """Return states of a quadruped that a Program holds on its feet.

    Args:
        program: Of CONTACT_STEP.
        model: The quadruped.
        rows: How many; they begin near the stance, a little above the floor.
        steps: Steps until they are taken.
    """
    rng, stand = np.random.default_rng(7), np.array(STAND)
    q = np.tile(np.asarray(model.neutral()), (rows, 1))
    q[:, 2] = 0.42 * math.cos(STAND[1]) + 0.025
    q[:, 7:] = stand + rng.uniform(-0.05, 0.05, (rows, 12))
    v = rng.uniform(-0.1, 0.1, (rows, model.nv))
    warm, tau = np.zeros((rows, 12)), np.zeros((rows, model.nv))
    standing_states = StandingStates(q, v, tau, warm, DT)
    for _ in range(steps):
        tau = np.zeros_like(v)
        tau[:, 6:] = STIFF * (stand - q[:, 7:]) - DAMP * v[:, 6:]
        standing_states = StandingStates(q, v, tau, warm, DT)
        q, v, warm, *_ = program(q, v, tau, DT, warm)
    return standing_states


def _steps(progress: Progress) -> Table:
    """Measure the steps here, and the peers from states of the first."""
    robot = quadruped()
    table = [
        ["step", "us", "k/s core", "contacts", "iterations", "law", "call", "batch"]
    ]
    measured = []
    for name, dtype, tolerance in (*((x, "float64", 1e-9) for x in STEPS), SINGLE):
        progress(f"quadruped: {name}, {dtype}")
        program = solver(name).build(
            robot.model, engine="native", threads=1, dtype=dtype,
            solver_options={"tolerance": tolerance},
        )  # fmt: skip
        program.prepare(batch=True)
        states = standing(program, robot.model, STATES, SETTLE)
        label = f"{name}, projected_gauss_seidel, {dtype}, tolerance {tolerance:g}"
        measured.append((_measured(label, program, states), states))
        table.append(_line(measured[-1][0]))
    first, states = measured[0]
    peers: tuple[tuple[str, Callable[[], list[PeerTiming]]], ...] = (
        ("mujoco", lambda: [contact_peers.mujoco(robot, states, SETTLE // 4)]),
        ("pin", lambda: contact_peers.pinocchio(robot, states)),
    )
    for name, measure in peers:
        if not version(name):
            progress(f"{name} is not installed; its rows are left out")
            continue
        progress(f"quadruped: {version(name)}")
        rows = measure()
        if not rows:
            progress(f"{name} has no solver of contacts in its bindings")
        table += [_line(one, first) for one in rows]
    return table


FEET = {
    "sphere feet": [
        {"type": "sphere", "radius": 0.005, "xyz": [x, y, -0.03]}
        for x, y in ((-0.05, 0.025), (-0.05, -0.025), (0.12, 0.03), (0.12, -0.03))
    ],
    "box feet": [{"type": "box", "size": [0.17, 0.06, 0.03], "xyz": [0.035, 0, -0.02]}],
}
SOLES = ("left_ankle_roll_link", "right_ankle_roll_link")
HUMANOID = "g1_29dof_rev_1_0"
HOLD, CALM = 30.0, 0.3  # of the springs that hold it [N·m/rad], [N·m·s/rad]


def humanoid(feet: str) -> Model:
    """Return G1 of example-robot-data; its feet are one of FEET."""
    extras = {
        "materials": {"default": {"mu": 0.8}},
        "collisions": {link: {"replace": FEET[feet]} for link in SOLES},
    }
    return load_urdf(
        named(HUMANOID, True).path, root_joint="floating", extras=extras, check="warn"
    )


def _standing_humanoid(program: Any, model: Model, rows: int) -> StandingStates:
    """Return states of a humanoid that springs hold on its soles."""
    start = np.asarray(model.neutral()).copy()
    warm = np.zeros(program.inputs[4].shape)
    still = np.zeros(model.nv)
    start[2] -= float(program(start, still, still, DT, warm).gap.min())
    q, v = start, 0.05 * np.random.default_rng(7).normal(size=model.nv)
    states = []
    for _ in range(rows + 100):
        tau = np.zeros(model.nv)
        tau[6:] = HOLD * (start[7:] - q[7:]) - CALM * v[6:]
        states.append((q, v, tau, warm))
        q, v, warm, *_ = program(q, v, tau, DT, warm)
    q, v, tau, warm = (np.array(x) for x in zip(*states[-rows:], strict=True))
    return StandingStates(q, v, tau, warm, DT)


def _derivatives(progress: Progress) -> Table:
    """Measure derivatives of steps beside the steps themselves."""
    table = [["derivatives of", "robot", "step us", "us", "us solved", "flagged"]]
    model = quadruped().model
    for name in STEPS:
        progress(f"quadruped: derivatives of {name}")
        program = solver(name).build(model, engine="native", threads=1)
        states = standing(program, model, STATES, SETTLE)
        table.append([name, "quadruped", *_gradient_times(name, model, states, {})])
    if example_robots.home() is None:
        progress("example-robot-data is not installed; the humanoid is left out")
        return table
    for feet in FEET:
        progress(f"humanoid on {feet}")
        model, links = humanoid(feet), {"links": SOLES}
        program = solver(STEPS[0]).build(model, engine="native", threads=1, **links)
        states = _standing_humanoid(program, model, STATES)
        times = _gradient_times(STEPS[0], model, states, links)
        table.append([STEPS[0], f"humanoid, {feet}", *times])
    return table


def _gradient_times(
    name: str, model: Model, states: StandingStates, choices: dict[str, Any]
) -> list[str]:
    """Return us of a step, of its derivatives, of those once solved; flagged states."""
    calls = list(zip(*states[:4], strict=True))
    times, programs = [], []
    for one in (name, f"{name}_derivatives"):
        program = solver(one).build(model, engine="native", threads=1, **choices)
        program.prepare()
        out = tuple(np.empty(port.shape) for port in program.outputs)
        space = {"p": program, "o": out}
        programs.append((program, space))
    statement, inputs = f"p(q, v, t, {DT}, w, out=o)", "q, v, t, w"
    times = [per_call(statement, calls, inputs, space) for _, space in programs]
    step, derivatives = programs[0][0], programs[1][0]
    solved = [(*x[:3], step(*x[:3], DT, x[3]).impulse) for x in calls]
    times.append(per_call(statement, solved, inputs, programs[1][1]))
    flags = [derivatives(*x[:3], DT, x[3]).not_differentiable for x in calls]
    return [
        *(f"{1e6 * x:.2f}" for x in times),
        f"{np.count_nonzero(flags) / len(flags):.2f}",
    ]


def _measured(label: str, program: Any, states: StandingStates) -> PeerTiming:
    """Measure a Program of CONTACT_STEP on states, one by one and as a batch."""
    dtype = program.dtype
    calls = list(zip(*(x.astype(dtype) for x in states[:4]), strict=True))
    inputs, statement = "q, v, t, w", f"p(q, v, t, {DT}, w, out=o)"
    out = tuple(np.empty(port.shape, dtype) for port in program.outputs)
    call = per_call(statement, calls, inputs, {"p": program, "o": out})
    rows = max(1, ROWS // len(calls)) * len(calls)
    copies = rows // len(calls)
    batch = [tuple(np.tile(x.astype(dtype), (copies, 1)) for x in states[:4])]
    out = tuple(np.empty((rows, *port.shape), dtype) for port in program.outputs)
    rate = rows / per_call(statement, batch, inputs, {"p": program, "o": out})
    impulse, iterations = out[2], out[5]
    contacts = (impulse[:, ::3] > 0).sum(axis=1).mean()
    means = float(contacts), float(iterations.mean())
    return PeerTiming(label, call, rate, *means, float(out[4][:, -1].max()))


def _line(one: PeerTiming, here: PeerTiming | None = None) -> list[str]:
    """Return a row; of a peer with how much faster a step here is."""
    line = [one.name, f"{one.call * 1e6:.2f}"]
    line.append("" if one.rate is None else f"{one.rate / 1e3:.1f}")
    line += [f"{one.contacts:.1f}", f"{one.iterations:.1f}"]
    line.append("" if one.law is None else f"{one.law:.0e}")
    if here is None:
        return [*line, "", ""]
    batch = f"{here.rate / one.rate:.1f}x" if here.rate and one.rate else ""
    return [*line, f"{one.call / here.call:.1f}x", batch]


def problems() -> dict[str, ConstraintProblem]:
    """Return the problems of the table by name: worked cases, and random ones.

    Source: worked cases C1, C3, C5, C6 and C10 of LCP; the random ones are ours.
    """
    off = -0.75 * math.sqrt(3)
    rod, one = [[1.75, off], [off, 3.25]], [("contact", 2)]
    problems = {
        "C1 incline, sticks": _box(20.0, 0.5),
        "C1 incline, slides": _box(35.0, 0.4),
        "C3 box at rest": _box(0.0, 0.0),
        "C5 Painleve": _problem(one, rod, [-GRAVITY * H, -1.0], 2.0),
        "C5 three answers": _problem(one, rod, [0.118406350946, -0.875], 2.0),
        "C6 stack (1, 1)": _stack(1.0, 1.0),
        "C6 stack (1, 1000)": _stack(1.0, 1000.0),
        "C10 sliding point": _problem(
            ["contact"], np.eye(3), [-GRAVITY * H, 1.0, 0.0], 0.5
        ),
    }
    for kind, mu in (("pd", 0.5), ("singular", 0.5), ("ratio 1e6", 0.5), ("mu 10", 10)):
        for n in SIZES:
            problems[f"random {kind}, {n}"] = _random(kind, n, mu)
    return problems


def _problem(blocks: Any, G: Any, b: Any, mu: float = 0.0) -> ConstraintProblem:
    """Return a problem of lists."""
    layout = ConstraintLayout.of(*blocks)
    return ConstraintProblem(layout, np.array(G), np.array(b), mu=mu)


def _box(degrees: float, mu: float) -> ConstraintProblem:
    """Return a box of 2 kg on its four corners on an incline."""
    m, (a, b, c), angle = 2.0, (0.5, 0.4, 0.25), math.radians(degrees)
    inertia = m / 3 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    corners = [(x * a, y * b, -c) for x in (1, -1) for y in (1, -1)]
    axes = np.eye(3)[[2, 0, 1]]
    J = np.vstack([np.hstack([axes, np.cross(r, axes)]) for r in corners])
    G = (J / np.array([m, m, m, *inertia])) @ J.T
    free = H * GRAVITY * np.array([math.sin(angle), 0, -math.cos(angle), 0, 0, 0])
    return _problem(["contact"] * 4, G, J @ free, mu)


def _stack(m1: float, m2: float) -> ConstraintProblem:
    """Return two boxes on each other."""
    G = [[1 / m1, -1 / m1], [-1 / m1, 1 / m1 + 1 / m2]]
    return _problem(["unilateral"] * 2, G, [-GRAVITY * H, 0.0])


def _random(kind: str, n: int, mu: float) -> ConstraintProblem:
    """Return n random contacts: singular ones have too few coordinates."""
    rng = np.random.default_rng([7, n])
    nv = 3 * n - 2 if kind == "singular" else 3 * n + 2
    J = rng.normal(size=(3 * n, nv))
    ratio = kind.startswith("ratio")
    inverse = 10.0 ** rng.uniform(-3, 3, nv) if ratio else np.ones(nv)
    free = rng.normal(size=nv) * np.sqrt(inverse)
    return _problem(["contact"] * n, (J * inverse) @ J.T, J @ free, mu)


def _solvers(progress: Progress) -> Table:
    """Solve each problem by each solver."""
    names = []
    for name in solvers(CONTACT_SOLVE, references=True):
        try:
            solve(_stack(1.0, 1.0), name)  # no solver refuses this kind of problem
        except UnsupportedError as error:
            progress(f"{name} is left out: {error}")
            continue
        names.append(name)
    table = [["problem", *names]]
    for title, problem in problems().items():
        progress(f"solvers: {title}")
        table.append([title, *(_cell(problem, name) for name in names)])
    return table


def _cell(problem: ConstraintProblem, name: str) -> str:
    """Return status, residuals, iterations and time of a solution."""
    try:
        solution = solve(problem, name)
    except UnsupportedError:
        return "-"
    start = time.process_time()
    solve(problem, name)
    seconds = time.process_time() - start
    if seconds < SLOW:
        space = {"go": solve, "n": name}
        seconds = per_call("go(p, n)", [(problem,)], "p", space)
    *exact, law = solution.residuals
    status = SHORT.get(solution.status, solution.status)
    return (
        f"{status} {law:.0e}/{max(exact):.0e} {solution.iterations} {seconds * 1e6:.0f}"
    )
