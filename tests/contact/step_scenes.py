"""Scenes for the steps with contacts: robots, worlds and starts."""

import numpy as np
from contact_bodies import (
    box,
    free_ball,
    free_box,
    joint,
    link,
    robot,
    rotor,
    sphere,
    two_link,
)

import dyn_core as dyn
from dyn_core.contact.collision.height_field import HeightField
from dyn_core.model.payload import Payload

H = 2e-3
FOUR_BAR = {
    "loops": [
        {
            "name": "D",
            "kind": "axes",
            "axes": ["x", "z"],
            "b": "rocker",
            "at_b": {"xyz": [1.02, 0, 0]},
            "at_a": {"xyz": [1.98, 0, 0]},
        }
    ],
    "joints": {"pin_b": {"passive": True}, "pin_c": {"passive": True}},
}


class Scene:
    """What a ContactSimulator is made of, and what acts during its steps."""

    def __init__(self, model, q=None, qd=None, world=None, acts=None, **settings):
        self.model, self.world = model, world or {}
        self.q = model.neutral() if q is None else np.asarray(q, float)
        self.qd = np.zeros(model.nv) if qd is None else np.asarray(qd, float)
        self.acts, self.settings = acts or (lambda sim, t: None), settings

    def simulator(self, h=H, **world):
        """Return a simulator, with more settings of the world."""
        return dyn.ContactSimulator(
            self.model,
            {**self.world, **world},
            period=h,
            q0=self.q,
            qd0=self.qd,
            **self.settings,
        )


def free_bodies(shapes, masses=None, **extras):
    """Return floating bodies with shapes (URDF text, or an entry of `collisions`)."""
    parts, collisions = [], {}
    for k, shape in enumerate(shapes):
        m = 1.0 if masses is None else float(masses[k])
        text = shape if isinstance(shape, str) else ""
        if not text:
            collisions[f"b{k}"] = [shape]
        parts.append(link(f"b{k}", m, (0.01 * m,) * 3, text))
        parts.append(joint(f"f{k}", "floating", "base", f"b{k}"))
    if collisions:
        extras["collisions"] = collisions
    return robot(*parts, **extras)


def places(model, points, rng=None):
    """Return q of floating bodies at points, turned at random if rng is given."""
    q = model.neutral()
    for k, point in enumerate(points):
        q[7 * k : 7 * k + 3] = point
        if rng is not None:
            turn = rng.standard_normal(4)
            q[7 * k + 3 : 7 * k + 7] = turn / np.linalg.norm(turn)
    return q


def tower(count, size=0.2, ratio=1.0, gap=1e-4, shift=0.01, mu=0.6):
    """Return boxes one on the other, the top `ratio` times as heavy."""
    masses = [1.0] * (count - 1) + [ratio]
    parts = []
    for k, m in enumerate(masses):
        i = m / 6 * size**2
        parts.append(link(f"b{k}", m, (i, i, i), box(size, size, size)))
        parts.append(joint(f"f{k}", "floating", "base", f"b{k}"))
    model = robot(*parts, materials={"default": {"mu": mu}})
    heights = [(shift * (k % 2), 0, size / 2 + (size + gap) * k) for k in range(count)]
    return Scene(model, places(model, heights))


def quadruped(height=0.4):
    """Return the quadruped above the floor."""
    model = dyn.load_urdf(dyn.robots.path("quadruped"), root_joint="floating")
    q = model.neutral()
    q[2], q[7:] = height, (0.0, 0.7, -1.4) * 4
    return Scene(model, q)


def _balls(rng):
    """Return a ball on a limited ball joint that is swung to its limits."""
    parts = [
        link("arm", 1.0, (0.02, 0.02, 0.01), sphere(0.05), (0.1, 0, 0.2), (0, 0, 0.4)),
        joint("ball", "floating", "base", "arm"),
    ]
    limits = {"type": "spherical", "swing": 0.1, "twist": [-0.05, 0.08]}
    model = robot(*parts, joints={"ball": limits})
    near = [np.sin(0.0425), 0.0, 0.0, np.cos(0.0425)]  # to the limit of its swing
    return Scene(model, near, [1.5, -1.0, 2.0], {"half_spaces": []})


def _four_bar(rng):
    """Return the four-bar of the examples, driven by a force at its motor."""
    with open("examples/four_bar/four_bar.urdf") as file:
        model = dyn.load_urdf(file.read(), extras=FOUR_BAR, check="warn")
    guess = model.position({"motor": 0.93, "pin_b": -0.5, "pin_c": -1.5})
    q = dyn.close_loops(model, guess, fixed=["motor"])

    def drive(sim, t):
        sim.command(t, [2.0, 0.0, 0.0])

    return Scene(model, q, world={"half_spaces": []}, acts=drive)


def _geared(rng):
    """Return two turning bars with a gear between them, sprung and damped."""
    parts = []
    for name in "ab":
        parts.append(link(name, 1.0, (0.02, 0.02, 0.02), xyz=(0.1, 0, 0)))
        more = '<limit lower="-2" upper="2" effort="0" velocity="9"/>'
        more += '<dynamics damping="0.1" friction="0.05"/>'
        parts.append(joint(f"j{name}", "revolute", "base", name, (0, 1, 0), more=more))
    springs = {"ja": {"stiffness": 3.0, "rest": 0.2}}
    model = robot(*parts, springs=springs)
    world = {"gears": [{"joints": ["ja", "jb"], "ratio": 2.0}], "half_spaces": []}
    return Scene(model, [0.1, 0.21], [0.5, 1.0], world)


def _prescribed(rng):
    """Return an arm whose first joint is led, with forces on its bodies."""
    model = two_link(tip=0.05, limits=((-0.5, 0.5), (-0.3, 0.3)))

    def lead(sim, t):
        sim.accelerate(t, [np.cos(3 * t)])
        sim.f_ext = np.outer([0.2, -0.1], [0, 0, 1.0, 0.5, 2.0, 0])

    return Scene(model, qd=[0.3, -1.0], acts=lead, prescribed=("j1",))


def _loaded(rng):
    """Return the quadruped with a payload, falling on its feet, and forces."""
    scene = quadruped(0.33)
    base = scene.model.frame_names[1]
    tau = rng.standard_normal(scene.model.nv)

    def act(sim, t):
        if t == 0:
            sim.attach(Payload(1.5, (0.02, 0.01, 0.05)))
        sim.command(t, tau)

    scene.settings["payload_link"], scene.acts = base, act
    return scene


def _field(rng):
    """Return a ball, a capsule and a box on hills."""
    x = np.linspace(-1, 1, 21)
    hills = HeightField(
        0.05 * np.sin(4 * x[:, None]) * np.cos(3 * x), (0.1, 0.1), point=(-1, -1, 0)
    )
    shapes = [
        sphere(0.1),
        {"type": "capsule", "radius": 0.06, "length": 0.2},
        box(0.2, 0.15, 0.1),
    ]
    model = free_bodies(shapes)
    q = places(model, [(-0.4, 0, 0.12), (0, 0.1, 0.12), (0.4, 0, 0.13)], rng)
    world = {"half_spaces": [], "height_fields": [hills]}
    return Scene(model, q, 0.3 * rng.standard_normal(18), world)


def _shapes(rng):
    """Return capsules, cylinders, balls and boxes that meet on the floor."""
    cylinder = '<cylinder radius="0.08" length="0.2"/>'
    shapes = [
        cylinder,
        {"type": "capsule", "radius": 0.07, "length": 0.15},
        sphere(0.1),
        box(0.2, 0.16, 0.12),
    ]
    model = free_bodies(shapes, [1.0, 2.0, 0.5, 3.0])
    points = [(0.0, 0, 0.14), (0.19, 0, 0.14), (0.0, 0.2, 0.14), (0.2, 0.2, 0.14)]
    return Scene(model, places(model, points, rng), rng.standard_normal(24))


def _bouncing(rng):
    """Return a ball that bounces."""
    model = free_ball(materials={"default": {"mu": 0.5, "restitution": 0.8}})
    return Scene(model, places(model, [(0, 0, 0.15)]), rng.standard_normal(6))


def _spinning(rng):
    """Return a box with torsion, rolling and restitution."""
    rough = {"mu": 0.5, "torsion": 0.01, "rolling": 0.002, "restitution": 0.3}
    model = free_box(half=(0.2, 0.15, 0.1), materials={"default": rough})
    return Scene(model, places(model, [(0, 0, 0.2)]), rng.standard_normal(6))


def _limits(rng):
    """Return an arm that hits its limits, which bounce."""
    model = two_link(tip=0.05, limits=((-0.5, 0.5), (-0.3, 0.3)))
    world = {"limit_restitution": 0.2}
    return Scene(model, [0.1, -0.24], [1.0, -2.0], world)


def _moving_plate(rng):
    """Return a box and a ball on a plate that is led to and fro, and up and down."""
    parts = [
        link("slide", 0.1, (0.01,) * 3),
        link("plate", 5.0, (0.1,) * 3, box(1, 0.6, 0.1)),
        link("box", 1.0, (0.002,) * 3, box(0.1, 0.1, 0.1)),
        link("ball", 0.5, (0.0005,) * 3, sphere(0.05)),
        joint("x", "prismatic", "base", "slide", (1, 0, 0)),
        joint("z", "prismatic", "slide", "plate"),
        joint("free_box", "floating", "base", "box"),
        joint("free_ball", "floating", "base", "ball"),
    ]
    model = robot(*parts, materials={"default": {"mu": 0.3}})
    q = model.neutral()
    q[[2, 4, 9, 11]] = 0.2, 0.1 + 1e-5, -0.2, 0.1

    def lead(sim, t):
        sim.accelerate(t, [5 * np.cos(90 * t), 4 * np.sin(60 * t)])

    world = {"half_spaces": []}
    return Scene(model, q, world=world, acts=lead, prescribed=("x", "z"))


def _rotor(rng):
    """Return a rotor with dry friction that is turned."""
    return Scene(
        rotor(), qd=[0.1], acts=lambda sim, t: sim.command(t, [2 * np.sin(40 * t)])
    )


def _every_joint(rng):
    """Return the robot with a joint of every kind, in any state."""
    model = dyn.load("every_joint")
    q, qd = model.random(rng), rng.standard_normal(model.nv)
    tau = rng.standard_normal(model.nv)
    return Scene(model, q, qd, acts=lambda sim, t: sim.command(t, tau))


SCENES = {
    "ball joint with limits": _balls,
    "bouncing ball": _bouncing,
    "capsule, cylinder, ball, box": _shapes,
    "every joint": _every_joint,
    "four-bar": _four_bar,
    "gear, spring, damping": _geared,
    "height field": _field,
    "limits": _limits,
    "moving plate": _moving_plate,
    "payload": _loaded,
    "prescribed, f_ext": _prescribed,
    "quadruped": lambda rng: quadruped(0.31),
    "rotor": _rotor,
    "stack": lambda rng: tower(4),
    "stack that starts inside": lambda rng: tower(3, gap=-0.01),
    "torsion, rolling, restitution": _spinning,
}


def random_tree(seed):
    """Return a floating tree of 2 to 7 links with any shapes, thrown on the floor."""
    rng = np.random.default_rng(seed)
    count, parts, collisions = int(rng.integers(2, 8)), [], {}
    for k in range(count):
        m = float(10 ** rng.uniform(-1, 1))
        r = rng.uniform(0.03, 0.08, 3)
        shape = [
            sphere(r[0]),
            box(*(2 * r)),
            f'<cylinder radius="{r[0]}" length="{2 * r[1]}"/>',
            "",
        ][rng.integers(4)]
        if not shape:
            entry = {"type": "capsule", "radius": float(r[0]), "length": float(r[1])}
            collisions[f"b{k}"] = [entry]
        parts.append(link(f"b{k}", m, (0.004 * m,) * 3, shape))
        if k == 0:
            parts.append(joint("root", "floating", "base", "b0"))
            continue
        kind = ["revolute", "continuous", "prismatic"][rng.integers(3)]
        axis, way = rng.standard_normal((2, 3))
        stops = '<limit lower="-0.3" upper="0.3" effort="9" velocity="9"/>'
        friction = rng.uniform(0, 0.1) if rng.random() < 0.3 else 0.0
        parts.append(
            joint(
                f"j{k}",
                kind,
                f"b{rng.integers(k)}",
                f"b{k}",
                axis / np.linalg.norm(axis),
                0.2 * way / np.linalg.norm(way),
                f'{stops}<dynamics damping="0.01" friction="{friction}"/>',
            )
        )
    material = {
        "mu": float(rng.uniform(0, 1)),
        "restitution": float(rng.choice([0.0, 0.5])),
        "torsion": float(rng.choice([0.0, 0.01])),
    }
    extras = {"collisions": collisions} if collisions else {}
    model = robot(*parts, materials={"default": material}, **extras)
    q = model.neutral()
    q[2] = 0.15
    turn = rng.standard_normal(4)
    q[3:7] = turn / np.linalg.norm(turn)
    world = {"groups": {"tree": [f"b{k}" for k in range(count)]}}  # none wedges another
    return Scene(model, q, 0.5 * rng.standard_normal(model.nv), world)
