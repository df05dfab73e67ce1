"""A fuzzer of all that reads files: any file is read, or refused in one clear sentence.

PYTHONPATH=tests/support python -m fuzz --n 500 --kind urdf --seed 0
"""

from fuzz.campaign import Campaign
from fuzz.doors import KINDS
from fuzz.files import draw_file
from fuzz.fuzz_file import FuzzFile
from fuzz.minimise import minimised
from fuzz.trial import Failure, try_file

__all__ = [
    "KINDS",
    "Campaign",
    "Failure",
    "FuzzFile",
    "draw_file",
    "minimised",
    "try_file",
]
