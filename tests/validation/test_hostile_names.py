"""Names of robots, links and joints are text in generated files, whatever they hold."""

import ast
import functools
import io
import json
import random
import re
import shutil
import subprocess
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest
import yaml

import dyn_core as dyn
from dyn_core.engines.llvm import host_machine
from dyn_core.errors import ModelWarning
from dyn_core.export import TARGETS, gpu
from dyn_core.export.folder import for_build_systems
from dyn_core.export.gpu.kernel import header as gpu_header
from dyn_core.identification.identified_files import write_robot, write_sidecar
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.planar.chain.chain import make_chain
from dyn_core.planar.chain.files import load_chain_file, save_chain
from dyn_core.planar.conversion.convert import to_urdf
from dyn_core.plots import Curve, Panel, draw
from dyn_core.recordings import MotionRecord
from dyn_core.reports.doctor.examine import as_json
from dyn_core.reports.doctor.report import page as doctor_page
from dyn_core.reports.write import report_page
from dyn_core.validation import quoting
from dyn_core.view.browser.viewer import Viewer
from ros_nodes.tools.parameter_values import dumped

ROOT = Path(__file__).parents[2]
PARTS = (
    "*/", "/*", "//", "??/", "??", "\\", '"', "'", "`", "``", "\n", "\r", "\t", "\x7f",
    "\x85", "\u2028", "\u202e", "</script>", "<script>", "<!--", "-->", "]]>", "&amp;",
    "&#10;", "$(x)", "$", "$\\frac$", "@x", "%s", "{0}", "{", "#", ": ", "- ", ";",
    "é", "漢", "😀", "=", ",", "]", "[", "_", " ", "Cflags: -I/x", ")", "(", "|", "*/ int x;",
)  # fmt: skip
LINK = (
    '<link name={}><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1"'
    ' iyz="0" izz="1"/></inertial></link>'
)
JOINT = (
    '<joint name={} type="revolute"><parent link={}/><child link={}/><limit lower="-1"'
    ' upper="2" velocity="3" effort="{}"/></joint>'
)
T = np.linspace(0.0, 1.0, 3)
needs_code = pytest.mark.skipif(
    bool(host_machine.missing()), reason=host_machine.missing()
)


def _urdf(names):
    """Return a robot of six names: its own, three of links, two of joints."""
    robot, base, one, two, first, second = map(quoteattr, names)
    links = "".join(LINK.format(name) for name in (base, one, two))
    joints = JOINT.format(first, base, one, 4) + JOINT.format(second, one, two, 5)
    return f"<robot name={robot}>{links}{joints}</robot>"


def _names(seed):
    """Return hostile names, and harmless ones that are mended where those are."""
    draws = random.Random(seed)
    hostile = [
        "".join(draws.choice(PARTS) for _ in range(draws.randint(1, 5))).replace(
            "${", "$"
        )
        + f"{k}"  # what looks like xacro is refused
        for k in range(6)
    ]
    mended = [quoting.mended_name(x) != x for x in hostile]
    plain = [f"{'r' if k == 0 else 'n'}{k}" for k in range(6)]
    return hostile, [
        f"{x}\t" if odd else x for x, odd in zip(plain, mended, strict=True)
    ]


# What is left of a file of a language without its comments and strings.


def c_tokens(text):
    """Return the tokens of C99: trigraphs and line splices first, as a compiler does."""
    for mark, x in zip("=/'()!<>-", "#\\^[]|{}~", strict=True):
        text = text.replace(f"??{mark}", x)
    text = text.replace("\\\n", "")
    token = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[\w.]+|\S'
    found_tokens = re.findall(token, text, re.DOTALL)
    kept = [x for x in found_tokens if not x.startswith(("/*", "//"))]
    return ["TEXT" if x[0] in "\"'" else x for x in kept]


def c_structure(text):
    """Return the tokens of C; macros of coordinates, which have their names, checked."""
    macro = (
        r"#define KERN_(?:Q|V|LOWER|UPPER|VELOCITY|EFFORT)_[A-Za-z0-9_]+ [-()\d.e]+$"
    )
    return c_tokens(re.sub(macro, "", text, flags=re.MULTILINE))


def json_structure(text):
    """Return JSON without the text of its strings and keys, which have names, too."""
    return _shape(json.loads(text))


def yaml_structure(text):
    """Return the documents of YAML without the text of strings and keys."""
    return [_shape(x) for x in yaml.safe_load_all(text)]


def _shape(x):
    if isinstance(x, dict):
        return sorted(map(repr, map(_shape, x.values())))
    if isinstance(x, list):
        return [_shape(v) for v in x]
    return "TEXT" if isinstance(x, str) else x


class _Elements(HTMLParser):
    """Collects elements and names of attributes; scripts and styles word by word."""

    def __init__(self):
        super().__init__()
        self.seen, self.raw = [], ""

    def handle_starttag(self, tag, attrs):
        """Note an element with its attributes."""
        self.seen.append((tag, [k for k, _ in attrs]))
        self.raw = tag if tag in ("script", "style") else ""

    def handle_endtag(self, tag):
        """Note the end of an element."""
        self.seen.append(f"/{tag}")
        self.raw = ""

    def handle_data(self, data):
        """Note scripts and styles."""
        if self.raw:
            self.seen.append(data)

    def handle_comment(self, data):
        """Note comments."""
        self.seen.append("comment")

    handle_decl = handle_pi = unknown_decl = handle_comment


def html_structure(text):
    """Return the elements of HTML with the names of their attributes."""
    parser = _Elements()
    parser.feed(text)
    parser.close()
    return parser.seen


def xml_structure(text):
    """Return the elements of XML with the names of their attributes."""
    return [(x.tag, sorted(x.attrib)) for x in ElementTree.fromstring(text).iter()]


def svg_structure(text):
    """Return the kinds of elements of a picture; letters are elements there."""
    return sorted({x.tag for x in ElementTree.fromstring(text).iter()})


def pc_structure(text):
    """Return the fields of a .pc file; that of Description without its text."""
    fields = [x for x in text.splitlines() if not x.startswith("#")]
    assert not [
        x for x in fields if re.search(r"[#\\$]", x.replace("${pcfiledir}", ""))
    ]
    return ["TEXT" if x.startswith("Description: ") else x for x in fields]


def cmake_structure(text):
    """Return CMake without comments."""
    return re.sub(r"#.*", "", text)


def markdown_structure(text):
    """Return the lines of Markdown; code in backticks, which has names, without text."""
    text = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "CODE", text)
    return re.sub(r"\d+ bytes", "bytes", text).splitlines()


STRUCTURES = {
    ".c": c_structure, ".h": c_structure, ".json": json_structure, ".cmake": cmake_structure,
    ".pc": pc_structure, ".md": markdown_structure, ".html": html_structure, ".yaml": yaml_structure,
    ".urdf": xml_structure, ".xml": xml_structure, ".svg": svg_structure,
}  # fmt: skip


# The writers.


def exported(model, folder):
    """Write the files of an export, of each form where they differ."""
    program = dyn.solver("gravity").build(model, engine="native")
    result = program.export(folder, form="c", variant="batch", name="kern")
    files = {x: (folder / x).read_text(encoding="utf-8") for x in result.files}
    x = result.interface
    more = for_build_systems(x, TARGETS["x86-64"], "object", "kern.o")
    return files | {f"object/{name}": text for name, text in more.items()}


def for_gpus(model):
    """Write a kernel for GPUs; its code is that of every robot here."""
    kernel = _gpu_kernel()
    name = f"gravity for {model.name}"
    yield "gpu.h", gpu_header(replace(kernel, name=name))


@functools.cache
def _gpu_kernel():
    model = dyn.load_urdf(_urdf(["r", "a", "b", "c", "d", "e"]))
    return gpu.ptx(dyn.solver("gravity").build(model, engine="native"))


def examined(model, urdf):
    """Write the pages about a robot: of doctor, of notebooks."""
    report = dyn.doctor(urdf, samples=3, meshes=False)
    yield "doctor.html", doctor_page(report)
    yield "doctor_notebook.html", report._repr_html_()
    yield "doctor.json", as_json(report)
    yield "model.html", model._repr_html_()
    lines = "\n".join(x.lines for x in report.findings if x.lines)
    yield (
        "doctor_lines.yaml",
        lines.replace("\njoints:", "\n---\njoints:").replace(
            "\nrotors:", "\n---\nrotors:"
        ),
    )


def identified(model, folder, names):
    """Write a robot as the files of an identification."""
    (folder / "robot.urdf").write_text(_urdf(names), encoding="utf-8")
    model = _quiet(lambda: dyn.load_urdf(folder / "robot.urdf"))
    heavy = model.with_values({f"{model.frame_names[-1]}.mass": 2.0})
    write_robot(folder / "made.urdf", heavy)
    write_sidecar(folder / "side.yaml", model, f"a file of {names[0]}")
    for name in ("made.urdf", "made.dyn.yaml", "side.yaml"):
        yield name, (folder / name).read_text(encoding="utf-8")
    again = _quiet(lambda: dyn.load_urdf(folder / "made.urdf"))
    assert again.joint_names == model.joint_names


def _quiet(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


def written(names, folder):
    """Write parameters of nodes, planar chains."""
    values = {f"gains.{x}.p": 1.0 for x in names} | {"robot": names[0], "joints": names}
    yield "parameters.yaml", dumped("/node", {"robot": names[0], "joints": names})
    yield "unset.yaml", dumped("/node", {"a": 1.0}, dict.fromkeys(values, 1))
    chain = make_chain(
        lengths=[1, 1], masses=[1, 1, 1], joint_names=names[:3], name=names[0]
    )
    save_chain(chain, folder / "chain.yaml")
    yield "chain.yaml", (folder / "chain.yaml").read_text(encoding="utf-8")
    assert load_chain_file(folder / "chain.yaml").chain.joint_names == tuple(names[:3])
    yield "chain.urdf", to_urdf(chain).urdf


def drawn(names):
    """Write a plot, which has names in its legend, title and label."""
    figure = draw([Panel(names[1], [Curve(T, T, x) for x in names])], names[0])
    output = io.StringIO()
    figure.savefig(output, format="svg")
    yield "plot.svg", output.getvalue()


def _all_files(names, folder, with_plots):
    folder.mkdir()
    model = _quiet(lambda: dyn.load_urdf(_urdf(names)))
    files = dict(examined(model, _urdf(names)))
    files |= dict(identified(model, folder, names))
    files |= dict(written([*map(quoting.mended_name, names)], folder))
    if not host_machine.missing():
        files |= exported(model, folder / "export")
        files |= dict(for_gpus(model))
    if with_plots:
        x, facts = np.zeros((3, 2)), {"robot": names[0]}
        columns = {"q": x, "qd": x, "tau": x, "facts": facts}
        record = MotionRecord(coordinates_of(model), np.arange(3.0), **columns)
        files["report.html"] = report_page([record, record], names[:2])
        files |= _quiet(lambda: dict(drawn(names)))
    return files


@needs_code
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler 'gcc' here")
@pytest.mark.parametrize("standard", ["c99", "gnu17"])
@pytest.mark.parametrize(
    "name",
    [
        "x */ __attribute__((constructor)) static void f(void) { puts(0); } /*",
        "*??/\n/ int f(void) { return not_there; } /*",
        '??/"; int f(void) { return not_there; } const char *g = "',
        "@gravity",
    ],
)
def test_a_robots_name_is_no_code_of_c(name, standard, tmp_path):
    """Comments and strings hold it, with trigraphs and without; the table has it."""
    model = _quiet(lambda: dyn.load_urdf(_urdf([name, "a", "b", "c", "d", "e"])))
    program = dyn.solver("gravity").build(model, engine="native")
    program.export(tmp_path, form="c", name="kern")
    main = '#include <stdio.h>\n#include "kern.h"\n'
    main += "int main(void) { fputs(kern_interface.robot, stdout); return 0; }\n"
    (tmp_path / "main.c").write_text(main)
    command = [
        "gcc",
        f"-std={standard}",
        "-Wall",
        "-Wextra",
        "-Wno-trigraphs",
        "-Werror",
    ]
    files = ["kern.c", "main.c", "-o", "main"]
    subprocess.run([*command, *files], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, check=True)
    assert done.stdout.decode() == model.name
    program.export(tmp_path / "object", name="kern")  # by LLVM, which would refuse it


def test_a_robots_name_is_no_field_of_a_pc_file():
    """A line feed would begin a field: flags of whoever builds with pkg-config."""
    x = FakeInterface("evil\nCflags: -DPWNED #$x")
    lines = for_build_systems(x, TARGETS["x86-64"], "object", "k.o")[
        "k.pc"
    ].splitlines()
    assert [line for line in lines if "PWNED" in line] == [
        "Description: solver gravity for robot evil_Cflags: -DPWNED __x"
    ]
    assert [line.split(":")[0] for line in lines if line[0] != "#"] == [
        "Name", "Description", "Version", "Cflags", "Libs",
    ]  # fmt: skip


class FakeInterface(NamedTuple):
    """What package files read of an Interface."""

    robot: str
    prefix: str = "k"
    solver: str = "gravity"
    library: str = "1"
    notice: tuple[str, ...] = ("SPDX-License-Identifier: x",)


NAMES = ["arm\nCflags: -DX", "base\t", "a\u2028b", "c\x7f", "j\n1", "j\x852"]
MENDED = ["arm_Cflags: -DX", "base_", "a_b", "c_", "j_1", "j_2"]


def test_names_with_control_characters_are_mended_with_a_warning():
    """Of robot, links and joints; both names find a joint, sidecars have the file's."""
    sidecar = {"joints": {NAMES[4]: {"damping": 0.25}}}
    with pytest.warns(ModelWarning, match="control characters in its name"):
        model = dyn.load_urdf(_urdf(NAMES), extras=sidecar, check="error")
    assert [model.name, *model.frame_names, *model.joint_names] == MENDED
    assert float(model.damping[1][0]) == 0.25
    said = [x for x in model.warnings if "control characters" in x]
    assert len(said) == 6 and all(x.isprintable() for x in said)
    assert "robot 'arm\\nCflags: -DX': " in said[0] and "'arm_Cflags: -DX'" in said[0]
    for name in (NAMES[5], MENDED[5]):
        lock = _quiet(lambda name=name: dyn.load_urdf(_urdf(NAMES), lock={name: 0.5}))
        assert lock.joint_names == (MENDED[4],)
        assert lock.warnings == model.warnings
    part = _quiet(lambda: dyn.load_urdf(_urdf(NAMES), root=NAMES[2], tip=NAMES[3]))
    assert part.joint_names == (MENDED[5],)
    assert part.with_values({"j_2.damping": 1.0}).warnings == part.warnings


def test_names_of_mjcf_are_mended():
    """Of bodies, sites and joints, and where equalities and pairs name them."""
    pytest.importorskip("mujoco", reason="mujoco is not installed")
    text = """<mujoco model="m&#10;1"><worldbody><body name="b&#10;1">
      <joint name="j&#10;1" type="hinge"/><geom name="g&#10;1" size="1"/>
      <site name="s&#10;1"/><body name="b&#10;2" pos="1 0 0"><joint name="j&#10;2"
      type="hinge"/><geom size="1"/></body></body></worldbody>
      <contact><exclude body1="b&#10;1" body2="b&#10;2"/></contact>
      <equality><joint joint1="j&#10;1" joint2="j&#10;2" polycoef="0 2 0 0 0"/>
      </equality></mujoco>"""
    with pytest.warns(ModelWarning, match="control characters"):
        model = dyn.load_mjcf(text)
    assert model.name == "m_1" and {"b_1", "b_2", "s_1"} <= set(model.frame_names)
    assert "j_2" in (*model.joint_names, *model.followers)
    names = repr(
        (model.frame_names, model.names, model.followers, model.build.description.pairs)
    )
    assert "\\n" not in names


def test_usual_names_are_left_alone():
    """Letters of any script, spaces and signs; nothing is copied."""
    names = ["Müller-Arm 7.1", "底座", "link/1", "a b", "j:1", "j'2"]
    model = dyn.load_urdf(_urdf(names))
    assert [model.name, *model.frame_names, *model.joint_names] == names
    assert model.warnings == ()


@pytest.mark.parametrize(
    "text", [*PARTS, "".join(PARTS), "yes", "12", "1:30", "null", "~", ""]
)
def test_quoted_text_is_read_back(text):
    """By a parser of each language that has one."""
    assert yaml.safe_load(quoting.yaml_text(text)) == text
    assert yaml.safe_load(f"{quoting.yaml_text(text)}: 1") == {text: 1}
    assert yaml.safe_load(quoting.yaml_comment([text, text])) is None
    assert ast.literal_eval(f"b{quoting.c_string(text)}").decode() == text
    assert "??" not in quoting.c_string(text)
    assert c_tokens(quoting.c_comment(text)) == []
    assert quoting.c_comment(text).isascii() and quoting.c_string(text).isascii()
    parsed = html_structure(
        f'<p title="{quoting.html_text(text)}">{quoting.html_text(text)}</p>'
    )
    assert parsed == [("p", ["title"]), "/p"]
    assert "\n" not in quoting.markdown_code(text) + quoting.pkg_config_field(text)


def test_plots_draw_names_as_they_are():
    """No formula, which matplotlib would refuse, and none left out of a legend."""
    names = ["$\\frac$", "_hidden", "a$b"]
    (axis,) = draw([Panel("$\\x$", [Curve(T, T, x) for x in names])], "$\\y$").axes
    axis.figure.canvas.draw()
    shown = [x.get_text().strip() for x in axis.get_legend().get_texts()]
    assert [x.replace("\\$", "$") for x in shown] == names


def test_notes_of_the_viewer_are_text():
    """They name links and files of meshes, which may look like HTML or Markdown."""
    scene = SimpleNamespace(notes=["link '<img src=//x>' has *no* mesh"], sketch=False)
    shown = Viewer._said(SimpleNamespace(scene=scene), "a & b")
    assert "link &#x27;&lt;img src=//x&gt;&#x27; has *no* mesh" in shown
    assert html_structure(shown) == 2 * [("p", ["style"]), ("i", []), "/i", "/p"]


def test_one_module_writes_foreign_text():
    """No other escapes HTML, or writes XML of attributes as they are."""
    for name in ("dyn_core", "dyn_plugins", "ros_nodes"):
        for path in (ROOT / name).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if path.name == "quoting.py" or {"bench", "testing"} & set(path.parts):
                continue
            for word in ("html import escape", "html.escape", "ElementTree.tostring"):
                assert word not in text, (path, word)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("part", range(20))
def test_files_differ_from_those_of_harmless_names_in_text_alone(
    part, tmp_path, request
):
    """Parsed, without strings and comments, each file is that of a harmless robot.

    The long run has 2000 robots.
    """
    count = 100 if request.config.option.full else 2
    for seed in range(part * count, (part + 1) * count):
        hostile, plain = _names(seed)
        files = _all_files(hostile, tmp_path / f"hostile{seed}", seed % 25 == 0)
        others = _all_files(plain, tmp_path / f"plain{seed}", seed % 25 == 0)
        assert files.keys() == others.keys()
        for name, text in files.items():
            structure = STRUCTURES[Path(name).suffix]
            assert structure(text) == structure(others[name]), (name, hostile)
        for folder in tmp_path.iterdir():
            shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("read from /home/me/My Robots/x.urdf (urdf)", "read from My Robots/x.urdf (urdf)"),
        ("file:///home/me/mesh.stl is missing", "mesh.stl is missing"),
        (r"C:\Users\me\x.urdf, ~/ws/src/y.dae", "x.urdf, y.dae"),
        ("/etc/robots: no mesh; /odd/place/z.stl", "robots: no mesh; z.stl"),
        ("N·m/s, /arm/joint_states, left/arm/joint.1", "N·m/s, /arm/joint_states, left/arm/joint.1"),
        ("package://a/b/c.stl, https://a.b/c/d.html", "package://a/b/c.stl, https://a.b/c/d.html"),
        ("/a.urdf <b>", "/a.urdf &lt;b&gt;"),
    ],
)  # fmt: skip
def test_pages_that_are_sent_around_name_no_folders(text, shown):
    """Topics, units, packages and addresses of the web remain."""
    assert quoting.page_text(text) == shown
