"""dyn.load: reads a robot from any supported source; xacro is expanded first.

A xacro file is a program that may never end, and the package has global state: it runs
in a separate process, where packages.py resolves $(find PKG).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from numpy.typing import ArrayLike

from dyn_core import robots
from dyn_core.errors import ModelError, unknown_name
from dyn_core.model.mjcf.compiled import first_element
from dyn_core.model.mjcf.load import read_mjcf
from dyn_core.model.model import Model
from dyn_core.model.reading import Choices
from dyn_core.model.sidecar import Extras
from dyn_core.model.sources.bounded_process import JobError, run_job
from dyn_core.model.sources.locate import Located, locate
from dyn_core.model.sources.origin import Origin
from dyn_core.model.sources.packages import Folders, Packages
from dyn_core.model.urdf import read_urdf
from dyn_core.model.urdf_xml.attributes import EXTRA
from dyn_core.model.urdf_xml.xml_text import Source, parse_xml, read_source
from dyn_core.validation import known_keywords, shown

_JOB = Path(__file__).with_name("xacro_job.py")
_MARKS = ("<xacro:", "${", "$(")


def uses_xacro(text: str) -> bool:
    """Return whether a text has xacro tags or expressions."""
    return any(mark in text for mark in _MARKS)


def argument_values(arguments: Mapping[str, Any] | None) -> dict[str, str]:
    """Return arguments as strings for xacro, by name; booleans as true and false."""
    values = {}
    if not isinstance(arguments, (Mapping, type(None))):
        raise ModelError(
            f"xacro_arguments is {shown(arguments)}; valid: a mapping from names"
        )
    for name, value in (arguments or {}).items():
        if not isinstance(name, str) or not isinstance(value, (str, bool, int, float)):
            raise ModelError(
                f"xacro_arguments: {name!r} is {value!r}; valid: names with strings,"
                " numbers, True or False"
            )
        values[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return values


def expand(
    text: str,
    file: Path | None,
    packages: Packages,
    arguments: Mapping[str, str],
    optional: Iterable[str] = (),
) -> str:
    """Return the XML text of an expanded xacro file, which is read again.

    `file` is absolute; None: `text`, whose relative paths start at the working
    directory. The file need not declare the arguments named in `optional`.
    """
    where = "the xacro text" if file is None else str(file)
    if importlib.util.find_spec("xacro") is None:
        raise ModelError(f"{where} needs the package xacro, which is missing: {EXTRA}")

    def folder_of(name: str) -> dict[str, str]:
        """Return {"folder": path} of a package, or {"fault": reason} if not found."""
        try:
            return {"folder": str(packages.folder(name))}
        except ModelError as error:
            return {"fault": str(error)}

    request = {
        "file": None if file is None else str(file),
        "arguments": dict(arguments),
        "optional": list(optional),
    }
    content = text.encode("utf-8", "surrogatepass")
    try:
        facts, xml = run_job(_JOB, request, content, folder_of)
    except JobError as error:
        raise ModelError(f"{where} cannot be expanded by xacro, which {error}") from (
            error
        )
    unknown = [
        unknown_name("xacro argument", name, facts["declared"])
        for name in facts["unknown"]
    ]
    if "refused" in facts:
        inside = f", in {facts['inside']}" if facts["inside"] else ""
        unknown.insert(0, facts["refused"])
        raise ModelError(f"{where}{inside}: {'; '.join(unknown)}")
    for fault in unknown:
        raise ModelError(f"{where}: {fault}")
    return xml.decode("utf-8", "surrogatepass")


@known_keywords
def load(
    source: Source,
    *,
    root_joint: str | None = None,
    lock: Mapping[str, ArrayLike] | None = None,
    root: str | None = None,
    tip: str | None = None,
    extras: Extras | None = None,
    sidecar: bool = True,
    check: str = "warn",
    gravity: tuple[float, ...] | None = None,
    package_paths: Folders = (),
    xacro_arguments: Mapping[str, Any] | None = None,
) -> Model:
    """Return the Model of a robot, from a file, a name, an address or text.

    Args:
        source: Path of a URDF, xacro or MJCF file; its content as str or bytes, or an
            open file; package://PKG/FILE; the name of a shipped robot, or of a robot of
            example-robot-data or robot_descriptions, where they are installed. An
            existing file has priority over a name.
        root_joint: Joint between world and root link: fixed or floating; None: as the
            source says; a URDF is then fixed, a shipped robot as in its header.
        lock: Joint positions at which joints are fixed, by name [rad | m].
        root, tip: First and last link of a sub-chain; without tip the tree below root.
        extras: Sidecar: path, YAML text or mapping, or "quadruped_stand".
        sidecar: Whether NAME.dyn.yaml beside the file is read, if there are no extras.
        check: warn: warnings are in `model.warnings`, and the first 3 that are no hints
            in one ModelWarning. error: doubtful elements raise a ModelError.
        gravity: Gravity acceleration in the root frame, 3 [m/s²]; None: as in an MJCF,
            (0, 0, -9.81) for a URDF.
        package_paths: Folders that are packages or contain packages, for package:// and
            $(find PKG); they are searched before the parent folders of the file,
            AMENT_PREFIX_PATH and ROS_PACKAGE_PATH.
        xacro_arguments: Values of <xacro:arg>, by name. xacro is expanded in files
            *.xacro, in any other source only if arguments are given.

    Raises:
        ModelError: There is no such robot, it or an argument is not valid, xacro is
            needed and missing, or xacro_arguments have nothing to expand; names the
            element and valid alternatives.
        UnsupportedError: An MJCF without mujoco installed, or with one that is too old.
        SettingError: Unknown keyword.
    """
    located = locate(source, package_paths)
    text, element, origin = read_robot(located, xacro_arguments)
    mjcf = origin.kind == "mjcf"
    if root_joint is None and not mjcf:
        root_joint = robots.root_joint(located.file)
    choices = Choices(root_joint, lock, root, tip, extras, sidecar, check, gravity)
    if not mjcf:
        return read_urdf(element, origin, choices)
    file = located.file
    if file is not None and (xacro_arguments or file.suffix.lower() == ".xacro"):
        file = None  # its text is expanded
    return read_mjcf(text if file is None else file, origin, choices)


class RobotXml(NamedTuple):
    """The XML of a robot; `text` is expanded where read_robot does so.

    `root` is the root element, for an MJCF perhaps without children.
    """

    text: str
    root: Element
    origin: Origin


def read_robot(
    located: Located, xacro_arguments: Mapping[str, Any] | None = None
) -> RobotXml:
    """Return the XML text of a robot, its root element, and its origin.

    xacro is expanded in files *.xacro, and in any other source if `xacro_arguments` are
    given and not empty; else its tags and expressions remain in the text.
    """
    text, _ = read_source(located.source)
    file, packages = located.file, located.packages
    arguments = {**located.xacro_arguments, **argument_values(xacro_arguments)}
    is_xacro = file is not None and file.suffix.lower() == ".xacro"
    if (is_xacro or xacro_arguments) and uses_xacro(text):
        _root(text, file)  # raises for malformed XML before xacro runs
        text = expand(text, file, packages, arguments, located.xacro_arguments)
        kind = "xacro"
    elif xacro_arguments:
        raise ModelError(
            f"xacro_arguments: {file or 'the text'} has nothing that xacro replaces"
        )
    else:
        kind, arguments = "urdf", {}
    root = _root(text, file)
    if root.tag == "sdf":
        raise ModelError(
            f"{file or 'the text'} is SDF, which is not read; valid: URDF, xacro, MJCF"
        )
    origin = Origin(
        "mjcf" if root.tag in ("mujoco", "mujocoinclude") else kind,
        None if file is None else str(file),
        located.name,
        located.collection,
        xacro_arguments=tuple(arguments.items()),
        packages=tuple((name, str(path)) for name, path in packages.used.items()),
        package_paths=tuple(map(str, located.paths)),
    )
    return RobotXml(text, root, origin)


def _root(text: str, file: Path | None) -> Element:
    """Return the root element of XML; an empty <mujoco> for an MJCF that is refused."""
    try:
        return parse_xml(text)
    except ModelError as error:
        if first_element(text.encode("utf-8", "replace"))[0] == "mujoco":
            return Element("mujoco")  # MuJoCo reports the error, or accepts the file
        if file is None:
            raise
        reason = str(error)
        if text.strip("\ufeff \t\r\n")[:1] not in ("", "<"):
            reason = "it is no XML and no robot; valid: URDF, xacro, MJCF"
        raise ModelError(f"cannot read the URDF file {file}: {reason}") from error
