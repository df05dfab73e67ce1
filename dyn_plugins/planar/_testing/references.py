"""Accelerations of planar chains as listed in the source's requirements.

Joint indices are ours, 0..n-1.

Source: planar chains, section K (REF-1 to REF-8), to 12 digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.planar import from_angles, make_chain
from dyn_plugins.planar._testing.chains import ChainCase, forces

_LONG = {
    "lengths": (0.5, 0.6, 0.7, 0.4),
    "masses": (1, 0.8, 0.6, 0.9, 0.5),
    "theta": (0.4, -0.8, 1.1, -0.7),
    "theta_dot": (0.6, -1.1, 0.9, 0.4),
}
_CASES: dict[str, dict[str, Any]] = {
    "REF-1": {
        "lengths": (0.8,),
        "masses": (1, 0.6),
        "k_omega": (0.1, 0),
        "k_v": (0, 0.2),
        "constraints": {"kind": {0: "fixed"}},
        "theta": (0.7,),
        "theta_dot": (1.3,),
        "tau": (0.5, 0),
    },
    "REF-2": {
        "lengths": (0.5, 0.4, 0.3),
        "masses": (1, 0.7, 0.5, 0.3),
        "k_omega": (0.05, 0.04, 0.03, 0),
        "k_v": (0.1, 0.1, 0.1, 0.1),
        "constraints": {"kind": {0: "fixed"}},
        "theta": (-0.4, 0.9, -0.6),
        "theta_dot": (1.2, -0.8, 2.1),
        "tau": (1.5, -0.4, 0.2, 0),
    },
    "REF-3": {
        "lengths": (0.6, 0.5),
        "masses": (1.5, 0.4, 0.3),
        "constraints": {"kind": {0: "line"}, "s": {0: (0, 1)}},
        "x0": (0.2, 0),
        "v0": (0.7, 0),
        "theta": (1.2, 0.5),
        "theta_dot": (-0.9, 1.7),
        "tau": (0, 0.3, 0),
        "forces": {0: (3, 0)},
    },
    "REF-4": {
        "lengths": (0.7, 0.6, 0.5),
        "masses": (0.9, 0.8, 0.7, 0.6),
        "constraints": {
            "kind": {0: "line", 3: "line"},
            "s": {0: (0, 1), 3: (-0.6, 0.8)},
        },
        "v0": (0.4, 0),
        "theta": (0.9, -0.5, 0.3),
        "theta_dot": (0.5, -0.3, None),
        "tau": (0, 0.4, -0.2, 0),
    },
    "REF-5": {
        **_LONG,
        "constraints": {"active": (1, 3), "alpha_w": {1: 2, 3: -1.5}},
        "x0": (0.1, 1),
        "v0": (0.2, -0.4),
        "forces": {0: (0.3, 0), 2: (0, -1), 4: (2, 1)},
    },
    "REF-6": {
        **_LONG,
        "constraints": {
            "kind": {0: "line", 3: "guided"},
            "s": {0: (0, 1)},
            "a_w": {3: (-1, 2)},
            "active": (2,),
            "alpha_w": {2: 0.8},
        },
        "v0": (0.2, 0),
    },
    "REF-7": {
        "lengths": (0.5, 0.4),
        "masses": (1, 0.7, 0.5),
        "constraints": {
            "kind": {0: "fixed"},
            "active": (0, 1),
            "alpha_w": {0: 1.5, 1: -2},
        },
        "theta": (0.3, 0.4),
        "theta_dot": (0.5, -0.6),
    },
    "REF-8": {
        "lengths": (1, 1, 1),
        "masses": (1, 0.7, 0.5, 0.9),
        "gravity": 0,
        "constraints": {
            "kind": {1: "fixed", 3: "fixed"},
            "active": (1,),
            "alpha_w": {1: 1.3},
        },
        "x0": (0, 1),
        "theta": (-np.pi / 2, np.pi / 2, 0),
        "theta_dot": (0, 0, 0),
        "forces": {0: (0.2, 0.5), 2: (0.1, -0.4)},
    },
}
# By case: a, alpha of all but the last joint, F_d of all but the first, tau_w.
_ANSWERS = """
REF-1
0 0 3.535241771311 -6.295856399628
-8.866002321576
2.279738573031 1.920197310557
0
REF-2
0 0 -2.205073553149 -3.366578037748 2.433803804103 -11.99147917987
 0.8419786861341 -9.075347617866
-7.919039603144 -16.56360818655 33.62480015791
-1.42322568558 0.6017301685972 0.909168724601 0.4966811379376
 0.240798643443 -0.02416045292847
0 0 0
REF-3
0.5647065377697 0 7.383079397745 -3.17228142386 -2.667638552509 -4.80083540156
-12.50748463585 32.86103168533
1.686920650362 4.339015687226 -0.2052926794811 1.580056076109
0 0
REF-4
-5.535886078377 0 2.042845541787 -6.237517263725 2.510017602024 -7.404113473549
 -2.358040476154 -1.768530357115
-14.01989618187 11.92584345872 16.98689439087
4.53468209361 5.714416904241 3.737439379419 1.580164025063
 1.333321640798 1.123041325464
0 0 0
REF-5
0.7362701070611 -9.739098576836 0.7984981288146 -10.34850953104
 0.8540181896758 -9.832002369997 0.3860860543441 -9.450308040954
 0.1300860543441 -9.71123027895
-1.171074784624 2 0.01876918963419 -1.5
-0.4362701070611 -0.0709014231643 -1.075068610113 0.3599062016678
 -1.587479523918 -0.6268923763339 -1.934956972828 -0.9506151394751
0 -0.05229352329732 0 -0.38024605579
REF-6
-2.076962228808 0 1.847302310617 -9.74398631281 4.142107755669 -3.931071156214
 -1 2 -1.256 -9.81
-21.0059726211 31.4187871953 0.8 -40.7378145742
2.076962228808 0.8781255459152 0.599120380314 0.8253145961632
 -1.886144273087 -2.702042710109 -0.628 0
0 0 -0.5960841285915 0
REF-7
0 0 -0.3410572161367 0.6795623410115 -0.2152730474383 0.5240170328057
1.5 -2
-0.3463765750148 12.50970215511 -0.1076365237191 5.167008516403
7.635183086061 1.60851497911
REF-8
0.83333333333333333 0 0 0 0 0.46666666666666667 0 0
-0.83333333333333333 1.3 -0.93333333333333333
-0.63333333333333333 0.5 0 0.63333333333333333 0.1 0
0 0.63333333333333333 0
"""
_LISTED = dict(zip(_CASES, _ANSWERS.split("REF-")[1:], strict=True))
REFERENCES = tuple(_CASES)


def reference(name: str) -> ChainCase:
    """Return a case of REFERENCES; its answer has a, alpha, F_d and tau_w.

    They are arrays (n, 2) or (n,) as in CHAIN_ACCELERATIONS: the last alpha and tau_w
    and the first F_d are zero. Raises KeyError for an unknown name.

    Args:
        name: REF-1 .. REF-8.

    Source: section K of the requirements.
    """
    parts = dict(_CASES[name])
    theta, rates = parts.pop("theta"), parts.pop("theta_dot")
    x0, v0 = parts.pop("x0", (0, 0)), parts.pop("v0", (0, 0))
    tau, extra = parts.pop("tau", None), parts.pop("forces", {})
    chain = make_chain(parts.pop("lengths"), parts.pop("masses"), **parts)
    if None in rates:  # the last joint stays on its line
        s = np.array(chain.constraints.s[-1])
        slow, fast = (
            s @ from_angles(chain, x0, v0, theta, (*rates[:-1], rate)).v[-1]
            for rate in (0.0, 1.0)
        )
        rates = (*rates[:-1], slow / (slow - fast))
    x, v = from_angles(chain, x0, v0, theta, rates)
    F = forces(chain, x, v, tau)
    for i, f in extra.items():
        F[i] += f
    return ChainCase(chain, x, v, F, _answer(name, chain.n))


def _answer(name: str, n: int) -> dict[str, np.ndarray]:
    lines = _LISTED[name].replace("\n ", " ").splitlines()[1:5]
    a, alpha, F_d, tau_w = (np.array(line.split(), float) for line in lines)
    return {
        "a": a.reshape(n, 2),
        "F_d": np.vstack([np.zeros(2), F_d.reshape(n - 1, 2)]),
        "tau_w": np.append(tau_w, 0.0),
        "alpha": np.append(alpha, 0.0),
    }
