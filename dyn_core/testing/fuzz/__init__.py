"""A fuzzer of all that reads files: any file is read, or refused in one clear sentence.

python -m dyn_core.testing.fuzz --n 500 --kind urdf --seed 0
"""

from dyn_core.testing.fuzz.campaign import Campaign
from dyn_core.testing.fuzz.doors import KINDS
from dyn_core.testing.fuzz.files import draw_file
from dyn_core.testing.fuzz.fuzz_file import FuzzFile
from dyn_core.testing.fuzz.minimise import minimised
from dyn_core.testing.fuzz.trial import Failure, try_file

__all__ = [
    "KINDS",
    "Campaign",
    "Failure",
    "FuzzFile",
    "draw_file",
    "minimised",
    "try_file",
]
