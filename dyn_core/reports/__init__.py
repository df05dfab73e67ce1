"""Reports of runs as one HTML file, and the pictures in them."""

from dyn_core.reports.comparison import Difference, differences
from dyn_core.reports.screenshot import screenshot
from dyn_core.reports.write import (
    report_page,
    write_identification_report,
    write_report,
)

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

__all__ = [
    "Difference",
    "differences",
    "report_page",
    "screenshot",
    "write_identification_report",
    "write_report",
]
