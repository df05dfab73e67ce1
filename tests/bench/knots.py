"""What a linearised trajectory costs: A and B of its steps, and the adjoint sweep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from bench.cases import Robot
from bench.measure import BLOCKED
from bench.printed_tables import Progress, Table
from dyn_core.commands.timing import per_call
from dyn_core.simulation.rollout import Rollout, RolloutStates, sweep
from dyn_core.solving.registry import solver

KNOTS, DT = 50, 0.01
LEGEND = f"""\
us: all {KNOTS} steps of {DT} s, on one core, from Python; a step: next state, A and B
(the derivative of forward dynamics alone: without them); gradient: by start and joint
forces, linearisation and adjoint sweep; kernels on blocks: the share of {KNOTS} rows
in a run on {BLOCKED} that lie in blocks. Crocoddyl: its shooting problem of explicit
Euler steps, without costs and with two (state, control), calcDiff alone and with the
calc that must come before it. Pinocchio: computeABADerivatives, step by step."""
HEAD = ["what", "us", "us/knot"]
Measured = tuple[str, float]


def tables(robots: Sequence[Robot], progress: Progress) -> Iterator[tuple[str, Table]]:
    """Return a table for each robot: this library, then its peers."""
    for robot in robots:
        progress(robot.name)
        rows = [*_here(robot)]
        for name, measured in (("pin", _pinocchio), ("crocoddyl", _crocoddyl)):
            try:
                rows += measured(robot, metadata.version(name))
            except metadata.PackageNotFoundError:
                progress(f"{name} is not installed; its rows are left out")
        lines = [
            [what, f"{seconds * 1e6:.1f}", f"{seconds / KNOTS * 1e6:.2f}"]
            for what, seconds in rows
        ]
        yield robot.title, [HEAD, *lines]


def _knots(robot: Robot) -> tuple[np.ndarray, ...]:
    """Return q, qd and tau of each knot."""
    state = robot.state
    return tuple(state[name][:KNOTS] for name in ("q", "v", "tau"))


def _here(robot: Robot) -> Iterator[Measured]:
    """Measure this library: kernels alone, calls, and the gradient of a cost."""
    q, v, tau = _knots(robot)
    states = [(q, v, tau)]
    linear = None
    for step in ("semi_implicit_euler", "rk4"):
        rollout = Rollout(robot.model, step, engine="native", threads=1)
        program = rollout.derivatives
        program.prepare(batch=True)
        out = tuple(np.empty((KNOTS, *port.shape)) for port in program.outputs)
        space = {"p": program, "dt": DT, "o": out}
        yield f"{step}, kernels on blocks", _on_blocks(program, (q, v, tau))
        call = "p(q, v, tau, dt, out=o)"
        yield f"{step}, a call with out", per_call(call, states, "q, v, tau", space)
        call = "p(q, v, tau, dt)"
        yield f"{step}, a call", per_call(call, states, "q, v, tau", space)
        by = np.ones((2, KNOTS + 1, robot.model.nv))
        trajectory = RolloutStates(*(np.concatenate([x, x[-1:]]) for x in (q, v)))
        linear = rollout.linearize(trajectory, tau, DT)
        space = {"r": rollout, "x": trajectory, "dt": DT, "by": by}
        call = "r.gradients(x, tau, dt, *by)"
        yield f"{step}, gradient", per_call(call, states, "q, v, tau", space)
    space = {"sweep": sweep, "linear": linear, "by": by}
    yield "its adjoint sweep alone", per_call("sweep(x, *by)", [(linear,)], "x", space)
    fd = _program(robot, "fd_derivatives")
    out = tuple(np.empty((KNOTS, *port.shape)) for port in fd.outputs)
    call, space = "p(q, v, tau, out=o)", {"p": fd, "o": out}
    yield "fd_derivatives, a call with out", per_call(call, states, "q, v, tau", space)


def _program(robot: Robot, name: str) -> Any:
    """Return the Program of a solver, compiled, on one thread."""
    program = solver(name).build(robot.model, engine="native", threads=1)
    program.prepare(batch=True)
    return program


def _on_blocks(program: Any, columns: Sequence[np.ndarray]) -> float:
    """Measure the share of the knots in the kernel's time on many blocks of lanes."""
    lanes, rows = program.lanes, BLOCKED
    columns = [*columns, np.full((KNOTS, 1), DT)]
    blocks = [
        program.to_blocks(np.resize(x, (rows, x.shape[1])), port.name)
        for x, port in zip(columns, program.inputs, strict=True)
    ]
    out = [np.empty((rows // lanes, port.size, lanes)) for port in program.outputs]
    names = ", ".join(f"x{k}" for k in range(len(blocks)))
    space = {"p": program, "out": out}
    call = f"p.run_blocks({names}, out=out)"
    return per_call(call, [tuple(blocks)], names, space) * KNOTS / rows


def _pinocchio(robot: Robot, version: str) -> Iterator[Measured]:
    """Measure Pinocchio's derivatives of forward dynamics, one knot after the other."""
    import pinocchio as pin

    root = (pin.JointModelFreeFlyer(),) if robot.floating else ()
    model = pin.buildModelFromXML(robot.urdf, *root)
    q, v, tau = _states_of(pin, model)
    space = {"f": pin.computeABADerivatives, "m": model, "d": model.createData()}
    states = list(zip(q, v, tau, strict=True))
    one = per_call("f(m, d, q, v, tau)", states, "q, v, tau", space)
    yield f"pin {version}, computeABADerivatives", one * KNOTS


def _states_of(pin: Any, model: Any) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Return random states of a model of Pinocchio: q, v and tau."""
    rng, zero = np.random.default_rng(7), pin.neutral(model)
    q = [
        pin.integrate(model, zero, x)
        for x in rng.uniform(-1.2, 1.2, (KNOTS + 1, model.nv))
    ]
    v = rng.uniform(-1, 1, (KNOTS + 1, model.nv))
    return q, v, rng.uniform(-5, 5, (KNOTS + 1, model.nv))


def _crocoddyl(robot: Robot, version: str) -> Iterator[Measured]:
    """Measure Crocoddyl's shooting problem on one thread; every joint has a motor."""
    import crocoddyl
    import pinocchio as pin

    root = (pin.JointModelFreeFlyer(),) if robot.floating else ()
    model = pin.buildModelFromXML(robot.urdf, *root)
    state = crocoddyl.StateMultibody(model)
    motors = "FloatingBase" if robot.floating else "Full"
    actuation = getattr(crocoddyl, f"ActuationModel{motors}")(state)
    q, v, tau = _states_of(pin, model)
    xs = [np.concatenate(pair) for pair in zip(q, v, strict=True)]
    us = [x[-actuation.nu :] for x in tau[:KNOTS]]
    for what, residuals in (("no costs", 0), ("two costs", 2)):
        costs = crocoddyl.CostModelSum(state, actuation.nu)
        kinds = (crocoddyl.ResidualModelState, crocoddyl.ResidualModelControl)
        for kind in kinds[:residuals]:
            residual = kind(state, actuation.nu)
            cost = crocoddyl.CostModelResidual(state, residual)
            costs.addCost(kind.__name__, cost, 1e-2)
        dynamics = crocoddyl.DifferentialActionModelFreeFwdDynamics(
            state, actuation, costs
        )
        steps = crocoddyl.IntegratedActionModelEuler(dynamics, DT)
        problem = crocoddyl.ShootingProblem(xs[0], [steps] * KNOTS, steps)
        problem.nthreads = 1
        problem.calc(xs, us)
        space: dict[str, Any] = {"p": problem}
        rows: tuple[tuple[str, str], ...] = (
            ("calcDiff", "p.calcDiff(x, u)"),
            ("calc and calcDiff", "p.calc(x, u); p.calcDiff(x, u)"),
        )
        for name, call in rows:
            seconds = per_call(call, [(xs, us)], "x, u", space)
            yield f"crocoddyl {version}, {what}, {name}", seconds
