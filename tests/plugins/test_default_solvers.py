"""The problem picks the solver: its name, or "auto", stands for the default one."""

import pickle

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.authoring import TracedSolver
from dyn_core.control import Controller
from dyn_core.control.feed_forward import FeedForward
from dyn_core.problems import FORWARD_DYNAMICS, INVERSE_DYNAMICS, STEP
from dyn_core.solving.registry import Registry, default_registry

LINKAGE = "examples/four_bar/four_bar.urdf"
PAIRS = {
    "forward_dynamics": ("aba", "aba_loops"),
    "inverse_dynamics": ("rnea", "rnea_loops"),
    "hybrid_dynamics_masked": ("hybrid_mask", "hybrid_mask_loops"),
}
CLASHES = "fd_derivatives", "fd_parameter_jacobian", "fd_force_jacobian"


@pytest.fixture
def linkage():
    return dyn.load(LINKAGE)


class Plugin:
    """A plugin that offers solvers, and problems for them."""

    def __init__(self, *solvers, problems=()):
        self.offered, self.problems = solvers, problems

    @dyn.authoring.hookimpl
    def dyn_solvers(self):
        return list(self.offered)

    @dyn.authoring.hookimpl
    def dyn_problems(self):
        return list(self.problems)


def registry(*plugins, problems=(FORWARD_DYNAMICS,)):
    """Return a Registry without installed plugins."""
    made = Registry()
    for plugin in (Plugin(problems=problems), *plugins):
        made.register(plugin, f"plugin {id(plugin)}")
    return made


def forward(name, **options):
    return TracedSolver(name, FORWARD_DYNAMICS, dyn.solver("aba").algorithm, **options)


@pytest.mark.parametrize("problem", PAIRS)
def test_the_name_of_a_problem_takes_the_solver_for_the_robot(problem, linkage):
    """A tree gets the solver for trees, a linkage the one that closes its loops."""
    solver, (tree, loops) = dyn.solver(problem), PAIRS[problem]
    for model, name in ((linkage.without_loops(), tree), (linkage, loops)):
        assert solver.for_model(model) is dyn.solver(name)
        program = solver.build(model, engine="graph")
        assert program.recipe.solver.name == name
        assert f"<Program {name} for" in repr(program)
    assert repr(solver) == (
        f"<default solver of {problem}: {tree}, for robots with loops {loops}>"
    )
    assert solver.describe().startswith(f"default solver of {problem}: {tree}, for")


@pytest.mark.parametrize("problem", CLASHES)
def test_a_solver_called_like_the_problem_wins(problem, linkage):
    """Its own name is the solver for trees; "auto" is the default of the problem."""
    assert dyn.solver(problem).name == problem and not dyn.solver(problem).closes_loops
    chosen = dyn.solver("auto", problem)
    assert chosen.for_model(linkage.without_loops()) is dyn.solver(problem)
    assert chosen.for_model(linkage) is dyn.solver(f"{problem}_loops")


def test_every_default_is_for_its_problem():
    """At most two a problem, and none that is a reference."""
    registered = default_registry()
    marked = [registered.solver(name) for name in registered.names(references=True)]
    marked = [solver for solver in marked if solver.default]
    kinds = [(solver.signature.name, solver.closes_loops) for solver in marked]
    assert len(set(kinds)) == len(kinds) >= 20
    assert not any(solver.reference for solver in marked)
    for solver in marked:
        chosen = dyn.solver("auto", solver.signature)
        assert solver in (chosen.of_trees, chosen.of_loops)


def test_a_problem_without_a_default_is_refused_in_words():
    """Its solvers are listed; "auto" without a problem says what is missing."""
    with pytest.raises(dyn.SolverNotFound, match="contact_step.*contact_euler"):
        dyn.solver("contact_step")
    with pytest.raises(dyn.SignatureError, match="valid: 'auto' with a signature"):
        dyn.solver("auto")


def test_plugins_by_name_and_by_mark():
    """A stranger's solver is taken by its name, not as a second default."""
    mine = Plugin(forward("mine"))
    registered = registry(Plugin(forward("first", default=True)), mine)
    assert registered.solver("mine") is mine.offered[0]
    assert registered.solver("forward_dynamics").of_trees.name == "first"
    message = "'second' as the default solver of forward_dynamics for trees, which is"
    with pytest.raises(dyn.PluginError, match=f"{message} 'first'; valid"):
        registered.register(Plugin(forward("second", default=True)), "plugin 2")
    with pytest.raises(dyn.SolverNotFound):
        registered.solver("second")
    loops = forward("loops", default=True, closes_loops=True)
    registered.register(Plugin(loops), "plugin 3")
    assert registered.solver("forward_dynamics").of_loops is loops
    registered.register(Plugin(forward("forward_dynamics")), "plugin 4")
    assert not registered.solver("forward_dynamics").default  # the solver of this name
    assert registered.solver("auto", FORWARD_DYNAMICS).of_trees.name == "first"


def test_auto_is_no_name_of_a_solver():
    """It would hide the default of every problem."""
    with pytest.raises(dyn.PluginError, match="called 'auto'.*valid: another name"):
        registry(Plugin(forward("auto")))


def test_a_problem_with_one_default_takes_it_for_all_robots(linkage):
    """There is no other: the solver itself accepts or refuses loops."""
    only = Plugin(forward("only", default=True))
    chosen = registry(only).solver("forward_dynamics")
    assert chosen.for_model(linkage) is only.offered[0]
    with pytest.raises(dyn.UnsupportedError, match="only: the robot has loops .D."):
        chosen.build(linkage)


def test_options_go_to_the_solver_that_has_them(linkage):
    """Unknown ones and bad values are refused at once, others for the robot."""
    solver = dyn.solver("forward_dynamics").with_options(alpha=3)
    assert solver.for_model(linkage).options["alpha"] == 3.0
    with pytest.raises(dyn.UnsupportedError, match="aba: no option"):
        solver.for_model(linkage.without_loops())
    for options, message in (
        ({"alpah": 3.0}, "did you mean 'alpha'"),
        ({"alpha": "much"}, "alpha"),
    ):
        with pytest.raises(dyn.UnsupportedError, match=message):
            dyn.solver("forward_dynamics").with_options(**options)
    again = pickle.loads(pickle.dumps(solver))
    assert again.for_model(linkage).options["alpha"] == 3.0


@pytest.mark.parametrize("choice", [{}, {"forward_dynamics": "auto"},
                                    {"forward_dynamics": "forward_dynamics"}])  # fmt: skip
def test_slots_take_the_default_of_their_problem(choice, linkage):
    """A step moves a linkage as with aba_loops, a tree as with aba: the same bits."""
    step, still = dyn.solver("semi_implicit_euler"), np.zeros(3)
    q = dyn.close_loops(linkage, linkage.position({"motor": 0.9, "pin_c": -1.5}))
    for model, name in ((linkage, "aba_loops"), (linkage.without_loops(), "aba")):
        taken = step.filling("forward_dynamics", model, choice.get("forward_dynamics"))
        assert taken.name == name
        got = step.build(model, engine="graph", **choice)
        want = step.build(model, engine="graph", forward_dynamics=name)
        for x, y in zip(
            got(q, still, still, 1e-3), want(q, still, still, 1e-3), strict=True
        ):
            assert np.array_equal(x, y)
    with pytest.raises(dyn.UnsupportedError, match="slot"):
        step.filling("inverse_dynamics", linkage)


def test_a_slot_refuses_the_default_of_another_problem(linkage):
    with pytest.raises(dyn.SignatureError, match="needs a solver of forward_dynamics"):
        dyn.solver("rk4").build(linkage, forward_dynamics="inverse_dynamics")


def test_simulations_and_laws_say_what_they_take(linkage, shipped):
    """By name, from one machine: simulator, feed-forward, controller."""
    for model, of in ((linkage, 1), (shipped["two_link"], 0)):
        aba, rnea = PAIRS["forward_dynamics"][of], PAIRS["inverse_dynamics"][of]
        for chosen in (None, "auto", "", "forward_dynamics", aba):
            simulator = dyn.Simulator(model, engine="graph", forward_dynamics=chosen)
            assert simulator.forward_dynamics == aba
        options = {"engine": "graph", "inverse_dynamics": "auto"}
        assert Controller(model, **options).solver_used == rnea
        feed = FeedForward(model, engine="graph")
        assert feed.program.recipe.solver.name == rnea


def test_derivatives_of_inverse_dynamics_with_loops_are_refused_in_words(linkage):
    """A bridge asks for the default solver of a problem, not for a made-up name."""
    from dyn_core.bridges.derivatives import Derivatives

    program = dyn.solver("rnea_loops").build(linkage, engine="graph")
    slope = Derivatives(program).slope("tau", "q")
    with pytest.raises(dyn.UnsupportedError, match="id_derivatives: the robot has loo"):
        slope(lambda source: source.program)


def test_the_problem_is_known_by_object_and_by_name():
    for problem in (INVERSE_DYNAMICS, "inverse_dynamics"):
        assert dyn.solver("auto", problem).signature == INVERSE_DYNAMICS
    assert dyn.solver("step").for_model(dyn.load("arm7")).signature == STEP
