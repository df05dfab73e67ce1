"""The commands `dyn bench-planar` and `dyn bench-envs`."""

from functools import partial
from typing import Any

from dyn_core.authoring import hookimpl


@hookimpl
def dyn_commands(subparsers: Any) -> None:
    """Add the commands; what they measure with is imported when they run."""
    for name, what in (
        ("planar", "measure steps of planar systems beside their peers"),
        ("envs", "measure environments of robots beside gymnasium's of MuJoCo"),
    ):
        parser = subparsers.add_parser(f"bench-{name}", help=what)
        parser.add_argument(
            "--markdown", action="store_true", help="tables for a document"
        )
        parser.set_defaults(run=partial(_bench, name))


def _bench(name: str, arguments: Any) -> int:
    """Measure and print."""
    from dyn_core.bench.measure import machine, require_native
    from dyn_core.bench.tables import markdown, plain, print_tables, progress
    from dyn_plugins.planar._bench import environments, tables

    require_native()
    measured: Any = {"planar": tables, "envs": environments}[name]
    print(machine())
    show = markdown if arguments.markdown else plain
    print_tables(measured.LEGEND, measured.tables(progress), show)
    return 0
