"""CasADi functions around the kernels of robots whose positions have quaternions.

The kernels accept positions of unit length, and their slopes are derivatives by
tangent displacements of nv numbers. CasADi expressions around them, which it
differentiates itself, convert both:

    f(q) = kernel(u),   u = normalized(q)
    df(u)/du = slopes(u) V(u),   V(u): velocities (nv) from rates of positions (nq)

so that derivatives are by the nq numbers of q, to any order that the kernels have. The
slope of an output that is a position y is R(y) times the slope of its displacement.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dyn_core.bridges.coordinates import PositionRates, coordinates
from dyn_core.errors import UnsupportedError
from dyn_core.model import Model


def casadi_module() -> Any:
    """Return the module casadi; raise UnsupportedError if it is not installed."""
    try:
        import casadi
    except ImportError as error:
        raise UnsupportedError(
            "CasADi is not installed; valid: pip install 'dyn_ros[casadi]'"
        ) from error
    return casadi


def normalized(rates: PositionRates, q: Any) -> Any:
    """Return a position (nq) with unit quaternions; see PositionRates.normalized."""
    ca = casadi_module()
    same, outside = (ca.sparsify(ca.DM(x)) for x in rates.lengths)
    return q / ca.sqrt(ca.mtimes(same, q * q) + outside)


def _converting(rates: PositionRates, q: Any, to_velocity: bool) -> Any:
    """Return V(q) (nv, nq), velocities from rates, or R(q) (nq, nv), the reverse.

    Args:
        rates: Conversions of the robot.
        q: Unit position (nq), a CasADi expression.
        to_velocity: True: V(q); False: R(q).
    """
    ca = casadi_module()
    blocks, last = [], 0
    for of_q, of_v, rate, velocity in rates.joints:
        maps = velocity if to_velocity else rate
        width = of_q if to_velocity else of_v
        x = ca.vertcat(q[of_q], 1)
        flat = maps.transpose(1, 0, 2, 3).reshape(-1, len(maps[0, 0]) ** 2)
        entries = ca.mtimes(ca.sparsify(ca.DM(flat)), ca.vec(ca.mtimes(x, x.T)))
        blocks.append(ca.DM.eye(width.start - last))
        blocks.append(ca.reshape(entries, len(maps), maps.shape[1]))
        last = width.stop
    size = rates.nq if to_velocity else rates.nv
    return ca.diagcat(*blocks, ca.DM.eye(size - last))


def around(
    model: Model, name: str, kernels: Sequence[str], path: str, options: Any
) -> Any:
    """Return a casadi.Function of any position around kernels that need unit positions.

    Args:
        model: Robot.
        name: Name of the function.
        kernels: Names of the library's functions: values, slopes, then second
            derivatives if it has them.
        path: Path of the library.
        options: Options of the function.
    """
    ca = casadi_module()
    externals = [ca.external(kernel, path) for kernel in kernels]
    rates, first = coordinates(model), externals[0]
    names = first.name_in()
    inputs = [ca.MX.sym(x, first.size1_in(k)) for k, x in enumerate(names)]
    unit = [
        normalized(rates, x) if _is_position(name, x, rates) else x
        for name, x in zip(names, inputs, strict=True)
    ]
    inner = _differentiable(rates, externals)
    outputs = _list(inner(*unit))
    return ca.Function(name, inputs, outputs, names, first.name_out(), options)


def c_source(function: Any) -> str:
    """Return C code of a function and its Jacobian, to be loaded by casadi.external."""
    generator = casadi_module().CodeGenerator(function.name())
    generator.add(function)
    generator.add(function.jacobian())
    with tempfile.TemporaryDirectory() as folder:
        written = generator.generate(f"{folder}/")
        return Path(written).read_text(encoding="utf-8")


def _differentiable(rates: PositionRates, externals: Sequence[Any]) -> Any:
    """Return the first kernel as a CasADi function with a custom Jacobian.

    The next kernels compute the Jacobian; the last one has no Jacobian of its own.

    Args:
        rates: Conversions of the robot.
        externals: CasADi functions: values, slopes, then second derivatives if any.
    """
    ca = casadi_module()
    function, *others = externals
    names, results = function.name_in(), function.name_out()
    inputs = [ca.MX.sym(x, function.size1_in(k)) for k, x in enumerate(names)]
    name, options = f"{function.name()}_of_q", dict[str, Any]()
    if others:
        outputs = [
            ca.MX.sym(f"out_{y}", function.sparsity_out(k))
            for k, y in enumerate(results)
        ]
        slopes = _list(_differentiable(rates, others)(*inputs))
        turned = []
        for k, slope in enumerate(slopes):
            row, column = divmod(k, len(names))
            if _is_position(names[column], inputs[column], rates):
                slope = ca.mtimes(slope, _converting(rates, inputs[column], True))
            if slope.size1() < function.numel_out(row):  # displacements of a position
                slope = ca.mtimes(_converting(rates, outputs[row], False), slope)
            turned.append(slope)
        jacobian = ca.Function(
            f"jac_{name}",
            [*inputs, *outputs],
            turned,
            [*names, *(f"out_{y}" for y in results)],
            [f"jac_{y}_{x}" for y in results for x in names],
        )
        options = {"custom_jacobian": jacobian, "jac_penalty": 0}
        options |= {"enable_forward": False, "enable_reverse": False}
    outputs = _list(function(*inputs))
    return ca.Function(name, inputs, outputs, names, results, options)


def _is_position(name: str, x: Any, rates: PositionRates) -> bool:
    """Return whether an input is a position; among differentiable inputs, only `q`."""
    return name == "q" and x.size1() == rates.nq


def _list(values: Any) -> list[Any]:
    return list(values) if isinstance(values, tuple) else [values]
