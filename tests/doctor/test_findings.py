"""dyn doctor: every kind of finding has a robot that has it; a clean robot has none."""

import json
import re
import sys

import pytest

import dyn_core as dyn
from dyn_core import robots
from dyn_core.errors import ModelError, SettingError
from dyn_core.model.sources.origin import Origin
from dyn_core.model.urdf_xml.xml_text import parse_xml
from dyn_core.reports.doctor.catalogue import CATALOGUE, ERROR, SEVERITIES
from dyn_core.reports.doctor.examine import as_json
from dyn_core.reports.doctor.facts import of_xml

CLEAN = """<robot name="clean">
  <link name="base"/>
  <link name="upper">
    <inertial><origin xyz="0 0 0.2"/><mass value="2"/>
      <inertia ixx="0.0283" ixy="0" ixz="0" iyy="0.0283" iyz="0" izz="0.0033"/></inertial>
    <collision><origin xyz="0 0 0.2"/><geometry><box size="0.1 0.1 0.4"/></geometry></collision>
  </link>
  <link name="fore">
    <inertial><origin xyz="0 0 0.2"/><mass value="1"/>
      <inertia ixx="0.0142" ixy="0" ixz="0" iyy="0.0142" iyz="0" izz="0.0017"/></inertial>
    <collision><origin xyz="0 0 0.2"/><geometry><cylinder radius="0.05" length="0.4"/></geometry></collision>
  </link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="50" velocity="3"/>
    <dynamics damping="0.1"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/>
    <origin xyz="0 0 0.4" rpy="0 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-2.5" upper="2.5" effort="20" velocity="3"/><dynamics damping="0.1"/></joint>
</robot>"""
ARMATURE = {"armature": {"shoulder": 0.1, "elbow": 0.1}}
LIMIT = 'lower="-2" upper="2" effort="50" velocity="3"'
PART = """<link name="part"><inertial><mass value="{}"/>
  <inertia ixx="{}" ixy="0" ixz="0" iyy="{}" iyz="0" izz="{}"/></inertial>
  {}</link><joint name="screw" type="fixed"><parent link="upper"/><child link="part"/></joint></robot>"""
THIRD = """<link name="hand"><inertial><origin xyz="0 0 0.05"/><mass value="0.5"/>
  <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/></inertial></link>
  <joint name="wrist" type="revolute"><parent link="fore"/><child link="hand"/><origin xyz="0 0 0.4"/>
  <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="5" velocity="3"/>{}</joint></robot>"""
BALL = """<link name="a"/><link name="b"/><link name="hand"><inertial><origin xyz="0 0 0.05"/><mass value="0.5"/>
  <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/></inertial></link>
  <joint name="y1" type="continuous"><parent link="fore"/><child link="a"/><origin xyz="0 0 0.4"/><axis xyz="1 0 0"/><limit effort="5" velocity="3"/></joint>
  <joint name="y2" type="continuous"><parent link="a"/><child link="b"/><origin rpy="1.5707963267948966 0 0"/><axis xyz="0 0 1"/><limit effort="5" velocity="3"/></joint>
  <joint name="y3" type="continuous"><parent link="b"/><child link="hand"/><axis xyz="0 1 0"/><limit effort="5" velocity="3"/></joint></robot>"""
FINGER = """<link name="{0}"><inertial><mass value="0.05"/>
  <inertia ixx="0.0001" ixy="0" ixz="0" iyy="0.0001" iyz="0" izz="0.0001"/></inertial></link>
  <joint name="{0} slide" type="prismatic"><parent link="fore"/><child link="{0}"/><origin xyz="0 {1} 0.4"/>
  <axis xyz="0 {2} 0"/><limit lower="0" upper="0.04" effort="5" velocity="1"/></joint>"""
LOOP = {"name": "ring", "kind": "point", "b": "fore", "at_b": {"xyz": [0, 0, 0.4]}}
UPPER = 'ixx="0.0283" ixy="0" ixz="0" iyy="0.0283" iyz="0" izz="0.0033"'
FORE = 'ixx="0.0142" ixy="0" ixz="0" iyy="0.0142" iyz="0" izz="0.0017"'


def moments(x, y, z):
    return f'ixx="{x}" ixy="0" ixz="0" iyy="{y}" iyz="0" izz="{z}"'


def part(mass, x, y, z, shape=""):
    return ("</robot>", PART.format(mass, x, y, z, shape))


def loop_to(x, z):
    return {**ARMATURE, "loops": [{**LOOP, "at_a": {"xyz": [x, 0, z]}}]}


SHOULDER = '<axis xyz="0 1 0"/><limit lower="-2" '
ELBOW = '<origin xyz="0 0 0.4" rpy="0 0 0"/>'
SMALL_BOX = (
    '<collision><geometry><box size="0.001 0.001 0.001"/></geometry></collision>'
)
NO_UPPER = (re.search(r"<inertial>.*?</inertial>", CLEAN, re.S)[0], "")
NO_SHAPE = (re.search(r"<collision>.*?</collision>", CLEAN, re.S)[0], "")
NO_FORE = (CLEAN[CLEAN.index("<inertial>", CLEAN.index("fore")) : CLEAN.index("<collision>", CLEAN.index("fore"))], "")  # fmt: skip
# By code: replacements in CLEAN, and the sidecar where it is another one.
CASES = {
    "unreadable": ([("</robot>", "")],),
    "refused": ([('<parent link="upper"/>', '<parent link="uper"/>')],),
    "broken-tree": ([('<parent link="upper"/>', '<parent link="uper"/>')],),
    "impossible-inertia": ([(UPPER, moments(0.5, 0.0283, 0.0033))],),
    "zero-axis": ([(SHOULDER, SHOULDER.replace("1", "0"))],),
    "reversed-limits": ([(LIMIT, LIMIT.replace("-2", "2").replace('upper="2"', 'upper="-2"'))],),
    "no-inertia-along": ([NO_FORE], {"armature": {"shoulder": 0.1}}),
    "lost-mimic": ([(LIMIT + "/>", LIMIT + '/><mimic joint="nothing"/>')],),
    "far-origin": ([(ELBOW, '<origin xyz="0 0 4000"/>')],),
    "open-loop": ([], loop_to(50.0, 0.0)),
    "impossible-part": ([part(0.1, 0.001, 0.0001, 0.0001)],),
    "moments-without-mass": ([part(0, 0.001, 0.001, 0.001)],),
    "shape-without-mass": ([NO_UPPER],),
    "improbable-inertia": ([(UPPER, moments(2.83, 2.83, 0.33))],),
    "improbable-density": ([('<mass value="2"/>', '<mass value="2000"/>')],),
    "centre-outside": ([('<origin xyz="0 0 0.2"/><mass value="2"/>', '<origin xyz="0 0 2"/><mass value="2"/>')],),
    "inertia-units": ([NO_SHAPE, (UPPER, moments(28300, 28300, 3300))],),
    "mass-units": ([('<mass value="2"/>', '<mass value="2000"/>')],),
    "limits-in-degrees": ([(LIMIT, LIMIT.replace("2", "90"))],),
    "angles-in-degrees": ([(ELBOW, ELBOW.replace("0 0 0\"", "0 90 0\""))],),
    "lengths-in-millimetres": ([(ELBOW, '<origin xyz="0 0 60"/>')],),
    "missing-limits": ([(f"<limit {LIMIT}/>", "")],),
    "zero-range": ([(LIMIT, LIMIT.replace("-2", "0").replace('upper="2"', 'upper="0"'))],),
    "no-effort-limit": ([(LIMIT, LIMIT.replace("50", "0"))],),
    "follower-range": ([(LIMIT + "/>", LIMIT + '/><mimic joint="elbow" offset="100"/>')],),
    "zero-mimic": ([(LIMIT + "/>", LIMIT + '/><mimic joint="elbow" multiplier="0"/>')],),
    "weak-effort": ([(LIMIT, LIMIT.replace("50", "5"))],),
    "ill-conditioned": ([(ELBOW, ""), ('<mass value="2"/>', '<mass value="1e-12"/>'), (UPPER, moments(1e-12, 1e-12, 1e-12))], {}),
    "large-armature": ([], ARMATURE | {"armature": {"elbow": 1e5}}),
    "large-friction": ([('<dynamics damping="0.1"/></joint>\n  <joint', '<dynamics damping="0.1" friction="500"/></joint>\n  <joint')],),
    "loading": ([(f"<inertia {UPPER}/>", "")],),
    "concentrated-inertia": ([(UPPER, moments(2.8e-4, 2.8e-4, 3.3e-5))],),
    "light-placeholder": ([part(0.001, 0.001, 0.001, 0.001, SMALL_BOX)],),
    "tiny-mass": ([('<mass value="1"/>', '<mass value="1e-6"/>'), (FORE, moments(1e-8, 1e-8, 1e-9))],),
    "massless-body": ([NO_UPPER],),
    "placeholder-inertia": ([(FORE, UPPER), part(1.5, 0.0283, 0.0283, 0.0033)],),
    "no-velocity-limit": ([(LIMIT, LIMIT.replace("3", "0"))],),
    "neutral-outside": ([(LIMIT, LIMIT.replace("-2", "1"))],),
    "axis-not-unit": ([(SHOULDER, SHOULDER.replace("1", "3"))],),
    "axis-almost-straight": ([(SHOULDER, SHOULDER.replace("1 0", "1 1e-4"))],),
    "rounded-angle": ([(ELBOW, ELBOW.replace("0 0 0\"", "0 1.57 0\""))],),
    "mimic-chain": ([("</robot>", THIRD.format('<mimic joint="elbow"/>')), ('upper="2.5" effort="20" velocity="3"/>', 'upper="2.5" effort="20" velocity="3"/><mimic joint="shoulder"/>')],),
    "loop-gap": ([], loop_to(0.5, 0.3)),
    "dependent-rows": ([], loop_to(0.5, 0.3)),
    "idle-motion": ([(ELBOW, "")],),
    "meshes-unread": ([('<box size="0.1 0.1 0.4"/>', '<mesh filename="nowhere.stl"/>')],),
    "left-out": ([("</robot>", "<gazebo/></robot>")],),
    "sidecar-rotors": ([], {}),
    "sidecar-friction": ([('<dynamics damping="0.1"/>', "")],),
    "sidecar-ball": ([("</robot>", BALL)],),
    "sidecar-gear": ([("</robot>", FINGER.format("left", 0.02, 1) + FINGER.format("right", -0.02, -1) + "</robot>")],),
}  # fmt: skip


def text_of(code):
    """Return the file and the sidecar of a robot with a finding."""
    replacements, *extras = CASES[code]
    text = CLEAN
    for old, new in replacements:
        assert old in text, (code, old)
        text = text.replace(old, new)
    return text, extras[0] if extras else ARMATURE


def examined(code, **options):
    text, extras = text_of(code)
    return dyn.doctor(text, extras=extras, samples=60, **options)


def codes(report):
    return {finding.code for finding in report.findings}


def test_a_clean_robot_has_no_findings():
    """Neither errors nor warnings nor hints."""
    report = dyn.doctor(CLEAN, extras=ARMATURE, samples=60)
    assert report.findings == ()
    assert report.notes == ()
    assert "0 errors, 0 warnings, 0 hints" in report.summary


def test_velocities_in_degrees_are_found_at_continuous_joints_too():
    """Their position limits do not act, but show the unit that the file was written in."""
    text = CLEAN.replace('type="revolute"', 'type="continuous"')
    degrees = LIMIT.replace("2", "180").replace('velocity="3"', 'velocity="200"')
    report = dyn.doctor(text.replace(LIMIT, degrees), extras=ARMATURE, samples=60)
    finding = next(x for x in report.findings if x.code == "limits-in-degrees")
    assert [x.fact for x in finding.places] == ["velocity 200 rad/s"]
    fast = text.replace('velocity="3"', 'velocity="200"')
    assert "limits-in-degrees" not in codes(
        dyn.doctor(fast, extras=ARMATURE, samples=60)
    )


def test_every_kind_of_finding_has_its_robot():
    """No kind of finding without a robot that has it, and none beside the catalogue."""
    assert set(CASES) == set(CATALOGUE)


@pytest.mark.parametrize("code", CATALOGUE)
def test_a_robot_with_a_fault_has_its_finding(code):
    """What is wrong is met, named, explained; nothing else of its severity is invented."""
    report = examined(code)
    assert code in codes(report)
    finding = next(x for x in report.findings if x.code == code)
    assert finding.severity == CATALOGUE[code].severity
    assert all(place.fact for place in finding.places)
    assert all(
        f"{x.owner}: {x.owner}" not in str(report) for x in finding.places if x.owner
    )
    assert finding.kind.meaning[-1] == finding.kind.remedy[-1] == "."
    assert finding.kind.title in str(report)
    if report.errors:
        assert all(x.severity == ERROR for x in report.findings[: len(report.errors)])


# Faults that come with another one.
COMPANIONS = {
    "impossible-inertia": {"improbable-inertia"},
    "zero-axis": {"refused"}, "broken-tree": {"refused"}, "refused": {"broken-tree"},
    "far-origin": {"lengths-in-millimetres", "weak-effort"}, "open-loop": {"dependent-rows"},
    "improbable-density": {"mass-units", "weak-effort", "concentrated-inertia"},
    "mass-units": {"improbable-density", "weak-effort", "concentrated-inertia"},
    "lengths-in-millimetres": {"weak-effort"}, "loop-gap": {"dependent-rows"},
    "dependent-rows": {"loop-gap"}, "centre-outside": {"weak-effort"},
    "ill-conditioned": {"idle-motion", "sidecar-rotors", "light-placeholder", "tiny-mass"},
    "moments-without-mass": {"loading"}, "loading": {"concentrated-inertia"},
    "tiny-mass": {"light-placeholder"}, "sidecar-ball": {"massless-body"},
    "massless-body": {"shape-without-mass"}, "shape-without-mass": {"massless-body"},
    "no-inertia-along": {"shape-without-mass"},
    "missing-limits": {"no-effort-limit", "no-velocity-limit"},
}  # fmt: skip


@pytest.mark.parametrize("code", CATALOGUE)
def test_a_fault_brings_no_unrelated_findings(code):
    """Beside a fault stand only findings that follow from it."""
    assert codes(examined(code)) - {code} <= COMPANIONS.get(code, set())


INERTIAL = '<origin xyz="0 0 0.2"/><mass value="1"/>'
BARE = CLEAN[CLEAN.rindex("<collision>") : CLEAN.rindex("</collision>") + 12]
NEIGHBOURS = {
    "inertial": ("angles-in-degrees", [(INERTIAL, INERTIAL.replace("/>", ' rpy="0 0 90"/>', 1))]),
    "collision": ("angles-in-degrees", [('0.2"/><geometry><box', '0.2" rpy="0 0 90"/><geometry><box')]),
    "speed": ("limits-in-degrees", [(LIMIT, LIMIT.replace("3", "180"))]),
    "tiny moments": ("inertia-units", [(BARE, ""), (FORE, moments(9e-9, 9e-9, 9e-9))]),
    "far centre": ("far-origin", [(BARE, ""), (INERTIAL, INERTIAL.replace("0.2", "-500"))]),
}  # fmt: skip


@pytest.mark.parametrize("what", NEIGHBOURS)
def test_neighbours_of_a_fault_are_found(what):
    """Links beside joints, speeds beside positions, too small beside too large."""
    code, replacements = NEIGHBOURS[what]
    text = CLEAN
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    report = dyn.doctor(text, extras=ARMATURE, samples=60)
    follows = {"far-origin": {"weak-effort", "rounded-angle"}}
    assert codes(report) - {code} <= follows.get(code, set())
    (finding,) = (x for x in report.findings if x.code == code)
    assert finding.severity == CATALOGUE[code].severity
    assert len(finding.places) == 1


def test_a_moving_link_with_a_shape_has_mass():
    """Behind a joint that moves, and as a whole body; not frames, nor what stands."""

    def lacking(text):
        report = dyn.doctor(text, extras=ARMATURE, samples=60)
        findings = [x for x in report.findings if x.code == "shape-without-mass"]
        return [(place.owner, place.fact) for x in findings for place in x.places]

    fact = "it has no <inertial> with a mass, and counts as mass 0"
    shape = re.search(r"<collision>.*?</collision>", CLEAN, re.S)[0]
    text = CLEAN.replace(*NO_UPPER)
    assert lacking(text) == [("link 'upper'", fact)]
    refused = text.replace('<parent link="upper"/>', '<parent link="uper"/>')
    assert lacking(refused) == [("link 'upper'", fact)]
    assert lacking(CLEAN.replace(*NO_FORE)) == [("link 'fore'", fact)]
    assert lacking(text.replace(shape, "")) == []
    assert lacking(CLEAN.replace('"base"/>', f'"base">{shape}</link>', 1)) == []
    old, camera = part(0, 0, 0, 0, shape)
    assert lacking(CLEAN.replace(old, camera)) == []
    bare = text.replace(shape, "")  # a frame behind the joint, its shape fixed to it
    assert lacking(bare.replace(old, camera)) == [("link 'part'", fact)]


def test_a_refused_file_is_examined_as_far_as_it_can_be_read():
    """Why it is refused comes with what else is wrong with its links and joints."""
    text = text_of("zero-axis")[0].replace(UPPER, moments(0.5, 0.0283, 0.0033))
    report = dyn.doctor(text.replace("-2.5", "9"), extras=ARMATURE)
    wanted = {"refused", "zero-axis", "impossible-inertia", "reversed-limits"}
    assert wanted <= codes(report)
    assert not any(name.startswith("condition") for name, _ in report.figures)


def test_all_that_is_no_tree_is_named():
    """Unknown links, two parents, equal names, several roots: each one of them."""
    text = text_of("refused")[0].replace(
        '<link name="base"/>', '<link name="base"/>' * 2
    )
    report = dyn.doctor(text)
    finding = next(x for x in report.findings if x.code == "broken-tree")
    facts = " ".join(place.fact for place in finding.places)
    assert "'uper' does not exist" in facts
    assert "is there 2 times" in facts
    assert "roots" in facts


def with_lines(code):
    """Return the robot of a case with the lines that its report offers."""
    finding = next(x for x in examined(code).findings if x.code == code)
    return dyn.load(text_of(code)[0], extras=finding.lines)


@pytest.mark.filterwarnings("ignore::dyn_core.errors.ModelWarning")
def test_lines_for_the_sidecar_can_be_pasted():
    """Each hint's lines load, and do what they say."""
    assert list(with_lines("sidecar-rotors").flat("armature")) == pytest.approx(
        [0.1] * 2
    )
    assert list(with_lines("sidecar-friction").flat("friction")) == [0.1, 0.1]
    assert with_lines("no-effort-limit").effort_limit[0] == 10.0
    units = {x.code: x.lines for x in examined("sidecar-friction").findings}
    assert "friction: 0.1}  # N·m·s/rad, N·m" in units["sidecar-friction"]
    ball = with_lines("sidecar-ball")
    assert (ball.nv, ball.joint[ball.body_of_joint("y3")].kind) == (5, "spherical")
    gear = with_lines("sidecar-gear")
    assert gear.followers["right slide"].leader == "left slide"


QUARTER = 'rpy="0 1.5707963267948966 0"'
AS_QUATERNION = 'quat_xyzw="0 0.7071067811865476 0 0.7071067811865476"'


def test_a_quaternion_of_a_joint_is_examined_like_its_angles():
    """A ball joint is not suggested where two of three axes are parallel."""
    text, extras = text_of("sidecar-ball")
    by_angles = text.replace('rpy="1.5707963267948966 0 0"', QUARTER)
    by_four = by_angles.replace(QUARTER, AS_QUATERNION)
    assert by_four != by_angles != text
    wanted, seen = (codes(dyn.doctor(x, extras=extras)) for x in (by_angles, by_four))
    assert wanted == seen
    assert "sidecar-ball" not in seen


@pytest.mark.parametrize("turn", [QUARTER, AS_QUATERNION])
def test_a_turned_inertia_is_examined_along_the_axes_of_its_link(turn):
    """The smallest moment is about x after a quarter turn about y."""
    text = CLEAN.replace('<origin xyz="0 0 0.2"/><mass', f"<origin {turn}/><mass")
    upper = of_xml(parse_xml(text), Origin()).links[1]
    assert upper.Ic.diagonal().tolist() == pytest.approx([0.0033, 0.0283, 0.0283])


def test_a_quaternion_that_is_no_rotation_is_refused_in_words():
    """What else is wrong with the robot is still examined."""
    text = CLEAN.replace('rpy="0 0 0"', 'quat_xyzw="0 0 0 0"').replace("-2.5", "9")
    assert {"refused", "reversed-limits"} <= codes(dyn.doctor(text, extras=ARMATURE))


def test_a_model_is_examined_like_its_file():
    """A Model that was loaded has the findings of its file, as far as it keeps them."""
    text, extras = text_of("weak-effort")
    of_file = dyn.doctor(text, extras=extras)
    of_model = dyn.doctor(dyn.load(text, extras=extras))
    assert codes(of_file) == codes(of_model) == {"weak-effort"}
    assert of_file.findings == of_model.findings


@pytest.mark.parametrize(
    ("path", "numbers"),
    [
        ("link3.inertia", [1.0, 0.0, 0.0, 0.1, 0.0, 0.1]),
        ("link3.inertia", [-1.0, 0.0, 0.0, 0.1, 0.0, 0.1]),
        ("tool.payload", [-1.0] + [0.0] * 9),
    ],
)
def test_a_changed_inertia_is_examined(path, numbers):
    """That of the file was, and an impossible payload had no finding."""
    model = dyn.load("arm7").with_values({path: numbers})
    link = path.split(".")[0]
    met = [x for x in dyn.doctor(model, samples=1).findings if link in str(x)]
    assert any(x.code.startswith("impossible-") for x in met)


def test_reports_repeat():
    """The same seed gives the same report; another one other figures."""
    one, same, other = (dyn.doctor(CLEAN, seed=seed, samples=20) for seed in (0, 0, 1))
    assert one == same
    assert one.figures != other.figures


def test_weight_is_compared_with_the_limit():
    """The largest weight of an arm is that of all links stretched out."""
    text, extras = text_of("weak-effort")
    report = dyn.doctor(text, extras=extras, samples=4000)
    fact = next(x for x in report.findings if x.code == "weak-effort").places[0].fact
    stretched = 9.81 * (2 * 0.2 + 1 * 0.6)
    assert float(fact.split()[0]) == pytest.approx(stretched, rel=0.01)


@pytest.mark.parametrize("name", robots.names())
def test_shipped_robots_have_no_errors(name):
    """No errors, no warnings but of limits that a robot leaves open."""
    report = dyn.doctor(name, samples=40)
    assert report.errors == ()
    assert {x.code for x in report.warnings} <= {"no-effort-limit"}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        # The moments of link 1 were identified: they fit the motion, and no body.
        ("panda", {"improbable-inertia"}),
        # This file gives wrists of 1.2 kg and 8 cm the inertia of an arm.
        ("ur5", {"improbable-inertia", "centre-outside"}),
        ("go2", set()),
        ("xarm7", set()),
        ("z1", set()),
    ],
)
def test_good_robots_raise_no_false_alarm(name, wanted):
    """Robots in daily use have the warnings that are known of their files."""
    pytest.importorskip("coal")
    from dyn_core.model.sources import example_robots

    if name not in example_robots.files():
        pytest.skip("example-robot-data is not installed")
    report = dyn.doctor(name, samples=40)
    assert report.errors == ()
    assert {x.code for x in report.warnings} == wanted


def test_mjcf_is_examined():
    """A robot of MJCF has the checks of its Model."""
    pytest.importorskip("mujoco")
    text = """<mujoco><worldbody><body name="rod"><joint name="hinge" axis="0 1 0"/>
      <geom type="capsule" size="0.02 0.2"/><geom type="box" size="0.1 0.1 0.1"/>
      </body></worldbody></mujoco>"""
    report = dyn.doctor(text)
    assert "no-effort-limit" in codes(report)
    assert report.errors == ()


def test_mjcf_without_mujoco_is_a_finding(monkeypatch):
    """As any robot that does not load; the sentence says what to install."""
    monkeypatch.setitem(sys.modules, "mujoco", None)
    report = dyn.doctor("<mujoco><worldbody/></mujoco>")
    (error,) = report.errors
    assert error.code == "refused"
    assert "pip install 'dyn_ros[mjcf]'" in str(report.as_dict()["findings"])


@pytest.mark.parametrize(
    "wrong", [moments(0.5, 0.0283, 0.0033), moments(-0.1, 0.02, 0.02)]
)
def test_a_link_of_impossible_inertia_is_compared_with_its_shape(wrong):
    """Its mass and its centre of mass may be wrong, too."""
    text = CLEAN.replace(UPPER, wrong).replace(
        '<mass value="2"/>', '<mass value="2000"/>'
    )
    text = text.replace('<origin xyz="0 0 0.2"/>', '<origin xyz="0 0 2"/>', 1)
    reported = codes(dyn.doctor(text, extras=ARMATURE))
    assert {"impossible-inertia", "improbable-density", "centre-outside"} <= reported
    assert "concentrated-inertia" not in reported or "-0.1" not in wrong


def test_what_is_no_option_is_refused():
    """An unknown option, an option for a Model, a file that is not there."""
    with pytest.raises(SettingError, match="did you mean 'extras'"):
        dyn.doctor(CLEAN, extra={})
    with pytest.raises(SettingError, match="root_joint"):
        dyn.doctor(dyn.load(CLEAN), root_joint="floating")
    with pytest.raises(ModelError, match=r"nowhere\.urdf"):
        dyn.doctor("nowhere.urdf")
    for wrong in (None, 5, [CLEAN]):
        with pytest.raises(ModelError, match="robot is .*; valid: a Model, a path"):
            dyn.doctor(wrong)


def test_json_has_all():
    """Counts, findings with words and places, figures."""
    data = json.loads(json.dumps(examined("sidecar-gear").as_dict()))
    assert data["counts"] == {f"{x}s": int(x == "hint") for x in SEVERITIES}
    assert data["findings"][0]["code"] == "sidecar-gear"
    assert data["findings"][0]["sidecar"].startswith("gears:")
    assert data["figures"]["mass"].startswith("3.1 kg")


@pytest.mark.parametrize(
    "number", ["1e120", "1e308", "-1e308", "1e-320", "nan", "inf", "x", ""]
)
@pytest.mark.parametrize(
    "place", ['0.4" rpy', "0.0283", '<mass value="2', 'upper="2" effort']
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_of_any_size_are_examined(place, number):
    """What no robot has is a report, with or without a Model, never a foreign error."""
    wanted = re.sub(r"[\d.]+", number, place, count=1)
    assert place in CLEAN
    report = dyn.doctor(CLEAN.replace(place, wanted), extras=ARMATURE, samples=3)
    assert json.loads(as_json(report))["robot"] == "clean"


def test_a_rule_of_a_fixed_joint_is_no_error():
    """It is left out, and nothing moves that it would have moved."""
    text, extras = text_of("impossible-part")
    text = text.replace(
        'child link="part"/>', 'child link="part"/><mimic joint="screw"/>'
    )
    assert codes(dyn.doctor(text, extras=extras)) == {"impossible-part", "left-out"}


def test_joints_without_a_motor_need_no_limits_of_one():
    """Passive joints of robots with loops have neither effort limit nor rotor."""
    text = CLEAN.replace('effort="20" velocity="3"', "").replace("-2.5", "-2.4")
    passive = {"joints": {"elbow": {"passive": True}}, **ARMATURE}
    assert codes(dyn.doctor(text, extras=passive, samples=20)) == set()
    assert codes(dyn.doctor(text, extras=ARMATURE, samples=20)) == {
        "no-effort-limit",
        "no-velocity-limit",
    }
