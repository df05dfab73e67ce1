"""The fuzzer: no file fails, it sees what fails, and what it met once stays mended."""

import os
import re
import subprocess
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
import survey
from fuzz import (
    KINDS,
    Campaign,
    FuzzFile,
    doors,
    draw_file,
    minimised,
    try_file,
)
from fuzz.__main__ import main

import dyn_core as dyn
from dyn_core import robots
from dyn_core.contact.problem.solving import check_options
from dyn_core.errors import LONGEST, one_line
from dyn_core.planar.chain.files import chain_data, load_chain

MANY = {  # with --full: more than 10 000 files
    "urdf": 2000, "mjcf": 1000, "sidecar": 1000, "chain": 500, "world": 500,
    "xacro": 1000, "npz": 1500, "csv": 1000, "bag": 1000, "mesh": 800, "options": 1000,
}  # fmt: skip
FEW = {"xacro": 20, "mesh": 20, "bag": 20, "mjcf": 30}  # slower kinds; 50 of others
TWO_LINK = FuzzFile("urdf", 0, 0, robots.path("two_link").read_bytes(), "bytes")


@pytest.mark.parametrize("kind", KINDS)
def test_no_random_file_fails(kind, full):
    """Each is read and works, or is refused in one sentence; many with --full."""
    count = MANY[kind] if full else FEW.get(kind, 50)
    campaign = Campaign(kind, count, seed=20, budget=5.0)
    campaign.run()
    assert campaign.failures == []
    assert campaign.outcomes["loaded"] >= 2
    assert campaign.outcomes["refused"] >= 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_stands_for_the_same_files(kind):
    """Files are the same in each run, and others for another seed."""
    for number in range(20):
        assert str(draw_file(kind, 3, number)) == str(draw_file(kind, 3, number))
    assert len({str(draw_file(kind, seed, 0)) for seed in range(5)}) > 1
    with pytest.raises(dyn.UnsupportedError, match="did you mean 'chain'"):
        draw_file("chains", 0, 0)


DRAWN = """
from fuzz import KINDS, draw_file
files = [draw_file(kind, 5, number) for kind in KINDS for number in range(60)]
contents = [file.content for file in files if isinstance(file.content, bytes)]
"""


def test_the_same_files_in_another_process():
    """No order of a set has a part in them."""
    space = {}
    exec(DRAWN, space)
    code = f"{DRAWN}\nprint(contents)"
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": path}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert len(space["contents"]) > 120
    assert ran.stdout.strip() == str(space["contents"]), ran.stderr


def _raise(error):
    raise error


def _loop_for_ever():
    while True:
        pass


def _swallow(function):
    try:
        function()
    except Exception:
        pass


FOREIGN, UNCLEAR, SLOW = "foreign exception", "unclear message", "too slow"
PLANTED = {
    "foreign": (lambda: [][0], FOREIGN, "list index"),
    "deep": (lambda: _raise(RecursionError("too deep")), FOREIGN, "too deep"),
    "numpy": (lambda: np.log(np.zeros(1)), FOREIGN, "divide by zero"),
    "hang": (_loop_for_ever, SLOW, "more than 0.1 s"),
    "hidden hang": (lambda: _swallow(_loop_for_ever), SLOW, "more than 0.1 s"),
    "words": (
        lambda: _raise(dyn.ModelError("'NoneType' object has no attribute 'x'")),
        UNCLEAR, "NoneType",
    ),
    "address": (
        lambda: _raise(dyn.SettingError("it is <memory at 0x7f2684c32140>")),
        UNCLEAR, "0x7f",
    ),
    "lines": (lambda: _raise(dyn.SettingError("a b\nc d e f")), UNCLEAR, "a b"),
    "nothing": (lambda: _raise(dyn.ModelError("no")), UNCLEAR, "no"),
    "long": (lambda: _raise(dyn.SettingError("a " * 400)), UNCLEAR, "800 characters"),
}  # fmt: skip


def _planted(monkeypatch, **changes):
    monkeypatch.setitem(doors.DOORS, "urdf", replace(doors.DOORS["urdf"], **changes))


def _failing_at_an_axis(monkeypatch, fault):
    read = doors.DOORS["urdf"].read

    def changed(file, mode):
        if b"<axis" in file.content:
            fault()
        return read(file, mode)

    _planted(monkeypatch, read=changed)


@pytest.mark.parametrize("name", PLANTED)
def test_what_fails_is_seen_and_made_small(monkeypatch, name):
    """Foreign exceptions, hangs, words of Python; the file shrinks to the cause."""
    fault, what, detail = PLANTED[name]
    assert try_file(TWO_LINK) == ("loaded", None)
    _failing_at_an_axis(monkeypatch, fault)
    _, failure = try_file(TWO_LINK, 0.1)
    assert failure.what == what
    assert detail in failure.detail
    if what != SLOW:
        small = minimised(TWO_LINK, failure)
        assert b"<axis" in small.content
        assert len(small.content) < 60


def test_wrong_results_are_seen(monkeypatch):
    """What is read must work, valid files are read, strict reads no more than warn."""
    broken = doors.BrokenResult("inertias are not finite")
    _planted(monkeypatch, examine=lambda *_: _raise(broken))
    assert try_file(TWO_LINK)[1].detail == "inertias are not finite"
    late = dyn.ModelError("too late to say so")
    _planted(monkeypatch, examine=lambda *_: _raise(late))
    assert "once it is read: too late" in try_file(TWO_LINK)[1].detail
    no = dyn.ModelError("no robot is good enough")
    _planted(monkeypatch, read=lambda *_: _raise(no), examine=lambda *_: None)
    assert try_file(TWO_LINK) == ("refused", None)
    assert try_file(replace(TWO_LINK, valid=True))[1].what == "refused"
    late = doors.DOORS["urdf"].modes[1]
    _planted(monkeypatch, read=lambda _, mode: 1 if mode == late else _raise(no))
    assert "loads with error only" in try_file(TWO_LINK)[1].detail


def test_the_command_says_what_failed(monkeypatch, tmp_path, capsys):
    """Status 1, one report for each cause, with kind, seed and number; files."""
    assert main(["--n", "3", "--kind", "chain"]) == 0
    assert "chain: 3 files" in capsys.readouterr().out
    _failing_at_an_axis(monkeypatch, lambda: [][0])
    folder = tmp_path / "failing"
    args = ["--n", "12", "--kind", "urdf", "--seed", "4", "--show", str(folder)]
    assert main(args) == 1
    out = capsys.readouterr().out
    assert out.count("IndexError") == 1
    number = re.search(r"urdf, seed 4, number (\d+): foreign exception", out)[1]
    assert "failures of 1 causes" in out
    small = (folder / f"urdf_4_{number}_small.urdf").read_bytes()
    assert b"<axis" in small
    assert (folder / f"urdf_4_{number}.urdf").read_bytes().count(b"<") > small.count(
        b"<"
    )
    assert "IndexError" in (folder / f"urdf_4_{number}.txt").read_text("utf-8")


# What the fuzzer met, as small files.


def _message(read, *args, **options):
    with pytest.raises(dyn.DynError) as caught:
        read(*args, **options)
    message = str(caught.value)
    assert len(message) <= LONGEST
    assert message.isprintable()
    return message


LONG = "x" * 3000


@pytest.mark.parametrize(
    ("xml", "shown"),
    [
        (f'<robot><link><inertial><mass value="{LONG}"/></inertial></link></robot>',
         r"value=\"xxx.*\.\.\.xxx.* is not a number"),
        (f'<robot><link name="{LONG}"/><link name="b"/></robot>', "2 roots: xxx"),
        ('<robot><joint name="a&#10;b"/></robot>', r"joint 'a\\nb': unknown type"),
        ('<robot><link name="a&#127;"/><link name="b"/></robot>', "roots: a_, b"),
        ("<\udce5", "malformed XML: character 2 is none that UTF-8 can have"),
        (b"<robot>\xff</robot>", "utf-8, .*: byte 8 is not valid there"),
        (b"<?xml version='1.0' encoding='punycode'?><robot/>", "encoding punycode"),
    ],
)  # fmt: skip
def test_errors_of_a_urdf_are_one_line(xml, shown):
    """Names and numbers of any length, with any character, in one short line."""
    assert re.search(shown, _message(dyn.load_urdf, xml))


def test_what_is_no_xml_in_an_unknown_encoding_is_refused():
    """Whether it is a URDF or an MJCF; once a LookupError of a codec."""
    xml = "<?xml version='1.0' encoding='hex'?><robot"
    assert "malformed XML" in _message(dyn.load, xml)


def test_time_grows_with_the_file():
    """Long digits that are no number, long chains of followers: once minutes."""
    digits = "1" * 100_000 + "x"
    xml = f'<robot><link name="a"><inertial><mass value="{digits}"/></inertial></link></robot>'
    links, joints = '<link name="l0"/>', ""
    for k in range(1, 400):
        links += f'<link name="l{k}"/>'
        joints += f"""<joint name="j{k}" type="continuous"><parent link="l{k - 1}"/>
            <child link="l{k}"/><mimic joint="j{max(1, k - 1)}" offset="1"/></joint>"""
    followers = (
        "<robot>" + links + joints.replace('<mimic joint="j1" offset="1"/>', "", 1)
    )
    start = time.process_time()
    assert "is not a number" in _message(dyn.load_urdf, xml)
    with pytest.warns(dyn.errors.ModelWarning):
        model = dyn.load_urdf(followers + "</robot>")
    assert time.process_time() - start < 2.0
    assert model.nv == 1
    assert model.followers["j399"].offset == 398.0


def test_warnings_of_a_urdf_are_one_line():
    """The same for what is doubtful."""
    xml = f'<robot name="r"><link name="{LONG}&#10;" {LONG}="1"/></robot>'
    with pytest.warns(dyn.errors.ModelWarning):
        model = dyn.load_urdf(xml)
    assert model.warnings
    assert all(len(x) <= LONGEST and x.isprintable() for x in model.warnings)


def test_one_line_keeps_what_is_short():
    """Sentences of common length stay as they are; spaces count as they stand."""
    for message in ("a  b", "x" * 200, " ".join("abc" * 40)):
        assert one_line(message) == message
    long = " ".join(["word"] * 500)
    assert one_line(long) == long[: LONGEST - 4] + " ..."
    assert one_line("\ud800\t") == r"\ud800\t"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a: b: c\nd: 1", "line 1, column 5: mapping values are not allowed here"),
        ("a: [1,\n\tb: }", "line 2, column 1: found character "),
        ("? [a]\n: 1", "a key is a list or a mapping"),
        ("a: !x b\n", "unknown tag '!x'"),
        ("a: " + "1" * 5000 + "\n", "a number has too many digits"),
        ("a: \0\n", "character 4 is none that YAML may have"),
        ("a: \ud800\n", r"mapping keys are not allowed here"),
    ],
)
def test_errors_of_yaml_are_one_line(text, shown):
    """Line and column, and PyYAML's reason without its pieces of the file."""
    assert shown in _message(load_chain, text)


@pytest.mark.parametrize("path", ["\ud800", "a\0b"])
def test_what_cannot_be_a_path_is_refused(path):
    """The message is ours, not that of a codec."""
    for read in (load_chain, dyn.load_urdf, dyn.load):
        assert "codec" not in _message(read, path)
    assert "no path has such characters" in _message(load_chain, path)
    assert "no path has such characters" in _message(dyn.load_urdf, path)


def test_values_that_are_no_data_are_named_by_type():
    """Objects of a user's mapping are shown without their address."""
    data = {"lengths": [], "masses": [1.0], "active": memoryview(b"x")}
    assert "active is a memoryview; valid" in _message(load_chain, data)
    data = {"lengths": [print], "masses": [1.0, 1.0]}
    assert "lengths[0] is a builtin_function_or_method" in _message(load_chain, data)
    data["lengths"] = np.zeros((2, 2))
    assert "lengths[0] is [0.0, 0.0]" in _message(load_chain, data)


def test_chains_come_back_as_they_were_written():
    """A single joint has no link; normals of length one keep their bits."""
    one = load_chain({"lengths": [], "masses": [0.9]})
    assert load_chain(chain_data(one)).n == 1
    plane = {"z0": [-3.5, -0.2], "z": [-4.0, 0.53]}
    base = {"lengths": [1.0], "masses": [1.0, 1.0], "base": "line"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        data = {**base, "normal": [-4.0, 0.53], "ground": [plane]}
        chain = load_chain(data)
    again = load_chain(chain_data(chain))
    assert again.ground == chain.ground
    assert again.constraints.s == chain.constraints.s


def test_links_have_a_length_that_can_be_squared():
    """A shorter one once was a ZeroDivisionError."""
    data = {"lengths": [1e-300], "masses": [1.0, 1.0]}
    assert "lengths[0] must be at least 1e-100" in _message(load_chain, data)


def test_options_of_a_contact_solver_are_checked_with_the_world():
    """Names and types of solver_options; before, a step raised a TypeError."""
    world = {"solver": "projected_gauss_seidel", "solver_options": {"tolerance": "c"}}
    assert "option tolerance is 'c'; valid: a number" in _message(dyn.World.of, world)
    world["solver_options"] = {"tolerances": 1e-6}
    assert "did you mean 'tolerance'" in _message(dyn.World.of, world)
    world["solver_options"] = {"tolerance": 1e-6, "engine": "graph"}
    chosen = dyn.World.of(world)
    options = check_options(dyn.solver(chosen.solver), chosen.solver_options)
    assert options == {"tolerance": 1e-6}


def test_options_of_any_type_are_refused():
    """What the fuzzer met: values that cannot be looked up, long ones, control signs."""
    model = dyn.load("two_link")

    def message(solver, **options):
        return _message(dyn.solver(solver).build, model, engine="plain", **options)

    assert "a link is []; valid: the name of one link" in message(
        "operational_inertia", frame=[]
    )
    assert "matrices ['x', 'x'" in message(
        "jacobian", frame="tip", matrices=["x"] * 500
    )
    assert "no engine is called" in _message(
        dyn.solver("rnea").build, model, engine=["native"]
    )
    assert "\\x7f" in message("rnea", **{"a\x7fb": 1})
    reason = message("contact_euler_derivatives", paths=[4.5e-141])
    assert "4.5e-141 is no parameter path" in reason


# The survey, which reads whole folders beside Pinocchio.


def test_a_survey_compares_with_pinocchio(tmp_path, capsys):
    """Each outcome is counted; inverse dynamics of what both load agrees."""
    pytest.importorskip("pinocchio", reason="pin is not installed")
    for name in ("arm7", "two_link", "quadruped", "every_joint"):
        content = robots.path(name).read_text("utf-8")
        (tmp_path / f"{name}.urdf").write_text(content, encoding="utf-8")
    follower = (
        (tmp_path / "two_link.urdf")
        .read_text("utf-8")
        .replace(
            "</joint>\n</robot>",
            '<mimic joint="joint1" multiplier="2"/></joint>\n</robot>',
        )
    )
    (tmp_path / "follower.urdf").write_text(follower, encoding="utf-8")
    light = (tmp_path / "two_link.urdf").read_text("utf-8").replace("ixx=", "iwx=")
    (tmp_path / "light.urdf").write_text(light, encoding="utf-8")
    (tmp_path / "none.urdf").write_text("<robot", encoding="utf-8")
    results = {x.path.stem: x for x in map(survey.survey, sorted(tmp_path.iterdir()))}
    assert {x.outcome for x in results.values()} == {"strict", "warnings", "refused"}
    for name in ("arm7", "two_link", "quadruped", "follower"):
        assert results[name].error <= survey.AGREE, name
    assert results["light"].outcome == "warnings"
    assert "floating" not in results["every_joint"].difference
    assert "planar" in results["every_joint"].difference
    assert results["none"].peer is False
    assert survey.main([str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert f"| {tmp_path.name} | 7 | 5 | 1 | 1 | 0 |" in out
    assert "refused: 1 such as none.urdf: the URDF is malformed XML" in out


def test_a_survey_counts_foreign_exceptions(monkeypatch, tmp_path, capsys):
    """Exit status 1, with the exception and its file."""
    (tmp_path / "a.urdf").write_bytes(TWO_LINK.content)
    monkeypatch.setattr(survey, "load_urdf", lambda *_, **__: [][0])
    assert survey.main([str(tmp_path)]) == 1
    assert "such as a.urdf: IndexError: list index" in capsys.readouterr().out
