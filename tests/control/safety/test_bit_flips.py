"""Bits flipped in machine code: no wrong effort passes; on disk they are refused."""

import json

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control import Controller, Rules, ShadowSettings
from dyn_core.engines.llvm import host_machine, kernel
from dyn_core.engines.llvm.cached import kernel_cache
from dyn_core.testing import bit_flips
from dyn_core.testing.models import chain

needs_memory = pytest.mark.skipif(bool(bit_flips.missing()), reason=bit_flips.missing())
STATES = 12


@pytest.fixture(scope="module")
def arm():
    """Return a controller of two joints with a shadow."""
    return bit_flips.arm_with_shadow("two_link")


def _flipped(controller, n, seed=1):
    states = bit_flips.seeded_states(controller.model, STATES, seed)
    return bit_flips.flip_bits(controller, states, n, seed)


@needs_memory
def test_no_flipped_bit_lets_a_wrong_effort_pass(arm):
    """Each flip in a process of its own; some are seen, and the cost is shown."""
    report = _flipped(arm, 25)
    assert report.outcomes.total() == 25
    assert report.outcomes[bit_flips.WRONG] == 0 == len(report.wrong)
    assert report.outcomes[bit_flips.SHADOW] > 0
    assert report.outcomes[bit_flips.HARMLESS] > 0
    assert {span.name[:7] for span in report.spans} == {".text", ".rodata"}
    assert report.cost > 0
    assert "the shadow costs" in str(report) and "25 bit flips in" in str(report)


@needs_memory
def test_without_its_stop_wrong_efforts_pass(arm):
    """What the shadow only counts does pass: the campaign sees it."""
    settings = arm.safety.shadow.settings
    arm.safety.shadow.settings = ShadowSettings("rnea_spatial", "graph", stop=False)
    try:
        report = _flipped(arm, 15)
    finally:
        arm.safety.shadow.settings = settings
    assert report.outcomes[bit_flips.WRONG] > 0 == report.outcomes[bit_flips.SHADOW]
    assert f"byte {report.wrong[0][0]}, bit" in str(report)


@needs_memory
def test_the_parent_keeps_its_code(arm):
    """A flip in a fork changes nothing here; one made here is undone by a second."""
    states = bit_flips.seeded_states(arm.model, STATES, 1)
    right = bit_flips.efforts(arm, states)
    _flipped(arm, 2)
    arm.reset_stop()
    np.testing.assert_array_equal(bit_flips.efforts(arm, states), right)
    span = bit_flips.code_spans(arm.law)[1]
    bit_flips.flip(bit_flips.address_of([span], 7), 6)
    with pytest.raises(dyn.errors.UnsupportedError, match="is not that of the kernel"):
        bit_flips.code_spans(arm.law)
    bit_flips.flip(span.address + 7, 6)
    assert bit_flips.code_spans(arm.law)[1] == span


@needs_memory
@pytest.mark.full
def test_of_a_thousand_flipped_bits_none_lets_a_wrong_effort_pass(capsys):
    """The whole campaign, on the arm of seven joints: half a minute."""
    assert bit_flips.main(["--n", "1000", "--seed", "1"]) == 0
    assert "1000 bit flips" in capsys.readouterr().out


@needs_memory
def test_the_command_counts(capsys):
    """Robot, solver and number are chosen on the command line."""
    chosen = ["--robot", "two_link", "--n", "1", "--cycles", "3", "--engine", "graph"]
    assert bit_flips.main(chosen) == 0
    assert "     0 wrong effort passed" in capsys.readouterr().out


RIGHT = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
PASSES = [
    (RIGHT, ["", "", ""], "", bit_flips.HARMLESS),
    (RIGHT + 1e-7, ["", "", ""], "", bit_flips.SMALL),
    (RIGHT + [0, 1e-5], ["", "", ""], "", bit_flips.WRONG),
    (RIGHT * np.nan, ["", "", ""], "", bit_flips.WRONG),
    (RIGHT[:2] + 1.0, ["", ""], bit_flips.CRASHED, bit_flips.WRONG),
    (RIGHT[:2], ["", ""], bit_flips.CRASHED, bit_flips.CRASHED),
    (RIGHT[:0], [], bit_flips.HUNG, bit_flips.HUNG),
    (RIGHT * [[1], [0], [0]], ["", "seen", "seen"], "", "seen"),
    (RIGHT * [[1], [0], [1]], ["", "seen", "seen"], "", bit_flips.WRONG),
]


@pytest.mark.parametrize(("passed", "causes", "end", "expected"), PASSES)
def test_every_effort_that_passed_counts(passed, causes, end, expected):
    """Also before a crash, in a stop, and where it is no number."""
    allowed = np.full(3, 1e-6)
    assert bit_flips.outcome_of(RIGHT, passed, causes, end, allowed)[0] == expected


def test_a_sound_law_must_pass_first():
    """A campaign with states that the controller stops at shows nothing."""
    controller = Controller(
        dyn.load_urdf(dyn.robots.path("two_link")), engine="graph",
        rules=Rules(good_samples=1),
    )  # fmt: skip
    controller.estop(0.0, "pressed")
    states = bit_flips.seeded_states(controller.model, 2, 1)
    with pytest.raises(dyn.UnsupportedError, match="the sound law is stopped: pressed"):
        bit_flips.efforts(controller, states)
    with pytest.raises(dyn.UnsupportedError, match="shadow=|machine code|llvmlite"):
        bit_flips.flip_bits(controller, states, 1, 1)


# The shadow sees neither the law's memory nor its code


@pytest.mark.parametrize(
    ("mode", "number"),
    [("computed_torque", 0), ("computed_torque", 2), ("impedance", 5), ("gravity", 0)],
)
def test_a_law_that_writes_into_its_inputs_is_seen(mode, number):
    """Neither the state, the reference nor a gain that it changes is the shadow's."""
    robot = chain(2)
    controller = Controller(
        robot, engine="graph", mode=mode, bounds=None, state_bounds=None,
        rules=Rules(good_samples=1, max_jump=9.0, on_violation="zero"),
        shadow=ShadowSettings("rnea_spatial", engine="graph"),
        effort_limits=dict.fromkeys(robot.joint_names, 1e3),
    )  # fmt: skip
    q, qd = np.array([0.3, -0.5]), np.array([0.2, 0.4])
    for k in range(2):
        controller.update(0.01 * k, q + 0.1 * k, qd)
    assert controller.stopped is None
    exact = controller.law

    def law(*inputs):
        inputs[number][:] = 2.0 * inputs[number] + 1.0
        return exact(*inputs)

    controller.law = law
    assert not controller.update(0.02, q + 0.2, qd).any()
    assert "shadow 'rnea_spatial'" in controller.stopped.reason
    np.testing.assert_array_equal(controller.q, q + 0.2)


@pytest.mark.parametrize(
    "settings", [ShadowSettings(), ShadowSettings("rnea", "graph")]
)
def test_a_law_does_not_watch_itself(settings):
    """The same solver on the same engine errs alike; on another engine it may watch."""
    robot = dyn.load_urdf(dyn.robots.path("two_link"))
    engine = settings.engine
    with pytest.raises(dyn.SettingError, match="the shadow is the law itself: 'rnea'"):
        Controller(robot, engine=engine, shadow=settings)
    other = ShadowSettings("rnea", engine="plain")
    assert Controller(robot, engine=engine, shadow=other).safety.shadow is not None


# On disk


@pytest.mark.skipif(bool(host_machine.missing()), reason=host_machine.missing())
def test_a_flipped_bit_on_disk_is_refused(tmp_path, monkeypatch):
    """Anywhere in a file: nothing is loaded, the file goes, and is made again."""
    monkeypatch.setenv("DYN_CACHE_DIR", str(tmp_path / "kernels"))
    kernel.forget()
    rng, q = np.random.default_rng(1), np.array([0.4])

    def build():
        program = dyn.solver("gravity").build(chain(1), engine="native")
        program.prepare()
        return program

    wanted = build()(q)
    for path in sorted((tmp_path / "kernels").glob("*.obj")):
        sound, key = path.read_bytes(), path.stem
        for _ in range(100):
            content = bytearray(sound)
            content[rng.integers(len(sound))] ^= 1 << rng.integers(8)
            path.write_bytes(content)
            assert kernel_cache.load(key) is None
            assert not path.exists()
        path.write_bytes(sound)
        assert json.dumps(kernel_cache.load(key)[0])
        path.write_bytes(content)
    kernel.forget()
    again = build()
    assert again.kernels()[0].compiled
    np.testing.assert_array_equal(again(q), wanted)
    kernel.forget()
