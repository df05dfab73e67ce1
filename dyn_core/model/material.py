"""The material of a surface: friction, restitution, and what a pair of surfaces has."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dyn_core.validation import Quantity, known_keywords

RANGES = {
    "mu": Quantity(0.0),
    "torsion": Quantity(0.0),
    "rolling": Quantity(0.0),
    "restitution": Quantity(0.0, 1.0),
}


@known_keywords
@dataclass(frozen=True)
class Material:
    """Friction and restitution of a surface.

    Attributes:
        mu: Coulomb's coefficient of friction.
        torsion: Ratio of the friction torque about the normal to the normal force [m].
        rolling: Ratio of the friction torque about the tangents to the normal force
            [m].
        restitution: Ratio of normal speeds after and before an impact, 0..1.

    Raises:
        SettingError: Unknown keyword.
        ModelError: A value is no number, not finite, negative, or a restitution above
            1.
    """

    mu: float = 1.0
    torsion: float = 0.0
    rolling: float = 0.0
    restitution: float = 0.0

    def __post_init__(self) -> None:
        for name, kind in RANGES.items():
            kind.read(f"material: {name}", getattr(self, name))

    def combined(self, other: Material | None) -> Material:
        """Return the material of a contact of this surface and another one.

            mu = sqrt(mu_a mu_b),   restitution = max(e_a, e_b)

        with the restitutions e of the surfaces. Torsion and rolling combine like mu: a
        surface without friction makes the contact frictionless, and two equal surfaces
        keep their values. Neither law is derived from physics; both are common choices.

        Args:
            other: Material of the other surface; None: the result is this material.
        """
        if other is None:
            return self
        return Material(
            math.sqrt(self.mu * other.mu),
            math.sqrt(self.torsion * other.torsion),
            math.sqrt(self.rolling * other.rolling),
            max(self.restitution, other.restitution),
        )
