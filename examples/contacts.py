"""Contacts in five parts: slide, bounce and roll, stack, stand, drop.

Each part prints its results beside the values of formulas, where there are any, and
draws one plot, with formulas dashed (extra `plot`).

    python examples/contacts.py [folder of the plots] [part ...]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import dyn_core as dyn
from dyn_core.contact import solve
from dyn_core.planar import ChainModel, ChainSimulator, from_angles
from dyn_core.planar.chain.chain import make_chain_like
from dyn_core.planar.conversion.convert import to_urdf
from dyn_core.simulation.simulator import Recording, simulate
from dyn_core.tasks.walker import Walker, walker_chain

G = 9.81  # [m/s²]


class Figure(NamedTuple):
    """A number and its expected value; None if there is no formula."""

    name: str
    value: float
    expected: float | None = None


class Part(NamedTuple):
    """Results of a part, and a function that draws them with matplotlib."""

    figures: list[Figure]
    draw: Callable[[Any], None]


# ------------------------------------------------------------------ robots and worlds


def link(name: str, mass: float, **shape: Any) -> str:
    """Return the URDF of a solid box or ball: size=(x, y, z) or radius=r [m]."""
    if "size" in shape:
        x, y, z = shape["size"]
        I = [mass / 12 * s for s in (y * y + z * z, x * x + z * z, x * x + y * y)]
        geometry = f'<box size="{x} {y} {z}"/>'
    else:
        r = shape["radius"]
        I, geometry = [0.4 * mass * r * r] * 3, f'<sphere radius="{r}"/>'
    moments = " ".join(
        f'{k}="{v}"'
        for k, v in zip(
            ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), [*I, 0, 0, 0], strict=True
        )
    )
    return (
        f'<link name="{name}"><inertial><mass value="{mass}"/><inertia {moments}/>'
        f"</inertial><collision><geometry>{geometry}</geometry></collision></link>"
    )


def robot(name: str, *parts: str) -> str:
    """Return the URDF of a robot from its parts."""
    return f'<robot name="{name}">{"".join(parts)}</robot>'


def joint(name: str, kind: str, parent: str, child: str, axis: str = "") -> str:
    """Return the URDF of a joint."""
    limit = '<limit lower="-100" upper="100" effort="0" velocity="0"/>'
    turned = f'<axis xyz="{axis}"/>{limit}' if axis else ""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/>'
        f'<child link="{child}"/>{turned}</joint>'
    )


def ball(mu: float, restitution: float = 0.0) -> dyn.Model:
    """Return a ball of 1 kg, radius 0.1 m, whose centre has coordinates x, y, z."""
    rows = zip(
        "xyz", ("world", "a", "b"), "abc", ("1 0 0", "0 1 0", "0 0 1"), strict=True
    )
    urdf = robot(
        "ball",
        '<link name="world"/>',
        *(f'<link name="{x}"/>' for x in "abc"),
        *(joint(name, "prismatic", *rest) for name, *rest in rows),
        joint("turn", "floating", "c", "ball"),
        link("ball", 1.0, radius=0.1),
    )
    surface = {"mu": mu, "restitution": restitution}
    turn = {"turn": {"type": "spherical"}}
    return dyn.load_urdf(
        urdf, extras={"joints": turn, "materials": {"default": surface}}
    )


def tower(count: int) -> tuple[dyn.Model, np.ndarray]:
    """Return floating boxes of 1 kg, and the position of a tower."""
    names = [f"box{k}" for k in range(count)]
    urdf = robot(
        "tower", '<link name="world"/>',
        *(link(name, 1.0, size=(0.4, 0.4, 0.2)) for name in names),
        *(joint(f"free_{name}", "floating", "world", name) for name in names),
    )  # fmt: skip
    model = dyn.load_urdf(urdf, extras={"materials": {"default": {"mu": 0.5}}})
    q = model.neutral()
    for k, name in enumerate(names):
        q[model.q_slice(f"free_{name}").start + 2] = 0.1 + 0.2 * k
    return model, q


# ------------------------------------------------------------------------- the parts


def on_slope(degrees: float, mu: float, duration: float) -> tuple[Recording, Any]:
    """Simulate a box of 2 kg, 1 x 0.8 x 0.5 m, on a slope that descends along x."""
    angle = np.radians(degrees)
    model = dyn.load_urdf(
        robot("box", link("box", 2.0, size=(1.0, 0.8, 0.5))),
        root_joint="floating",
        extras={"materials": {"default": {"mu": mu}}},
    )
    normal = np.array([np.sin(angle), 0.0, np.cos(angle)])
    down = np.array([np.cos(angle), 0.0, -np.sin(angle)])
    q = model.neutral()
    q[:3], q[3:7] = 0.25 * normal, [0, np.sin(angle / 2), 0, np.cos(angle / 2)]
    world = dyn.World(half_spaces=(dyn.HalfSpace("slope", normal=tuple(normal)),))
    run = simulate(model, world=world, q0=q, duration=duration, period=0.01)
    return run, (down, normal)


def slide(short: bool = False) -> Part:
    """A box slides down a slope, another one sticks.

    Source: spec case C1.
    """
    run, (down, normal) = on_slope(35.0, 0.4, 1.01)
    way = (run.q[:, :3] - run.q[0, :3]) @ down
    speed, force = run.qd[:, 3], run.reports[50][0].total_force
    a = G * (np.sin(np.radians(35)) - 0.4 * np.cos(np.radians(35)))
    figures = [
        Figure("35 degrees, mu 0.4: acceleration [m/s²]", speed[100], a),
        Figure("    way after 100 steps of 0.01 s [m]", way[100], a * 1e-4 * 5050),
        Figure("    normal force [N]", force @ normal, 2 * G * np.cos(np.radians(35))),
        Figure("    friction [N]", -force @ down, 0.8 * G * np.cos(np.radians(35))),
    ]
    resting, (down2, normal2) = on_slope(20.0, 0.5, 0.2 if short else 1.01)
    moved = (resting.q[:, :3] - resting.q[0, :3]) @ down2
    N = sum(c.force @ normal2 for c in resting.reports[-1][0].contacts)
    lower = sum(
        c.force @ normal2
        for c in resting.reports[-1][0].contacts
        if (c.point - resting.q[-1, :3]) @ down2 > 0
    )
    total = 2 * G * np.cos(np.radians(20))
    edge = total / 2 + 2 * G * np.sin(np.radians(20)) * 0.25 / 1.0
    figures += [
        Figure("20 degrees, mu 0.5: way [m]", abs(moved).max(), 0.0),
        Figure("    normal force [N]", N, total),
        Figure("    of it at the lower edge [N]", lower, edge),
    ]

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        left.plot(run.t, way, label="35°, mu 0.4")
        left.plot(resting.t, moved, label="20°, mu 0.5")
        left.plot(run.t, a * run.t**2 / 2, "k--", lw=0.8, label="a t² / 2")
        right.plot(run.t, speed, run.t, a * run.t, "k--", lw=1)
        label(left, "way [m]")
        label(right, "speed of the first [m/s]")

    return Part(figures, draw)


def bounce(short: bool = False) -> Part:
    """A ball bounces, simulated by events; another one starts to roll.

    Source: spec cases C2, C7.
    """
    model = ball(0.2, restitution=0.8)
    q = model.neutral()
    q[2] = 1.1
    world = {"stepper": "event_driven"}
    run = simulate(
        model, world=world, q0=q, duration=2.0 if short else 3.0, period=0.01
    )
    hits = [s.t for row in run.reports for s in row if s.h == 0]
    first, figures = np.sqrt(2 / G), []
    closed = [first * (1 + 2 * sum(0.8**k for k in range(1, n + 1))) for n in range(9)]
    for k in range(3):
        figures.append(Figure(f"ball: impact {k + 1} [s]", hits[k], closed[k]))
    tops = run.q[:, 2] - 0.1 + run.qd[:, 2] ** 2 / (2 * G)
    for k in range(3 if len(hits) > 3 else 2):
        row = np.searchsorted(run.t, hits[k]) + 1
        figures.append(Figure("    apex after it [m]", tops[row], 0.64 ** (k + 1)))
    model = ball(0.2)
    q, qd = model.neutral(), np.zeros(6)
    q[2], qd[0] = 0.1, 3.0
    roll = simulate(model, world={}, q0=q, qd0=qd, duration=1.0, period=0.01)
    slip = [row[0].contacts[0].sliding for row in roll.reports]
    step = int(np.argmax(np.array(slip) < 1e-9))
    lost = roll.energy[0] - roll.energy[-1]
    figures += [
        Figure("rolls from step (0.43687 s / 0.01 s, upwards)", step + 1, 44),
        Figure("    speed [m/s]", roll.qd[-1, 0], 15 / 7),
        Figure("    turning [rad/s]", roll.qd[-1, 4], 150 / 7),
        Figure("    energy lost [J]", lost, 9 / 7),
        Figure(
            "    last impulse of friction [N·s]",
            np.linalg.norm(roll.reports[step][0].contacts[0].impulse[1:]),
            3 - 43 * 0.2 * G * 0.01 - 15 / 7,
        ),
    ]

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        left.plot(run.t, run.q[:, 2] - 0.1)
        for k, begin in enumerate([-first, *closed[:6]]):
            t = np.linspace(begin, begin + 2 * first * 0.8**k)
            t = t[(t >= 0) & (t <= run.t[-1])]
            y = first * 0.8**k * G * (t - begin) - G * (t - begin) ** 2 / 2
            left.plot(t, y, "k--", lw=0.8)
        label(left, "height of a ball that bounces [m]")
        right.plot(roll.t, roll.qd[:, 0], label="speed")
        right.plot(roll.t, 0.1 * roll.qd[:, 4], label="turning times radius")
        t, end = roll.t, 2 * 3 / (7 * 0.2 * G)
        right.plot(t, np.where(t < end, 3 - 0.2 * G * t, 15 / 7), "k--", lw=0.8)
        right.plot(t, np.where(t < end, 0.5 * G * t, 15 / 7), "k--", lw=0.8)
        label(right, "of a ball that slides, then rolls [m/s]")

    return Part(figures, draw)


# The compile time of Gauss-Seidel grows with the square of the rows; for the few calls
# here it is interpreted.
SOLVERS: Mapping[str, Mapping[str, Any]] = {
    "admm": {},
    "lemke": {},
    "convex_newton": {},
    "interior_point": {},
    "soft_contact": {},
    "projected_gauss_seidel": {"engine": "plain", "max_iterations": 200},
}


def compared(count: int) -> dict[str, Any]:
    """Return solution and time [ms] of each solver for the first step of a tower."""
    model, q = tower(count)
    state = dyn.authoring.ContactModel(model).state(q, np.zeros(model.nv), 0.01)
    problem = state.problem(state.free(np.zeros(model.nv), 0.01), 0.01)
    results = {}
    for name, options in SOLVERS.items():
        started = perf_counter()
        try:
            solution = solve(problem, name, **options)
        except dyn.UnsupportedError as error:
            print(f"    {name}: {error}")
            continue
        results[name] = solution, 1e3 * (perf_counter() - started)
    return results


def stack(short: bool = False) -> Part:
    """Boxes are stacked, and all solvers compute the forces between them.

    Source: spec case C6.
    """
    figures, heights, tried = [], (2, 5) if short else (2, 5, 10), {}
    for count in heights:
        tried[count] = compared(count)
        print(f"    {count} boxes: solver, residual of its law, exact laws, steps, ms")
        for name, (solution, seconds) in tried[count].items():
            r = solution.residuals
            print(
                f"      {name:24}{r.law:9.1e}{max(r[:4]):9.1e}"
                f"{solution.iterations:6d}{seconds:8.1f}  {solution.status}"
            )
    count = heights[-1]
    model, q = tower(count)
    run = simulate(model, world={}, q0=q, duration=0.3, period=0.01)
    carried = np.array([_carried(row[0], count) for row in run.reports])
    for k in sorted({0, count // 2, count - 1}):
        name = f"{count} boxes: force under box {k} [N]"
        figures.append(Figure(name, carried[-1, k], (count - k) * G))
    sunk = abs(run.q[-1] - q).max()
    figures.append(Figure("    farthest way of one in 0.3 s [m]", sunk, 0.0))

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for mark, (size, results) in zip("o^s", tried.items(), strict=False):
            for color, (name, (solution, _)) in enumerate(results.items()):
                left.loglog(
                    solution.iterations, max(solution.residuals.law, 1e-17), mark,
                    color=f"C{color}", label=name if size == count else None,
                )  # fmt: skip
        left.set_xlabel("iterations")
        label(left, f"residual; {', '.join(map(str, heights))} boxes: o ^ s", None)
        right.plot(run.t, carried)
        for k in range(count):
            right.axhline((count - k) * G, color="k", ls="--", lw=0.6)
        label(right, "force under each box [N]")

    return Part(figures, draw)


def _carried(report: Any, count: int) -> np.ndarray:
    """Return the vertical force under each box of a tower."""
    force = np.zeros(count)
    for c in report.contacts:
        names = [x for x in (c.link_a, c.link_b) if x.startswith("box")]
        upper = max(int(x[3:]) for x in names)
        force[upper] += abs(c.force[2])
    return force


KP, KD, PUSH = 200.0, 2.5, 40.0  # of the legs; sideways on the trunk for 0.1 s [N]


def stand() -> tuple[dyn.Model, np.ndarray]:
    """Return the quadruped, and a pose with its feet on the ground."""
    surface = {"materials": {"default": {"mu": 0.7}}}
    path = dyn.robots.path("quadruped")
    model = dyn.load_urdf(path, root_joint="floating", extras=surface)
    q = model.neutral()
    for name in model.joint_names:
        if name.endswith("_hip_joint"):
            q[model.q_slice(name)] = 0.7
        if name.endswith("_knee"):
            q[model.q_slice(name)] = -1.4
    q[2] = 2 * 0.21 * np.cos(0.7) + 0.02
    return model, q


class QuadrupedRun(NamedTuple):
    """A simulation of the quadruped.

    Attributes:
        height: Height of the trunk by step [m].
        force: Force on each foot, world, (steps, 4, 3) [N].
        speed: Lateral speed of the centre of mass at the end [m/s].
        seconds: Computing time of a step [s].
    """

    height: np.ndarray
    force: np.ndarray
    speed: float
    seconds: float


def simulated(
    model: dyn.Model, pose: np.ndarray, t: np.ndarray, push: Any
) -> QuadrupedRun:
    """Simulate the quadruped by ContactSimulator: any world, any solver."""
    period = t[1] - t[0]
    settings = {"period": period, "q0": pose, "joint_friction": False}
    sim = dyn.ContactSimulator(model, {}, **settings)
    feet = [placed.link for placed in model.shapes]
    height, force = np.zeros(len(t)), np.zeros((len(t), 4, 3))
    started = perf_counter()
    for k, now in enumerate(t):
        sim.f_ext = np.zeros((model.nb, 6))
        sim.f_ext[0, 4] = PUSH * push[k]
        sim.command(now, _pd(pose, sim.q, sim.qd))
        sim.advance(now)
        height[k] = sim.q[2]
        for c in sim.report.contacts:
            force[k, feet.index(c.link_a)] = c.force
    seconds = (perf_counter() - started) / len(t)
    return QuadrupedRun(height, force, _sideways(model, sim.q, sim.qd), seconds)


def stepped(
    model: dyn.Model, pose: np.ndarray, t: np.ndarray, push: Any
) -> QuadrupedRun:
    """Simulate the quadruped by contact_euler, one kernel for feet on half-spaces.

    Joint friction is off, which is the default of Programs.
    """
    period, step = t[1] - t[0], dyn.solver("contact_euler").build(model)
    q, qd, warm = pose, np.zeros(model.nv), np.zeros(12)
    height, force = np.zeros(len(t)), np.zeros((len(t), 4, 3))
    step.prepare()
    started = perf_counter()
    for k in range(len(t)):
        tau = _pd(pose, q, qd)
        tau[4] = PUSH * push[k]  # what moves the root joint is a force on the trunk
        q, qd, warm, *_ = step(q, qd, tau, period, warm)
        height[k] = q[2]
        force[k] = warm.reshape(4, 3)[:, [1, 2, 0]] / period
    seconds = (perf_counter() - started) / len(t)
    return QuadrupedRun(height, force, _sideways(model, q, qd), seconds)


def quadruped(short: bool = False) -> Part:
    """A quadruped stands under PD control and is pushed; also by the compiled step."""
    model, pose = stand()
    period, start, duration = 0.002, 0.2 if short else 0.8, 0.4 if short else 2.0
    t = period * np.arange(round(duration / period))
    push = (t >= start - 1e-9) & (t < start + 0.1 - 1e-9)
    sim, euler = (run(model, pose, t, push) for run in (simulated, stepped))
    before, weight = int(push.argmax()) - 1, model.mass * G
    impulse = period * sim.force.sum(axis=(0, 1))[1] + 0.1 * PUSH
    figures = [
        Figure("before the push: force on the feet, weight [N]",
               sim.force[before, :, 2].sum(), weight),
        Figure("at the end: force on the feet, weight [N]",
               sim.force[-1, :, 2].sum(), weight),
        Figure("    lateral impulse, momentum [N·s]", impulse, model.mass * sim.speed),
        Figure("    height; expected: that of contact_euler [m]",
               sim.height[-1], euler.height[-1]),
        Figure("    largest difference of both on the way [m]",
               abs(sim.height - euler.height).max(), 0.0),
        Figure("a step of the simulator [ms]", 1e3 * sim.seconds),
        Figure("a step of contact_euler [ms]", 1e3 * euler.seconds),
    ]  # fmt: skip

    def draw(figure: Any) -> None:
        top, bottom = figure.subplots(1, 2)
        for k, placed in enumerate(model.shapes):
            top.plot(t, sim.force[:, k, 2], label=placed.link)
        top.plot(t, sim.force[:, :, 2].sum(axis=1), color="0.6", lw=0.8, label="all")
        top.axhline(weight, color="k", ls="--", lw=0.8, label="weight")
        bottom.plot(t, sim.height, label="simulator")
        bottom.plot(t, euler.height, "k--", lw=0.8, label="contact_euler")
        for ax in (top, bottom):
            ax.axvspan(start, start + 0.1, color="0.9")
        label(top, "vertical force, push in grey [N]")
        label(bottom, "height of the trunk [m]")

    return Part(figures, draw)


def _sideways(model: dyn.Model, q: np.ndarray, qd: np.ndarray) -> float:
    """Return the speed of the centre of mass along the world's y [m/s]."""
    momentum = dyn.solver("momentum").build(model)(q, qd)
    return float(np.asarray(momentum[0])[4]) / model.mass


def _pd(pose: np.ndarray, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Return the torques that hold the legs of a floating robot in a pose."""
    tau = np.zeros(len(qd))
    tau[6:] = KP * (pose[7:] - q[7:]) - KD * qd[6:]
    return tau


DROP, FOOT = 0.5, 0.005  # height of the fall, radius of the balls at its joints [m]


def _legs(theta: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the torques that hold the walker's six inner angles."""
    kp, kd = np.array([[100.0, 1.0], *4 * [[500.0, 10.0]], [100.0, 1.0]]).T
    tau = np.zeros(7)
    tau[1:] = kp * (np.array(Walker.STANCE)[1:] - theta[1:]) - kd * rates[1:]
    return tau


class HoldLegs:
    """The same torques for the robot, whose first two coordinates are its position."""

    def update(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return tau."""
        return np.concatenate([np.zeros(2), _legs(q[2:], qd[2:])])


def as_robot(chain: ChainModel) -> dyn.Model:
    """Return the walker as a robot of the 3-D engine, a small ball at each joint."""
    shapes = {name: [{"type": "sphere", "radius": FOOT}] for name in chain.joint_names}
    rules = {"pairs": {"deny": [["*", "*"]]}, "materials": {"default": {"mu": 3.0}}}
    extras = {"collisions": shapes, **rules}
    return dyn.load_urdf(to_urdf(chain).urdf, extras=extras)


def walker(short: bool = False) -> Part:
    """The planar walker is dropped, as a chain and as a robot with contacts."""
    chain = walker_chain()
    chain = make_chain_like(
        chain, ground=[{"z0": (0.0, FOOT), "joints": g.joints, "mode": g.mode}
                       for g in chain.ground]
    )  # fmt: skip
    stance, still, none = np.array(Walker.STANCE), np.zeros(7), np.zeros(2)
    low = from_angles(chain, none, none, stance, still).x[:, 1].min()
    start, duration = DROP + FOOT - low, 0.6 if short else 1.2
    planar = ChainSimulator.at_angles(chain, stance, x0=(0, start), dt=1e-3)
    hips, t = [], 1e-3 * np.arange(round(duration / 1e-3))
    for _ in t:
        hips.append(planar.x[Walker.REAR, 1])
        planar.step(_legs(planar.theta, planar.omega))
    hits = [event for event in planar.events if event.kind == "hit"]
    model = as_robot(chain)
    q = model.neutral()
    q[1], q[2:] = start, stance
    world = {"half_spaces": [dyn.HalfSpace("floor")], "solver": "lemke"}
    run = simulate(model, HoldLegs(), world=world, q0=q, duration=duration, period=1e-3)
    chains = (from_angles(chain, q[:2], none, q[2:], still).x for q in run.q)
    robots = np.array([x[Walker.REAR, 1] for x in chains])
    force = np.array([row[0].total_force[2] for row in run.reports])
    t_hit, last = np.sqrt(2 * DROP / G), len(t) // 4
    pressed = run.t[int(np.argmax(force > 0))] + 1e-3
    figures = [
        Figure("walker, chain: first hit [s]", hits[0].time, t_hit),
        Figure("    robot: end of the step that hits [s]", pressed, t_hit),
        Figure("hip at the end [m]: robot, expected the chain's", robots[-1], hips[-1]),
        Figure("    largest difference [m]", abs(robots - hips).max()),
        Figure("mean force of the last quarter, weight [N]", force[-last:].mean(),
               sum(chain.masses) * G),
        Figure("energy lost in hits of the chain [J]", planar.lost),
    ]  # fmt: skip

    def draw(figure: Any) -> None:
        top, bottom = figure.subplots(2, 1, sharex=True)
        top.plot(run.t, robots, label="robot with contacts")
        top.plot(t, hips, "--", label="planar chain")
        fall = t[t < t_hit]
        top.plot(fall, robots[0] - G * fall**2 / 2, "k:", label="free fall")
        label(top, "height of the rear hip [m]", None)
        bottom.plot(run.t, force)
        bottom.axhline(sum(chain.masses) * G, color="k", ls="--", lw=0.8)
        bottom.set_ylim(0, 1000)
        label(bottom, "force on the ground [N]")

    return Part(figures, draw)


PARTS: dict[str, Callable[[bool], Part]] = {
    part.__name__: part for part in (slide, bounce, stack, quadruped, walker)
}


# ---------------------------------------------------------------------------- output


def label(ax: Any, name: str, below: str | None = "t [s]") -> None:
    """Set title and labels of axes."""
    ax.set_title(name, fontsize=10)
    if below is not None:
        ax.set_xlabel(below)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(fontsize=8)


def plotter() -> Any:
    """Return pyplot, or None if matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        print("no plots: matplotlib is not installed; pip install 'dyn_ros[plot]'")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def print_figures(figures: Iterable[Figure]) -> None:
    """Print figures."""
    for name, value, expected in figures:
        line = f"  {name:52}{value:14.8g}"
        if expected is not None:
            line += f"{expected:14.8g}   off by {abs(value - expected):.1e}"
        print(line)


def main(
    folder: Any = ".", parts: Iterable[str] = tuple(PARTS), short: bool = False
) -> dict[str, list[Figure]]:
    """Run, print and draw parts; return the figures by part."""
    pyplot, results = plotter(), {}
    for name in parts:
        started = perf_counter()
        print(f"{name}: {(PARTS[name].__doc__ or '').splitlines()[0]}")
        part = PARTS[name](short)
        results[name] = part.figures
        print_figures(part.figures)
        seconds = f"  {perf_counter() - started:.1f} s"
        if pyplot is not None:
            figure = pyplot.figure(figsize=(10, 4.5), layout="constrained")
            part.draw(figure)
            path = Path(folder) / f"contacts_{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=100)
            pyplot.close(figure)
            seconds += f", plot: {path}"
        print(seconds)
    return results


if __name__ == "__main__":
    main(*sys.argv[1:2], **({"parts": sys.argv[2:]} if sys.argv[2:] else {}))
