"""Laws of inverse kinematics: frames reach their poses, or come nearest."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.problems import INVERSE_KINEMATICS
from dyn_core.spatial import Motion, Transform
from dyn_core.spatial.lie import exp_transform
from dyn_core.testing.case import Case, Pairs


def _pose(case: Case, q: Any) -> np.ndarray:
    """Return the pose of the case's frame at position q, (4, 4)."""
    kinematics = case.other("forward_kinematics", frames=[case.frame])
    return np.asarray(kinematics(q)[0])


def _errors(case: Case, q: Any, pose: np.ndarray) -> tuple[float, float]:
    """Return rotation error (chord) and distance of the frame at q to a pose."""
    here = _pose(case, q)
    chord = np.linalg.norm(here[:3, :3] - pose[:3, :3]) / np.sqrt(2)
    return float(chord), float(np.linalg.norm(here[:3, 3] - pose[:3, 3]))


def frames_are_where_they_are_wanted(case: Case) -> Pairs:
    """status = 0: FK(q_reached) is the pose, e is zero; it is found from nearby"""
    program = case.program()
    for _ in range(3):
        q, pose = case.arguments(program)
        result = program(q, pose)
        if result.status == 0.0:
            yield _pose(case, result.q_reached), pose
            yield result.error, np.zeros(6)
    still = program(case.q, _pose(case, case.q))
    yield still.status, 0.0
    yield still.iterations, 0.0
    yield still.q_reached, case.model.normalize(case.q)


def the_error_leads_to_the_pose(case: Case) -> Pairs:
    """T(q_reached) exp(error) = pose, wherever the pose is"""
    program = case.program()
    for pose in (_pose(case, case.model.random(case.rng)), _far(case)):
        result = program(case.q, pose)
        here = _pose(case, result.q_reached)
        left = exp_transform(Motion.of(result.error.tolist()))
        there = left @ Transform.of_pose(here[:3, :3], here[:3, 3].tolist())
        R, p = there.pose
        yield np.asarray(R, float), pose[:3, :3]
        yield np.asarray(p, float), pose[:3, 3]


def limits_hold_and_nothing_gets_farther(case: Case) -> Pairs:
    """lower <= q_reached <= upper;  e.e <= that of the start, also a second time"""
    program, model = case.program(), case.model
    for pose in (_pose(case, model.random(case.rng)), _far(case)):
        q = program(case.q, pose).q_reached
        for i in model.independent:
            if model.joint[i].nq == model.joint[i].nv:
                part = q[model.q_slices[i]]
                lower, upper = (
                    x[model.v_slices[i]] for x in (model.lower, model.upper)
                )
                yield part, np.clip(part, lower, upper)
        again = program(q, pose).q_reached
        squares = [np.hypot(*_errors(case, x, pose)) for x in (case.q, q, again)]
        yield max(*np.diff(squares), 0.0), 0.0
        yield model.normalize(q), q


def fixed_joints_stay(case: Case) -> Pairs:
    """Joints that are fixed, and those that do not carry the frame, stay"""
    model = case.model
    name = case.rng.choice(model.joint_names)
    q = case.program(fixed=[str(name)])(case.q, _far(case)).q_reached
    carries, i = set(), model.frame(case.frame).body
    while i > 0:
        carries.add(model.v_slices[i].start)
        i = model.parent[i]
    normal = model.normalize(case.q)
    for i in model.independent:
        if model.v_slices[i].start not in carries or model.names[i] == name:
            yield q[model.q_slices[i]], normal[model.q_slices[i]]
    yield 0.0, 0.0


def a_part_of_a_pose_is_less(case: Case) -> Pairs:
    """part: what is not asked for does not count"""
    q, pose = case.arguments(case.program())
    for part, which in (("orientation", 0), ("position", 1)):
        result = case.program(part=part)(q, pose)
        error = _errors(case, result.q_reached, pose)[which]
        yield max(error - _errors(case, q, pose)[which], 0.0), 0.0
        if result.status == 0.0:
            yield error, 0.0


def _far(case: Case) -> np.ndarray:
    """Return a pose with a random rotation, some 10 m away."""
    q = case.rng.normal(size=4)
    x, y, z, w = q / np.linalg.norm(q)
    axis, pose = np.array([x, y, z]), np.eye(4)
    cross = np.cross(np.eye(3), axis)
    pose[:3, :3] = np.eye(3) - 2 * w * cross + 2 * cross @ cross
    pose[:3, 3] = case.rng.normal(size=3) * 10
    return pose


LAWS = {
    INVERSE_KINEMATICS: (
        frames_are_where_they_are_wanted,
        the_error_leads_to_the_pose,
        limits_hold_and_nothing_gets_farther,
        fixed_joints_stay,
        a_part_of_a_pose_is_less,
    )
}
