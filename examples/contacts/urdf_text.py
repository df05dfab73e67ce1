"""URDF of boxes, balls and joints, as text."""

from __future__ import annotations

from typing import Any


def link(name: str, mass: float, **shape: Any) -> str:
    """Return the URDF of a solid box or ball: size=(x, y, z) or radius=r [m]."""
    if "size" in shape:
        x, y, z = shape["size"]
        I = [mass / 12 * s for s in (y * y + z * z, x * x + z * z, x * x + y * y)]
        geometry = f'<box size="{x} {y} {z}"/>'
    else:
        r = shape["radius"]
        I, geometry = [0.4 * mass * r * r] * 3, f'<sphere radius="{r}"/>'
    moments = " ".join(
        f'{k}="{v}"'
        for k, v in zip(
            ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), [*I, 0, 0, 0], strict=True
        )
    )
    return (
        f'<link name="{name}"><inertial><mass value="{mass}"/><inertia {moments}/>'
        f"</inertial><collision><geometry>{geometry}</geometry></collision></link>"
    )


def robot(name: str, *parts: str) -> str:
    """Return the URDF of a robot from its parts."""
    return f'<robot name="{name}">{"".join(parts)}</robot>'


def joint(name: str, kind: str, parent: str, child: str, axis: str = "") -> str:
    """Return the URDF of a joint."""
    limit = '<limit lower="-100" upper="100" effort="0" velocity="0"/>'
    turned = f'<axis xyz="{axis}"/>{limit}' if axis else ""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/>'
        f'<child link="{child}"/>{turned}</joint>'
    )
