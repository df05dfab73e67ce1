"""Entries, tables, YAML: what is valid comes back, the rest is refused in words."""

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control.joint_values import joint_values
from dyn_core.errors import unknown_name
from dyn_core.validation import (
    REQUIRED,
    ByName,
    Either,
    Field,
    ListOf,
    Name,
    Nothing,
    Quantity,
    Switch,
    Table,
    Tagged,
    Whole,
    finite_array,
    float_array,
    kind_like,
    numbers,
    one_state,
    read_yaml,
    state_array,
    yaml_files,
)

POINT = Table(
    Field("xyz", numbers(3), "place", "m", (0.0, 0.0, 0.0)),
    Field("name", Name(), "of the point", "", REQUIRED),
    Field("size", Either((Quantity(0.0), Nothing())), "radius", "m"),
)
SHAPES = Tagged(
    "type", {"ball": Table(Field("type", Name(), ""), Field("r", Quantity(), ""))}
)


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (Quantity(), 3, 3.0),
        (Quantity(), np.float32(0.5), 0.5),
        (Quantity(0.0, 1.0), 1, 1.0),
        (Whole(1, 9), np.int64(9), 9),
        (Whole(-3, 0), 0, 0),
        (Switch(), False, False),
        (Name(("a", "b")), "b", "b"),
        (numbers(3), [1, 2.5, 3], (1.0, 2.5, 3.0)),
        (numbers(), np.array([1.0, 2.0]), (1.0, 2.0)),
        (ByName(numbers(1), "joint"), {"j": [1]}, {"j": (1.0,)}),
        (Either((Quantity(), numbers())), 2, 2.0),
        (Either((Quantity(), numbers())), [2], (2.0,)),
        (POINT, {"name": "p"}, {"name": "p", "xyz": (0.0, 0.0, 0.0)}),
        (POINT, {"name": "p", "xyz": [1, 2, 3], "size": None},
         {"name": "p", "xyz": (1.0, 2.0, 3.0)}),
        (SHAPES, {"type": "ball", "r": 2}, {"type": "ball", "r": 2.0}),
    ],
)  # fmt: skip
def test_valid_values_come_back(kind, value, read):
    """Numbers become floats, lists tuples; defaults are filled in."""
    result = kind.read("a", value)
    assert result == read
    assert type(result) is type(read)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Quantity(), True, "a is True; valid: a number"),
        (Quantity(), "1", "a is '1'; valid: a number"),
        (Quantity(), np.inf, "a is inf; valid: a finite number"),
        (Quantity(), 10**400, "a is inf; valid: a finite number"),
        (Quantity(0.0), -1, "a is -1; valid: a number, 0 or more"),
        (Quantity(0.0, 1.0), 2, "a is 2; valid: a number from 0 to 1"),
        (Quantity(0.0, above=True), 0, "a is 0; valid: a number above 0$"),
        (
            Quantity(0.0, 1.0, above=True),
            2,
            "a is 2; valid: a number above 0, at most 1$",
        ),
        (ListOf(Quantity(0.0, 1.0, True)), 2, "a list of numbers above 0, at most 1$"),
        (Whole(1, 9), 2.0, "a is 2.0; valid: a whole number, 1 to 9"),
        (Whole(-3, 0), 1, "a is 1; valid: a whole number, -3 to 0"),
        (Whole(1), True, "a is True; valid: a whole number, 1 or more"),
        (Switch(), "no", "a is 'no'; valid: true or false"),
        (Name(), [1], "a is .1.; valid: a name"),
        (Name(("left", "right")), "rihgt", "valid: left, right; did you mean 'right'"),
        (numbers(3), [1, 2], "a is .1, 2.; valid: a list of 3 numbers"),
        (numbers(), [1, "x"], r"a\[1\] is 'x'; valid: a number"),
        (ListOf(Name(), least=1), [], "valid: a list of 1 or more names"),
        (ListOf(Either((Quantity(), Nothing())), 2), 1, "2 entries, each a number, or"),
        (ListOf(Whole()), 1, "a list of whole numbers, 0 or more"),
        (ByName(Quantity(), "joint"), [1], "a mapping from joint to a number"),
        (ByName(Quantity()), {"j" * 100: "x"}, "^a: j{60} is 'x'"),
        (POINT, 3, "a is 3; valid: a mapping with xyz, name, size"),
        (POINT, {"nmae": "p"}, "a: no key is called 'nmae'; did you mean 'name'"),
        (POINT, {3: "p"}, "a: no key is called '3'"),
        (POINT, {}, "a: name is missing; valid: a name"),
        (POINT, {"name": None}, "a: name is empty; valid: a name"),
        (SHAPES, {}, "a: type is missing; valid: a mapping with type: ball"),
        (SHAPES, {"type": ["ball"]}, "a: type is .'ball'.; valid: ball"),
    ],
)
def test_bad_values_are_refused(kind, value, message):
    """Each error is a ModelError that says what is wrong, where, and what is valid."""
    with pytest.raises(dyn.ModelError, match=message):
        kind.read("a", value)


def test_long_values_have_short_errors():
    """A message never prints a whole file, nor fails on what Python cannot print."""
    for value in ([0] * 10**6, "x" * 10**6, 10**5000, [[[[[0]] * 99]]], {"a": [{}]}):
        with pytest.raises(dyn.ModelError) as caught:
            Switch().read("a", value)
        assert len(str(caught.value)) < 200


def test_numbers_of_numpy_are_shown_as_numbers():
    """Not as np.float64(-2.0)."""
    with pytest.raises(dyn.ModelError, match=r"a is -2\.0; valid"):
        Switch().read("a", np.float64(-2.0))
    with pytest.raises(dyn.SettingError, match=r"kp is -2\.0; valid: > 0"):
        joint_values(dyn.load("two_link"), "kp", np.float64(-2.0), 1.0)


def test_arrays_of_numbers():
    """One number stands for all, none for zeros; what is no number is refused."""
    assert finite_array("a", 2, 3) == (2.0, 2.0, 2.0)
    assert finite_array("a", (), 2) == (0.0, 0.0)
    for values, size, message in (
        (["x"], None, "a is .'x'.; valid: numbers"),
        ([10**400], None, "valid: numbers"),
        ([1, 2], 3, "a: 3 numbers wanted"),
        ([1, np.nan], None, r"a\[1\] is not finite"),
    ):
        with pytest.raises(dyn.ModelError, match=message):
            finite_array("a", values, size)


def test_arrays_of_states():
    """One state or a batch; complex numbers pass, other lengths and shapes do not."""
    assert state_array("q", [1, 2], 2).dtype == float
    assert state_array("q", np.ones((5, 2)), 2).shape == (5, 2)
    assert state_array("q", [1j, 2], 2).dtype == complex
    for bad in (np.ones(3), np.ones((2, 2, 2)), np.array(1.0)):
        with pytest.raises(dyn.ShapeError, match="q: wanted shape"):
            state_array("q", bad, 2)
    for bad in (["a", "b"], [[1], [1, 2]], [10**400, 1]):
        with pytest.raises(dyn.ShapeError, match="q: wanted numbers of shape"):
            state_array("q", bad, 2)
    with pytest.raises(dyn.ShapeError, match=r"q: wanted shape \(2,\), got"):
        one_state("q", np.ones((5, 2)), 2)


@pytest.mark.parametrize(
    "values",
    [
        ["1.5", "2"],
        [1.0, "2"],
        [None, 1.0],
        [None, "2"],
        np.ma.array([1.0, 2.0], mask=[True, False]),
        np.array([1, 2], "datetime64[s]"),
    ],
)
def test_text_none_masks_and_dates_are_no_numbers(values):
    """NumPy would convert them: None to NaN, a masked entry to the number under it."""
    with pytest.raises(dyn.ShapeError, match="q: wanted numbers of shape"):
        state_array("q", values, 2)
    with pytest.raises(dyn.ShapeError, match="q: wanted numbers of two"):
        float_array("q", values, "two")
    with pytest.raises(dyn.ModelError, match="q is .*; valid: numbers"):
        finite_array("q", values, 2)


def read(text):
    """Return the content of YAML text."""
    return read_yaml(text + "\n", "file", "text")[0]


def test_yaml_is_plain_data():
    """Strings, numbers with and without a point, booleans, null; aliases are copies."""
    assert read("a: [1, -2.5, 2e-5, 1.e3, .5, yes, null, '1', x y]") == {
        "a": [1, -2.5, 2e-5, 1e3, 0.5, True, None, "1", "x y"]
    }
    assert read("a: &b {c: 1}\nd: *b") == {"a": {"c": 1}, "d": {"c": 1}}
    assert read("") is None
    assert read("\ufeffa: é") == {"a": "é"}


@pytest.mark.parametrize("text", ["1_0", "0x10", "010", "1:30", "2001-12-14", "1,5"])
def test_what_looks_like_a_number_is_a_string(text):
    """No digits are read that a reader would not read so: a number is then refused."""
    assert read(f"a: {text}") == {"a": text}


BOMB = "a0: &a0 [0, 0, 0, 0, 0, 0, 0, 0, 0]\n" + "".join(
    f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]\n" for k in range(1, 9)
)
BAD_YAML = {
    "aliases": (BOMB, "more than 20000 values, aliases expanded; valid: fewer"),
    "cycle": ("a: &a [*a]", "nested more than 32 deep"),
    "cycle of mappings": ("a: &a {b: *a}", "nested more than 32 deep"),
    "deep": ("[" * 100 + "]" * 100, "nested more than 32 deep"),
    "very deep": ("[" * 20000, "nested more than 32 deep"),
    "deep blocks": ("- " * 2000, "nested more than 32 deep"),
    "deep keys": ("? " * 2000, "nested more than 32 deep"),
    "large": ("a: " + "x" * 1_000_000, "larger than 1000000 bytes"),
    "date": ("a: !!timestamp 2001-13-45", "not YAML: line 1, column 4: unknown tag .*timestamp"),
    "no int": ("a: !!int ''", "not YAML"),
    "no bool": ("a: !!bool maybe", "not YAML"),
    "no float": ("a: !!float x", "not YAML"),
    "digits": ("a: " + "1" * 5000, "not YAML.*digits"),
    "python": ("a: !!python/object/apply:os.getcwd []", "not YAML.*unknown tag"),
    "binary": ("a: !!binary aGk=", "not YAML.*unknown tag"),
    "set": ("a: !!set {x}", "not YAML.*unknown tag"),
    "twice": ("a: 1\na: 2", "not YAML.*the key 'a' is there twice"),
    "twice as a number": ("1: a\n1.0: b", "not YAML.*the key 1.0 is there twice"),
    "twice inside": ("a: {0: x, no: y}", "not YAML.*the key False is there twice"),
    "key": ("? [a]\n: 1", "not YAML.*a key is a list"),
    "two files": ("a: 1\n---\nb: 2", "not YAML.*another document"),
    "no alias": ("a: *b", "not YAML.*undefined alias"),
    "control": ("a: \x00", "not YAML"),
    "syntax": ("a: [", "not YAML"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_YAML)
def test_yaml_that_is_none_or_too_much(case, tmp_path):
    """Text and file: one ModelError, short, that names the file."""
    text, message = BAD_YAML[case]
    path = tmp_path / "x.yaml"
    path.write_text(text)
    for source, where in ((text + "\n", "text"), (path, "x.yaml")):
        with pytest.raises(
            dyn.ModelError, match=f"(?s){where}: .*({message})"
        ) as caught:
            read_yaml(source, "file", "text")
        assert len(str(caught.value)) < 1000


def test_values_are_counted_while_reading(monkeypatch):
    """A long file ends the reading at the limit, not after it."""
    monkeypatch.setattr(yaml_files, "VALUES", 50)
    assert len(read("a: [" + "0," * 47 + "]")["a"]) == 47
    with pytest.raises(dyn.ModelError, match="text: more than 50 values"):
        read("a: [" + "0," * 48 + "]")


def test_merged_mappings_are_no_keys_of_their_own():
    """`<<` is a key as any other, so a table refuses it."""
    assert read("a: &a {b: 1}\nc: {<<: *a}") == {"a": {"b": 1}, "c": {"<<": {"b": 1}}}


def test_mappings_are_bounded_too():
    """A mapping from Python may contain itself."""
    loop = {}
    loop["a"] = [loop]
    with pytest.raises(dyn.ModelError, match="extras: .*32 deep"):
        read_yaml(loop, "sidecar", "extras")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere.yaml", "cannot read the file 'nowhere.yaml'"),
        ("a\0b", "cannot read the file .*no path has such"),
        (3, "the file is 3; valid: a path, YAML text or a mapping"),
        (None, "the file is empty; valid: a path"),
        ("latin.yaml", "latin.yaml: not YAML: byte 7 is not UTF-8"),
    ],
)
def test_files_that_cannot_be_read(path, message, tmp_path, monkeypatch):
    """Missing, a path that is none, bytes that are no UTF-8."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin.yaml").write_bytes("name: é".encode("latin-1"))
    with pytest.raises(dyn.ModelError, match=message):
        read_yaml(path, "file", "text")


def test_the_limits_leave_room():
    """The shipped files are far below the limits."""
    assert yaml_files.SIZE > 100_000
    assert yaml_files.DEPTH > 10


@pytest.mark.parametrize(
    ("value", "good", "bad"),
    [
        (True, False, 1),
        (10**12, -(10**12), 0.5),
        (0.5, 7, "a"),
        ("a", "b", 1),
        ([2], [3000, 4], [0.5]),
        ((), ["a"], [1]),
    ],
)
def test_a_kind_is_that_of_the_default(value, good, bad):
    """An option whose default is a large integer takes integers alone."""
    kind = kind_like(value)
    for x in (value, good):
        kind.read("option", x)
    with pytest.raises(dyn.ModelError, match="option"):
        kind.read("option", bad)


def test_no_kind_is_like_nothing():
    """What a file cannot hold is refused."""
    with pytest.raises(dyn.ModelError, match="valid: a switch, number, name or a list"):
        kind_like(None)


def test_a_list_of_long_names_is_shortened():
    """At most 12 names, and 300 characters of them; all where all are asked for."""
    names = [f"{'payload_estimation.' * 4}{k}" for k in range(12)]
    said = unknown_name("parameter", "mass", names)
    assert said.endswith(f"valid: {', '.join(names[:3])}, ... (12 in all)")
    assert unknown_name("parameter", "mass", names, limit=None).endswith(names[-1])
