"""Steps of several states at once, by machine code in lanes, beside step_rows.

States with the same constraints in the step before are likely to take the same way
through a step: they are packed into lanes (dyn_core.engines.machine_code.lanes). Those
that leave the way of the others are packed again, and at last stepped alone. The bits
are those of step_rows, which is also what runs in the lanes.

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
from dyn_core.engines.llvm.compiler import machine, missing
from dyn_core.engines.machine_code import (
    FloatArray2,
    IntArray,
    KernelAddress,
    compiled,
    in_lanes,
    machine_code,
    run_kernel,
)

LEAST = 3  # states of a pack: fewer are stepped alone
NARROWEST, LARGEST = 4, 320  # lanes of a vector, and coordinates, of steps in lanes
HARD = 20.0  # iterations of a step from which on the next is stepped alone
TRIES = 2  # packs that a state may leave before it is stepped alone


class FlatTerms(NamedTuple):
    """Terms of states, (n, numbers of each), or of lanes, (numbers, lanes)."""

    q: FloatArray2
    qd: FloatArray2
    poses: FloatArray2
    columns: FloatArray2
    factor: FloatArray2
    free: FloatArray2
    rows: FloatArray2
    gaps: FloatArray2


class StatePack(NamedTuple):
    """States that are stepped at once, and which states wait.

    Attributes:
        kernel: `step_lanes` in lanes, tied to its memory.
        alive: Bits of the lanes, before and after it, (1,).
        bits: Bit of each lane, (lanes,).
        states: State in each lane, (lanes,).
        waiting: How many packs a state has left, plus one; 0: it is stepped, (n,).
        all_terms: Terms of all states.
        terms: Those in the lanes.
        qd_next, correction: Results, (nv, lanes).
        earlier: Of the state in all lanes but for `impulse`, (rows, lanes).
        outcomes: Of the state in all lanes but for `iterations` and `residual`,
            (lanes,), and forces, (chosen, 3, lanes).
        counts: Since the start, states stepped alone, packs, states in these, and of
            them those that were stepped, (4,).
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
    """Return whether lanes pay: wide vectors, several states, memory that is near."""
    if missing() or machine().width < NARROWEST:
        return False
    return states >= machine().width and setup.scene.tables.nv <= LARGEST


def flat(terms: Terms) -> FlatTerms:
    """Return terms of states as two axes, in the same memory."""
    return FlatTerms._make(x.reshape(len(x), -1) for x in terms)


class LaneRoom:
    """Memory of the lanes, for as many contacts as that of single states."""

    def __init__(self, setup: StepSetup) -> None:
        """Lay out the tables.

        Args:
            setup: Robot and world.
        """
        self._setup, self._lanes = setup, machine().width
        self._scene = in_lanes(setup.scene, self._lanes, {})

    def pack(
        self, room: StepRoom, waiting: np.ndarray, chosen: np.ndarray
    ) -> StatePack:
        """Return a pack with room for what there is room for in that of single states.

        Args:
            room: Of single states.
            waiting: See StatePack.
            chosen: Of the outcomes.
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
    """Take the step of the states in lanes, see step_rows.

    Returns:
        0; where there is no room for their contacts, the number of these.
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
    """Take the step of all states that wait, see step_rows.

    Args:
        scene, step, solver, outcomes, first, last, offset: As in step_rows.
        pack: What waits is stepped.

    Returns:
        As step_rows; all states before the returned one are stepped.
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
    """Take the step of one state; return the contacts that lack room."""
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
    """Fill the lanes with states that wait and had the same constraints.

    Args:
        earlier, outcomes: Of the step before.
        pack: Its lanes are filled.
        leader, last: The first state, and the end of all.
        offset: Number in `outcomes` of state 0.
        alike: Whether the same constraints must have pressed in the step before, and
            positions have been corrected: such states go the same way more often.

    Returns:
        How many; the lanes that are left have the first state, too.
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
    """Take the step of the states in the lanes; return the contacts that lack room."""
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
    """Fill the lanes with the terms and earlier impulses of their states."""
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
    """Write the numbers of the states into the lanes."""
    first = 0
    while first < to.shape[1]:  # four at a time: what is written lies side by side
        a, b = source[states[first]], source[states[first + 1]]
        c, d = source[states[first + 2]], source[states[first + 3]]
        for k in range(to.shape[0]):
            to[k, first], to[k, first + 1] = a[k], b[k]
            to[k, first + 2], to[k, first + 3] = c[k], d[k]
        first += 4


@machine_code
def keep_impulses(lanes: Earlier, lane: int, earlier: Earlier, state: int) -> None:
    """Keep the impulses of a lane for the next step of its state."""
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
    """Keep what is known of the step of a lane."""
    outcomes.status[n] = lanes.status[0]
    outcomes.iterations[n] = lanes.iterations[lane]
    outcomes.contacts[n], outcomes.rows[n] = lanes.contacts[0], lanes.rows[0]
    outcomes.residual[n], outcomes.failed[n] = lanes.residual[lane], lanes.failed[0]
    outcomes.corrected[n], outcomes.short[n] = lanes.corrected[0], lanes.short[0]
    for k in range(outcomes.force.shape[1]):
        for i in range(3):
            outcomes.force[n, k, i] = lanes.force[k, i, lane]
            outcomes.world_force[n, k, i] = lanes.world_force[k, i, lane]
