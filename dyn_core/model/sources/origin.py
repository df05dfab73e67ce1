"""Origin: the record of a robot's source, stored with its Model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """The source of a robot: file, name, collection, sidecar and packages.

    Attributes:
        kind: urdf, xacro or mjcf; empty for a robot that was not read.
        file: Path of the file; None if it was read from text.
        name: Name given by the user; empty if the user gave a path or text.
        collection: Collection of the name: shipped, example-robot-data,
            robot_descriptions; empty for a path, a package:// address or text.
        sidecar: Name of the sidecar that was read, or None.
        xacro_arguments: Names and values.
        packages: Names and folders of the packages that were needed.
        package_paths: Folders where packages are searched first, also for meshes.
    """

    kind: str = ""
    file: str | None = None
    name: str = ""
    collection: str = ""
    sidecar: str | None = None
    xacro_arguments: tuple[tuple[str, str], ...] = ()
    packages: tuple[tuple[str, str], ...] = ()
    package_paths: tuple[str, ...] = ()

    def describe(self) -> list[str]:
        """Return the record as lines of text; empty for a robot that was not read.

        The first line names the file and its kind. Further ones have the sidecar, xacro
        arguments, used packages, and the user's folders of packages (not for a robot of
        a collection), each only if there are some.
        """
        if not self.kind:
            return []
        lines = [f"read from {self.file or 'text'} ({self.kind})"]
        if self.name:
            kind = f"{self.collection} robot" if self.collection else "address"
            lines[0] += f", {kind} '{self.name}'"
        if self.sidecar is not None:
            lines.append(f"sidecar: {self.sidecar}")
        if self.xacro_arguments:
            pairs = ", ".join(f"{key}={value}" for key, value in self.xacro_arguments)
            lines.append(f"xacro arguments: {pairs}")
        lines += [f"package {name}: {folder}" for name, folder in self.packages]
        if self.package_paths and not self.collection:
            lines.append(f"packages searched first in {', '.join(self.package_paths)}")
        return lines
