"""Contacts that are wedged: what they ask for beyond rest is left out.

In the subset of machine code.
"""

from __future__ import annotations

from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.products import row_response
from dyn_core.contact.solvers.work import CONVERGED, INFEASIBLE, NOT_UNIQUE, RAY
from dyn_core.contact.stepping.step_tables import CONTACT_ROLE, LIMIT, BlockFacts
from dyn_core.engines.machine_code import machine_code

WEDGED = 6  # index in residuals.STATUSES
ENDLESS = 1e7  # ratio of impulses, as velocities, to those of the problem: no tolerance
# of the law, which grows with the impulses, says anything there


@machine_code
def leave_out_pushes(rows: Rows, facts: BlockFacts, used: int, status: int) -> bool:
    """Let contacts and limits ask for rest at most; return whether to solve again.

    A rebound, or the push out of an overlap, asks a gap to open: bias < 0. Where the
    friction cones contain impulses d that move nothing, Y.T d = 0, and bias . d < 0, no
    impulses fulfil that: they grow without bound. With bias >= 0 the robot at rest
    fulfils every row.

    Args:
        rows: Problem with its impulses; b is changed, and impulses are set to zero.
        facts: Of its blocks; bias is changed as b is.
        used: Number of blocks.
        status: Of the solution. Where that is CONVERGED or NOT_UNIQUE, nothing is done
            unless impulses are ENDLESS; where it is INFEASIBLE or a RAY, only rebounds
            are left out.

    Source: ours; the cones of LCP-12.
    """
    any_push, solved = False, status == CONVERGED or status == NOT_UNIQUE
    for block in range(used):
        if _pushes(facts, block, rows.start[block], status):
            any_push = True
    if not any_push or (solved and not _endless(rows, used)):
        return False
    for block in range(used):
        row = rows.start[block]
        if _pushes(facts, block, row, status):
            rows.b[row] -= facts.bias[row]
            facts.bias[row] = 0.0
        for r in range(row, row + rows.count[block]):
            rows.impulse[r] = 0.0
    return True


@machine_code
def _pushes(facts: BlockFacts, block: int, row: int, status: int) -> bool:
    """Return whether a block asks its gap to open, and that may be left out."""
    if not (facts.role[block] == CONTACT_ROLE or facts.role[block] == LIMIT):
        return False
    rebounds = facts.restitution[block] > 0.0
    proven = status == INFEASIBLE or status == RAY
    return facts.bias[row] < 0.0 and (rebounds or not proven)


@machine_code
def _endless(rows: Rows, used: int) -> bool:
    """Return whether impulses are far beyond what the velocities ask for."""
    speed, most = 0.0, 0.0
    for block in range(used):
        for row in range(rows.count[block]):
            i = rows.start[block] + row
            speed = max(speed, abs(rows.b[i]))
            most = max(most, abs(rows.impulse[i]) * row_response(rows, block, row))
    return most > ENDLESS * speed
