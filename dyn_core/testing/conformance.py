"""Checks of a solver: laws and rules of Programs, which yield pairs that must agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.errors import UnsupportedError
from dyn_core.model import Model
from dyn_core.model.joints import Joint
from dyn_core.problems.system import SystemKind
from dyn_core.solving.registry import default_registry
from dyn_core.solving.solver import Solver
from dyn_core.testing.case import Case, Pairs, SystemCase
from dyn_core.testing.laws.contact_laws import LayoutTrial, sample_layout
from dyn_core.testing.models import random_model
from dyn_core.testing.tolerances import SINGLE_TOLERANCES, TOLERANCES, scaled_error


@dataclass(frozen=True)
class Finding:
    """Largest error of one law.

    Attributes:
        law: Name of the law.
        error: Largest scaled_error of its pairs; infinity if there was no pair.
        tolerance: Largest allowed error.
        zeros: Whether only zeros were compared, which hold with a wrong sign, too.
    """

    law: str
    error: float
    tolerance: float
    zeros: bool = False

    @property
    def good(self) -> bool:
        """Whether the error is at most the tolerance, also if only zeros were compared.

        NaN is not.
        """
        return bool(self.error <= self.tolerance)

    def __str__(self) -> str:
        mark = "ok  " if self.good else "FAIL"
        return f"{mark} {self.law}: {self.error:.1e} (allowed {self.tolerance:.0e})"


def check(
    solver: Solver, model: Model, engine: str, seed: int = 0, dtype: str = "float64"
) -> list[Finding]:
    """Return a Finding for each law of the solver's problem and each check of OWED.

    Laws come first. A law without anything to compare has an infinite error; if the
    solver has no algorithm to trace, its error is 0. A robot that the solver refuses
    gives one Finding alone: whether the error message is complete. Errors of builds and
    calls of the solver are passed on.

    Args:
        solver: Solver under test.
        model: Robot or other system.
        engine: Engine of its Programs.
        seed: Seed of the random inputs.
        dtype: float64 or float32; selects the tolerances.

    Raises:
        PluginError: No plugin offers the solver's kind of problem, a law of it, or its
            kind of System.
    """
    laws = default_registry().laws(solver.signature)
    if solver.refusal(model) is not None:
        error = 0.0 if refuses_in_words(solver, model) else float("inf")
        return [Finding(refuses_in_words.__name__, error, TOLERANCES["exact"])]
    findings = []
    programs: dict[Any, Any] = {}
    allowed = SINGLE_TOLERANCES if dtype == "float32" else TOLERANCES
    for law in laws:
        case = _case(solver, model, engine, seed, programs, dtype)
        pairs = list(law(case))
        applies = hasattr(solver, "algorithm") or pairs
        error = _largest(pairs) if applies else 0.0
        sizes = [np.abs(np.asarray(x, float)).max(initial=0) for p in pairs for x in p]
        zeros = all(size <= allowed["law"] for size in sizes)
        findings.append(Finding(law.__name__, error, allowed["law"], zeros))
    for owed in OWED:
        case = _case(solver, model, engine, seed, programs, dtype)
        error = _largest(list(owed(case)))
        findings.append(Finding(owed.__name__, error, allowed["exact"]))
    return findings


def refuses_in_words(solver: Solver, model: Model) -> bool:
    """Return whether build raises an UnsupportedError with a complete message.

    It holds the solver's name, that of a joint or body in single quotes, and "valid: ".
    """
    try:
        solver.build(model)
    except UnsupportedError as error:
        message = str(error)
        names = getattr(model, "names", ("", *getattr(model, "joint_names", ())))
        named = any(f"'{name}'" in message for name in names[1:])
        return solver.name in message and named and "valid: " in message
    return False


def served_model(solver: Solver, seed: int, size: int) -> Any:
    """Return a random system that a solver supports: the least restricted one."""
    kind = default_registry().system(solver.signature.system)
    for restriction in kind.restrictions:
        model = kind.sample(seed, size=size, **restriction)
        if solver.refusal(model) is None:
            return model
    raise UnsupportedError(f"no random system is served by {solver.name}")


def _largest(pairs: list[tuple[Any, Any]]) -> float:
    """Return the largest scaled_error of pairs; infinity if none, or one has NaN."""
    errors = [scaled_error(left, right) for left, right in pairs]
    return max(errors, default=float("inf"))


def _results(outputs: Any) -> tuple[Any, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def agrees_with_plain(case: SystemCase) -> Pairs:
    """The engine returns what the algorithm on Python floats returns.

    Of an iteration that did not converge only the status is compared; numbers of
    iterations may differ by 2. Without an algorithm two equal calls are compared.
    """
    program = case.program()
    arguments = case.arguments(program)
    here = _results(program(*arguments))
    if not hasattr(case.solver, "algorithm"):
        yield from zip(here, _results(program(*arguments)), strict=True)
        return
    plain = case.build(case.solver, engine="plain")
    there = _results(plain(*arguments))
    ports = [port.name for port in program.outputs]
    if "status" in ports and (ended := there[ports.index("status")]) != 0:
        yield here[ports.index("status")], ended
        return
    for port, x, y in zip(program.outputs, here, there, strict=True):
        if port.name == "iterations":  # the last bit may decide on one more
            yield float(abs(x - y) <= 2), 1.0
        else:
            yield x, y


def batches_like_single_states(case: SystemCase) -> Pairs:
    """Each row of a batch is the single state; its bits do not depend on its place."""
    program = case.program()
    rows = [case.arguments(program) for _ in range(3)]
    columns = [np.stack(parts) for parts in zip(*rows, strict=True)]
    batch = _results(program(*columns))
    flipped = _results(program(*[column[::-1] for column in columns]))
    for k, row in enumerate(rows):
        for one, many in zip(_results(program(*row)), batch, strict=True):
            yield many[k], one
    for one, other in zip(batch, flipped, strict=True):
        yield float(np.array_equal(one, other[::-1])), 1.0


def shares_inputs(case: SystemCase) -> Pairs:
    """An input without the batch axis, an array or a number, serves all rows."""
    program = case.program()
    rows = [case.arguments(program) for _ in range(3)]
    for k in range(len(program.inputs)):
        columns: list[Any] = [np.stack(parts) for parts in zip(*rows, strict=True)]
        shared = rows[0][k]
        columns[k] = shared if shared.ndim else float(shared)
        single = [shared if j == k else part for j, part in enumerate(rows[1])]
        wanted = _results(program(*single))
        for batch in (program(*columns), program(*columns, status=True)[0]):
            for one, many in zip(wanted, _results(batch), strict=True):
                yield (many if len(columns) == 1 else many[1]), one


def fills_out(case: SystemCase) -> Pairs:
    """The arrays passed as `out` receive what would have been returned."""
    program = case.program()
    arguments = case.arguments(program)
    wanted = _results(program(*arguments))
    out = tuple(np.full(np.shape(x), np.nan, case.dtype) for x in wanted)
    program(*arguments, out=out[0] if len(out) == 1 else out)
    yield from zip(out, wanted, strict=True)


def _case(
    solver: Solver,
    model: Any,
    engine: str,
    seed: int,
    programs: dict[Any, Any],
    dtype: str,
) -> Any:
    case = default_registry().system(solver.signature.system).case
    rng = np.random.default_rng(seed)
    made = case(solver, model, engine, rng, programs=programs)
    made.dtype = dtype
    return made


# Random robots, from all kinds to few, for solvers that do not serve every one.
_ONE_FREEDOM: dict[str, Any] = {"kinds": ("revolute", "continuous", "prismatic")}
RESTRICTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"mimic": 0.0},
    _ONE_FREEDOM,
    {**_ONE_FREEDOM, "branching": 0.0},
    {**_ONE_FREEDOM, "branching": 0.0, "mimic": 0.0},
)
SYSTEMS = (
    SystemKind("robot", Case, random_model, RESTRICTIONS),
    SystemKind(
        "constraint_layout", LayoutTrial, sample_layout, ({}, {"friction": False})
    ),
)
SERVED = (0, 1, 2)  # seeds of random robots for solvers that refuse one

OWED = (agrees_with_plain, batches_like_single_states, shares_inputs, fills_out)


def report(solver: Solver, models: list[Model], engine: str) -> Iterator[str]:
    """Yield a line for each robot, and after it one for each law that does not hold.

    After the latter comes a line on rotors and joints with cJ, if the robot has them.
    For a robot that the solver refuses the line has the reason.

    Three random robots that the solver supports are added: in a special one, such as an
    arm that moves in a horizontal plane, laws may compare nothing but zeros. They do
    not count as held, and the line names them. A solver of another kind of system is
    checked on three random systems of that kind.

    Args:
        solver: Solver under test.
        models: Robots; ignored for another kind of system.
        engine: Engine of its Programs.

    Raises:
        PluginError: No plugin offers the solver's kind of problem, a law of it, or its
            kind of System.
        UnsupportedError: The solver refuses all random robots and all of `models`. If
            it supports one of `models`, the random robots are left out.

    Errors of builds and calls of the solver pass through.
    """
    if solver.signature.system != "robot":
        kind = default_registry().system(solver.signature.system)
        models = [kind.sample(k, size=4) for k in SERVED]
    else:
        try:
            models = [*models, *(served_model(solver, seed, 4) for seed in SERVED)]
        except UnsupportedError:  # it may be for the robots alone that are asked for
            if all(solver.refusal(model) is not None for model in models):
                raise
    for model in models:
        findings = check(solver, model, engine)
        bad = [finding for finding in findings if not finding.good]
        zeros = [x.law for x in findings if x.good and x.zeros]
        passed = len(findings) - len(bad) - len(zeros)
        verdict = f"{passed} of {len(findings)} laws hold"
        verdict += f"; only zeros in {', '.join(zeros)}" if zeros else ""
        refuses = findings[0].law == refuses_in_words.__name__
        if refuses:
            verdict = solver.refusal(model) or verdict
        yield f"{solver.name} on {model.name} ({engine}): {verdict}"
        yield from (f"  {finding}" for finding in bad)
        if bad and refuses:
            yield "  a refusal names a joint or body, as 'joint1', and says 'valid: '"
        elif bad and isinstance(model, Model) and (said := _special_joints(model)):
            yield f"  {said}"


def _special_joints(model: Model) -> str:
    """Return a sentence on what is often forgotten: rotors, cJ, joints that follow."""
    rotors = sum(any(float(x) for x in model.armature[i]) for i in model.bodies)
    varying = (x for x in model.joint[1:] if type(x).cJ is not Joint.cJ)
    kinds = sorted({joint.kind for joint in varying})
    led = ", ".join(map(repr, model.followers))
    facts = (
        f"rotor inertia (model.armature) at {rotors} joints" if rotors else "",
        f"axes that vary (joint.cJ) in joints of type {', '.join(kinds)}"
        if kinds
        else "",
        f"joints that follow others (mimic; cluster_joints): {led}" if led else "",
    )
    listed = "; ".join(filter(None, facts))
    return f"{model.name} has {listed}" if listed else ""
