"""Tables and Programs of a robot for steps with contacts, and memory for states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.contact.collision.detection.detection_arrays import (
    allocate_contacts,
    allocate_work,
)
from dyn_core.contact.fast_bodies.fast_tables import fast_memory, fast_tables
from dyn_core.contact.problem.rows import allocate_rows
from dyn_core.contact.rows.joint_rows import dense_rows, joint_table
from dyn_core.contact.rows.step_tables import (
    SCHEMES,
    STEWART_TRINKLE,
    Earlier,
    Rule,
    Scene,
    StepArrays,
    allocate_blocks,
    allocate_earlier,
    allocate_step,
    allocate_terms,
)
from dyn_core.contact.rows.structure import structure
from dyn_core.contact.solvers.solver_calls import (
    IMPACT,
    IN_PYTHON,
    PROBLEM,
    ChosenSolver,
)
from dyn_core.contact.solvers.solver_memory import allocate_solvers
from dyn_core.contact.stepping.contact_model import ContactModel, error_terms
from dyn_core.contact.stepping.poisson_and_sequential import ImpactLaw
from dyn_core.contact.stepping.solver_choice import has_one_problem, solver_choice
from dyn_core.contact.stepping.step_matrices import MatrixSolver, PythonTasks, Task
from dyn_core.errors import ModelError, SettingError
from dyn_core.solving.registry import solver
from dyn_core.validation import Quantity

FIRST_ROOM = 16  # initial capacity, in contacts; it doubles on demand
MOST_ROWS = 6  # maximum number of rows of a contact


def checked_step(h: float) -> float:
    """Return a step [s] as a float; SettingError: no finite number above 0."""
    try:
        return float(Quantity(0.0, above=True).read("step h", h))
    except ModelError as error:
        raise SettingError(str(error), "h") from error


class StepSetup:
    """Constant data of steps: a robot in its world, its Programs, and the step.

    Attributes:
        h, remaining: Step, and the time in it for which the new velocity acts [s].
        at_middle: Whether constraints are evaluated at the middle of a step.
        moved, moved_apart: Program of MOVED_STATE, and one with a correction.
        names: Of constraints that are no contacts; that of number k is at index -1 - k.
        prescribed: By name of a prescribed joint: list of its coordinates' rows.
    """

    def __init__(
        self, contact_model: ContactModel, h: float, prescribed: Sequence[str] = ()
    ) -> None:
        """Build the tables and Programs.

        Args:
            contact_model: Robot and world.
            h: Step [s].
            prescribed: Names of joints whose accelerations are given.

        Raises:
            ModelError: A name in `prescribed` is of no joint, or of a fixed or locked
                one, or two are the same or move together.
            SettingError: The step is not a finite number above 0.
            DynError: Errors of the build of Programs pass through.
        """
        self.of, self.h = contact_model, checked_step(h)
        model, world = contact_model.model, contact_model.world
        self.at_middle = world.stepper in ("moreau_jean", "event_driven")
        self.remaining = self.h / 2 if self.at_middle else self.h
        tables = structure(model)
        joints = joint_table(
            model,
            tables,
            contact_model.joints,
            world.limits,
            world.limit_restitution,
            contact_model.dry,
            prescribed,
        )
        # At a generic state an entry of a row is zero only if it always is.
        anywhere = model.random(np.random.default_rng(0))
        dense = contact_model.dense_constraints(anywhere, np.zeros(model.nv))
        dense_table = dense_rows(tables, dense, -1 - len(joints.constraints))
        erp, soft = error_terms(world, self.h)
        rule = Rule(
            scheme=SCHEMES.get(world.stepper, STEWART_TRINKLE),
            erp=erp,
            compliance=soft,
            threshold=world.restitution_threshold,
            push=np.inf if soft else world.push_out_speed,
            apart=world.erp if world.stabilisation == "split_impulse" else 0.0,
            margin=world.margin,
            dt=self.h,
            remaining=self.remaining,
            rest=self.h * math.hypot(*map(float, model.a_grav.lin)),
        )
        around = contact_model.shapes_and_pairs
        fast = fast_tables(model, tables, *around, has_one_problem(world))
        self.scene = Scene(tables, *around, joints.rows, dense_table, rule, fast)
        self.names = [c.name for c in (*joints.constraints, *dense)]
        self.prescribed, self.choice = joints.prescribed, solver_choice(world)
        self.moved, self.moved_apart = (
            solver("moved_state").build(
                model, engine=contact_model.engine, inputs=inputs
            )
            for inputs in ((), ("correction",))
        )
        self._terms: dict[bool, Any] = {}

    def terms(self, with_forces: bool) -> Any:
        """Return the Program of CONTACT_TERMS, with an input f_ext or not; cached."""
        if with_forces not in self._terms:
            inputs, limits = ["f_ext"] * with_forces, self.of.world.limits
            part = self.remaining / self.h
            self._terms[with_forces] = self.of.build(
                "contact_terms", *inputs, ball_limits=limits, remaining=part
            )
        return self._terms[with_forces]


class StepRoom:
    """Memory for steps: terms, and buffers for one problem of up to `contacts`."""

    def __init__(self, setup: StepSetup, states: int) -> None:
        """Allocate the arrays, with room for 16 contacts (FIRST_ROOM), see `grow`.

        Args:
            setup: Constant data of the steps; its terms(False) is called, whose errors
                pass through.
            states: Maximum number of states of a call.
        """
        self._setup, model = setup, setup.of.model
        shapes = {port.name: port.shape for port in setup.terms(False).outputs}
        self._terms = allocate_terms(states, model.nq, model.nv, shapes)
        self._next, self._correction = (np.zeros((states, model.nv)) for _ in range(2))
        self.grow(FIRST_ROOM)

    def grow(self, contacts: int) -> None:
        """Allocate buffers for a number of contacts, larger or smaller.

        terms, qd_next and correction remain. Code bound to the old arrays must be bound
        again.
        """
        scene = self._setup.scene
        tables, dense = scene.tables, scene.dense
        nv, single = tables.nv, len(scene.joints.role)
        longest = min(nv, 2 * int(np.diff(tables.moved_start).max(initial=0)))
        others, tall = len(dense.role), np.diff(dense.start)
        support = contacts * longest + (single + others) * nv
        blocks = contacts + single + others
        m = 6 * contacts + single + int(dense.start[-1])
        y = 6 * contacts * longest + (single + int(dense.start[-1])) * nv
        rows = allocate_rows(blocks, m, support, y)
        normals = allocate_rows(blocks, m, 0, 0)
        shapes, pairs = len(scene.shapes.kind), len(scene.pairs.first)
        widest = max(MOST_ROWS, int(tall.max(initial=0)) + 1)
        self.contacts = contacts
        self.step = StepArrays(
            terms=self._terms,
            qd_next=self._next,
            correction=self._correction,
            earlier=allocate_earlier(0, 0, 0),
            contacts=allocate_contacts(contacts),
            rows=rows,
            blocks=allocate_blocks(blocks, m),
            normals=normals._replace(support=rows.support, y=rows.y),
            collision=allocate_work(shapes, pairs),
            work=allocate_step(tables, widest),
            fast=fast_memory(scene.fast, nv, shapes, pairs),
        )
        choice, work = self._setup.choice, allocate_solvers(rows, nv)
        reports, impact, world = np.zeros((2, 8)), np.zeros(m), self._setup.of.world
        tasks: dict[int, Task] = {}
        if choice.impacts:
            tasks[IMPACT] = ImpactLaw(world, scene, self.step, impact).act
        if choice.method == IN_PYTHON:
            tasks[PROBLEM] = MatrixSolver(world, self.step, reports[0]).solve
        self.python = PythonTasks(tasks)
        kernel = self.python.kernel
        self.solver = ChosenSolver(choice, work, reports, kernel, impact)

    def earlier(self, known: Earlier | None, states: int) -> Earlier:
        """Return `known`, copied to larger arrays if needed; zeros if it is None."""
        blocks, m = len(self.step.rows.kind), len(self.step.rows.b)
        if known is not None and known.id.shape[1] >= blocks:
            return known
        earlier = allocate_earlier(states, blocks, m)
        for new, old in zip(earlier, known or (), strict=known is not None):
            new[..., : old.shape[-1]] = old
        return earlier
