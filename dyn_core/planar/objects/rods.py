"""Rods in a row, on a support or on a cart: their energy, and the equivalent chain.

Only number-likes and the names of dyn_core.numbers.scalar are used, so that the
functions may be traced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from dyn_core.errors import ModelError
from dyn_core.numbers.scalar import cos, sin
from dyn_core.planar.chain.chain import ChainModel, make_chain, make_chain_like


class Rod(NamedTuple):
    """A rod with mass, or a massless one with a point mass (tip) at its end.

    `length` is from joint to joint, `com` the distance of the centre of mass from the
    start, `inertia` about it [m, kg, kg·m²]. The float 0.0 as mass marks a massless
    rod.
    """

    length: Any
    mass: Any = 0.0
    com: Any = 0.0
    inertia: Any = 0.0
    tip: Any = 0.0

    @property
    def massive(self) -> bool:
        """Whether the rod itself has mass: False only for the float 0.0."""
        return not (isinstance(self.mass, float) and self.mass == 0.0)


@dataclass(frozen=True)
class Rods:
    """A mechanism of rods in a row that turn about each other.

    Coordinates are the position of the cart along x, if there is one, then an angle of
    each rod.

    Attributes:
        of: Function from parameters by name to the list of rods; the parameters include
            g, the gravity [m/s²].
        cart: Name of the parameter that is the mass of the cart; empty if the first rod
            turns about a fixed point.
        upright: True: angles are absolute, from upright, clockwise. False: the first is
            from +x, counter-clockwise, the others relative to the previous rod.

    Source: WAW-13.1 to WAW-13.3, WAW-14.1 to WAW-14.3.
    """

    of: Callable[[Mapping[str, Any]], list[Rod]]
    cart: str = ""
    upright: bool = True

    def energy(
        self, p: Mapping[str, Any], q: Sequence[Any], qd: Sequence[Any]
    ) -> tuple[Any, Any]:
        """Return the kinetic and the potential energy; height 0 is the support's.

            T = sum (m v.v + I w²) / 2,   V = sum m g y

        over the rods, the point masses at their ends, and the cart.

        Args:
            p: Parameters by name.
            q, qd: Coordinates and their rates [m | rad], [m/s | rad/s].

        Returns:
            T and V [J].

        Source: WAW-H, check (iv).
        """
        vx, vy, y, T, V = 0.0, 0.0, 0.0, 0.0, 0.0
        if self.cart:
            vx = qd[0]
            T = p[self.cart] * vx * vx * 0.5
        for rod, (rx, ry), w in zip(
            self.of(p), self._directions(q), self._rates(qd), strict=True
        ):
            ux, uy = vx - ry * w * rod.com, vy + rx * w * rod.com
            T = T + (rod.mass * (ux * ux + uy * uy) + rod.inertia * w * w) * 0.5
            V = V + rod.mass * p["g"] * (y + ry * rod.com)
            vx, vy = vx - ry * w * rod.length, vy + rx * w * rod.length
            y = y + ry * rod.length
            T = T + rod.tip * (vx * vx + vy * vy) * 0.5
            V = V + rod.tip * p["g"] * y
        return T, V

    def chain(
        self, p: Mapping[str, Any], split: bool = False, name: str = "chain"
    ) -> ChainModel:
        """Return the planar chain that moves the same way.

        Joint 0 is fixed, or on a line with the cart's mass. A rod with mass is a link
        with mass. With `split` it is two massless links instead, whose joint at the
        centre of mass, at c, keeps its angle, and three point masses:

            I/(L c),  m - I/(c (L - c)),  I/(L (L - c))

        at start, c and end of a rod of length L, mass m and inertia I.

        Args:
            p: Parameters by name; make_chain checks them only if all are floats.
            split: Whether rods are split.
            name: Of the chain.

        Raises:
            ModelError: A split rod would have a mass <= 0, or make_chain refuses a
                number.

        Source: WAW-13.4.
        """
        lengths: list[Any] = []
        masses: list[Any] = [p[self.cart] if self.cart else 0.0]
        with_mass: list[tuple[Any, Any, Any]] = []
        bends: list[int] = []
        for i, rod in enumerate(self.of(p)):
            if split and rod.massive:
                start, centre, end = _points(rod, f"{name}: rod {i + 1}")
                masses[-1] = masses[-1] + start
                bends.append(len(masses))
                masses += [centre, end + rod.tip]
                lengths += [rod.com, rod.length - rod.com]
                with_mass += [(0.0, 0.0, 0.0)] * 2
            else:
                masses.append(rod.tip)
                lengths.append(rod.length)
                with_mass.append((rod.mass, rod.com, rod.inertia))
        link_masses, link_coms, link_inertias = zip(*with_mass, strict=True)
        constraints = {
            "kind": {0: "line" if self.cart else "fixed"},
            "s": {0: (0.0, 1.0)} if self.cart else {},
            "active": bends,
        }
        shape = [1.0] * len(lengths), [1.0] * len(masses)
        chain = make_chain(*shape, constraints=constraints, name=name)
        values = {
            "lengths": lengths, "masses": masses, "gravity": (0.0, -p["g"]),
            "link_masses": link_masses, "link_coms": link_coms,
            "link_inertias": link_inertias,
        }  # fmt: skip
        chain = chain.with_values(values)
        numbers = all(isinstance(x, float) for row in values.values() for x in row)
        return make_chain_like(chain) if numbers else chain

    def chain_state(
        self,
        p: Mapping[str, Any],
        q: Sequence[Any],
        qd: Sequence[Any],
        split: bool = False,
    ) -> tuple[tuple[Any, Any], tuple[Any, Any], list[Any], list[Any]]:
        """Return the state of the chain: motion of joint 0, joint angles and rates.

            theta_1 = pi/2 - q_1,  theta_i = q_{i-1} - q_i    if angles are upright
            theta_i = q_i                                     else

        q_i is the angle of rod i, without the position of the cart.

        Args:
            p: Parameters by name.
            q, qd: Coordinates and their rates [m | rad], [m/s | rad/s].
            split: Whether rods are split.

        Returns:
            x0, v0 (2 each) [m], [m/s]; theta, theta_dot of the joints but the last
            [rad], [rad/s], zero at the middle joint of a split rod.

        Source: WAW-2.1, WAW-13.4.
        """
        x, v = (q[0], qd[0]) if self.cart else (0.0, 0.0)
        theta = self._relative(self._angles(q), math.pi / 2)
        rates = self._relative(self._angles(qd), 0.0)
        joints = self._joints(p, split)
        links = self._links(p, split)
        full, full_rates = [0.0] * links, [0.0] * links
        for i, k in enumerate(joints):
            full[k], full_rates[k] = theta[i], rates[i]
        return (x, 0.0), (v, 0.0), full, full_rates

    def chain_efforts(
        self, p: Mapping[str, Any], force: Sequence[Any], split: bool = False
    ) -> tuple[list[Any], tuple[Any, Any]]:
        """Return forces along the coordinates as joint torques and a force on joint 0.

            tau_k = - sum_{i >= k} force_i    if angles are upright, else force_k

        for the forces of the angles, without that of the cart, so that the power is the
        same: sum force_i qd_i = sum tau_k theta_dot_k + F.v0.

        Args:
            p: Parameters by name.
            force: Along each coordinate [N | N·m].
            split: Whether rods are split.

        Returns:
            Torques, one for each joint [N·m], zero at the last and at the middle joint
            of a split rod; the force on joint 0, 2 [N].

        Source: WAW-4.2, WAW-13.4.
        """
        push = (force[0], 0.0) if self.cart else (0.0, 0.0)
        torques = list(self._angles(force))
        if self.upright:
            torques = [-x for x in accumulate(reversed(torques))][::-1]
        tau = [0.0] * (self._links(p, split) + 1)
        for torque, k in zip(torques, self._joints(p, split), strict=True):
            tau[k] = torque
        return tau, push

    def from_chain(
        self,
        p: Mapping[str, Any],
        alpha: Sequence[Any],
        a0: Sequence[Any],
        split: bool = False,
    ) -> list[Any]:
        """Return the accelerations of the coordinates from the chain's.

            q_i'' = - sum_{k <= i} alpha_k    if angles are upright, else alpha_i

        q_i is the angle of rod i; alpha of a middle joint is not read.

        Args:
            p: Parameters by name.
            alpha: Acceleration of the angle of each of the chain's joints but the last
                [rad/s²].
            a0: Acceleration of joint 0, 2 [m/s²]; ignored without a cart.
            split: Whether rods are split.

        Returns:
            qdd [m/s² | rad/s²].

        Source: WAW-2.1, WAW-13.4.
        """
        qdd = [alpha[k] for k in self._joints(p, split)]
        if self.upright:
            qdd = [-x for x in accumulate(qdd)]
        return [a0[0], *qdd] if self.cart else qdd

    def _angles(self, q: Sequence[Any]) -> list[Any]:
        return list(q)[1:] if self.cart else list(q)

    def _rates(self, qd: Sequence[Any]) -> list[Any]:
        """Return the angular velocities of the rods, counter-clockwise."""
        rates = self._angles(qd)
        return [-w for w in rates] if self.upright else list(accumulate(rates))

    def _directions(self, q: Sequence[Any]) -> list[tuple[Any, Any]]:
        """Return the unit vectors (x, y) along the rods, y upwards."""
        angles = self._angles(q)
        if self.upright:
            return [(sin(t), cos(t)) for t in angles]
        return [(cos(t), sin(t)) for t in accumulate(angles)]

    def _relative(self, angles: list[Any], from_x: float) -> list[Any]:
        """Return counter-clockwise angles, or rates, relative to the previous rod.

        Upright angles are converted. `from_x` is pi/2 for angles, 0 for rates.
        """
        if not self.upright:
            return angles
        pairs = zip(angles, angles[1:], strict=False)
        return [from_x - angles[0], *(before - t for before, t in pairs)]

    def _joints(self, p: Mapping[str, Any], split: bool) -> list[int]:
        """Return the index of the chain's joint at which each rod starts.

        With `split`, a rod with mass is two links. A cart is joint 0.
        """
        joint, joints = 0, []
        for rod in self.of(p):
            joints.append(joint)
            joint += 2 if split and rod.massive else 1
        return joints

    def _links(self, p: Mapping[str, Any], split: bool) -> int:
        """Return the number of links; with `split`, a rod with mass is two."""
        return sum(2 if split and rod.massive else 1 for rod in self.of(p))


def _points(rod: Rod, who: str) -> tuple[Any, Any, Any]:
    """Return the point masses of a split rod: at start, centre of mass, end [kg].

    Its tip is not included. A rod of traced numbers is not checked.

    Source: WAW-13.4.
    """
    L, m, c, I = rod.length, rod.mass, rod.com, rod.inertia
    known = all(isinstance(x, float) for x in rod)
    if known and not (0 < c < L and 0 < I < m * c * (L - c)):
        raise ModelError(
            f"{who} has no split into three positive masses: that takes 0 < com <"
            f" length and 0 < inertia < mass com (length - com), got {rod}; valid:"
            " split=False, a link with mass",
            who,
        )
    return I / (L * c), m - I / (c * (L - c)), I / (L * (L - c))
