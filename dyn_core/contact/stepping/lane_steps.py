"""Steps of several states at once, by machine code in lanes of vectors.

States with the same constraints in the previous step are likely to take the same
branches in a step: they are packed into lanes (dyn_core.engines.machine_code.lanes).
States that diverge from the branches of their pack are packed again, and after TRIES
packs stepped alone. The bits are equal to the bits of step_rows, which also runs in the
lanes.

In the subset of machine_code.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.rows.step_tables import Earlier, Scene, StepArrays, Terms
from dyn_core.contact.solvers.solver_calls import ChosenSolver
from dyn_core.contact.stepping.composite_step import (
    RowOutcomes,
    allocate_outcomes,
    step_rows,
)
from dyn_core.contact.stepping.step_memory import StepRoom, StepSetup
from dyn_core.engines.llvm.host_machine import machine, missing
from dyn_core.engines.machine_code import (
    FloatArray2,
    IntArray,
    KernelAddress,
    compiled,
    in_lanes,
    machine_code,
    run_kernel,
)

LEAST = 3  # minimum number of states of a pack: fewer are stepped alone
NARROWEST, LARGEST = 4, 320  # minimum number of lanes, maximum of coordinates
HARD = 20.0  # a state that needed more iterations is stepped alone the next time
TRIES = 2  # number of packs a state may diverge from before it is stepped alone


class FlatTerms(NamedTuple):
    """Terms of two axes: states, (n, numbers), or lanes, (numbers, lanes)."""

    q: FloatArray2
    qd: FloatArray2
    poses: FloatArray2
    columns: FloatArray2
    factor: FloatArray2
    free: FloatArray2
    rows: FloatArray2
    gaps: FloatArray2


class StatePack(NamedTuple):
    """States that are stepped at once, and the states that are still to be stepped.

    Attributes:
        alive: Bits of the active lanes, before and after the kernel, (1,).
        states: State in each lane, (lanes,).
        waiting: One plus the number of packs that a state has diverged from; 0: it is
            stepped, (n,).
        all_terms, terms: Terms of all states, and in the lanes.
        qd_next, correction: Results, (nv, lanes).
        earlier: Earlier impulses; common to all lanes except `impulse`, (rows, lanes).
        outcomes: Results; common to all lanes except `iterations` and `residual`,
            (lanes,), and forces, (chosen, 3, lanes).
        counts: States stepped alone, packs, states in packs, states stepped in packs.
    """

    kernel: KernelAddress
    alive: IntArray
    bits: IntArray
    states: IntArray
    waiting: IntArray
    all_terms: FlatTerms
    terms: FlatTerms
    qd_next: FloatArray2
    correction: FloatArray2
    earlier: Earlier
    outcomes: RowOutcomes
    counts: IntArray


def fits_lanes(setup: StepSetup, states: int) -> bool:
    """Return whether steps in lanes are expected to be faster than single steps.

    They need a compiler, vectors of at least four lanes, at least as many states, and
    at most 320 velocity coordinates, so that the memory fits into the cache.
    """
    if missing() or machine().width < NARROWEST:
        return False
    return states >= machine().width and setup.scene.tables.nv <= LARGEST


def flat(terms: Terms) -> FlatTerms:
    """Return terms as arrays (n, numbers) in C order, views of the same memory."""
    return FlatTerms._make(x.reshape(len(x), -1) for x in terms)


class LaneRoom:
    """Memory of the lanes, with the same capacity for contacts as single states."""

    def __init__(self, setup: StepSetup) -> None:
        """Convert the tables of the scene to lanes.

        Args:
            setup: Robot and world.
        """
        self._setup, self._lanes = setup, machine().width
        self._scene = in_lanes(setup.scene, self._lanes, {})

    def pack(
        self, room: StepRoom, waiting: np.ndarray, chosen: np.ndarray
    ) -> StatePack:
        """Return a new pack with the same capacity for contacts as single states.

        It is valid until this method is called again. Compiles `step_lanes` at its
        first use. `waiting` and `chosen` are fields of StatePack and RowOutcomes, not
        copied.
        """
        lanes: int = self._lanes
        known: dict[int, tuple[Any, Any]] = {}
        single = StepRoom(self._setup, 1)
        single.grow(room.contacts)
        step = single.step._replace(earlier=single.earlier(None, 1))
        step, solver = (in_lanes(x, lanes, known) for x in (step, single.solver))
        outcomes = in_lanes(allocate_outcomes(1, chosen), lanes, known)
        self._tied = compiled(step_lanes, lanes=lanes).tied(
            self._scene, step, solver, outcomes
        )

        def rows(x: Any) -> Any:
            return x.reshape(-1, lanes)

        return StatePack(
            kernel=self._tied.kernel,
            alive=self._tied.alive,
            bits=2 ** np.arange(lanes),
            states=np.zeros(lanes, np.int64),
            waiting=waiting,
            all_terms=flat(room.step.terms),
            terms=FlatTerms._make(map(rows, step.terms)),
            qd_next=rows(step.qd_next),
            correction=rows(step.correction),
            earlier=step.earlier._replace(impulse=rows(step.earlier.impulse)),
            outcomes=outcomes._replace(
                iterations=outcomes.iterations[0],
                residual=outcomes.residual[0],
                force=outcomes.force[0],
                world_force=outcomes.world_force[0],
            ),
            counts=np.zeros(4, np.int64),
        )


@machine_code
def step_lanes(
    scene: Scene, step: StepArrays, solver: ChosenSolver, outcomes: RowOutcomes
) -> int:
    """Compute the step of the states in lanes, except for their positions.

    Lanes that would take another branch than most lose their bit in the mask of active
    lanes; their results are meaningless. If most are not finite, these fail: velocities
    and corrections become zero, earlier impulses are deleted, and `failed` is 1. `fill`
    must precede. Returns 0, or the number of contacts if it exceeds the arrays.
    """
    _, needed = step_rows(scene, step, solver, outcomes, 0, 1, 0)
    return needed


@machine_code
def step_packs(
    scene: Scene,
    step: StepArrays,
    solver: ChosenSolver,
    outcomes: RowOutcomes,
    pack: StatePack,
    first: int,
    last: int,
    offset: int,
) -> tuple[int, int]:
    """Compute the step of all states with pack.waiting > 0, except for their positions.

    At least three states with the same constraints are stepped together in lanes. A
    state is stepped alone if there are fewer, if it has diverged twice, or if it needed
    more than 20 iterations in the previous step, whose results `outcomes` must hold. A
    state that is not finite fails as in step_rows. pack.waiting of stepped ones is 0.

    Returns `last` and 0. If the arrays are too small for the contacts of a pack, or of
    a state alone: the index of its first state, whose `waiting` is reset to 1, and the
    needed number of contacts. States before it are stepped, later ones may be; a call
    with larger arrays continues.
    """
    for leader in range(first, last):
        while pack.waiting[leader] > 0:
            count = 0
            hard = outcomes.iterations[offset + leader] > HARD
            if pack.waiting[leader] <= TRIES and not hard:
                count = choose(step.earlier, outcomes, pack, leader, last, offset, True)
                if count < LEAST:
                    count = choose(
                        step.earlier, outcomes, pack, leader, last, offset, False
                    )
            if count < LEAST:
                needed = step_alone(scene, step, solver, outcomes, leader, offset)
                pack.waiting[leader] = 0
                pack.counts[0] += 1
            else:
                needed = step_together(step, outcomes, pack, count, offset)
            if needed > 0:
                pack.waiting[leader] = 1
                return leader, needed
    return last, 0


@machine_code
def step_alone(
    scene: Scene,
    step: StepArrays,
    solver: ChosenSolver,
    outcomes: RowOutcomes,
    state: int,
    offset: int,
) -> int:
    """Compute the step of one state as step_rows; return 0 or the needed contacts."""
    _, needed = step_rows(scene, step, solver, outcomes, state, state + 1, offset)
    return needed


@machine_code
def choose(
    earlier: Earlier,
    outcomes: RowOutcomes,
    pack: StatePack,
    leader: int,
    last: int,
    offset: int,
    alike: bool,
) -> int:
    """Fill pack.states with unstepped states that had the same constraints.

    States from `leader` on whose constraints have its ids and heights are chosen, until
    all lanes are filled. States that needed more than 20 iterations in the previous
    step are not chosen, `leader` included. If `alike`, also the same constraints must
    have had impulses in the previous step, and positions must have been corrected in
    both or neither: such states diverge less often.

    Returns the number of chosen states, 0 (nothing is written) if the constraints of
    `leader` exceed the capacity of the lanes. Unused lanes get the state `leader`, too.
    """
    lanes, known = len(pack.states), earlier.known[leader]
    if known > pack.earlier.id.shape[1]:
        return 0
    count = 0
    for state in range(leader, last):
        if pack.waiting[state] == 0 or not earlier.known[state] == known:
            continue
        n, first = offset + state, offset + leader
        if outcomes.iterations[n] > HARD:
            continue
        same = not alike or outcomes.corrected[n] == outcomes.corrected[first]
        for k in range(known):
            same = same and (
                earlier.id[state, k] == earlier.id[leader, k]
                and earlier.height[state, k] == earlier.height[leader, k]
            )
            if alike and same:
                row = earlier.start[leader, k]
                presses = not earlier.impulse[leader, row] == 0.0
                same = presses == (not earlier.impulse[state, row] == 0.0)
        if same:
            pack.states[count] = state
            count += 1
            if count == lanes:
                break
    for lane in range(count, lanes):
        pack.states[lane] = leader
    return count


@machine_code
def step_together(
    step: StepArrays, outcomes: RowOutcomes, pack: StatePack, count: int, offset: int
) -> int:
    """Compute the step of the states in the first `count` lanes, from `choose`.

    pack.waiting of a stepped state becomes 0; a state whose lane diverged is not
    stepped, and its pack.waiting is increased by 1. Returns 0; if the arrays are too
    small for their contacts, the needed number of contacts: no state is stepped then.
    """
    fill(step.earlier, pack)
    alive = 0
    for lane in range(count):
        alive += pack.bits[lane]
    pack.alive[0] = alive
    needed = run_kernel(pack.kernel)
    pack.counts[1] += 1
    pack.counts[2] += count
    if needed > 0:
        return needed
    for lane in range(count):
        state = pack.states[lane]
        if pack.alive[0] // pack.bits[lane] % 2 == 0:
            pack.waiting[state] += 1
            continue
        pack.waiting[state] = 0
        pack.counts[3] += 1
        for k in range(pack.qd_next.shape[0]):
            step.qd_next[state, k] = pack.qd_next[k, lane]
            step.correction[state, k] = pack.correction[k, lane]
        keep_impulses(pack.earlier, lane, step.earlier, state)
        keep_outcome(pack.outcomes, lane, outcomes, offset + state)
    return 0


@machine_code
def fill(earlier: Earlier, pack: StatePack) -> None:
    """Copy terms and earlier impulses of the states pack.states into a pack's lanes.

    `earlier` is of all states and not changed; pack.terms and pack.earlier are written.
    Ids, starts and heights of the earlier constraints are copied from the first lane's
    state, as `choose` has made them equal in all lanes.
    """
    states, terms, those = pack.states, pack.all_terms, pack.terms
    gather(terms.q, states, those.q)
    gather(terms.qd, states, those.qd)
    gather(terms.poses, states, those.poses)
    gather(terms.columns, states, those.columns)
    gather(terms.factor, states, those.factor)
    gather(terms.free, states, those.free)
    gather(terms.rows, states, those.rows)
    gather(terms.gaps, states, those.gaps)
    leader, mine = states[0], pack.earlier
    known, m = earlier.known[leader], 0
    mine.known[0] = known
    for k in range(known):
        mine.id[0, k] = earlier.id[leader, k]
        mine.start[0, k] = earlier.start[leader, k]
        mine.height[0, k] = earlier.height[leader, k]
        m = mine.start[0, k] + mine.height[0, k]
    for lane in range(len(states)):
        for r in range(m):
            mine.impulse[r, lane] = earlier.impulse[states[lane], r]


@machine_code
def gather(source: FloatArray2, states: IntArray, to: FloatArray2) -> None:
    """Copy the numbers (n, numbers) of the lanes' states to `to`, (numbers, lanes).

    The number of lanes must be a multiple of four.
    """
    first = 0
    while first < to.shape[1]:  # four at a time, so that writes are contiguous
        a, b = source[states[first]], source[states[first + 1]]
        c, d = source[states[first + 2]], source[states[first + 3]]
        for k in range(to.shape[0]):
            to[k, first], to[k, first + 1] = a[k], b[k]
            to[k, first + 2], to[k, first + 3] = c[k], d[k]
        first += 4


@machine_code
def keep_impulses(lanes: Earlier, lane: int, earlier: Earlier, state: int) -> None:
    """Copy the impulses of a lane, and its constraints, to those of its state."""
    known, m = lanes.known[0], 0
    earlier.known[state] = known
    for k in range(known):
        earlier.id[state, k] = lanes.id[0, k]
        earlier.start[state, k] = lanes.start[0, k]
        earlier.height[state, k] = lanes.height[0, k]
        m = lanes.start[0, k] + lanes.height[0, k]
    for r in range(m):
        earlier.impulse[state, r] = lanes.impulse[r, lane]


@machine_code
def keep_outcome(lanes: RowOutcomes, lane: int, outcomes: RowOutcomes, n: int) -> None:
    """Copy the results of a lane to the outcomes of its state n."""
    outcomes.status[n] = lanes.status[0]
    outcomes.iterations[n] = lanes.iterations[lane]
    outcomes.contacts[n], outcomes.rows[n] = lanes.contacts[0], lanes.rows[0]
    outcomes.residual[n], outcomes.failed[n] = lanes.residual[lane], lanes.failed[0]
    outcomes.corrected[n], outcomes.short[n] = lanes.corrected[0], lanes.short[0]
    for k in range(outcomes.force.shape[1]):
        for i in range(3):
            outcomes.force[n, k, i] = lanes.force[k, i, lane]
            outcomes.world_force[n, k, i] = lanes.world_force[k, i, lane]
