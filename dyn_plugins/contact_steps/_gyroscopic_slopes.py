"""Derivatives of the gyroscopic change of a step's velocity by the state.

Not a solver: the derivatives of steps share it. The change depends on the inertia that
a root joint carries, its velocity, and the force there (see gyroscopic_change):

    dchange = dchange/dH dH + dchange/dqd dqd + dchange/dforce (dtau - dC)

C is the bias force.
"""

from dyn_core.authoring import (
    Matrix,
    MotionSubspace,
    RigidInertia,
    Symmetric,
    cross3,
    gyroscopic_change,
    skew,
    split_q,
    with_slopes,
)
from dyn_plugins.steps._joint_blocks import slope_columns, slopes_by_joint


class GyroscopicSlopes:
    """Derivatives of gyroscopic_change: by_q, by_qd, nv x nv, and JointBlocks by_tau.

    State and H are those before the step, C_q and C_qd derivatives of C, nv x nv. mean:
    Arguments force, dt and remaining of gyroscopic_change: tau - C, nv; step [s]; part
    of the step that follows q.
    """

    def __init__(self, model, q, qd, H, C_q, C_qd, mean):
        pull, *duration = mean

        def change(H=H, qd=qd, force=pull):
            return gyroscopic_change(model, H, qd, force, *duration)

        self._model, self._H, self._change = model, H, change
        (by_speed,) = slopes_by_joint(model, lambda e: [change(qd=with_slopes(qd, e))])
        (self.by_tau,) = slopes_by_joint(
            model, lambda e: [change(force=with_slopes(pull, e))]
        )
        self.by_q = self._by_inertia(_inertia_rates(model, q)) - self.by_tau @ C_q
        self.by_qd = by_speed.dense - self.by_tau @ C_qd

    def by_parameters(self, H_p, C_p):
        """Return the derivative by parameters of the robot, nv x np.

        C_p is the derivative of C, nv x np. Entry k of H_p, nv x np, has in the rows of
        a root joint the derivative of column k of this joint's own block of H; missing
        entries are zero.
        """
        changes = [{} for _ in C_p.rows[0]]
        for i in _roots(self._model):
            v = self._model.v_slices[i]
            for k, column in zip(range(v.start, v.stop), H_p, strict=False):
                for a in range(v.start, v.stop):
                    for n, x in enumerate(column.rows[a]):
                        changes[n][a, k] = x
        return self._by_inertia(changes) - self.by_tau @ C_p

    def _by_inertia(self, changes):
        """Return the slopes of the gyroscopic change, nv rows, along changes of H.

        Each change is a dict (row, column) -> change of the entry, with both triangles.
        Only blocks of root joints count.
        """
        if not turns(self._model):
            return Matrix.zeros(self._model.nv, len(changes))
        columns = []
        for change in changes:
            H = dict(change)
            for i in _roots(self._model):
                v = self._model.v_slices[i]
                for a in range(v.start, v.stop):
                    for b in range(v.start, v.stop):
                        (H[a, b],) = with_slopes([self._H[a, b]], [H.get((a, b), 0.0)])
            columns.append(self._change(H=H))
        return slope_columns(columns, self._model.nv)


def turns(model):
    """Return whether gyroscopic moments occur: a root joint of several coordinates."""
    return any(model.joint[i].nv > 1 for i in _roots(model))


def _roots(model):
    """Return the bodies whose joints connect them to the base, without followers."""
    return [i for i in model.independent if model.parent[i] == 0]


def _inertia_rates(model, q):
    """Return, by coordinate, dicts (row, column) -> slope of H in root joints' blocks.

    A joint displaces the composite inertia of its body by s, as seen in the axes of the
    parent. The derivatives by root joints' own coordinates are zero (missing): these
    joints move their own axes, too.
    """
    X, S, IC = [None], [None], list(model.I)
    for i, q_i in zip(model.bodies, split_q(model, q)[1:], strict=True):
        X.append(model.joint[i].X(q_i) @ model.Xtree[i])
        S.append(model.joint[i].S(q_i))
    for i in reversed(model.bodies):
        p = model.parent[i]
        IC[p] = IC[p] + X[i].T @ IC[i] @ X[i]
    rates = [{} for _ in range(model.nv)]
    for i in model.bodies:
        if model.parent[i] == 0:
            continue
        ratio = model.leader[i].ratio
        for k, s in enumerate(S[i] if ratio is None else S[i] @ ratio):
            rate, j = _moved_inertia(IC[i], s), i
            while model.parent[j]:
                rate, j = X[j].T @ rate @ X[j], model.parent[j]
            v, columns = model.v_slices[j], MotionSubspace(S[j])
            block = Matrix([a @ (rate @ b) for b in columns] for a in columns)
            to = rates[model.v_slices[i].start + k]
            for a, row in enumerate(block.rows, v.start):
                for b, x in enumerate(row, v.start):
                    to[a, b] = to.get((a, b), 0.0) + x
    return rates


def _moved_inertia(I, s):
    """Return the derivative, of mass 0, of a RigidInertia as its body moves by s."""
    turn = skew(s.ang) @ I.I.full()
    shift = Matrix([a * b for b in s.lin] for a in I.h)
    along = Matrix.identity(3) * (I.h @ s.lin)
    M = turn - shift + along
    h = cross3(s.ang, I.h) + s.lin * I.m
    return RigidInertia(0.0, h, Symmetric.of(M + M.T))
