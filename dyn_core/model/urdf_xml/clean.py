"""A clean URDF under construction, in which equal elements appear only once.

urdf-parser-py takes several times as long for an element as all other steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement

Place = tuple[str, int]  # link or joint, and its number among them
Texts = dict[str, str]  # attributes
Inside = tuple[str, Texts]  # tag and attributes of an element in another one
Parsed = Any  # a robot of urdf_parser_py, which has no types


@dataclass
class CleanRobot:
    """A URDF with the elements that the parser reads, and those read elsewhere.

    Attributes:
        element: The <robot> element for the parser.
        shapes: By link: its <visual> and <collision> elements, in their order.
        materials: The <material> elements of the robot itself.
        limits: By joint: the limits that URDF 1.2 added.
        equal: Omitted elements: link or joint, tag, and the owner of an equal element.
        counts: Numbers of links and joints so far.
        owners: By tag and content of an element: the link or joint that has it.
    """

    element: Element
    shapes: dict[str, list[Element]] = field(default_factory=dict)
    materials: list[Element] = field(default_factory=list)
    limits: dict[str, dict[str, float]] = field(default_factory=dict)
    equal: list[tuple[Place, str, Place]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    owners: dict[tuple[object, ...], Place] = field(default_factory=dict)

    def new(self, kind: str, **names: str) -> CleanPart:
        """Add an empty link or joint, with attributes `names`, and return it."""
        number = self.counts.get(kind, 0)
        self.counts[kind] = number + 1
        return CleanPart(self, (kind, number), SubElement(self.element, kind, names))


class CleanPart(NamedTuple):
    """A link or joint of a CleanRobot; `place` is the kind and the index in it."""

    robot: CleanRobot
    place: Place
    element: Element

    def add(self, tag: str, texts: Texts, inside: Sequence[Inside] = ()) -> None:
        """Add a child element, unless a link or joint has an equal one already.

        Then that owner is recorded in robot.equal. `inside` are its child elements.
        """
        key: tuple[object, ...] = (tag, *texts.items())
        if inside:
            key = (*key, *[(name, *inner.items()) for name, inner in inside])
        owner = self.robot.owners.setdefault(key, self.place)
        if owner is not self.place:
            self.robot.equal.append((self.place, tag, owner))
            return
        element = SubElement(self.element, tag, texts)
        for inner_tag, inner in inside:
            SubElement(element, inner_tag, inner)


def complete(robot: Parsed, clean: CleanRobot) -> None:
    """Set the parsed elements that were omitted in all links and joints of `robot`.

    They are the same objects as in the links and joints that have them, not copies.
    """
    read = {"link": robot.links, "joint": robot.joints}
    for (kind, number), tag, (_, owner) in clean.equal:
        setattr(read[kind][number], tag, getattr(read[kind][owner], tag))
