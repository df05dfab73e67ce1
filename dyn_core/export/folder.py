"""The folder of an export: its files, which never replace files of other origin.

Beside the code there are files for users: CMake package, pkg-config file and README.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dyn_core.engines import Program
from dyn_core.engines.llvm import host_machine
from dyn_core.engines.native_program import NativeProgram
from dyn_core.errors import SettingError, UnsupportedError, unknown_name, warn
from dyn_core.export.c.c_source import c_file
from dyn_core.export.c.check_source import check_source, vector_header
from dyn_core.export.c.header import header
from dyn_core.export.interface import ABI, ALIGNMENT, LICENSE, Interface, interface_of
from dyn_core.export.object_code import wasm
from dyn_core.export.object_code.linker import c_compiler, link
from dyn_core.export.object_code.object_files import ObjectFile, compile_object
from dyn_core.export.targets import Target, target_of
from dyn_core.export.test_vectors import TestVector, bits, test_vector
from dyn_core.validation import Switch, known_keywords, shown, writing
from dyn_core.validation.file_names import check_folder, file_kind
from dyn_core.validation.quoting import markdown_code, pkg_config_field

FORMS = ("object", "shared", "c")
VARIANTS = ("scalar", "batch")
MULTIPLY_ADD = ("exact", "unfused")
FORMAT = "dyn_ros export"  # first entry of the manifest
_CMAKE = """\
{notice}
# {prefix} as the target {prefix}::{prefix}:
#   find_package({prefix} CONFIG REQUIRED PATHS <this folder>)
#   target_link_libraries(main PRIVATE {prefix}::{prefix})
if(TARGET {prefix}::{prefix})
  return()
endif()
get_filename_component(_{prefix}_folder "${{CMAKE_CURRENT_LIST_FILE}}" DIRECTORY)
{target}
unset(_{prefix}_folder)
"""
_TARGETS = {
    "object": """\
add_library({prefix}::{prefix} INTERFACE IMPORTED)
set_target_properties({prefix}::{prefix} PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "${{_{prefix}_folder}}"
  INTERFACE_LINK_LIBRARIES "${{_{prefix}_folder}}/{binary}")""",
    "shared": """\
add_library({prefix}::{prefix} SHARED IMPORTED)
set_target_properties({prefix}::{prefix} PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "${{_{prefix}_folder}}"
  IMPORTED_LOCATION "${{_{prefix}_folder}}/{binary}")""",
    "c": """\
add_library({prefix}::{prefix} INTERFACE IMPORTED)
set_target_properties({prefix}::{prefix} PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "${{_{prefix}_folder}}"
  INTERFACE_SOURCES "${{_{prefix}_folder}}/{binary}")
if(NOT CMAKE_CROSSCOMPILING)
  include(CheckCSourceRuns)
  include(CMakePushCheckState)
  cmake_push_check_state()
  set(CMAKE_REQUIRED_FLAGS "-O2 -mfma")
  check_c_source_runs("
    #include <math.h>
    int main(int n, char **a) {{
      volatile double x = n; (void)a; return fma(x, x, x) != 2;
    }}
    " DYN_HAS_FMA)
  cmake_pop_check_state()
  if(DYN_HAS_FMA)  # else computed by many instructions, with the same bits
    set_source_files_properties("${{_{prefix}_folder}}/{binary}" PROPERTIES
      COMPILE_OPTIONS -mfma)
  endif()
endif()""",
}
_NEWLIB = """
`nosys.specs`, `math.h` and `printf` come from the compiler's C library, newlib (Debian:
`libnewlib-arm-none-eabi`). With these specs nothing is printed: take those of the
board, or `rdimon.specs` under a debugger.
"""
_FLAGS = """
On x86, compile with `-O2 -mfma` where the processor has the instruction, as CMake does:
the bits are the same, and a call takes a tenth of the time or less.
"""
_PKG_CONFIG = """\
{notice}
Name: {prefix}
Description: {description}
Version: {library}
Cflags: -I${{pcfiledir}}
Libs: {libs}
"""
_README = """\
# {prefix}

Solver `{solver}` ({problem}) for the robot {robot}, exported by dyn_ros {library}
for the target `{target}` ({meaning}), {form}.
Options: {options}.

- `{prefix}.h`: functions, ports with sizes and units, statuses, names of coordinates,
  limits of the robot
- `{binary}`: {what}, {size} bytes; `{macro}_SCRATCH` in the header is the scratch
  memory that a call takes, `{macro}_STACK` the stack that it needs at most
- `{prefix}_check.c`: prints `equal bits` where results are those of Python{check}
- {packages}`{prefix}.json`: all of the above for programs
{flags}{numbered}
{how}SPDX-License-Identifier: {license}

The numbers of the robot are those of its file: model `{model}`, kernel `{kernel}`.
"""
_WHAT = {"object": "object file", "shared": "shared library", "c": "C source"}
_MODULE = "module of WebAssembly without imports"
_CHECKED = ":\n  `{command}`"
_CHECKED_WASM = """
  (needs a C library); `{prefix}_test.json` has its states for hosts of WebAssembly"""
_WASM = """\
A host writes inputs and a table of 32-bit addresses into the module's memory, from
`__heap_base` on, and calls `{prefix}`; the status comes as a 64-bit number (a BigInt in
JavaScript). In JavaScript, as a module of Node (.mjs):

```js
{js}```

In Python, with wasmtime:

```python
{python}```

"""
_JS = """\
const {{ instance }} = await WebAssembly.instantiate(
    await (await import("node:fs/promises")).readFile("{binary}"));
const {{ memory, __heap_base, {prefix} }} = instance.exports;
const inputs = {inputs}, outputs = {outputs}; // numbers of each port
const sizes = [...inputs, ...outputs], scratch = (__heap_base.value + 63) & ~63;
const table = scratch + {scratch}, first = table + {table};
const end = first + {bytes} * sizes.reduce((a, b) => a + b, 0);
memory.grow(Math.max(0, Math.ceil((end - memory.buffer.byteLength) / 65536)));
const places = sizes.map((n, k) => first + {bytes} * sizes.slice(0, k)
    .reduce((a, b) => a + b, 0));
new Uint32Array(memory.buffer, table, places.length).set(places);
const ports = sizes.map((n, k) => new {array}(memory.buffer, places[k], n));
ports.slice(0, inputs.length).forEach((port) => port.fill(0.1)); // inputs
const status = {prefix}(table, table + 4 * inputs.length, scratch);
console.log(status, ...ports.slice(inputs.length));
"""
_PYTHON = """\
import numpy as np
from wasmtime import Instance, Module, Store

store = Store()
module = Module.from_file(store.engine, "{binary}")
exports = Instance(store, module, []).exports(store)
memory, call = exports["memory"], exports["{prefix}"]
inputs, outputs = {inputs}, {outputs}  # numbers of each port
scratch = -(-exports["__heap_base"].value(store) // 64) * 64
table = scratch + {scratch}
places = table + {table} + {bytes} * np.cumsum([0, *inputs, *outputs])
missing = int(places[-1]) - memory.data_len(store)
memory.grow(store, max(0, -(-missing // 65536)))
memory.write(store, places[:-1].astype("<u4").tobytes(), table)
numbers = np.full(sum(inputs), 0.1, "{dtype}")
memory.write(store, numbers.tobytes(), int(places[0]))
status = call(store, table, table + 4 * len(inputs), scratch)
result = memory.read(store, int(places[len(inputs)]), int(places[-1]))
print(status, np.frombuffer(result, "{dtype}"))
"""


@dataclass(frozen=True)
class Export:
    """The files of an export.

    Attributes:
        folder: Folder of the files.
        files: Names of all files in it, `binary` first and the manifest last.
        binary: Name of the file that is linked, loaded or compiled.
        interface: Interface for callers.
        target, variant, form, multiply_add: Arguments of `export`.
        code, constants: Size of instructions and of constants [bytes]; 0 for C source.
        undefined: Symbols that other objects must define.
    """

    folder: Path
    files: tuple[str, ...]
    binary: str
    interface: Interface
    target: str
    variant: str
    form: str
    multiply_add: str
    code: int
    constants: int
    undefined: tuple[str, ...]


@known_keywords
def export(
    program: Program[Any],
    folder: str | os.PathLike[str],
    target: str = "host",
    variant: str = "scalar",
    form: str = "object",
    name: str | None = None,
    multiply_add: str = "exact",
    checked: bool = True,
) -> Export:
    """Write a Program as machine code or C source, with header and test vector.

    Args:
        program: Program of the engine native.
        folder: Folder of the files; it is created. Files of earlier exports are
            replaced if nobody changed them, others never.
        target: host, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, aarch64, cortex-m7,
            cortex-m4f, riscv64 or wasm32.
        variant: "scalar" for one state, "batch" for a function of many rows, too.
        form: "object", "shared" (needs a C compiler here, except for wasm32) or "c".
        name: Name of the functions in C; None: SOLVER_ROBOT.
        multiply_add: For C source, and on a target without fused multiply-add: "exact"
            emulates it where there is no instruction, for the bits of Python; "unfused"
            rounds twice, which is faster. No effect on other machine code.
        checked: Whether inputs and results that are not finite, and quaternions not of
            unit length, have a status, as in a Program that is built with finite=True.
            The Program is built again if it was built otherwise. Ignored for whole
            controllers (controller_cycle.py), which handle such inputs themselves.

    A dtype that the target lacks in hardware is refused for machine code, and a
    DynWarning for C source.

    Returns:
        The Export: folder, names of the files, arguments, and facts about the code.

    Raises:
        UnsupportedError: An argument is not valid, the Program is not of engine native,
            or the target does not support it.
        SettingError: The folder has other or changed files of these names, or cannot be
            written.
        CompileError: There is no compiler, or it or LLVM fails.
        ValueError: An operation has no form in C, or $CC has an open quote ("shared").
    """
    for what, value, valid in (
        ("variant", variant, VARIANTS),
        ("form", form, FORMS),
        ("multiply_add", multiply_add, MULTIPLY_ADD),
    ):
        if value not in valid:
            raise UnsupportedError(unknown_name(what, value, valid))
    if not isinstance(program, Program):
        valid = "a Program, as of dyn.solver(NAME).build(model)"
        raise UnsupportedError(f"program is {shown(program)}; valid: {valid}")
    if not isinstance(folder, (str, os.PathLike)):
        valid = "the path of a folder, which is created"
        raise UnsupportedError(f"folder is {shown(folder)}; valid: {valid}")
    if not Switch().takes(checked):
        raise UnsupportedError(f"checked is {shown(checked)}; valid: {Switch.valid}")
    machine = target_of(target)
    program = _built(program, checked and not program.signature.answers_all)
    interface = interface_of(program, name)
    assert isinstance(program, NativeProgram)
    batch, exact = variant == "batch", multiply_add == "exact"
    made = _binary(program, interface, machine, batch, form, exact)
    interface = made.interface
    if slow := _in_software(interface, machine):  # C source: others are refused
        needed = program.signature.answers_all  # a whole controller
        other = f"dtype={machine.dtypes[0]!r}), --dtype {machine.dtypes[0]}"
        warn(slow if needed else f"{slow}; valid: build(..., {other}")
    # Python itself rounds twice on a machine without fused multiply-add.
    fused = exact or (machine.fused and form != "c")
    same = fused == host_machine.machine().fused
    contents = _contents(program, made, machine, batch, form, same)
    binary = next(iter(contents))
    facts = {
        "format": FORMAT,
        "license": LICENSE,
        "abi": ABI,
        "target": target,
        "variant": variant,
        "form": form,
        "multiply_add": multiply_add,
        "binary": binary,
        "code": made.code,
        "constants": made.constants,
        "undefined": made.undefined,
        "alignment": ALIGNMENT,
        "interface": asdict(interface),
        "files": {k: hashlib.sha256(v).hexdigest() for k, v in contents.items()},
    }
    contents[_manifest(interface)] = (json.dumps(facts, indent=1) + "\n").encode()
    place = Path(folder)
    write_files(place, contents, _manifest(interface))
    return Export(
        place, tuple(contents), binary, interface, target, variant, form,
        multiply_add, made.code, made.constants, made.undefined,
    )  # fmt: skip


def _built(program: Program[Any], finite: bool) -> Program[Any]:
    """Return the Program if its option `finite` has this value, else one built so."""
    if program.finite == finite:
        return program
    recipe = program.recipe
    return recipe.solver.build(recipe.model, **{**recipe.choices, "finite": finite})


def source_files(
    program: Program[Any], name: str
) -> tuple[dict[str, bytes], Interface]:
    """Return NAME.c, .h, _test.h, _check.c by file name, and the interface with memory.

    The code has a function for one state, and its multiply-adds round once.
    """
    interface = interface_of(program, name)
    assert isinstance(program, NativeProgram)
    host, fused = target_of("host"), host_machine.machine().fused
    made = _binary(program, interface, host, False, "c", True)
    files = _contents(program, made, host, False, "c", fused)
    prefix = made.interface.prefix
    names = [f"{prefix}{end}" for end in (".c", ".h", "_test.h", "_check.c")]
    return {name: files[name] for name in names}, made.interface


def _manifest(interface: Interface) -> str:
    return f"{interface.prefix}.json"


def _contents(
    program: NativeProgram,
    made: _Binary,
    target: Target,
    batch: bool,
    form: str,
    exact: bool,
) -> dict[str, bytes]:
    """Return the files of an export by name, `made` first, without the manifest."""
    x, binary = made.interface, made.name
    vector = test_vector(program)
    packages = for_build_systems(x, target, form, binary)
    read_me = readme(x, target, form, binary, len(made.data), packages)
    texts = {
        f"{x.prefix}.h": header(x, batch, exact),
        f"{x.prefix}_test.h": vector_header(x, vector),
        f"{x.prefix}_test.json": _vector_json(x, vector),
        f"{x.prefix}_check.c": check_source(x, batch, exact),
        **packages,
        f"{x.prefix}_README.md": read_me,
    }
    return {binary: made.data, **{k: text.encode() for k, text in texts.items()}}


def _vector_json(x: Interface, vector: TestVector) -> str:
    """Return the test vector as JSON, with licence, hashes and dtype.

    A state has flat lists "in" and "out" of hexadecimal digits of bits, and "status".
    """
    states = [
        {"in": bits(a), "out": bits(b), "status": int(c)}
        for a, b, c in zip(vector.inputs, vector.outputs, vector.status, strict=True)
    ]
    facts = {
        "license": LICENSE, "model_hash": x.model_hash, "kernel_hash": x.kernel_hash,
        "dtype": x.dtype, "states": states,
    }  # fmt: skip
    return json.dumps(facts, indent=1) + "\n"


@dataclass(frozen=True)
class _Binary:
    """The file that is linked, loaded or compiled.

    `code` and `constants` are sizes [bytes], 0 for C source; `undefined` are symbols
    that other objects must define.
    """

    name: str
    data: bytes
    interface: Interface
    code: int = 0
    constants: int = 0
    undefined: tuple[str, ...] = ()


def _binary(
    program: NativeProgram,
    interface: Interface,
    target: Target,
    batch: bool,
    form: str,
    exact: bool,
) -> _Binary:
    """Return the file that is linked, loaded or compiled.

    `form` is "object", "shared" or "c". With `exact`, multiply-adds round once where
    the target has no instruction.
    """
    prefix = interface.prefix
    if form == "c":
        source, interface = c_file(program, interface, batch, exact)
        return _Binary(f"{prefix}.c", source.encode(), interface)
    made = compile_object(program, interface, target, batch, exact)
    name, data = f"{prefix}.o", made.data
    if form == "shared" and target.is_wasm:
        name, data = f"{prefix}.wasm", wasm.module(data)
    elif form == "shared":
        name, data = f"lib{prefix}.so", shared_library(made, target)
    return _Binary(
        name, data, made.interface, made.code, made.constants, made.undefined
    )


def shared_library(made: ObjectFile, target: Target) -> bytes:
    """Return the bytes of an object linked as a shared library by a C compiler.

    If `target.link` begins with cc, the compiler is that in $CC, else cc; if not, the
    one in `target.link`.
    """
    if target.relocation != "pic":
        raise UnsupportedError(
            f"target {target.name} loads no shared libraries; valid: form='object',"
            " form='c'"
        )
    is_cc = target.link.startswith("cc ")
    command = c_compiler() if is_cc else [target.link.split()[0]]
    name = f"lib{made.interface.prefix}.so"
    with tempfile.TemporaryDirectory() as work:
        source, library = Path(work, "code.o"), Path(work, name)
        source.write_bytes(made.data)
        flags = ["-nostdlib", "-o", str(library), str(source)]
        if "darwin" not in target.triple:
            flags.append(f"-Wl,-soname,{name}")
        link(command, name, flags, "install one, set CC, or form='object'")
        return library.read_bytes()


def write_files(folder: Path, contents: Mapping[str, bytes], manifest: str) -> None:
    """Write files, each atomically, in the order of `contents`, by name (also src/a.c).

    Unchanged files of an earlier export that are not among `contents` are removed. The
    manifest should be last: it lists the digests of the others, by which the next
    export recognises them. If another file has one of the names, or was changed since
    an export wrote it, no file is written: SettingError.
    """
    check_folder(folder)
    known = _earlier(folder / manifest)
    for name in contents:
        file = folder / name
        if not file_kind(file, "folder") or (name == manifest and known):
            continue
        if name in known and _digest(file) == known[name]:
            continue
        why = "was changed since it was exported" if name in known else "is no export"
        raise SettingError(
            f"{file} {why}; valid: another folder, another name=, or remove it",
            "folder",
        )
    with writing(folder, "folder"):
        for name, data in contents.items():
            place = (folder / name).parent
            place.mkdir(parents=True, exist_ok=True)
            handle, work = tempfile.mkstemp(prefix=".dyn_", dir=place)
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(data)
                os.chmod(work, 0o644)
                os.replace(work, folder / name)
            except BaseException:
                os.unlink(work)
                raise
        for name in known.keys() - contents.keys():
            if (folder / name).exists() and _digest(folder / name) == known[name]:
                os.unlink(folder / name)  # of an earlier export of another form


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def _earlier(manifest: Path) -> dict[str, str]:
    """Return SHA-256 digests of an earlier export's files by name; {} if unreadable."""
    try:
        facts = json.loads(manifest.read_text(encoding="utf-8"))
        return dict(facts["files"]) if facts["format"] == FORMAT else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def for_build_systems(
    x: Interface, target: Target, form: str, binary: str
) -> dict[str, str]:
    """Return PREFIXConfig.cmake and PREFIX.pc, for CMake and pkg-config, by name.

    There is none of them for a "shared" WebAssembly module, which is never linked, and
    no pkg-config file for C source. `binary` is the file that is linked or compiled.
    """
    if target.is_wasm and form == "shared":
        return {}
    notice = "\n".join(f"# {line}" for line in x.notice)
    names = {"prefix": x.prefix, "binary": binary, "notice": notice}
    cmake = _CMAKE.format(target=_TARGETS[form].format(**names), **names)
    files = {f"{x.prefix}Config.cmake": cmake}
    if form != "c":
        libs = f"${{pcfiledir}}/{binary}"
        libs = libs if form == "object" else f"-L${{pcfiledir}} -l{x.prefix}"
        files[f"{x.prefix}.pc"] = _PKG_CONFIG.format(
            description=pkg_config_field(f"solver {x.solver} for robot {x.robot}"),
            library=x.library,
            libs=libs,
            **names,
        )
    return files


def readme(
    x: Interface,
    target: Target,
    form: str,
    binary: str,
    size: int,
    packages: Collection[str],
) -> str:
    """Return the README; the file `binary` of `size` [bytes] is linked or compiled."""
    module = target.is_wasm and form == "shared"
    tools = {".cmake": "CMake", ".pc": "pkg-config"}
    known = [tools[Path(name).suffix] for name in packages]
    listed = ", ".join(f"`{name}`" for name in packages)
    slow = _in_software(x, target).capitalize()
    check = _CHECKED_WASM if target.is_wasm and form != "c" else _CHECKED
    return _README.format(
        prefix=x.prefix,
        macro=x.macro,
        solver=x.solver,
        problem=x.problem,
        robot=markdown_code(x.robot),
        options=markdown_code(x.options),
        library=x.library,
        target=target.name,
        meaning=target.meaning,
        form=f"form `{form}`",
        binary=binary,
        what=_MODULE if module else _WHAT[form],
        size=size,
        check=check.format(prefix=x.prefix, command=_command(x, target, form, binary)),
        packages=f"{listed}: for {' and '.join(known)}; " if packages else "",
        flags=(_FLAGS if form == "c" and target.is_x86 else "")
        + (_NEWLIB if target.is_arm else "")
        + (f"\n{slow}.\n" if slow else ""),
        numbered="".join(
            f"\nEach {what}: {', '.join(listed)}.\n"
            for what, listed in x.numbered_lists.items()
        ),
        how=_hosts(x, binary) if module else "",
        license=LICENSE,
        model=x.model_hash or "none",
        kernel=x.kernel_hash,
    )


def _in_software(x: Interface, target: Target) -> str:
    """Return a sentence if the target lacks the dtype in hardware, else nothing."""
    if x.dtype in target.dtypes:
        return ""
    return (
        f"target {target.name} has no {x.dtype} in hardware: each operation is a call"
        " of the compiler's library, many times slower"
    )


def _command(x: Interface, target: Target, form: str, binary: str) -> str:
    """Return the shell command that compiles the check program PREFIX_check.c.

    It runs in the folder of the export, and names no output file. It is target.link,
    which for an object of WebAssembly only links; cc for a shared library, and for C
    source on WebAssembly.
    """
    link = target.link
    if form == "c":
        link = ("cc main.c {object}" if target.is_wasm else link) + " -lm"
    if form == "shared":
        link = f"cc main.c -L. -l{x.prefix} -Wl,-rpath,."
    return link.replace("main.c", f"{x.prefix}_check.c").format(object=binary)


def _hosts(x: Interface, binary: str) -> str:
    """Return the README section on calls of a WebAssembly module."""
    inputs, outputs = x.sizes
    double = x.dtype == "float64"
    facts = {
        "prefix": x.prefix,
        "binary": binary,
        "inputs": list(inputs),
        "outputs": list(outputs),
        "scratch": -(-x.scratch // 64) * 64,
        "table": -(-4 * len(x.ports) // 64) * 64,
        "bytes": 8 if double else 4,
        "array": "Float64Array" if double else "Float32Array",
        "dtype": x.dtype,
    }
    return _WASM.format(
        prefix=x.prefix, js=_JS.format(**facts), python=_PYTHON.format(**facts)
    )
