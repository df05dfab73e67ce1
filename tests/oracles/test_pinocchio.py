"""Agreement with Pinocchio on shipped robots, real robots and random trees."""

import functools
import sys
from pathlib import Path

import numpy as np
import pytest
from pinocchio_model import PinocchioModel

import dyn_core as dyn
from dyn_core import robots
from dyn_core.kinematics import InverseKinematics
from dyn_core.model.joints import KINDS
from dyn_core.spatial.conventions import from_pinocchio_motion, swap_rows
from dyn_core.testing import TOLERANCES, random_model, scaled_error
from dyn_core.testing.case import derivative

pin = pytest.importorskip("pinocchio", reason="pin is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SLOPES = 1e-10  # of derivatives
EXACT = TOLERANCES["exact"]
SETS = 20  # 20 sets of 10 random trees; without --full one tree of every second set


def _state(model, seed=0):
    rng = np.random.default_rng(seed)
    return model.random(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)


def _same(got, wanted, what, tolerance=EXACT):
    error = scaled_error(got, wanted)
    assert error <= tolerance, f"{what}: {error:.1e} > {tolerance:.0e}"


@functools.lru_cache(maxsize=64)  # one Program for all states of a robot
def _built(model, name, engine, **choices):
    return dyn.solver(name).build(model, engine=engine, **choices)


def _compare_dynamics(model, seed=0, engine=None):
    """Compare every dynamics solver with Pinocchio's algorithms."""
    peer_model = PinocchioModel(model)
    q, qd, qdd = _state(model, seed)
    pq, B = peer_model.q(q), peer_model.B(q)
    pv = B @ qd
    pa = B @ qdd + peer_model.Bdot_qd(q, qd)
    tau = (
        B.T @ pin.rnea(peer_model.model, peer_model.data, pq, pv, pa)
        + peer_model.rotors @ qdd
    )
    H = (
        B.T @ _full(pin.crba(peer_model.model, peer_model.data, pq)) @ B
        + peer_model.rotors
    )
    C = B.T @ pin.rnea(
        peer_model.model, peer_model.data, pq, pv, peer_model.Bdot_qd(q, qd)
    )
    g = B.T @ pin.computeGeneralizedGravity(peer_model.model, peer_model.data, pq)
    build = {
        n: _built(model, n, engine)
        for n in (
            "rnea",
            "crba",
            "bias",
            "gravity",
            "aba",
            "dense",
            "energy",
            "momentum",
        )
    }
    _same(build["rnea"](q, qd, qdd), tau, "rnea")
    _same(build["crba"](q), H, "crba")
    _same(build["bias"](q, qd), C, "bias")
    _same(build["gravity"](q), g, "gravity")
    for name in ("aba", "dense"):
        back = H @ build[name](q, qd, qdd)
        room = TOLERANCES["forward"] * _cond(H)
        _same(back, qdd - C, f"{name}, backward error", room)
    kinetic = pin.computeKineticEnergy(peer_model.model, peer_model.data, pq, pv)
    rotors = 0.5 * qd @ peer_model.rotors @ qd
    potential = pin.computePotentialEnergy(peer_model.model, peer_model.data, pq)
    energy = build["energy"](q, qd)
    _same(energy.kinetic, kinetic + rotors, "kinetic energy")
    _same(energy.potential, potential, "potential energy")
    com = pin.centerOfMass(peer_model.model, peer_model.data, pq)
    momentum = build["momentum"](q, qd)
    _same(momentum.com, com, "centre of mass")
    hg = pin.computeCentroidalMomentum(peer_model.model, peer_model.data, pq, pv)
    _same(momentum.h[3:], hg.linear, "linear momentum")
    about_origin = hg.angular + np.cross(com, hg.linear)
    _same(momentum.h[:3], about_origin, "angular momentum")
    return peer_model


def _cond(H):
    """Return room for what a badly scaled H amplifies, at most a thousand."""
    return float(np.clip(np.linalg.cond(H) / 1e4, 1, 1e3)) if len(H) else 1.0


def _full(upper):
    return np.triu(upper) + np.triu(upper, 1).T


def _compare_kinematics(model, peer_model, seed=0, engine=None):
    """Compare poses, Jacobians, velocities and bias accelerations of all frames."""
    q, qd, _ = _state(model, seed)
    pq, B = peer_model.q(q), peer_model.B(q)
    pv, bias = B @ qd, peer_model.Bdot_qd(q, qd)
    m, d = peer_model.model, peer_model.data
    pin.forwardKinematics(m, d, pq, pv, bias)
    pin.computeJointJacobians(m, d, pq)
    pin.updateFramePlacements(m, d)
    poses = _built(model, "forward_kinematics", engine)(q)
    places = {
        "local": pin.LOCAL,
        "world": pin.WORLD,
        "aligned": pin.LOCAL_WORLD_ALIGNED,
    }
    names = list(model.frame_names)
    for name in {names[0], names[len(names) // 2], names[-1]}:
        k = m.getFrameId(name)
        _same(poses[names.index(name)], d.oMf[k].homogeneous, f"pose of {name}")
        for reference, place in places.items():
            choices = {"frame": name, "reference": reference}
            J = pin.getFrameJacobian(m, d, k, place) @ B
            got = _built(model, "jacobian", engine, **choices)(q)
            _same(got, swap_rows(J), f"J of {name}, {reference}")
            v = pin.getFrameVelocity(m, d, k, place)
            got = _built(model, "frame_velocity", engine, **choices)(q, qd)
            _same(got, from_pinocchio_motion(v.vector), f"v of {name}, {reference}")
            kind = (pin.getFrameClassicalAcceleration if reference == "aligned"
                    else pin.getFrameAcceleration)  # fmt: skip
            a = kind(m, d, k, place)
            got = _built(model, "frame_bias_acceleration", engine, **choices)(q, qd)
            _same(got, from_pinocchio_motion(a.vector), f"bias of {name}, {reference}")


CONSTANT = (  # joints whose S is constant in Pinocchio, as computeCoriolisMatrix assumes
    "revolute",
    "continuous",
    "prismatic",
    "helical",
    "planar",
    "spherical",
    "floating",
    "ball_exp",
)


@pytest.mark.parametrize("seed", range(8))
def test_coriolis_matrices_agree(seed):
    """Cm = B.T (C_p B + M_p dB/dt) for Pinocchio's velocities B qd, followers included."""
    model = random_model(seed, size=3 + seed, kinds=CONSTANT)
    peer = PinocchioModel(model)
    q, qd, _ = _state(model, seed)
    pq, B = peer.q(q), peer.B(q)
    C = pin.computeCoriolisMatrix(peer.model, peer.data, pq, B @ qd)
    M = _full(pin.crba(peer.model, peer.data, pq))
    rate = derivative(lambda t: peer.B(model.integrate(q, qd * t)))
    Cm = dyn.solver("coriolis_matrix").build(model, engine="graph")(q, qd)
    _same(Cm, B.T @ (C @ B + M @ rate), "coriolis_matrix", TOLERANCES["law"])


@pytest.mark.parametrize("seed", range(4))
def test_inverse_kinematics_undoes_forward_kinematics(seed):
    """Poses by Pinocchio: of a random position, and of the one that is reached."""
    model = random_model(seed, size=5)
    peer_model, frame = PinocchioModel(model), model.frame_names[-1]
    m, d = peer_model.model, peer_model.data

    def pose(q):
        pin.framesForwardKinematics(m, d, peer_model.q(q))
        return d.oMf[m.getFrameId(frame)].homogeneous

    reach = InverseKinematics(model, frame, engine="graph")
    for k in range(5):
        wanted = pose(model.random(k)).copy()
        result = reach(wanted)
        assert result.converged
        _same(pose(result.q), wanted, f"pose of {frame}", TOLERANCES["law"])
        left = pin.log6(pin.SE3(pose(result.q)).actInv(pin.SE3(wanted)))
        _same(result.error, from_pinocchio_motion(left.vector), "error")
    far = wanted + np.array([[0, 0, 0, 50.0]] + [[0] * 4] * 3)
    result = reach(far)
    left = pin.log6(pin.SE3(pose(result.q)).actInv(pin.SE3(far)))
    _same(result.error, from_pinocchio_motion(left.vector), "error", 1e-9)


@pytest.mark.parametrize("name", robots.names())
def test_shipped_robots(name, shipped, full):
    """Every shipped robot, fixed or floating, with followers and rotors.

    The largest two as graphs; as machine code with --full.
    """
    engine = "graph" if name in ("quadruped", "every_joint") and not full else None
    for seed in range(3):
        peer_model = _compare_dynamics(shipped[name], seed, engine)
        _compare_kinematics(shipped[name], peer_model, seed, engine)


@pytest.mark.parametrize("name", ["arm7", "planar3"])
def test_shipped_robots_floating(name):
    """Any robot floats by argument."""
    model = dyn.load_urdf(robots.path(name), root_joint="floating")
    _compare_kinematics(model, _compare_dynamics(model))


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "part",
    [pytest.param(k, marks=[pytest.mark.full] * (k % 2)) for k in range(SETS)],
)
def test_random_trees(part, full):
    """200 seeded trees with every joint kind, followers, and bodies without mass.

    One in twenty as graphs, a fifth of them as machine code too: each kind of joint comes
    several times. All with --full.
    """
    every = range(10 * part, 10 * part + 10)
    for seed in every if full else every[part % 10 : part % 10 + 1]:
        model = random_model(seed, size=3 + seed % 10)
        compiled = full or part % 12 == 0
        for engine in ("graph", None) if compiled else ("graph",):
            peer_model = _compare_dynamics(model, seed, engine)
            if seed % 5 == 0:
                _compare_kinematics(model, peer_model, seed, engine)


def test_random_trees_have_every_kind():
    """The 200 trees hold each joint kind and followers many times."""
    kinds, followers, massless = {}, 0, 0
    for seed in range(200):
        model = random_model(seed, size=3 + seed % 10)
        for i in model.bodies:
            kinds[model.joint[i].kind] = kinds.get(model.joint[i].kind, 0) + 1
            massless += model.I[i].m == 0
        followers += len(model.followers)
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) > 50
    assert followers > 30
    assert massless > 10


def test_friction_is_added_by_hand(shipped):
    """Pinocchio ignores URDF damping and friction; ours are its forces plus theirs."""
    model = shipped["arm7"]
    peer_model = PinocchioModel(model)
    q, qd, qdd = _state(model)
    tau = pin.rnea(peer_model.model, peer_model.data, q, qd, qdd)
    tau = tau + model.flat("damping") * qd
    tau = tau + model.flat("friction") * np.tanh(qd / 0.01)
    _same(
        dyn.solver("rnea").build(model, joint_friction=True)(q, qd, qdd),
        tau,
        "friction",
    )


def _real(package, file):
    """Find a real robot of the package example-robot-data."""
    places = [Path(p) for p in (sys.prefix, *sys.path)]
    for place in places:
        pattern = f"cmeel.prefix/share/example-robot-data/robots/{package}/{file}"
        for base in (place, place / "lib"):
            files = list(base.glob(pattern)) or list(
                base.glob(f"*/site-packages/{pattern}")
            )
            if files:
                return files[0]
    pytest.skip("example-robot-data is not installed")


REAL = {
    "panda": ("panda_description", "urdf/panda.urdf", "fixed"),
    "ur5": ("ur_description", "urdf/ur5_robot.urdf", "fixed"),
    "go2": ("go2_description", "urdf/go2.urdf", "floating"),
    "anymal": ("anymal_b_simple_description", "robots/anymal.urdf", "floating"),
    "solo12": ("solo_description", "robots/solo12.urdf", "floating"),
    "talos": ("talos_data", "robots/talos_reduced.urdf", "floating"),
    "g1": ("g1_description", "urdf/g1_29dof_rev_1_0.urdf", "floating"),
    "icub": ("icub_description", "robots/icub_reduced.urdf", "floating"),
}
COMPILED = ("panda", "ur5", "go2")


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.full] * (name in ("icub", "solo12")))
        for name in REAL
    ],
)
def test_real_robots_by_their_own_loaders(name, full):
    """Both libraries read the same file: an arm, quadrupeds, humanoids.

    Those of COMPILED as machine code, the others as graphs; all as both with --full.
    """
    package, file, root = REAL[name]
    path = _real(package, file)
    model = dyn.load_urdf(path, check="warn", root_joint=root)
    if model.followers:
        model = model.lock({f.leader: 0.0 for f in model.followers.values()})
    args = [str(path)] + ([pin.JointModelFreeFlyer()] if root == "floating" else [])
    peer = pin.buildModelFromUrdf(*args)
    locked = [k for k, n in enumerate(peer.names) if k and n not in
              (*model.joint_names, "root_joint")]  # fmt: skip
    peer = pin.buildReducedModel(peer, locked, pin.neutral(peer))
    data = peer.createData()
    assert set(peer.names[1:]) == set(model.joint_names)
    engines = ("graph", None) if full else (None if name in COMPILED else "graph",)
    for engine in engines:
        _compare_real(model, peer, data, engine)


def _compare_real(model, peer, data, engine):
    """Compare dynamics and derivatives at three states."""
    build = {
        name: dyn.solver(name).build(model, engine=engine)
        for name in ("rnea", "crba", "aba", "dense")
    }
    for seed in range(3):
        q, qd, qdd = _state(model, seed)
        pq, P = pin.neutral(peer), np.zeros((peer.nv, model.nv))
        for n in model.joint_names:
            joint, part = peer.joints[peer.getJointId(n)], model.v_slice(n)
            x, eye = q[model.q_slice(n)], np.eye(model.nv)[part]
            if joint.nq == 2:
                x = np.array([np.cos(x[0]), np.sin(x[0])])
            pq[joint.idx_q : joint.idx_q + joint.nq] = x
            if joint.nv == 6:
                eye = swap_rows(eye)
            P[joint.idx_v : joint.idx_v + joint.nv] = eye
        tau = P.T @ pin.rnea(peer, data, pq, P @ qd, P @ qdd)
        _same(build["rnea"](q, qd, qdd), tau, "rnea")
        H = P.T @ _full(pin.crba(peer, data, pq)) @ P
        _same(build["crba"](q), H, "crba")
        wanted = P.T @ pin.aba(peer, data, pq, P @ qd, P @ tau)
        for solver in ("aba", "dense"):
            qdd_got = build[solver](q, qd, tau)
            _same(H @ (qdd_got - wanted), np.zeros(model.nv), solver,
                  EXACT * max(1.0, np.abs(tau).max()))  # fmt: skip
        if seed == 0:
            _same_derivatives(model, peer, data, P, pq, (q, qd, qdd), engine)


def _same_derivatives(model, peer, data, P, pq, state, engine):
    """Compare the derivatives of ID and FD and the inverse of H."""
    q, qd, qdd = state
    slopes = pin.computeRNEADerivatives(peer, data, pq, P @ qd, P @ qdd)
    got = dyn.solver("id_derivatives").build(model, engine=engine)(q, qd, qdd)
    names = ("dtau_dq", "dtau_dqd", "H")
    for name, ours, theirs in zip(names, got, slopes, strict=True):
        full = _full(theirs) if name == "H" else theirs
        _same(ours, P.T @ full @ P, name, SLOPES)
    H = got.H
    inverse = _full(pin.computeMinverse(peer, data, pq))
    ours = dyn.solver("mass_matrix_inverse").build(model, engine=engine)(q)
    _same(H @ ours @ H, H @ (P.T @ inverse @ P) @ H, "mass_matrix_inverse", SLOPES)
    if model.nv > 20:
        return  # large kernels; the laws hold them to the derivatives above
    pin.computeABADerivatives(peer, data, pq, P @ qd, P @ qdd)
    got = dyn.solver("fd_derivatives").build(model, engine=engine)(q, qd, qdd)
    for ours, theirs in ((got.dqdd_dq, data.ddq_dq), (got.dqdd_dqd, data.ddq_dv)):
        wanted = H @ (P.T @ theirs @ P)
        scale = max(1.0, np.abs(wanted).max())
        _same(H @ ours / scale, wanted / scale, "fd_derivatives", SLOPES)


@pytest.mark.parametrize(
    ("name", "links"),
    [("arm7", ["tool"]), ("quadruped", ["front_left_foot", "hind_right_foot"])],
)
def test_held_points_like_constraint_dynamics(name, links, shipped):
    """Forward dynamics with points held in place, against constraintDynamics."""
    model = shipped[name]
    peer_model = PinocchioModel(model)
    q, qd, tau = _state(model, 3)
    poses = dyn.solver("forward_kinematics").build(model, frames=links)(q)
    loops = [
        dyn.make_loop(link, "point", link, at_a={"xyz": pose[:3, 3].tolist()})
        for link, pose in zip(links, poses, strict=True)
    ]
    closed = model.with_loops(*loops)
    qd = dyn.close_rates(closed, q, qd)
    got = dyn.solver("loop_forward_dynamics").build(closed)(q, qd, tau)
    rows, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for link in links:
        frame = peer_model.model.frames[peer_model.model.getFrameId(link)]
        row = pin.RigidConstraintModel(
            pin.ContactType.CONTACT_3D, peer_model.model, frame.parentJoint, frame.placement,
            pin.ReferenceFrame.LOCAL,
        )  # fmt: skip
        rows.append(row)
        data.append(row.createData())
    B = peer_model.B(q)
    peer_model.model.armature = np.zeros(peer_model.model.nv)
    if np.abs(peer_model.rotors).max() > 0:
        peer_model.model.armature = np.diag(B @ peer_model.rotors @ B.T).copy()
    pin.initConstraintDynamics(peer_model.model, peer_model.data, rows, data)
    peer = pin.constraintDynamics(
        peer_model.model,
        peer_model.data,
        peer_model.q(q),
        B @ qd,
        np.linalg.solve(B.T, tau),
        rows,
        data,
    )
    wanted = np.linalg.solve(B, peer - peer_model.Bdot_qd(q, qd))
    _same(got.qdd, wanted, "qdd", 1e-9)
    R = [
        dyn.solver("forward_kinematics").build(model, frames=[n])(q)[0, :3, :3]
        for n in links
    ]
    forces = np.concatenate(
        [r @ d.contact_force.linear for r, d in zip(R, data, strict=True)]
    )
    _same(got.lambda_, forces, "forces", 1e-8)
