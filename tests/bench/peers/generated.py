"""C code that CasADi generates, compiled by the system's compiler: two peers.

`casadi` takes adam's expressions. `pin-casadi` takes Pinocchio's own algorithms: its
wheel has no `pinocchio.casadi`, but its headers are templates, and a small program
(pinocchio_code.cpp) writes their C code with CasADi's library. It is built once,
in some minutes, and kept beside the cache of kernels; so are the compiled functions.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import numpy as np

from bench.cases import STATES
from bench.peers.peer import (
    BodyVelocities,
    Peer,
    PeerCall,
    Rows,
    urdf_file,
)
from bench.peers.pinocchio_peer import InPinocchio
from bench.printed_tables import progress
from dyn_core.engines.llvm.cached import kernel_cache
from dyn_core.errors import UnsupportedError
from dyn_core.spatial.conventions import pose_parts

SOURCE = Path(__file__).with_name("pinocchio_code.cpp")
LEVELS = ("-O3", "-O1")  # the second where the first takes too long
LIMIT = 240.0  # for C code of one function, at each level [s]
BUILD_LIMIT = 1800.0  # for the program that generates [s]
# As Pinocchio's cmake files say.
DEFINED = (
    "BOOST_MPL_LIMIT_LIST_SIZE=30", "BOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS", "BOOST_FUSION_INVOKE_MAX_ARITY=12",
)  # fmt: skip
DRIVEN = ("aba", "fd_derivatives", "semi_implicit_euler")  # by forces
OFFERED = ("rnea", "bias", "crba", "mass_matrix_inverse", "id_derivatives", *DRIVEN)


class Generated(Peer):
    """Functions of flat arrays, called through CasADi's buffers."""

    def add(self, name: str, source: Path, states: Rows) -> None:
        """Compile the C code of a function and write its statements.

        Args:
            name: Of algorithm and function.
            source: C code.
            states: Its inputs, flat.
        """
        import casadi

        slow = (
            f"takes over {LIMIT:.0f} s of cc for {source.stat().st_size / 1e6:.1f} MB"
        )
        try:
            library, level = compiled(source)
        except subprocess.TimeoutExpired:
            self.lacks[name] = f"{LEVELS[-1]} {slow}"
            return
        if level != LEVELS[0]:
            self.remarks[name] = f"by {level}: {LEVELS[0]} {slow}"
        function = casadi.external(name, str(library))
        outs = [function.size_out(k) for k in range(function.n_out())]
        holds = [np.zeros(x.size) for x in states[0]]
        results = self._bind(name, function, holds)
        self.space.update({f"{name}_{k}": x for k, x in enumerate(holds)})
        names = [f"x{k}" for k in range(len(holds))]
        copies = "; ".join(f"{name}_{k}[:] = {x}" for k, x in enumerate(names))
        self.space[f"{name}_out"] = results
        shown = ", ".join(
            f"{name}_out[{k}]" + (f".reshape({m}, {n}).T" if n > 1 else "")
            for k, (m, n) in enumerate(outs)
        )
        self.calls[name] = PeerCall(
            f"{copies}; {name}_go()", states, ", ".join(names), shown
        )
        many = np.tile(np.arange(STATES), self.rows // STATES)
        wide = [
            np.concatenate([states[k][i] for k in many]) for i in range(len(states[0]))
        ]
        self._bind(f"{name}_map", function.map(self.rows), wide)
        self.batches[name] = PeerCall(f"{name}_map_go()", [(0,)], "_")

    def _bind(
        self, name: str, function: Any, holds: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Bind a function to memory; its trigger goes to the space."""
        buffer, trigger = function.buffer()
        results = [np.zeros(function.nnz_out(k)) for k in range(function.n_out())]
        for k, hold in enumerate(holds):
            buffer.set_arg(k, hold.data)
        for k, result in enumerate(results):
            buffer.set_res(k, result.data)
        self.space[f"{name}_go"] = trigger
        self.space[f"{name}_kept"] = (buffer, holds, results, function)
        return results


class CasADi(BodyVelocities, Generated):
    """CasADi's C code of adam's expressions."""

    name = "casadi"
    packages = ("casadi", "adam-robotics")

    def prepare(self) -> None:
        """Generate and compile; takes minutes for large robots."""
        import casadi
        from adam import Representations
        from adam.casadi import KinDynComputations

        floating, n = self.robot.floating, len(self.joints)
        down = np.array([0.0, 0.0, -self.gravity, 0.0, 0.0, 0.0])
        with urdf_file(self.robot.urdf) as path:
            model = KinDynComputations(str(path), self.joints, gravity=down)
        model.set_frame_velocity_representation(
            Representations.BODY_FIXED_REPRESENTATION
        )
        self.order = range(6 * floating, 6 * floating + n)
        H, q = casadi.SX.sym("H", 4, 4), casadi.SX.sym("q", n)
        u, v = casadi.SX.sym("u", 6), casadi.SX.sym("v", n)
        a = casadi.SX.sym("a", n + 6 * floating)
        inputs, expressions = [H, q, u, v, a], {}
        if floating:
            bias, M = model.bias_force(H, q, u, v), model.mass_matrix(H, q)
            expressions["aba"] = model.aba(H, q, u, v, a[6:])
        else:
            q0, zero = casadi.SX.eye(4), casadi.SX.zeros(6)
            bias = model.bias_force(q0, q, zero, v)[6:]
            M, inputs = model.mass_matrix(q0, q)[6:, 6:], [q, v, a]
        expressions |= {"bias": bias, "crba": M, "rnea": casadi.mtimes(M, a) + bias}
        with TemporaryDirectory() as folder:
            for name, x in expressions.items():
                function = casadi.Function(name, inputs, [casadi.densify(x)])
                generator = casadi.CodeGenerator(f"{name}.c")
                generator.add(function)
                generator.generate(f"{folder}/")
                third = "tau" if name in DRIVEN else "a"
                states = [self._flat(*row) for row in self.rows_of(third)]
                self.add(name, Path(folder) / f"{name}.c", states)
        if not floating:
            self.lacks["aba"] = "for floating bases only"

    def position(self, q: np.ndarray) -> np.ndarray:
        """Return ours."""
        return q

    def _flat(self, q: np.ndarray, v: np.ndarray, x: np.ndarray) -> tuple[Any, ...]:
        """Return the inputs; the pose of a base is a 4x4 matrix by columns."""
        if not self.robot.floating:
            return q, v, x
        H = np.eye(4)
        H[:3, :3], H[:3, 3] = pose_parts(q[:7])
        return H.T.ravel(), q[7:], v[:6], v[6:], x


class PinocchioCode(InPinocchio, Generated):
    """CasADi's C code of Pinocchio's own algorithms."""

    name = "pin-casadi"
    packages = ("pin", "casadi", "cmeel-eigen")

    @classmethod
    def version(cls) -> str:
        """Return what generates, and what."""
        pin, casadi, eigen = (f"{x} {metadata.version(x)}" for x in cls.packages)
        return f"code of {pin} by {casadi} (headers of {eigen})"

    def prepare(self) -> None:
        """Generate and compile; takes minutes for large robots."""
        model, program = self.load(), generator()
        with TemporaryDirectory() as folder:
            model.saveToText(f"{folder}/model.txt")
            subprocess.run([program, f"{folder}/model.txt", folder], check=True)
            for name in OFFERED:
                states = self.rows_of("tau" if name in DRIVEN else "a")
                self.add(name, Path(folder) / f"{name}.c", states)


def compiled(source: Path) -> tuple[Path, str]:
    """Compile C code as well as the time allows; return library and level.

    A library is kept, by its code and compiler: the next run only measures.

    Raises:
        TimeoutExpired: None of LEVELS is done within LIMIT.
        CalledProcessError: It cannot be compiled.
    """
    version = subprocess.run(["cc", "--version"], capture_output=True, check=True)
    key = _key(source.read_bytes(), version.stdout)
    folder = kept_folder()
    kept = {level: folder / f"{source.stem}-{key}{level}.so" for level in LEVELS}
    for level, library in kept.items():
        if library.exists():
            return library, level
    for level, library in kept.items():
        flags = [level, "-march=native", "-fPIC", "-shared"]
        made = library.with_suffix(".new")
        with suppress(*[subprocess.TimeoutExpired] * (level != LEVELS[-1])):
            _run(["cc", *flags, str(source), "-o", str(made)], LIMIT)
            made.rename(library)
            break
    return library, level


def _run(command: Sequence[str], limit: float) -> None:
    """Run a compiler; after the limit end it and what it started."""
    process = subprocess.Popen(command, start_new_session=True)
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if status:
        raise subprocess.CalledProcessError(status, command)


def kept_folder() -> Path:
    """Return where generated code is kept: beside the cache of kernels."""
    home = kernel_cache.folder()
    folder = Path(mkdtemp()) if home is None else home.parent / f"{home.name}-bench"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _key(*parts: bytes) -> str:
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:16]


def generator_file() -> Path:
    """Return where the program is kept that writes the C code of Pinocchio."""
    versions = (metadata.version(name).encode() for name in PinocchioCode.packages)
    return kept_folder() / f"pinocchio_code-{_key(SOURCE.read_bytes(), *versions)}"


def generator() -> Path:
    """Return that program; build it where it is not kept.

    Raises:
        UnsupportedError: It cannot be built.
    """
    program = generator_file()
    if not program.exists():
        progress("building the program that generates Pinocchio's code: some minutes")
        made = program.with_suffix(".new")
        try:
            _run(_command(made), BUILD_LIMIT)
        except (OSError, subprocess.SubprocessError) as error:
            raise UnsupportedError(
                "the program that generates Pinocchio's code cannot be built:"
                f" {type(error).__name__} of {_command(made)[0]}"
            ) from error
        made.rename(program)
    return program


def _command(program: Path) -> list[str]:
    """Return the command that builds it, with headers and libraries of the wheels."""
    import casadi
    import pinocchio as pin

    prefix, casadi_home = Path(pin.__file__).parents[4], Path(casadi.__file__).parent
    eigen = metadata.distribution(PinocchioCode.packages[2])
    headers = [
        prefix / "include", casadi_home / "include",
        Path(str(eigen.locate_file("cmeel.prefix/include/eigen3"))),
    ]  # fmt: skip
    libraries = ("libpinocchio_default", "libcasadi", "libboost_serialization")
    command = ["c++", "-std=c++17", "-O0", "-w", str(SOURCE), "-o", str(program)]
    command += [f"-D{name}" for name in DEFINED]
    command += [x for folder in headers for x in ("-isystem", str(folder))]
    for folder in (prefix / "lib", casadi_home):
        command += [f"-L{folder}", f"-Wl,-rpath,{folder}"]
    return command + [f"-l:{name}.so" for name in libraries]
