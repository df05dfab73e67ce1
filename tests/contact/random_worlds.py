"""Random worlds: robots and objects of any shape and mass, some deep in one another."""

import hashlib
from collections import Counter

import numpy as np
from contact_bodies import box, joint, link, robot, sphere
from contact_work import check_work
from scipy.spatial import ConvexHull
from step_scenes import H, Scene, places

from dyn_core.contact.collision.height_field import HeightField

STEPPERS = ("stewart_trinkle", "anitescu_potra", "moreau_jean")
SHAPES = ("sphere", "box", "cylinder", "capsule", "hull")
FAST = 1e4  # what 1 t at 10 m/s may give 1 g, and more [m/s | rad/s]


def write_hull(path, points):
    """Write the convex hull of points as a mesh file."""
    hull = ConvexHull(points)
    lines = ["v {:.17g} {:.17g} {:.17g}".format(*point) for point in points]
    lines += ["f {} {} {}".format(*(face + 1)) for face in hull.simplices]
    path.write_text("\n".join(lines) + "\n")


def primitive(kind, r):
    """Return a shape of half sizes r as URDF text, or as an entry of `collisions`."""
    if kind == "sphere":
        return sphere(r[0])
    if kind == "box":
        return box(*(2 * r))
    if kind == "cylinder":
        return f'<cylinder radius="{r[0]}" length="{2 * r[1]}"/>'
    return {"type": "capsule", "radius": float(r[0]), "length": float(2 * r[1])}


def shape(kind, size, rng, name, folder):
    """Return a shape of random size as URDF text, or as an entry of `collisions`."""
    r = size * rng.uniform(0.5, 1.0, 3)
    if kind != "hull":
        return primitive(kind, r)
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


def random_places(model, rng):
    """Return q of a random world: bodies within one another and the ground."""
    q = model.neutral()
    for i in map(model.q_slice, model.names[1:]):
        if i.stop - i.start == 7:
            turn = rng.standard_normal(4)
            place = rng.uniform((-0.2, -0.2, -0.05), (0.2, 0.2, 0.5))
            q[i] = [*place, *(turn / np.linalg.norm(turn))]
        else:
            q[i] = rng.uniform(-0.5, 0.5)
    return q


def random_friction(rng):
    """Return a coefficient from 0.01 to 1e6, and 0 in one of seven draws."""
    mu = float(10 ** rng.uniform(-2, 6))
    return mu if rng.random() > 1 / 7 else 0.0


def random_world(seed, folder=None, restitution=(0.0, 0.5), any_friction=False):
    """Return a scene of objects and, in every second one, a robot on a floor or hills.

    Masses lie between 1 g and 1 t. Bodies start within one another and the ground.

    Args:
        seed: Of the draw.
        folder: For the files of hulls; None: no hulls.
        restitution: Coefficients to choose from.
        any_friction: Whether coefficients of friction are drawn from 0 to 1e6.
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
    if any_friction:
        material["mu"] = random_friction(np.random.default_rng([seed, 12]))
    if material["torsion"]:
        material["rolling"] = float(rng.choice([0.0, 0.002]))
    extras = {"collisions": collisions} if collisions else {}
    model = robot(*parts, materials={"default": material}, **extras)
    q = random_places(model, rng)
    world = {"stepper": STEPPERS[seed % 3]}
    if folder is not None:
        world["packages"] = {"hulls": folder}
    if rng.random() < 0.5:
        heights = 0.05 * rng.standard_normal((17, 17))
        ground = HeightField(heights, (0.25, 0.25), point=(-2, -2, 0))
        world |= {"half_spaces": [], "height_fields": [ground]}
    return Scene(model, q, rng.standard_normal(model.nv), world)


def random_heap(seed, mu, count=12):
    """Return balls, boxes, capsules and cylinders of 0.1 to 10 kg that fall on a floor."""
    rng = np.random.default_rng([seed, 77])
    parts, collisions = [], {}
    for k in range(count):
        kind = ("sphere", "box", "capsule", "cylinder")[rng.integers(4)]
        r, m = rng.uniform(0.04, 0.12, 3), float(10 ** rng.uniform(-1, 1))
        form = primitive(kind, r)
        if isinstance(form, dict):
            collisions[f"b{k}"], form = [form], ""
        inertia = tuple(0.4 * m * 0.08**2 * rng.uniform(0.8, 1.2, 3))
        parts.append(link(f"b{k}", m, inertia, form))
        parts.append(joint(f"f{k}", "floating", "base", f"b{k}"))
    extras = {"collisions": collisions} if collisions else {}
    model = robot(*parts, materials={"default": {"mu": mu}}, **extras)
    points = [(*rng.uniform(-0.15, 0.15, 2), 0.15 + 0.16 * k) for k in range(count)]
    return Scene(
        model, places(model, points, rng), 0.5 * rng.standard_normal(6 * count)
    )


def taken(scene, count, each=20, push=None, **world):
    """Make steps on arrays; return their statuses, and the digest of all states.

    Nothing diverges, and contacts add no energy: in no step that is not solved, nor in
    every `each`-th of the others.

    Args:
        scene: Robot, world and start.
        count: Number of steps.
        each: See above.
        push: Joint forces as a function of the number of the step; None: none.
        world: More settings of the world.
    """
    return steps_of(
        scene.simulator(**world).arrays, scene.q, scene.qd, count, each, push
    )


def any_starts(scene, starts, count, seed, **world):
    """Make steps from random starts, each with a friction of its own; count statuses.

    The first is that of the scene. Every step is checked, see `taken`.

    Args:
        scene: A random world.
        starts, count: Number of starts, and of steps from each.
        seed: Of the draws.
        world: More settings of the world.
    """
    arrays, rng = scene.simulator(**world).arrays, np.random.default_rng([seed, 13])
    counts, q, qd = Counter(), scene.q, scene.qd
    for _ in range(starts):
        counts += steps_of(arrays, q, qd, count, 1)[0]
        arrays.forget()
        arrays.setup.scene.pairs.materials[:, 0] = random_friction(rng)
        q = random_places(scene.model, rng)
        qd = rng.standard_normal(scene.model.nv)
    return counts


def steps_of(arrays, q, qd, count, each, push=None):
    """Make steps on arrays from a state; see `taken`."""
    tau = np.zeros(len(qd))
    counts, digest = Counter(), hashlib.sha256()
    for k in range(count):
        tau = tau if push is None else push(k)
        q, qd, record = arrays.step(k * H, q, qd, tau)
        assert np.isfinite(q).all()
        assert np.abs(qd).max() < FAST
        assert record.status in ("converged", "wedged", "frozen_friction")
        if record.status != "converged" or k % each == 0:
            check_work(arrays, record)
        counts[record.status] += 1
        digest.update(q.tobytes() + qd.tobytes())
    return counts, digest.hexdigest()
