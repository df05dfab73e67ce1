"""Let the tests of this folder share its modules, and a folder for meshes."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def hulls(tmp_path):
    """A folder for meshes; None where nothing reads them."""
    try:
        import coal  # noqa: F401
    except ImportError:
        return None
    return tmp_path
