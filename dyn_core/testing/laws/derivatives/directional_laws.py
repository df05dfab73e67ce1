"""Laws of derivatives by directions and parameters: each yields pairs that must agree.

A law takes a case: a solver under test, its robot, and a random state q, qd, qdd. It
yields pairs (left, right) of arrays that must agree; a pair (float(condition), 1.0)
checks a condition. ID and FD are inverse and forward dynamics, H the mass matrix, C the
bias force, J a Jacobian; (+) and (-) are integrate and difference of positions. In laws
of FD the case's qdd serves as joint forces tau. p are parameters of the robot, eps a
step.

Pairs are computed when they are read. Errors of the builds and calls of Programs, such
as UnsupportedError for a robot that a solver refuses, pass through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dyn_core import problems as kinds
from dyn_core.model import Model, parameter_paths
from dyn_core.problems import Signature
from dyn_core.solving.registry import solver as find
from dyn_core.testing.case import Case, Pairs, derivative
from dyn_core.testing.laws import loop_laws
from dyn_core.testing.laws.derivatives import second_laws

# By Signature: the analytic solver, and the solver that it differentiates.
_REFERENCES = {
    kinds.ID_DIRECTIONAL: ("id_directional", "rnea"),
    kinds.FD_DIRECTIONAL: ("fd_directional", "aba"),
    kinds.HD_DIRECTIONAL: ("hd_directional", "hybrid"),
}

_PASSIVE = {"joint_friction": True, "joint_springs": True}  # parameters of both act


def is_forward_mode(case: Case) -> Pairs:
    """Analytic derivatives equal forward mode, whichever of them is under test"""
    choices = {"inputs": ["f_ext", "df_ext"], "joint_friction": True}
    yield from _agree_with_forward_mode(case, choices)


def is_forward_mode_by_parameters(case: Case) -> Pairs:
    """Derivatives by parameters equal forward mode, with forces fixed in the world"""
    paths = [path for path in _drawn_paths(case) if path != "gravity"]
    for path, fixed in zip(paths, ("base", "point"), strict=False):
        choices = {"parameter": path, "inputs": ["f_ext"], **_PASSIVE}
        points = {case.frame: (0.1, -0.2, 0.3)} if fixed == "point" else None
        yield from _agree_with_forward_mode(
            case, {**choices, "f_ext_fixed": fixed, "f_ext_points": points}
        )


def _agree_with_forward_mode(case: Case, choices: dict[str, Any]) -> Pairs:
    """Yield the outputs of the solver under test and of its counterpart, scaled.

    One is analytic, the other forward mode. Pairs are divided by max(1, largest entry).
    """
    name = _REFERENCES[case.solver.signature][0]
    forward = case.solver.name.endswith("_forward_mode")
    other = name if forward else f"{name}_forward_mode"
    program = case.program(**choices)
    arguments = case.arguments(program)
    arguments[1] = 0.02 * arguments[1]  # dry friction has a slope only near rest
    result = program(*arguments)
    reference = case.other(other, engine="plain", **choices)(*arguments)
    for one, two in zip(result, reference, strict=True):
        scale = max(1.0, float(np.abs(two).max(initial=0.0)))
        yield np.asarray(one) / scale, np.asarray(two) / scale


def _drawn_paths(case: Case) -> list[str]:
    """Return random paths: of a joint or spring, gravity, of the last link."""
    model, paths = case.model, ["gravity"]
    every = {
        path: parameter_paths.kind_of(model, path)
        for path in parameter_paths.paths(model)
    }
    links = [p for p, kind in every.items() if kind.owner == "link"]
    links = [p for p in links if p.rpartition(".")[0] == case.frame]
    paths.append(links[case.rng.integers(len(links))])
    kinds = sorted({k.path for k in every.values() if k.owner in ("joint", "spring")})
    if kinds:
        drawn = kinds[case.rng.integers(len(kinds))]
        alike = [path for path, kind in every.items() if kind.path == drawn]
        paths.insert(0, alike[case.rng.integers(len(alike))])
    return paths


def is_difference(case: Case) -> Pairs:
    """Results are f, and d f(q (+) eps dq, qd + eps dqd, ...) / d eps at eps = 0"""
    program = case.program()
    q, qd, *rest = case.arguments(program)
    result = program(q, qd, *rest)
    half = (len(rest) - 2) // 2 + 1
    values, changes = rest[: half - 1], rest[half + 1 :]
    dq, dqd = rest[half - 1 : half + 1]
    base = case.other(_REFERENCES[case.solver.signature][1], **_hybrid(case))
    size = max(1.0, *(float(np.abs(x).max(initial=0.0)) for x in result))

    def moved(eps: float) -> Any:
        pairs = zip(values, changes, strict=True)
        state = [x + eps * dx for x, dx in pairs]
        return base(case.model.integrate(q, eps * dq), qd + eps * dqd, *state)

    parts = len(result) // 2
    for k in range(parts):
        rate = derivative(lambda eps, k=k: _part(moved(eps), k, parts), 1e-3)  # type: ignore[misc]
        yield result[k] / size, _part(moved(0.0), k, parts) / size
        yield result[parts + k] / size, rate / size


def _part(results: Any, k: int, parts: int) -> np.ndarray:
    return np.asarray(results if parts == 1 else results[k])


def _hybrid(case: Case) -> dict[str, Any]:
    """Return {"prescribed": names of joints}, or {} for a solver without the option."""
    options = case.options(case.solver)
    return {k: v for k, v in options.items() if k == "prescribed"}


def extremes_are_inverse_and_forward(case: Case) -> Pairs:
    """All joints prescribed: equals id_directional; none: equals fd_directional"""
    for names, other in (
        (list(case.model.joint_names), "id_directional"),
        ([], "fd_directional"),
    ):
        program = case.program(prescribed=names)
        q, qd, u, v, dq, dqd, du, dv = case.arguments(program)
        values, change = (u, du) if names else (v, dv)
        result = program(q, qd, u, v, dq, dqd, du, dv)
        expected = case.other(other)(q, qd, values, dq, dqd, change)
        first = 0 if names else 1
        for one, two in zip((result[first], result[first + 2]), expected, strict=True):
            scale = max(1.0, float(np.abs(two).max(initial=0.0)))
            yield one / scale, two / scale


def hybrid_blocks_are_directional(case: Case) -> Pairs:
    """Blocks times a direction are the derivative along it, by hd_directional"""
    program = case.program(inputs=["f_ext"])
    arguments = case.arguments(program)
    blocks = program(*arguments)
    q, qd, u, v, f = arguments
    sizes = (case.model.nv, case.model.nv, len(u), len(v))
    seeds = [case.rng.normal(size=n) for n in sizes]
    along = case.other("hd_directional", inputs=["f_ext"], **_hybrid(case))
    expected = along(q, qd, u, v, *seeds, f)
    rows = (
        (
            blocks.dtau_u_dq,
            blocks.dtau_u_dqd,
            blocks.dtau_u_dqdd_u,
            blocks.dtau_u_dtau_v,
        ),
        (
            blocks.dqdd_v_dq,
            blocks.dqdd_v_dqd,
            blocks.dqdd_v_dqdd_u,
            blocks.dqdd_v_dtau_v,
        ),
    )
    for k, row in enumerate(rows):
        change = sum(np.asarray(M) @ x for M, x in zip(row, seeds, strict=True))
        scale = max(1.0, float(np.abs(expected[2 + k]).max(initial=0.0)))
        yield blocks[k] / scale, expected[k] / scale
        yield change / scale, expected[2 + k] / scale


def hybrid_blocks_are_symmetric(case: Case) -> Pairs:
    """dtau_u/dqdd_u, dqdd_v/dtau_v symmetric, dqdd_v/dqdd_u = -(dtau_u/dtau_v).T"""
    program = case.program()
    result = program(*case.arguments(program))
    yield result.dtau_u_dqdd_u, result.dtau_u_dqdd_u.T
    yield result.dqdd_v_dtau_v, result.dqdd_v_dtau_v.T
    yield result.dqdd_v_dqdd_u, -result.dtau_u_dtau_v.T


def parameters_move_joint_forces(case: Case) -> Pairs:
    """tau(p + dp) = tau + dtau_dp dp, by the complex step"""
    yield from _by_complex_step(case, "rnea")


def parameters_move_accelerations(case: Case) -> Pairs:
    """qdd(p + dp) = qdd + dqdd_dp dp, by the complex step"""
    yield from _by_complex_step(case, "aba")


def _by_complex_step(case: Case, name: str) -> Pairs:
    paths = _drawn_paths(case)
    program = case.program(paths=paths, **_PASSIVE)
    arguments = case.arguments(program)
    value, slopes = program(*arguments)
    expected = complex_slopes(case.model, name, paths, arguments, **_PASSIVE)
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    base = case.other(name, **_PASSIVE)(*arguments)
    size = max(1.0, float(np.abs(base).max(initial=0.0)))
    yield value / size, base / size
    yield slopes / scale, expected / scale


def complex_slopes(
    model: Model, name: str, paths: list[str], arguments: list[Any], **choices: Any
) -> np.ndarray:
    """Return derivatives of a solver by parameters, (nv, np), by complex steps."""
    columns = []
    for path in paths:
        program = find(name).build(model, engine="plain", inputs=[path], **choices)
        value = parameter_paths.value(model, path)
        for k in range(len(value)):
            moved = value.astype(complex)
            moved[k] += 1e-30j
            last = moved if len(value) > 1 else moved[0]
            columns.append(np.asarray(program(*arguments, last)).imag / 1e-30)
    return np.array(columns).reshape(-1, model.nv).T


def forces_move_joint_forces(case: Case) -> Pairs:
    """tau(f_ext + df_ext) = tau + dtau_df_ext df_ext, in body and base coordinates"""
    yield from _by_difference_of_forces(case, "inverse_dynamics")


def forces_move_accelerations(case: Case) -> Pairs:
    """qdd(f_ext + df_ext) = qdd + dqdd_df_ext df_ext, in body and base coordinates"""
    yield from _by_difference_of_forces(case, "forward_dynamics")


def _by_difference_of_forces(case: Case, name: str) -> Pairs:
    if case.solver.closes_loops:
        case = loop_laws.with_rod(case)
        if not loop_laws.movable(case.other("loop_constraints")(case.q, case.qd)[1]):
            case.model = case.model.without_loops()
    df = case.rng.normal(size=case.f_ext.shape)
    for coordinates in ("body", "base"):
        slopes = case.program(coordinates=coordinates)(case.q)
        base = case.other(name, inputs=["f_ext"], f_ext_frame=coordinates)
        here, there = (
            base(case.q, case.qd, case.qdd, f) for f in (case.f_ext, case.f_ext + df)
        )
        size = max(1.0, float(np.abs(here).max(initial=0.0)))
        yield np.tensordot(slopes, df, 2) / size, (there - here) / size


_Law = Callable[[Case], Pairs]
_ALONG: tuple[_Law, ...] = (
    is_forward_mode,
    is_forward_mode_by_parameters,
    is_difference,
)
LAWS: dict[Signature, tuple[_Law, ...]] = {
    **second_laws.LAWS,
    kinds.ID_DIRECTIONAL: _ALONG,
    kinds.FD_DIRECTIONAL: _ALONG,
    kinds.HD_DIRECTIONAL: (*_ALONG, extremes_are_inverse_and_forward),
    kinds.HD_DERIVATIVES: (hybrid_blocks_are_directional, hybrid_blocks_are_symmetric),
    kinds.PARAMETER_JACOBIAN: (parameters_move_joint_forces,),
    kinds.FD_PARAMETER_JACOBIAN: (parameters_move_accelerations,),
    kinds.ID_FORCE_JACOBIAN: (forces_move_joint_forces,),
    kinds.FD_FORCE_JACOBIAN: (forces_move_accelerations,),
}
