"""What all parts share: results beside formulas, printed and drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

G = 9.81  # [m/s²]


class Figure(NamedTuple):
    """A number and its expected value; None if there is no formula."""

    name: str
    value: float
    expected: float | None = None


class Part(NamedTuple):
    """Results of a part, and a function that draws them with matplotlib."""

    figures: list[Figure]
    draw: Callable[[Any], None]


def label(ax: Any, name: str, below: str | None = "t [s]") -> None:
    """Set title and labels of axes."""
    ax.set_title(name, fontsize=10)
    if below is not None:
        ax.set_xlabel(below)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(fontsize=8)


def plotter() -> Any:
    """Return pyplot, or None if matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        print("no plots: matplotlib is not installed; pip install '.[plot]'")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def print_figures(figures: Iterable[Figure]) -> None:
    """Print figures."""
    for name, value, expected in figures:
        line = f"  {name:52}{value:14.8g}"
        if expected is not None:
            line += f"{expected:14.8g}   off by {abs(value - expected):.1e}"
        print(line)


def show(
    part: Callable[[bool], Part], folder: Any = ".", short: bool = False
) -> list[Figure]:
    """Run, print and draw a part; return its figures."""
    pyplot, started, name = plotter(), perf_counter(), part.__name__
    print(f"{name}: {(part.__doc__ or '').splitlines()[0]}")
    result = part(short)
    print_figures(result.figures)
    seconds = f"  {perf_counter() - started:.1f} s"
    if pyplot is not None:
        figure = pyplot.figure(figsize=(10, 4.5), layout="constrained")
        result.draw(figure)
        path = Path(folder) / f"contacts_{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=100)
        pyplot.close(figure)
        seconds += f", plot: {path}"
    print(seconds)
    return result.figures
