"""The example of a soft tool: its figures, in our simulator and in MuJoCo at 2 kHz."""

import functools
import importlib
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dyn_core as dyn

PLANTS = ["ours", "mujoco"]
WEAK = 0.02  # singularity_threshold [m]
SLEW = 12.0 / 0.05  # default effort_slew of a wrist joint [N·m/s]


@pytest.fixture(scope="module")
def example():
    """The module of the example."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
        yield importlib.import_module("soft_tool")


@functools.cache
def _step(model, plant):
    if plant == "ours":
        return None
    pytest.importorskip("mujoco", reason="mujoco is not installed")
    peer = importlib.import_module("mujoco_peer").MujocoPeer(model)
    return lambda q, qd, tau: peer.step(q, qd, tau, 5e-4)


def _run(example, name, plant, law=None):
    model, usual, *more = example.scenes()[name]
    more = [*more, None][:3]
    step = _step(model, plant)
    return model, example.act(model, law or usual, *more, step=step)


@pytest.mark.parametrize("plant", PLANTS)
def test_a_push_meets_the_stiffness(example, plant):
    """1 % of force over stiffness after two seconds; it returns when the push ends."""
    _, (t, _, _, error) = _run(example, "hold_against_a_push", plant)
    wanted = example.PUSH[3:] / np.diag(example.K)[3:]
    np.testing.assert_allclose(error[t < 2.9][-1], wanted, atol=0.01 * wanted.max())
    assert np.abs(error[-1]).max() < 1e-4


@pytest.mark.parametrize("plant", PLANTS)
def test_a_moving_target_is_followed(example, plant):
    """On a circle, from rest to rest: 0.2 mm."""
    _, (_, _, _, error) = _run(example, "follow_a_target", plant)
    assert np.abs(error).max() < 2e-4


@pytest.mark.one_of(2)
@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("law", ["operational_space", "cartesian_impedance"])
def test_a_singular_position_is_passed(example, plant, law):
    """Without a limit of rates: 1 mm where the tool can move, no fast torque.

    The singular values fall to less than a hundredth of the threshold on the way.
    """
    name = "pass_a_singularity"
    model, (_, q, tau, error) = _run(example, name, plant, law)
    poses = dyn.solver("forward_kinematics").build(model, frames=["tool"])
    jacobian = dyn.solver("jacobian").build(model, frame="tool", reference="aligned")
    start = Rotation.from_matrix(poses(q[0])[0][:3, :3])
    scale, least = np.repeat([0.1, 1.0], 3), []
    for row, off in zip(q[::20], error[::20], strict=True):
        turn = Rotation.from_matrix(poses(row)[0][:3, :3]) * start.inv()
        e = scale * np.r_[turn.as_rotvec(), off]
        U, s, _ = np.linalg.svd(scale[:, None] * jacobian(row))
        stays = U[:, s > WEAK]
        assert np.linalg.norm(stays.T @ e) < 1e-3
        least.append(s[-1])
    assert min(least) < 1e-2 * WEAK
    assert least[0] > WEAK / 4
    assert np.abs(np.diff(tau, axis=0)).max() / example.DT < SLEW
