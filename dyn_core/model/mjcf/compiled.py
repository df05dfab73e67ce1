"""An MJCF file as compiled by MuJoCo, with a name for every element.

Size, depth and number of elements are bounded before MuJoCo reads the file.

MuJoCo has no bounds: <replicate> makes as many copies as it says. Included files are
not followed, and XML that expat cannot read is passed on to MuJoCo; both are bounded by
the limits of the process that reads the file.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard
from xml.parsers import expat

from dyn_core.errors import ModelError, UnsupportedError, why_unread
from dyn_core.model.description_builder import unused_name
from dyn_core.model.sources.bounded_process import JobError, run_job
from dyn_core.model.urdf_xml.xml_text import Source, declared_encoding, escapes
from dyn_core.sharing import cached_property

SIZE = 100_000_000  # bytes
DEPTH = 500  # elements in elements
ELEMENTS = 100_000  # with all their copies
_COPIES = ("replicate", "composite", "flexcomp")  # elements with a count of copies


class _TooLarge(Exception):
    """A bound is exceeded; the message names it."""


class _Count:
    """Counts of open elements and of all elements, updated while a file is parsed.

    `copies` has how often each open element is copied, innermost last; `elements` is
    the number so far, with all copies.
    """

    def __init__(self) -> None:
        self.copies = [1]
        self.elements = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Count the start of an element, as often as it and its ancestors are copied.

        Only replicate, composite and flexcomp elements are copied. _TooLarge beyond
        DEPTH (500) open elements or ELEMENTS (100,000) in all.
        """
        if len(self.copies) > DEPTH:
            raise _TooLarge(f"elements nest more than {DEPTH} deep")
        times = self.copies[-1]
        if name in _COPIES:
            times *= _copies(attributes.get("count", ""))
        self.elements += times
        self.copies.append(times)
        if self.elements > ELEMENTS:
            raise _TooLarge(f"it has more than {ELEMENTS} elements, copies counted")

    def end(self, name: str) -> None:
        """Close the innermost open element; `name` is not used."""
        self.copies.pop()


def _copies(count: str) -> int:
    """Return the product of the integers in a `count` attribute, at least 1."""
    try:
        return max(1, math.prod(map(int, count.split())))
    except ValueError:
        return 1


def check_extent(content: bytes, where: str) -> None:
    """Check that an MJCF is within SIZE, DEPTH and ELEMENTS, without its includes."""
    try:
        if len(content) > SIZE:
            raise _TooLarge(f"it is larger than {SIZE} bytes")
        count, parser = _Count(), expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = count.start, count.end
        parser.Parse(content.lstrip(), True)
    except expat.ExpatError:
        return  # for MuJoCo to read or to refuse
    except (LookupError, ValueError):  # an encoding, which is checked elsewhere
        return
    except _TooLarge as error:
        raise ModelError(f"{where}: {error}; valid: less") from error


NEEDS = (
    "reading MJCF needs mujoco 3.2.5 or later, which is not installed; valid: pip"
    " install 'dyn_ros[mjcf]', or a URDF of the robot"
)
_JOB = Path(__file__).with_name("compile_job.py")
# Enumeration of MuJoCo for each integer array of mjModel.
_KINDS = {
    "actuator_biastype": "mjtBias",
    "actuator_dyntype": "mjtDyn",
    "actuator_gaintype": "mjtGain",
    "actuator_trntype": "mjtTrn",
    "eq_objtype": "mjtObj",
    "eq_type": "mjtEq",
    "geom_type": "mjtGeom",
    "jnt_type": "mjtJoint",
    "wrap_type": "mjtWrap",
}


@dataclass(frozen=True)
class Compiled:
    """A compiled MJCF.

    Attributes:
        mujoco: The module mujoco.
        model: The mjModel: all numbers, in radians and metres, quaternions w x y z.
        name: Name of the robot.
        path: Path of the file; None if the source was XML.
        remarks: Warnings of MuJoCo.
        turned_meshes: Indices of meshes with refpos or refquat.
        mesh_folder: Folder of mesh files, relative to the folder of the path.
        fused: Mass that moves, and the one that MuJoCo has with fusestatic [kg]; empty
            if fusestatic changes no inertia.
    """

    mujoco: Any
    model: Any
    name: str
    path: Path | None
    remarks: tuple[str, ...] = ()
    turned_meshes: frozenset[int] = frozenset()
    mesh_folder: str = ""
    fused: tuple[float, ...] = ()

    def kind(self, array: str, number: int) -> str:
        """Return the lower-case name of an element's type: free, sphere, connect, ...

        `array` is the array of mjModel with the types: actuator_biastype,
        actuator_dyntype, actuator_gaintype, actuator_trntype, eq_objtype, eq_type,
        geom_type, jnt_type or wrap_type, else KeyError. `number` is the index of the
        element.
        """
        codes = getattr(self.mujoco, _KINDS[array])
        code = int(getattr(self.model, array)[number])
        return str(codes(code).name).partition("_")[2].lower()

    def element(self, kind: str, number: int) -> str:
        """Return the name of an element; without one, kind and index, as "tendon3".

        `kind` is a name of mjtObj without mjOBJ_, such as "tendon"; `number` the index.
        """
        code = getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
        name = self.mujoco.mj_id2name(self.model, code, int(number))
        return name or f"{kind}{number}"

    def _named(self, kind: str, count: int) -> list[str]:
        """Return the names of the first `count` elements of a kind; "" for unnamed.

        `kind` is a name of mjtObj without mjOBJ_, in lower case, such as "body".
        """
        code = getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
        name = self.mujoco.mj_id2name
        return [name(self.model, code, k) or "" for k in range(count)]

    @cached_property
    def links(self) -> tuple[str, ...]:
        """Name of the link of each body, by its index; body 0 is `world`.

        An unnamed body k is called bodyK, with underscores appended if that name is in
        use. It is computed once.
        """
        names = self._named("body", self.model.nbody)
        taken = set(names)
        return tuple(
            name or unused_name(f"body{k}", taken) for k, name in enumerate(names)
        )

    @cached_property
    def joints(self) -> tuple[str, ...]:
        """Name of each joint, by its index.

        An unnamed joint is called LINK_joint, or, if its body has several joints,
        LINK_jointK, the K-th joint of its body (K from 1), with underscores appended if
        that name is in use. It is computed once.
        """
        names = self._named("joint", self.model.njnt)
        taken = set(names)
        result = []
        for k, name in enumerate(names):
            body = int(self.model.jnt_bodyid[k])
            place = k - int(self.model.body_jntadr[body])
            suffix = str(place + 1) if self.model.body_jntnum[body] > 1 else ""
            result.append(
                name or unused_name(f"{self.links[body]}_joint{suffix}", taken)
            )
        return tuple(result)

    @cached_property
    def sites(self) -> tuple[str, ...]:
        """Name of the link of each site, by its index; "" for a site without a name.

        A site with the name of a body is called NAME_site, with underscores appended if
        that name is in use. It is computed once.
        """
        names = self._named("site", self.model.nsite)
        taken = set(self.links)
        return tuple(
            name and unused_name(name if name not in taken else f"{name}_site", taken)
            for name in names
        )

    def pose(self, owner: str, number: int) -> tuple[list[float], list[float]]:
        """Return position [m] and quaternion (x, y, z, w) of an element.

        They are mjModel's arrays OWNER_pos and OWNER_quat: of a body in its parent, of
        a geom or site in its body, of a mesh's centre in the frame of its file.

        Args:
            owner: body, geom, mesh or site.
            number: Index of the element.
        """
        x = getattr(self.model, f"{owner}_pos")[number].tolist()
        w, *xyz = getattr(self.model, f"{owner}_quat")[number].tolist()
        return x, [*xyz, w]


def compile_mjcf(source: Source, trusted: bool = False) -> Compiled:
    """Return an MJCF as compiled by MuJoCo; if `trusted`, in this process.

    Files that the XML includes are searched from the folder of the path, else from the
    current folder.
    """
    content, path = _content(source)
    where = "the MJCF" if path is None else f"the MJCF file {path}"
    _check_root(content, where)
    check_extent(content, where)
    mujoco = _mujoco_module()
    # Absolute: MuJoCo records files of meshes relative to the folder of the process.
    request = {"path": None if path is None else str(path.absolute())}
    xml = _text(content, where).encode() if path is None else b""
    try:
        facts, binary = run_job(_JOB, request, xml, apart=not trusted)
    except JobError as error:
        raise ModelError(f"{where} cannot be read by MuJoCo, which {error}") from error
    if "refused" in facts:
        reason = facts["refused"]
        if "could not find decoder" in reason and path is not None:
            reason = f"the file is called *{path.suffix}; valid: *.xml"
        raise ModelError(f"{where} cannot be read by MuJoCo: {reason}")
    model = mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": binary})
    return Compiled(
        mujoco,
        model,
        facts["name"],
        path,
        tuple(facts["remarks"]),
        frozenset(facts["turned_meshes"]),
        facts["mesh_folder"],
        tuple(facts["fused"]),
    )


def _mujoco_module() -> Any:
    """Return the module mujoco; raise UnsupportedError if it is missing or too old."""
    try:
        import mujoco
    except ImportError as error:
        raise UnsupportedError(NEEDS) from error
    if not hasattr(getattr(mujoco, "MjSpec", None), "from_string"):
        raise UnsupportedError(NEEDS)
    return mujoco


def is_path(source: Source) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether a source is path-like, or a string, not blank, without "<"."""
    if isinstance(source, str):
        return bool(source.strip()) and "<" not in source
    return isinstance(source, os.PathLike)


def _content(source: Source) -> tuple[bytes, Path | None]:
    """Return the bytes of a source, text as UTF-8, and its path.

    The path is None for XML and an open file, whose errors pass through.
    """
    if isinstance(source, bytes):
        return source, None
    if not is_path(source):
        if isinstance(source, str):
            return source.encode("utf-8", "surrogatepass"), None
        if not hasattr(source, "read"):
            raise ModelError(
                f"an MJCF is a path, XML or an open file, not {type(source).__name__}"
            )
        file: Any = source
        content = file.read()
        if isinstance(content, str):
            return content.encode("utf-8", "surrogatepass"), None
        return content, None
    path = Path(os.fspath(source))
    try:
        return path.read_bytes(), path
    except (OSError, ValueError) as error:
        reason = why_unread(error)
        raise ModelError(f"cannot read the MJCF file {path}: {reason}") from error


def _text(content: bytes, where: str) -> str:
    """Return the text of UTF-8 bytes, without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeError as error:
        place = f": byte {error.start + 1}" if hasattr(error, "start") else ""
        raise ModelError(f"{where} is not in UTF-8{place}") from error


def _check_root(content: bytes, where: str) -> None:
    """Raise ModelError unless the root element of a file is <mujoco>."""
    if not content.strip():
        raise ModelError(f"{where} is empty; a <mujoco> element is needed")
    root, problem = first_element(content)
    if not root:
        raise ModelError(f"{where} is no XML: {problem}")
    if root == "robot":
        raise ModelError(f"{where} is a URDF (root element <robot>); use load_urdf")
    if root == "mujocoinclude":
        raise ModelError(
            f"{where} is a part of others (root element <mujocoinclude>); load a file"
            " that includes it"
        )
    if root != "mujoco":
        raise ModelError(
            f"{where}: the root element is <{root}>; that of an MJCF is <mujoco>"
        )


def first_element(content: bytes) -> tuple[str, str]:
    """Return (name of the root element, "") of XML; ("", reason) if it has none.

    The rest of the file is not parsed: MuJoCo accepts some files that are not
    well-formed XML, such as comments with two hyphens.
    """
    names: list[str] = []

    def stop(name: str, attributes: object) -> None:
        """Record the name of an element; raise StopIteration to end the parsing."""
        names.append(name)
        raise StopIteration

    parser = expat.ParserCreate()
    parser.StartElementHandler = stop
    try:
        if escapes(declared_encoding(content)):
            raise LookupError
        parser.Parse(content.lstrip(), True)
    except StopIteration:
        return names[0], ""
    except expat.ExpatError as error:
        return "", str(error)
    except (LookupError, ValueError):  # of codecs, in words of programs
        return "", "it declares an encoding that is unknown, or that it is not in"
    return "", "it has no element"
