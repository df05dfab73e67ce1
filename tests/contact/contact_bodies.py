"""Bodies and robots as URDF text, for the tests of contacts on robots."""

import numpy as np

import dyn_core as dyn

G_EARTH = 9.81


def link(name, m, inertia, shape="", xyz=(0, 0, 0), origin=(0, 0, 0)):
    """Return a link: mass at xyz, principal inertia about it, a collision shape at `at`."""
    ixx, iyy, izz = inertia
    place, centre = " ".join(map(str, origin)), " ".join(map(str, xyz))
    collision = (
        f'<collision><origin xyz="{place}"/><geometry>{shape}</geometry></collision>'
    )
    return (
        f'<link name="{name}"><inertial><origin xyz="{centre}"/><mass value="{m}"/>'
        f'<inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" iyz="0"/>'
        f"</inertial>{collision if shape else ''}</link>"
    )


def joint(name, kind, parent, child, axis=(0, 0, 1), xyz=(0, 0, 0), more=""):
    """Return a joint."""
    kind_line = f'<joint name="{name}" type="{kind}">'
    limit = (
        ""
        if kind in ("floating", "continuous", "fixed")
        else ('<limit lower="-1000" upper="1000" effort="0" velocity="1000"/>')
    )
    return (
        f'{kind_line}<parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{" ".join(map(str, xyz))}"/>'
        f'<axis xyz="{" ".join(map(str, axis))}"/>{more or limit}</joint>'
    )


def robot(*parts, gravity=(0, 0, -G_EARTH), **extras):
    """Return the Model of some links and joints on a base called `base`."""
    text = f'<robot name="r"><link name="base"/>{"".join(parts)}</robot>'
    return dyn.load_urdf(text, gravity=gravity, extras=extras or None, check="warn")


def sphere(radius):
    """Return a sphere."""
    return f'<sphere radius="{radius}"/>'


def box(*size):
    """Return a box."""
    return f'<box size="{" ".join(map(str, size))}"/>'


def free_box(m=2.0, half=(0.5, 0.4, 0.25), shift=(0, 0, 0), **extras):
    """Return C1's box, floating; its centre of mass moved by `shift`."""
    a, b, c = half
    inertia = m / 3 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    size = box(2 * a, 2 * b, 2 * c)
    return robot(
        link("box", m, inertia, size, xyz=shift),
        joint("free", "floating", "base", "box"),
        **extras,
    )


def free_ball(m=1.0, r=0.1, inertia=None, **extras):
    """Return a solid ball, floating."""
    i = 0.4 * m * r * r if inertia is None else inertia
    return robot(
        link("ball", m, (i, i, i), sphere(r)),
        joint("free", "floating", "base", "ball"),
        **extras,
    )


def point_mass(m=1.0, axes="xz", radius=0.0, **extras):
    """Return a ball on prismatic joints along axes: it cannot turn."""
    parts, parent = [], "base"
    for k, axis in enumerate(axes):
        last = k == len(axes) - 1
        name = "mass" if last else f"slide_{axis}"
        mass, shape = (m, sphere(radius)) if last else (0.0, "")
        parts.append(link(name, mass, (0, 0, 0), shape))
        unit = [float(axis == x) for x in "xyz"]
        parts.append(joint(axis, "prismatic", parent, name, unit))
        parent = name
    return robot(*parts, **extras)


def pendulum(m=1.5, L=0.8, lower=-0.25, upper=10.0, gravity=(0, 0, -G_EARTH), **extras):
    """Return C4's rod: it hangs at q = 0 and turns about y."""
    about_centre = m * L * L / 12
    stops = f'<limit lower="{lower}" upper="{upper}" effort="0" velocity="100"/>'
    return robot(
        link("rod", m, (about_centre, about_centre, 0.0), xyz=(0, 0, -L / 2)),
        joint("pivot", "revolute", "base", "rod", (0, 1, 0), more=stops),
        gravity=gravity,
        **extras,
    )


def two_link(tip=0.0, limits=((-9, 9), (-9, 9)), **extras):
    """Return C11's planar arm in the plane xy, gravity along -y, a ball at its tip."""
    parts, parent, offset = [], "base", 0.0
    for k, (m, length, (low, high)) in enumerate(
        zip((1.5, 1.0), (1.0, 0.8), limits, strict=True), 1
    ):
        about_centre = m * length**2 / 12
        shape = sphere(tip) if k == 2 else ""
        half, end = (length / 2, 0, 0), (length, 0, 0)
        stops = f'<limit lower="{low}" upper="{high}" effort="0" velocity="100"/>'
        parts.append(
            link(f"rod{k}", m, (0, about_centre, about_centre), shape, half, end)
        )
        parts.append(
            joint(
                f"j{k}", "revolute", parent, f"rod{k}", xyz=(offset, 0, 0), more=stops
            )
        )
        parent, offset = f"rod{k}", length
    return robot(*parts, gravity=(0, -G_EARTH, 0), **extras)


def planar_rod(m=1.0, half=1.0, **extras):
    """Return C5's rod in the plane xz: x, z of its centre, its angle to the ground."""
    about_centre = m * half * half / 3
    return robot(
        link("sx", 0.0, (0, 0, 0)),
        link("sz", 0.0, (0, 0, 0)),
        link(
            "rod", m, (0, about_centre, about_centre), sphere(0.0), origin=(-half, 0, 0)
        ),
        joint("x", "prismatic", "base", "sx", (1, 0, 0)),
        joint("z", "prismatic", "sx", "sz", (0, 0, 1)),
        joint("angle", "continuous", "sz", "rod", (0, -1, 0)),
        **extras,
    )


def rotor(inertia=0.32, friction=1.1, damping=0.0):
    """Return C8's rotor about z with dry friction."""
    more = (
        f'<dynamics friction="{friction}" damping="{damping}"/>'
        '<limit lower="-1e6" upper="1e6" effort="0" velocity="100"/>'
    )
    return robot(
        link("disc", 1.0, (inertia, inertia, inertia)),
        joint("axle", "revolute", "base", "disc", more=more),
    )
