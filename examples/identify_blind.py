"""Identify an arm from a recording, knowing only its URDF.

It reads what identify_blind_record.py wrote (and has it written where it is missing),
as it would a recording of a real arm: times, positions and joint forces at 1 kHz.
Velocities and accelerations come from filtered positions, the delay of the joint forces
is estimated, bodies stay physical. What counts is the error of joint forces that are
predicted for other motions.

    python examples/identify_blind.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import identify_blind_record
import numpy as np

import dyn_core as dyn
from dyn_core.identification import Evaluation, evaluate
from dyn_core.recordings import read_motion

OTHERS = ("slow", "fast")
CUTOFF = 20.0  # what encoders of 17 bits at 1 kHz allow [Hz]


def error(report: Evaluation) -> float:
    """Return the rms of the residual over that of measured joint forces, all joints."""
    left, measured = report.residual, report.motion.tau
    return float(np.sqrt((left * left).sum() / (measured * measured).sum()))


def main(
    folder: Path, folds: int = 4, picture: str = ""
) -> dict[str, tuple[float, float]]:
    """Identify, print and write the robot; return errors before and after by motion."""
    model = dyn.load("arm7")
    report = evaluate(model, read_motion(folder / "arm_train.npz"), cutoff=CUTOFF)
    print("parameters are fitted once for each block of time, some 15 s", flush=True)
    result = report.identify(friction="full", delay=True, folds=folds)
    print(
        f"{result.rank} numbers or combinations of {len(result.names)} show;", end=" "
    )
    print(f"joint forces come {1e3 * result.delay:.1f} ms late")
    if result.validation is not None:
        ratio = result.validation.ratio
        print(
            f"residual on held-out blocks of time: {ratio:.3f} of that of fitted ones"
        )
    if result.model is None:
        raise SystemExit(result.reason)
    friction = [x for x in result.names if x.startswith("joint1.")]
    for name in friction:
        k = result.names.index(name)
        value, deviation = result.parameters[k], result.standard_deviations[k]
        known = f"+- {deviation:.4f}" if np.isfinite(deviation) else "with others"
        print(f"  {name:26} {value:8.4f} {known} {result.units[k]}")
    errors = {}
    print("error of predicted joint forces on other motions, rms over rms")
    for name in OTHERS:
        before = evaluate(model, read_motion(folder / f"arm_{name}.npz"))
        after = before.without_delay(result.delay).of(result.model)
        errors[name] = error(before), error(after)
        print(f"  {name}: {100 * errors[name][0]:.2f} % before,", end=" ")
        print(f"{100 * errors[name][1]:.2f} % after")
        shares = zip(before.names, before.share, after.share, strict=True)
        for joint, first, last in shares:
            print(f"    {joint}: {100 * first:5.1f} % -> {100 * last:4.1f} %")
    files = result.save(folder / "identified.urdf")
    print("written:", ", ".join(path.name for path in files))
    if picture:
        result.plot_friction(folder / picture)
    return errors


if __name__ == "__main__":
    place = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    if not (place / "arm_train.npz").exists():
        identify_blind_record.main(place)
    main(place, picture="identify_blind.png")
