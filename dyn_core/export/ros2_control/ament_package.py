"""A package of ament_cmake from templates, kernels and a URDF."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from xml.etree import ElementTree

from dyn_core.engines import Program
from dyn_core.errors import ModelError, SettingError, UnsupportedError
from dyn_core.export.folder import FORMAT, source_files, write_files
from dyn_core.export.interface import LICENSE, Interface
from dyn_core.export.ros2_control.parameters import cpp_number
from dyn_core.model import Model
from dyn_core.validation.quoting import c_comment, c_string, markdown_code, xml_text

FORM = "ros2_control"
# Files of every package, and their templates.
COMMON = {
    **{x: x for x in ("CMakeLists.txt", "package.xml", "plugins.xml")},
    "test/load_plugin.cpp": "load_plugin.cpp",
}
_PACKAGE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")
_PLACE = re.compile(r"@(\w+)@")


class AmentPackage:
    """The files of a package, collected in `contents` by name, then written at once.

    Joints must be of one coordinate, the base fixed. `interfaces` are those of the
    kernels in the order of add_kernel.
    """

    def __init__(self, folder: str | os.PathLike[str], model: Model) -> None:
        self.folder, self.model = Path(folder), model
        self.name = Path(os.path.abspath(folder)).name
        if not _PACKAGE.match(self.name):
            raise SettingError(
                f"package {self.name!r}; valid: lower-case letters, digits and single"
                " underscores, beginning with a letter, as in my_arm_control",
                "folder",
            )
        for joint in model.joint_names:
            kind = model.joint_kind(joint)
            if kind not in ("revolute", "continuous", "prismatic"):
                raise UnsupportedError(
                    f"form {FORM}: joint '{joint}' is {kind}; valid: revolute,"
                    " continuous and prismatic joints on a fixed base"
                )
        self.contents: dict[str, bytes] = {}
        self.interfaces: list[Interface] = []

    def add_kernel(self, program: Program, suffix: str) -> None:  # type: ignore[type-arg]
        """Add the C code of a Program, PACKAGE_SUFFIX, and its interface."""
        files, interface = source_files(program, f"{self.name}_{suffix}")
        self.interfaces.append(interface)
        for name, data in files.items():
            checks = name.endswith(("_check.c", "_test.h"))
            self.contents[f"{'test' if checks else 'src'}/{name}"] = data

    def values(
        self, about: str, base: str, depends: Sequence[str], runs: Sequence[str] = ()
    ) -> dict[str, str]:
        """Return the texts of the templates that all packages have, by name.

        At least one kernel has been added. `about` is a noun phrase; the first of
        `depends` has the plugin's base class `base`; `runs` are needed to run only.
        """
        model, library = self.model, self.interfaces[0].library
        names = model.joint_names
        # A name that ends with a backslash would continue a comment on its next line.
        about = f"{about} for robot {model.name}, by dyn_ros {library}"
        kernels = [x.prefix for x in self.interfaces]
        elements = [f"  <depend>{name}</depend>" for name in depends]
        elements += [f"  <exec_depend>{name}</exec_depend>" for name in runs]
        return {
            "base": base,
            "base_header": re.sub(r"\B([A-Z])", r"_\1", base).lower(),
            "interface": depends[0],
            "depends": " ".join(depends),
            "depend_elements": "\n".join(elements),
            "kernels": " ".join(kernels),
            "headers": "\n".join(f'#include "{x}.h"' for x in kernels),
            "package": self.name,
            "library": library,
            "license": LICENSE,
            "spdx": f"SPDX-License-Identifier: {LICENSE}",
            "about": c_comment(about).removeprefix("/* ").removesuffix(" */"),
            "description": xml_attribute(about),
            "robot": c_string(model.name),
            "robot_code": markdown_code(model.name),
            "joint_list": ", ".join(map(markdown_code, names)),
            "count": str(len(names)),
            "scratch": str(max(64, *(x.scratch for x in self.interfaces))),
            "joints": ",\n    ".join(map(c_string, names)),
        }

    def fill(self, templates: Mapping[str, str], values: Mapping[str, str]) -> None:
        """Add files to `contents` from .in templates, @name@ replaced by its value."""
        for name, template in templates.items():
            place = resources.files(__package__) / "templates" / f"{template}.in"
            text = place.read_text(encoding="utf-8")
            filled = _PLACE.sub(lambda match: values[match[1]], text)
            self.contents[name] = filled.encode()

    def write(self) -> tuple[Path, ...]:
        """Write the files, then NAME.json with their digests; return all paths.

        Unchanged files of an earlier export that are no longer among them are removed.
        If a file to be replaced is of no export or was changed, none is written.
        """
        digests = {k: hashlib.sha256(v).hexdigest() for k, v in self.contents.items()}
        facts = {"format": FORMAT, "license": LICENSE, "form": FORM, "files": digests}
        manifest = f"{self.name}.json"
        contents = {**self.contents, manifest: json.dumps(facts, indent=1).encode()}
        write_files(self.folder, contents, manifest)
        return tuple(self.folder / name for name in contents)


def xml_attribute(text: str) -> str:
    """Return text escaped for XML; invisible characters become underscores."""
    element = ElementTree.Element("x", {"x": text})
    return xml_text(element).removeprefix('<x x="').removesuffix('" />')


def urdf_with_hardware(urdf: str, model: Model, plugin: str) -> str:
    """Return a URDF with a hardware component in place of its <ros2_control> elements.

    Each joint, of one coordinate, has the command effort and the states position,
    velocity and effort, which begin at model.start(), 0 and 0. `plugin` names the
    component's class.
    """
    try:
        robot = ElementTree.fromstring(urdf)
    except ElementTree.ParseError as error:
        raise ModelError(f"form {FORM}: {error}; valid: a robot in URDF") from error
    if robot.tag != "robot":
        raise ModelError(f"form {FORM}: <{robot.tag}>; valid: a robot in URDF")
    for element in robot.findall("ros2_control"):
        robot.remove(element)
    system = ElementTree.SubElement(
        robot, "ros2_control", {"name": "robot", "type": "system"}
    )
    hardware = ElementTree.SubElement(system, "hardware")
    ElementTree.SubElement(hardware, "plugin").text = plugin
    for name, q in zip(model.joint_names, model.start(), strict=True):
        joint = ElementTree.SubElement(system, "joint", {"name": name})
        ElementTree.SubElement(joint, "command_interface", {"name": "effort"})
        for kind, value in (("position", q), ("velocity", 0.0), ("effort", 0.0)):
            state = ElementTree.SubElement(joint, "state_interface", {"name": kind})
            first = ElementTree.SubElement(state, "param", {"name": "initial_value"})
            first.text = cpp_number(value)
    ElementTree.indent(robot)
    comment = f"<!-- SPDX-License-Identifier: {LICENSE} -->\n"
    return f'<?xml version="1.0"?>\n{comment}{xml_text(robot)}\n'
