"""Topics for RViz and Foxglove: /tf, /tf_static, markers of mass and forces."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, TransformStamped

import dyn_core as dyn
from dyn_core.simulation.channels import Channels
from dyn_core.spatial.conventions import quaternion
from ros_nodes.base.node import LATCHED, RobotNode
from ros_nodes.simulator.plant_topics import set_vector, transform_message

MASS, FORCE, TORQUE = (0.94, 0.89, 0.26), (0.77, 0.2, 0.0), (0.0, 0.45, 0.7)
SPHERE, ARROW, DELETE_ALL = 2, 0, 3  # of visualization_msgs/Marker
TRANSFORMS = "tf2_msgs", "TFMessage"
MARKERS = "visualization_msgs", "MarkerArray"


class SceneTopics:
    """Publishes the frames of links, and markers, while somebody listens.

    - /tf, /tf_static (tf2_msgs): each link in its parent, the root link in the world
      frame (parameter contact.frame_id). Links that do not move in their parent are
      static.
    - ~/markers (visualization_msgs, MarkerArray): the centre of mass of the moving
      bodies with their payload, and arrows of contact forces and of the wrench of
      contact.wrench_link, in the world frame. The arrow of the robot's weight would be
      as long as the robot.

    Topics whose messages are not installed are logged, and not published.
    """

    def __init__(self, node: RobotNode, plant: Any, channels: Channels) -> None:
        self.node, self.plant, self.channels = node, plant, channels
        self._outputs: list[tuple[Any, Callable[[], Any]]] = []
        frames, array = (_kind(node, *x) for x in (TRANSFORMS, MARKERS))
        if frames is None and array is None:
            return
        model = plant.model
        described, places = model.build.description, model.frames
        self._links = [x.name for x in described.links if x.name in places]
        engine = node.value("engine") or None
        self._kinematics = dyn.solver("forward_kinematics").build(
            model, frames=self._links, engine=engine
        )
        self._world = node.value("contact.frame_id")
        above = {x.child: x.parent for x in described.joints if x.parent in places}
        self._parents = [above.get(link, self._world) for link in self._links]
        if frames is not None:
            self._transform = frames
            self._offer(frames, "/tf", 10, lambda: self._transforms(False))
            still = node.create_publisher(frames, "/tf_static", LATCHED)
            node.keep(still).publish(self._transforms(True))
        if array is not None:
            self._array, self._marker = array, _kind(node, MARKERS[0], "Marker")
            self._centre = dyn.solver("centre_of_mass").build(
                model, inputs=plant.carried.paths, engine=engine
            )
            self._centre.prepare()  # not in a cycle, where it would delay states
            self._offer(array, "~/markers", 1, self._scene)
        node.every(1.0 / node.value("scene_rate"), self.publish)

    def _offer(self, kind: Any, topic: str, qos: int, make: Callable[[], Any]) -> None:
        publisher = self.node.keep(self.node.create_publisher(kind, topic, qos))
        self._outputs.append((publisher, make))

    def publish(self) -> None:
        """Publish /tf and ~/markers, each if it has subscribers; never /tf_static."""
        for publisher, make in self._outputs:
            if publisher.get_subscription_count():
                publisher.publish(make())

    def _poses(self) -> np.ndarray:
        """Return the poses of `_links` in the world, (links, 4, 4)."""
        return np.asarray(self._kinematics(self.plant.q))

    def _transforms(self, fixed: bool) -> Any:
        """Return a TFMessage of links in parents, `fixed` ones or those that move."""
        message, stamp = self._transform(), self.node.stamp()
        places, poses = self.plant.model.frames, self._poses()
        of = dict(zip(self._links, poses, strict=True))
        for link, parent in zip(self._links, self._parents, strict=True):
            body = places[parent].body if parent in of else 0
            if (places[link].body == body) != fixed or link == parent:
                continue
            pose = np.linalg.inv(of.get(parent, np.eye(4))) @ of[link]
            each = TransformStamped(child_frame_id=link)
            each.header.stamp, each.header.frame_id = stamp, parent
            each.transform = transform_message(pose[:3, 3], quaternion(pose[:3, :3]))
            message.transforms.append(each)
        return message

    def _scene(self) -> Any:
        """Return the MarkerArray of ~/markers at the last state, in the world frame.

        The first marker deletes those of the last message. Arrows are scaled by the
        weight without payload; without it, one of 1 N or 1 N·m is as long as the robot.
        """
        message, poses, model = self._array(), self._poses(), self.plant.model
        size = max(float(np.ptp(poses[:, :3, 3], axis=0).max()), 0.1)
        self._add(message, "").action = DELETE_ALL
        mass, zero = float(model.mass), np.zeros(model.nv)
        if mass:
            carried = self.plant.carried.values
            centre = self._centre(self.plant.q, zero, zero, *carried)[0]
            ball = self._add(message, "centre of mass", SPHERE, MASS, [0.05 * size] * 3)
            set_vector(ball.pose.position, np.asarray(centre))
        length = size / (mass * np.linalg.norm(model.a_grav.lin) or 1.0)
        for name, point, force, colour in self._arrows(poses):
            wide = [0.02 * size, 0.04 * size, 0.0]
            arrow = self._add(message, name, ARROW, colour, wide)
            arrow.points += [Point(), Point()]
            set_vector(arrow.points[0], point)
            set_vector(arrow.points[1], point + length * force)
        return message

    def _arrows(self, poses: np.ndarray) -> Iterator[tuple[str, Any, Any, Any]]:
        """Yield name, point [m], vector and colour of each arrow, in the world frame.

        They are the contact forces [N], then torque [N·m] and force [N] of the sensor.
        """
        for x in self.channels.forces.get("contacts", list)() or ():
            yield "contacts", np.asarray(x.point), x.force[3:], FORCE
        link, sensed = self.node.value("contact.wrench_link"), self.channels.wrench
        w = sensed(link) if link and sensed is not None else None
        if w is not None:
            X = poses[self._links.index(link)]
            yield "wrench: torque", X[:3, 3], X[:3, :3] @ w[:3], TORQUE
            yield "wrench: force", X[:3, 3], X[:3, :3] @ w[3:], FORCE

    def _add(
        self, message: Any, name: str, kind: int = 0, colour: Any = MASS,
        scale: Any = (0.0, 0.0, 0.0),
    ) -> Any:  # fmt: skip
        """Append a marker in the world frame to a MarkerArray; return the marker.

        `scale`: sizes x, y, z [m]; of an ARROW diameters of shaft and head, and 0.
        """
        marker = self._marker()
        marker.header.frame_id, marker.header.stamp = self._world, self.node.stamp()
        marker.ns, marker.id, marker.type = name, len(message.markers), kind
        set_vector(marker.scale, np.array(scale))
        c = marker.color
        (c.r, c.g, c.b), c.a = colour, 1.0
        message.markers.append(marker)
        return marker


def _kind(node: RobotNode, package: str, name: str) -> Any:
    """Return a message type; None if scene_rate is 0, or if it is not installed."""
    if not node.value("scene_rate"):
        return None
    try:
        return getattr(importlib.import_module(f"{package}.msg"), name)
    except ImportError:
        what = f"{package} is not installed; scene_rate 0 leaves this line out"
        node.get_logger().info(f"no {name} for RViz and Foxglove: {what}")
        return None
