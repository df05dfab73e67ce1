"""The command `dyn export`: a solver for a robot as machine code or C source."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from dyn_core.errors import SettingError, ShapeError, UnsupportedError, unknown_name
from dyn_core.export import TARGETS, Export, export, gpu
from dyn_core.export.cycle import controller_cycle as laws
from dyn_core.export.folder import FORMS, MULTIPLY_ADD, VARIANTS
from dyn_core.export.ros2_control.ament_package import FORM
from dyn_core.export.ros2_control.controller_package import (
    LAWS,
    TOOL,
    controller_package,
)
from dyn_core.export.ros2_control.hardware_package import hardware_package
from dyn_core.model.sources.arguments import (
    add_options,
    add_robot,
    load_robot,
    read_options,
    robot_settings,
    urdf_with,
)
from dyn_core.problems import STEP
from dyn_core.solving.registry import default_registry
from dyn_core.validation.file_names import check_folder


def add_export(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and targets of `dyn export`, and its function as `run`."""
    listed = "\n".join(f"  {x.name:12} {x.meaning}" for x in TARGETS.values())
    listed += (
        f"\n  {', '.join(gpu.ARCHITECTURES)}: PTX for NVIDIA's GPUs, experimental:"
        " never launched"
    )
    parser.epilog = f"targets:\n{listed}"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    cycles = f"or a whole controller: {', '.join(laws.CYCLES)}"
    parser.add_argument("solver", help=f"a solver that can be traced, {cycles}")
    add_robot(parser)
    parser.add_argument("folder", help="where the files go; it is made")
    parser.add_argument(
        "--target", default="host", metavar="TARGET",
        help="what for, one of those below (default: %(default)s)",
    )  # fmt: skip
    _choice(parser, "--variant", VARIANTS, "scalar: one state; batch: rows besides")
    _choice(
        parser, "--form", (*FORMS, FORM),
        "what is linked or compiled; ros2_control: a package with a controller"
        f" ({', '.join(LAWS)}), or a simulated robot (a solver of steps in time)",
    )  # fmt: skip
    parser.add_argument("--name", help="of the functions (default: SOLVER_ROBOT)")
    parser.add_argument(
        "--dtype", default="float64", help="float64 or float32 (default: %(default)s)"
    )
    parser.add_argument(
        "--unchecked", action="store_true",
        help="leave out the check of inputs and results for NaN",
    )  # fmt: skip
    _choice(
        parser, "--multiply-add", MULTIPLY_ADD,
        "on targets without the instruction: the bits of Python, or faster",
    )  # fmt: skip
    add_options(
        parser,
        "option or slot of the solver, such as frame=tool0; a list: active=a,b, of one"
        " name: frames=[tool0]",
    )
    parser.set_defaults(run=run)


def _choice(
    parser: argparse.ArgumentParser, name: str, valid: tuple[str, ...], what: str
) -> None:
    """Add an option that names one of some values, by default the first.

    argparse does not check the value; `run` does.
    """
    parser.add_argument(
        name, default=valid[0], metavar="|".join(valid),
        help=f"{what} (default: %(default)s)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Write an export, a GPU kernel or a package for ros2_control; return 0.

    Prints its files; of an export also ports and memory. The folder is made; its parent
    must exist. Files of earlier exports are replaced if nobody changed them; by a GPU
    kernel, any files of its names.

    Raises:
        UnsupportedError: An argument is not valid, or the solver cannot be exported.
        SolverNotFound: There is no such solver.
        ModelError: The robot is not valid.
        ShapeError: The name of the folder is empty.
        SettingError: An option is not valid, or the folder has no parent, is a file,
            has other or changed files of these names, or cannot be written.
        CompileError: There is no compiler, or it fails.
    """
    for name, valid in (  # refused before the robot is read
        ("target", (*TARGETS, *gpu.ARCHITECTURES)), ("variant", VARIANTS),
        ("form", (*FORMS, FORM)), ("multiply_add", MULTIPLY_ADD),
    ):  # fmt: skip
        value = getattr(arguments, name)
        if value not in valid:
            raise UnsupportedError(unknown_name(name, value, valid))
    if not arguments.folder:
        raise ShapeError("folder", "where the files go ('.': here)", "an empty name")
    place = Path(os.path.abspath(arguments.folder)).parent
    if not place.is_dir():  # the folder is created, but not its parents
        raise SettingError(
            f"folder {arguments.folder!r}; there is no such folder as {place}", "folder"
        )
    check_folder(arguments.folder)
    if arguments.target in gpu.ARCHITECTURES:
        _refuse_for_gpu(arguments)
    if arguments.form == FORM:
        return _package(arguments)
    cycle = arguments.solver in laws.CYCLES
    solver = None if cycle else default_registry().solver(arguments.solver)
    model = load_robot(arguments)
    options = read_options(arguments, solver)
    if arguments.dtype != "float64":
        options["dtype"] = arguments.dtype
    if "finite" in options:
        raise UnsupportedError("--option finite; valid: exports check, or --unchecked")
    if solver is None:
        program = laws.cycle_of_options(arguments.solver, model, options)
    else:
        program = solver.build(model, **options)
    if arguments.target in gpu.ARCHITECTURES:
        kernel = gpu.ptx(program, arguments.target)
        print(f"{kernel.entry}: {kernel.name}, {kernel.steps} operations")
        paths = kernel.write(arguments.folder)
        print("\n".join(f"written: {path}" for path in paths))
        return 0
    result = export(
        program,
        arguments.folder,
        target=arguments.target,
        variant=arguments.variant,
        form=arguments.form,
        name=arguments.name,
        multiply_add=arguments.multiply_add,
        checked=not arguments.unchecked,
    )
    print("\n".join(summary(result)))
    return 0


def _package(arguments: argparse.Namespace) -> int:
    """Write a package for ros2_control, print its files, and return 0.

    It has a controller if the solver is a law (of controller_package.LAWS, by its name
    with or without _cycle, or "cartesian"), else a simulated robot. Options that such a
    package does not have are refused.
    """
    for name, default in (
        ("target", "host"), ("variant", VARIANTS[0]), ("name", None),
        ("dtype", "float64"), ("multiply_add", MULTIPLY_ADD[0]), ("unchecked", False),
    ):  # fmt: skip
        if getattr(arguments, name) != default:
            raise UnsupportedError(
                f"--{name.replace('_', '-')}: form {FORM} is C source of a whole"
                " controller; valid: leave it out"
            )
    name, options = arguments.solver, read_options(arguments)
    is_law = name in {*LAWS, *LAWS.values(), TOOL}
    steps = default_registry().names(STEP, references=True)
    if not is_law and name not in steps:
        valid = [*LAWS, TOOL, *steps]
        raise UnsupportedError(unknown_name("controller or step", name, valid))
    model = load_robot(arguments)
    urdf = urdf_with(robot_settings(arguments), arguments.robot)
    write = controller_package if is_law else hardware_package
    files = write(name, model, arguments.folder, urdf, options)
    print("\n".join(f"written: {path}" for path in files))
    return 0


def _refuse_for_gpu(arguments: argparse.Namespace) -> None:
    """Raise UnsupportedError for options that have no effect on a GPU kernel."""
    for name, default in (
        ("form", FORMS[0]), ("variant", VARIANTS[0]), ("name", None),
        ("multiply_add", MULTIPLY_ADD[0]),
    ):  # fmt: skip
        value = getattr(arguments, name)
        if value != default:
            raise UnsupportedError(
                f"--{name.replace('_', '-')} {value}: target {arguments.target} is a"
                " GPU, whose kernels are PTX; valid: leave it out"
            )


def summary(result: Export) -> list[str]:
    """Return lines about an export: ports, memory [bytes], what it needs, files."""
    x = result.interface
    lines = [f"{x.prefix}: {x.solver} for '{x.robot}', target {result.target}"]
    for title, ports in (("in", x.inputs), ("out", x.outputs)):
        shown = ", ".join(f"{p.c_name}[{p.size}]" for p in ports)
        lines.append(f"  {title:8}{shown}")
    if result.code:
        lines.append(f"  code    {result.code} bytes, constants {result.constants}")
    memory = max(x.scratch, x.batch_scratch)
    lines.append(f"  memory  scratch {memory} bytes of the caller, stack {x.stack}")
    nothing = "math.h and libm (-lm)" if result.form == "c" else "nothing"
    needs = ", ".join(result.undefined) or nothing
    lines.append(f"  needs   {needs} from elsewhere")
    lines += [f"written: {result.folder / name}" for name in result.files]
    return [*lines, f"next: {x.prefix}_README.md has the command that compiles it"]
