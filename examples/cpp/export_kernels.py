"""Export the kernels of the C++ examples: two controllers and a step of the arm.

python examples/cpp/export_kernels.py FOLDER
"""

import sys

import dyn_core as dyn
from dyn_core.control import Bounds, Rules
from dyn_core.export import export
from dyn_core.export.cycle.controller_cycle import control_cycle

# The cycles that dyn_controller.hpp drives.
CYCLES = (
    "computed_torque_cycle",
    "joint_impedance_cycle",
    "gravity_compensation_cycle",
)


def programs():
    """Return the Programs: what the settings say is part of the kernels."""
    arm = dyn.load_urdf(dyn.robots.path("arm7"))
    settings = {
        "rules": Rules(good_samples=1, on_violation="ramp", stop_time=0.5),
        "bounds": Bounds(kinetic_energy=30.0, tool_speed=3.0, frame="tool"),
    }
    yield from (control_cycle(name, arm, **settings) for name in CYCLES)
    step = dyn.solver("semi_implicit_euler")
    yield step.build(arm, forward_dynamics="aba", joint_friction=True)


def main(folder):
    """Write a shared library with its header for each."""
    for program in programs():
        made = export(program, folder, form="shared")
        print(f"{made.binary}: {made.code} bytes of code")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "kernels")
