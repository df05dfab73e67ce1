"""Rigid-body dynamics for robots: models, solvers, engines, and plugins.

Sources, by the short names used in docstrings:

    RBDA   R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008.
    GUIDE  R. Featherstone, A Beginner's Guide to 6-D Vectors (Part 1), IEEE Robotics
           and Automation Magazine, September 2010.
    KIM    J. Kim, Lie Group Formulation of Articulated Rigid Body Dynamics, 2012.

Each public name is imported when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dyn_core import authoring, errors, planar, problems, robots, spatial
    from dyn_core.contact import ConstraintLayout, ConstraintProblem, ContactSolution
    from dyn_core.contact.collision.halfspaces import HalfSpace
    from dyn_core.contact.world import World
    from dyn_core.engines import ENGINES, Program, Results, default_engine
    from dyn_core.errors import (
        CompileError,
        DynError,
        FrameMismatchError,
        IdentificationError,
        InfeasibleError,
        ModelError,
        NonFiniteError,
        PluginError,
        QuaternionError,
        RequireError,
        SettingError,
        ShapeError,
        SignatureError,
        SingularError,
        SolverNotFound,
        StateError,
        TraceError,
        TrajectoryError,
        UnsupportedError,
    )
    from dyn_core.identification import (
        BaseParameters,
        Identification,
        base_parameters,
        identify,
        parameter_names,
        parameters_of,
        with_linear_parameters,
    )
    from dyn_core.kinematics import inverse_kinematics
    from dyn_core.model import Model, load, load_mjcf, load_urdf
    from dyn_core.model.loops.loop_constraints import (
        Coupling,
        Loop,
        coupling,
        make_loop,
        user_loop,
    )
    from dyn_core.planar import ChainModel, make_chain
    from dyn_core.prediction import cost, kalman, lqr, plan
    from dyn_core.recordings import Recording
    from dyn_core.reports.doctor.examine import doctor
    from dyn_core.simulation import (
        ContactSimulator,
        Simulator,
        close_loops,
        close_rates,
        simulate,
    )
    from dyn_core.solving.operation_counts import count
    from dyn_core.solving.registry import Registry, default_registry, solver, solvers
    from dyn_core.solving.solver import Solver

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

# The module of each public name; the same imports stand above for type checkers.
_NAMES = {
    "dyn_core.contact": (
        "ConstraintLayout",
        "ConstraintProblem",
        "ContactSolution",
    ),
    "dyn_core.contact.collision.halfspaces": ("HalfSpace",),
    "dyn_core.contact.world": ("World",),
    "dyn_core.engines": (
        "ENGINES",
        "Program",
        "Results",
        "default_engine",
    ),
    "dyn_core.errors": (
        "CompileError",
        "DynError",
        "FrameMismatchError",
        "IdentificationError",
        "InfeasibleError",
        "ModelError",
        "NonFiniteError",
        "PluginError",
        "QuaternionError",
        "RequireError",
        "SettingError",
        "ShapeError",
        "SignatureError",
        "SingularError",
        "SolverNotFound",
        "StateError",
        "TraceError",
        "TrajectoryError",
        "UnsupportedError",
    ),
    "dyn_core.identification": (
        "BaseParameters",
        "Identification",
        "base_parameters",
        "identify",
        "parameter_names",
        "parameters_of",
        "with_linear_parameters",
    ),
    "dyn_core.kinematics": ("inverse_kinematics",),
    "dyn_core.model": (
        "Model",
        "load",
        "load_mjcf",
        "load_urdf",
    ),
    "dyn_core.model.loops.loop_constraints": (
        "Coupling",
        "Loop",
        "coupling",
        "make_loop",
        "user_loop",
    ),
    "dyn_core.planar": (
        "ChainModel",
        "make_chain",
    ),
    "dyn_core.prediction": ("cost", "kalman", "lqr", "plan"),
    "dyn_core.recordings": ("Recording",),
    "dyn_core.reports.doctor.examine": ("doctor",),
    "dyn_core.simulation": (
        "ContactSimulator",
        "Simulator",
        "close_loops",
        "close_rates",
        "simulate",
    ),
    "dyn_core.solving.operation_counts": ("count",),
    "dyn_core.solving.registry": (
        "Registry",
        "default_registry",
        "solver",
        "solvers",
    ),
    "dyn_core.solving.solver": ("Solver",),
}
_MODULES = ("authoring", "errors", "planar", "problems", "robots", "spatial")
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
_FORMER: dict[str, str] = {}  # names of the last minor version -> present names

__all__ = [
    "ENGINES",
    "BaseParameters",
    "ChainModel",
    "CompileError",
    "ConstraintLayout",
    "ConstraintProblem",
    "ContactSimulator",
    "ContactSolution",
    "Coupling",
    "DynError",
    "FrameMismatchError",
    "HalfSpace",
    "Identification",
    "IdentificationError",
    "InfeasibleError",
    "Loop",
    "Model",
    "ModelError",
    "NonFiniteError",
    "PluginError",
    "Program",
    "QuaternionError",
    "Recording",
    "Registry",
    "RequireError",
    "Results",
    "SettingError",
    "ShapeError",
    "SignatureError",
    "Simulator",
    "SingularError",
    "Solver",
    "SolverNotFound",
    "StateError",
    "TraceError",
    "TrajectoryError",
    "UnsupportedError",
    "World",
    "authoring",
    "base_parameters",
    "close_loops",
    "close_rates",
    "cost",
    "count",
    "coupling",
    "default_engine",
    "default_registry",
    "doctor",
    "errors",
    "identify",
    "inverse_kinematics",
    "kalman",
    "load",
    "load_mjcf",
    "load_urdf",
    "lqr",
    "make_chain",
    "make_loop",
    "parameter_names",
    "parameters_of",
    "plan",
    "planar",
    "problems",
    "robots",
    "simulate",
    "solver",
    "solvers",
    "spatial",
    "user_loop",
    "with_linear_parameters",
]

__version__: str

if not TYPE_CHECKING:  # with __getattr__, type checkers would accept any name

    def __getattr__(name: str) -> Any:
        """Return a public name or module, imported now, or `__version__`.

        A former name gives its successor, with a DeprecationWarning.

        Raises:
            AttributeError: `name` is not public.
            PackageNotFoundError: `__version__` of a package that is not installed.
        """
        if name in _MODULE_OF:
            value = getattr(importlib.import_module(_MODULE_OF[name]), name)
            globals()[name] = value
            return value
        if name in _FORMER:
            from dyn_core.errors import renamed

            renamed("name", name, _FORMER[name])
            return getattr(importlib.import_module("dyn_core"), _FORMER[name])
        if name in _MODULES:
            return importlib.import_module(f"dyn_core.{name}")
        if name == "__version__":
            from importlib.metadata import version

            return version("dyn_ros")
        raise _UnknownName(name, name=name)

    class _UnknownName(AttributeError):
        """A name that is not public; the text with its guesses is made when it is read.

        `from dyn_core import contact` asks for an attribute before it imports a module:
        nothing may be loaded for that.
        """

        def __str__(self) -> str:
            """Return the message for the name, with what is valid instead."""
            from dyn_core import errors, problems
            from dyn_core.solving.registry import solver, solvers

            name = str(self.args[0])
            said = f"module 'dyn_core' has no attribute '{name}'"
            problem = None
            if name.lower() in problems.names():
                problem = problems.find(name)
                name = problem.name
            elif name in solvers():
                problem = solver(name).signature
                if problem is problems.OPTIMAL_CONTROL:  # called by dyn.plan
                    problem = None
            if problem:
                inputs = ", ".join(x.name for x in problem.inputs if not x.optional)
                way = f'dyn.solver("{name}").build(model)({inputs})'
                others = f'dyn.solvers("{problem.name}") lists the solvers'
                return f"{said}; valid: {way}; {others}"
            from importlib.util import find_spec

            if find_spec(f"dyn_core.{name}") is not None:
                return f"{said}; valid: import dyn_core.{name}"
            if name in ("show", "view"):
                return f"{said}; valid: dyn_core.view.show(model); dyn help view"
            guess = errors.guesses(name, [*__all__, *problems.names()])
            return (
                f"{said}{guess} algorithms: dyn.solver(NAME).build(model), names:"
                " dyn.solvers()"
            )


def __dir__() -> list[str]:
    """Return all public names, imported yet or not, and those with `__`, sorted."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
