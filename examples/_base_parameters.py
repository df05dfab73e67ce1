"""Table of base parameters: true, before and after identification."""

import numpy as np

import dyn_core as dyn


def table(model: dyn.Model, result: dyn.Identification) -> str:
    """Return a table of the largest base parameters: true, prior, identified, +-."""
    base = result.base
    truth = base.regrouping @ dyn.parameters_of(model, friction=True, rotors=True)
    before = base.regrouping @ result.prior
    lines = [f"{'base parameter':44} {'true':>9} {'prior':>9} {'fit':>9} {'+-':>8}"]
    for k in np.argsort(-np.abs(truth))[:16]:
        label = base.expression(int(k), 2)
        label = label if len(label) <= 44 else label[:40] + " ..."
        row = (truth[k], before[k], base.values[k])
        lines.append(
            f"{label:44} " + " ".join(f"{x:9.4f}" for x in row)
            + f" {result.base_deviations[k]:8.4f}"
        )  # fmt: skip
    return "\n".join(lines)


def rms(x: np.ndarray) -> np.ndarray:
    """Return the root mean square of each column."""
    return np.asarray(np.sqrt((x * x).mean(axis=0)))
