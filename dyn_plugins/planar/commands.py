"""The command `dyn bench-planar`."""

from typing import Any

from dyn_core.authoring import hookimpl


@hookimpl
def dyn_commands(subparsers: Any) -> None:
    """Add the command; what it measures with is imported when it runs."""
    parser = subparsers.add_parser(
        "bench-planar", help="measure steps of planar systems beside their peers"
    )
    parser.add_argument("--markdown", action="store_true", help="tables for a document")
    parser.set_defaults(run=_bench)


def _bench(arguments: Any) -> int:
    """Measure and print."""
    from dyn_core.bench.measure import machine, require_native
    from dyn_core.bench.tables import markdown, plain, print_tables, progress
    from dyn_plugins.planar._bench import tables

    require_native()
    print(machine())
    show = markdown if arguments.markdown else plain
    print_tables(tables.LEGEND, tables.tables(progress), show)
    return 0
