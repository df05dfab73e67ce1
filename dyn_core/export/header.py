"""The C header of an export: sizes, names, functions, and calls with named ports."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from dyn_core.export.interface import (
    ABI,
    ALIGNMENT,
    NOT_FINITE_INPUT,
    NOT_FINITE_RESULT,
    Interface,
    PortInterface,
    identifier,
)
from dyn_core.export.table import quoted, structures

_RULES = """\
Every function returns a status: 0, or what went wrong ({prefix}_message says it in
words). All outputs are NaN where it is not 0: never send them to a drive. {finite}

scratch: {macro}_SCRATCH bytes of the caller, aligned to {alignment} bytes, one for each
thread; what it holds before does not matter. Inputs, outputs and scratch must not
overlap. Nothing is allocated, locked, or kept between calls."""
_FINITE = (
    "Inputs with NaN or\ninfinity have the status {macro}_NOT_FINITE_INPUT, such"
    " results {macro}_NOT_FINITE_RESULT."
)
_NOT_FINITE = (
    "Inputs are not\nchecked: with NaN in them outputs may or may not be NaN (build"
    " with\nfinite=True for a check)."
)


def header(interface: Interface, batch: bool, exact: bool = True) -> str:
    """Return the header.

    Args:
        interface: What it says; with scratch sizes.
        batch: Whether there is a function for rows.
        exact: Whether results have the bits that Python has.
    """
    x, macro = interface, interface.macro
    guard = f"{macro}_H"
    parts = [
        _comment(_about(x, exact)),
        f"#ifndef {guard}\n#define {guard}\n\n#include <stddef.h>\n#include <stdint.h>",
        _comment(_rules(x)),
        "\n".join(_macros(x, batch)),
        f"#ifndef DYN_INTERFACE_ABI\n#define DYN_INTERFACE_ABI {ABI}\n"
        "/* What a library is, for programs that load it by name. */\n"
        f"{structures()}\n#endif",
        '#ifdef __cplusplus\nextern "C" {\n#endif',
        "/* The table of this export; linkers leave it out where nothing reads it. */\n"
        f"extern const dyn_interface {x.prefix}_interface;",
        _prototypes(x, batch),
        _message(x),
        _named_call(x),
        *([_named_rows(x)] if batch else []),
        f"#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {guard} */",
    ]
    return "\n\n".join(parts) + "\n"


def _comment(text: str) -> str:
    """Return a text as a comment; what would end it is taken apart."""
    lines = text.replace("*/", "* /").replace("/*", "/ *").splitlines()
    return "/*\n" + "\n".join(f" * {line}".rstrip() for line in lines) + "\n */"


def _about(x: Interface, exact: bool) -> str:
    lines = [f"{x.prefix}: solver {x.solver} ({x.problem}) for robot '{x.robot}'.", ""]
    for title, ports in (("Inputs", x.inputs), ("Outputs", x.outputs)):
        lines.append(f"{title}:")
        for port in ports:
            shape = "".join(f"[{n}]" for n in port.shape) or " (a number)"
            unit = f" [{port.unit}]" if port.unit else ""
            lines += wrap(
                f"{port.c_name}{shape}{unit}: {port.meaning or port.name}", 84,
                initial_indent="  ", subsequent_indent="      ",
            )  # fmt: skip
    for title, names in (("Positions", x.positions), ("Velocities", x.velocities)):
        if names:
            listed = ", ".join(f"{k} {name}" for k, name in enumerate(names))
            lines += wrap(f"{title}: {listed}", 84, subsequent_indent="      ")
    lines += ["", "SI units, matrices row-major, quaternions (x, y, z, w)."]
    how = "the bits" if exact else "not the bits (multiply-adds round twice here)"
    lines.append(f"Results have {how} that dyn_ros {x.library} has in Python.")
    lines.append(f"Robot {x.model_hash}, algorithm {x.kernel_hash}.")
    return "\n".join(lines)


def _rules(x: Interface) -> str:
    finite = (_FINITE if x.finite else _NOT_FINITE).format(macro=x.macro)
    return _RULES.format(
        prefix=x.prefix, macro=x.macro, alignment=ALIGNMENT, finite=finite
    )


def _macros(x: Interface, batch: bool) -> list[str]:
    macro = x.macro
    names: list[tuple[str, object]] = [
        ("MODEL_HASH", quoted(x.model_hash)),
        ("KERNEL_HASH", quoted(x.kernel_hash)),
        ("SCRATCH", x.scratch),
    ]
    if batch:
        names += [("BATCH_SCRATCH", x.batch_scratch), ("LANES", x.lanes)]
    if x.positions:
        names += [("NQ", len(x.positions)), ("NV", len(x.velocities))]
        names.append(("NB", len(x.bodies)))
        names += [(f"Q_{identifier(name)}", k) for k, name in enumerate(x.positions)]
        names += [(f"V_{identifier(name)}", k) for k, name in enumerate(x.velocities)]
    names += [(f"SIZE_{port.c_name}", port.size) for port in x.ports]
    if x.finite:
        names += [
            ("NOT_FINITE_INPUT", f"({NOT_FINITE_INPUT})"),
            ("NOT_FINITE_RESULT", f"({NOT_FINITE_RESULT})"),
        ]
    unique = dict(reversed(names))  # the first of a name that occurs twice
    return [f"#define {macro}_{name} {unique[name]}" for name in dict(names)]


def _prototypes(x: Interface, batch: bool) -> str:
    real = x.real
    lines = [
        "/* One state: tables of pointers to inputs and outputs, in order. */",
        f"int64_t {x.prefix}(const {real} *const *in, {real} *const *out,"
        " void *scratch);",
    ]
    if batch:
        lines += [
            "/* Rows first..last-1; strides: bytes from row to row of each input, 0"
            " where all\n   rows share it; status: a number for each row. Returns how"
            " many failed. */",
            f"int64_t {x.prefix}_batch(const {real} *const *in, const int64_t *strides,"
            f"\n    {real} *const *out, int64_t *status, int64_t first, int64_t last,"
            " void *scratch);",
        ]
    return "\n".join(lines)


def _message(x: Interface) -> str:
    cases = [(0, x.sentence(0))]
    if x.finite:
        codes = (NOT_FINITE_INPUT, NOT_FINITE_RESULT)
        cases += [(code, x.sentence(code)) for code in codes]
    cases += list(enumerate(x.statuses, 1))
    lines = [
        "/* What a status says. */",
        f"static inline const char *{x.prefix}_message(int64_t status) {{",
        "    switch (status) {",
        *(f"    case {code}: return {quoted(text)};" for code, text in cases),
        '    default: return "no such status";',
        "    }",
        "}",
    ]
    return "\n".join(lines)


def _arguments(
    x: Interface, rows: bool
) -> tuple[list[str], Sequence[str], Sequence[str]]:
    """Return the named arguments, and the entries of the two tables."""
    named = []
    for port in x.ports:
        constant = "const " if port in x.inputs else ""
        if port.size == 1 and not port.shape and port in x.inputs and not rows:
            named.append(f"{x.real} {port.c_name}")
        else:
            named.append(f"{constant}{x.real} *{port.c_name}")
    inputs = [_address(port, rows) for port in x.inputs]
    return named, inputs, [port.c_name for port in x.outputs]


def _address(port: PortInterface, rows: bool) -> str:
    return f"&{port.c_name}" if not port.shape and not rows else port.c_name


def _tables(x: Interface, inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
    return [
        f"    const {x.real} *in[{len(inputs) or 1}];",
        f"    {x.real} *out[{len(outputs) or 1}];",
        *(f"    in[{k}] = {name};" for k, name in enumerate(inputs)),
        *(f"    out[{k}] = {name};" for k, name in enumerate(outputs)),
    ]


def _named_call(x: Interface) -> str:
    named, inputs, outputs = _arguments(x, rows=False)
    head = f"static inline int64_t {x.prefix}_call("
    lines = [
        "/* One state, with ports by name. */",
        head + ", ".join([*named, "void *scratch"]) + ") {",
        *_tables(x, inputs, outputs),
        f"    return {x.prefix}(in, out, scratch);",
        "}",
    ]
    return "\n".join(lines)


def _named_rows(x: Interface) -> str:
    """Write the call for C-order arrays (rows, ...) that no input is shared in."""
    named, inputs, outputs = _arguments(x, rows=True)
    head = f"static inline int64_t {x.prefix}_rows(int64_t rows, "
    lines = [
        "/* Rows of C-order arrays (rows, ...); status: rows numbers. */",
        head + ", ".join([*named, "int64_t *status", "void *scratch"]) + ") {",
        f"    int64_t strides[{len(inputs) or 1}];",
        *_tables(x, inputs, outputs),
        *(
            f"    strides[{k}] = {port.size} * (int64_t)sizeof({x.real});"
            for k, port in enumerate(x.inputs)
        ),
        f"    return {x.prefix}_batch(in, strides, out, status, 0, rows, scratch);",
        "}",
    ]
    return "\n".join(lines)
