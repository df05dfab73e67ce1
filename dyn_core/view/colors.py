"""Colours that remain distinguishable with colour vision deficiencies.

Source: Okabe and Ito, Color Universal Design (2008); ColorBrewer PuOr, diverging.
"""

from __future__ import annotations

import numpy as np

from dyn_core.validation.quoting import html_text

Color = tuple[int, int, int]

LINK: Color = (92, 116, 142)
JOINT: Color = (230, 159, 0)
COLLISION: Color = (0, 158, 115)
INERTIA: Color = (204, 121, 167)
MASS: Color = (240, 228, 66)
MARKER: Color = (213, 94, 0)
FORCE: Color = (196, 52, 0)
GROUND: Color = (150, 156, 164)
CURVES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7F7F7F")

_LESS, _ZERO, _MORE = (84, 39, 136), (226, 226, 226), (179, 88, 6)


def torque_color(share: float) -> Color:
    """Return RGB, 0..255, of a joint force as a share of its maximum.

    -1 is purple, 0 light grey, +1 orange.
    """
    x = 0.0 if np.isnan(share) else float(np.clip(share, -1.0, 1.0))
    end = _MORE if x > 0 else _LESS
    r, g, b = (round(a + abs(x) * (c - a)) for a, c in zip(_ZERO, end, strict=True))
    return r, g, b


def torque_legend(meaning: str) -> str:
    """Return the colour bar of joint forces as HTML, with an escaped label."""
    stops = ", ".join(f"rgb{torque_color(x)}" for x in np.linspace(-1, 1, 9))
    return (
        '<div style="font-size:11px;padding:2px 12px">'
        f'<div style="height:8px;border-radius:4px;'
        f'background:linear-gradient(90deg,{stops})"></div>'
        '<div style="display:flex;justify-content:space-between">'
        f"<span>-</span><span>{html_text(meaning)}</span><span>+</span></div></div>"
    )
