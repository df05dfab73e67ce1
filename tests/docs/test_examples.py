"""The example scripts run, and what they print and claim holds."""

import importlib
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dyn_core as dyn

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = (
    "walk", "spaces", "screws", "coordinates", "moving_frames", "products", "steady_turn",
    "inertia", "equation_of_motion", "constraints", "questions", "structure",
)  # fmt: skip
FACTS = (
    "duality", "screws", "pluecker", "cross_products", "inertia_facts", "motion_facts",
    "hinge_facts", "relatives",
)  # fmt: skip


@pytest.fixture
def guide(monkeypatch):
    """The scripts of the guide, their names together."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "six_d_vectors"))
    names = {}
    for script in SCRIPTS:
        names |= vars(importlib.import_module(script))
    return SimpleNamespace(**names)


def test_hello_robot(capsys):
    """15 lines; the arm holds still by its torques, and brakes lose energy."""
    path = EXAMPLES / "hello_robot.py"
    names = runpy.run_path(str(path), run_name="__main__")
    code = [x for x in path.read_text().splitlines() if x.strip()]
    assert len(code) <= 15
    still = np.zeros(names["model"].nv)
    weight = dyn.solver("gravity").build(names["model"], engine="plain")(names["q"])
    np.testing.assert_allclose(
        names["rnea"](names["q"], still, still), weight, atol=1e-9
    )
    assert names["run"].energy[-1] < names["run"].energy[0]
    assert "torques that hold it still" in capsys.readouterr().out


def test_two_bodies_runs_and_agrees(capsys):
    """Run as a script; both ways print the same numbers."""
    runpy.run_path(str(EXAMPLES / "two_bodies.py"), run_name="__main__")
    printed = capsys.readouterr().out
    left, right = re.search(r"a1 +\[(.*?)\] +\[(.*?)\]", printed).groups()
    assert np.allclose(*(np.array(x.split(), float) for x in (left, right)))
    apart = [float(x) for x in re.findall(r"differ by (\S+)", printed)]
    assert len(apart) == 4
    assert max(apart) < 1e-10
    assert re.search(r"spatial, all together +8\n", printed)


def test_examples_are_short():
    """A file of an example has less than a hundred lines."""
    files = sorted(EXAMPLES.rglob("*.py"))
    assert len(files) > 30
    long = {x.stem for x in files if len(x.read_text("utf-8").splitlines()) >= 100}
    assert not long


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", FACTS)
def test_claims_of_the_guide(guide, name, seed):
    """Each claim that the script prints holds for other numbers too."""
    deviations = getattr(guide, name)(np.random.default_rng(seed))
    assert deviations
    for claim, off in deviations.items():
        assert off < 1e-6, claim


def test_frames_and_questions_in_words(guide, capsys):
    """The refusal names both frames; the three questions are answered."""
    answer = guide.named_frames()
    assert "'camera'" in answer
    assert "'hand'" in answer
    answers = guide.reader_questions()
    for mark in ("(a)", "(b)", "(c)", "v1 x v2", "v x* I v", "reference point"):
        assert mark in answers
    guide.duality(np.random.default_rng(0))
    assert "m + f: a Motion and a Force" in capsys.readouterr().out


def test_structure_saves_multiplications(guide):
    """At most 24 for X m and for I v; times are reported, not tested."""
    costs = {cost.name: cost for cost in guide.timing_report(rows=4, repeats=1)}
    assert set(costs) == {"X m", "I v", "X.T I X"}
    for cost in costs.values():
        few, many = cost.multiplications
        assert few < many
        assert min(cost.times) > 0
    assert costs["X m"].multiplications == (24, 36)
    assert costs["I v"].multiplications[0] <= 24


def test_the_guide_runs_and_draws(guide, tmp_path, capsys):
    """Every cell, and the five pictures."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    importlib.import_module("walk").main(tmp_path / "pictures")
    printed = capsys.readouterr().out
    assert "negative first at 6.06 s" in printed
    drawn = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert drawn == {
        "twist.png", "wrench.png", "moving_frame.png", "steady_rotation.png", "flip.png"
    }  # fmt: skip
    for path in (tmp_path / "pictures").iterdir():
        assert path.read_bytes()[:4] == b"\x89PNG"
        assert path.stat().st_size > 10_000


def test_the_arm_is_identified(monkeypatch, tmp_path, capsys):
    """Torques of another motion are predicted to the noise, from a prior that is off."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    script = importlib.import_module("identify_arm")
    errors = script.main(tmp_path / "torques.png")
    assert (errors["identified"] < 1.1 * script.NOISE).all()
    assert (errors["prior"] > 1.1 * script.NOISE).all()
    printed = capsys.readouterr().out
    assert "62 base parameters of 91 numbers" in printed
    assert "(all bodies physical)" in printed
    assert (tmp_path / "torques.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "torques.png").stat().st_size > 10_000


def test_an_identified_urdf_tracks_better(monkeypatch, tmp_path, capsys):
    """By ten times, from a record through files alone."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    before, after = importlib.import_module("identify_and_track").main(tmp_path)
    assert after < 0.1 * before and after < 0.01
    assert "tracking error" in capsys.readouterr().out
    written = {"run.npz", "mine.urdf", "mine.dyn.yaml", "tracking.png"}
    assert {x.name for x in tmp_path.iterdir()} >= written
    assert Path(dyn.robots.path("arm7")).read_text().count("<!--") == (
        tmp_path / "mine.urdf"
    ).read_text().count("<!--")


def test_the_payload_is_estimated(monkeypatch, tmp_path, capsys):
    """Two bodies, each after two seconds: mass to 2 %, moments to 5 %, all within 4 s.d."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    script = importlib.import_module("estimate_payload")
    rows = script.main(tmp_path / "payload.png")
    for until in (script.CHANGE, script.END):
        k = round(until / script.DT) - 1
        truth, ten = rows["truth"][k], rows["ten"][k]
        assert abs(ten[0] / truth[0] - 1) < 0.02
        length = np.linalg.norm(truth[1:4])
        assert np.linalg.norm(ten[1:4] - truth[1:4]) < 0.05 * length
        assert (np.abs(ten - truth) < 4 * rows["deviations"][k]).all()
        assert (rows["deviations"][k][4:] < 2e-3).all()
    assert not np.array_equal(rows["truth"][0], rows["truth"][-1])
    assert re.search(r"\nIzz +0\.0046 ", capsys.readouterr().out)
    assert (tmp_path / "payload.png").stat().st_size > 10_000


def test_a_plane_is_polished(monkeypatch, tmp_path, capsys, full):
    """It prints errors with and without the sensor, draws the forces, makes a film.

    With --full for as long as a user sees it, else for two seconds of motion, of which
    the film has few pictures.
    """
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    script = importlib.import_module("polish")
    if not full:
        monkeypatch.setattr(script, "MOVES", 1.5)
        monkeypatch.setattr("_plane_and_arm.FPS", 2.0)
    end = script.END if full else script.MOVES + 2.0
    touch, motion = script.main(tmp_path / "polish.png", end)[0]
    assert touch <= 0.2
    assert motion <= 0.02
    assert "without sensor: overshoot" in capsys.readouterr().out
    assert (tmp_path / "polish.png").stat().st_size > 10_000
    assert (tmp_path / "polish.gif").stat().st_size > 10_000 * (end - 2.0)


def test_the_four_bar_follows_its_motor(monkeypatch, tmp_path, capsys):
    """The linkage stays closed and tracks; its own motion takes no torque."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    script = importlib.import_module("four_bar")
    rows = script.main(tmp_path)
    assert abs(rows[500:, 1] - rows[500:, 2]).max() < 1e-3
    assert rows[:, 4].max() < 1e-4
    assert "torque that this motion takes: [" in capsys.readouterr().out
    assert (tmp_path / "four_bar.png").stat().st_size > 10_000


@pytest.fixture(scope="module")
def contacts():
    """The script of the contacts, as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES / "contacts"))
        yield importlib.import_module("run")


@pytest.mark.parametrize(
    ("part", "checked", "relative"),
    [("slide", 7, 1e-6), ("bounce", 10, 1e-8), ("stack", 4, 1e-6)],
)
def test_contacts_meet_their_formulas(contacts, part, checked, relative, tmp_path):
    """Boxes and balls move as the spec's cases C1, C2, C6 and C7 say."""
    (figures,) = contacts.main(tmp_path, [part], short=True).values()
    closed = [figure for figure in figures if figure.expected is not None]
    assert len(closed) == checked
    for case, computed, expected in closed:
        assert computed == pytest.approx(expected, rel=relative, abs=1e-9), case


def test_the_quadruped_stands_and_is_pushed(contacts, tmp_path):
    """The simulator goes the way of the compiled step; momentum is what was given."""
    figures = contacts.main(tmp_path, ["quadruped"], short=True)["quadruped"]
    weight, _, momentum, _, apart = figures[:5]
    assert weight.value == pytest.approx(weight.expected, rel=0.05)
    assert momentum.value == pytest.approx(momentum.expected, abs=0.005)
    assert apart.value < 1e-6


def test_the_walker_drops_in_two_engines_alike(contacts, tmp_path):
    """Chain and robot meet the ground when a stone would, and stay together."""
    figures = contacts.main(tmp_path, ["walker"], short=True)["walker"]
    hit, step, _, apart = figures[:4]
    assert hit.value == pytest.approx(hit.expected, abs=1e-9)
    assert abs(step.value - step.expected) < 1e-3
    assert apart.value < 0.01


def test_contacts_draw(contacts, tmp_path, capsys):
    """One picture a part; figures are printed."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    contacts.main(tmp_path / "pictures", ["slide"], short=True)
    assert "way after 100 steps of 0.01 s [m]" in capsys.readouterr().out
    (path,) = (tmp_path / "pictures").iterdir()
    assert path.name == "contacts_slide.png"
    assert path.stat().st_size > 10_000


def test_the_planar_chain_falls(monkeypatch, tmp_path, capsys):
    """It hits when a stone would; energy and losses add up; the modes of one chain cycle."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    script = importlib.import_module("planar_chain")
    run = script.main(tmp_path, seconds=0.6)
    hits = [event for event in run.sim.events if event.kind == "hit"]
    assert hits[0].time == pytest.approx((2 * script.HEIGHT / 9.81) ** 0.5, abs=1e-9)
    assert any("limit" in event.message for event in hits)
    both = run.energy + run.lost
    assert abs(both - both[0]).max() < 0.01 * both[0]
    assert run.x[:, :, 1].min() > -1e-6
    printed = capsys.readouterr().out
    assert "mode_cycle: no set is consistent" in printed
    assert "joint 0 may slide: nothing happens" in printed
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert (tmp_path / "planar_chain.png").stat().st_size > 10_000


def test_a_pole_swings_up_and_stands(monkeypatch, tmp_path, capsys, full):
    """Within the force of the cart, and not with a tenth of it.

    All pictures of its film are drawn with --full only.
    """
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    pytest.importorskip("PIL", reason="Pillow is not installed")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    script = importlib.import_module("swing_up")
    if not full:
        monkeypatch.setattr(script, "FPS", 2.5)
    model, plan, run = script.main(tmp_path)
    assert plan.converged
    assert 0.99 * script.FORCE < np.abs(run.tau[:, 0]).max() <= script.FORCE
    assert (run.tau[:, 1] == 0).all()
    assert np.abs(run.q[-1]).max() < 5e-3
    limits = model.upper[0], model.lower[0]
    assert limits[1] < run.q[:, 0].min() and run.q[:, 0].max() < limits[0]
    _, weak, _ = script.swing_up(0.1 * script.FORCE)
    assert np.abs(weak.q[-1, 1]) > 1.0
    assert "converged after" in capsys.readouterr().out
    assert (tmp_path / "swing_up.png").stat().st_size > 10_000
    size = (tmp_path / "swing_up.gif").stat().st_size / script.FPS
    assert 4_000 < size < 24_000


def test_an_arm_lifts_and_carries_within_its_limits(monkeypatch, tmp_path, capsys):
    """Less torque than the weight on the straight path; a known load ends in place."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    script = importlib.import_module("lift_and_carry")
    (plan, run, weight), known, unknown = script.main(tmp_path)
    assert plan.converged
    assert np.abs(run.tau[:, 1]).max() <= script.TORQUE < 0.6 * weight
    np.testing.assert_allclose(run.q[-1], script.HIGH, atol=0.03)
    *plans, off = known
    assert all(each.converged for each in plans)
    assert off < 2e-3
    assert unknown[2] > 0.05
    assert "30.0 N·m; its weight on the straight path: 52.5" in capsys.readouterr().out
    assert (tmp_path / "lift.png").stat().st_size > 10_000
