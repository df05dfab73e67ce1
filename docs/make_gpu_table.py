"""Writes the tables of docs/gpu.md: what GPU kernels take, as ptxas says.

python docs/make_gpu_table.py            all solvers; minutes
python docs/make_gpu_table.py rnea aba   prints the rows of these

Needs ptxas, from the CUDA toolkit or from the package nvidia-cuda-nvcc.
"""

import sys
from pathlib import Path

import numpy as np

import dyn_core as dyn
from dyn_core.errors import DynError
from dyn_core.export.gpu import ptx, ptxas
from dyn_core.solving.registry import default_registry
from dyn_core.testing.conformance import served_model
from dyn_core.testing.models import random_model

PAGE = Path(__file__).parent / "gpu.md"
MARK = "<!-- made by docs/make_gpu_table.py -->\n"
ARCH = "sm_90"
OTHERS = {
    "quadruped": ("rnea", "aba", "crba", "semi_implicit_euler", "id_derivatives",
                  "fd_derivatives", "contact_euler"),
    "tree of 30": ("rnea", "aba", "crba", "id_derivatives"),
}  # fmt: skip
HEAD = (
    "\n| solver | system | numbers | operations | form | registers | spilled [B] |"
    " stack [B] | warps | occupancy | code [kB] | ptxas [s] |\n"
    "|---|---|---|---:|---|---:|---:|---:|---:|---:|---:|---:|\n"
)
WITHOUT = (
    "\n\nWithout a kernel:\n\n| solver | system | numbers | why |\n|---|---|---|---|\n"
)
NO_GRAPH = "no traced algorithm: it computes in NumPy, or in machine code of its own"


def quadruped():
    """Return a robot on a floating base: 18 velocities."""
    return dyn.load_urdf(dyn.robots.path("quadruped"), root_joint="floating")


def tree():
    """Return a tree as large as a humanoid: 30 revolute joints."""
    return random_model(0, size=30, kinds=("revolute",), mimic=0.0, massless=0.0)


def system(solver):
    """Return the system that a solver is shown on, and its name."""
    if solver.signature.system == "robot":
        model = dyn.load_urdf(dyn.robots.path("arm7"))
        if solver.refusal(model) is None:
            return model, "arm7"
    return served_model(solver, 0, 6), "random"


def built(solver, model, dtype):
    """Return a Program, with what must be chosen."""
    case = default_registry().system(solver.signature.system).case
    made = case(solver, model, "native", np.random.default_rng(0), programs={})
    return made.build(solver, engine="native", dtype=dtype)


def rows(name, model, label):
    """Return rows of one solver: whether it has a kernel, and what is said of it."""
    solver = dyn.solver(name)
    for dtype in ("float32", "float64"):
        try:
            kernel = ptx(built(solver, model, dtype), ARCH)
            used = ptxas.assemble(kernel.ptx, ARCH)
        except DynError as error:
            reason = str(error).splitlines()[0]
            yield False, f"| `{name}` | {label} | {dtype} | {reason} |"
            continue
        form = "one function" if kernel.whole else "parts"
        spilled = used.spill_stores + used.spill_loads
        cells = (
            f"`{name}`", label, dtype, kernel.steps, form, used.registers, spilled,
            used.stack, used.warps(kernel.block),
            f"{100 * used.occupancy(kernel.block):.0f} %", f"{used.code / 1000:.0f}",
            f"{used.seconds:.1f}",
        )  # fmt: skip
        yield True, f"| {' | '.join(str(cell) for cell in cells)} |"


def tables(names):
    """Return the table of kernels, and that of solvers without one."""
    done, holes = [], []

    def add(name, model, label):
        for good, row in rows(name, model, label):
            (done if good else holes).append(row)
            print(row, flush=True)

    for name in names:
        solver = dyn.solver(name)
        if not hasattr(solver, "algorithm"):
            holes.append(f"| `{name}` | | | {NO_GRAPH} |")
            continue
        try:
            add(name, *system(solver))
        except DynError as error:
            holes.append(f"| `{name}` | | | {str(error).splitlines()[0]} |")
    for label, some in OTHERS.items():
        model = quadruped() if label == "quadruped" else tree()
        for name in some:
            if name in names:
                add(name, model, label)
    return HEAD + "\n".join(done) + WITHOUT + "\n".join(holes) + "\n"


def main(names):
    """Write the tables into the page, or print rows."""
    if names:
        tables(names)
        return
    before = PAGE.read_text(encoding="utf-8").split(MARK)
    before[1] = tables(dyn.solvers())
    PAGE.write_text(MARK.join(before), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
