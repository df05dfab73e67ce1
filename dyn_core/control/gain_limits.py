"""Gains that a loop of a period can carry: where sampling makes them unstable.

An effort is held for a period T (zero-order hold). For one joint with the acceleration
a = -p e - d e' - s, where s integrates i e, from sample to sample

    e+ = e + T e' + T²/2 a,   e'+ = e' + T a,   s = s- + i T e

and by Jury's test (for i by Routh's after z = (1 + w) / (1 - w)) the loop is stable
exactly for

    d < 2/T,   p T/2 < d,   i < p (d - p T/2) / (1 - d T/2 + p T²/4)

as long as nothing else delays the effort. Damping b of the joint itself, which the laws
compensate at the reference's velocity only, counts towards d in the second and third
bound; in the first one it would raise the bound and is left out.

With gains before the inertia (mode computed_torque) joints are decoupled, and b counts
as b / H_jj. In mode impedance stiffness K and damping D act on the inertia H: then

    largest eigenvalue of H^-1 D < 2/T,   K T/2 < D + b   for each joint

of which the second one is without inertia, and the third bound has H_jj. H is that of
the position at which the gains are judged.

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

HALF = 0.5  # share of a bound beyond which gains are doubtful
UNITS = {
    False: {"d": "1/s", "p": "1/s²", "i": "1/s³"},
    True: {"d": "N·m·s/rad, N·s/m", "p": "N·m/rad, N/m", "i": "N·m/(rad s), N/(m s)"},
}
NAMES = {"d": "velocity gain d", "p": "position gain p", "i": "integral gain i"}


class GainBound(NamedTuple):
    """A gain of a joint beside its bound.

    Attributes:
        joint: Name.
        gain: p, d or i.
        value, bound: In the units of the gains.
        share: value / bound, of stiff gains that of all joints together.
        text: The sentence of a refusal.
    """

    joint: str
    gain: str
    value: float
    bound: float
    share: float
    text: str


@dataclass(frozen=True, eq=False)
class SampledGains:
    """Gains of all joints, to be held against a period.

    Attributes:
        joints: Names.
        p, d, i: Gains, (nv,).
        damping: Damping of the joints themselves, (nv,) [N·m·s/rad | N·s/m].
        stiff: Whether gains are stiffness and damping.
        H: Inertia, (nv, nv); None: not known, then only what needs none is checked.
    """

    joints: tuple[str, ...]
    p: np.ndarray
    d: np.ndarray
    i: np.ndarray
    damping: np.ndarray
    stiff: bool = False
    H: np.ndarray | None = None

    def beyond(self, period: float, share: float = 1.0) -> list[GainBound]:
        """Return the gains at or beyond a share of their bounds.

        Args:
            period: Period T of the states [s].
            share: Of the bounds.
        """
        rows = []
        for gain, (ratio, bound) in self._bounds(period).items():
            values = getattr(self, gain)
            for j in np.flatnonzero(~(ratio < share)):
                rows.append(self._row(gain, int(j), values, bound, ratio, period))
        return rows

    def _bounds(self, T: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return by gain the share of its bound that it is, and the bound, (nv,)."""
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
            i_bound = np.where(np.isfinite(inertia), i_bound, np.inf)
            ratios = {
                "d": (speed * T / 2, d_bound),
                "p": (np.where(p > 0, p / p_bound, 0.0), p_bound),
                "i": (np.where(i > 0, i / i_bound, 0.0), i_bound),
            }
        # Of a joint that is unstable without i, the other gain is said alone.
        stable = (ratios["d"][0] < 1) & (ratios["p"][0] < 1)
        ratios["i"] = np.where(stable, ratios["i"][0], 0.0), i_bound
        return ratios

    def _stiff_rates(self) -> np.ndarray:
        """Return the fastest rate of H^-1 D at the joint that shares in it most."""
        rates = np.zeros(len(self.d))
        if self.H is None or not self.d.any():
            return rates
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
        joint, value, most = self.joints[j], float(values[j]), float(bound[j])
        text = (
            f"{NAMES[gain]} of joint '{joint}' is {value:g}; valid: less than"
            f" {most:.4g} {UNITS[self.stiff][gain]}, where states come each {T:.4g} s:"
            " sampled beyond it the joint is unstable"
        )
        return GainBound(joint, gain, value, most, float(ratio[j]), text)


def doubts(gains: SampledGains, period: float) -> list[str]:
    """Return a sentence for each kind of gain that is beyond HALF of its bound."""
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
    """Return what computes H of q, prepared; None where no bound needs it.

    A robot with loops has none of its own coordinates alone.
    """
    if model.loops or not (stiff or model.flat("damping").any()):
        return None
    inputs = [*(["time"] if model.driven else []), *paths]
    program = solver("crba").build(model, engine=engine, inputs=inputs)
    program.prepare()
    made: Callable[..., np.ndarray] = program
    return made
