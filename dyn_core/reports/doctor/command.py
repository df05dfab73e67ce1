"""The command `dyn doctor`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dyn_core.model.sources.arguments import add_robot, named_values
from dyn_core.plots.pages import check_page, write_page
from dyn_core.reports.doctor.examine import as_json, doctor
from dyn_core.reports.doctor.report import page

STATUS = "Exit status: 0 without errors, 1 with errors, 2 for wrong usage."


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn doctor` to `parser`, and set its epilog."""
    parser.epilog = STATUS
    add_robot(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page, too")
    parser.add_argument(
        "--samples", type=int, default=200,
        help="positions that are looked at (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=0, help="of the positions (default: %(default)s)"
    )
    parser.add_argument(
        "--no-meshes", action="store_true", help="do not read files of meshes"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the report, as JSON with --json, and write it as a page with --html.

    The name of the page is printed unless with --json.

    With errors, their number is also printed on standard error.

    Args:
        arguments: Options of the command line.

    Returns:
        1 if there are errors, else 0.

    Raises:
        ModelError: There is no such robot.
        SettingError: An option is not valid.
        SettingError, OSError: The page cannot be written.
    """
    if arguments.html is not None:
        check_page(str(arguments.html), "html")
    report = doctor(
        arguments.robot,
        samples=arguments.samples,
        seed=arguments.seed,
        meshes=not arguments.no_meshes,
        root_joint=arguments.root_joint,
        extras=arguments.extras,
        package_paths=arguments.package_path,
        xacro_arguments=named_values(arguments.xacro_argument, "--xacro-argument")
        or None,
    )
    if arguments.html is not None:
        write_page(arguments.html, page(report))
    print(as_json(report) if arguments.json else report)
    if arguments.html is not None and not arguments.json:
        print(f"page: {arguments.html}")
    if report.errors:
        print(f"dyn doctor: {report.summary}", file=sys.stderr)
    return 1 if report.errors else 0
