"""A survey of URDF files: which load, and whether Pinocchio computes the same.

    python tests/support/survey.py FOLDER...

Without Pinocchio (`pin`) it only says which files load.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.errors import DynError, ModelWarning
from dyn_core.model import Model, load_urdf
from dyn_core.solving.registry import solver
from dyn_core.spatial.conventions import swap_rows
from dyn_core.testing.tolerances import scaled_error

AGREE = 1e-12  # relative difference of inverse dynamics that counts as none
LOADED = ("strict", "warnings")
OUTCOMES = (*LOADED, "refused", "foreign exception")


@dataclass(frozen=True)
class Surveyed:
    """What became of a URDF.

    Attributes:
        path: Of the file.
        outcome: One of OUTCOMES: loads with check="error", loads with check="warn"
            only, or not.
        reason: Why it was refused, or is no strict robot.
        peer: Whether Pinocchio loads it; None: it is not installed.
        error: Relative difference of inverse dynamics in a random state; None: it
            cannot be compared.
        difference: Why not.
    """

    path: Path
    outcome: str
    reason: str = ""
    peer: bool | None = None
    error: float | None = None
    difference: str = ""


def survey(path: Path) -> Surveyed:
    """Return what becomes of a URDF."""
    model, outcome, reason = _load(path)
    try:
        import pinocchio as pin
    except ImportError:
        return Surveyed(path, outcome, reason)
    try:
        peer = pin.buildModelFromUrdf(str(path))
    except Exception as error:  # it raises what its parser throws
        return Surveyed(path, outcome, reason, False, None, _first_line(error))
    if model is None:
        return Surveyed(path, outcome, reason, True)
    difference = _difference(model, peer)
    if difference:
        return Surveyed(path, outcome, reason, True, None, difference)
    return Surveyed(path, outcome, reason, True, _error(model, pin, peer))


def _load(path: Path) -> tuple[Model | None, str, str]:
    """Return the Model, if any, one of OUTCOMES, and why it is not strict."""
    reason = ""
    for check, outcome in zip(("error", "warn"), LOADED, strict=True):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ModelWarning)
                return load_urdf(path, check=check), outcome, reason
        except DynError as error:
            reason = reason if check == "warn" and reason else str(error)
            refusal = str(error)
        except Exception as error:
            return None, OUTCOMES[3], f"{type(error).__name__}: {_first_line(error)}"
    return None, OUTCOMES[2], refusal


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def _difference(model: Model, peer: Any) -> str:
    """Return why two robots cannot be compared joint by joint, or nothing."""
    names = set(peer.names) - {"universe"}
    joints = set(model.names[1:])
    if names != joints:
        odd = sorted(names ^ joints)
        return f"joints differ: {', '.join(odd[:3])}"
    kinds = {model.joint[i].kind for i in model.bodies}
    rare = kinds - {"revolute", "continuous", "prismatic", "floating"}
    return f"{', '.join(sorted(rare))} joints are other ones there" if rare else ""


def _error(model: Model, pin: Any, peer: Any) -> float:
    """Return the relative difference of inverse dynamics in a random state."""
    rng = np.random.default_rng(0)
    q, (qd, qdd) = model.random(rng), rng.normal(size=(2, model.nv))
    tau = solver("rnea").build(model, engine="plain")(q, qd, qdd)
    position, P = pin.neutral(peer), np.zeros((peer.nv, model.nv))
    for name in model.names[1:]:
        joint = peer.joints[peer.getJointId(name)]
        x, rows = q[model.q_slice(name)], np.eye(model.nv)[model.v_slice(name)]
        rule = model.followers.get(name)
        if rule is not None:
            x, rows = rule.multiplier * x + rule.offset, rule.multiplier * rows
        x = np.array([np.cos(x[0]), np.sin(x[0])]) if joint.nq == 2 else x
        position[joint.idx_q : joint.idx_q + joint.nq] = x
        rows = swap_rows(rows) if joint.nv == 6 else rows
        P[joint.idx_v : joint.idx_v + joint.nv] = rows
    other = P.T @ pin.rnea(peer, peer.createData(), position, P @ qd, P @ qdd)
    return scaled_error(tau, other)


def table(results: Sequence[Surveyed], folders: Iterable[Path]) -> list[str]:
    """Return the counts by folder as lines of a table in Markdown."""
    head = (
        "folder", "files", *OUTCOMES, "Pinocchio loads", "both", "compared", "agree",
        "largest difference",
    )  # fmt: skip
    rows = [head, ("---",) * len(head)]
    for folder in folders:
        inside = [x for x in results if x.path.is_relative_to(folder)]
        outcomes = Counter(x.outcome for x in inside)
        both = [x for x in inside if x.peer and x.outcome in LOADED]
        errors = [x.error for x in both if x.error is not None]
        agree = sum(error <= AGREE for error in errors)
        most = f"{max(errors):.1e}" if errors else "-"
        peers = sum(bool(x.peer) for x in inside)
        counts = (len(inside), *(outcomes[x] for x in OUTCOMES), peers, len(both))
        row = (*counts, len(errors), agree)
        rows.append((folder.name, *map(str, row), most))
    return [f"| {' | '.join(row)} |" for row in rows]


def reasons(results: Iterable[Surveyed]) -> list[str]:
    """Return lines on why files are refused, not strict or not compared, most first."""
    causes: dict[tuple[str, str], list[Surveyed]] = {}
    for x in results:
        if x.outcome != "strict":
            causes.setdefault((x.outcome, _cause(x.reason)), []).append(x)
        if x.difference:
            what = "not compared" if x.peer else "refused by Pinocchio"
            causes.setdefault((what, _cause(x.difference)), []).append(x)
        if x.error is not None and x.error > AGREE:
            causes.setdefault(("differs", f"by {x.error:.1e}"), []).append(x)
    lines = []
    for (what, _), files in sorted(causes.items(), key=lambda x: (x[0][0], -len(x[1]))):
        first = files[0]
        shown = first.reason if what in OUTCOMES else first.difference
        shown = shown or f"by {first.error:.1e}"
        lines.append(f"{what}: {len(files)} such as {first.path.name}: {shown[:240]}")
    return lines


def _cause(reason: str) -> str:
    """Return what reasons of one cause have in common."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|/\S+|[-+.\de]+", "", reason)[:50]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table of some folders; return 1 if a foreign exception came."""
    parser = argparse.ArgumentParser("survey.py")
    parser.add_argument("folder", nargs="+", type=Path, help="folders with URDF files")
    folders = parser.parse_args(argv).folder
    paths = sorted({path for folder in folders for path in folder.rglob("*.urdf")})
    results = []
    for path in paths:
        results.append(survey(path))
        if sys.stderr.isatty():
            print(f"\r{len(results)}/{len(paths)}", end="", file=sys.stderr)
    print("\n".join([*table(results, folders), "", *reasons(results)]))
    return int(any(x.outcome == OUTCOMES[3] for x in results))


if __name__ == "__main__":
    sys.exit(main())
