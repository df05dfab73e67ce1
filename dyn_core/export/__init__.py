"""Programs outside Python: machine code and C source with a header, for any target.

interface.py says what an export offers; folder.py what is written.
"""

from dyn_core.export.folder import Export, export
from dyn_core.export.interface import Interface, PortInterface, interface_of
from dyn_core.export.targets import TARGETS, Target

__all__ = [
    "TARGETS",
    "Export",
    "Interface",
    "PortInterface",
    "Target",
    "export",
    "interface_of",
]
