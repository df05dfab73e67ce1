"""Plans from many starts: in lanes each is the plan of its start alone, bit for bit."""

from collections import Counter

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import cost
from dyn_core.engines.llvm.host_machine import machine, missing
from dyn_core.engines.machine_code import compiled
from dyn_core.prediction import Penalty, plan_lanes
from dyn_core.prediction import descent as module
from dyn_core.prediction.rollouts import PlanPath

KNOTS = 12
LANES = machine().width
native = pytest.mark.skipif(bool(missing()), reason=f"no machine code: {missing()}")


def arm(**options):
    """Return a plan of two links and eleven starts."""
    model = dyn.load("two_link", gravity=(0.0, -9.81, 0.0))
    costs = [
        cost.posture([1.5, 0.0], 100.0, "end"),
        cost.velocity(1.0, when="always"),
        cost.effort(0.01),
    ]
    rng = np.random.default_rng(4)
    q = np.array([-1.5, 0.0]) + rng.normal(size=(11, 2))
    return (
        dyn.plan(model, costs, 0.6, KNOTS, **options),
        q,
        0.3 * rng.normal(size=(11, 2)),
    )


def free():
    """Nothing is limited."""
    return arm(limits=False, effort_limits={"joint1": None, "joint2": None})


def boxed():
    """Some joint forces are at their bounds, others not, and full steps are poor."""
    return arm(limits=False, effort_limits={"joint1": 9.0, "joint2": (-2.0, 5.0)})


def limited():
    """Limits of positions and velocities act; some cannot be kept."""
    plan, q, qd = arm(effort_limits={"joint1": 20.0, "joint2": 20.0})
    bounds = plan.problem.bounds
    return plan, np.clip(q, bounds.q_lower + 0.01, bounds.q_upper - 0.01), qd


def rolled():
    """ilqr begins with the motion of the first guess."""
    return arm(solver="ilqr", limits=False, effort_limits={"joint1": 30.0})


def few_iterations():
    """No search converges."""
    return arm(limits=False, max_iterations=2)


def floating():
    """Displacements of the base are no differences of q; a foot stands, then not."""
    link = """<link name="%s"><inertial><mass value="%s"/><inertia ixx="0.1" iyy="0.1"
        izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
    joint = """<joint name="knee" type="continuous"><parent link="body"/>
        <child link="foot"/><axis xyz="0 1 0"/><origin xyz="0.1 0 -0.3"/></joint>"""
    text = f"<robot name='one_leg'>{link % ('body', 2)}{link % ('foot', 0.5)}{joint}"
    model = dyn.load_urdf(text + "</robot>", root_joint="floating")
    q, rng = model.neutral(), np.random.default_rng(2)
    costs = [
        cost.posture(model.integrate(q, np.full(model.nv, 0.05)), 100.0, "end"),
        cost.velocity(1.0, when="always"),
        cost.effort(1e-3),
    ]
    place = dyn.solver("forward_kinematics").build(model, frames=["foot"])(q)[0]
    loop = dyn.make_loop("foot", "point", "foot", at_a={"xyz": place[:3, 3]})
    plan = dyn.plan(
        model, costs, 0.2, 6, limits=False, contacts=[(loop, 0.0, 0.1)],
        max_iterations=20,
    )  # fmt: skip
    turns = 0.05 * rng.normal(size=(11, model.nv))
    starts = np.array([model.integrate(q, turn) for turn in turns])
    return plan, starts, 0.1 * rng.normal(size=(11, model.nv))


def same(a, b):
    """Return whether two plans are equal in all numbers."""
    arrays = all(
        np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True)
        for name in ("q", "qd", "tau", "gains", "value", "residuals")
    )
    return arrays and (a.iterations, a.reason, a.detail) == (
        b.iterations, b.reason, b.detail,
    )  # fmt: skip


def compile_lanes():
    """Compile what is used in lanes, which calls do not wait for."""
    for function in (plan_lanes.sweep_lanes, plan_lanes.slopes_in_lanes):
        compiled(function, lanes=LANES).prepare()


@native
@pytest.mark.parametrize(
    "case", [free, boxed, limited, rolled, few_iterations, floating]
)
def test_plans_in_lanes_are_those_of_each_start(case, monkeypatch):
    plan, q, qd = case()
    used = Counter()
    monkeypatch.setattr(plan_lanes, "LARGEST", 100)
    compile_lanes()
    for name in ("expand", "feedback", "attempt"):
        work = getattr(plan_lanes.PlanLanes, name)

        def watched(self, wanted, name=name, work=work):
            used[name] += len(wanted)
            return work(self, wanted)

        monkeypatch.setattr(plan_lanes.PlanLanes, name, watched)
    together = plan.solve(q, qd)
    alone = [plan.solve(a, b) for a, b in zip(q, qd, strict=True)]
    assert [same(a, b) for a, b in zip(together, alone, strict=True)] == [True] * len(q)
    assert min(used.values()) > len(q)
    again = plan.solve(q[::-1], qd[::-1])  # lanes that were used before
    assert all(same(a, b) for a, b in zip(again, alone[::-1], strict=True))


@native
def test_a_start_that_is_not_finite_does_not_touch_its_neighbours():
    plan, q, qd = free()
    descent = plan.solver.prepared(plan.problem, **plan.options)
    settings = plan.problem.settings({})
    starts = [plan._start(a, b, None, settings) for a, b in zip(q, qd, strict=True)]
    alone = [descent(start) for start in starts]
    broken = starts[3]._replace(q=np.full(2, np.nan))
    compile_lanes()
    plans = descent.many([*starts[:3], broken, *starts[4:]])
    assert plans[3].reason == "diverged: cost"
    others = [i for i in range(len(q)) if i != 3]
    assert all(same(plans[i], alone[i]) for i in others)


@native
def test_starts_are_solved_one_by_one_until_the_lanes_are_compiled(monkeypatch):
    plan, q, qd = free()
    alone = [plan.solve(a, b) for a, b in zip(q, qd, strict=True)]
    compile_lanes()
    sizes, calls = [], iter([False, False, True])
    together = module.Descent._together

    def watched(self, room, starts):
        sizes.append(len(starts))
        return together(self, room, starts)

    monkeypatch.setattr(module, "ready", lambda lanes: next(calls))
    monkeypatch.setattr(module.Descent, "_together", watched)
    plans = plan.solve(q, qd)
    assert sizes == [len(q) - 2]
    assert all(same(a, b) for a, b in zip(plans, alone, strict=True))


@native
@pytest.mark.parametrize("credit", [-1e9, 3.0])
def test_lanes_are_given_up_where_they_are_slower(credit, monkeypatch):
    plan, q, qd = boxed()
    alone = [plan.solve(a, b) for a, b in zip(q, qd, strict=True)]
    compile_lanes()
    monkeypatch.setattr(module, "CREDIT", credit)  # before, or after some work
    plans = plan.solve(q, qd)
    assert all(same(a, b) for a, b in zip(plans, alone, strict=True))


def test_few_starts_and_large_robots_are_not_solved_in_lanes(monkeypatch):
    plan, q, qd = free()
    monkeypatch.setattr(module, "PlanLanes", None)  # a call would fail
    assert len(plan.solve(q[:1], qd[:1])) == 1
    monkeypatch.setattr(plan_lanes, "LARGEST", 3)
    assert len(plan.solve(q, qd)) == len(q)


@native
def test_a_step_that_fails_in_one_lane_makes_its_gap_not_a_number():
    plan, q, qd = free()
    single = plan.solver.prepared(plan.problem, **plan.options).state
    room, settings = plan_lanes.PlanLanes(single), plan.problem.settings({})
    start = plan._start(q[0], qd[0], None, settings)
    room.set_costs(start)
    for state in room.states:
        state.load(start, PlanPath(start.q_guess, start.qd_guess, start.tau_guess))
    failed = np.arange(LANES) == 1
    room._steps.append(lambda: failed)
    penalty = Penalty(plan.problem, start)
    room.expand(dict.fromkeys(range(LANES), (penalty,)))
    assert np.isnan([state.gap for state in room.states]).tolist() == failed.tolist()
