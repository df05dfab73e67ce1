"""Options and robots that all tests share."""

import pytest

import dyn_core as dyn
from dyn_core import robots


def pytest_addoption(parser):
    """Add --full: every solver on every random tree and engine."""
    parser.addoption(
        "--full", action="store_true", help="run everything, not a rotation"
    )


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Keep kernels of this run in a folder of their own, also for other processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DYN_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield


@pytest.fixture(scope="session")
def full(request):
    """Whether everything is run."""
    return request.config.getoption("--full")


@pytest.fixture(scope="session")
def shipped():
    """All shipped robots by name; the quadruped floats."""
    return {name: load(name) for name in robots.names()}


def load(name):
    """Load a shipped robot as its header says it is used."""
    root = "floating" if name == "quadruped" else "fixed"
    return dyn.load_urdf(robots.path(name), root_joint=root)
