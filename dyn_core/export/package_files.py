"""Files for users of an export: CMake package, pkg-config file and README."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from dyn_core.export.interface import LICENSE, Interface
from dyn_core.export.targets import Target
from dyn_core.validation.quoting import markdown_code, pkg_config_field

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

- `{prefix}.h`: functions, ports with sizes and units, statuses, names of coordinates,
  limits of the robot
- `{binary}`: {what}, {size} bytes; `{macro}_SCRATCH` in the header is the scratch
  memory that a call takes, `{macro}_STACK` the stack that it needs at most
- `{prefix}_check.c`: prints `equal bits` where results are those of Python{check}
- {packages}`{prefix}.json`: all of the above for programs
{flags}
{how}SPDX-License-Identifier: {license}

The numbers of the robot are those of its file: model `{model}`, kernel `{kernel}`.
"""
_WHAT = {"object": "object file", "shared": "shared library", "c": "C source"}
_MODULE = "module of WebAssembly without imports"
_CHECKED = ":\n  `{command}`"
_CHECKED_WASM = """
  (for the other forms); `{prefix}_test.json` has its states for hosts of WebAssembly"""
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


def for_build_systems(
    x: Interface, target: Target, form: str, binary: str
) -> dict[str, str]:
    """Return the files for CMake and pkg-config, contents by name.

    The names are PREFIXConfig.cmake and PREFIX.pc. There is none of them for a
    WebAssembly module, which is never linked, and no pkg-config file for C source.

    Args:
        x: Interface of the export.
        target: Target of the code.
        form: "object", "shared" or "c".
        binary: Name of the file that is linked or compiled.
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
    """Return the README in Markdown.

    Args:
        x: Interface of the export.
        target: Target of the code.
        form: "object", "shared" or "c".
        binary: Name of the file that is linked or compiled.
        size: Its size [bytes].
        packages: Names of the files for build systems, see for_build_systems; may be
            empty.
    """
    module = target.is_wasm and form == "shared"
    tools = {".cmake": "CMake", ".pc": "pkg-config"}
    known = [tools[Path(name).suffix] for name in packages]
    listed = ", ".join(f"`{name}`" for name in packages)
    check = _CHECKED_WASM if module else _CHECKED
    return _README.format(
        prefix=x.prefix,
        macro=x.macro,
        solver=x.solver,
        problem=x.problem,
        robot=markdown_code(x.robot),
        library=x.library,
        target=target.name,
        meaning=target.meaning,
        form=f"form `{form}`",
        binary=binary,
        what=_MODULE if module else _WHAT[form],
        size=size,
        check=check.format(prefix=x.prefix, command=_command(x, target, form, binary)),
        packages=f"{listed}: for {' and '.join(known)}; " if packages else "",
        flags=_FLAGS if form == "c" else "",
        how=_hosts(x, binary) if module else "",
        license=LICENSE,
        model=x.model_hash or "none",
        kernel=x.kernel_hash,
    )


def _command(x: Interface, target: Target, form: str, binary: str) -> str:
    """Return the shell command that compiles the check program PREFIX_check.c.

    Args:
        x: Interface of the export.
        target: Target of the code.
        form: "object", "shared" or "c".
        binary: Name of the file that is linked or compiled.
    """
    link = target.link if form == "object" else "cc main.c {object} -lm"
    if form == "shared":
        link = f"cc main.c -L. -l{x.prefix} -Wl,-rpath,."
    return link.replace("main.c", f"{x.prefix}_check.c").format(object=binary)


def _hosts(x: Interface, binary: str) -> str:
    """Return the README section on calls of a WebAssembly module.

    Args:
        x: Interface of the export.
        binary: Name of the module's file.
    """
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
