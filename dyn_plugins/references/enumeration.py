"""Solution of small contact problems by enumeration of modes: a reference solver.

m is the number of rows of a problem.
"""

import numpy as np

from dyn_core.authoring import ContactSolver, hookimpl
from dyn_core.contact import (
    CONVERGED,
    INFEASIBLE,
    MAX_ITERATIONS,
    NOT_UNIQUE,
    ContactSolution,
)
from dyn_core.errors import UnsupportedError
from dyn_core.validation import Whole

LAW = 1e-8  # maximum residual of a solution's law, relative
STARTS = 6  # initial directions of the search for a sliding direction


def solutions(problem, unique=False, limit=20_000):
    """Return impulses of every combination of modes that satisfies the exact laws.

    A row is off, at a bound or active (u = 0); a contact is off, sticks (u = 0) or
    slides (u_n = 0, lambda_T opposite to u_T on the cone), its direction by Newton
    steps from several starts. Each combination is a square system, solved by least
    squares. The impulses are in circular cones and scaled units (multiply by
    problem.scale), one for each velocity, at most one unless `unique`. Also returns the
    number of candidates tried; more combinations than `limit` are refused.

    Source: LCP-5 (enumeration), LCP-12.
    """
    blocks, choices = _modes(problem)
    count = int(np.prod([len(c) for c in choices], dtype=float))
    if count > limit:
        raise UnsupportedError(
            f"enumeration: {count} combinations of modes; valid: at most {limit}, a"
            " smaller problem or another solver"
        )
    T = problem.scale
    A, b = problem.A * T[:, None] * T, T * problem.offset
    results, tried = [], 0
    for thorough in (False, True):
        for modes in _product(choices):
            for x in _candidates(problem, blocks, modes, A, b, thorough):
                tried += 1
                if not np.isfinite(x).all() or not problem.law(T * x) <= LAW:
                    continue
                u = problem.A @ (T * x)
                if all(_differ(u, problem.A @ (T * y), problem.speed) for y in results):
                    results.append(x)
                if not unique:
                    return results, tried
    return results, tried


def _product(choices):
    """Yield every list with one element of each of the choices."""
    for index in np.ndindex(*(len(modes) for modes in choices)):
        yield [modes[k] for modes, k in zip(choices, index, strict=True)]


def _differ(u, v, speed):
    """Return whether an entry of u, v, (m,), differs by more than 1e-6 of `speed`."""
    return np.abs(u - v).max(initial=0.0) > 1e-6 * max(speed, 1e-300)


def _modes(problem):
    """Return two lists: blocks, each a list of rows (one, or a cone), and their modes.

    Modes of a cone: "stick", "slip", "off"; of a row: "active", or a number, a finite
    bound [N·s | N·m·s].
    """
    lower, upper = problem.bounds
    blocks, choices = [], []
    for block in problem.layout.blocks:
        if block.kind == "contact" and block.rows > 1:
            blocks.append(list(block.all))
            choices.append(("stick", "slip", "off"))
            continue
        for row in block.all:
            modes = ["active"]
            modes += [lower[row]] if np.isfinite(lower[row]) else []
            modes += [upper[row]] if np.isfinite(upper[row]) else []
            blocks.append([row])
            choices.append(tuple(modes))
    return blocks, choices


def _candidates(problem, blocks, modes, A, b, thorough):
    """Yield candidate impulses, (m,), for a combination of modes, without a check.

    thorough: For _starts; then nothing is yielded unless a contact of three rows or
    more slides.
    """
    x, active, sliding = np.zeros(len(b)), [], []
    pairs = zip(problem.layout.contacts, problem.coefficients.tolist(), strict=True)
    coefficients = {block.start: c for block, c in pairs}
    for rows, mode in zip(blocks, modes, strict=True):
        if mode in ("active", "stick"):
            active += rows
        elif mode == "slip":
            sliding.append((rows, coefficients[rows[0]]))
        elif mode != "off":
            x[rows] = mode
    if thorough and not any(len(rows) > 2 for rows, _ in sliding):
        return
    if not sliding:
        yield _solved(A, b, x, active, [], [])
        return
    starts = [_starts(A, b, x, active, rows, thorough) for rows, _ in sliding]
    for ways in _product(starts):
        yield _slid(A, b, x, active, sliding, ways)


def _starts(A, b, x, active, rows, thorough):
    """Return a list of initial directions of sliding, by tangent row, of length one.

    For one tangent both directions; for more, the direction of the velocity without
    friction, and with `thorough`, or if that velocity is zero, directions all around.
    x: Impulses of rows at bounds; active: rows with u = 0; rows: normal first.
    """
    t = len(rows) - 1
    if t == 1:
        return [np.array([1.0]), np.array([-1.0])]
    free = (A @ _solved(A, b, x, active, [], []) + b)[rows[1:]]
    angles = 2 * np.pi * np.arange(STARTS) / STARTS
    around = [np.eye(t)[0] * np.cos(a) + np.eye(t)[1] * np.sin(a) for a in angles]
    size = float(np.sqrt(free @ free))
    around += [sign * e for e in np.eye(t)[2:] for sign in (1.0, -1.0)]
    if size == 0:
        return around
    return [free / size, *(around if thorough else ())]


def _solved(A, b, x, active, sliding, ways):
    """Return impulses, (m,), for modes and sliding directions, from a linear system.

    A singular system is solved by least squares. x: Impulses of rows at bounds; active:
    rows with u = 0, without the normals of sliding contacts, which are pairs (rows,
    normal first, friction coefficient).
    """
    rows = active + [r[0] for r, _ in sliding]
    columns = np.zeros((len(b), len(rows)))
    columns[active, range(len(active))] = 1.0
    for k, ((block, c), way) in enumerate(zip(sliding, ways, strict=True)):
        columns[block, len(active) + k] = np.append(1.0, -c * way)
    right = -(A @ x + b)[rows]
    size = np.sqrt(np.where(np.diag(A) > 0, np.diag(A), 1.0))[rows]
    square = (A @ columns)[rows] / size[:, None] / size
    return x + columns @ (np.linalg.lstsq(square, right / size, rcond=1e-11)[0] / size)


def _slid(A, b, x, active, sliding, ways, rounds=60):
    """Return impulses whose sliding directions equal those of the velocity.

    Newton steps, by finite differences, on the velocity's component across the
    direction; the square systems are tiny. They end after `rounds` steps, or when none
    improves; the last impulses are returned, converged or not. With one tangent at each
    sliding contact, `ways` stay as they are. The opposite direction is a root, too: the
    caller's check of the law rejects it.
    """
    sizes = [len(way) for way in ways]
    if max(sizes) == 1:
        return _solved(A, b, x, active, sliding, ways)
    cuts = np.cumsum(sizes)[:-1]
    scales = [1 / (np.abs(b[rows]).max() or 1.0) for rows, _ in sliding]

    def off(flat):
        parts = np.split(flat, cuts)
        units = [way / (np.sqrt(way @ way) or 1.0) for way in parts]
        impulses = _solved(A, b, x, active, sliding, units)
        u = A @ impulses + b
        across = []
        for (rows, _), way, unit, scale in zip(
            sliding, parts, units, scales, strict=True
        ):
            v = scale * u[rows[1:]]
            across.append(v - (v @ unit) * unit + (way @ way - 1) * unit)
        return np.concatenate(across), impulses

    flat = np.concatenate(ways)
    wrong, impulses = off(flat)
    for _ in range(rounds):
        size = np.abs(wrong).max()
        if size < 1e-14:
            break
        J = np.array(
            [(off(flat + 1e-7 * e)[0] - wrong) / 1e-7 for e in np.eye(len(flat))]
        ).T
        step = np.linalg.lstsq(J, -wrong, rcond=1e-12)[0]
        step = step / max(1.0, np.abs(step).max())  # a direction is of length one
        for scale in (1.0, 0.5, 0.25, 0.1, 0.03, 0.01):
            after, value = off(flat + scale * step)
            if np.abs(after).max() < size:
                break
        else:
            break
        flat, wrong, impulses = flat + scale * step, after, value
    return impulses


class Enumeration(ContactSolver):
    """Impulses of small problems by enumeration of all combinations of modes.

        K_mu contains lambda, orthogonal to u + s in K_mu*,  s = (mu |u_T|, 0)

    Exact: the result satisfies all laws to 1e-8. With unique=True it tries all
    combinations and reports not_unique if velocities differ. It reports infeasible only
    for problems without round cones, where the search is complete, or if a push or
    free rows that contradict each other prove it.

    Source: LCP-5, LCP-12.
    """

    name = "enumeration"
    valid = {"limit": Whole()}
    source = "LCP-5"
    reference = True

    def solve(self, problem, warm=None, unique=False, limit=20_000):
        """Return the solution of a problem; its iterations are the candidates tried.

        The value of `limit` is checked by a build, `dyn_core.contact.solve` and a
        World, not here.

        Args:
            problem: Blocks, matrix, velocities and bounds.
            warm: Unused.
            unique: Whether to try all combinations, to find further solutions.
            limit: Maximum number of combinations of modes.

        Returns:
            Impulses, residuals and status, as a ContactSolution. The status is
            converged, or not_unique if `unique` finds two velocities; the first
            impulses found are returned. If no combination is valid, all impulses are
            zero except in free rows. The status is then infeasible, or max_iterations
            where contacts of three rows or more make the search incomplete and no push
            proves infeasibility. A converged status becomes infeasible if free rows
            contradict each other.

        Raises:
            UnsupportedError: There are more combinations than `limit`.
        """
        reduction = problem.without_free_rows()
        inner = reduction.reduced
        results, tried = solutions(inner, unique, limit)
        if not results:
            complete = not any(block.rows > 2 for block in problem.layout.contacts)
            status = INFEASIBLE if complete else MAX_ITERATIONS
            x = np.zeros(inner.m)
            return ContactSolution.from_impulses(
                problem, x, tried, status, reduction=reduction
            )
        status = NOT_UNIQUE if len(results) > 1 else CONVERGED
        x = inner.scale * results[0]
        return ContactSolution.from_impulses(
            problem, x, tried, status, reduction=reduction
        )


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [Enumeration()]
