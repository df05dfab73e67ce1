"""Environments: gymnasium's own check, bits, resets, limits, physics, pictures, videos."""

import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

import dyn_core as dyn

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from dyn_core import envs  # noqa: E402
from dyn_core.envs import TaskEnv, TaskVectorEnv, planar_task  # noqa: E402
from dyn_plugins.planar._testing.laws import tasks_go_on_or_end  # noqa: E402

envs.register()
NAMES = list(envs.TASKS)
MODES = ("NextStep", "SameStep")
UNIMPORTANT = ("-infinity", "is infinity", "symmetric and normalized")


def actions_of(env, count, seed=0):
    """Random actions of an environment, the same for the same seed."""
    env.action_space.seed(seed)
    return [env.action_space.sample() for _ in range(count)]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("name", envs.IDS)
def test_gymnasium_checks_every_id(name):
    """check_env passes; what it warns of is open rates and torques in N·m."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        env = gymnasium.make(name)
        check_env(env.unwrapped)
        many = gymnasium.make_vec(name, num_envs=3)
    said = [str(w.message) for w in caught]
    assert [s for s in said if not any(word in s for word in UNIMPORTANT)] == []
    seen, _ = many.reset(seed=0)
    assert seen.dtype == np.float64
    assert seen in many.observation_space
    assert many.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.NEXT_STEP
    assert env.spec.max_episode_steps == env.unwrapped.task.max_steps
    assert len(env.unwrapped.task.entries) == env.unwrapped.task.ns


def test_core_does_not_import_gymnasium():
    """`import dyn_core`, and loading all solvers, leave it alone."""
    code = "import sys, dyn_core; dyn_core.solvers(); print('gymnasium' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert out.stdout.strip() == "False", out.stderr


def test_importing_environments_registers_nothing():
    """gymnasium knows the ids after `register`, not before; twice is once."""
    code = (
        "from dyn_core import envs; import gymnasium, sys\n"
        "print('dyn_core.envs.env' in sys.modules)\n"
        "print(sum(name in gymnasium.registry for name in envs.IDS))\n"
        "envs.register(); envs.register()\n"
        "print(all(name in gymnasium.registry for name in envs.IDS))\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert out.stdout.split() == ["False", "0", "True"], out.stderr


@pytest.mark.parametrize("wanted", ["envs.TaskEnv", "envs.register()"])
def test_without_gymnasium_the_extra_is_named(wanted):
    """Tasks are there; environments say what to install."""
    code = (
        "import sys; sys.modules['gymnasium'] = None\n"
        f"from dyn_core import envs; print(len(envs.TASKS) > 9); {wanted}"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert out.stdout.strip() == "True", out.stderr
    assert "UnsupportedError" in out.stderr
    assert "pip install 'dyn_ros[env]'" in out.stderr


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.full] * bool(k % 3))
        for k, name in enumerate(NAMES)
    ],
)
def test_same_seed_same_bits(name):
    """Two environments and two vectors agree in every bit, another seed does not.

    One task in three; all with --full.
    """

    def run(seed):
        env, many = (
            TaskEnv(name),
            TaskVectorEnv(name, num_envs=5, max_episode_steps=9),
        )
        outputs = [env.reset(seed=seed)[0], many.reset(seed=seed)[0].copy()]
        for a, b in zip(actions_of(env, 12), actions_of(many, 12), strict=True):
            outputs += [*env.step(a)[:2], *many.step(b)[:4]]
        return b"".join(np.asarray(x).tobytes() for x in outputs)

    assert run(3) == run(3)
    assert run(3) != run(4)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", NAMES)
def test_one_environment_is_a_row_of_many(name):
    """Env equals each row of the vector, bit for bit, for few rows and for many."""
    for rows in (1, 7):
        many = TaskVectorEnv(name, num_envs=rows, autoreset_mode="Disabled")
        seen, _ = many.reset(seed=1)
        singles = [TaskEnv(name) for _ in range(rows)]
        states = many.get_state()
        for k, env in enumerate(singles):
            first, _ = env.reset(options={"state": states[k]})
            assert (first == seen[k]).all()
        for action in actions_of(many, 6):
            outputs = many.step(action)
            for k, env in enumerate(singles):
                one = env.step(action[k])
                for x, y in zip(one[:3], outputs[:3], strict=True):
                    assert np.array_equal(x, y[k])
        after = many.get_state()
        assert all((env.get_state() == after[k]).all() for k, env in enumerate(singles))


def test_a_vector_of_one_is_the_environment():
    """The same seed gives the same episodes, resets included."""
    env, many = TaskEnv("cart_pole"), TaskVectorEnv("cart_pole", num_envs=1)
    seen, row = env.reset(seed=5)[0], many.reset(seed=5)[0]
    for _ in range(60):
        assert (seen == row[0]).all()
        seen, _, terminated, truncated, _ = env.step(1)
        row, reward, over, late, _ = many.step(np.array([1]))
        assert (terminated, truncated) == (over[0], late[0])
        if terminated:
            assert reward[0] == 1.0
            seen, _ = env.reset()
            row, reward, over, late, _ = many.step(np.array([0]))
            assert reward[0] == 0.0
            assert not over[0]


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_is_the_text(name):
    """Engine native and the plain text agree."""
    task = planar_task(name)
    rng = np.random.default_rng(2)
    states = task.start(rng, 3)
    low, high = np.array(task.action_bounds).T
    actions = rng.uniform(1.2 * low, 1.2 * high, (3, task.na))
    many = dyn.solver("task_step").build(task)(states, actions)
    plain = dyn.solver("task_step").build(task, engine="plain")
    for k in range(3):
        for x, y in zip(plain(states[k], actions[k]), many, strict=True):
            assert np.allclose(x, y[k], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("terminated", [0.0, 0.5, 1.0])
def test_the_law_of_tasks_allows_going_on_and_ending(terminated):
    """And nothing between the two; the tasks that are drawn go on."""
    result = SimpleNamespace(terminated=np.float64(terminated), reward=0.0,
                             state=np.zeros(2), observation=np.zeros(2))  # fmt: skip
    case = SimpleNamespace(program=lambda: lambda: result, arguments=lambda _: ())
    obeyed = all(got == wanted for got, wanted in tasks_go_on_or_end(case))
    assert obeyed == (terminated in (0.0, 1.0))


def test_parameters_may_come_with_each_call():
    """Masses and lengths by row: one kernel for many carts."""
    task = planar_task("cart_pole")
    program = dyn.solver("task_step").build(task, inputs=["mp", "l"])
    states, action = task.start(np.random.default_rng(0), 9), np.full((9, 1), 10.0)
    mp, l = np.linspace(0.1, 0.4, 9), np.linspace(0.5, 0.7, 9)
    outputs = program(states, action, mp, l).state
    for k in range(9):
        single = planar_task("cart_pole", parameters={"mp": mp[k], "l": l[k]})
        wanted = dyn.solver("task_step").build(single)(states[k], action[k]).state
        assert np.allclose(outputs[k], wanted, rtol=1e-12, atol=1e-12)


def test_rolled_and_written_out_substeps_agree():
    """The loop is the same as its rounds one after the other."""
    task = planar_task("planar_chain")
    states, rng = task.start(np.random.default_rng(0), 8), np.random.default_rng(1)
    actions = rng.uniform(-4, 4, (8, 3))
    build = dyn.solver("task_step").build
    rolled, flat = (build(task, unroll=k)(states, actions) for k in (0, 9))
    assert np.allclose(rolled.state, flat.state, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_autoreset(mode):
    """Time limit and falling start anew when the mode says; counters follow."""
    many = TaskVectorEnv(
        "cart_pole", num_envs=40, autoreset_mode=mode, max_episode_steps=15
    )
    seen, _ = many.reset(seed=0)
    age, due = np.zeros(40, int), np.zeros(40, bool)
    for action in actions_of(many, 60):
        seen, reward, terminated, truncated, info = many.step(action)
        done = terminated | truncated
        fresh = due if mode == "NextStep" else done
        age = np.where(due, 0, age + 1) if mode == "NextStep" else age + 1
        last = info["final_obs"] if "final_obs" in info else seen
        far = (abs(last[:, 0]) > 2.4) | (abs(last[:, 1]) > np.pi / 15)
        assert (terminated == far).all()
        assert (truncated == (age >= 15)).all()
        assert (abs(seen[fresh]) <= 0.05).all()
        if mode == "SameStep":
            assert ("final_obs" in info) == done.any()
            assert not done.any() or (info["_final_obs"] == done).all()
            age[done] = 0
        else:
            assert (reward[fresh] == 0).all()
            assert not done[fresh].any()
        due = done
    assert (many.get_state() == seen).all()


def test_disabled_autoreset_resets_by_mask():
    """Nothing begins anew by itself; reset_mask says which do."""
    many = TaskVectorEnv("cart_pole", num_envs=4, autoreset_mode="Disabled")
    many.reset(seed=0)
    for _ in range(40):
        _, _, terminated, _, _ = many.step(np.ones(4, int))
    assert terminated.all()
    before = many.get_state()
    mask = np.array([True, False, True, False])
    many.reset(options={"reset_mask": mask})
    after = many.get_state()
    assert (abs(after[mask]) <= 0.05).all()
    assert (after[~mask] == before[~mask]).all()


def test_time_limits():
    """Ours where made directly, gymnasium's where made by it."""
    env = TaskEnv("pendulum", max_episode_steps=3)
    env.reset(seed=0)
    assert [env.step([0.1])[3] for _ in range(4)] == [False, False, True, True]
    made = gymnasium.make("dyn_ros/Pendulum-v0", max_episode_steps=700)
    made.reset(seed=0)
    late = [made.step(np.array([0.1]))[3] for _ in range(700)]
    assert late.index(True) == 699
    many = gymnasium.make_vec("dyn_ros/Pendulum-v0", num_envs=2, max_episode_steps=4)
    many.reset(seed=0)
    late = [many.step(np.zeros((2, 1)))[3].all() for _ in range(5)]
    assert late == [False, False, False, True, False]


def test_states_are_kept_and_given_back():
    """From a state that was kept, the same steps follow."""
    for env in (TaskEnv("walker"), TaskVectorEnv("walker", num_envs=3)):
        env.reset(seed=0)
        acts = actions_of(env, 6)
        for a in acts[:3]:
            env.step(a)
        kept = env.get_state()
        first = [env.step(a)[0].copy() for a in acts[3:]]
        env.set_state(kept)
        kept[...] = 0.0
        again = [env.step(a)[0].copy() for a in acts[3:]]
        assert np.array_equal(first, again)


def test_copies_and_shared_arrays():
    """By default what a step gave stays; with copy=False the next overwrites it."""
    for copy in (True, False):
        many = TaskVectorEnv("pendulum", num_envs=8, copy=copy)
        many.reset(seed=0)
        first = many.step(np.full((8, 1), 0.2))[0]
        kept = first.copy()
        many.step(np.full((8, 1), 0.2))
        assert np.array_equal(first, kept) == copy


def test_bad_input_is_refused_in_words():
    """Shapes, numbers, names, options; and no step before a reset."""
    box, discrete = TaskEnv("pendulum"), TaskEnv("cart_pole")
    many, carts = (TaskVectorEnv(x, num_envs=3) for x in ("pendulum", "cart_pole"))
    for env, action in ((box, [0.0]), (many, np.zeros((3, 1)))):
        with pytest.raises(dyn.SettingError, match="call reset first"):
            env.step(action)
        with pytest.raises(dyn.SettingError, match="no reset option 'angle'"):
            env.reset(options={"angle": 1})
    for env in (box, discrete, many, carts):
        env.reset(seed=0)
    for action in ([0.0, 0.0], 0.0, ["x"], None):
        with pytest.raises(
            dyn.ShapeError, match=r"action: wanted numbers of shape \(1,\)"
        ):
            box.step(action)
    with pytest.raises(dyn.NonFiniteError, match="action is not finite"):
        box.step([np.nan])
    assert np.isnan(planar_task("pendulum").saturated([np.nan])[0])  # no torque
    for action in (2, -1, 0.5, [1], None):
        with pytest.raises(dyn.ShapeError, match="a whole number 0..1"):
            discrete.step(action)
    ragged = [[0.0], [0.0, 1.0], [0.0]]
    for action in (np.zeros(3), np.zeros((2, 1)), np.full((3, 1), "x"), ragged):
        with pytest.raises(dyn.ShapeError, match=r"numbers of shape \(3, 1\)"):
            many.step(action)
    with pytest.raises(dyn.NonFiniteError, match="rows 1"):
        many.step(np.array([[0.0], [np.inf], [0.0]]))
    for action in (np.array([0, 1, 2]), np.zeros(3), np.array([0, 1])):
        with pytest.raises(dyn.ShapeError, match="actions: wanted whole numbers"):
            carts.step(action)
    for env, shape in ((box, "(2,)"), (many, "(3, 2)")):
        with pytest.raises(dyn.ShapeError) as caught:
            env.set_state(np.zeros(7))
        assert shape in str(caught.value)
        with pytest.raises(dyn.NonFiniteError):
            env.set_state(np.full_like(env.get_state(), np.nan))
    with pytest.raises(dyn.SettingError, match="one whole number"):
        many.reset(seed=[1, 2, 3])
    with pytest.raises(dyn.ShapeError, match="reset_mask"):
        many.reset(options={"reset_mask": [1, 0, 1]})


@pytest.mark.parametrize(
    ("task", "options", "error", "message"),
    [
        ("unicycle", {}, dyn.ModelError, "valid: .*pendulum"),
        ("pendulum", {"speed": 1}, dyn.ModelError, "no attribute is called 'speed'"),
        ("pendulum", {"dt": 0.0}, dyn.ModelError, "dt must be"),
        ("pendulum", {"substeps": 0}, dyn.ModelError, "substeps must be"),
        ("pendulum", {"substeps": True}, dyn.ModelError, "substeps must be"),
        ("pendulum", {"scheme": "rk5"}, dyn.ModelError, "valid: euler"),
        ("pendulum", {"home": (0.0,)}, dyn.ModelError, "home must have 2"),
        ("pendulum", {"action_bounds": ((1.0, 1.0),)}, dyn.ModelError, "finite pairs"),
        ("pendulum", {"action_bounds": "ab"}, dyn.ModelError, "finite pairs"),
        ("pendulum", {"action_bounds": ()}, dyn.ModelError, "finite pairs"),
        (
            "pendulum",
            {"action_bounds": ((-1.0, 1.0),) * 2},
            dyn.ModelError,
            "action_bounds: 2 .* are 2 inputs of 'pendulum'; valid: .* 1",
        ),
        ("pendulum", {"action_bounds": (-1.0, 1.0)}, dyn.ModelError, "finite pairs"),
        ("pendulum", {"dt": "x"}, dyn.ModelError, "dt must be .* got 'x'"),
        (
            "cart_pole",
            {"choices": ((-99.0,), (9.0,))},
            dyn.ModelError,
            "choice .-99.0,. is not within",
        ),
        ("cart_pole", {"choices": ((1.0, 2.0),)}, dyn.ModelError, "is not within"),
        ("cart_pole", {"choices": 3}, dyn.ModelError, "choice: a list wanted"),
        ("cart_pole", {"choices": (1.0,)}, dyn.ModelError, "choice: a list wanted"),
        ("cart_pole", {"choices": (None,)}, dyn.ModelError, "choice is empty; valid"),
        ("cart_pole", {"choices": (("a",),)}, dyn.ModelError, "valid: numbers"),
        ("pendulum", {"home": 3}, dyn.ModelError, "home: a list wanted"),
        ("pendulum", {"home": "ab"}, dyn.ModelError, "home is 'ab'; valid: numbers"),
        ("pendulum", {"spread": None}, dyn.ModelError, "spread is empty; valid"),
        ("pendulum", {"system": 3}, dyn.ModelError, "system is 3; valid: a Planar"),
        ("walker", {"system": None}, dyn.ModelError, "system is empty; valid: a Ch"),
        ("walker", {"theta": 3}, dyn.ModelError, "theta: a list wanted"),
        ("walker", {"motors": 3}, dyn.ModelError, "motors must be 6"),
        ("pendulum", {"parameters": {"q": 1.0}}, dyn.ModelError, "no parameter 'q'"),
        ("walker", {"parameters": {"m": 1.0}}, dyn.ModelError, "moves a chain"),
        ("walker", {"motors": (1, 1)}, dyn.ModelError, "motors must be 6"),
        (
            "walker",
            {"theta_spread": -0.1},
            dyn.ModelError,
            "theta_spread is -0.1; valid",
        ),
        ("walker", {"rate_spread": -0.1}, dyn.ModelError, "rate_spread is -0.1; valid"),
        ("walker", {"effort_cost": -0.1}, dyn.ModelError, "effort_cost is -0.1; valid"),
        (
            "walker",
            {"motors": (True, 2, 3, 4, 5, 6)},
            dyn.ModelError,
            "motors must be 6",
        ),
        *(
            ("pendulum", {"parameters": wrong}, dyn.ModelError, message)
            for wrong, message in (
                ([1], r"parameters is \[1\]; valid: a mapping from .*: l, m, g"),
                ("m", "parameters is 'm'; valid: a mapping"),
                ({1: 2.0}, "1"),
                ({"self": 2.0}, "self"),
            )
        ),
        ("pendulum", {"render_mode": "human"}, dyn.SettingError, "valid: rgb_array"),
        ("pendulum", {"max_episode_steps": 0}, dyn.SettingError, "whole number"),
        (
            "pendulum",
            {"divergence": "stop"},
            dyn.SettingError,
            "valid: terminate, raise",
        ),
    ],
)
def test_bad_options_are_refused_in_words(task, options, error, message):
    """Both kinds of environment say what would be valid."""
    for kind in (TaskEnv, TaskVectorEnv):
        with pytest.raises(error, match=message):
            kind(task, **options)


def test_bad_options_of_vectors():
    """Their own arguments, and ids that gymnasium does not know."""
    with pytest.raises(dyn.SettingError, match="num_envs"):
        TaskVectorEnv("pendulum", num_envs=0)
    with pytest.raises(dyn.SettingError, match="copy is 'no'; valid: True, False"):
        TaskVectorEnv("pendulum", copy="no")
    with pytest.raises(dyn.SettingError, match="valid: NextStep"):
        TaskVectorEnv("pendulum", autoreset_mode="later")
    with pytest.raises(gymnasium.error.Error):
        gymnasium.make("dyn_ros/Unicycle-v0")


def test_an_error_of_divergence_names_step_and_coordinate():
    """With divergence="raise" a state that overflows is an error, not a NaN."""
    env = TaskEnv("cart_pole", divergence="raise")
    env.reset(options={"state": [0.0, 0.1, 0.0, 1e200]})
    with pytest.raises(
        dyn.NonFiniteError, match=r"x.* is not finite, or .* at step 1 of"
    ):
        env.step(0)
    many = TaskVectorEnv("cart_pole", num_envs=3, divergence="raise")
    many.reset(seed=0)
    many.step(np.zeros(3, int))
    states = many.get_state()
    states[1, 3] = 1e200
    many.set_state(states)
    with pytest.raises(
        dyn.NonFiniteError, match="at step 2 of environment 1"
    ) as caught:
        many.step(np.zeros(3, int))
    assert caught.value.rows == (1,)


FAST = [0.0, 0.1, 0.0, 1e200]  # a state of cart_pole whose next one overflows


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_a_row_that_diverges_ends_alone(mode):
    """It is terminated and marked, with its last good state; the others go on."""
    many, other = (TaskVectorEnv("cart_pole", num_envs=3, autoreset_mode=mode, engine="graph")
                   for _ in range(2))  # fmt: skip
    for env in (many, other):
        env.reset(seed=0)
    states = many.get_state()
    states[1] = [0.0, 0.1, 0.0, 2e8]
    many.set_state(states)
    seen, reward, over, late, info = many.step(np.ones(3, int))
    assert np.array_equal(over, [False, True, False])
    assert np.array_equal(info["diverged"], over)
    assert np.array_equal(info["_diverged"], over)
    assert not late.any()
    assert reward[1] == 0.0
    last = info["final_obs"] if mode == "SameStep" else seen
    assert np.array_equal(last[1], states[1])
    wanted = other.step(np.ones(3, int))
    assert np.array_equal(seen[[0, 2]], wanted[0][[0, 2]])
    assert wanted[4] == {}
    seen, _, over, _, info = many.step(np.ones(3, int))
    assert np.array_equal(over, [False, mode == "Disabled", False])
    assert ("diverged" in info) == (mode == "Disabled")
    assert (abs(seen[1]) <= 0.6).all() == (mode != "Disabled")


def test_rows_that_diverged_are_found():
    """NaN, infinity and numbers beyond 1e9, of either sign; 1e9 itself is none."""
    from dyn_core.envs.rules import diverged_rows

    for bad in (np.nan, np.inf, -np.inf, 1.1e9, -1.1e9):
        seen = np.full((4, 3), 1e9)
        assert len(diverged_rows(seen)) == len(diverged_rows(-seen)) == 0
        seen[2, 1] = bad
        assert diverged_rows(seen).tolist() == [2]


def test_a_single_environment_that_diverges_ends():
    """Numbers that overflow and numbers that are only absurd; then it begins anew."""
    env = TaskEnv("cart_pole", engine="graph")
    for state in (FAST, [0.0, 0.1, 0.0, 2e9]):
        env.reset(options={"state": state})
        with np.errstate(all="ignore"):
            seen, reward, over, late, info = env.step(0)
        assert (reward, over, late, info) == (0.0, True, False, {"diverged": True})
        assert np.array_equal(seen, state)
    env.reset(seed=1)
    assert env.step(0)[2:] == (False, False, {})


@pytest.mark.parametrize("name", NAMES)
def test_random_policy_survives(name):
    """10 000 random steps: all finite, seen within bounds, links hold, none sinks."""
    many = TaskVectorEnv(name, num_envs=100)
    seen, _ = many.reset(seed=0)
    chain = many.task.system if name in ("walker", "planar_chain") else None
    assert all(low < high for low, high in many.task.action_bounds)
    for action in actions_of(many, 100):
        seen, reward, _, _, _ = many.step(action)
        assert np.isfinite(reward).all()
        assert seen in many.observation_space
        if chain is not None:
            places = many.get_state()[:, : 2 * chain.n].reshape(100, chain.n, 2)
            sizes = np.linalg.norm(np.diff(places, axis=1), axis=2)
            assert abs(sizes - chain.lengths).max() < 1e-3
            assert not chain.ground or places[..., 1].min() > -1e-3


def test_one_long_run():
    """10 000 steps of one walker, however often it falls."""
    env = TaskVectorEnv("walker", num_envs=1)
    env.reset(seed=0)
    chain = env.task.system
    for action in actions_of(env, 10_000):
        env.step(action)
        x = env.get_state()[0, : 2 * chain.n].reshape(-1, 2)
        assert (
            abs(np.linalg.norm(np.diff(x, axis=0), axis=1) - chain.lengths).max() < 1e-3
        )
        assert x[:, 1].min() > -1e-3


def lqr(name, weights, effort):
    """Gain of the best linear feedback of a task about upright, without dry friction."""
    dry = {key: 0.0 for key in planar_task(name).system.parameters if key[:2] == "mu"}
    task = planar_task(name, choices=None, parameters=dry)
    step, n, h = dyn.solver("task_step").build(task), task.ns, 1e-5
    moves = h * np.concatenate([np.eye(n + 1), -np.eye(n + 1)])
    after = step(moves[:, :n], moves[:, n:]).state
    A, B = np.split((after[: n + 1] - after[n + 1 :]).T / (2 * h), [n], axis=1)
    R = np.array([[effort]])
    P = solve_discrete_are(A, B, np.diag(weights), R)
    return np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)[0]


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("cart_pole", [1, 10, 1, 1]),
        ("cart_two_poles", [10, 100, 100, 1, 1, 1]),
        ("cart_three_poles", [10, 100, 100, 100, 1, 1, 1, 1]),
    ],
)
def test_a_linear_law_balances(name, weights):
    """The feedback of the linearisation keeps all of 20 carts up to the time limit."""
    gain = lqr(name, weights, 0.1)
    many = TaskVectorEnv(name, num_envs=20, choices=None)
    seen, _ = many.reset(seed=0)
    for _ in range(many.task.max_steps):
        seen, _, terminated, truncated, _ = many.step(-(seen @ gain)[:, None])
        assert not terminated.any()
    assert truncated.all()
    assert abs(seen[:, 1 : many.task.system.nq]).max() < 0.05


def test_classic_cart_pole_is_gymnasiums():
    """The same states as CartPole-v1, to its float64, until it falls."""
    ours, theirs = (
        TaskEnv("classic_cart_pole"),
        gymnasium.make("CartPole-v1").unwrapped,
    )
    theirs.reset(seed=0)
    x, xd, t, td = theirs.state
    ours.reset(options={"state": [x, t, xd, td]})
    for k in range(200):
        action = int(k % 3 > 0)
        _, reward, over, _, _ = ours.step(action)
        _, other, ended, _, _ = theirs.step(action)
        x, xd, t, td = theirs.state
        assert np.allclose(ours.get_state(), [x, t, xd, td], rtol=1e-10, atol=1e-12)
        assert (reward, over) == (other, ended)
        if ended:
            break
    assert over


def test_classic_acrobot_is_gymnasiums():
    """The same motion as Acrobot-v1; its angle is from hanging."""
    ours, theirs = TaskEnv("classic_acrobot"), gymnasium.make("Acrobot-v1").unwrapped
    theirs.reset(seed=1)
    shift = np.array([np.pi / 2, 0, 0, 0])
    theirs.state = np.array(theirs.state, float)
    ours.reset(options={"state": theirs.state - shift})
    for k in range(150):
        action = int(k // 4 % 3)
        seen, reward, over, _, _ = ours.step(action)
        _, other, ended, _, _ = theirs.step(action)
        t1, t2, w1, w2 = theirs.state
        wanted = [np.sin(t1), -np.cos(t1), np.cos(t2), np.sin(t2), w1, w2]
        assert np.allclose(seen, wanted, rtol=1e-6, atol=1e-6)
        assert (reward, over) == (other, ended)


def test_classic_pendulum_is_gymnasiums():
    """The same motion and reward as Pendulum-v1 where the rate is not clipped."""
    ours, theirs = (
        TaskEnv("classic_pendulum"),
        gymnasium.make("Pendulum-v1").unwrapped,
    )
    theirs.reset(seed=0)
    theirs.state = np.array([2.5, 0.3])
    ours.reset(options={"state": theirs.state})
    for k in range(100):
        seen, reward, *_ = ours.step([np.sin(k)])
        there, other, *_ = theirs.step(np.array([np.sin(k)]))
        assert abs(theirs.state[1]) < 8
        assert np.allclose(seen, there, atol=1e-5)
        assert np.isclose(reward, other, atol=1e-6)


def test_schemes_converge_to_one_motion():
    """The pendulum keeps its energy by rk4, and short steps of euler come near."""
    task = planar_task("pendulum")
    start = np.array([2.0, 0.0])
    states = {}
    for scheme, n in (("rk4", 1), ("semi_implicit", 200), ("euler", 200)):
        step = dyn.solver("task_step").build(
            planar_task("pendulum", scheme=scheme, dt=0.1 / n, substeps=n)
        )
        state = start
        for _ in range(20):
            state = step(state, [0.1]).state
        states[scheme] = state
    assert task.interval == 0.1
    assert np.allclose(states["semi_implicit"], states["rk4"], atol=2e-3)
    assert np.allclose(states["euler"], states["rk4"], atol=2e-3)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", NAMES)
def test_pictures(name):
    """A picture of the right size that shows something, for one and for many."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    env = TaskEnv(name, render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture.shape == (400, 600, 3)
    assert picture.dtype == np.uint8
    assert picture.std() > 3
    many = TaskVectorEnv(name, num_envs=2, render_mode="rgb_array")
    many.reset(seed=0)
    assert len(many.render()) == 2
    assert TaskEnv(name).render() is None


def test_what_a_task_shows_fills_the_picture():
    """In its middle, at one scale; the longer side reaches from border to border."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from dyn_core.envs.pictures import HEIGHT, WIDTH, Picture

    for name in ("cart_pole_swing_up", "pendulum"):  # a wide one and a high one
        task = planar_task(name)
        (state,) = task.start(np.random.default_rng(0), 1)
        picture = Picture(task)
        picture.place(state)
        x0, x1, y0, y1 = task.view(task.points(state))
        (axes,) = picture.figure.axes
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        middle = np.array([left + right, low + high])
        np.testing.assert_allclose(middle, [x0 + x1, y0 + y1], atol=1e-12)
        assert (right - left) / WIDTH == pytest.approx((high - low) / HEIGHT)
        shares = (x1 - x0) / (right - left), (y1 - y0) / (high - low)
        assert max(shares) == pytest.approx(1.0)


def test_videos(tmp_path):
    """An animated file comes without a window; other kinds are refused in words."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from PIL import Image

    env = gymnasium.make("dyn_ros/Walker-v0")
    total = envs.record(
        env, lambda seen: np.zeros(6), tmp_path / "w.gif", seed=0, steps=24
    )
    with Image.open(tmp_path / "w.gif") as film:
        assert film.n_frames == 7
        assert film.size == (600, 400)
    assert np.isfinite(total)
    with pytest.raises(dyn.SettingError, match="valid: .gif, .mp4"):
        envs.record(env, lambda seen: np.zeros(6), tmp_path / "w.avi")
    with pytest.raises(dyn.SettingError, match="fps"):
        envs.record(env, lambda seen: np.zeros(6), tmp_path / "w.gif", fps=0)


def test_step_of_many_is_quick():
    """65 536 carts: millions of steps a second from Python, on any machine."""
    from time import perf_counter

    many = TaskVectorEnv("cart_pole", num_envs=65536, threads=1)
    if many._program.engine != "native":
        pytest.skip("no machine code here")
    many.reset(seed=0)
    action = many.action_space.sample()
    best = np.inf
    for _ in range(12):
        start = perf_counter()
        many.step(action)
        best = min(best, perf_counter() - start)
    assert 65536 / best > 2e6


def test_the_walker_is_as_it_is_described():
    """Torques of the inner joints and their bounds; what is seen of its first stance."""
    walker = planar_task("walker")
    weak, strong = (-15.0, 15.0), (-40.0, 40.0)
    assert walker.motors == (1, 2, 3, 4, 5, 6)
    assert walker.action_bounds == (weak, strong, strong, strong, strong, weak)
    assert walker.observation_bounds[6:12] == ((-np.pi, np.pi),) * 6
    x = np.cumsum([[0.0, 0.0], *(0.6 * np.eye(2)[[1, 1, 0, 0, 0, 0, 0]])], axis=0)
    x[4] = x[3] + 0.6 * np.array([0.8, -0.6])  # the trunk
    seen = walker.observe([*x.ravel(), *np.zeros(32)])
    np.testing.assert_allclose(seen[1:3], [0.8, -0.6], atol=1e-12)
    turns = np.diff(np.arctan2(*np.diff(x, axis=0).T[::-1]))
    np.testing.assert_allclose(np.sin(seen[6:12]), np.sin(turns), atol=1e-12)
    np.testing.assert_allclose(np.cos(seen[6:12]), np.cos(turns), atol=1e-12)
