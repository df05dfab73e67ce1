"""What loading a robot costs: CPU time and memory by the number of links."""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from bench.cases import Robot
from bench.printed_tables import Progress, Table
from dyn_core.errors import ModelWarning
from dyn_core.model import Model
from dyn_core.model.checks.findings import Findings
from dyn_core.model.sources.loading import load
from dyn_core.model.urdf import parsed
from dyn_core.model.urdf_xml.cleaning import clean_robot
from dyn_core.model.urdf_xml.xml_text import parse_xml

SIZES = (200, 1000, 5000)
REPEATS = 3
TRACED = 1000  # links up to which memory is measured, which takes long
LEGEND = f"""\
ms: CPU time of dyn.load from the text of a URDF without shapes, the least of {REPEATS};
parser: urdf-parser-py's part of it; KiB/link: peak memory of Python. Chains and trees
of hinges, three on each link of a tree: of links that all differ, and of equal ones."""
_MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
HEAD = ["robot", "links", "ms", "us/link", "parser ms", "KiB/link"]


def tables(robots: Sequence[Robot], progress: Progress) -> Iterator[tuple[str, Table]]:
    """Return tables of robots, and of chains and trees that grow."""
    rows = []
    for robot in robots:
        progress(robot.name)
        rows.append(_row(robot.name, robot.urdf))
    yield "robots", [HEAD, *rows]
    rows = []
    for name, children, equal in (
        ("chain", 1, False),
        ("chain of equal links", 1, True),
        ("tree", 3, False),
    ):
        for n in SIZES:
            progress(f"{name}, {n} links")
            rows.append(_row(name, grown(n, children, equal)))
    yield "growth", [HEAD, *rows]


def grown(n: int, children: int = 1, equal: bool = False) -> str:
    """Return the URDF of n links on hinges.

    Args:
        n: How many links.
        children: Joints on each link.
        equal: Whether all links and joints are the same but for their names.
    """
    rng = np.random.default_rng(n)
    numbers = rng.uniform(-1.0, 1.0, (n, 13))
    numbers = np.repeat(numbers[:1], n, axis=0) if equal else numbers
    parts = ['<robot name="grown"><link name="link0"/>']
    for k in range(1, n):
        row = [f"{x:.6f}" for x in numbers[k]]
        moments = [f"{0.02 + 0.002 * x:.6f}" for x in numbers[k, 10:]] + ["0"] * 3
        inertia = " ".join(
            f'{name}="{x}"' for name, x in zip(_MOMENTS, moments, strict=True)
        )
        parts.append(
            f'<link name="link{k}"><inertial><origin xyz="{" ".join(row[:3])}"/>'
            f'<mass value="{1.5 + numbers[k, 9]:.6f}"/><inertia {inertia}/></inertial>'
            f'</link><joint name="joint{k}" type="revolute">'
            f'<parent link="link{(k - 1) // children}"/><child link="link{k}"/>'
            f'<origin xyz="{" ".join(row[3:6])}" rpy="{" ".join(row[6:9])}"/>'
            '<axis xyz="0 0 1"/><limit lower="-2" upper="2" effort="50" velocity="3"/>'
            '<dynamics damping="0.1" friction="0"/></joint>'
        )
    return "".join([*parts, "</robot>"])


def _row(name: str, text: str) -> list[str]:
    """Measure loading of a text."""
    seconds, parser = [], []
    for _ in range(REPEATS):
        start = time.process_time()
        model = _load(text)
        seconds.append(time.process_time() - start)
        clean = clean_robot(parse_xml(text), Findings())
        start = time.process_time()
        parsed(clean)
        parser.append(time.process_time() - start)
    links, least = len(model.frames), min(seconds)
    memory = f"{_peak(text) / links / 1024:.1f}" if links <= TRACED else ""
    return [
        name, f"{links}", f"{least * 1e3:.1f}", f"{least / links * 1e6:.0f}",
        f"{min(parser) * 1e3:.1f}", memory,
    ]  # fmt: skip


def _load(text: str) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load(text)


def _peak(text: str) -> int:
    """Return the largest memory of Python while a text is loaded [B]."""
    tracemalloc.start()
    try:
        _load(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
