"""The targets of machine code, one row each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dyn_core.engines.llvm import host_machine
from dyn_core.errors import UnsupportedError, unknown_name

_LINUX = "unknown-linux-gnu"


@dataclass(frozen=True)
class Target:
    """A target of machine code.

    Attributes:
        name: Name, the argument `target` of `export`.
        meaning: A short noun phrase.
        triple, cpu, features: In LLVM's notation.
        fused: Whether multiply-add is an instruction.
        floors: Whether rounding down is an instruction, for all its dtypes.
        pack: Number of sines and cosines computed at once for a single state.
        vector: Lanes of a float64 vector; 1: no vectors.
        abi: Name of the calling convention; empty: the triple decides it.
        relocation: "pic", or "static" for targets without dynamic loading.
        dtypes: Floating-point types with hardware support.
        link: Command that links a program main.c with the object; the text {object}
            stands for the object's file.
    """

    name: str
    meaning: str
    triple: str
    cpu: str
    features: str = ""
    fused: bool = True
    floors: bool = True
    pack: int = 8
    vector: int = 1
    abi: str = ""
    relocation: str = "pic"
    dtypes: tuple[str, ...] = ("float64", "float32")
    link: str = "cc main.c {object}"

    @property
    def is_wasm(self) -> bool:
        """Whether the target is WebAssembly."""
        return self.triple.startswith("wasm")

    @property
    def is_x86(self) -> bool:
        """Whether it is an x86 processor; True if the triple is empty."""
        return not self.triple or self.triple.startswith("x86")

    @property
    def is_arm(self) -> bool:
        """Whether it is a 32-bit ARM processor."""
        return self.triple.startswith(("thumb", "arm-", "armv"))


_EABI = (
    "arm-none-eabi-gcc -mcpu={} -mthumb -mfloat-abi=hard -mfpu={} --specs=nosys.specs"
    " main.c {{object}}"
)

TARGETS = {
    target.name: target
    for target in (
        Target("host", "this machine, all that its processor can do", "", ""),
        Target(
            "x86-64-v4", "x86 with AVX-512 (servers from 2017 on)",
            f"x86_64-{_LINUX}", "x86-64-v4", vector=8,
        ),
        Target(
            "x86-64-v3", "x86 with AVX2 and FMA (most from 2013 on)",
            f"x86_64-{_LINUX}", "x86-64-v3", vector=4,
        ),
        Target(
            "x86-64-v2", "x86 with SSE4.2, without fused multiply-add",
            f"x86_64-{_LINUX}", "x86-64-v2", fused=False, pack=2, vector=2,
        ),
        Target(
            "x86-64", "any 64-bit x86, without fused multiply-add",
            f"x86_64-{_LINUX}", "x86-64", fused=False, floors=False, pack=2, vector=2,
        ),
        Target(
            "aarch64", "64-bit ARM with Linux",
            f"aarch64-{_LINUX}", "generic", pack=2, vector=2,
            link="aarch64-linux-gnu-gcc main.c {object}",
        ),
        Target(
            "cortex-m7", "ARM Cortex-M7 with FPv5-D16, no operating system",
            "thumbv7em-none-eabihf", "cortex-m7", "+fp64", pack=1,
            relocation="static", link=_EABI.format("cortex-m7", "fpv5-d16"),
        ),
        Target(
            "cortex-m4f", "ARM Cortex-M4 with FPv4-SP, float32 only",
            "thumbv7em-none-eabihf", "cortex-m4", pack=1,
            floors=False, relocation="static", dtypes=("float32",),
            link=_EABI.format("cortex-m4", "fpv4-sp-d16"),
        ),
        Target(
            "riscv64", "64-bit RISC-V (rv64gc) with Linux",
            f"riscv64-{_LINUX}", "generic-rv64", "+m,+a,+f,+d,+c", pack=1, abi="lp64d",
            link="riscv64-linux-gnu-gcc main.c {object}",
        ),
        Target(
            "wasm32", "WebAssembly: browsers, wasmtime",
            "wasm32-unknown-unknown", "generic", fused=False, pack=1,
            relocation="static", link="wasm-ld main.o {object}",
        ),
    )
}  # fmt: skip


def target_of(name: str) -> Target:
    """Return the Target of a name; "host", of this machine, needs llvmlite."""
    if not isinstance(name, str) or name not in TARGETS:
        raise UnsupportedError(unknown_name("target", name, TARGETS))
    if name != "host":
        return TARGETS[name]
    import llvmlite.binding as llvm

    machine = host_machine.machine()
    return replace(
        TARGETS[name],
        triple=llvm.get_process_triple(),
        cpu=machine.cpu,
        features=machine.features,
        fused=machine.fused,
        pack=machine.pack,
        vector=machine.width,
    )
