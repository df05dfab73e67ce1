"""Programs outside Python: machine code and C source with a header, for any target.

interface.py defines the interface of an export; folder.py writes its files.
"""

from dyn_core.export.folder import Export, export
from dyn_core.export.interface import Interface, PortInterface, interface_of
from dyn_core.export.targets import TARGETS, Target

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

__all__ = [
    "TARGETS",
    "Export",
    "Interface",
    "PortInterface",
    "Target",
    "export",
    "interface_of",
]
