"""The commands `dyn help` and `dyn solvers`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

import dyn_core
from dyn_core.errors import (
    SettingError,
    SignatureError,
    UnsupportedError,
    nearest,
    unknown_name,
)
from dyn_core.export.cycle.controller_cycle import CYCLES
from dyn_core.known_words import OTHER_NAMES
from dyn_core.problems import Signature
from dyn_core.problems import describe as describe_problem
from dyn_core.solving.help_pages import mentions, names_with_terms, summary
from dyn_core.solving.registry import default_registry
from dyn_core.tasks import ROBOT_TASKS, TASKS, task_page

# Pages of the documentation by what they are about, in words that readers search for.
PAGES = {
    "start": "install, load a first robot",
    "loading": "URDF, xacro, MJCF; robots by name: UR5, UR5e, UR10, Franka Panda",
    "mjcf": "robots of MuJoCo",
    "library": "mass matrix, Coriolis matrix (Christoffel symbols), Jacobian, friction",
    "conventions": "convert quaternions, frames, units; Pinocchio, MuJoCo, ROS",
    "other_libraries": "names of Pinocchio, MuJoCo, Drake, Robotics Toolbox",
    "control": "computed torque, PD, gravity compensation (weight), impedance; "
    "humanoids, whole-body control (TSID), friction cones",
    "task_space": "force and impedance of the tool, singularity, manipulability",
    "controller_node": "trajectories, FollowJointTrajectory, MoveIt",
    "ros2_control": "ros2_control on a UR, a Franka or another arm",
    "nodes": "ROS 2 nodes, a simulator in place of Gazebo",
    "ros_installations": "ROS 2 from apt, conda, pip; RViz, Foxglove, TF",
    "tools": "bags, recordings; topics, parameters, services, diagnostics of running "
    "nodes",
    "safety": "effort limits, guard, emergency stop (estop), stale states",
    "simulation": "simulate a robot, integrate, step, energy",
    "contacts": "contact forces, friction, walking and legged robots, grippers, boxes",
    "loops": "closed loops, four-bar linkages, parallel robots, feet on the ground",
    "planar": "pendulums (single, double), acrobot, cart-pole, hopper, chains",
    "viewing": "3D viewer in the browser or a notebook, visualization, film (GIF, "
    "mp4), screenshots",
    "reports": "reports, plots (plot a run), energy balance, comparison of runs; "
    "lock joints that were not recorded",
    "doctor": "faults of a URDF: masses, inertias, limits, units",
    "inverse_kinematics": "inverse kinematics (IK): poses in reach of the workspace",
    "optimal_control": "LQR, MPC, DDP, iLQR, trajectory optimization, "
    "planning, swing-up",
    "derivatives": "linearize, linearization, gradient, first and second derivatives",
    "bridges": "JAX, PyTorch, automatic differentiation",
    "environments": "train policies: reinforcement learning (RL), PPO, SAC, gymnasium",
    "identification": "calibration of masses, friction and payload; regressor",
    "excitation": "exciting trajectories for identification or calibration",
    "estimation": "external forces, collision detection, payload (weight)",
    "batches": "many states at once, memory maps, parallel, threads, Dask "
    "cluster, resume",
    "speed": "performance, latency, float32, compiling",
    "export": "C code, machine code, microcontroller, WebAssembly",
    "cpp": "C++, real-time controllers, CasADi",
    "gpu": "GPU, CUDA",
    "glossary": "terms and abbreviations",
}


def add_help(parser: argparse.ArgumentParser) -> None:
    """Add the words `name` of `dyn help`, a list, and its function as `run`."""
    what = (
        "a command, a solver, a kind of problem, a task of an environment, or words"
        " such as: mass matrix, H"
    )
    parser.add_argument("name", nargs="*", help=what)
    parser.set_defaults(run=_help)


def add_solvers(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn solvers`, and its function as `run`."""
    what = "only solvers of this kind of problem"
    parser.add_argument("problem", nargs="?", metavar="PROBLEM", help=what)
    parser.add_argument("--problem", dest="named", help=argparse.SUPPRESS)  # as in 0.1
    parser.add_argument(
        "--all", action="store_true", help="reference solvers, too; sources of each"
    )
    parser.set_defaults(run=_solvers)


def _help(arguments: argparse.Namespace) -> int:
    """Print the help page of a command, solver, kind of problem or task; return 0.

    Without a name it is the help of `dyn`. A solver comes before a problem of the same
    name, a problem before a command, a command before a task. Other words give the
    problems, commands, public names of dyn_core and PAGES that mention them; the name
    of a task gives them below its page.
    """
    registry, whole = default_registry(), arguments.parser
    asked = " ".join(arguments.name).split()
    name = "_".join(asked).lower()
    commands = whole.commands()
    problems = {problem.name: problem for problem in registry.problems()}
    solvers = registry.names(references=True)
    tasks = [*ROBOT_TASKS, *TASKS]
    if not arguments.name:
        whole.print_help()
    elif name in solvers:
        print(registry.solver(name).describe())
    elif name in problems:
        print(describe_problem(problems[name]))
        print("\nSolvers: " + (", ".join(registry.names(name)) or "none"))
        default = registry.default(problems[name])
        if default is not None:
            print(f"Default solver: {default.names()}")
    elif name in commands:
        commands[name].print_help()
    elif name in tasks:
        print(task_page(name))
        more = ", docs/planar.md" if name in TASKS else ""
        print(f"\nThe environment of this task: docs/environments.md{more}")
        if text := _mentions(asked, whole.sentences()):
            print(f"\n{text}")
    elif name in CYCLES:
        print(f"{name}: {CYCLES[name][2].meaning}.\nA whole controller as one kernel:")
        print(f"  dyn export {name} ROBOT FOLDER\nIts options and inputs: docs/cpp.md")
    elif asked and (text := _mentions(asked, whole.sentences())):
        print(text)
    else:
        known = [*solvers, *problems, *commands, *tasks, *CYCLES]
        name = " ".join(asked)
        message = unknown_name("command, problem, task or solver", name, known)
        raise UnsupportedError(f"{message}; {OTHER_NAMES}")
    return 0


def _mentions(terms: Sequence[str], sentences: Mapping[str, str]) -> str:
    """Return lines for problems, commands, public names and PAGES with all terms.

    `sentences` has what the list of commands says of each, by name. A last line says
    how to read on; without a mention the text is "". Case does not matter.
    """
    lines = mentions(default_registry(), terms)
    commands = names_with_terms(terms, sentences)
    lines += [f"dyn {name}: {sentences[name]}" for name in commands]
    more = ["dyn help NAME has more of each."] if lines else []
    pages = [
        f"docs/{name}.md: {PAGES[name]}" for name in names_with_terms(terms, PAGES)
    ]
    blocks = lines, _public_names(terms), pages, more
    return "\n\n".join("\n".join(x) for x in blocks if x)


def _public_names(terms: Sequence[str]) -> list[str]:
    """Return a line for each name of dyn_core in which each term begins a word.

    There is no line if a term has only one or two letters, with which many names begin.
    """
    parts = [word.removeprefix("dyn.") for word in terms]
    if min(map(len, parts)) < 3:
        return []
    names = names_with_terms(parts, dict.fromkeys(dyn_core.__all__, ""))
    what = [(getattr(dyn_core, name).__doc__ or "").split("\n")[0] for name in names]
    says = [text.removeprefix("Return ").rstrip(".") for text in what]
    return [
        f"dyn.{name}: {text} (in Python: help(dyn.{name}))"
        for name, text in zip(names, says, strict=True)
    ]


def _solvers(arguments: argparse.Namespace) -> int:
    """Print the solvers by problem; return 1 if a plugin failed to load, else 0.

    With --all there are reference solvers, too, and the source of each; without it a
    line counts those of the problem that is asked for. Problems without solvers are
    left out; one that is asked for gives an empty line.
    """
    if None not in (arguments.problem, arguments.named):
        message = "--problem is now PROBLEM, and both are there; valid: PROBLEM"
        raise SettingError(message, "problem")
    registry = default_registry()
    problems = registry.problems()
    asked = arguments.named if arguments.problem is None else arguments.problem
    if asked is not None:
        try:
            problems = [registry.problem(asked)]
        except SignatureError as error:
            near = nearest(asked, registry.names(), 1)
            hint = f"; the solver {near[0]}: dyn help {near[0]}" if near else ""
            raise SignatureError(f"{error}{hint}") from error
    blocks = []
    for problem in problems:
        names = registry.names(problem, references=arguments.all)
        if names:
            blocks.append(_solvers_of(problem, names, arguments.all))
        hidden = len(registry.names(problem, references=True)) - len(names)
        if asked is not None and hidden:
            blocks.append(f"{hidden} reference solvers more: --all")
    print("\n\n".join(blocks))
    return 1 if registry.failures else 0


def _solvers_of(problem: Signature, names: Sequence[str], sources: bool) -> str:
    """Return a problem and its solvers as text, with one line for each solver.

    It has the summary, "(reference)", and the origin if not of dyn_plugins; with
    `sources` a second line has its module and literature source.
    """
    lines = [f"{problem.name}: {problem.meaning}".rstrip(": ")]
    width = max(map(len, names))
    for name in names:
        solver = default_registry().solver(name)
        foreign = "" if "(dyn_plugins." in solver.origin else f"  [{solver.origin}]"
        mark = " (reference)" if solver.reference else ""
        lines.append(f"    {name.ljust(width)}  {summary(solver)}{mark}{foreign}")
        if sources:
            indent = " " * (width + 6)
            lines.append(f"{indent}{solver.origin}; {solver.source}".rstrip("; "))
    return "\n".join(lines)
