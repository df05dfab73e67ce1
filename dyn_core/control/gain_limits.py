"""Upper bounds of gains, beyond which sampling makes the closed loop unstable.

An effort is constant for a period T (zero-order hold). For one joint with the
acceleration a = -p e - d e' - s, where s integrates i e, from sample to sample

    e+ = e + T e' + T²/2 a,   e'+ = e' + T a,   s = s- + i T e

and by Jury's test (for i by Routh's after z = (1 + w) / (1 - w)) the loop is stable
exactly for

    d < 2/T,   p T/2 < d,   i < p (d - p T/2) / (1 - d T/2 + p T²/4)

as long as nothing else delays the effort. Damping b of the joint itself, which the laws
compensate at the reference's velocity only, is added to d in the second and third
bound; in the first it would raise the bound and is left out.

With gains before the inertia (mode computed_torque) joints are decoupled, and the joint
damping enters as b / H_jj. In mode impedance stiffness K and damping D act on the
inertia H: then

    largest eigenvalue of H^-1 D < 2/T,   K T/2 < D + b   for each joint

where the second bound does not depend on the inertia, and the third has H_jj in place
of 1. H is evaluated at the position at which the gains are checked.

Source: K. Ogata, Discrete-Time Control Systems, section 4.3; for K T/2 < D + b also J.
Colgate and G. Schenkel, Passivity of a class of sampled-data systems, J. Robotic
Systems 14 (1997).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dyn_core.model import Model
from dyn_core.solving.registry import solver

HALF = 0.5  # fraction of a bound from which on gains are reported
UNITS = {
    False: {"d": "1/s", "p": "1/s²", "i": "1/s³"},
    True: {"d": "N·m·s/rad, N·s/m", "p": "N·m/rad, N/m", "i": "N·m/(rad s), N/(m s)"},
}
NAMES = {"d": "velocity gain d", "p": "position gain p", "i": "integral gain i"}


class GainBound(NamedTuple):
    """A gain p, d or i of a joint and its stability bound, in the gain's unit.

    `share` is value / bound; for d in mode impedance the ratio of the coupled system,
    whose largest eigenvalue counts. `text` is the error message.
    """

    joint: str
    gain: str
    value: float
    bound: float
    share: float
    text: str


@dataclass(frozen=True, eq=False)
class SampledGains:
    """Gains of all joints, compared with the stability bounds for a sampling period.

    `damping` is viscous, of the joints. `stiff`: p and d are joint stiffness and
    damping; else they act before the inertia. If H is None, bounds that depend on it
    are not checked; a singular H raises numpy's LinAlgError where stiff gains are
    compared.
    """

    joints: tuple[str, ...]
    p: np.ndarray
    d: np.ndarray
    i: np.ndarray
    damping: np.ndarray
    stiff: bool = False
    H: np.ndarray | None = None

    def beyond(self, period: float, share: float = 1.0) -> list[GainBound]:
        """Return the gains d, p, i whose ratio to the bound is NaN or >= `share`."""
        rows = []
        for gain, (ratio, bound) in self._bounds(period).items():
            values = getattr(self, gain)
            for j in np.flatnonzero(~(ratio < share)):
                rows.append(self._row(gain, int(j), values, bound, ratio, period))
        return rows

    def _bounds(self, T: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return, for each of d, p, i, the ratio of gain to bound and the bound, (nv,).

        The ratio is 0 for a gain of 0, and for i of a joint whose d or p is at or
        beyond its bound. Stiff gains d share one ratio, at the joint of _stiff_rates.
        Without H, joint damping counts only for stiff gains, whose d then has the ratio
        0 and whose bound of i is infinite. T is the sampling period [s].
        """
        p, d, i, n = self.p, self.d, self.i, len(self.p)
        diagonal = np.full(n, np.inf) if self.H is None else np.diag(self.H)
        inertia = diagonal if self.stiff else np.ones(n)
        speed = self._stiff_rates() if self.stiff else d
        total = d + (self.damping if self.stiff else self.damping / diagonal)
        with np.errstate(divide="ignore", invalid="ignore"):
            d_bound = np.where(speed > 0, d * (2 / T) / speed, 2 / T)
            p_bound = 2 * total / T
            rest = inertia - d * T / 2 + p * T**2 / 4
            i_bound = p * (total - p * T / 2) / rest
            # Without H the third bound of stiff gains is unknown.
            i_bound = np.where(np.isfinite(inertia), i_bound, np.inf)
            ratios = {
                "d": (speed * T / 2, d_bound),
                "p": (np.where(p > 0, p / p_bound, 0.0), p_bound),
                "i": (np.where(i > 0, i / i_bound, 0.0), i_bound),
            }
        # A joint that is unstable without i is reported for p or d alone.
        stable = (ratios["d"][0] < 1) & (ratios["p"][0] < 1)
        ratios["i"] = np.where(stable, ratios["i"][0], 0.0), i_bound
        return ratios

    def _stiff_rates(self) -> np.ndarray:
        """Return the largest eigenvalue of H^-1 D at one joint, zeros elsewhere, (nv,).

        D is the diagonal of d without joint damping; the joint has the largest
        component of the eigenvector of D^1/2 H^-1 D^1/2. All are zero if H is unknown.
        """
        rates = np.zeros(len(self.d))
        if self.H is None or not self.d.any():
            return rates
        # The symmetric form D^1/2 H^-1 D^1/2 has the same eigenvalues, and they are
        # real.
        root = np.sqrt(self.d)
        values, vectors = np.linalg.eigh(
            root[:, None] * np.linalg.inv(self.H) * root[None, :]
        )
        j = int(np.abs(vectors[:, -1]).argmax())
        rates[j] = values[-1]
        return rates

    def _row(
        self,
        gain: str,
        j: int,
        values: np.ndarray,
        bound: np.ndarray,
        ratio: np.ndarray,
        T: float,
    ) -> GainBound:
        """Return the GainBound of one gain (p, d or i) of a joint; arrays are (nv,)."""
        joint, value, most = self.joints[j], float(values[j]), float(bound[j])
        # Their bound is one of all joints together, of which one is named.
        all_of_them = ""
        if gain == "d" and self.stiff and np.count_nonzero(self.d) > 1:
            share = 0.9 / float(ratio[j])
            all_of_them = f", or all velocity gains times {share:.2g}"
        text = (
            f"{NAMES[gain]} of joint '{joint}' is {value:g}; valid: less than"
            f" {most:.4g} {UNITS[self.stiff][gain]}{all_of_them}, where states come"
            f" each {T:.4g} s: sampled beyond it the joint is unstable"
        )
        return GainBound(joint, gain, value, most, float(ratio[j]), text)


def doubts(gains: SampledGains, period: float) -> list[str]:
    """Return a sentence for each kind of gain that reaches half of its bound."""
    near = gains.beyond(period, HALF)
    said = []
    for gain in NAMES:
        rows = sorted((x for x in near if x.gain == gain), key=lambda x: -x.share)
        if rows:
            more = f", and of {len(rows) - 1} more joints," if len(rows) > 1 else ""
            said.append(
                f"{NAMES[gain]} of joint '{rows[0].joint}'{more} is {rows[0].share:.0%}"
                f" of the bound at which sampling each {period:.4g} s makes it unstable"
            )
    return said


def inertia_program(
    model: Model, stiff: bool, engine: Any, paths: Any
) -> Callable[..., np.ndarray] | None:
    """Return the prepared Program of H(q), or None if no bound needs H.

    The bounds need H for stiffness and damping as gains, or if a joint has damping.
    None, too, for a robot with loops, to which H of the tree alone does not apply.
    Inputs are q, the time of driven joints, then `paths`.
    """
    if model.loops or not (stiff or model.flat("damping").any()):
        return None
    inputs = [*(["time"] if model.driven else []), *paths]
    program = solver("crba").build(model, engine=engine, inputs=inputs)
    program.prepare()
    made: Callable[..., np.ndarray] = program
    return made
