"""Changes of the bytes and lines of a file, whatever it holds."""

from __future__ import annotations

import re
from collections.abc import Callable

from fuzz.draws import Draws

_ENCODINGS = (
    "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "latin-1", "cp1252",
    "cp037", "utf-7", "shift_jis", "gb18030",
)  # fmt: skip
_DECLARED = (
    "utf-8", "UTF-16", "latin-1", "ascii", "hex", "rot13", "base64", "zlib", "idna",
    "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "utf-7", "mbcs",
    "cp037", "none", "x" * 200,
)  # fmt: skip
_NUMBER = re.compile(rb"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")
_TOKEN = re.compile(rb"[\w.+-]+")
_INSERTED = (
    b"\x00", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\r", b"\r\n", b"\t", b"\x0c",
    b"\xe2\x80\xa8", b"<", b">", b"/>", b"&", b"&amp;", b"&#0;", b"&#10;",
    b"&#x110000;",
    b"&lol;", b"'", b'"', b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<?x?>",
    b"<!DOCTYPE robot [<!ENTITY a 'b'>]>", b"<x xmlns:y='z'>", b"</robot>", b"<robot>",
    b"[", b"]", b"{", b"}", b": ", b":", b"- ", b"&a ", b"*a", b"<<: *a\n", b"---\n",
    b"...\n", b"%YAML 9.9\n---\n", b"!!python/object/apply:os.getcwd []",
    b"!!python/name:os.getcwd", b"!!binary AA==", b"!!set {a}", b"!!int x",
    b"!!float []",
    b"!!map [a]", b"!!seq {a: b}", b"!!null [x]", b"!!bool 7", b"!!omap [a: b]",
    b"!!timestamp x", b"!x y", b"? ", b"?\n", b"| \n", b">\n", b"@", b"`", b"#", b"~",
    b"2001-01-01", b"1:30", b"0o7", b"\\", b"%", b"a: b\na: c\n",
)  # fmt: skip


def change_bytes(draws: Draws, content: bytes) -> bytes:
    """Return the content with up to four of its bytes, tokens or lines changed."""
    for _ in range(draws.randrange(1, 5)):
        content = draws.choice(_CHANGES)(draws, content)
    return content


def _place(draws: Draws, content: bytes) -> int:
    return draws.randrange(len(content) + 1)


def _span(draws: Draws, content: bytes) -> tuple[int, int]:
    start = _place(draws, content)
    return start, min(len(content), start + draws.choice((1, 2, 8, 60, 400)))


def _put_byte(draws: Draws, content: bytes) -> bytes:
    start = _place(draws, content)
    return content[:start] + bytes([draws.randrange(256)]) + content[start + 1 :]


def _insert(draws: Draws, content: bytes) -> bytes:
    start = _place(draws, content)
    return content[:start] + draws.choice(_INSERTED) + content[start:]


def _cut(draws: Draws, content: bytes) -> bytes:
    start, end = _span(draws, content)
    return content[:start] + content[end:]


def _double(draws: Draws, content: bytes) -> bytes:
    start, end = _span(draws, content)
    place = _place(draws, content)
    return content[:place] + content[start:end] + content[place:]


def _end_early(draws: Draws, content: bytes) -> bytes:
    return content[: _place(draws, content)]


def _swap_lines(draws: Draws, content: bytes) -> bytes:
    lines = content.split(b"\n")
    i, k = draws.randrange(len(lines)), draws.randrange(len(lines))
    lines[i], lines[k] = lines[k], lines[i]
    return b"\n".join(lines)


def _change_lines(draws: Draws, content: bytes) -> bytes:
    """Leave out a line, double it or shift its start."""
    lines = content.split(b"\n")
    i = draws.randrange(len(lines))
    changed: tuple[list[bytes], ...] = (
        [],
        [lines[i]] * 2,
        [b" " + lines[i]],
        [b"\t" + lines[i]],
        [lines[i][1:]],
    )
    lines[i : i + 1] = draws.choice(changed)
    return b"\n".join(lines)


def _odd_number(draws: Draws, content: bytes) -> bytes:
    """Replace a number by what looks like one."""
    numbers = list(_NUMBER.finditer(content))
    if not numbers:
        return content
    start, end = draws.choice(numbers).span()
    return content[:start] + draws.odd_number().encode() + content[end:]


def _other_token(draws: Draws, content: bytes) -> bytes:
    """Replace a token by another one of the file."""
    tokens = list(_TOKEN.finditer(content))
    if not tokens:
        return content
    start, end = draws.choice(tokens).span()
    return content[:start] + draws.choice(tokens)[0] + content[end:]


def _encode(draws: Draws, content: bytes) -> bytes:
    """Write the text in another encoding than it says."""
    text = content.decode("utf-8", "replace")
    return text.encode(draws.choice(_ENCODINGS), "replace")


def _declare(draws: Draws, content: bytes) -> bytes:
    """Declare an encoding that the text does not have, or that is none."""
    declared = draws.choice(_DECLARED).encode()
    rest = re.sub(rb"^\s*<\?xml[^>]*\?>", b"", content)
    return b'<?xml version="1.0" encoding="' + declared + b'"?>' + rest


def _nest(draws: Draws, content: bytes) -> bytes:
    """Put many levels into a place, closed or not."""
    depth = draws.choice((5, 40, 500, 20_000))
    pairs = (
        (b"<a>", b"</a>"),
        (b"[", b"]"),
        (b"{a: ", b"}"),
        (b"- ", b""),
        (b"(", b")"),
    )
    start, (opened, closed) = _place(draws, content), draws.choice(pairs)
    tail = closed * depth if draws.chance(0.7) else b""
    return content[:start] + opened * depth + tail + content[start:]


def _repeat(draws: Draws, content: bytes) -> bytes:
    """Repeat a short piece often."""
    start, end = _span(draws, content)
    piece = content[start : min(end, start + 30)]
    return content[:start] + piece * draws.choice((10, 300, 3000)) + content[start:]


def _expand(draws: Draws, content: bytes) -> bytes:
    """Add aliases of aliases, or entities of entities."""
    rows = ["a0: &a0 [x, x]"]
    rows += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 12)]
    if draws.chance(0.5):
        rows = ["<!DOCTYPE r ["]
        rows += [f'<!ENTITY a{k} "{f"&a{k - 1};" * 9}">' for k in range(1, 9)]
        rows += ["]>"]
    return "\n".join(rows).encode() + b"\n" + content


_CHANGES: tuple[Callable[[Draws, bytes], bytes], ...] = (
    _put_byte, _insert, _insert, _insert, _cut, _double, _end_early, _swap_lines,
    _change_lines, _change_lines, _odd_number, _odd_number, _odd_number, _other_token,
    _other_token, _encode, _declare, _nest, _repeat, _expand,
)  # fmt: skip
