"""The wheel and the source distribution: built without warnings, used where nothing is."""

import re
import shutil
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("dyn_core", "dyn_plugins", "ros_nodes")
SIX = {"numpy", "scipy", "urdf-parser-py", "pluggy", "pyyaml", "llvmlite"}
LIMIT = 12e6  # of the unpacked wheel [bytes]
# The table is what setuptools before 77 reads, which colcon uses on ROS 2 Humble and Jazzy.
EXPECTED = re.compile(
    r"SetuptoolsDeprecationWarning: (`project.license`|License class)"
)
BUILD = "import sys, setuptools.build_meta as b; print(getattr(b, sys.argv[1])(sys.argv[2]))"
USE = """
import sys
import numpy as np
import dyn_core as dyn
model = dyn.load("arm7")
q = model.neutral()
graph, native = (dyn.solver("rnea").build(model, engine=x) for x in ("graph", "native"))
assert np.array_equal(graph(q, q, q), native(q, q, q))
assert "scipy" not in sys.modules
assert "site-packages" in dyn.__file__
"""


def _build(kind, tree, folder):
    """Return the file that a source tree gives, and the warnings of its build."""
    folder.mkdir(exist_ok=True)
    run = [sys.executable, "-W", "always", "-c", BUILD, f"build_{kind}", str(folder)]
    done = subprocess.run(run, cwd=tree, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    said = [x for x in done.stderr.splitlines() if "warning" in x.lower()]
    ours = [x for x in said if str(tree) in x or "_Warning" in x or "Setuptools" in x]
    return folder / done.stdout.split()[-1], [x for x in ours if not EXPECTED.search(x)]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return (wheel, wheel of the source distribution), of a copy of the tree."""
    pytest.importorskip("setuptools", reason="the build needs setuptools and wheel")
    folder = tmp_path_factory.mktemp("distribution")
    tree = folder / "tree"
    tree.mkdir()
    for name in (*PACKAGES, "launch", "resource", "scripts"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tree / name, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "package.xml"):
        shutil.copy(ROOT / name, tree / name)
    source, warned = _build("sdist", tree, folder)
    shutil.unpack_archive(source, folder / "unpacked", filter="data")
    (other,) = (folder / "unpacked").iterdir()
    second, more = _build("wheel", other, folder / "second")
    shutil.rmtree(tree / "dyn_ros.egg-info")  # as in a clone
    first, others = _build("wheel", tree, folder / "first")
    assert warned + more + others == []
    return first, second


def _contents(wheel):
    """Return the size of each file of a wheel by its name, but for the list of files."""
    with zipfile.ZipFile(wheel) as archive:
        files = {x.filename: x.file_size for x in archive.infolist()}
    return {name: size for name, size in files.items() if not name.endswith("/RECORD")}


@pytest.mark.full
def test_the_wheel_has_all_files_and_is_light(built):
    """Half a minute for the builds: with --full only."""
    first, second = map(_contents, built)
    assert first == second
    files = [p for name in PACKAGES for p in (ROOT / name).rglob("*") if p.is_file()]
    kept = [x for x in files if "__pycache__" not in x.parts and x.suffix != ".md"]
    assert len(kept) > 700
    assert {x.relative_to(ROOT).as_posix() for x in kept} <= first.keys()
    tops = {name.split("/")[0] for name in first if ".data" not in name}
    assert {x for x in tops if not x.endswith(".dist-info")} == {*PACKAGES}
    assert sum(first.values()) <= LIMIT


@pytest.mark.full
def test_metadata_are_complete(built):
    """Six dependencies; all that a package index shows. Builds: with --full only."""
    with zipfile.ZipFile(built[0]) as archive:
        (name,) = [x for x in archive.namelist() if x.endswith(".dist-info/METADATA")]
        said = message_from_bytes(archive.read(name))
    plain = [x for x in said.get_all("Requires-Dist") if "extra ==" not in x]
    assert {re.match(r"[\w-]+", x)[0].lower() for x in plain} == SIX
    for key in (
        "Summary",
        "Author",
        "Maintainer",
        "Keywords",
        "License",
        "License-File",
    ):
        assert said[key], key
    assert said["Requires-Python"] == ">=3.10"
    assert said["Description-Content-Type"] == "text/markdown"
    assert said.get_payload().lstrip().startswith("# ")
    assert len(said.get_all("Classifier")) > 10


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_an_empty_environment_runs_the_wheel(built, tmp_path):
    """A minute, and 120 MB of downloads without a cache: with --full only."""
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True, timeout=240)
    programs = place / ("Scripts" if sys.platform == "win32" else "bin")
    pip = [str(programs / "pip"), "install", "--quiet", "--no-compile", str(built[0])]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=900)
    if "No matching distribution" in done.stderr or "Connection" in done.stderr:
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr
    empty = {"HOME": str(tmp_path), "PATH": str(programs)}
    for command in (["dyn", "--version"], ["dyn", "info", "arm7"], ["dyn", "robots"],
                    ["dyn", "count", "rnea", "arm7"], ["python", "-c", USE]):  # fmt: skip
        done = subprocess.run(
            [str(programs / command[0]), *command[1:]], cwd=tmp_path, env=empty,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), command
