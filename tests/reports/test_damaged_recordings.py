"""Recordings of any content: read, or refused in one sentence; sizes before memory."""

import io
import json
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import cli
from dyn_core.recordings import bags, read_motion, write_motion
from dyn_core.recordings.motion import MotionRecord, named_coordinates
from dyn_core.validation import array_files

T = np.array([0.0, 1.0, 2.0])
Q = np.ones((3, 2))


def _rosbags():
    pytest.importorskip(
        "rosbags.rosbag2", reason="rosbags is not installed (extra bags)"
    )


def _refusal(path):
    with pytest.raises(dyn.SettingError) as caught:
        read_motion(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message


def _motion(qdd=None):
    return MotionRecord(named_coordinates(["joint1", "joint2"]), T, Q, qdd=qdd)


def _bag_of_accelerations(path, sizes, monkeypatch):
    """Write a bag whose points have these numbers of accelerations; 0: no point."""
    _rosbags()
    write = bags.rosbags().rosbag2.Writer.write
    store = bags.rosbags().typesys.get_typestore(
        bags.rosbags().typesys.Stores.ROS2_JAZZY
    )
    left = list(sizes)

    def changed(writer, connection, stamp, data):
        if connection.topic == bags.ACCELERATIONS:
            if not left:
                return
            message = store.deserialize_cdr(data, connection.msgtype)
            message.points[0].accelerations = np.arange(1.0, 1.0 + left.pop(0))
            data = store.serialize_cdr(message, connection.msgtype)
        write(writer, connection, stamp, data)

    with monkeypatch.context() as patch:
        patch.setattr(bags.rosbags().rosbag2.Writer, "write", changed)
        write_motion(_motion(2 * Q), path)


@pytest.mark.parametrize(
    ("sizes", "note"),
    [
        ([0, 0, 0], "message 1 has 0 accelerations for 2 joints; valid: one point"),
        ([2, 1, 2], "message 2 has 1 accelerations for 2 joints"),
        ([2, 2, 3], "message 3 has 3 accelerations for 2 joints"),
        ([2, 2], "2 messages for 3 joint states"),
    ],
)
def test_accelerations_of_another_size_are_left_out(tmp_path, monkeypatch, sizes, note):
    """Too few, too many or none: the motion is read without them, and says why."""
    _bag_of_accelerations(tmp_path / "a.mcap", sizes, monkeypatch)
    motion = read_motion(tmp_path / "a.mcap", dyn.load("two_link"))
    assert motion.qdd is None
    np.testing.assert_array_equal(motion.q, Q)
    (reason,) = motion.notes
    assert reason.startswith(f"/joint_accelerations is left out: {note}")


def test_damaged_accelerations_are_refused(tmp_path, monkeypatch):
    """Messages that rosbags cannot read end in our error, of this topic as of others."""
    _rosbags()
    write_motion(_motion(2 * Q), tmp_path / "a.mcap")
    assert read_motion(tmp_path / "a.mcap").qdd is not None
    deserialize = bags.rosbags().highlevel.AnyReader.deserialize

    def damaged(reader, data, kind):
        return deserialize(reader, data[:9] if "Trajectory" in kind else data, kind)

    monkeypatch.setattr(bags.rosbags().highlevel.AnyReader, "deserialize", damaged)
    assert "no bag that can be read" in _refusal(tmp_path / "a.mcap")


FACTS = {
    "[]": r"facts are \[\]; valid: an object of JSON",
    '"x"': "facts are 'x'; valid: an object",
    "3": "facts are 3; valid: an object",
    "null": "facts are empty; valid: an object",
    '{"notes": 3}': "fact notes is 3; valid: a list",
    '{"settings": [1]}': r"fact settings is \[1\]; valid: an object of JSON",
    '{"effort_limit": [1, "x"]}': "fact effort_limit has 'x'; valid: numbers, or null",
    "[" * 100_000: "facts are no JSON: lists and objects are nested too deep",
    '{"a": }': "facts are no JSON: line 1, column 7: Expecting value",
    "1" * 9000: "facts are no JSON: a number has too many digits",
}  # fmt: skip


@pytest.mark.parametrize("text", FACTS, ids=lambda text: text[:20])
def test_facts_of_another_type_are_refused(tmp_path, text, capsys):
    """JSON that is no object, or whose entries are not what a report looks into."""
    path = tmp_path / "f.npz"
    np.savez(path, t=T, q=Q, facts=np.array(text))
    with pytest.raises(dyn.SettingError, match=FACTS[text]):
        read_motion(path)
    assert cli.main(["id", "two_link", str(path)]) == 1
    assert "Traceback" not in capsys.readouterr().err


def _array(values):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(values))
    return buffer.getvalue()


def _archive(path, t, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("t.npy", t)
        archive.writestr("q.npy", _array(Q))


def _changed_member(path, offset, value):
    """Change two bytes of the local and the central header of a file's first member."""
    content = bytearray(path.read_bytes())
    for signature, place in ((b"PK\x03\x04", offset), (b"PK\x01\x02", offset + 2)):
        start = content.index(signature) + place
        content[start : start + 2] = struct.pack("<H", value)
    path.write_bytes(content)


def test_archives_that_numpy_would_not_write(tmp_path):
    """Encrypted, compressed otherwise, objects, damaged, random, missing, a folder."""
    path = tmp_path / "a.npz"
    _archive(path, _array(T))
    assert read_motion(path).q.shape == (3, 2)
    _changed_member(path, 6, 1)
    assert "array t is encrypted" in _refusal(path)
    _archive(path, _array(T))
    _changed_member(path, 8, 97)
    assert "array t is compressed otherwise; valid: what nu" in _refusal(path)
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([{}, 1, 2]), allow_pickle=True)
    _archive(path, buffer.getvalue())
    assert "array t holds objects of Python; valid: numbers" in _refusal(path)
    _archive(path, _array(T)[:60])
    assert "it is damaged" in _refusal(path)
    path.write_bytes(bytes(range(256)) * 4)
    assert "no archive of arrays, or a damaged one" in _refusal(path)
    path.unlink()
    assert "No such file" in _refusal(path)


def test_sizes_are_checked_before_memory_is_taken(tmp_path, monkeypatch):
    """A header that claims 40 GB in a file of 1 kB, and a small file of many zeros."""
    path, header = tmp_path / "a.npz", io.BytesIO()
    described = {"descr": "<f8", "fortran_order": False, "shape": (5_000_000_000,)}
    np.lib.format.write_array_header_1_0(header, described)
    _archive(path, header.getvalue() + bytes(64))
    tracemalloc.start()
    try:
        assert "shape (5000000000,) and type <f8, and has 64 b" in _refusal(path)
        monkeypatch.setattr(array_files, "SIZE", 1_000_000)
        _archive(path, _array(np.zeros(10**6)), zipfile.ZIP_DEFLATED)
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        assert "its arrays have 8000" in _refusal(path)
        assert tracemalloc.get_traced_memory()[1] - before < 2_000_000
    finally:
        tracemalloc.stop()
    np.savez(path, t=np.zeros(10**6), q=np.zeros((10**6, 1)))
    assert len(read_motion(path).t) == 10**6


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"names": np.zeros((2, 2))}, "names has shape"),
        ({"contacts.row": T}, "contacts.point is missing or wrong; valid: numbers of"),
        ({"positions": ["a", "b"], "velocities": ["a", "b"], "position_units": ["rad"],
          "velocity_units": ["rad"]}, "not as many units as positions or velocities"),
        ({"q": np.array([["a", "b"]] * 3)}, "q: wanted numbers"),
        ({"t": np.array(0.0)}, "t: wanted shape"),
        ({"t": np.array(0.0), "load": T}, "t: wanted shape"),
    ],
)  # fmt: skip
def test_arrays_of_another_shape_are_refused(tmp_path, arrays, reason):
    """Names, units and contacts are checked when a file is read, not when it is used."""
    np.savez(tmp_path / "a.npz", **{"t": T, "q": Q, **arrays})
    assert reason in _refusal(tmp_path / "a.npz")


def test_a_csv_is_refused_in_our_words(tmp_path):
    """No codec, no float() and no csv module speaks to the user."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"t,q.joint1\n0,\xb7\n")
    assert _refusal(path).endswith("it is not in UTF-8: byte 0xb7")
    path.write_bytes(b"t,q.joint1\n0,abc\n")
    assert "row 1: q.joint1 is 'abc', no number" in _refusal(path)
    path.write_bytes(b"t,q.joint1\n0,,\n")
    assert "row 1 has 3 cells for 2 labels" in _refusal(path)
    path.write_bytes(b't,q.joint1\n0,"' + b"1" * 200_000 + b'"\n,\n')
    assert "a line is longer than it may be" in _refusal(path)


def test_a_run_with_some_of_the_contact_series_has_a_report(tmp_path):
    """A file that another program wrote is shown as far as it goes."""
    path = tmp_path / "a.npz"
    facts = json.dumps({"robot": ["x"], "joints": {"1": 2}})
    np.savez(path, t=T, q=Q, contacts=T, cycle_time=T, facts=np.array(facts))
    assert cli.main(["report", str(path), "-o", str(tmp_path / "r.html")]) == 0
    assert "Contacts" not in (tmp_path / "r.html").read_text("utf-8")
