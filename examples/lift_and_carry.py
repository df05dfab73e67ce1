"""A weak arm lifts a load, and carries it from place to place, within its limits.

python examples/lift_and_carry.py [FOLDER OF PICTURES]  # docs/optimal_control.md
"""

import sys
from pathlib import Path

import numpy as np
from _pictures import pyplot, save
from _plans import follow

import dyn_core as dyn

TORQUE = 30.0  # limit of the shoulder, joint2 [N·m]
LOAD = [2.0, 0.0, 0.0, 0.1, 0.01, 0.0, 0.01, 0.0, 0.0, 0.01]  # m, m c, inertia
LOW, HIGH = np.array([[0, 1.5, 0, -2, 0, 1, 0], [0, -0.3, 0, -1, 0, 1, 0]])
REST = np.array([0.0, 0.2, 0.0, -1.5, 0.0, 1.5, 0.0])
# x y z [m], quaternion x y z w
PICK, PLACE = [0.5, -0.2, 0.15, 1, 0, 0, 0], [0.4, 0.3, 0.5, 1, 0, 0, 0]


def lead(model, q, end, **choices):
    """Return the plan from rest at q to rest where the cost `end` is least."""
    costs = [
        end,
        dyn.cost.velocity(10.0, when="end", name="rest"),
        dyn.cost.velocity(0.1),
        dyn.cost.effort(1e-3),
    ]
    plan = dyn.plan(model, costs, duration=1.5, knots=150, **choices)
    return plan.solve(q, np.zeros(model.nv))


def lift(torque=TORQUE):
    """Return plan, recording, and the shoulder's weight on the straight path [N·m]."""
    model = dyn.load("arm7").with_values({"tool.payload": LOAD})
    end = dyn.cost.posture(HIGH, 100.0, when="end")
    plan = lead(model, LOW, end, effort_limits={"joint2": torque})
    straight = np.linspace(LOW, HIGH, 100)
    weight = dyn.solver("gravity").build(model)(straight)[:, 1]
    return plan, follow(model, plan), np.abs(weight).max()


def carry(known):
    """Return the plans to PICK and to PLACE, and the distance from PLACE [m].

    `known` is whether the second plan has the mass of the load.
    """
    arm = dyn.load("arm7")
    loaded = arm.with_values({"tool.payload": LOAD})
    weight = [100.0] * 3 + [1e4] * 3
    pick, place = (dyn.cost.pose("tool", x, weight, when="end") for x in (PICK, PLACE))
    first = lead(arm, REST, pick)
    second = lead(loaded if known else arm, first.q[-1], place)
    poses = dyn.solver("forward_kinematics").build(arm, frames=["tool"])
    end = poses(follow(loaded, second).q[-1])[0][:3, 3]
    return first, second, np.linalg.norm(end - PLACE[:3])


def main(folder):
    """Run, print and draw; return what `lift` and `carry` do, known and unknown."""
    print("plans are compiled, some 10 s the first time", flush=True)
    plan, run, weight = lift()
    torque = run.tau[:, 1]
    print(f"lift: {plan.reason} after {plan.iterations} iterations")
    print(f"shoulder: {np.abs(torque).max():.1f} N·m; its weight on the straight path:"
          f" {weight:.1f} N·m")  # fmt: skip
    carried = [carry(known) for known in (True, False)]
    for (_, _, off), text in zip(carried, ("load", "empty arm"), strict=True):
        print(f"carry, planned with the {text}: {1e3 * off:.1f} mm off")
    figure, ax = pyplot().subplots(figsize=(6, 3.0))
    ax.plot(run.t[: len(torque)], torque, label="plan")
    ax.axhline(-weight, color="C1", label="weight on the straight path")
    ax.axhline(-TORQUE, color="0.7", label="limit")
    ax.set(xlabel="t [s]", ylabel="torque of the shoulder [N·m]")
    ax.legend()
    figure.tight_layout()
    save(figure, folder / "lift.png", dpi=80)
    return (plan, run, weight), *carried


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
