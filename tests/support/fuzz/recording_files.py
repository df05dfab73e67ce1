"""Random recordings: NPZ, CSV and bags, valid, odd or with changed bytes."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.recordings import bags
from dyn_core.recordings.bags import ACCELERATIONS, POINTS
from dyn_core.sharing import once
from fuzz.draws import Draws
from fuzz.fuzz_file import FuzzFile
from fuzz.mutations import change_bytes

JOINTS = ("joint1", "joint2")
_DATE = (1980, 1, 1, 0, 0, 0)  # of members, the same in each run
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)
_DTYPES = ("<f8", "<f4", ">f8", "<i4", "|b1", "<c16", "<U3", "|S2", "<M8[s]", "|u1")
_FACTS = (
    "[]", '"x"', "3", "null", "{", "", '{"notes": 3}', '{"notes": [1, {}]}', "NaN",
    '{"settings": []}', '{"joints": {"joint1": 3}}', '{"effort_limit": [1, "x"]}',
    "[" * 9999, '{"effort_limit": [1e400, null]}', '{"robot": [1]}', "1" * 9000,
    '{"source": {}}',
    '{"versions": "1"}', '{"counters": null}', '{"root_joint": 3, "source": "arm7"}',
)  # fmt: skip
_HEADERS = (
    b"", b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,), }",
    b"{'descr': '<f8', 'fortran_order': True, 'shape': (-1, 2), }",
    b"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
    b"{'descr': '<U0', 'fortran_order': False, 'shape': (9999999999999,), }",
    b"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }",
    b"{'descr': '<f8', 'fortran_order': 1, 'shape': 3}", b"(" * 900, b"{" + b"[" * 300,
    b"{'descr': 'x', 'fortran_order': False, 'shape': (), }", b"{1: 2}", b"\xff\xfe",
)  # fmt: skip


def draw_npz(draws: Draws, file: FuzzFile) -> FuzzFile:
    """Draw an NPZ: valid, with odd arrays, or with changed bytes."""
    style = draws.choices(("valid", "odd", "bytes"), (15, 55, 30))[0]
    arrays = _arrays(draws, 4)
    if style == "odd":
        for _ in range(draws.randrange(1, 4)):
            _change_arrays(draws, arrays)
    content = _archive(draws, arrays, style == "odd")
    if style == "bytes":
        content = change_bytes(draws, content)
    return replace(file, content=content, suffix=".npz", valid=style == "valid")


def _arrays(draws: Draws, rows: int) -> dict[str, Any]:
    """Return the arrays of a run of a robot with two joints."""
    rng = np.random.default_rng(draws.randrange(2**32))
    arrays: dict[str, Any] = {
        "t": 0.01 * np.arange(rows),
        "q": rng.normal(size=(rows, 2)),
    }
    for name in ("qd", "qdd", "tau", "command", "q_ref"):
        if draws.chance(0.5):
            arrays[name] = rng.normal(size=(rows, 2))
    if draws.chance(0.6):
        arrays["names"] = np.array(JOINTS)
    if draws.chance(0.4):
        arrays["facts"] = np.array(json.dumps({"robot": "two_link", "notes": ["odd"]}))
    if draws.chance(0.3):
        count = draws.randrange(4)
        arrays["contacts.row"] = np.sort(rng.integers(0, rows, count))
        arrays["contacts.point"], arrays["contacts.force"] = rng.normal(
            size=(2, count, 3)
        )
    for name in ("cycle_time", "contacts", "kinetic"):
        if draws.chance(0.2):
            arrays[name] = rng.uniform(size=rows)
    return arrays


def _change_arrays(draws: Draws, arrays: dict[str, Any]) -> None:
    """Leave out an array, or give it another type, shape, content or name."""
    name = draws.choice(sorted(arrays)) if arrays else "t"
    array = arrays.get(name, np.zeros(3))
    what = draws.randrange(8)
    if what == 0:
        arrays.pop(name, None)
    elif what == 1:
        arrays["facts"] = np.array(draws.choice(_FACTS))
    elif what == 2:
        arrays[name] = np.zeros(
            draws.choice(((), (0,), (4, 0), (4, 3), (2, 2, 2), (7,)))
        )
    elif what == 3:
        with np.errstate(all="ignore"):
            arrays[name] = np.resize(np.arange(8), np.shape(array)).astype(
                draws.choice(_DTYPES)
            )
    elif what == 4:
        odd = draws.choice((np.nan, np.inf, -np.inf, 1e308, -1.0, 5e-324))
        arrays[name] = np.full(np.shape(array), odd)
    elif what == 5:
        arrays[draws.odd_name(("t", "q", "tau", "positions"))] = array
    elif what == 6:
        labels = [draws.odd_name(JOINTS) for _ in range(draws.randrange(4))]
        arrays[draws.choice(("names", "positions", "velocities"))] = np.array(
            labels, "U"
        )
    else:
        arrays[name] = draws.choice(_HEADERS)


def _archive(draws: Draws, arrays: dict[str, Any], odd: bool) -> bytes:
    """Return the bytes of an NPZ; an array of bytes is a member with that header."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy".replace("\0", "0"), _DATE)
            if draws.chance(0.3):
                member.compress_type = draws.choice(_COMPRESSIONS[: 3 if odd else 2])
            content = io.BytesIO()
            if isinstance(array, bytes):
                size = len(array).to_bytes(2, "little")
                content.write(b"\x93NUMPY\x01\x00" + size + array + bytes(24))
            else:
                np.lib.format.write_array(content, np.asarray(array))
            archive.writestr(member, content.getvalue())
    return buffer.getvalue()


def draw_csv(draws: Draws, file: FuzzFile) -> FuzzFile:
    """Draw a CSV: valid, with odd cells, or with changed bytes."""
    style = draws.choices(("valid", "odd", "bytes"), (15, 45, 40))[0]
    odd = draws.choice((0.02, 0.1)) if style == "odd" else 0.0
    kinds = ["q", *(x for x in ("qd", "qdd", "tau", "command") if draws.chance(0.5))]
    form = draws.choice(("{}[{}]", "{}.{}"))
    labels = ["t", *(form.format(kind, name) for kind in kinds for name in JOINTS)]
    if draws.chance(odd):
        labels[draws.randrange(len(labels))] = draws.odd_name(labels)
    units = {"q": "rad", "qd": "rad/s", "qdd": "rad/s²", "tau": "N·m", "command": "N·m"}
    lines = []
    if draws.chance(0.5):
        shown = [units[kind] for kind in kinds for _ in JOINTS]
        lines.append("# units: " + ",".join(["s", *shown]))
    lines.append(",".join(labels))
    for k in range(draws.randrange(1, 6)):
        cells = [repr(0.01 * k), *(repr(draws.number()) for _ in labels[1:])]
        cells = [draws.odd_number() if draws.chance(odd) else x for x in cells]
        lines.append(",".join(cells))
    content = "\n".join(lines).encode("utf-8", "surrogatepass") + b"\n"
    if style == "bytes":
        content = change_bytes(draws, content)
    return replace(file, content=content, suffix=".csv", valid=style == "valid")


def draw_bag(draws: Draws, file: FuzzFile) -> FuzzFile:
    """Draw a bag in MCAP or SQLite: valid, with odd messages, or with changed bytes."""
    style = draws.choices(("valid", "odd", "bytes"), (10, 45, 45))[0]
    kind = draws.choice((".mcap", ".db3"))
    sizes = [2] * 9
    if style == "odd":
        sizes = [draws.choice((0, 1, 2, 2, 2, 3)) for _ in sizes]
    rows, accelerations = draws.choice((1, 3)), draws.choice((0, 3, 3))
    names = draws.randrange(3 if style == "odd" else 2)
    content = _bag(kind, rows, accelerations, tuple(sizes), names)
    if style == "bytes":
        content = change_bytes(draws, content)
    return replace(file, content=content, suffix=kind, valid=style == "valid")


@once
def _bag(
    suffix: str, rows: int, accelerations: int, sizes: tuple[int, ...], names: int
) -> bytes:
    """Return the bytes of a bag.

    Args:
        suffix: .mcap or .db3.
        rows: Joint states.
        accelerations: Messages of accelerations.
        sizes: Numbers in fields of the messages, in turn.
        names: Which names the messages have: all, too many, or one twice.
    """
    library = bags.rosbags()
    store = library.typesys.get_typestore(library.typesys.Stores.ROS2_JAZZY)
    types, left = store.types, list(sizes) * 9
    joints = [list(JOINTS), [*JOINTS, "joint3"], ["joint1", "joint1", "joint2"]][names]

    def numbers() -> np.ndarray:
        return np.arange(float(left.pop() + (len(joints) - 2)))

    plugin = library.rosbag2.StoragePlugin[{".mcap": "MCAP", ".db3": "SQLITE3"}[suffix]]
    duration = types["builtin_interfaces/msg/Duration"](sec=0, nanosec=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bag"
        with library.rosbag2.Writer(path, version=9, storage_plugin=plugin) as writer:
            states = writer.add_connection(
                "/joint_states", bags.STATES, typestore=store
            )
            points = writer.add_connection(ACCELERATIONS, POINTS, typestore=store)
            for k in range(max(rows, accelerations)):
                stamp = types["builtin_interfaces/msg/Time"](sec=k, nanosec=0)
                header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="")
                if k < rows:
                    fields = numbers(), numbers(), numbers()
                    message = types[bags.STATES](header, joints, *fields)
                    data = store.serialize_cdr(message, bags.STATES)
                    writer.write(states, 10**9 * k, data)
                if k < accelerations:
                    none = np.zeros(0)
                    point = types["trajectory_msgs/msg/JointTrajectoryPoint"](
                        none, none, numbers(), none, duration
                    )
                    message = types[POINTS](header, joints, [point])
                    data = store.serialize_cdr(message, POINTS)
                    writer.write(points, 10**9 * k, data)
        return next(path.glob(f"*{suffix}")).read_bytes()
