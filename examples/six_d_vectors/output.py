"""What the files of this walk print and draw with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


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
