"""What the files of this walk share: random quantities, clouds of particles, output."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.authoring import Force, Motion, RigidInertia, Transform
from dyn_core.spatial.guide import bodies


def array(x: Any) -> np.ndarray:
    """Return the numbers of a motion, force, vector or matrix."""
    return np.array(list(x), float) if hasattr(x, "ang") else np.asarray(x, float)


def apart(x: Any, y: Any) -> float:
    """Return the largest difference of two quantities."""
    return float(np.abs(array(x) - array(y)).max())


def random_motion(rng: np.random.Generator) -> Motion:
    """Return six random numbers as a motion."""
    return Motion.of(rng.normal(size=6).tolist())


def random_force(rng: np.random.Generator) -> Force:
    """Return six random numbers as a force."""
    return Force.of(rng.normal(size=6).tolist())


def transform_of(T: np.ndarray) -> Transform:
    """Return the transform into the frame whose pose is T, 4x4."""
    return Transform.of_pose(T[:3, :3].tolist(), T[:3, 3].tolist())


def velocity_at(v: Motion, x: np.ndarray) -> np.ndarray:
    """Return the velocity of the particles of a body at points x, (..., 3) [m/s].

    It needs no reference point: v fixes the whole field, whatever the origin.

    Source: GUIDE, section 4; SV-2.3, SV-11.2.
    """
    return array(v.lin) + np.cross(array(v.ang), x)


def moment_at(f: Force, x: np.ndarray) -> np.ndarray:
    """Return the moment of a force about points x, (..., 3) [N·m].

    Source: GUIDE, section 4; SV-2.3.
    """
    return array(f.ang) - np.cross(x, array(f.lin))


@dataclass(frozen=True)
class Cloud:
    """Particles that form one rigid body.

    Attributes:
        m: Masses, n [kg].
        x: Places, n x 3 [m].
    """

    m: np.ndarray
    x: np.ndarray

    def inertia(self) -> RigidInertia:
        """Return the spatial inertia by the sums over particles."""
        c = self.m @ self.x / self.m.sum()
        d = self.x - c
        Ic = np.einsum("k,k,ij->ij", self.m, (d * d).sum(1), np.eye(3))
        Ic = Ic - np.einsum("k,ki,kj->ij", self.m, d, d)
        return bodies.rigid_body(self.m.sum(), c, Ic)

    def momentum(self, v: Motion) -> np.ndarray:
        """Return [sum x x p; sum p] of the particles, p = m (velocity at x)."""
        p = self.m[:, None] * velocity_at(v, self.x)
        return np.concatenate([np.cross(self.x, p).sum(0), p.sum(0)])


def random_cloud(rng: np.random.Generator, n: int = 8) -> Cloud:
    """Return n particles within about a metre."""
    return Cloud(rng.uniform(0.1, 1.0, n), rng.normal(size=(n, 3)))


def point_forces(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, Force]:
    """Return five forces (5, 3), where they act (5, 3), and their sum as one Force."""
    x, F = rng.normal(size=(2, 5, 3))
    total = sum(
        (Force(np.cross(a, b).tolist(), b.tolist()) for a, b in zip(x, F, strict=True)),
        Force.zero(),
    )
    return F, x, total


def empty_figure(size: tuple[float, float] = (7.0, 5.0)) -> Any:
    """An empty figure; imported here, so that the rest runs without matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def tell(title: str, residuals: dict[str, float] | None = None) -> None:
    """Print a title, and how far both sides of each claim are apart."""
    print(title)
    for name, off in (residuals or {}).items():
        print(f"  {name:42s} {off:.1e}")


def picture_folder(name: str = "six_d_vectors") -> Path:
    """Return the folder for pictures: the first argument of the script, or this."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
