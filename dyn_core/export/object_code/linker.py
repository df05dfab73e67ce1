"""The C compiler of this machine as a linker of shared libraries."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence

from dyn_core.errors import CompileError


def c_compiler() -> list[str]:
    """Return the words of $CC, or ["cc"] without any; `link` checks that it exists."""
    return shlex.split(os.environ.get("CC", "")) or ["cc"]


def link(command: Sequence[str], name: str, flags: Sequence[str], valid: str) -> None:
    """Link a shared library: run a compiler with -shared.

    Args:
        command: Command of the compiler, with its first arguments.
        name: Name of the library, for errors.
        flags: Further arguments, including the output file.
        valid: Advice in the error message if there is no compiler.

    Raises:
        CompileError: There is no compiler, or it fails.
    """
    if shutil.which(command[0]) is None:
        raise CompileError(
            f"{name} needs a C compiler to be linked, and there is no '{command[0]}';"
            f" valid: {valid}"
        )
    done = subprocess.run(
        [*command, "-shared", *flags], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CompileError(f"{command[0]} cannot link {name}: {done.stderr}")
