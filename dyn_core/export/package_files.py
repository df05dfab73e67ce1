"""Files by which other build systems find an export: CMake, pkg-config, a README."""

from __future__ import annotations

from dyn_core.export.interface import Interface
from dyn_core.export.targets import Target

_CMAKE = """\
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
  INTERFACE_SOURCES "${{_{prefix}_folder}}/{binary}")""",
}
_PKG_CONFIG = """\
Name: {prefix}
Description: solver {solver} for robot {robot}
Version: {library}
Cflags: -I${{pcfiledir}}
Libs: {libs}
"""
_README = """\
# {prefix}

Solver `{solver}` ({problem}) for the robot `{robot}`, exported by dyn_ros {library}
for the target `{target}` ({meaning}), {form}.

- `{prefix}.h`: functions, ports with sizes and units, statuses, names of coordinates
- `{binary}`: {what}, {size} bytes; scratch memory {scratch} bytes
- `{prefix}_check.c`: prints `equal bits` where results are those of Python:
  `{command}`
- `{prefix}Config.cmake`, `{prefix}.pc`: for CMake and pkg-config; `{prefix}.json`: all
  of the above for programs
"""
_WHAT = {"object": "object file", "shared": "shared library", "c": "C source"}


def cmake_config(x: Interface, form: str, binary: str) -> str:
    """Return the package config; form: object, shared or c; binary: its file."""
    target = _TARGETS[form].format(prefix=x.prefix, binary=binary)
    return _CMAKE.format(prefix=x.prefix, target=target)


def pkg_config(x: Interface, form: str, binary: str) -> str:
    """Return the pkg-config file; there is nothing to link where it is C source."""
    libs = {
        "object": f"${{pcfiledir}}/{binary}",
        "shared": f"-L${{pcfiledir}} -l{x.prefix}",
        "c": "",
    }[form]
    return _PKG_CONFIG.format(
        prefix=x.prefix, solver=x.solver, robot=x.robot, library=x.library, libs=libs
    )


def readme(x: Interface, target: Target, form: str, binary: str, size: int) -> str:
    """Return the README; size: bytes of the file `binary`."""
    link = target.link if form == "object" else "cc main.c {object} -lm"
    if form == "shared":
        link = f"cc main.c -L. -l{x.prefix} -Wl,-rpath,."
    command = link.replace("main.c", f"{x.prefix}_check.c").format(object=binary)
    return _README.format(
        prefix=x.prefix,
        solver=x.solver,
        problem=x.problem,
        robot=x.robot,
        library=x.library,
        target=target.name,
        meaning=target.meaning,
        form=f"form `{form}`",
        binary=binary,
        what=_WHAT[form],
        size=size,
        scratch=max(x.scratch, x.batch_scratch),
        command=command,
    )
