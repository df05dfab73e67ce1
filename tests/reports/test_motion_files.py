"""Files of motions: what is written is read, by name and with units; mistakes in words."""

import errno
import re
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.errors import DynWarning
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.recordings import MotionRecord, read_motion, run_record, write_motion
from dyn_core.recordings import files as motion_files
from dyn_core.validation.array_files import csv_rows, csv_table

KINDS = ("q", "qd", "qdd", "tau")


def random_motion(model, rows=40, seed=0):
    """Return random numbers for each coordinate; times are uneven."""
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(0.01, 0.02, rows))
    q = np.array([model.random(rng) for _ in range(rows)])
    qd, qdd, tau = rng.normal(size=(3, rows, model.nv)) * 10.0 ** rng.integers(
        -9, 9, (3, rows, 1)
    )
    return MotionRecord(
        coordinates_of(model), t, q, qd, qdd, tau,
        series={"cycle_time": rng.uniform(size=rows)},
        facts={"robot": model.name, "settings": {"period [s]": 0.1}},
        notes=("one thing is odd",),
    )  # fmt: skip


def _rosbags():
    pytest.importorskip(
        "rosbags.rosbag2", reason="rosbags is not installed (extra bags)"
    )


@pytest.mark.parametrize("robot", ["arm7", "every_joint"])
def test_npz_keeps_every_bit_and_fact(tmp_path, robot):
    """Columns, series, facts, notes, names and units."""
    model = dyn.load(robot)
    motion = random_motion(model)
    write_motion(motion, tmp_path / "a.npz")
    read = read_motion(tmp_path / "a.npz")
    assert read.coordinates == motion.coordinates
    assert (read.facts, read.notes) == (motion.facts, motion.notes)
    for kind in ("t", *KINDS):
        assert getattr(read, kind).tobytes() == getattr(motion, kind).tobytes()
    np.testing.assert_array_equal(
        read.series["cycle_time"], motion.series["cycle_time"]
    )


@pytest.mark.parametrize("robot", ["arm7", "every_joint"])
def test_csv_keeps_numbers_and_units(tmp_path, robot):
    """As many digits as are needed; columns in any order; names without brackets."""
    model = dyn.load(robot)
    motion = random_motion(model)
    write_motion(motion, tmp_path / "a.csv")
    read = read_motion(tmp_path / "a.csv")
    assert read.coordinates == motion.coordinates
    for kind in ("t", *KINDS):
        np.testing.assert_allclose(
            getattr(read, kind), getattr(motion, kind), rtol=1e-15, atol=0
        )
    rows = [x.split(",") for x in (tmp_path / "a.csv").read_text().splitlines()]
    assert rows[0][0] == "# units: s"
    assert rows[1][:2] == ["t", f"q[{model.joint_names[0]}]"]
    mixed = [",".join(row[::-1]) for row in rows[1:]]
    mixed[0] = re.sub(r"(\w+)\[([^],]*)\]", r"\1.\2", mixed[0])
    (tmp_path / "b.csv").write_text("\ufeff" + "\n".join(mixed), encoding="utf-8")
    other = read_motion(tmp_path / "b.csv", model)
    np.testing.assert_array_equal(other.tau, read.tau)
    np.testing.assert_array_equal(other.q, read.q)


def test_joints_that_the_robot_lacks_are_said(tmp_path):
    """A run of another robot with equal names of joints is no silent input."""
    arm, model = dyn.load("arm7"), dyn.load("two_link")
    write_motion(random_motion(arm), tmp_path / "a.npz")
    said = "recorded, and no moving joints of 'two_link': joint3, joint4, joint5"
    said = re.escape(said) + ".*; the file is of 'arm7'$"
    with pytest.warns(DynWarning, match=said):
        assert read_motion(tmp_path / "a.npz", model).q.shape[1] == 2
    write_motion(random_motion(arm), tmp_path / "a.csv")  # does not name its robot
    with pytest.warns(DynWarning, match="no moving joints of .* joint7$"):
        read_motion(tmp_path / "a.csv", model)
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        read_motion(tmp_path / "a.npz", arm)
        read_motion(tmp_path / "a.npz")
    assert not issued


@pytest.mark.parametrize("name", ["a.mcap", "bag"])
def test_bags_keep_joint_states(tmp_path, name):
    """Bits of what JointState holds, and accelerations; times in nanoseconds."""
    _rosbags()
    model = dyn.load("arm7")
    motion = random_motion(model)
    if name == "bag":
        from dyn_core.recordings.bags import write_bag
        from dyn_core.recordings.progress import RowProgress

        write_bag(motion, tmp_path / name, RowProgress(0, False))
    else:
        write_motion(motion, tmp_path / name)
    read = read_motion(tmp_path / name, model)
    np.testing.assert_allclose(read.t, motion.t - motion.t[0], atol=1e-9)
    for kind in KINDS:
        np.testing.assert_array_equal(getattr(read, kind), getattr(motion, kind))
    positions = replace(motion, qd=None, qdd=None, tau=None)
    write_motion(positions, tmp_path / "b.mcap")
    read = read_motion(tmp_path / "b.mcap")
    assert (read.qd, read.qdd, read.tau) == (None, None, None)
    assert sorted(x.name for x in tmp_path.iterdir()) == sorted({name, "b.mcap"})


def test_columns_that_were_sorted_can_be_written_as_a_bag(tmp_path):
    """A motion of other joint order in a robot's order, as `dyn id` writes it."""
    _rosbags()
    model = dyn.load("arm7")
    motion = random_motion(model)
    turned = random_motion(model.reorder(model.joint_names[::-1])).of(model)
    write_motion(turned, tmp_path / "a.mcap")
    read = read_motion(tmp_path / "a.mcap", model)
    for kind in KINDS:
        np.testing.assert_array_equal(getattr(read, kind), getattr(turned, kind))
    assert motion.coordinates == read.coordinates


def test_limits_are_sorted_with_the_columns():
    """Each joint keeps its limits; a list of another length means none."""
    model = dyn.load("arm7").lock({"joint3": 0.0})
    record = run_record(dyn.simulate(dyn.load("arm7"), duration=0.01))
    turned = record.of(model.reorder(model.joint_names[::-1]))
    places = [record.column_indices("q")[name] for name in turned.names("q")]
    np.testing.assert_array_equal(turned.q, record.q[:, places])
    limits = (record.effort_limits, *record.position_limits)
    sorted_limits = (turned.effort_limits, *turned.position_limits)
    assert len({*limits[0]}) > 1
    for old, new in zip(limits, sorted_limits, strict=True):
        np.testing.assert_array_equal(new, old[places])
    facts = {**record.facts, "effort_limit": [None, 2.0], "lower_limit": [0.0] * 6}
    turned = replace(record, facts=facts).of(model)
    np.testing.assert_array_equal(turned.position_limits[0], -np.inf)
    facts = {"upper_limit": [4.0, 0.1], "effort_limit": [None, 2.0]}
    names = ["joint2", "joint1"]
    two = MotionRecord.of_joints(names, [0.0], [[3.0, 0.5]], facts=facts)
    turned = two.of(dyn.load("two_link"))
    assert two.beyond_limits == turned.beyond_limits == ("joint1",)
    np.testing.assert_array_equal(turned.effort_limits, [2.0, np.inf])
    assert turned.facts == {"upper_limit": [0.1, 4.0], "effort_limit": [2.0, None]}


def test_commands_of_a_wrong_size_are_left_out_and_told(tmp_path):
    """A bag of a robot with a gripper, say: its commands are those of more joints."""
    library = pytest.importorskip("rosbags.rosbag2")
    typesys = pytest.importorskip("rosbags.typesys")
    from dyn_core.recordings.bags import read_bag

    store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
    types = store.types
    stamp = types["builtin_interfaces/msg/Time"](1, 0)
    header = types["std_msgs/msg/Header"](stamp, "")
    numbers = np.zeros(2)
    states = types["sensor_msgs/msg/JointState"](
        header, ["shoulder", "elbow"], numbers, numbers, numbers
    )
    layout = types["std_msgs/msg/MultiArrayLayout"]([], 0)
    kind = "std_msgs/msg/Float64MultiArray"
    with library.Writer(tmp_path / "bag", version=9) as writer:
        for topic, message in (
            ("/joint_states", states),
            ("/computed_torque/commands", types[kind](layout, np.ones(2))),
            ("/computed_torque/commands", types[kind](layout, np.ones(3))),
        ):
            known = [x for x in writer.connections if x.topic == topic]
            added = known or [
                writer.add_connection(topic, message.__msgtype__, typestore=store)
            ]
            data = store.serialize_cdr(message, message.__msgtype__)
            writer.write(added[0], 10**9, data)
    motion = read_bag(tmp_path / "bag")
    assert motion.command is None
    (note,) = (x for x in motion.notes if "commands are left out" in x)
    assert "1 of 2 messages of /computed_torque/commands have not 2 numbers (3)" in note


def test_a_topic_that_a_bag_lacks_is_refused(tmp_path):
    """All messages of the bag would come else, of any topic and type."""
    _rosbags()
    from dyn_core.recordings import bags

    write_motion(random_motion(dyn.load("arm7"), 8), tmp_path / "a.mcap")
    expected = (
        r"no topic of .*JointState is called '/robot/joint_states'.*/joint_states"
    )
    with bags.opened(tmp_path / "a.mcap") as bag:
        with pytest.raises(dyn.SettingError, match=expected):
            list(bag.messages(bags.STATES, "/robot/joint_states"))
        with pytest.raises(dyn.SettingError, match="valid: none"):
            list(bag.messages(bags.ARRAY, "/joint_states"))


def test_a_bag_of_a_floating_robot_is_refused(tmp_path):
    """Joint states have a number for each joint."""
    model = dyn.load("quadruped")
    with pytest.raises(dyn.UnsupportedError, match=r"root_joint.*valid: .npz, .csv"):
        write_motion(random_motion(model, 8), tmp_path / "a.mcap")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (np.nan, "row 2: t is missing or not a number"),
        (np.inf, "row 2: t is inf"),
        (-2.0, "row 2: t = -2 s; valid: at most 1 s before row 1"),
        (3e9, "row 2: t = 3e.09 s; valid: .*68 years after"),
    ],
)
def test_times_that_no_stamp_can_have_are_refused(tmp_path, time, message):
    """Python's own errors said neither the row nor what fits."""
    _rosbags()
    motion = MotionRecord.of_joints(["a"], [0.0, time, 1.0], np.zeros((3, 1)))
    with pytest.raises(dyn.DynError, match=message):
        write_motion(motion, tmp_path / "a.mcap")
    assert not list(tmp_path.iterdir())


def test_files_of_recordings_are_read_by_identification(tmp_path):
    """`dyn evaluate` reads the CSV and NPZ that `dyn sim` writes, and the other way."""
    model = dyn.load("two_link")
    motion = random_motion(model)
    for name in ("a.csv", "a.npz"):
        write_motion(motion, tmp_path / name)
        record = read_motion(tmp_path / name)
        assert record.names("q") == model.joint_names
        np.testing.assert_array_equal(record.tau, motion.tau)
    np.savez(tmp_path / "b.npz", t=motion.t, q=motion.q, energy=motion.t)
    read = read_motion(tmp_path / "b.npz", model)
    np.testing.assert_array_equal(read.q, motion.q)
    assert read.qd is None
    assert set(read.series) == {"energy"}


BAD_CSV = {
    "": "it is empty",
    "t,q[joint1]\n": "it has no row",
    "t,qd[joint1]\n0,1\n": "q missing; valid: columns t, q",
    "t,q,qd[joint1]\n0,1,2\n": "q missing; valid: columns t, q",
    "t,q[joint1],q[joint1]\n0,1,2\n": r"column q\[joint1\] is there twice",
    "t,q[joint1]\n0,1\n1\n": "row 2 has 1 cells for 2 labels",
    "t,q[joint1]\n0,1\n1,one\n": r"row 2: q\[joint1\] is 'one', no number",
    "t,q[joint1]\n# 0,0\n0,1\n1,2#7\n": r"row 2: q\[joint1\] is '2#7', no number",
    "# units: s,deg\nt,q[joint1]\n0,1\n": "the unit 'deg'; valid: rad, m, 1",
    "# units: s\nt,q[joint1]\n0,1\n": "1 units for 2 columns",
    "# units: ms,rad\nt,q[joint1]\n0,1\n": "column t has the unit 'ms'; valid: s",
    "# units: rad,\nq[joint1],t\n0,1\n": "column t has the unit ''; valid: s",
    "t,q[a],qd[a]\n0,1_0,\n": r"row 1: q\[a\] is '1_0', no number",
    "t,q[a],qd[a]\n0,１,\n": r"row 1: q\[a\] is '１', no number",
    "t,q[joint1],q[joint2],tau[joint1]\n0,1,2,3\n": None,
    "t,q[a],q[b],qd[a],qd[b],tau[a]\n0,1,1,1,1,1\n": r"column tau\[b\] is missing",
}  # fmt: skip


@pytest.mark.parametrize("content", BAD_CSV)
def test_a_bad_csv_is_refused_in_words(tmp_path, content):
    """Says the row, or the column, and what would be valid."""
    (tmp_path / "a.csv").write_text(content, encoding="utf-8")
    if BAD_CSV[content] is None:
        with pytest.raises(dyn.SettingError, match=r"no column is called 'tau\[joint2"):
            read_motion(tmp_path / "a.csv", dyn.load("two_link"))
        return
    with pytest.raises(dyn.SettingError, match=BAD_CSV[content]):
        read_motion(tmp_path / "a.csv")


@pytest.mark.parametrize("field", ["position_units", "velocity_units"])
def test_a_unit_that_is_not_ours_is_refused_in_npz_as_in_csv(tmp_path, field):
    """Degrees were computed with as radians."""
    model = dyn.load("two_link")
    write_motion(random_motion(model), tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as arrays:
        content = {**arrays, field: np.array(["rad", "deg"])}
    np.savez(tmp_path / "a.npz", **content)
    with pytest.raises(dyn.SettingError, match=f"{field} has 'deg'; valid: rad, m, 1"):
        read_motion(tmp_path / "a.npz", model)


@pytest.mark.parametrize("label", ["{}[joint{}]", "{}.joint{}"])
@pytest.mark.parametrize(
    ("word", "meant"),
    [("v", "qd"), ("torque", "tau"), ("acceleration", "qdd"), ("qref", "q_ref")],
)
def test_columns_of_an_unknown_kind_are_named(tmp_path, label, word, meant):
    """They were dropped, and velocities estimated, without a word."""
    names = [label.format(word, k) for k in (1, 2)]
    rows = f"t,q[joint1],q[joint2],{','.join(names)}\n0,1,2,3,4\n"
    (tmp_path / "a.csv").write_text(rows)
    said = f"a.csv: no kind of column is called '{word}'; did you mean '{meant}'"
    listed = f".*not read: {', '.join(map(re.escape, names))}$"
    with pytest.warns(DynWarning, match=said + listed) as caught:
        read_motion(tmp_path / "a.csv", dyn.load("two_link"))
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("word", "meant"), [("v", "qd"), ("velocity", "qd"), ("torque", "tau")]
)
def test_arrays_of_an_unknown_kind_are_named(tmp_path, word, meant):
    """As columns of a CSV are; what has another shape is nobody's motion."""
    t, rows = np.arange(3.0), np.zeros((3, 2))
    file = tmp_path / "a.npz"
    more = {"load": t, "picture": np.zeros((3, 5)), "dt": 1.0}
    np.savez(file, **{"t": t, "q": rows, word: rows, **more})
    said = f"a.npz: no kind of array is called '{word}'; did you mean '{meant}'"
    with pytest.warns(DynWarning, match=f"{said}.*it is not read$") as caught:
        read_motion(file, dyn.load("two_link"))
    assert len(caught) == 1


def test_no_other_columns_are_warned_of(tmp_path):
    """Those of all writers, and what names no joint of the file."""
    text = "t,time,q[joint1],q[joint2],qd[joint1],qd[joint2],load[motor],temp.\n"
    (tmp_path / "a.csv").write_text(text + "0,1,2,3,4,5,6,7\n")
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        read_motion(tmp_path / "a.csv", dyn.load("two_link"))
        for name in ("arm7", "every_joint"):
            model = dyn.load(name)
            for name in ("b.csv", "b.npz"):
                write_motion(random_motion(model), tmp_path / name)
                read_motion(tmp_path / name, model)
    assert not [str(x.message) for x in issued]


def test_an_empty_cell_is_not_known(tmp_path):
    """It is read as NaN and written as nothing; who needs it says the row."""
    (tmp_path / "a.csv").write_text("t,q[a]\n0,1\n1,\n\n# the end\n", encoding="utf-8")
    motion = read_motion(tmp_path / "a.csv")
    assert np.isnan(motion.q[1, 0])
    with pytest.raises(dyn.NonFiniteError, match=r"row 2: q\[a\] is missing or not"):
        motion.checked(["q"])
    write_motion(motion, tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text().splitlines()[-1] == "1.0,"


def test_lines_of_blanks_are_empty_and_a_byte_order_mark_is_dropped(tmp_path):
    """As spreadsheets and editors leave them; in tables of numbers and in rows of text."""
    path = tmp_path / "a.csv"
    path.write_text("t,q[a]\n \n0,1\n  \t\n\n1,2\n \n", encoding="utf-8-sig")
    np.testing.assert_array_equal(csv_table(path).numbers, [[0.0, 1.0], [1.0, 2.0]])
    assert csv_rows(path) == [["t", "q[a]"], ["0", "1"], ["1", "2"]]
    path.write_text("t,q[a],q[b]\n0,1,2\n,,\n")
    assert np.isnan(csv_table(path).numbers[1]).all()


def test_bad_motions_are_refused_with_their_row():
    """Times that stand still, numbers that are none, columns that are not there."""
    model = dyn.load("two_link")
    motion = random_motion(model, 10)
    t = motion.t.copy()
    t[6] = t[5]
    with pytest.raises(dyn.SettingError, match=r"row 7: t = .* is not later"):
        replace(motion, t=t).checked([])
    tau = motion.tau.copy()
    tau[3, 1] = np.inf
    with pytest.raises(dyn.NonFiniteError, match=r"row 4: tau\[joint2\] is inf"):
        replace(motion, tau=tau).checked(["q", "tau"])
    with pytest.raises(dyn.SettingError, match=r"no qdd: columns qdd\[joint1\]"):
        replace(motion, qdd=None).column("qdd")
    for wrong in ("pos", "t", "names"):
        with pytest.raises(dyn.SettingError, match=rf"'{wrong}'.*valid: .*qdd, "):
            motion.column(wrong)
    with pytest.raises(dyn.ShapeError, match=r"qd: wanted shape \(10, 2\)"):
        replace(motion, qd=np.zeros((10, 3)))
    with pytest.raises(
        dyn.SettingError, match=r"no column is called 'q\[joint3\]'; did"
    ):
        motion.of(dyn.load("arm7").lock({"joint1": 0.0}))


def test_files_with_another_number_of_columns_are_refused_by_one_error(tmp_path):
    """Whether an NPZ has no names, or names its columns 1, 2, ...; the file is named."""
    t, q = np.arange(3.0), np.zeros((3, 3))
    np.savez(tmp_path / "bare.npz", t=t, q=q)
    np.savez(tmp_path / "numbered.npz", t=t, q=q, names=["1", "2", "3"])
    (tmp_path / "numbered.csv").write_text("t,q.1,q.2,q.3\n0,0,0,0\n1,0,0,0\n")
    for name in ("bare.npz", "numbered.npz", "numbered.csv"):
        with pytest.raises(dyn.SettingError, match=f"{name}: q: wanted .*2") as caught:
            read_motion(tmp_path / name, dyn.load("two_link"))
        assert caught.value.setting == "file"


def test_nothing_is_written_by_halves(tmp_path, monkeypatch):
    """A failure while writing leaves the old file, and no other one."""
    motion = random_motion(dyn.load("two_link"))
    (tmp_path / "a.csv").write_text("old")

    def broken(record, file, bar):
        file.write_text("half")
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(motion_files, "write_csv", broken)
    with pytest.raises(dyn.SettingError, match="a.csv cannot be written: disk full"):
        write_motion(motion, tmp_path / "a.csv")
    assert [x.name for x in tmp_path.iterdir()] == ["a.csv"]
    assert (tmp_path / "a.csv").read_text() == "old"


def test_a_missing_library_of_bags_is_named(tmp_path, monkeypatch):
    """Before anything is computed."""
    monkeypatch.setitem(sys.modules, "rosbags.highlevel", None)
    with pytest.raises(dyn.UnsupportedError, match=r"pip install 'dyn_ros\[bags\]'"):
        motion_files.check_output(str(tmp_path / "a.mcap"))


def test_every_robot_has_names_and_units(every_robot_name):
    """One name for each coordinate, each once; units by what the joint does."""
    model = dyn.load(every_robot_name)
    names = coordinates_of(model)
    assert len(set(names.positions)) == model.nq == len(names.position_units)
    assert len(set(names.velocities)) == model.nv == len(names.velocity_units)
    for joint in model.joint_names:
        if model.joint_kind(joint) in ("revolute", "continuous", "prismatic"):
            k = model.v_slice(joint).start
            unit = "m" if model.joint_kind(joint) == "prismatic" else "rad"
            assert names.velocity_units[k] == unit
        if model.joint_kind(joint) == "floating":
            assert names.velocity_units[model.v_slice(joint)] == (*["rad"] * 3, *"mmm")
            assert names.position_units[model.q_slice(joint)] == (*"mmm", *"1111")


@pytest.fixture(params=["arm7", "every_joint", "quadruped", "cart_pole"])
def every_robot_name(request):
    return request.param


def test_a_run_of_nothing_has_a_record(tmp_path):
    """No row, no error."""
    run = dyn.simulate(dyn.load("two_link"), duration=0.0)
    write_motion(run_record(run), tmp_path / "a.npz")
    assert len(read_motion(tmp_path / "a.npz").t) == 0


def test_progress_is_shown_on_terminals_alone(monkeypatch, capsys):
    """Twice a second, after two seconds; nothing where nobody looks."""
    from dyn_core.recordings import progress

    clock = iter(np.arange(0.0, 100.0, 1.5))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    for terminal in (False, True):
        monkeypatch.setattr(
            sys.stderr, "isatty", lambda seen=terminal: seen, raising=False
        )
        bar = progress.RowProgress(30, True)
        for done in (10, 20, 30):
            bar.show(done)
        bar.end()
        said = capsys.readouterr().err
        lines = [
            "20 of 30 rows, 6.67 rows/s, 0:00:02 left",
            "30 of 30 rows, 6.67 rows/s, 0:00:00 left",
        ]
        shown = "".join(f"\r{line}" for line in lines)
        assert said == (f"{shown}\n" if terminal else "")
