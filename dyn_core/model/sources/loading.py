"""dyn.load: reads a robot from any supported source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from numpy.typing import ArrayLike

from dyn_core import robots
from dyn_core.errors import ModelError
from dyn_core.model.mjcf.compiled import first_element
from dyn_core.model.mjcf.load import read_mjcf
from dyn_core.model.model import Model
from dyn_core.model.reading import Choices
from dyn_core.model.sidecar import Extras
from dyn_core.model.sources.locate import Located, locate
from dyn_core.model.sources.origin import Origin
from dyn_core.model.sources.packages import Folders
from dyn_core.model.sources.xacro_files import argument_values, expand, uses_xacro
from dyn_core.model.urdf import read_urdf
from dyn_core.model.urdf_xml.source import Source, parse_xml, read_source
from dyn_core.validation import known_keywords


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
        lock, root, tip: Joints to fix, first and last link of a sub-chain, as in
            load_urdf.
        extras, sidecar: Sidecar, and whether the file beside the robot's is read, as in
            load_urdf.
        check: warn, or error to raise a ModelError for doubtful elements.
        gravity: Gravity acceleration in the root frame, 3 [m/s²]; None: as in an MJCF,
            (0, 0, -9.81) for a URDF.
        package_paths: Folders that are packages or contain packages, for package:// and
            $(find PKG); they are searched before the parent folders of the file,
            AMENT_PREFIX_PATH and ROS_PACKAGE_PATH.
        xacro_arguments: Values of <xacro:arg>, by name.

    Raises:
        ModelError: There is no such robot, or it or an argument is not valid; names the
            element and valid alternatives.
        UnsupportedError: An MJCF without mujoco installed.
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
    """The XML of a robot.

    Attributes:
        text: The whole text, xacro expanded.
        root: Root element; for an MJCF it may have no children.
        origin: Record of the source.
    """

    text: str
    root: Element
    origin: Origin


def read_robot(
    located: Located, xacro_arguments: Mapping[str, Any] | None = None
) -> RobotXml:
    """Return the XML of a robot, xacro expanded, and its origin.

    Args:
        located: Robot that was looked up.
        xacro_arguments: Values of <xacro:arg>, by name.

    Raises:
        ModelError: It cannot be read or expanded, is an SDF, or has arguments but
            nothing to expand.
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
    """Return the root element; raise ModelError with the name of the file.

    An MJCF that is not well-formed XML becomes an empty <mujoco> element.
    """
    try:
        return parse_xml(text)
    except ModelError as error:
        if first_element(text.encode("utf-8", "replace"))[0] == "mujoco":
            return Element("mujoco")  # MuJoCo reports the error, or accepts the file
        if file is None:
            raise
        raise ModelError(f"cannot read the URDF file {file}: {error}") from error
