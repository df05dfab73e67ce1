"""The laws of a tool, typed again by hand with Pinocchio's terms."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dyn_core as dyn

pin = pytest.importorskip("pinocchio")

THRESHOLD, LENGTH = 0.02, 0.1
INPUTS = ("v_ref", "a_ref", "f_ref", "ratio", "q_rest", "rest_stiffness")
SWAP = [3, 4, 5, 0, 1, 2]  # Pinocchio: linear, then angular
ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


class Hand:
    """The laws of a tool by Pinocchio, [linear; angular] inside."""

    def __init__(self, reference):
        self.model = pin.buildModelFromUrdf(str(dyn.robots.path("arm7")))
        self.data = self.model.createData()
        self.tool = self.model.getFrameId("tool")
        self.aligned = reference == "aligned"

    def _bias(self, q, qd, turn):
        """Return dJ/dt qd of the tool's origin."""
        pin.forwardKinematics(self.model, self.data, q, qd, 0 * qd)
        pin.updateFramePlacements(self.model, self.data)
        a = pin.getFrameClassicalAcceleration(self.model, self.data, self.tool, ALIGNED)
        return turn @ a.vector

    def torques(self, name, q, qd, pose, K, v_ref, a_ref, f_ref, ratio, rest, gains):
        """Return tau of the law `name`."""
        model, data = self.model, self.data
        pin.forwardKinematics(model, data, q, qd, 0 * qd)
        pin.updateFramePlacements(model, data)
        T = data.oMf[self.tool].copy()
        target = pin.SE3(Rotation.from_quat(pose[3:]).as_matrix(), pose[:3])
        K = K[np.ix_(SWAP, SWAP)]
        v_ref, a_ref, f_ref, ratio = (x[SWAP] for x in (v_ref, a_ref, f_ref, ratio))

        E = T.actInv(target)
        e = pin.log6(E).vector
        slope = pin.Jlog6(E) @ E.inverse().toActionMatrix()  # de/dt = -slope v
        axes = np.kron(np.eye(2), target.rotation if self.aligned else np.eye(3))
        wrench = slope.T @ axes.T @ K @ axes @ e
        R = np.kron(np.eye(2), T.rotation)
        turn = np.eye(6) if self.aligned else R.T
        wrench = R @ wrench if self.aligned else wrench

        J = turn @ pin.computeFrameJacobian(model, data, q, self.tool, ALIGNED)
        H = np.triu(pin.crba(model, data, q))
        Hinv = np.linalg.inv(H + np.triu(H, 1).T)
        mobility = J @ Hinv @ J.T
        D = np.diag(2 * ratio * np.sqrt(np.diag(K) / np.diag(mobility)))
        wrench = wrench + D @ (v_ref - J @ qd) + f_ref

        S = np.diag([1.0, 1.0, 1.0, LENGTH, LENGTH, LENGTH])
        A, B = S @ J @ J.T @ S, S @ mobility @ S
        squares, U = np.linalg.eigh(A)
        weak = np.maximum(THRESHOLD**2 - squares, 0) ** 2 / THRESHOLD**2
        W = U @ np.diag(weak * np.trace(B) / np.trace(A)) @ U.T
        Lambda = S @ np.linalg.inv(B + W) @ S

        tau0 = gains * (rest - q)
        tau = J.T @ wrench + tau0 - J.T @ Lambda @ J @ Hinv @ tau0
        if name == "operational_space":
            bias = self._bias(q, qd, turn)
            drift = pin.rnea(model, data, q, qd, 0 * qd)
            return tau + drift + J.T @ Lambda @ (a_ref - bias)
        qd_r = Hinv @ J.T @ Lambda @ v_ref
        C = pin.computeCoriolisMatrix(model, data, q, qd).copy()
        g = pin.computeGeneralizedGravity(model, data, q).copy()
        bias = self._bias(q, (qd + qd_r) / 2, turn) - self._bias(
            q, (qd - qd_r) / 2, turn
        )
        return tau + g + C @ qd_r + J.T @ Lambda @ (a_ref - bias)


@pytest.mark.parametrize("reference", ["aligned", "local"])
@pytest.mark.parametrize("name", ["cartesian_impedance", "operational_space"])
def test_laws_of_a_tool_are_those_of_pinocchio(name, reference, request):
    """All terms at once, within 1e-10 of the torques' size; 10^4 states with --full."""
    arm, hand = dyn.load("arm7"), Hand(reference)
    options = {"frame": "tool", "reference": reference}
    program = dyn.solver(name).build(arm, inputs=INPUTS, **options)
    rng, worst = np.random.default_rng(1), 0.0
    for _ in range(2500 if request.config.getoption("--full") else 50):
        root = rng.normal(size=(6, 6))
        quaternion = rng.normal(size=4)
        values = (
            arm.random(rng), rng.normal(size=7),
            np.r_[rng.normal(size=3), quaternion / np.linalg.norm(quaternion)],
            100 * root @ root.T, *rng.normal(size=(3, 6)), rng.uniform(0.2, 1, 6),
            arm.random(rng), rng.uniform(0, 9, 7),
        )  # fmt: skip
        wanted = hand.torques(name, *values)
        error = np.abs(program(*values) - wanted).max() / np.abs(wanted).max()
        worst = max(worst, error)
    assert worst < 1e-10


def test_exchanged_halves_are_noticed():
    """A reference velocity with its halves exchanged gives other torques."""
    arm, hand = dyn.load("arm7"), Hand("aligned")
    program = dyn.solver("cartesian_impedance").build(arm, frame="tool", inputs=INPUTS)
    rng = np.random.default_rng(2)
    q, pose = arm.random(rng), np.array([0.3, 0, 0.5, 0, 0, 0, 1.0])
    K, v_ref = np.diag([40.0, 50, 60, 400, 500, 600]), rng.normal(size=6)
    rest = (np.zeros(6), np.zeros(6), np.ones(6), q, np.ones(7))
    tau = program(q, np.zeros(7), pose, K, v_ref, *rest)
    values = (q, np.zeros(7), pose, K, v_ref[SWAP], *rest)
    wrong = hand.torques("cartesian_impedance", *values)
    assert np.abs(tau - wrong).max() > 1.0
