"""Derivative Programs of a Program, and access to their outputs.

Independent of JAX and PyTorch: arrays are of any library with `@`, slices, `reshape`
and `swapaxes`. Derivatives are by tangent displacements (coordinates.py). The
derivative Programs of inverse and forward dynamics have derivatives themselves, which
makes second derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from dyn_core.bridges.sources import Slope, Source, Values
from dyn_core.engines import Program
from dyn_core.errors import UnsupportedError
from dyn_core.model.parameter_paths import LINK
from dyn_core.problems import FD_DERIVATIVES, ID_DERIVATIVES, Signature
from dyn_core.solving.build_options import BuildOptions
from dyn_core.solving.registry import solver

_NOT_PASSED = ("inputs", "matrices")
# Parameters of a link or joint in each of which joint forces are linear.
_LINEAR = ("mass", "inertia", "payload", "armature")
# Outputs without derivatives, which are treated as constants.
CONSTANT = ("impulse", "gap", "residuals", "iterations", "status", "modes")
# Reasons in messages about unknown derivatives, by the kind of problem.
_UNKNOWN = {
    "step_derivatives": "second derivatives of steps are not known; valid: a step that"
    " is written around a function of forward dynamics (aba), which has them",
    "contact_step_derivatives": "second derivatives of contact steps are not known",
    "id_second_derivatives": "third derivatives are not known",
    "fd_second_derivatives": "third derivatives are not known",
}


class Derivatives:
    """Slopes of a Program: the derivative of each output by each input.

    A Program without known derivatives is refused by `slope`, not by the constructor.

    Args:
        program: Program to be differentiated.

    Attributes:
        program: The argument.
        slopes: By (output, input): a function of Values that returns the derivative
            (..., *output, *input); positions have the size of their tangents, nv.
            Derivatives that are zero are missing.
        values: Outputs that the derivative Programs compute as well, by name, as
            functions of Values.
    """

    def __init__(self, program: Program[Any]) -> None:
        self.program = program
        self.slopes: dict[tuple[str, str], Slope] = {}
        self.values: dict[str, Slope] = {}
        self._refused: str | None = None
        self._zero: set[str] = set()  # inputs whose derivatives are zero
        make = _KINDS.get(program.signature.name)
        if make is None:
            self._refused = _UNKNOWN.get(
                program.signature.name, "no solver of its derivatives is known"
            )
        else:
            make(self)

    def slope(self, output: str, name: str) -> Slope | None:
        """Return the slope of an output by an input, a function of Values, or None.

        None stands for a slope of zero: of an output in CONSTANT (impulse, gap,
        residuals, iterations, status, modes) by any input, by `warm` of a step, or of a
        pair that is not in `slopes` where other outputs have one by this input.

        Args:
            output: Name of the output.
            name: Name of the input.

        Raises:
            UnsupportedError: For other outputs: none has a slope by this input, or the
                derivatives of the Program are not known.
        """
        if output in CONSTANT or name in self._zero:
            return None
        if (output, name) in self.slopes:
            return self.slopes[output, name]
        if self._refused is None and any(of == name for _, of in self.slopes):
            return None
        reason = self._refused or f"there is no derivative by {name}"
        by = sorted({of for _, of in self.slopes} | self._zero)
        valid = f"; valid: derivatives by {', '.join(by)}" if by else ""
        raise UnsupportedError(
            f"{self.program.recipe.solver.name}: {reason}{valid}; stop_gradient or"
            " detach makes an input a constant"
        )

    def source(
        self, name: str | Signature, drop: tuple[str, ...] = (), **options: Any
    ) -> Source:
        """Return the Source of another solver, built with the options of the Program.

        Each call returns a new one. The solver is looked up and built at its first use,
        which may raise the errors of a build. It also gets those inputs of the Program
        that are optional for it, and the parameters, except those that it ignores.

        Args:
            name: Name of the solver, or a problem: its default solver.
            drop: Inputs of the Program that it does not get.
            options: Further build options, which take precedence.
        """

        def make() -> Program[Any]:
            what = solver(name) if isinstance(name, str) else solver("auto", name)
            what = what.for_model(self.program.model)
            choices = {**self._choices(what), **options}
            names = [port.name for port in self.program.inputs]
            wanted = [x for x in names if x not in drop and _is_optional(what, x)]
            known = {port.name for port in self.program.signature.inputs}
            inputs = [x for x in wanted if x in known or not _ignored(what, x)]
            return what.build(self.program.model, inputs=inputs, **choices)

        return Source(make)

    def _choices(self, what: Any) -> dict[str, Any]:
        """Return build options of the Program that apply to another solver, by name.

        They are those of BuildOptions (except inputs, matrices, and options of forces
        that the other solver does not have), slots of the same kind in both solvers,
        and options that the other solver declares; only those that were chosen for the
        Program or in its solver.
        """
        recipe = self.program.recipe
        chosen = {**getattr(recipe.solver, "changed_options", {}), **recipe.choices}
        common = {field.name for field in fields(BuildOptions)} - {*_NOT_PASSED}
        if "f_ext" not in {port.name for port in what.signature.inputs}:
            common -= {"f_ext_frame"}
        common -= {"joint_friction", "joint_springs"} - {*what.signature.acting}
        slots = getattr(recipe.solver, "slots", {})
        same = {k for k, v in getattr(what, "slots", {}).items() if slots.get(k) == v}
        names = common | same | set(getattr(what, "options", {}))
        return {key: value for key, value in chosen.items() if key in names}

    def parameters(self) -> list[str]:
        """Return the names of inputs such as link.mass, gravity and time.

        They are the inputs of the Program that its Signature does not have.
        """
        known = {port.name for port in self.program.signature.inputs}
        return [x.name for x in self.program.inputs if x.name not in known]

    def by_parameters(self) -> dict[str, Source]:
        """Return the Sources of derivatives of joint forces, by name of the parameter.

        Their output is dtau_dp, (..., nv, entries of the parameter). Only parameters
        that are inputs of the Program are included, of links, joints and the robot, and
        the time of driven joints, which parameter_jacobian counts among them.
        Parameters of a link that are not in _LINEAR (mass, inertia, payload, armature),
        and the origin of a joint, have no solver of derivatives and are left out. Joint
        forces are linear in the parameters of _LINEAR, which their Source does not get
        as inputs. Sources are built at their first use.
        """
        sources = {}
        for path in self.parameters():
            last = path.rpartition(".")[2]
            if last in _LINEAR or last not in (*LINK, "origin"):
                drop = (path,) if last in _LINEAR else ()
                sources[path] = self.source("parameter_jacobian", drop, paths=[path])
        return sources

    def by_forces(self) -> Source | None:
        """Return the Source of the derivatives of joint forces by f_ext.

        Its output is dtau_df_ext, (..., nv, nb, 6). It is None if the Program has no
        f_ext, or f_ext is not in body coordinates.
        """
        frame = self.program.recipe.choices.get("f_ext_frame", "body")
        if frame != "body" or not self.has("f_ext"):
            return None
        return self.source("id_force_jacobian")

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of the Program's input `name`, without a batch axis.

        Raises StopIteration if there is none.
        """
        return next(port.shape for port in self.program.inputs if port.name == name)

    def has(self, name: str) -> bool:
        """Return whether the Program has the input `name`."""
        return any(port.name == name for port in self.program.inputs)


def _is_optional(what: Any, name: str) -> bool:
    """Return whether a solver has an input only if its build asks for it by name.

    The name is that of a port, or of a parameter such as "link.mass".
    """
    ports = {port.name: port for port in what.signature.inputs}
    return ports[name].optional if name in ports else "." in name or name in _GLOBAL


_GLOBAL = ("gravity", "armature", "time")


def _ignored(what: Any, path: str) -> bool:
    return path.rpartition(".")[2] in what.signature.ignores


def _flat(matrix: Any) -> Any:
    """Return a derivative (..., nb, 6) by forces on bodies as (..., 6 nb)."""
    return matrix.reshape((*matrix.shape[:-2], -1))


def _read(source: Source, output: str) -> Slope:
    """Return a function of Values that returns an output of a Source."""
    return lambda v: v(source)[output]


def _block(source: Source, output: str, rows: slice, columns: slice) -> Slope:
    """Return a function of Values: a block of a matrix's last two axes."""
    return lambda v: v(source)[output][..., rows, columns]


def _by_parameter(first: Source, by: Source) -> Slope:
    """Return the slope of accelerations by a parameter p: -Hinv dtau/dp.

    The input qdd of `by`, which has dtau_dp, is the qdd of `first`.
    """
    return lambda v: -v(first)["Hinv"] @ v(by, qdd=v(first)["qdd"])["dtau_dp"]


def _of_port(slope: Slope, shape: tuple[int, ...]) -> Slope:
    """Return a slope by a parameter, without its last axis if the input is a scalar."""
    return slope if shape else lambda v: slope(v)[..., 0]


def _by_forces(first: Source, forces: Source) -> Slope:
    """Return the slope of accelerations by forces on bodies, (..., nv, nb, 6).

    It is -Hinv dtau/df_ext.
    """

    def slope(v: Values) -> Any:
        by = v(forces)["dtau_df_ext"]
        slopes = -v(first)["Hinv"] @ _flat(by)
        return slopes.reshape((*slopes.shape[:-1], *by.shape[-2:]))

    return slope


def _inverse_dynamics(d: Derivatives) -> None:
    first = d.source(ID_DERIVATIVES)
    for name, output in (("q", "dtau_dq"), ("qd", "dtau_dqd"), ("qdd", "H")):
        d.slopes["tau", name] = _read(first, output)
    forces = d.by_forces()
    if forces is not None:
        d.slopes["tau", "f_ext"] = lambda v: v(forces)["dtau_df_ext"]
    for path, by in d.by_parameters().items():
        d.slopes["tau", path] = _of_port(_read(by, "dtau_dp"), d.shape(path))


def _forward_dynamics(d: Derivatives) -> None:
    first = d.source(FD_DERIVATIVES)
    d.values["qdd"] = lambda v: v(first)["qdd"]
    for name, output in (("q", "dqdd_dq"), ("qd", "dqdd_dqd"), ("tau", "Hinv")):
        d.slopes["qdd", name] = _read(first, output)
    if d.program.model.loops:
        return
    forces = d.by_forces()
    if forces is not None:
        d.slopes["qdd", "f_ext"] = _by_forces(first, forces)
    for path, by in d.by_parameters().items():
        d.slopes["qdd", path] = _of_port(_by_parameter(first, by), d.shape(path))


def _step(d: Derivatives) -> None:
    first = d.source(f"{d.program.recipe.solver.name}_derivatives")
    nv = d.program.model.nv
    for output, rows in (("q_next", slice(nv)), ("qd_next", slice(nv, None))):
        d.values[output] = _read(first, output)
        for name, by in (("q", slice(nv)), ("qd", slice(nv, None))):
            d.slopes[output, name] = _block(first, "A", rows, by)
        d.slopes[output, "tau"] = _block(first, "B", rows, slice(None))
    d._zero = {"warm"}


def _of_id_derivatives(d: Derivatives) -> None:
    second = d.source("id_second_derivatives")
    s = d.slopes
    s["dtau_dq", "q"] = lambda v: v(second)["d2tau_dqdq"]
    s["dtau_dq", "qd"] = lambda v: v(second)["d2tau_dqdqd"]
    s["dtau_dq", "qdd"] = lambda v: v(second)["dH_dq"].swapaxes(-1, -2)
    s["dtau_dqd", "q"] = lambda v: v(second)["d2tau_dqdqd"].swapaxes(-1, -2)
    s["dtau_dqd", "qd"] = lambda v: v(second)["d2tau_dqddqd"]
    s["H", "q"] = lambda v: v(second)["dH_dq"]


def _of_fd_derivatives(d: Derivatives) -> None:
    first, second = d.source("fd_derivatives"), d.source("fd_second_derivatives")
    s = d.slopes
    for name, output in (("q", "dqdd_dq"), ("qd", "dqdd_dqd"), ("tau", "Hinv")):
        s["qdd", name] = _read(first, output)
    s["dqdd_dq", "q"] = lambda v: v(second)["d2qdd_dqdq"]
    s["dqdd_dq", "qd"] = lambda v: v(second)["d2qdd_dqdqd"]
    s["dqdd_dq", "tau"] = lambda v: v(second)["d2qdd_dqdtau"]
    s["dqdd_dqd", "q"] = lambda v: v(second)["d2qdd_dqdqd"].swapaxes(-1, -2)
    s["dqdd_dqd", "qd"] = lambda v: v(second)["d2qdd_dqddqd"]
    s["Hinv", "q"] = lambda v: v(second)["d2qdd_dqdtau"].swapaxes(-1, -2)


def _mass_matrix(d: Derivatives) -> None:
    second = d.source("id_second_derivatives")
    d.slopes["H", "q"] = lambda v: v(second)["dH_dq"]


def _gravity_force(d: Derivatives) -> None:
    second = d.source("id_derivatives")
    d.slopes["g", "q"] = lambda v: v(second)["dtau_dq"]


def _bias_force(d: Derivatives) -> None:
    second = d.source("id_derivatives")
    d.slopes["C", "q"] = lambda v: v(second)["dtau_dq"]
    d.slopes["C", "qd"] = lambda v: v(second)["dtau_dqd"]


_KINDS: dict[str, Callable[[Derivatives], None]] = {
    "inverse_dynamics": _inverse_dynamics,
    "forward_dynamics": _forward_dynamics,
    "step": _step,
    "contact_step": _step,
    "id_derivatives": _of_id_derivatives,
    "fd_derivatives": _of_fd_derivatives,
    "mass_matrix": _mass_matrix,
    "gravity_force": _gravity_force,
    "bias_force": _bias_force,
}
