"""What NVIDIA's assembler says of a kernel: registers, spills, occupancy; without GPU.

`ptxas` comes with the CUDA toolkit, or alone in the package nvidia-cuda-nvcc. Nobody
needs it to run a kernel: the driver has an assembler of its own.
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

REGISTERS = 65536  # of a multiprocessor
WARPS = 64  # that a multiprocessor of sm_80, sm_90 and sm_100 holds
_PARTS = 4  # of a multiprocessor; each has a quarter of the registers
_WARP, _GROUP = 32, 8  # threads of a warp; registers come in groups of 8 by thread


@dataclass(frozen=True)
class Resources:
    """What a kernel takes on a GPU.

    Attributes:
        registers: Of a thread, at most 255.
        spill_stores, spill_loads: Bytes moved where registers do not suffice, as
            written in the code.
        stack: Bytes of local memory of a thread, spilled registers among them.
        code: Bytes of machine code.
        seconds: Processor time of the assembler.
    """

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    code: int
    seconds: float

    def warps(self, block: int) -> int:
        """Return how many warps one multiprocessor holds, in blocks of so many threads.

        Shared memory is not used, and the limit of blocks (32) binds only for blocks
        below 64 threads.
        """
        by_thread = -(-self.registers // _GROUP) * _GROUP
        most = min(WARPS, _PARTS * (REGISTERS // _PARTS // (by_thread * _WARP)))
        warps = -(-block // _WARP)
        return most // warps * warps

    def occupancy(self, block: int) -> float:
        """Return the share of a multiprocessor's warps that can be there at once."""
        return self.warps(block) / WARPS


def find() -> str | None:
    """Return the path of ptxas: on PATH, or of the package in this environment."""
    on_path = shutil.which("ptxas")
    if on_path:
        return on_path
    site = Path(sysconfig.get_paths()["purelib"])
    places = sorted(site.glob("nvidia/*/bin/ptxas"))
    return str(places[-1]) if places else None


def assemble(ptx: str, arch: str, program: str | None = None) -> Resources:
    """Assemble PTX and return what it takes.

    Args:
        ptx: Of one kernel.
        arch: GPU, as sm_90.
        program: Path of ptxas; None to look for it.

    Raises:
        CompileError: There is no ptxas, or it refuses the kernel.
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
    """Return the processor time of the processes that this one started."""
    try:
        import resource
    except ImportError:  # not on this system
        return process_time()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _resources(report: str, code: int, seconds: float) -> Resources:
    """Read the report of ptxas; spills are those of the kernel and its functions."""
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
