"""What a peer is: another library with the same robot in the same states.

A peer names, for each algorithm, a statement of Python that its manual advises, and
where the result then is. What a user must copy into it for each call is part of the
statement. `values.py` compares the results with ours before anything is timed.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bench.cases import STATES, Robot
from dyn_core.errors import UnsupportedError
from dyn_core.spatial.conventions import swap_rows

Rows = list[tuple[Any, ...]]
PLAIN = ("revolute", "continuous", "prismatic")  # joints of one coordinate


@dataclass(frozen=True)
class PeerCall:
    """What is timed.

    Attributes:
        statement: Python, for one state or for a batch.
        states: What the names stand for, one after the other.
        names: Of what a state consists of, separated by commas.
        result: Expression of the values after the statement, separated by commas.
    """

    statement: str
    states: Rows
    names: str
    result: str = ""


class Peer:
    """A library for one robot.

    Attributes:
        name: As it is asked for, and as its columns are called.
        packages: Distributions that it needs; the first gives the version.
        lacks: By algorithm: why there is none. `offers` says what holds for all others.
        because: By algorithm: why values differ, where that is known.
        remarks: By algorithm: what must be known of its figures.
        gravity: The acceleration that it computes with [m/s²].
        space: Names its statements use.
        calls: By algorithm.
        batches: The same for `rows` states.
    """

    name = ""
    packages: tuple[str, ...] = ()
    offers = "not offered"
    because: Mapping[str, str] = {}
    gravity = 9.81

    def __init__(self, robot: Robot, rows: int) -> None:
        self.robot, self.rows = robot, rows
        self.joints = plain_joints(robot)
        self.space: dict[str, Any] = {}
        self.calls: dict[str, PeerCall] = {}
        self.batches: dict[str, PeerCall] = {}
        self.lacks: dict[str, str] = {}
        self.remarks: dict[str, str] = {}
        self.prepare()

    def prepare(self) -> None:
        """Load the robot and write the statements."""
        raise NotImplementedError

    @classmethod
    def version(cls) -> str:
        """Return name and version; raises PackageNotFoundError where one is missing."""
        versions = [f"{name} {metadata.version(name)}" for name in cls.packages]
        return versions[0]

    def position(self, q: np.ndarray) -> np.ndarray:
        """Return the peer's position of ours."""
        raise NotImplementedError

    def velocity_map(self, q: np.ndarray) -> np.ndarray:
        """Return B of v_peer = B v, (nv, nv), orthogonal: then tau = B' tau_peer."""
        raise NotImplementedError

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return b of a_peer = B a + b, (nv,)."""
        return np.zeros(self.robot.model.nv)

    def lack(self, algorithm: str) -> str:
        """Return why an algorithm has no figure; empty where it has one."""
        if algorithm in self.calls:
            return ""
        return self.lacks.get(algorithm, self.offers)

    def rows_of(self, third: str) -> Rows:
        """Return q, v and accelerations ("a") or forces ("tau"), in its coordinates."""
        state, rows = self.robot.state, []
        for k in range(STATES):
            q, v, x = (state[name][k] for name in ("q", "v", third))
            B = self.velocity_map(q)
            other = B @ x + (self.bias(q, v) if third == "a" else 0.0)
            rows.append((self.position(q), B @ v, other))
        return rows

    def values(self, algorithm: str, k: int) -> tuple[np.ndarray, ...]:
        """Return the results of a statement in state k, in the peer's coordinates."""
        call = self.calls[algorithm]
        space = dict(self.space)
        space.update(zip(call.names.split(", "), call.states[k], strict=True))
        exec(call.statement, space)
        results = eval(f"({call.result},)", space)
        return tuple(np.array(x, dtype=float) for x in results)


class BodyVelocities(Peer):
    """A peer whose floating base moves by [linear; angular], in its own axes.

    Attributes:
        order: Row of the peer's velocity for each joint of `joints`.
    """

    order: Sequence[int]

    def velocity_map(self, q: np.ndarray) -> np.ndarray:
        """Return a permutation."""
        return permutation(self.robot, self.order)


def permutation(robot: Robot, order: Sequence[int]) -> np.ndarray:
    """Return B of joints in another order; a floating base is [linear; angular]."""
    B, base = np.zeros((robot.model.nv, robot.model.nv)), 6 * robot.floating
    if robot.floating:
        B[:6, :6] = swap_rows(np.eye(6))
    B[list(order), range(base, robot.model.nv)] = 1.0
    return B


def plain_joints(robot: Robot) -> list[str]:
    """Return the joints behind the base, as our model has them.

    Raises:
        UnsupportedError: A joint is no hinge or slide, or follows another: peers have
            other coordinates then.
    """
    model = robot.model
    moving = [i for i in model.bodies if i > 1 or not robot.floating]
    odd = [model.names[i] for i in moving if model.joint[i].kind not in PLAIN]
    odd += list(model.followers)
    if odd or model.loops:
        names = ", ".join(odd) or "loops"
        raise UnsupportedError(f"other coordinates there for {names}; lock them")
    return [model.names[i] for i in moving]


@contextmanager
def urdf_file(urdf: str) -> Iterator[Path]:
    """Lend a file that holds a URDF."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        path.write_text(urdf, encoding="utf-8")
        yield path


def with_world(robot: Robot) -> str:
    """Return the URDF with a floating joint to a world link, where the root floats."""
    root = ElementTree.fromstring(robot.urdf)
    if robot.floating:
        below = {str(child.get("link")) for child in root.iterfind("joint/child")}
        links = [str(link.get("name")) for link in root.iterfind("link")]
        joint = ElementTree.SubElement(root, "joint", name="floats", type="floating")
        ElementTree.SubElement(joint, "parent", link="the_world")
        base = next(name for name in links if name not in below)
        ElementTree.SubElement(joint, "child", link=base)
        ElementTree.SubElement(root, "link", name="the_world")
    return ElementTree.tostring(root, encoding="unicode")
