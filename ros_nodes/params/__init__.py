"""Parameter files of the nodes, and the loopback profile of the middleware."""

from pathlib import Path

FOLDER = Path(__file__).parent
