"""dyn.load: every kind of source, where packages are searched, xacro, collections."""

import errno
import importlib.util
import io
import os
import pickle
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from bench.cases import named

import dyn_core as dyn
from dyn_core import ModelError, cli, robots
from dyn_core.model.sources import example_robots, robot_descriptions
from dyn_core.model.sources.arguments import named_values
from dyn_core.model.sources.locate import locate
from dyn_core.model.sources.meshes import mesh_file
from dyn_core.model.sources.origin import Origin
from dyn_core.model.sources.packages import Packages, package_folders

ARM = """<robot name="{name}">
  <link name="base"/>
  <link name="arm"><inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1"
    iyz="0" izz="1"/></inertial>{shape}</link>
  <joint name="turn" type="revolute"><parent link="base"/><child link="arm"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="3" velocity="2"/></joint>
</robot>"""
XACRO = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="mass" default="2"/>
  <xacro:arg name="passive" default="true"/>
  <xacro:include filename="$(find arm_parts)/urdf/parts.xacro"/>
  <link name="base"/>
  <xacro:arm mass="$(arg mass)"/>
  <xacro:unless value="$(arg passive)"><link name="tool"/>
    <joint name="grip" type="fixed"><parent link="arm"/><child link="tool"/></joint>
  </xacro:unless>
</robot>"""
PARTS = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:macro name="arm" params="mass">
    <link name="arm"><inertial><mass value="${mass}"/>
      <inertia ixx="${mass / 2}" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
    <joint name="turn" type="continuous"><parent link="base"/><child link="arm"/></joint>
  </xacro:macro>
</robot>"""
MJCF = """<mujoco model="m"><worldbody><body name="arm"><joint name="turn" axis="0 1 0"/>
  <geom type="sphere" size="0.1" mass="${mass}"/></body></worldbody></mujoco>"""
needs_xacro = pytest.mark.skipif(
    importlib.util.find_spec("xacro") is None, reason="xacro is not installed"
)


def arm(name="r", shape=""):
    return ARM.format(name=name, shape=shape)


def package(folder, name, manifest=None, **files):
    """Write a package with files; `__` in a key stands for a dot."""
    place = folder / name
    place.mkdir(parents=True)
    (place / "package.xml").write_text(
        f"<package><name>{manifest or name}</name></package>"
    )
    for key, text in files.items():
        (place / key.replace("__", ".")).write_text(text)
    return place


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    """No search paths but those that a test sets."""
    for name in ("AMENT_PREFIX_PATH", "ROS_PACKAGE_PATH"):
        monkeypatch.delenv(name, raising=False)


# ---- paths, text, names


def test_a_robot_by_path_text_bytes_and_open_file(tmp_path, monkeypatch):
    """Each is the same robot; only a path leaves a file in its origin."""
    path = tmp_path / "r.urdf"
    path.write_text(arm())
    monkeypatch.chdir(tmp_path)
    for source in (path, str(path), "r.urdf"):
        model = dyn.load(source)
        assert (model.name, model.source.kind) == ("r", "urdf")
        assert model.source.file == str(path)
    for source in (arm(), arm().encode(), io.StringIO(arm())):
        model = dyn.load(source)
        assert (model.mass, model.source.file) == (2.0, None)


def test_the_options_are_those_of_load_urdf(tmp_path):
    """Root joint, lock, sub-chain, sidecar, check and gravity reach the robot."""
    path = tmp_path / "r.urdf"
    path.write_text(arm())
    (tmp_path / "r.dyn.yaml").write_text("armature: {turn: 0.5}")
    model = dyn.load(path)
    assert model.source.sidecar == str(tmp_path / "r.dyn.yaml")
    assert model.flat("armature").tolist() == [0.5]
    bare = dyn.load(
        path, sidecar=False, root_joint="floating", gravity=(0.0, 0.0, -1.0)
    )
    assert bare.source.sidecar is None
    assert (bare.nv, bare.flat("armature")[-1]) == (7, 0.0)
    assert bare.build.gravity == (0.0, 0.0, -1.0)
    assert dyn.load(path, lock={"turn": 0.2}).nv == 0
    assert dyn.load(path, tip="base").nv == 0
    changed = dyn.load(path, extras={"armature": {"turn": 0.1}})
    assert changed.flat("armature").tolist() == [0.1]
    with pytest.raises(ModelError, match="valid are error, warn"):
        dyn.load(path, check="no")


def test_the_origin_stays_with_the_robot():
    """Through lock, reorder, with_values, loops and pickle."""
    model = dyn.load("arm7")
    origin = model.source
    assert (origin.name, origin.collection) == ("arm7", "shipped")
    others = (
        model.lock({"joint1": 0.1}), model.with_values({"joint1.damping": 1.0}),
        model.reorder(model.joint_names[::-1]), model.without_loops(),
        pickle.loads(pickle.dumps(model)),
    )  # fmt: skip
    assert all(other.source == origin for other in others)


@pytest.mark.parametrize("name", robots.names())
def test_a_shipped_robot_stands_as_its_header_says(name):
    """By name, by path, and in every command: the quadruped floats, no other does."""
    root = "floating" if name == "quadruped" else "fixed"
    assert dyn.load(name).build.root_joint == root
    assert dyn.load(robots.path(name)).build.root_joint == root
    assert dyn.load(name, root_joint="fixed").build.root_joint == "fixed"
    assert dyn.load_urdf(robots.path(name)).build.root_joint == "fixed"


def test_a_file_goes_before_a_name(tmp_path, monkeypatch):
    """A file called arm7 is read; a folder of that name is no robot."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm7").mkdir()
    assert dyn.load("arm7").nv == 7
    (tmp_path / "arm7").rmdir()
    (tmp_path / "arm7").write_text(arm("mine"))
    assert dyn.load("arm7").name == "mine"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("tow_link", r"no robot is called 'tow_link'; did you mean 'two_link'\?.*tried: a file of"),
        ("nowhere.urdf", "cannot read the URDF file nowhere.urdf: there is no such file"),
        ("nowhere.urdf", "valid: a path from {folder}, or an absolute one"),
        ("a/b", "cannot read the URDF file a/b: .* nor a folder a"),
        ("", "is empty"),
        ("package://../x.urdf", "'..' is no name of a package"),
        ("package://nowhere/x.urdf", r"searched: package_paths \(none\), AMENT_PREFIX_PATH \(not"),
        ("<sdf version='1.6'/>", "SDF, which is not read; valid: URDF, xacro, MJCF"),
        ("<html/>", "robot"),
        ("x" * 5000, "no robot is called"),
        ("~nobody/x.urdf", "there is no such file"),
        ("a\0b.urdf", "there is no such file"),
        ("mine.urd", r"^no robot or file is called 'mine.urd'; did you mean 'mine.urdf'\?"),
        ("franka", r"'franka'; did you mean 'arm7'"),
        ("page.html", "is a page, no robot; valid: open it in a browser"),
        ("run.npz", "is a recording, no robot; valid: .*dyn view.* dyn report"),
        (".", r"is a folder; valid: a file in it"),
        (7, "not int"),
    ],
)  # fmt: skip
def test_what_is_no_robot_is_refused_in_words(source, expected, tmp_path, monkeypatch):
    """What was tried, and the nearest names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.urdf").write_text(arm("mine"))
    (tmp_path / "page.html").write_text("<html/>")
    expected = expected.replace("{folder}", str(tmp_path))
    (tmp_path / "run.npz").write_bytes(b"PK\x03\x04\xff")
    with pytest.raises(ModelError, match=expected):
        dyn.load(source)


def test_collections_that_are_missing_say_how_they_are_installed(monkeypatch):
    for name in ("example_robots", "robot_descriptions"):
        monkeypatch.setattr(f"dyn_core.model.sources.{name}.home", lambda: None)
    with pytest.raises(
        ModelError,
        match=r"robot_descriptions \(not installed: pip install robot_descriptions\), "
        r"example-robot-data \(not installed: pip install example-robot-data\)",
    ):
        dyn.load("panda")


@pytest.mark.parametrize("name", robots.chains())
def test_a_planar_chain_is_said_to_be_none(name, monkeypatch):
    """It was unknown, although dyn robots lists it."""
    monkeypatch.setattr(example_robots, "files", dict)
    with pytest.raises(
        ModelError, match=f"'{name}' is a planar chain.*dyn view {name}"
    ):
        dyn.load(name)


def test_a_missing_file_names_its_neighbours(tmp_path):
    """The nearest robot in the same folder."""
    (tmp_path / "gripper.urdf").write_text(arm())
    with pytest.raises(ModelError, match="did you mean 'gripper.urdf'"):
        dyn.load(str(tmp_path / "griper.urdf"))
    with pytest.raises(ModelError, match="cannot read the URDF file .*it is a folder"):
        dyn.load(tmp_path)


# ---- packages


def test_packages_are_searched_in_order(tmp_path, monkeypatch):
    """Folders of the user, folders of the file, AMENT_PREFIX_PATH, ROS_PACKAGE_PATH."""
    beside, ament, ros, mine = (tmp_path / x for x in ("own", "ament", "ros", "mine"))
    places = {
        mine: package(mine, "p"), beside: package(beside, "p"),
        ament: package(ament / "share", "p"), ros: package(ros, "p"),
    }  # fmt: skip
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path / 'none'}:{ament}")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(ros))
    robot = beside / "p" / "urdf" / "r.urdf"
    assert Packages((mine,), robot).folder("p") == places[mine]
    assert Packages((), robot).folder("p") == places[beside]
    assert Packages().folder("p") == places[ament]
    monkeypatch.delenv("AMENT_PREFIX_PATH")
    assert Packages().folder("p") == places[ros]
    monkeypatch.delenv("ROS_PACKAGE_PATH")
    with pytest.raises(
        ModelError,
        match="no package is called 'p'; searched: .*not set.*; valid: a folder called"
        " 'p', or one whose package.xml says so",
    ):
        Packages().folder("p")


def test_a_package_has_the_name_of_its_manifest(tmp_path):
    """A clone in another folder, a package deep in a workspace, the package itself."""
    clone = package(tmp_path / "src" / "robots" / "v2", "clone-main", "p")
    for path in (tmp_path, tmp_path / "src", clone):
        assert Packages((path,)).folder("p") == clone
    assert Packages((), clone / "urdf" / "r.urdf").folder("p") == clone
    (tmp_path / "src" / "robots" / "COLCON_IGNORE").touch()
    with pytest.raises(ModelError, match=str(tmp_path)):
        Packages((tmp_path,)).folder("p")


def test_the_first_package_that_has_the_file_counts(tmp_path):
    """A folder of the same name without it is passed over."""
    package(tmp_path / "a", "p")
    there = package(tmp_path / "b", "p", r__urdf=arm("there"))
    paths = [tmp_path / "a", str(tmp_path / "b")]
    model = dyn.load("package://p/r.urdf", package_paths=paths)
    assert model.name == "there"
    assert model.source.file == str(there / "r.urdf")
    assert model.source.package_paths == tuple(map(str, paths))
    with pytest.raises(
        ModelError, match=f"nothing is at package://p/x.*{tmp_path / 'a'}"
    ):
        dyn.load("package://p/x.urdf", package_paths=paths)
    assert package_folders(tmp_path) == (tmp_path,)
    known = "valid: packages, and folders of them; a package is known by its folder's"
    with pytest.raises(ModelError, match=f"'p=src' is no folder; {known} name or pack"):
        dyn.load("two_link", package_paths=["p=src"])
    with pytest.raises(ModelError, match="package_paths: .*nowhere' is no folder"):
        dyn.load("arm7", package_paths=tmp_path / "nowhere")


def test_folders_that_nobody_may_search_are_passed_over(tmp_path, monkeypatch):
    """Also links to what lies in one; a mesh in one is missing, in words."""
    closed, stat = tmp_path / "all" / "closed", os.stat
    package(closed, "p", r__urdf=arm("closed"))
    package(tmp_path / "all", "q", r__urdf=arm("other"))
    there = package(tmp_path / "all" / "ws", "p", r__urdf=arm("open"))
    (tmp_path / "all" / "a_link").symlink_to(closed / "p")

    def refused(path, *args, **kwargs):
        if not isinstance(path, int) and closed in Path(os.path.realpath(path)).parents:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", refused)
    paths = closed, tmp_path / "all"
    assert Packages(paths).folder("p") == there
    assert dyn.load("package://p/r.urdf", package_paths=paths).name == "open"
    with pytest.raises(ModelError, match="nothing is at package://p/x"):
        Packages(paths).resolve("package://p/x.urdf")
    robot = Origin("urdf", str(tmp_path / "r.urdf"), "r")
    for file, packages in (
        ("all/closed/p/m.stl", None), ("package://p/m.stl", {"p": closed / "p"})
    ):  # fmt: skip
        with pytest.raises(ModelError, match="link 'tip': no mesh"):
            mesh_file(file, "tip", robot, packages)


def test_meshes_are_found_where_packages_are(tmp_path, monkeypatch):
    """When they are needed, not before; an error names link, address and folders."""
    meshes = package(tmp_path / "ws", "shapes", cube__obj="")
    address = "package://shapes/cube.obj"
    text = arm(
        shape=f'<collision><geometry><mesh filename="{address}"/></geometry></collision>'
    )
    model = dyn.load(text)  # nothing needs the mesh
    (shape,) = (placed.shape for placed in model.shapes)
    with pytest.raises(
        ModelError, match=f"link 'arm': no mesh {address}: .*searched: package_p"
    ):
        mesh_file(shape.file, "arm", model.source)
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ws"))
    assert mesh_file(address, "arm", model.source) == meshes / "cube.obj"
    monkeypatch.delenv("ROS_PACKAGE_PATH")
    model = dyn.load(text, package_paths=tmp_path / "ws")
    assert (
        mesh_file(address, "arm", model.lock({"turn": 0.0}).source).name == "cube.obj"
    )
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(ModelError, match=r"packages\['shapes'\]"):
        mesh_file(address, "arm", model.source, {"shapes": other})
    path = tmp_path / "r.urdf"
    path.write_text(arm())
    (tmp_path / "near.obj").touch()
    origin = dyn.load(path).source
    for file in ("near.obj", f"file://{tmp_path / 'near.obj'}"):
        assert mesh_file(file, "arm", origin) == tmp_path / "near.obj"
    with pytest.raises(
        ModelError, match="link 'arm': no mesh far.obj: tried .*far.obj"
    ):
        mesh_file("far.obj", "arm", origin)


# ---- xacro


@pytest.fixture
def parts(tmp_path):
    """A workspace with the package that XACRO includes."""
    folder = package(tmp_path / "src", "arm_parts") / "urdf"
    folder.mkdir()
    (folder / "parts.xacro").write_text(PARTS)
    return tmp_path / "src"


@needs_xacro
def test_xacro_is_expanded_with_its_arguments(tmp_path, parts, monkeypatch):
    """Defaults, values, booleans; $(find PKG) uses the same search; all is recorded."""
    path = tmp_path / "r.urdf.xacro"
    path.write_text(XACRO)
    (tmp_path / "r.dyn.yaml").write_text("armature: {turn: 0.5}")
    model = dyn.load(path, package_paths=parts)
    assert (model.mass, model.flat("armature").tolist()) == (2.0, [0.5])
    assert (model.source.kind, model.source.file) == ("xacro", str(path))
    assert model.source.packages == (("arm_parts", str(parts / "arm_parts")),)
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(parts))
    model = dyn.load(path, xacro_arguments={"mass": 3.5, "passive": False})
    assert (model.mass, "tool" in model.frames) == (3.5, True)
    assert model.source.xacro_arguments == (("mass", "3.5"), ("passive", "false"))
    assert dyn.load(XACRO, xacro_arguments={"mass": "4"}).mass == 4.0  # text
    lines = model.source.describe()
    assert "xacro arguments: mass=3.5, passive=false" in lines
    assert f"package arm_parts: {parts / 'arm_parts'}" in lines


@needs_xacro
@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        (XACRO, {"mess": 1}, "no xacro argument is called 'mess'; did you mean 'mass'"),
        (XACRO.replace('="2"', '="two"'), {"mess": 1}, "cannot expand it: .*; no xacro argument"),
        (XACRO, {"mass": [1]}, "'mass' is .1.; valid: names with strings"),
        (XACRO.replace("arm_parts", "lost"), {}, "no package is called 'lost'; searched"),
        (XACRO.replace('name="mass" default="2"', 'name="m" default="2"'), {},
         "argument 'mass' has no value; give xacro_arguments"),
        (XACRO.replace("parts.xacro", "none.xacro"), {}, "xacro cannot expand it: No such file"),
        (XACRO.replace("$(arg mass)", "${1 / 0}"), {}, "cannot expand it: .*division"),
        (XACRO.replace("xacro:arm ", "xacro:leg "), {}, "cannot expand it: .*leg"),
        (XACRO[:-9], {}, "malformed XML"),
        (arm(), {"mass": 1}, "has nothing that xacro replaces"),
    ],
)  # fmt: skip
def test_what_xacro_cannot_do_is_said_in_words(
    tmp_path, parts, text, arguments, expected
):
    """The file, and what would be valid; no exception of another package."""
    path = tmp_path / "r.xacro"
    path.write_text(text)
    with pytest.raises(ModelError, match=expected) as caught:
        dyn.load(path, package_paths=parts, xacro_arguments=arguments)
    assert "\n" not in str(caught.value)


def test_without_xacro_the_refusal_names_the_extra(tmp_path, monkeypatch):
    """A file that has nothing to expand is read without it."""
    monkeypatch.setitem(sys.modules, "xacro", None)
    path = tmp_path / "r.urdf.xacro"
    path.write_text(XACRO)
    with pytest.raises(ModelError, match=r'pip install "dyn_ros\[xacro\]"'):
        dyn.load(path)
    with pytest.raises(ModelError, match=r"dyn\.load expands .*dyn_ros\[xacro\]"):
        dyn.load_urdf(path)
    path.write_text(arm())
    assert dyn.load(path).source.kind == "urdf"


@needs_xacro
def test_threads_expand_with_their_own_packages(tmp_path):
    """Two workspaces with a package of one name, loaded by threads in turn."""
    path, got = tmp_path / "r.xacro", {}
    path.write_text(XACRO)
    before = sys.modules.get("xacro")  # another test may have imported it
    for mass in (2, 3):
        folder = package(tmp_path / f"ws{mass}", "arm_parts") / "urdf"
        folder.mkdir()
        (folder / "parts.xacro").write_text(
            PARTS.replace('value="${mass}"', f'value="{mass}"')
        )

    def read(mass):
        loads = [dyn.load(path, package_paths=tmp_path / f"ws{mass}") for _ in range(4)]
        got[mass] = {model.mass for model in loads}

    threads = [threading.Thread(target=read, args=[mass]) for mass in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {2: {2.0}, 3: {3.0}}
    assert sys.modules.get("xacro") is before  # the user's own is not touched


# ---- MJCF


def test_mjcf_is_known_by_its_content(tmp_path, capsys):
    """Path, text and commands; its origin says so, also where xacro made it."""
    pytest.importorskip("mujoco", reason="mujoco is not installed")
    path = tmp_path / "m.xml"
    path.write_text(MJCF.replace("${mass}", "2"))
    for source in (path, str(path), path.read_text()):
        model = dyn.load(source)
        assert (model.name, model.nv, model.source.kind) == ("m", 1, "mjcf")
        assert model.mass == pytest.approx(2.0)
    assert dyn.load(path).source.file == str(path)
    assert cli.main(["info", str(path)]) == 0
    assert f"read from {path} (mjcf)" in capsys.readouterr().out
    assert cli.main(["count", "rnea", str(path)]) == 0
    with pytest.raises(ModelError, match="is MJCF; valid for peers: URDF and xacro"):
        print(named(str(path), False).urdf)
    if importlib.util.find_spec("xacro") is not None:
        wide = MJCF.replace(
            "<worldbody>", "<xacro:property name='mass' value='3'/><worldbody>"
        )
        (tmp_path / "m.xacro").write_text(
            wide.replace("model=", 'xmlns:xacro="http://www.ros.org/wiki/xacro" model=')
        )
        model = dyn.load(tmp_path / "m.xacro")
        assert model.mass == pytest.approx(3.0)
        assert model.source.kind == "mjcf"


# ---- collections


@pytest.fixture
def examples(tmp_path, monkeypatch):
    """An example-robot-data of a few robots, on the path of Python."""
    home = tmp_path / "site" / "cmeel.prefix/share/example-robot-data/robots"
    mesh = "package://example-robot-data/robots/p_description/cube.obj"
    shape = f'<collision><geometry><mesh filename="{mesh}"/></geometry></collision>'
    for place in ("p_description/urdf/p", "talos_data/robots/talos_reduced",
                  "talos_data/robots/talos_full_v2", "a_description/urdf/two",
                  "b_description/urdf/two", "arms/urdf/arm7"):  # fmt: skip
        path = home / f"{place}.urdf"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(arm(path.stem, shape))
    (home / "p_description" / "cube.obj").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    return home


def test_a_file_that_is_not_there_leads_to_the_shipped_robot(tmp_path, monkeypatch):
    """dyn.load("arm7.urdf") beside nothing of that name."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match="did you mean 'arm7', the shipped robot"):
        dyn.load("arm7.urdf")


def test_names_of_example_robot_data(examples, tmp_path, monkeypatch):
    """Those of files and of its own loader; meshes lie in its share folder."""
    monkeypatch.chdir(tmp_path)
    model = dyn.load("p")
    assert model.source.collection == "example-robot-data"
    (placed,) = model.shapes
    path = mesh_file(placed.shape.file, "arm", model.source)
    assert path == examples / "p_description" / "cube.obj"
    assert dyn.load("talos").name == "talos_reduced"
    assert dyn.load("talos_full").name == "talos_full_v2"
    assert dyn.load("arm7").source.collection == "shipped"  # goes before
    with pytest.raises(
        ModelError, match="'two' of example-robot-data is ambiguous; .*b_descr"
    ):
        dyn.load("two")
    with pytest.raises(ModelError, match="did you mean 'talos'.*of example-robot-data"):
        dyn.load("tallos")
    (tmp_path / "p").write_text(arm("mine"))
    assert dyn.load("p").name == "mine"  # a file goes before


@pytest.mark.parametrize(("name", "nv"), [("panda", 8), ("talos", 32), ("ur5", 6)])
def test_the_installed_example_robot_data(name, nv):
    """Its real robots, with a mesh of each."""
    if example_robots.home() is None:
        pytest.skip("example-robot-data is not installed")
    model = dyn.load(name, check="warn")
    assert model.nv == nv
    meshes = [x for x in model.shapes if x.shape.kind == "mesh"]
    assert mesh_file(meshes[0].shape.file, meshes[0].link, model.source).is_file()


@pytest.fixture
def descriptions(tmp_path, monkeypatch):
    """A robot_descriptions whose download fails a test, and its cache."""
    home, cache = tmp_path / "site" / "robot_descriptions", tmp_path / "cache"
    home.mkdir(parents=True)
    (home / "__init__.py").touch()
    (home / "_cache.py").write_text("raise AssertionError('it began a download')")
    (home / "_repositories.py").write_text(
        "from types import SimpleNamespace as S\n"
        f"REPOSITORIES = {{'repo': S(cache_path='repo', commit='{'a' * 40}', url='')}}\n"
    )
    for name, last in (
        ("p", 'URDF_PATH = _path.join(PACKAGE_PATH, "p.urdf")'),
        (
            "x",
            'XACRO_PATH = _path.join(PACKAGE_PATH, "x.xacro")\nXACRO_ARGS = {"mass": 5, "old": 1}',
        ),
        ("m_mj", 'MJCF_PATH = _path.join(PACKAGE_PATH, "m.xml")'),
        ("odd", "1 / 0"),
        ("none", ""),
    ):
        (home / f"{name}_description.py").write_text(
            "from os import getenv as _getenv\nfrom os import path as _path\n"
            "from ._cache import clone_to_cache as _clone_to_cache\n"
            "REPOSITORY_PATH: str = _clone_to_cache('repo', commit=_getenv('NONE', None))\n"
            f"PACKAGE_PATH = _path.join(REPOSITORY_PATH, 'arm_parts')\n{last}\n"
        )
    monkeypatch.syspath_prepend(str(home.parent))
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(cache))
    for name in [x for x in sys.modules if x.startswith("robot_descriptions")]:
        monkeypatch.delitem(sys.modules, name)
    yield cache
    for name in [x for x in sys.modules if x.startswith("robot_descriptions")]:
        del sys.modules[name]


def fill(cache, commit="a" * 40):
    """Put a repository into a cache."""
    folder = cache / "repo"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(f"{commit}\n")
    parts = package(folder, "arm_parts", p__urdf=arm("p"), x__xacro=XACRO,
                    m__xml=MJCF.replace("${mass}", "2"))  # fmt: skip
    (parts / "urdf").mkdir()
    (parts / "urdf" / "parts.xacro").write_text(PARTS)
    return parts


def test_names_of_robot_descriptions(descriptions, monkeypatch):
    """From its cache, with its packages; never by a download."""
    refused = 'not in its cache .no .*repo.*import robot_descriptions.p_description"'
    with pytest.raises(ModelError, match=refused):
        dyn.load("p_description")
    parts = fill(descriptions)
    model = dyn.load("p_description")
    assert model.source.collection == "robot_descriptions"
    assert model.source.file == str(parts / "p.urdf")
    assert str(parts.parent) in model.source.package_paths
    for name, expected in (("odd", "division"), ("none", "has no URDF, xacro or MJCF")):
        with pytest.raises(ModelError, match=f"'{name}_description' of .*{expected}"):
            dyn.load(f"{name}_description")
    assert robot_descriptions.names()[0] == "m_mj_description"
    if importlib.util.find_spec("mujoco") is not None:
        assert dyn.load("m_mj_description").source.kind == "mjcf"
    (parts.parent / ".git" / "HEAD").write_text("b" * 40)
    with pytest.raises(ModelError, match="another version of it is there"):
        dyn.load("p_description")


@needs_xacro
def test_robot_descriptions_in_xacro(descriptions):
    """Its own arguments, unless others are given; $(find PKG) finds its packages."""
    fill(descriptions)
    assert dyn.load("x_description").mass == 5.0
    assert dyn.load("x_description", xacro_arguments={"mass": 6}).mass == 6.0


# ---- commands


def test_commands_take_what_load_takes(tmp_path, capsys):
    """A package with --package-path; `dyn info` says what came from where."""
    package(tmp_path, "p", r__urdf=arm())
    options = ["package://p/r.urdf", "--package-path", str(tmp_path)]
    assert cli.main(["info", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith(
        f"read from {tmp_path / 'p' / 'r.urdf'} (urdf), address 'pack"
    )
    assert cli.main(["count", "rnea", *options]) == 0
    assert "rnea for r, 1 dof" in capsys.readouterr().out
    assert cli.main(["count", "rnea", "quadruped"]) == 0
    assert "18 dof" in capsys.readouterr().out
    assert cli.main(["check-derivatives", *options, "--states", "1"]) == 0
    assert cli.main(["info", "arm7", "--xacro-argument", "x"]) == 1
    assert "valid: NAME=VALUE" in capsys.readouterr().err


def test_arguments_are_pairs():
    """NAME=VALUE or, as ROS has it, NAME:=VALUE."""
    pairs = named_values(["a=1", "b:=x=y", "c="], "here")
    assert pairs == {"a": "1", "b": "x=y", "c": ""}
    for wrong in (["a"], ["=1"], ["a=1", "a=2"]):
        with pytest.raises(dyn.SettingError, match="here .*; valid: NAME=VALUE"):
            named_values(wrong, "here")


def test_info_shows_findings_origin_loops_and_joints_in_order(tmp_path, capsys):
    """A robot with a loop and a doubtful limit."""
    path = tmp_path / "r.urdf"
    path.write_text(arm().replace('lower="-1"', 'lower="5"'))
    loops = "loops: [{name: D, kind: point, b: arm, at_b: {xyz: [1, 0, 0]},"
    (tmp_path / "r.dyn.yaml").write_text(f"{loops} at_a: {{xyz: [0, 1, 0]}}}}]")
    assert cli.main(["info", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    starts = ["warning: joint 'turn': limits need lower", f"read from {path} (urdf)",
              f"sidecar: {tmp_path / 'r.dyn.yaml'}", "loops: D (point, 3 rows)",
              "  gap at zero 1; closed: mobility 0", "  joint  kind", "  turn "]  # fmt: skip
    places = [next(k for k, x in enumerate(lines) if x.startswith(s)) for s in starts]
    assert places == sorted(places)


def test_located_is_not_read(tmp_path):
    """locate says where a robot is, whatever is in the file."""
    path = tmp_path / "r.urdf"
    path.write_text("no robot")
    assert locate(path).file == path
    assert locate("arm7").file == robots.path("arm7")
    assert np.all(
        [x in Path(locate("arm7").file).parts for x in ("dyn_core", "robots")]
    )


def test_a_package_in_two_places_gives_files_of_both(tmp_path):
    """A file is found where it is, also if the first folder of its package lacks it."""
    for place, name in (("first", "a.stl"), ("second", "b.stl")):
        folder = tmp_path / place / "arm"
        folder.mkdir(parents=True)
        (folder / name).write_text("solid")
    packages = Packages((tmp_path / "first", tmp_path / "second"))
    for name in ("a.stl", "b.stl"):
        path = packages.resolve(f"package://arm/{name}")
        assert path.is_file() and path.name == name
