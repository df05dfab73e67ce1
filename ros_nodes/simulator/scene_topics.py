"""Topics for RViz and Foxglove: /tf, /tf_static, markers of mass and forces."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, TransformStamped

import dyn_core as dyn
from dyn_core.simulation.channels import Channels
from dyn_core.spatial.conventions import quaternion
from ros_nodes.base.node import LATCHED, RobotNode
from ros_nodes.simulator.plant_topics import set_vector, transform_message

MASS, CONTACT, TORQUE = (0.94, 0.89, 0.26), (0.77, 0.2, 0.0), (0.0, 0.45, 0.7)
SPHERE, ARROW, DELETE_ALL = 2, 0, 3  # of visualization_msgs/Marker


class SceneTopics:
    """Publishes the frames of links, and markers, while somebody listens.

    - /tf, /tf_static (tf2_msgs): each link in its parent, the root link in the world
      frame (parameter contact.frame_id). Links that do not move in their parent are
      static.
    - ~/markers (visualization_msgs, MarkerArray): the centre of mass, and arrows of
      contact forces and of the wrench of contact.wrench_link, in the world frame. The
      arrow of the robot's weight would be as long as the robot.

    What the installation has no messages for is logged, and not published.

    Args:
        node: The simulator node, configured with a robot.
        plant: Its plant.
        channels: The channels of the plant.
    """

    def __init__(self, node: RobotNode, plant: Any, channels: Channels) -> None:
        self.node, self.plant, self.channels = node, plant, channels
        rate, model = node.value("scene_rate"), plant.model
        array = _kind(node, "visualization_msgs", "MarkerArray") if rate else None
        frames = _kind(node, "tf2_msgs", "TFMessage") if rate else None
        if array is None and frames is None:
            return
        described, places = model.build.description, model.frames
        self._links = [x.name for x in described.links if x.name in places]
        self._kinematics = dyn.solver("forward_kinematics").build(
            model,
            frames=self._links,
            inputs=["time"] if model.driven else [],
            engine=node.value("engine") or None,
        )
        self._world = node.value("contact.frame_id")
        above = {x.child: x.parent for x in described.joints if x.parent in places}
        self._parents = [above.get(link, self._world) for link in self._links]
        bodies = [places[x].body if x in places else 0 for x in self._parents]
        self._fixed = [
            places[link].body == body
            for link, body in zip(self._links, bodies, strict=True)
        ]
        inertias = [places[link].inertia for link in self._links]
        self._masses = np.array([float(I.m) for I in inertias])
        self._centres = np.array([[*map(float, I.c), 1.0] for I in inertias])
        self._markers = self._moving = None
        if array is not None:
            publisher = node.create_publisher(array, "~/markers", 1)
            self._markers = node.keep(publisher)
        if frames is not None:
            self._moving = node.keep(node.create_publisher(frames, "/tf", 10))
            still = node.create_publisher(frames, "/tf_static", LATCHED)
            node.keep(still).publish(self._transforms(frames, True))
        self._kinds = array, frames
        node.every(1.0 / rate, self.publish)

    def publish(self) -> None:
        """Publish frames and markers for which there are subscribers."""
        heard = [x is not None and x.get_subscription_count() > 0
                 for x in (self._markers, self._moving)]  # fmt: skip
        if heard[1]:
            self._moving.publish(self._transforms(self._kinds[1], False))
        if heard[0]:
            self._markers.publish(self._scene(self._kinds[0]))

    def _poses(self) -> np.ndarray:
        """Return the poses of the links in the world, (links, 4, 4)."""
        time = (np.zeros(1),) if self.plant.model.driven else ()
        return np.asarray(self._kinematics(self.plant.q, *time))

    def _transforms(self, kind: Any, fixed: bool) -> Any:
        """Return a TFMessage of the links that are fixed in their parents, or not."""
        message, stamp, poses = kind(), self.node.stamp(), self._poses()
        index = {link: k for k, link in enumerate(self._links)}
        for k, parent in enumerate(self._parents):
            if self._fixed[k] != fixed or parent == self._links[k]:
                continue
            pose = poses[k]
            if parent in index:
                pose = np.linalg.inv(poses[index[parent]]) @ pose
            each = TransformStamped(child_frame_id=self._links[k])
            each.header.stamp, each.header.frame_id = stamp, parent
            each.transform = transform_message(pose[:3, 3], quaternion(pose[:3, :3]))
            message.transforms.append(each)
        return message

    def _scene(self, kind: Any) -> Any:
        """Return a MarkerArray; its first marker deletes those of the last message."""
        message, poses, plant = kind(), self._poses(), self.plant
        spots = poses[:, :3, 3]
        size = max(float(np.ptp(spots, axis=0).max()), 0.1)
        weight = self._masses.sum() * np.linalg.norm(plant.model.a_grav.lin) or 1.0
        self._add(message, "", DELETE_ALL)
        if self._masses.any():
            held = np.einsum("kij,kj->ki", poses[:, :3], self._centres)
            centre = self._add(message, "centre of mass", SPHERE, MASS, 0.05 * size)
            set_vector(centre.pose.position, self._masses @ held / self._masses.sum())
        arrows = [
            ("contacts", x.point, x.force[3:], CONTACT)
            for x in self.channels.forces.get("contacts", list)() or ()
        ]
        link = self.node.value("contact.wrench_link")
        sensed = self.channels.wrench
        w = sensed(link) if link and sensed is not None else None
        if w is not None:
            pose = poses[self._links.index(link)]
            turned = pose[:3, :3] @ w.reshape(2, 3).T
            for k, colour in enumerate((TORQUE, CONTACT)):
                name = f"wrench: {('torque', 'force')[k]}"
                arrows.append((name, pose[:3, 3], turned[:, k], colour))
        for name, point, force, colour in arrows:
            arrow = self._add(message, name, ARROW, colour, 0.02 * size)
            for end in (point, point + force * size / weight):
                place = Point()
                set_vector(place, np.asarray(end, float))
                arrow.points.append(place)
        return message

    def _add(
        self, message: Any, name: str, kind: int, colour: Any = MASS, width: float = 0.0
    ) -> Any:
        """Append a marker to a MarkerArray, and return it.

        Args:
            message: The array.
            name: Namespace of the marker.
            kind: SPHERE, ARROW or DELETE_ALL.
            colour: Red, green, blue, 0 to 1.
            width: Diameter; an arrow's head is twice as wide [m].
        """
        marker = importlib.import_module("visualization_msgs.msg").Marker()
        marker.header.frame_id, marker.header.stamp = self._world, self.node.stamp()
        marker.ns, marker.id = name, len(message.markers)
        if kind == DELETE_ALL:
            marker.action = DELETE_ALL
        else:
            marker.type = kind
        head = width if kind == SPHERE else 2 * width
        set_vector(
            marker.scale, np.array([width, head, width if kind == SPHERE else 0.0])
        )
        marker.color.r, marker.color.g, marker.color.b = colour
        marker.color.a = 1.0
        message.markers.append(marker)
        return marker


def _kind(node: RobotNode, package: str, name: str) -> Any:
    """Return a type of messages, or None, which is logged, if it is not installed."""
    try:
        return getattr(importlib.import_module(f"{package}.msg"), name)
    except ImportError:
        node.get_logger().info(
            f"no {'/tf' if package == 'tf2_msgs' else 'markers'} for RViz: {package} is"
            " not installed; docs/ros_installations.md says what has it"
        )
        return None
