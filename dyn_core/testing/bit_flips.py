"""Bit flips in the machine code of a control law: does a wrong effort pass?

    python -m dyn_core.testing.bit_flips --n 1000 --seed 1

Each flip runs in its own process, forked from one with a controller that is ready. The
child flips one bit of the law's code or constants, runs the controller on its states
and sends every effort that passes to the parent before the next state, so that a crash
loses none. The parent compares them with the efforts of the unchanged law.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import mmap
import os
import platform
import resource
import select
import signal
import struct
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import thread_time
from typing import Any

import numpy as np

from dyn_core import robots
from dyn_core.control import Controller, Rules, ShadowSettings
from dyn_core.engines.llvm import compiler, host_machine
from dyn_core.errors import UnsupportedError
from dyn_core.model import Model, load_urdf


@dataclass(frozen=True)
class Span:
    """Machine code, or its constants, in memory: name, address and size in bytes."""

    name: str
    address: int
    size: int


def missing() -> str:
    """Return why bits cannot be flipped here; empty if they can."""
    here = sys.platform, platform.machine()
    if here != ("linux", "x86_64"):
        return f"machine code is found in memory on linux x86_64 alone, not on {here}"
    return host_machine.missing()


def code_spans(program: Any) -> tuple[Span, ...]:
    """Return memory of the code (first) and constants of a Program's scalar kernel."""
    entry = program.kernels()[0].addresses["scalar"]
    # Compile to an ELF object again: its relocations locate the constants.
    code = compiler.compile_ir(program.kernel_ir("scalar").ir)
    parts = _sections(code)
    symbols = _symbols(code, parts)
    text, start = next((i, x) for name, i, x in symbols if name == "scalar")
    base = entry - start
    there, addresses = bytearray(parts[text].data(code)), {text: base}
    now = ctypes.string_at(base, len(there))
    for offset, symbol, addend in _references(code, parts, text):
        # The relocated value is S + A - P: symbol address, addend, address of this
        # field.
        (distance,) = struct.unpack_from("<i", now, offset)
        there[offset : offset + 4] = now[offset : offset + 4]
        _, part, value = symbols[symbol]
        if part:  # else a function of the C library
            addresses[part] = base + offset + distance - addend - value
    spans = [Span(parts[k].name, x, parts[k].size) for k, x in addresses.items()]
    sound = [ctypes.string_at(span.address, span.size) for span in spans]
    if sound != [bytes(there), *(parts[k].data(code) for k in [*addresses][1:])]:
        raise UnsupportedError("the code in memory is not that of the kernel")
    return tuple(spans)


def address_of(spans: Sequence[Span], byte: int) -> int:
    """Return the address of a byte, counted from 0 through all spans."""
    for span in spans:
        if byte < span.size:
            return span.address + byte
        byte -= span.size
    raise IndexError(byte)


def flip(address: int, bit: int) -> None:
    """Flip a bit (0..7) of a byte of code; its page stays writable and executable."""
    page = address & -mmap.PAGESIZE
    every = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    if protect(page, mmap.PAGESIZE, every):
        raise OSError(ctypes.get_errno(), "code cannot be made writable")
    ctypes.c_uint8.from_address(address).value ^= 1 << bit


@dataclass(frozen=True)
class _Section:
    """A section of an ELF object, with location and size of its bytes in the file.

    `kind`, `link` and `target` are sh_type, sh_link and sh_info.
    """

    name: str
    kind: int
    offset: int
    size: int
    link: int
    target: int

    def data(self, code: bytes) -> bytes:
        """Return the section's bytes; `code` has the bytes of the whole ELF object."""
        return code[self.offset : self.offset + self.size]


def _sections(code: bytes) -> list[_Section]:
    """Return the sections by index of a 64-bit little-endian ELF object, `code`."""
    (table,) = struct.unpack_from("<Q", code, 0x28)
    entry, count, names = struct.unpack_from("<HHH", code, 0x3A)
    heads = [
        struct.unpack_from("<IIQQQQII", code, table + k * entry) for k in range(count)
    ]
    start = heads[names][4]
    return [
        _Section(_string(code, start + name), kind, offset, size, link, target)
        for name, kind, _, _, offset, size, link, target, *_ in heads
    ]


def _symbols(code: bytes, parts: Sequence[_Section]) -> list[tuple[str, int, int]]:
    """Return name, section index (0: undefined) and offset in it of each symbol."""
    (table,) = (part for part in parts if part.kind == 2)  # SHT_SYMTAB
    rows = struct.iter_unpack("<IBBHQQ", table.data(code))
    names = parts[table.link].offset
    return [(_string(code, names + row[0]), row[3], row[4]) for row in rows]


def _references(
    code: bytes, parts: Sequence[_Section], text: int
) -> list[tuple[int, int, int]]:
    """Return relocations of section `text`: offset in it, symbol index and addend."""
    rows = [
        row
        for part in parts
        if part.kind == 4 and part.target == text  # SHT_RELA
        for row in struct.iter_unpack("<QQq", part.data(code))
    ]
    return [(place, info >> 32, addend) for place, info, addend in rows]


def _string(code: bytes, start: int) -> str:
    """Return the name from byte `start` of `code` up to the next zero byte."""
    return code[start : code.index(b"\0", start)].decode()


HARMLESS, SMALL, SHADOW = "no difference", "within the tolerance", "seen by the shadow"
NOT_FINITE, OTHER, CRASHED = "not finite", "stopped otherwise", "crashed"
HUNG, WRONG = "hung", "wrong effort passed"
OUTCOMES = (HARMLESS, SMALL, SHADOW, NOT_FINITE, OTHER, CRASHED, HUNG, WRONG)
LONGEST = 2.0  # maximum processor time of a process [s]
PATIENCE = 60.0  # maximum wait for the next output of a process [s]
PERIOD = 0.01  # of the controller [s]
ROUNDING = 1e-3  # relative excess of the tolerance allowed for the shadow's rounding


@dataclass
class FlipReport:
    """Results of bit flips.

    `outcomes` counts flips by OUTCOMES. `wrong` has (byte, bit, largest error [N·m |
    N]) of flips whose wrong effort passed, bytes counted through all `spans`. `cycle`
    is the processor time of a cycle with the shadow and without it [s].
    """

    outcomes: Counter = field(default_factory=Counter)
    wrong: list[tuple[int, int, float]] = field(default_factory=list)
    spans: tuple[Span, ...] = ()
    cycle: tuple[float, float] = (0.0, 0.0)

    @property
    def cost(self) -> float:
        """Processor time of the shadow in a cycle [s]."""
        return self.cycle[0] - self.cycle[1]

    def __str__(self) -> str:
        size = ", ".join(f"{span.size} bytes of {span.name}" for span in self.spans)
        lines = [f"{self.outcomes.total()} bit flips in {size}"]
        lines += [f"{self.outcomes[name]:6d} {name}" for name in OUTCOMES]
        lines += [
            f"byte {byte}, bit {bit}: wrong by {error:.3g}"
            for byte, bit, error in self.wrong
        ]
        on, off = (1e6 * seconds for seconds in self.cycle)
        lines.append(
            f"a cycle takes {on:.1f} us with the shadow, {off:.1f} us without it:"
            f" the shadow costs {on - off:.1f} us"
        )
        return "\n".join(lines)


def flip_bits(
    controller: Controller,
    states: Sequence[tuple[np.ndarray, np.ndarray]],
    n: int,
    seed: int,
) -> FlipReport:
    """Run `n` bit flips, each in its own process, and return their outcomes.

    Flips are drawn from all bits of the code and its constants. The controller has a
    shadow, a law with a native Program, on_violation zero and last_good_cycles 0; it is
    run in this process first, without a flip, and then begins anew. `states` are
    positions and velocities, one pair for each cycle.
    """
    reason = missing()
    if reason:
        raise UnsupportedError(reason)
    if controller.shadow is None:
        raise UnsupportedError("the controller has no shadow; valid: one with shadow=")
    right = efforts(controller, states)
    report = FlipReport(cycle=_measured(controller, states))
    report.spans = spans = code_spans(controller.law)
    sizes = [span.size for span in spans]
    rng = np.random.default_rng(seed)
    allowed = controller.shadow.absolute
    allowed += controller.shadow.relative * np.abs(right).max(axis=1)
    controller.reset_stop()
    controller.begin()
    for _ in range(n):
        byte, bit = int(rng.integers(sum(sizes))), int(rng.integers(8))
        passed, causes, end = _run(controller, states, address_of(spans, byte), bit)
        outcome, error = outcome_of(right, passed, causes, end, allowed)
        report.outcomes[outcome] += 1
        if outcome == WRONG:
            report.wrong.append((byte, bit, error))
    return report


def outcome_of(
    right: np.ndarray,
    passed: np.ndarray,
    causes: Sequence[str],
    end: str,
    allowed: np.ndarray,
) -> tuple[str, float]:
    """Return the outcome of a flip, one of OUTCOMES, and the largest effort error.

    It is WRONG if an error exceeds `allowed` (cycles,) by more than 0.1 % or is NaN,
    else `end` (CRASHED, HUNG or empty), else the first of `causes`, else SMALL or
    HARMLESS. The error is 0 unless WRONG or SMALL. `causes` has, with each of the
    `passed` efforts, the cause of the stop in force or ""; in a stop the right efforts
    are zero, and no error is allowed.
    """
    stopped = np.array([bool(cause) for cause in causes], bool)
    right, allowed = right[: len(passed)].copy(), allowed[: len(passed)]
    right[stopped] = 0.0
    error = np.abs(passed - right).max(axis=1, initial=0.0)
    if not (error <= np.where(stopped, 0.0, allowed * (1 + ROUNDING))).all():
        return WRONG, float(error.max())
    if end:
        return end, 0.0
    if stopped.any():
        return causes[int(np.argmax(stopped))], 0.0
    return (SMALL if error.any() else HARMLESS), float(error.max())


def efforts(
    controller: Controller, states: Sequence[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """Begin the controller anew, run all states and return the efforts, (cycles, nv).

    Efforts are in N·m or N. `states` are pairs of positions and velocities, (nv,) each,
    10 ms apart. Raises UnsupportedError if the controller is stopped at the end.
    """
    controller.begin()
    rows = [controller.update(PERIOD * k, q, qd) for k, (q, qd) in enumerate(states)]
    if controller.stopped is not None:
        reason = controller.stopped.reason
        raise UnsupportedError(f"the sound law is stopped: {reason}")
    return np.array(rows)


def _measured(
    controller: Controller, states: Sequence[tuple[np.ndarray, np.ndarray]]
) -> tuple[float, float]:
    """Return the processor time of a controller's cycle with and without shadow [s].

    Each is the mean cycle of the best of five runs through all states.
    """
    shadow, times = controller.safety.shadow, []
    for part in (shadow, None):
        controller.safety.shadow = part
        rounds = []
        for _ in range(5):
            start = thread_time()
            efforts(controller, states)
            rounds.append((thread_time() - start) / len(states))
        times.append(min(rounds))
    controller.safety.shadow = shadow
    return times[0], times[1]


def _run(
    controller: Controller,
    states: Sequence[tuple[np.ndarray, np.ndarray]],
    address: int,
    bit: int,
) -> tuple[np.ndarray, list[str], str]:
    """Flip one bit in a child process, and wait for its end.

    Return the efforts received, (k, nv); k causes of the stop with each, "" without a
    stop; and CRASHED, HUNG or "". A child that sends nothing for PATIENCE is killed.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():  # the child uses none of the parent's threads
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _work(controller, states, address, bit, writing)
    os.close(writing)
    data, hung = bytearray(), False
    while select.select([reading], [], [], PATIENCE)[0]:
        block = os.read(reading, 1 << 16)
        if not block:
            break
        data += block
    else:
        hung = True
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    row = 8 * (controller.model.nv + 1)
    table = np.frombuffer(bytes(data[: len(data) // row * row])).reshape(-1, row // 8)
    names = ("", SHADOW, NOT_FINITE, OTHER)
    causes = [names[int(x)] if x in range(4) else OTHER for x in table[:, 0]]
    hung |= code in (-signal.SIGPROF, -signal.SIGXCPU)
    ended = code == 0 and len(table) == len(states)
    return table[:, 1:], causes, "" if ended else HUNG if hung else CRASHED


def _work(
    controller: Controller,
    states: Sequence[tuple[np.ndarray, np.ndarray]],
    address: int,
    bit: int,
    out: int,
) -> None:
    """Flip a bit, run the controller on all states, and end this process; never return.

    Each effort is written to `out` before the next state, preceded by the number of
    `_cause`, as 1 + nv float64.
    """
    code = 1
    try:
        faulthandler.disable()
        for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
            resource.setrlimit(limit, (0, 0))  # wild code writes no files
        for number in (signal.SIGPROF, signal.SIGSEGV, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, LONGEST)
        flip(address, bit)
        for k, (q, qd) in enumerate(states):
            tau = controller.update(PERIOD * k, q, qd)
            assert tau is not None
            row = struct.pack(f"<{1 + len(tau)}d", _cause(controller), *tau)
            os.write(out, row)
        code = 0
    finally:
        os._exit(code)


def _cause(controller: Controller) -> int:
    """Return the cause of a stop: 0 none, 1 the shadow, 2 not finite, 3 another."""
    stop = controller.stopped
    if stop is None:
        return 0
    if "by the shadow" in stop.reason or "the shadow '" in stop.reason:
        return 1
    return 2 if "not finite" in stop.reason else 3


def seeded_states(
    model: Model, cycles: int, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return q and qd every PERIOD of a smooth random motion within the joints' limits.

    Limits are clipped to +-2 rad or m. All joints must have one coordinate.
    """
    rng = np.random.default_rng(seed)
    low, high = np.clip(model.lower, -2.0, 2.0), np.clip(model.upper, -2.0, 2.0)
    rate, phase = rng.uniform(2.0, 8.0, (2, model.nv)) * [[1.0], [0.7]]
    times = PERIOD * np.arange(cycles)[:, None]
    size = 0.4 * (high - low)
    q = (low + high) / 2 + size * np.sin(rate * times + phase)
    return list(zip(q, size * rate * np.cos(rate * times + phase), strict=True))


def arm_with_shadow(
    robot: str = "arm7", shadow: str = "rnea_spatial", engine: str = "graph"
) -> Controller:
    """Return a controller of a shipped robot: native computed torque, with a shadow.

    Bounds of states and efforts are off or wide, so that only the shadow is tested.
    """
    model = load_urdf(robots.path(robot))
    return Controller(
        model,
        engine="native",
        effort_limits=dict.fromkeys(model.joint_names, 1e4),
        rules=Rules(
            good_samples=1, last_good_cycles=0, max_jump=10.0, on_violation="zero"
        ),
        bounds=None,
        state_bounds=None,
        effort_slew=1e12,
        shadow=ShadowSettings(shadow, engine=engine),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, print the report; return 1 if a wrong effort passed, else 0.

    `arguments` are the words of the command line; None: sys.argv.

    Raises:
        ModelError: There is no shipped robot of this name.
        SolverNotFound, SignatureError: The shadow is no solver of inverse dynamics.
        SettingError: The shadow is the law's own solver and engine.
        UnsupportedError: There is no such engine, or no machine code; the code cannot
            be found in memory; or the controller stops without a flip.
        SystemExit: The words are not valid, or ask for help.
    """
    parser = argparse.ArgumentParser(description="Bit flips in a control law's kernel.")
    parser.add_argument("--n", type=int, default=1000, help="number of flips")
    parser.add_argument("--seed", type=int, default=1, help="of flips and states")
    parser.add_argument("--robot", default="arm7", help="shipped robot")
    parser.add_argument("--shadow", default="rnea_spatial", help="its solver")
    parser.add_argument("--engine", default="graph", help="engine of the shadow")
    parser.add_argument("--cycles", type=int, default=20, help="states of each flip")
    options = parser.parse_args(arguments)
    controller = arm_with_shadow(options.robot, options.shadow, options.engine)
    states = seeded_states(controller.model, options.cycles, options.seed)
    report = flip_bits(controller, states, options.n, options.seed)
    print(report)
    return 1 if report.outcomes[WRONG] else 0


if __name__ == "__main__":
    sys.exit(main())
