"""Stage: the bodies of a VisualScene as nodes of viser, which a browser shows.

LAYERS are visual, collision, inertia, centre of mass, frames and contact forces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.view import colors
from dyn_core.view.film import colors_of_bodies
from dyn_core.view.painter import LIGHT, SKY_LOW, SKY_TOP, VIEW_ANGLE, grid_step
from dyn_core.view.replay import Arrows, arrow_ends
from dyn_core.view.scene import COLLISION, INERTIA, VISUAL, Camera, Part, VisualScene

LAYERS = (VISUAL, COLLISION, INERTIA, "centre of mass", "frames", "contact forces")
SHOWN = (VISUAL, "contact forces")  # layers that are shown initially


class Stage:
    """The nodes of a viser server for a VisualScene, first in its initial state.

    `camera` None: a view of the whole scene; `visual`: surfaces of the layer VISUAL,
    None: the scene's. `layers`: whether each of LAYERS is shown.
    """

    def __init__(
        self,
        server: Any,
        scene: VisualScene,
        camera: Camera | None = None,
        visual: Sequence[Part] | None = None,
    ) -> None:
        self.server, self.scene = server, scene
        self.layers = {name: name in SHOWN for name in LAYERS}
        self._visual = scene.parts() if visual is None else tuple(visual)
        poses = scene.poses(scene.start())
        self.camera = camera or scene.camera(poses[None], self._visual)
        self._light()
        size = self.camera.size
        self._bodies = [
            server.scene.add_frame(
                f"/bodies/{i}",
                show_axes=False,
                axes_length=0.09 * size,
                axes_radius=0.004 * size,
            )
            for i in range(len(scene.bodies))
        ]
        self._meshes: dict[str, list[tuple[Part, Any]]] = {}
        self._add(VISUAL)
        self._mass = server.scene.add_icosphere(
            "/mass", radius=0.025 * size, color=colors.MASS, visible=False
        )
        self._arrows = server.scene.add_arrows(
            "/contacts",
            np.zeros((1, 2, 3)),
            colors.FORCE,
            shaft_radius=0.006 * size,
            head_radius=0.015 * size,
            head_length=0.04 * size,
            visible=False,
        )
        self._colors: dict[int, colors.Color] = {}
        self.place(poses)

    def _light(self) -> None:
        """Set camera, lights, background and ground grid of the server."""
        view, scene = self.camera, self.server.scene
        self.server.initial_camera.position = tuple(view.place)
        self.server.initial_camera.look_at = tuple(view.target)
        self.server.initial_camera.fov = VIEW_ANGLE
        self.server.initial_camera.near = 0.01 * view.size
        self.server.initial_camera.far = 100.0 * view.size
        scene.configure_default_lights(False)
        scene.add_light_directional(
            "/light", intensity=2.0, cast_shadow=True, position=tuple(LIGHT)
        )
        scene.add_light_directional(
            "/fill", intensity=1.0, position=tuple(view.place - view.target)
        )
        # No environment map: a recorded page fades out until it has it, at each repeat.
        scene.configure_environment_map(None)
        scene.add_light_hemisphere(
            "/sky",
            sky_color=(255, 255, 255),
            ground_color=(200, 205, 212),
            intensity=1.0,
        )
        scene.set_background_image(_sky(), format="png")
        step = grid_step(view.size)
        scene.add_grid(
            "/ground",
            infinite_grid=True,
            cell_size=step,
            section_size=5 * step,
            cell_color=(196, 203, 212),
            section_color=(164, 173, 184),
            fade_distance=9.0 * view.size,
            shadow_opacity=0.25,
            # below the floor, behind surfaces that lie on it
            position=(0.0, 0.0, view.floor - 1e-3 * view.size),
        )

    def _add(self, layer: str) -> None:
        """Add the surfaces of a layer as nodes, unless it has none or was added."""
        if layer in self._meshes or layer not in (VISUAL, COLLISION, INERTIA):
            return
        parts = self._visual if layer == VISUAL else self.scene.parts(layer)
        self._meshes[layer] = [
            (
                part,
                self.server.scene.add_mesh_simple(
                    f"/bodies/{part.body}/{layer}/{k}",
                    part.triangles.vertices,
                    part.triangles.faces,
                    color=part.color,
                    opacity=None if part.opacity >= 1.0 else part.opacity,
                    flat_shading=part.flat,
                    side="double",
                ),
            )
            for k, part in enumerate(parts)
        ]

    def show(self, layer: str, wanted: bool) -> None:
        """Show or hide one of LAYERS; contact forces from the next `place` on."""
        self.layers[layer] = wanted
        if wanted:
            self._add(layer)
        for _, mesh in self._meshes.get(layer, ()):
            mesh.visible = wanted
        if layer == "frames":
            for body in self._bodies:
                body.show_axes = wanted
        elif layer == "centre of mass":
            self._mass.visible = wanted

    def place(
        self,
        poses: np.ndarray,
        shares: np.ndarray | None = None,
        forces: Arrows | None = None,
    ) -> None:
        """Move all bodies and the centre of mass, draw forces, set colours of bodies.

        `shares` are joint forces relative to their maxima, -1..1, (nv,), None: colours
        of the parts. `forces` (k, 2, 3) are pairs of a point [m] and the force [N] at
        it, in the world.
        """
        with self.server.atomic():
            for body, pose, wxyz in zip(
                self._bodies, poses, quaternions(poses), strict=True
            ):
                body.wxyz, body.position = wxyz, pose[:3, 3]
            centre = self.scene.mass_centre(poses)
            if centre is not None:
                self._mass.position = centre
            self._point(forces)
            self._paint(colors_of_bodies(self.scene, shares))

    def _point(self, forces: Arrows | None) -> None:
        """Draw the arrows of contact forces; hide them without forces or if not shown.

        `forces` (k, 2, 3) are pairs of a point [m] and the force [N] at it. Forces
        below a thousandth of the scene's weight, and all forces of scenes without a
        weight, are left out.
        """
        ends = arrow_ends(self.scene, self.camera.size, forces)
        shown = bool(ends) and self.layers["contact forces"]
        if shown:
            self._arrows.points = np.array(ends, np.float32)
        if self._arrows.visible != shown:
            self._arrows.visible = shown

    def _paint(self, wanted: dict[int, colors.Color]) -> None:
        """Set the colours of the visual surfaces, by body; only changed ones are sent.

        Bodies without a colour in `wanted` have the colours of their parts.
        """
        if wanted == self._colors:
            return
        for part, mesh in self._meshes[VISUAL]:
            now = wanted.get(part.body, part.color)
            if now != self._colors.get(part.body, part.color):
                mesh.color = now
        self._colors = dict(wanted)


def _sky() -> np.ndarray:
    """Return the background, a vertical gradient, (64, 2, 3) uint8, RGB."""
    share = np.linspace(0.0, 1.0, 64)[:, None, None]
    rows = (1 - share) * np.array(SKY_TOP) + share * np.array(SKY_LOW)
    return np.asarray(np.round(255 * np.repeat(rows, 2, axis=1)), np.uint8)


def quaternions(poses: np.ndarray) -> np.ndarray:
    """Return rotations of poses (n, 4, 4) as unit quaternions (w, x, y, z), (n, 4)."""
    R = poses[:, :3, :3]
    columns = np.empty((len(R), 4, 4))
    trace = np.trace(R, axis1=1, axis2=2)
    x, y, z = R[:, 0, 0], R[:, 1, 1], R[:, 2, 2]
    a, b, c = R[:, 2, 1], R[:, 0, 2], R[:, 1, 0]
    d, e, f = R[:, 1, 2], R[:, 2, 0], R[:, 0, 1]
    columns[:, 0] = np.column_stack([1 + trace, a - d, b - e, c - f])
    columns[:, 1] = np.column_stack([a - d, 1 + x - y - z, c + f, b + e])
    columns[:, 2] = np.column_stack([b - e, c + f, 1 - x + y - z, a + d])
    columns[:, 3] = np.column_stack([c - f, b + e, a + d, 1 - x - y + z])
    # The column with the largest norm is far from a division by zero.
    best = np.argmax(np.column_stack([trace, x, y, z]), axis=1)
    chosen = columns[np.arange(len(R)), best]
    result: np.ndarray = chosen / np.linalg.norm(chosen, axis=1, keepdims=True)
    return result
