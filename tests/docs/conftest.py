"""Programs of the documentation, run in processes of their own: block_processes.py."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))  # for pages


@pytest.fixture(scope="session")
def alone():
    """Return a function that runs a program in a process of its own.

    Its processes are forks of one that has imported the library: they cost no import.
    """
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    script = FOLDER / "block_processes.py"
    environment = {**os.environ, "MPLBACKEND": "agg"}
    with subprocess.Popen([sys.executable, str(script)], env=environment, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:  # fmt: skip

        def run(blocks, page, folder):
            program = {"blocks": blocks, "page": page, "folder": str(folder)}
            server.stdin.write(json.dumps(program) + "\n")
            server.stdin.flush()
            return json.loads(server.stdout.readline())

        yield run
        server.stdin.close()
