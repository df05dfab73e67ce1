"""The command `dyn ik`: joint positions that bring a link to a pose."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from dyn_core.errors import SettingError, renamed
from dyn_core.kinematics.inverse import InverseKinematics, Reached
from dyn_core.model import Model
from dyn_core.model.frames import ZERO
from dyn_core.model.sources.arguments import add_robot, load_robot, typed_pose

FORMER = "--tip"  # former name of --frame
_POSE = ("X", "Y", "Z", "QX", "QY", "QZ", "QW")


class _StoreLink(argparse.Action):
    """Stores the link, also under the option's former name; another is refused."""

    def __call__(
        self, parser: Any, namespace: Any, values: Any, name: Any = ""
    ) -> None:
        if name == FORMER:
            renamed("option", FORMER, "--frame")
        if namespace.frame not in (None, values):
            both = f"{namespace.frame} and {values} are both given; valid: one link"
            raise SettingError(f"--frame: {both}", "frame")
        namespace.frame = values


def add_ik(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `dyn ik`; arguments.run is `run`. --tip means --frame."""
    add_robot(parser)
    frame = parser.add_argument(
        "--frame", required=True, metavar="LINK", action=_StoreLink, help="link to move"
    )
    parser._option_string_actions[FORMER] = frame  # valid, and not in the help
    parser.add_argument(
        "--pose", nargs=7, type=float, metavar=_POSE,
        help="position [m] and quaternion of the link in the base",
    )  # fmt: skip
    parser.add_argument(
        "--xyz", nargs=3, type=float, metavar=_POSE[:3],
        help="position [m]; without --rpy its rotation may be any",
    )  # fmt: skip
    parser.add_argument(
        "--rpy", nargs=3, type=float, metavar=("ROLL", "PITCH", "YAW"),
        help="rotation [rad]; without --xyz its position may be any",
    )  # fmt: skip
    parser.add_argument("--fixed", help="joints that stay at zero, by commas")
    parser.add_argument(
        "--seeds", type=int, default=8,
        help="starts that are tried at once (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--rng", type=int, default=0,
        help="seed of the positions to start from (default: %(default)s)",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Search, and print the joint positions; return 0 if the pose is reached, else 1.

    Args:
        arguments: Options of add_ik.

    Raises:
        SettingError: Options are inconsistent or out of range.
        ModelError: The robot's file cannot be used, or it has no such link.
        UnsupportedError: A joint of --fixed is unknown, or the solver does not support
            the robot.
        NonFiniteError: The pose has NaN or infinity, or its quaternion is zero.
    """
    part, pose = wanted_pose(arguments)
    model = load_robot(arguments)
    fixed = tuple(filter(None, (arguments.fixed or "").split(",")))
    pool = max(256, 4 * arguments.seeds)
    reach = InverseKinematics(
        model, arguments.frame, part=part, fixed=fixed, seeds=arguments.seeds,
        pool=pool, rng=arguments.rng,
    )  # fmt: skip
    result = reach(pose)
    for line in report(model, result, arguments.frame, part):
        print(line)
    return 0 if result.converged else 1


def wanted_pose(arguments: argparse.Namespace) -> tuple[str, np.ndarray]:
    """Return (part of the pose to match, wanted pose).

    The part is position with --xyz alone, orientation with --rpy alone, else pose. With
    --pose, the pose is its seven numbers as an array (7,), not normalized; with --xyz
    or --rpy it is a matrix (4, 4), in which a missing option counts as zeros. An angle
    of --rpy beyond a full turn gives a DynWarning.
    """
    pose, xyz, rpy = arguments.pose, arguments.xyz, arguments.rpy
    if (pose is None) == (xyz is None and rpy is None):
        raise SettingError(
            "what the link is brought to; valid: --pose, or --xyz and --rpy, or one"
            " of the two",
            "pose",
        )
    if pose is not None:
        return "pose", np.array(pose)
    R, p = typed_pose(xyz or ZERO, rpy or ZERO)
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = np.asarray(R, float), np.asarray(p, float)
    if xyz is None:
        return "orientation", matrix
    return ("position" if rpy is None else "pose"), matrix


def report(model: Model, result: Reached, frame: str, part: str) -> Iterator[str]:
    """Yield lines of text: the position of each joint, then one line on the search.

    This line states whether the pose is reached, the remaining rotation [rad] and
    displacement [m] of the matched part, the number of steps, and the index of the
    start. A line on the reason follows if there is one.

    Args:
        model: Robot.
        result: Result for one pose.
        frame: Name of the link.
        part: Part that was matched: pose, position or orientation.
    """
    width = max(map(len, model.joint_names), default=0)
    for name in model.joint_names:
        values = " ".join(f"{x:.12g}" for x in result.q[model.q_slice(name)])
        yield f"  {name.ljust(width)}  {values}"
    turn, shift = (float(np.linalg.norm(x)) for x in np.split(result.error, 2))
    turned, shifted = f"{_digits(turn)} rad", f"{_digits(shift)} m"
    left = {"pose": f"{turned} and {shifted}", "position": shifted}.get(part, turned)
    verdict = "is there:" if result.converged else "is not reached; the search ended"
    yield (
        f"{frame} {verdict} {left} from the {part}, after {result.iterations} steps"
        f" from start {result.seed}"
    )
    if result.reason:
        yield result.reason


def _digits(x: float) -> str:
    """Return a distance or angle as text: five significant digits, below 1e-6 two."""
    return f"{x:.1e}" if x < 1e-6 else f"{x:.5g}"
