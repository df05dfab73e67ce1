"""Handlers of XLA's interface without JAX: versions, call frames, errors."""

import ctypes
import importlib
import struct
import sys

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.bridges import ffi_handler
from dyn_core.bridges.coordinates import PositionRates
from dyn_core.engines.llvm import host_machine
from dyn_core.errors import UnsupportedError
from dyn_core.testing import random_model

native = pytest.mark.skipif(bool(host_machine.missing()), reason=host_machine.missing())


@pytest.mark.parametrize(
    "version, good", [((0, 3), 1), ((0, 9), 1), ((0, 0), 0), ((1, 0), 0)]
)
def test_versions_of_the_interface(tmp_path, version, good):
    """Read from the header of jaxlib; others are refused in words."""
    header = tmp_path / "xla" / "ffi" / "api" / "c_api.h"
    header.parent.mkdir(parents=True)
    lines = "#define XLA_FFI_API_MAJOR {}\n\n#define XLA_FFI_API_MINOR {}\n"
    header.write_text(lines.format(*version))
    if good:
        assert ffi_handler.require_version(tmp_path) == version[1]
        return
    with pytest.raises(UnsupportedError, match=r"valid: 0\.1 or later of 0\.x"):
        ffi_handler.require_version(tmp_path)


def test_a_missing_header_is_named(tmp_path):
    """Nothing is guessed where jaxlib has no header."""
    with pytest.raises(UnsupportedError, match="c_api.h"):
        ffi_handler.require_version(tmp_path)


class Frame:
    """A call frame of XLA, in memory."""

    def __init__(self, inputs, outputs, stage=3, dtype=12):
        self.kept = []
        ins = self._table([self._buffer(x, dtype) for x in inputs])
        outs = self._table([self._buffer(x, dtype) for x in outputs])
        self.messages = []
        create = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self._create)
        self.kept.append(create)
        address = ctypes.cast(create, ctypes.c_void_p).value
        api = self._memory(struct.pack("<7q", 56, 0, 24, 0, 3 << 32, 0, address))
        head = struct.pack("<5q", 168, 0, api, 0, stage)
        args = struct.pack("<5q", 40, 0, len(inputs), 0, ins)
        rets = struct.pack("<5q", 40, 0, len(outputs), 0, outs)
        self.address = self._memory(
            head + args + rets + struct.pack("<6q", 48, 0, 0, 0, 0, 0)
        )

    def _create(self, arguments):
        message = struct.unpack("<4q", ctypes.string_at(arguments, 32))[2]
        self.messages.append(ctypes.string_at(message).decode())
        return 77

    def _memory(self, data):
        self.kept.append(ctypes.create_string_buffer(data, len(data)))
        return ctypes.addressof(self.kept[-1])

    def _table(self, addresses):
        return self._memory(struct.pack(f"<{len(addresses)}q", *addresses))

    def _buffer(self, array, dtype):
        self.kept.append(array)
        sizes = self._memory(struct.pack(f"<{array.ndim}q", *array.shape))
        return self._memory(
            struct.pack("<6q", 48, 0, dtype, array.ctypes.data, array.ndim, sizes)
        )


def _call(handler, frame):
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(handler.pointer.value)
    return function(frame.address)


@native
@pytest.mark.parametrize("rows", [None, 1, 5, 300])
def test_a_call_frame_is_answered(rows):
    """Inputs with rows or shared; the status of each row; the bits of the Program."""
    program = dyn.solver("rnea").build(dyn.load("two_link"))
    handler = ffi_handler.CallHandler(program, 3)
    lead = () if rows is None else (rows,)
    q, qd, tau = np.random.default_rng(0).uniform(-1, 1, (3, *lead, 2))
    qdd, status = np.ones(2), np.full(lead, 9, np.int32)
    frame = Frame([q, qd, qdd], [tau, status])
    assert _call(handler, frame) == 0
    np.testing.assert_array_equal(tau, program(q, qd, qdd))
    np.testing.assert_array_equal(status, 0)


@native
def test_calls_that_do_not_fit_return_an_error():
    """Another dtype, stage or number of inputs: XLA gets the name of the solver and why."""
    program = dyn.solver("rnea").build(dyn.load("two_link"))
    handler = ffi_handler.CallHandler(program, 3)
    x = np.ones(2)
    cases = [
        (Frame([x, x, x], [x], dtype=11), "another dtype"),
        (Frame([x, x], [x]), "wrong number"),
        (Frame([x, x, x], [x], stage=0), "call frame"),
    ]
    for frame, reason in cases:
        assert _call(handler, frame) == 77
        assert frame.messages[0].startswith("dyn_core, rnea: ")
        assert reason in frame.messages[0]


@native
def test_metadata_name_the_version():
    """XLA asks first for which version a handler is made."""
    handler = ffi_handler.CallHandler(dyn.solver("rnea").build(dyn.load("two_link")), 3)
    metadata = ctypes.create_string_buffer(
        struct.pack("<6q", 48, 24, 0, -1, -1, -1), 48
    )
    extension = ctypes.create_string_buffer(
        struct.pack("<4q", 24, 1, 0, ctypes.addressof(metadata)), 32
    )
    frame = ctypes.create_string_buffer(
        struct.pack("<2q", 168, ctypes.addressof(extension)), 168
    )
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(handler.pointer.value)
    assert function(ctypes.addressof(frame)) == 0
    _, _, _, version, traits, state = struct.unpack("<6q", metadata.raw)
    assert (version & 0xFFFFFFFF, version >> 32) == (0, 3)
    assert traits & 0xFFFFFFFF == 0 and state == 0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_coordinates_are_those_of_the_model(seed):
    """Rates, velocities and their adjoints, by NumPy: positions are of unit length."""
    kinds = ("spherical", "revolute", "floating", "planar")
    model = random_model(seed, size=6, kinds=kinds, massless=0.0)
    convert, rng = PositionRates(model), np.random.default_rng(seed)
    assert not convert.plain
    q = np.stack([model.random(rng) for _ in range(4)])
    v = rng.normal(size=(4, model.nv))
    rate = convert.rate(np, q, v)
    np.testing.assert_allclose(rate, model.position_rate(q, v), atol=1e-12)
    np.testing.assert_allclose(convert.velocity(np, q, rate), v, atol=1e-12)
    a, b = rng.normal(size=rate.shape), rng.normal(size=v.shape)
    left = (convert.rate(np, q, b) * a).sum()
    np.testing.assert_allclose(
        left, (b * convert.adjoint_rate(np, q, a)).sum(), atol=1e-10
    )
    left = (convert.velocity(np, q, a) * b).sum()
    np.testing.assert_allclose(
        left, (a * convert.adjoint_velocity(np, q, b)).sum(), atol=1e-10
    )
    np.testing.assert_allclose(
        convert.normalized(np, 1.5 * q), model.normalize(1.5 * q), atol=1e-12
    )


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_a_library_that_is_missing_is_named(name, monkeypatch):
    """The error says which extra installs it."""
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"dyn_core.bridges.{name}", raising=False)
    with pytest.raises(UnsupportedError, match=rf"dyn_ros\[{name}\]"):
        importlib.import_module(f"dyn_core.bridges.{name}")
