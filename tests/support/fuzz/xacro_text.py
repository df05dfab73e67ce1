"""Random xacros: random robots with properties, macros and expressions in them."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from fuzz.draws import Draws
from fuzz.fuzz_file import FuzzFile
from fuzz.mutations import change_bytes
from fuzz.urdf_files import change_elements, draw_robot

_NAMESPACE = "http://www.ros.org/wiki/xacro"
_EXPRESSIONS = (
    "${1 / 0}", "${x}", "${size}", "${pi / 2}", "${1e400}", "${'a' * 3}",
    "${[1, 2][5]}", "${None.x}", "${int('x')}", "${sin('a')}", "$(arg x)",
    "${size * 1e308 * 1e308}",
    "$(arg size)", "$(find gone)", "$(find ..)", "$(env GONE)", "$(optenv GONE 1)",
    "$(eval 1)", "$(cwd)", "$$(arg x)", "$${x}", "${", "$(", "${}", "$()", "${()}",
    "${''.__class__}", "${xacro.load_yaml('a.yaml')}",
    "${dict(a=1)}", "${[x for x in range(9)]}", "${'\\n'}", "${'\\ud800'}",
    "${size ** size ** 9}",
    "${'x' * 10 ** 7}", "${float('nan')}", "${(" + "(" * 300 + "1",
)  # fmt: skip
_PIECES = (
    '<xacro:property name="size" value="0.3"/>',
    '<xacro:property name="size" default="${size}"/>',
    '<xacro:property name="a" value="${b}"/><xacro:property name="b" value="${a}"/>',
    '<xacro:property name="block"><a/></xacro:property>',
    '<xacro:insert_block name="gone"/>',
    '<xacro:arg name="x" default="1"/>',
    '<xacro:arg name="y"/>',
    '<xacro:if value="${size > 1}"><a/></xacro:if>',
    '<xacro:unless value="maybe"><a/></xacro:unless>',
    '<xacro:include filename="gone.xacro"/>',
    '<xacro:include filename="file.xacro"/>',
    '<xacro:include filename="$(find gone)/a.xacro"/>',
    '<xacro:macro name="m" params="a b:=2 *c **d"><link name="${a}"/></xacro:macro>',
    '<xacro:macro name="n" params=""><xacro:n/></xacro:macro><xacro:n/>',
    '<xacro:macro name="o" params="x"><a b="o${x}"/></xacro:macro><xacro:o x="1"/>',
    '<xacro:gone a="1"/>',
    '<xacro:attribute name="a" value="1"/>',
    '<xacro:element xacro:name="b"/>',
    "<xacro:call/>",
)


def draw_xacro(draws: Draws, file: FuzzFile) -> FuzzFile:
    """Draw a xacro: a plain robot, one with odd pieces, or with changed bytes."""
    style = draws.choices(("valid", "odd", "bytes"), (15, 55, 30))[0]
    robot = draw_robot(draws, 0.0)
    if style == "odd" and draws.chance(0.2):
        robot = change_elements(draws, robot)
    text = ElementTree.tostring(robot, encoding="unicode")
    head, mark, rest = text.partition(">")
    pieces = [_PIECES[0]]
    if style != "valid":
        pieces += [draws.choice(_PIECES) for _ in range(draws.randrange(4))]
    text = f'{head} xmlns:xacro="{_NAMESPACE}"{mark}{"".join(pieces)}{rest}'
    if style == "odd":
        for _ in range(draws.randrange(1, 4)):
            text = _with_expression(draws, text)
    content = text.encode("utf-8", "surrogatepass")
    if style == "bytes":
        content = change_bytes(draws, content)
    return replace(file, content=content, suffix=".xacro", valid=style == "valid")


def _with_expression(draws: Draws, text: str) -> str:
    """Put an expression into the place of an attribute's value."""
    starts = [k for k in range(len(text) - 1) if text[k : k + 2] == '="']
    start = draws.choice(starts) + 2
    end = text.find('"', start)
    return text[:start] + draws.choice(_EXPRESSIONS) + text[max(start, end) :]
