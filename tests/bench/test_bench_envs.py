"""Soaks of steps with contacts, and the benchmark of environments: short runs of each."""

import numpy as np
import pytest

from bench.contact import contact_soak
from bench.contact.contact_soak import Soak
from bench.planar import env_tables
from dyn_core.cli import main

pytest.importorskip("llvmlite", reason="llvmlite is not installed")


@pytest.mark.parametrize("kernel", [pytest.param(False, marks=pytest.mark.full), True])
def test_a_soak_counts_what_happens(kernel):
    """300 steps of 64 robots; with --full the command takes any number, such as 1e8."""
    *_, known = contact_soak.soaked(300 * 64, rows=64, kernel=kernel)
    assert known.steps == known.statuses.sum() == 300 * 64
    assert known.not_finite == 0
    assert known.unsolved == known.steps - known.statuses[0]
    assert known.unsolved <= (5e-3 if kernel else 1e-3) * known.steps  # sweeps end
    assert 1.0 < known.fastest < 1e3
    assert known.iterations > known.steps  # they do touch something
    assert known.rate == pytest.approx(known.steps / known.seconds)


def test_a_soak_sees_what_is_not_finite_and_goes_on(monkeypatch):
    """A robot that is thrown at 1e300 rad/s is counted once, and thrown anew."""
    real, throws = contact_soak.thrown, []

    def thrown(rng, neutral, rows):
        q, qd = real(rng, neutral, rows)
        if not throws:
            qd[1] = 1e300
        throws.append(rows)
        return q, qd

    monkeypatch.setattr(contact_soak, "thrown", thrown)
    *_, known = contact_soak.soaked(16 * 8, rows=8)
    assert known.not_finite == 1
    assert throws == [8, 1]
    assert np.isfinite(known.fastest)


@pytest.mark.full
def test_a_million_steps():
    """Minutes: as long as the rotation is short, and as `dyn bench` counts them."""
    known = contact_soak.soak(1_000_000, lambda line: None)
    assert known.not_finite == 0
    assert known.unsolved <= 1e-4 * known.steps


def test_the_command_prints_a_soak(monkeypatch, capsys):
    """Status 0 without failures, and 1 with one."""
    monkeypatch.setattr(contact_soak, "ROWS", 8)
    assert main(["bench", "--contact", "--soak", "1e2"]) == 0
    printed = capsys.readouterr().out
    assert "steps a second" in printed
    assert "not finite" in printed
    known = Soak(steps=8, not_finite=1)
    monkeypatch.setattr(contact_soak, "soak", lambda *arguments: known)
    assert main(["bench", "--contact", "--soak", "8"]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    (
        (["--soak", "9"], "--soak needs --contact"),
        (["--contact", "--kernel"], "--kernel needs --soak"),
        (["--contact", "--soak", "0"], "from 1"),
        (["--contact", "--soak", "nan"], "from 1"),
        (["--contact", "--robot", "panda"], "changes nothing beside --contact"),
    ),
)
def test_mistakes_are_refused(arguments, message, capsys):
    """In words, before anything is measured."""
    assert main(["bench", *arguments]) != 0
    assert message in capsys.readouterr().err


@pytest.mark.full
def test_environments_are_measured(monkeypatch, capsys):
    """One of ours and one of gymnasium's: rates, and how much motion a step is."""
    pytest.importorskip("gymnasium", reason="gymnasium is not installed")
    pytest.importorskip("mujoco", reason="mujoco is not installed")
    here = env_tables.ours("reach", 0.01, 1, rows=4)
    there = env_tables.of_mujoco("Pusher-v5", 0.01, 1)
    assert (here.dof, here.steps, here.rows) == (7, 10, 4)
    assert here.dt == pytest.approx(0.02)
    assert (there.dof, there.steps) == (11, 5)
    assert there.dt == pytest.approx(0.05)
    arrays = env_tables.ours("quadruped_stand", 0.01, 1, rows=4, arrays=True)
    assert arrays.name == "quadruped_stand, arrays"
    for figures in (here, there, arrays):
        assert figures.single > 1
        assert figures.vector > 1
        assert len(figures.line()) == len(env_tables.HEAD)
    monkeypatch.setattr(env_tables, "ROBOT_TASKS", ("reach",))
    monkeypatch.setattr(env_tables, "PEERS", ("Pusher-v5",))
    monkeypatch.setattr(env_tables, "SPAN", 0.01)
    assert main(["bench", "--envs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (head,) = (k for k, line in enumerate(lines) if line.startswith("environment  "))
    assert "mujoco" in lines[head - 2]
    names = [line.partition("  ")[0] for line in lines[head + 1 :]]
    assert names == ["reach", "Pusher-v5, MuJoCo"]
