"""Resources of a kernel by NVIDIA's assembler: registers, spills, occupancy.

Without GPU.

`ptxas` comes with the CUDA toolkit, or alone in the package nvidia-cuda-nvcc. It is not
needed to run a kernel: the driver has an assembler of its own.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from dyn_core.errors import CompileError

REGISTERS = 65536  # registers of a multiprocessor
WARPS = 64  # maximum warps of a multiprocessor of sm_80, sm_90 and sm_100
_PARTS = 4  # parts of a multiprocessor; each has a quarter of the registers
_WARP, _GROUP = 32, 8  # threads of a warp; registers are allocated in groups of 8


@dataclass(frozen=True)
class Resources:
    """The resources of a kernel on a GPU.

    Attributes:
        registers: Registers of a thread, at most 255.
        spill_stores, spill_loads: Size of spilled registers, counted once for each
            instruction of the code [bytes].
        stack: Local memory of a thread, including spilled registers [bytes].
        code: Size of the file with the machine code [bytes].
        seconds: Processor time of the assembler [s].
    """

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    code: int
    seconds: float

    def warps(self, block: int) -> int:
        """Return the number of resident warps of a multiprocessor; 0 if no block fits.

        Shared memory is not used, and the limit of blocks (32) only binds for blocks
        below 64 threads; it is ignored.

        Args:
            block: Number of threads of a block, above 0.
        """
        by_thread = -(-self.registers // _GROUP) * _GROUP
        most = min(WARPS, _PARTS * (REGISTERS // _PARTS // (by_thread * _WARP)))
        warps = -(-block // _WARP)
        return most // warps * warps

    def occupancy(self, block: int) -> float:
        """Return the ratio of resident warps to the maximum, 0 to 1.

        Args:
            block: Number of threads of a block, above 0.
        """
        return self.warps(block) / WARPS


def find() -> str | None:
    """Return the path of ptxas, from PATH or a package of this environment, or None."""
    on_path = shutil.which("ptxas")
    if on_path:
        return on_path
    site = Path(sysconfig.get_paths()["purelib"])
    places = sorted(site.glob("nvidia/*/bin/ptxas"))
    return str(places[-1]) if places else None


def assemble(ptx: str, arch: str, program: str | None = None) -> Resources:
    """Assemble PTX and return the resources of its kernel.

    Args:
        ptx: Code of one kernel.
        arch: GPU architecture, such as sm_90.
        program: Path of ptxas; None: see `find`.

    Raises:
        CompileError: There is no ptxas, or it rejects the kernel.
        OSError: `program` cannot be run.
        UnicodeEncodeError: `ptx` has a character that is not ASCII.
        ValueError: The report of ptxas names no registers.
    """
    program = program or find()
    if program is None:
        raise CompileError("there is no ptxas here; valid: one on PATH")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, encoding="ascii")
        seconds = _children()
        run = subprocess.run(
            [program, "-v", "-arch", arch, str(source), "-o", str(target)],
            capture_output=True,
            text=True,
        )
        seconds = _children() - seconds
        if run.returncode:
            raise CompileError(f"ptxas refused a kernel: {run.stderr.strip()[-500:]}")
        return _resources(run.stderr, target.stat().st_size, seconds)


def _children() -> float:
    """Return the processor time of finished child processes [s].

    On systems without the module resource it is the time of this process.
    """
    try:
        import resource
    except ImportError:  # not on this system
        return process_time()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _resources(report: str, code: int, seconds: float) -> Resources:
    """Return the Resources in a report of ptxas.

    Spills are summed over all functions; registers and stack are the largest of any.
    Raises ValueError if the report names no registers.

    Args:
        report: Output of ptxas -v on stderr.
        code: Size of the file with the machine code [bytes].
        seconds: Processor time of the assembler [s].
    """
    spills = [
        sum(int(x) for x in re.findall(rf"(\d+) bytes spill {what}", report))
        for what in ("stores", "loads")
    ]
    registers = max(int(x) for x in re.findall(r"Used (\d+) registers", report))
    frames = [int(x) for x in re.findall(r"(\d+) bytes stack frame", report)]
    whole = [int(x) for x in re.findall(r"(\d+) bytes cumulative stack", report)]
    return Resources(
        registers,
        spills[0],
        spills[1],
        max([*whole, *frames], default=0),
        code,
        seconds,
    )
