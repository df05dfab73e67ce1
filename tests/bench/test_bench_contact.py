"""Scenes with contacts of the benchmark: the same here and in MuJoCo."""

import numpy as np
import pytest

from bench.contact import (
    contact_batches,
    contact_protocols,
    contact_runs,
    contact_scenes,
)
from bench.contact.contact_runs import Run, SceneFigures

pytest.importorskip("llvmlite", reason="llvmlite is not installed")

SCENES = (
    contact_scenes.pushing_arm,
    contact_scenes.four_bar,
    lambda: contact_scenes.quadruped(trots=True),
    lambda: contact_scenes.towers(1, 2),
    lambda: contact_scenes.spheres(3, at_rest=False),
)


@pytest.mark.one_of(5)
@pytest.mark.parametrize("made", SCENES, ids=("arm", "bars", "trot", "tower", "balls"))
def test_a_scene_falls_equally_in_mujoco(made):
    """Same mass and start; after 0.2 s every body is where it is there, to 5 mm."""
    mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed")
    scene = made()
    peer = contact_runs.MujocoScene(scene)
    assert peer.model.body_mass.sum() == pytest.approx(scene.model.mass)
    assert peer.model.nv == scene.model.nv
    assert peer.model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    q, qd = peer.state()
    np.testing.assert_allclose(q, scene.start, atol=1e-12)
    assert not qd.any()
    moved = scene.start.copy()
    moved[:3] += 0.1
    assert peer.apart(moved) > 0.05
    assert contact_runs.distance(scene) < contact_runs.EQUAL


@pytest.mark.full
def test_a_batch_is_measured_and_its_steps_are_solved(monkeypatch):
    """Eight states of a four-bar here and in MuJoCo; without it a column is empty."""
    monkeypatch.setattr(contact_batches, "ROWS", 8)
    scene = contact_scenes.four_bar()
    monkeypatch.setattr(contact_batches, "version", lambda name: None)
    name, rate, unsolved, law, *others = contact_batches._line(scene, lambda x: None)
    assert name == scene.name and float(rate) > 0.0
    assert unsolved == "0.0%" and float(law) <= 1e-8
    assert others == ["-"] * 4
    monkeypatch.undo()
    monkeypatch.setattr(contact_batches, "ROWS", 8)
    pytest.importorskip("mujoco", reason="mujoco is not installed")
    elliptic, _, pyramidal, _ = contact_batches._line(scene, lambda x: None)[4:]
    assert float(elliptic) > 0.0 and float(pyramidal) > 0.0


def test_a_run_is_measured_and_its_steps_are_solved():
    """Two boxes: eight contacts bear them, in MuJoCo, too; its law is not exact."""
    pytest.importorskip("mujoco", reason="mujoco is not installed")
    figures = contact_runs.measured(contact_scenes.towers(1, 2, settle=50), 20)
    assert not figures.error and not figures.step.failed
    assert len(figures.here.seconds) == len(figures.mujoco.seconds) == 20
    assert figures.step.contacts == [8] * 20 == figures.step.pressed
    assert max(figures.step.seconds) > 0
    assert figures.step.law < 1e-8 < figures.mujoco.law
    assert figures.step.overlap < 1e-6 < figures.mujoco.overlap < 1e-3
    assert len(contact_runs.line(figures)) == len(contact_runs.HEAD)


@pytest.mark.parametrize("cone", contact_protocols.CONES)
def test_the_law_of_mujoco_sees_forces_that_are_too_large(cone):
    """At rest the law holds; with forces outside of their cones it does not."""
    pytest.importorskip("mujoco", reason="mujoco is not installed")
    peer = contact_runs.MujocoScene(contact_scenes.towers(1, 1), cone)
    for _ in contact_runs.advance_mujoco(peer, 1000):
        pass
    assert peer.law() < 1e-6
    peer.data.efc_force[1] -= 3 * peer.data.efc_force[0]
    assert peer.law() > 0.1


def test_steps_are_measured_warm_and_cold_beside_both_cones(monkeypatch):
    """One box, five steps: other data is touched before each; cones are MuJoCo's."""
    pytest.importorskip("mujoco", reason="mujoco is not installed")
    monkeypatch.setattr(contact_protocols, "STEPS", 5)
    scene, calls = contact_scenes.towers(1, 1, settle=5), []
    here = contact_protocols.run_here(scene, lambda: calls.append(1))
    assert len(here.seconds) == len(calls) == 5
    assert here.law <= 1e-8
    make, cones = contact_protocols.MujocoScene, []
    monkeypatch.setattr(
        contact_protocols, "MujocoScene",
        lambda scene, cone: cones.append(cone) or make(scene, cone),
    )  # fmt: skip
    cells = contact_protocols.beside(scene, here, contact_runs.nothing)
    assert len(cells) == len(contact_protocols.HEAD) - 4
    assert cones == ["elliptic", "pyramidal"]
    assert "x" in cells[2] and "x" in cells[5]
    assert float(cells[1]) < 1 and float(cells[4]) < 1


def test_a_ratio_says_where_it_is_behind():
    """Medians may be ahead and means not."""
    assert contact_runs.ratio(1.234) == "1.23x"
    assert contact_runs.ratio(1.2, 0.9) == "1.20 / 0.90x (behind)"


def test_notes_name_the_scenes_in_which_mujoco_is_ahead():
    """And what was not solved; a scene that is ahead here has no note."""
    scene = contact_scenes.towers(1, 1)
    slow, fast = Run([2e-6]), Run([1e-6])
    ahead = SceneFigures(scene, fast, Run(), slow, 0.0, scene.settle)
    behind = SceneFigures(scene, slow, Run(failed=3), fast, 0.0, scene.settle - 1)
    assert contact_runs.notes([ahead]) == [["all", "MuJoCo is ahead in none"]]
    assert [note for _, note in contact_runs.notes([ahead, behind])] == [
        "settled for 299 of 300 steps only, for lack of time",
        "3 steps not solved to the tolerance",
        "MuJoCo is ahead, 2.0x",
    ]
