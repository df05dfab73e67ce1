"""The C header of an export: sizes, names, functions, and calls with named ports."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from dyn_core.engines.status import NOT_FINITE_INPUT, NOT_FINITE_RESULT
from dyn_core.export.c.interface_table import structures
from dyn_core.export.interface import (
    ABI,
    ALIGNMENT,
    Interface,
    PortInterface,
    identifier,
)
from dyn_core.validation.quoting import c_comment, c_string

_WIDTH = 84  # maximum length of lines of comments
_RULES = (
    "Every function returns a status: 0, or what went wrong ({prefix}_message says it"
    " in words). All outputs are NaN where it is not 0: never send them to a drive."
    " {finite}",
    "scratch: {macro}_SCRATCH bytes of the caller, aligned to {alignment} bytes, one"
    " for each thread; what it holds before does not matter. Inputs, outputs and"
    " scratch must not overlap. Nothing is allocated, locked, or kept between calls."
    " A call needs at most {macro}_STACK bytes of stack, with any compiler and at any"
    " level of optimisation.",
)
_FINITE = (
    "Inputs with NaN or infinity have the status {macro}_NOT_FINITE_INPUT, such results"
    " {macro}_NOT_FINITE_RESULT."
)
_NOT_FINITE = (
    "Inputs are not checked: with NaN in them outputs may or may not be NaN (exported"
    " with checked=True they are)."
)
_ANSWERED = (
    "The algorithm answers inputs with NaN or infinity itself, by finite outputs, and"
    " its status is 0: the output report says what it did."
)
_USE = """\
Use, in C99, C11 and C++:

    DYN_ALIGNAS({alignment}) unsigned char scratch[{macro}_SCRATCH];
    {call};
    if (status != 0) puts({prefix}_message(status));"""

_ALIGNAS = """\
#ifndef DYN_ALIGNAS
#if defined(__cplusplus) \\
    || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define DYN_ALIGNAS(bytes) alignas(bytes)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define DYN_ALIGNAS(bytes) _Alignas(bytes)
#elif defined(__GNUC__)
#define DYN_ALIGNAS(bytes) __attribute__((aligned(bytes)))
#elif defined(_MSC_VER)
#define DYN_ALIGNAS(bytes) __declspec(align(bytes))
#endif
#endif"""


def header(interface: Interface, batch: bool, exact: bool = True) -> str:
    """Return the C header PREFIX.h of an export.

    Args:
        interface: Interface with the memory that the code needs.
        batch: Whether there is a function for rows.
        exact: Whether results have the bits of Python.
    """
    x, macro = interface, interface.macro
    guard = f"{macro}_H"
    parts = [
        c_comment(_about(x, exact)),
        f"#ifndef {guard}\n#define {guard}\n\n#include <stddef.h>\n#include <stdint.h>",
        c_comment(_rules(x)),
        _ALIGNAS,
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


def _about(x: Interface, exact: bool) -> str:
    what = f"{x.prefix}: solver {x.solver} ({x.problem}) for robot '{x.robot}'."
    options = wrap(f"Options: {x.options}.", _WIDTH, subsequent_indent="      ")
    lines = [*x.notice, "", what, *options, ""]
    for title, ports in (("Inputs", x.inputs), ("Outputs", x.outputs)):
        lines.append(f"{title}, {x.real}:")
        for port in ports:
            shape = "".join(f"[{n}]" for n in port.shape) or " (a number)"
            unit = _unit(x, port)
            unit = f" [{unit}]" if unit else ""
            lines += wrap(
                f"{port.c_name}{shape}{unit}: {port.meaning or port.name}", _WIDTH,
                initial_indent="  ", subsequent_indent="      ",
            )  # fmt: skip
    for what, listed in x.numbered_lists.items():
        lines += _wrapped(f"Each {what}: ", listed, "      ")
    lines += [*_coordinates(x), "", *_use(x).splitlines(), ""]
    lines.append("SI units, matrices row-major, quaternions (x, y, z, w).")
    how = "the bits" if exact else "not the bits (multiply-adds round twice here)"
    lines.append(f"Results have {how} that dyn_ros {x.library} has in Python.")
    lines.append(
        "A model is a robot with all its numbers, a kernel an algorithm for it."
    )
    return "\n".join(lines)


def _coordinates(x: Interface) -> list[str]:
    """Return the lines, without comment marks, that list the entries of q and qd.

    Equal names make one list. Units are shown only in a list where they differ.
    """
    rates = tuple(f"{unit}/s" for unit in x.velocity_units)
    groups = [("q", x.positions, x.position_units), ("qd", x.velocities, rates)]
    if x.positions == x.velocities:
        groups = [("q, qd", x.positions, x.position_units)]
    lines = []
    for title, names, units in groups:
        shown = [f"{k} {name}" for k, name in enumerate(names)]
        if len(set(units)) > 1:
            pairs = zip(shown, units, strict=True)
            shown = [f"{name} [{unit}]" for name, unit in pairs]
        if names:
            head = f"Entries of {title} and of vectors like them: "
            lines += _wrapped(head, shown, "      ")
    return lines


def _wrapped(head: str, parts: Sequence[str], indent: str, end: str = "") -> list[str]:
    """Return lines, at most _WIDTH long, of parts joined by commas; none is broken."""
    text = head + ", ".join(part.replace(" ", "\0") for part in parts) + end
    lines = wrap(
        text, _WIDTH, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace("\0", " ") for line in lines]


def _unit(x: Interface, port: PortInterface) -> str:
    """Return the unit of a port; of alternatives the one that all joints have."""
    units = set(x.position_units if "nq" in port.axes else x.velocity_units)
    alternatives = port.unit.split(" | ")  # for rotating and sliding joints
    if len(alternatives) == 2 and len(units) == 1 and units <= {"rad", "m"}:
        return alternatives[units == {"m"}]
    return port.unit


def _use(x: Interface) -> str:
    arguments = [*(port.c_name for port in x.ports), "scratch"]
    head = f"int64_t status = {x.prefix}_call("
    call = "\n    ".join(_wrapped(head, arguments, "    ", ")"))
    return _USE.format(alignment=ALIGNMENT, macro=x.macro, prefix=x.prefix, call=call)


def _rules(x: Interface) -> str:
    finite = _ANSWERED if x.answers_all else _FINITE if x.finite else _NOT_FINITE
    finite = finite.format(macro=x.macro)
    parts = [
        rule.format(prefix=x.prefix, macro=x.macro, alignment=ALIGNMENT, finite=finite)
        for rule in _RULES
    ]
    return "\n\n".join("\n".join(wrap(part, _WIDTH)) for part in parts)


def _macros(x: Interface, batch: bool) -> list[str]:
    """Return groups of #define lines, each behind a title; of equal names the first."""
    groups: list[tuple[str, list[tuple[str, object]]]] = [
        (
            "Which robot and algorithm this is",
            [
                ("MODEL_HASH", c_string(x.model_hash)),
                ("KERNEL_HASH", c_string(x.kernel_hash)),
            ],
        ),
        ("Bytes of scratch memory", [("SCRATCH", x.scratch)]),
        ("Bytes of stack that a call needs at most", [("STACK", x.stack)]),
    ]
    if batch:
        groups[-2][1].append(("BATCH_SCRATCH", x.batch_scratch))
        groups.append(("Rows that the batch computes at once", [("LANES", x.lanes)]))
    if x.positions:
        counts = [("NQ", len(x.positions)), ("NV", len(x.velocities))]
        groups += [
            ("Positions, velocities, moving bodies", [*counts, ("NB", len(x.bodies))]),
            ("Places of the joints in q", _places("Q", x.positions)),
            ("Places of the joints in qd", _places("V", x.velocities)),
            *_limits(x),
        ]
    sizes = [(f"SIZE_{port.c_name}", port.size) for port in x.ports]
    groups.append(("Entries of each input and output", [*sizes]))
    if x.finite:
        codes = [
            ("NOT_FINITE_INPUT", f"({NOT_FINITE_INPUT})"),
            ("NOT_FINITE_RESULT", f"({NOT_FINITE_RESULT})"),
        ]
        groups.append(("Statuses besides 0 and those of the algorithm", [*codes]))
    lines, known = [], set[str]()
    for title, names in groups:
        lines.append(f"/* {title}. */")
        for name, value in names:
            if name not in known:  # C identifiers of two joints may be equal
                lines.append(f"#define {x.macro}_{name} {value}")
            known.add(name)
    return lines


def _limits(x: Interface) -> list[tuple[str, list[tuple[str, object]]]]:
    """Return groups (title, macros) of the robot's limits; a macro is (name, value).

    Names, without PREFIX, are LOWER_, UPPER_, VELOCITY_ or EFFORT_ and the coordinate
    of qd; values are C texts such as "(-1.5)".
    """
    groups: list[tuple[str, list[tuple[str, object]]]] = []
    for kind, unit in (
        ("lower", "rad | m"), ("upper", "rad | m"), ("velocity", "rad/s | m/s"),
        ("effort", "N.m | N"),
    ):  # fmt: skip
        values = [getattr(limits, kind) for limits in x.limits]
        names: list[tuple[str, object]] = [
            (f"{kind.upper()}_{identifier(name)}", f"({value!r})")
            for name, value in zip(x.velocities, values, strict=True)
            if value is not None
        ]
        if names:
            groups.append((f"Limits of the robot: {kind} [{unit}]", names))
    return groups


def _places(letter: str, names: Sequence[str]) -> list[tuple[str, object]]:
    return [(f"{letter}_{identifier(name)}", k) for k, name in enumerate(names)]


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
        *(f"    case {code}: return {c_string(text)};" for code, text in cases),
        '    default: return "no such status";',
        "    }",
        "}",
    ]
    return "\n".join(lines)


def _arguments(
    x: Interface, rows: bool
) -> tuple[list[str], Sequence[str], Sequence[str]]:
    """Return declarations of arguments, and C expressions of entries of `in`, `out`.

    For rows all arguments are pointers, for one state inputs of shape () are numbers.
    """
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
    """Return C lines that declare the tables `in` and `out` and fill them."""
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
        *_wrapped(head, [*named, "void *scratch"], "    ", ")\0{"),
        *_tables(x, inputs, outputs),
        f"    return {x.prefix}(in, out, scratch);",
        "}",
    ]
    return "\n".join(lines)


def _named_rows(x: Interface) -> str:
    """Return the C code of PREFIX_rows, for C-order arrays (rows, ...), none shared."""
    named, inputs, outputs = _arguments(x, rows=True)
    head, named = f"static inline int64_t {x.prefix}_rows(", ["int64_t rows", *named]
    lines = [
        "/* Rows of C-order arrays (rows, ...); status: rows numbers. */",
        *_wrapped(head, [*named, "int64_t *status", "void *scratch"], "    ", ")\0{"),
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
