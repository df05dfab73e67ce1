"""Exports compiled once, and how they are run: see emulate.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
