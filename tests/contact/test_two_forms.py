"""Machine code and traced algorithms state one rule: each row of docs/design.md's table.

A form in the subset of machine code takes arrays, its traced twin numbers of any kind;
both get the same random problem here, and run as Python.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from dyn_core.contact.stepping import gap_rules
from dyn_core.contact.stepping.block_rows import close
from dyn_core.contact.stepping.step_tables import SCHEMES
from dyn_core.spatial import Vector
from dyn_plugins.contact.step import normal_bias

TWINS = 1e-12
DT, THRESHOLD = 1e-3, 0.05


@pytest.mark.parametrize("scheme", gap_rules.RULES)
def test_gaps_close_and_bounce_alike(scheme):
    """`close` of rows and `normal_bias` of a kernel, fast and slow, near and far."""
    rng, checked = np.random.default_rng(1), {True: 0, False: 0}
    for _ in range(400):
        gap = rng.choice([0.0, 5e-10, *rng.normal(0.0, 1e-4, 6)])
        approach, ahead = rng.normal(0.0, 0.1, 2)
        e = rng.choice([0.0, 0.6])
        block = SimpleNamespace(
            gap=[gap], approach=[approach], restitution=[e], rebound=[0.0], bias=[0.0]
        )
        rows = SimpleNamespace(start=[0], b=[ahead], compliance=[0.0])
        rule = SimpleNamespace(
            scheme=SCHEMES[scheme], dt=DT, compliance=1e-4, threshold=THRESHOLD,
            erp=0.2, push=0.1,
        )  # fmt: skip
        close(rule, rows, block, 0)
        contact = SimpleNamespace(forces=[Vector((1.0,))], restitution=e)
        motions = Vector((approach,)), Vector((ahead,))
        options = {
            "erp": 0.2, "push_out_speed": 0.1, "restitution_threshold": THRESHOLD,
        }  # fmt: skip
        traced = gap_rules.RULES[scheme]
        part, bias = normal_bias(traced, contact, gap, motions, DT, options)[:2]
        checked[bool(part)] += 1
        if part:
            assert bias == pytest.approx(block.bias[0], rel=TWINS, abs=TWINS)
    assert checked[True] > 100
    assert checked[False] > 100 or scheme == "stewart_trinkle"
