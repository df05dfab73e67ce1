"""Recorded motions: their files, the dynamics of all rows at once, and their energy."""

from dyn_core.recordings.energy import EnergyLedger, energy_ledger
from dyn_core.recordings.files import read_motion, write_motion
from dyn_core.recordings.motion import MotionRecord
from dyn_core.recordings.recording import Recording
from dyn_core.recordings.rows import forward_dynamics, inverse_dynamics
from dyn_core.recordings.runs import run_record, save_run

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

__all__ = [
    "EnergyLedger",
    "MotionRecord",
    "Recording",
    "energy_ledger",
    "forward_dynamics",
    "inverse_dynamics",
    "read_motion",
    "run_record",
    "save_run",
    "write_motion",
]
