"""Random worlds: robots and objects of any shape and mass, some deep in one another."""

import numpy as np
from contact_bodies import box, joint, link, robot, sphere
from scipy.spatial import ConvexHull
from step_scenes import H, Scene

from dyn_core.contact.collision.height_field import HeightField

STEPPERS = ("stewart_trinkle", "anitescu_potra", "moreau_jean")
SHAPES = ("sphere", "box", "cylinder", "capsule", "hull")


def write_hull(path, points):
    """Write the convex hull of points as a mesh file."""
    hull = ConvexHull(points)
    lines = ["v {:.17g} {:.17g} {:.17g}".format(*point) for point in points]
    lines += ["f {} {} {}".format(*(face + 1)) for face in hull.simplices]
    path.write_text("\n".join(lines) + "\n")


def shape(kind, size, rng, name, folder):
    """Return a shape as URDF text, or as an entry of `collisions`."""
    r = size * rng.uniform(0.5, 1.0, 3)
    if kind == "sphere":
        return sphere(r[0])
    if kind == "box":
        return box(*(2 * r))
    if kind == "cylinder":
        return f'<cylinder radius="{r[0]}" length="{2 * r[1]}"/>'
    if kind == "capsule":
        return {"type": "capsule", "radius": float(r[0]), "length": float(2 * r[1])}
    points = rng.standard_normal((12, 3))
    points *= size / np.linalg.norm(points, axis=1, keepdims=True)
    write_hull(folder / f"{name}.obj", points)
    return f'<mesh filename="package://hulls/{name}.obj"/>'


def _bodies(rng, names, root, folder, parts, collisions):
    """Add bodies: each floats, or is joined to an earlier one; return their sizes."""
    kinds = SHAPES if folder is not None else SHAPES[:-1]
    for k, name in enumerate(names):
        size, m = rng.uniform(0.04, 0.15), float(10 ** rng.uniform(-3, 3))
        form = shape(kinds[rng.integers(len(kinds))], size, rng, name, folder)
        if isinstance(form, dict):
            collisions[name], form = [form], ""
        inertia = tuple(0.4 * m * size**2 * rng.uniform(0.8, 1.2, 3))
        parts.append(link(name, m, inertia, form))
        if k == 0 or not root:
            parts.append(joint(f"to_{name}", "floating", "base", name))
            continue
        kind = ["revolute", "prismatic", "continuous"][rng.integers(3)]
        axis, way = rng.standard_normal((2, 3))
        friction = rng.choice([0.0, 0.1])
        more = '<limit lower="-0.5" upper="0.5" effort="9" velocity="9"/>'
        more += f'<dynamics damping="0.01" friction="{friction}"/>'
        axis, way = axis / np.linalg.norm(axis), 0.2 * way / np.linalg.norm(way)
        parent = names[rng.integers(k)]
        parts.append(joint(f"to_{name}", kind, parent, name, axis, way, more))


def random_world(seed, folder=None, restitution=(0.0, 0.5)):
    """Return a scene of objects and, in every second one, a robot on a floor or hills.

    Masses lie between 1 g and 1 t. Bodies start within one another and the ground.

    Args:
        seed: Of the draw.
        folder: For the files of hulls; None: no hulls.
        restitution: Coefficients to choose from.
    """
    rng = np.random.default_rng([seed, 11])
    parts, collisions = [], {}
    objects = [f"o{k}" for k in range(int(rng.integers(2, 6)))]
    _bodies(rng, objects, False, folder, parts, collisions)
    if seed % 2:
        links = [f"l{k}" for k in range(int(rng.integers(2, 5)))]
        _bodies(rng, links, True, folder, parts, collisions)
    material = {
        "mu": float(rng.choice([0.0, rng.uniform(0, 1.2)], p=[0.2, 0.8])),
        "restitution": float(rng.choice(restitution)),
        "torsion": float(rng.choice([0.0, 0.01])),
    }
    if material["torsion"]:
        material["rolling"] = float(rng.choice([0.0, 0.002]))
    extras = {"collisions": collisions} if collisions else {}
    model = robot(*parts, materials={"default": material}, **extras)
    q = model.neutral()
    for i in map(model.q_slice, model.names[1:]):
        if i.stop - i.start == 7:
            turn = rng.standard_normal(4)
            place = rng.uniform((-0.2, -0.2, -0.05), (0.2, 0.2, 0.5))
            q[i] = [*place, *(turn / np.linalg.norm(turn))]
        else:
            q[i] = rng.uniform(-0.5, 0.5)
    world = {"stepper": STEPPERS[seed % 3]}
    if folder is not None:
        world["packages"] = {"hulls": folder}
    if rng.random() < 0.5:
        heights = 0.05 * rng.standard_normal((17, 17))
        ground = HeightField(heights, (0.25, 0.25), point=(-2, -2, 0))
        world |= {"half_spaces": [], "height_fields": [ground]}
    return Scene(model, q, rng.standard_normal(model.nv), world)


def steps(scene, count, h=H):
    """Make steps on arrays; yields states and records."""
    step = scene.simulator(h).arrays
    q, qd, tau = scene.q, scene.qd, np.zeros(scene.model.nv)
    for k in range(count):
        q, qd, record = step.step(k * h, q, qd, tau)
        yield q, qd, record
