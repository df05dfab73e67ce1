"""Findings about elements of an MJCF that a Model cannot represent."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from dyn_core.model.checks.findings import Findings
from dyn_core.model.mjcf.bodies import initial_positions
from dyn_core.model.mjcf.compiled import Compiled

_GONE = "it is left out"
_SOFT = (
    "solref, solimp, margin and gap are no part of a Model: limits, friction and loops"
    " are exact, contacts are the World's"
)
_REF, _IMP = (0.02, 1.0), (0.9, 0.95, 0.001, 0.5, 2.0)
# Flags of <option> that concern neither the integration nor the solver.
_FLAGS = (
    "constraint", "equality", "frictionloss", "limit", "contact", "spring", "damper",
    "passive",
)  # fmt: skip


def note_what_is_left_out(
    mjcf: Compiled, kept_tendons: Container[int], findings: Findings
) -> None:
    """Add a finding for every element that a Model cannot represent.

    Elements that change the motion of the robot are doubtful (a ModelError where the
    check is strict); sensors, keyframes and the like are notes.

    Args:
        mjcf: The compiled file.
        kept_tendons: Indices of tendons that couplings replace.
        findings: Collects the findings.
    """
    for remark in mjcf.remarks:
        findings.note("", "", f"MuJoCo warns: {' '.join(remark.split())}")
    for name in initial_positions(mjcf):
        what = "initial position (pos, ref) is not kept; neutral() is q = 0"
        findings.note("joint", name, what)
    _note_options(mjcf, findings)
    _note_joints(mjcf, findings)
    _note_bodies(mjcf, findings)
    _note_tendons(mjcf, kept_tendons, findings)
    _note_softness(mjcf, findings)
    for kind, count, what in (
        ("sensor", mjcf.model.nsensor, "no part of a Model"),
        ("keyframe", mjcf.model.nkey, "no part of a Model"),
    ):
        for k in range(count):
            code = "key" if kind == "keyframe" else kind
            findings.note(kind, mjcf.element(code, k), what)


def _note_options(mjcf: Compiled, findings: Findings) -> None:
    """Add findings about <option> and its flags."""
    option, bits = mjcf.model.opt, mjcf.mujoco.mjtDisableBit
    if option.density or option.viscosity:
        what = f"density {option.density:g} and viscosity {option.viscosity:g}"
        findings.doubt("", "", f"<option>: {what} of a fluid", "no force of it acts")
    for flag in _FLAGS:
        bit = getattr(bits, f"mjDSBL_{flag.upper()}", 0)
        if option.disableflags & int(bit):
            what = f"<option>: flag {flag}='disable' has no counterpart in a Model"
            findings.note("", "", what)
    if option.enableflags & int(mjcf.mujoco.mjtEnableBit.mjENBL_OVERRIDE):
        findings.note("", "", "<option>: flag override='enable' is not kept")


def _note_joints(mjcf: Compiled, findings: Findings) -> None:
    """Add findings about springs, ranges and nonlinear forces of joints."""
    m = mjcf.model
    for joint, name in enumerate(mjcf.joints):
        dof, kind = int(m.jnt_dofadr[joint]), mjcf.kind("jnt_type", joint)
        if kind in ("free", "ball"):
            if m.jnt_stiffness[joint]:
                what = f"a spring in a {kind} joint"
                findings.doubt("joint", name, what, _GONE)
            if m.jnt_limited[joint]:
                what = f"range [0, {m.jnt_range[joint, 1]:g}] of a {kind} joint's angle"
                findings.doubt("joint", name, what, _GONE)
        if kind == "free" and (m.dof_armature[dof] or m.dof_frictionloss[dof]):
            what = (
                "armature and dry friction of a free joint act along the body's axes;"
                " MuJoCo's along the world's"
            )
            findings.note("joint", name, what)
        for array, number, what in (
            ("jnt_stiffnesspoly", joint, "stiffness"),
            ("dof_dampingpoly", dof, "damping"),
        ):
            poly = getattr(m, array, None)  # since these are polynomials
            if poly is not None and poly[number].any():
                what = f"{what} that is not linear; only its linear part is kept"
                findings.doubt("joint", name, what)


def _note_bodies(mjcf: Compiled, findings: Findings) -> None:
    """Add findings about bodies, flexible parts, plugins and special geoms."""
    m = mjcf.model
    for body, name in enumerate(mjcf.links):
        if m.body_gravcomp[body]:
            what = f"gravcomp {m.body_gravcomp[body]:g}"
            findings.doubt("link", name, what, "gravity acts on it in full")
        if m.body_mocapid[body] >= 0:
            findings.note("link", name, "a mocap body, which is fixed here")
    for kind, count in (("flex", m.nflex), ("plugin", m.nplugin)):
        for k in range(count):
            findings.doubt(kind, mjcf.element(kind, k), "no part of a Model", _GONE)
    for what in ("adhesion", "surfacevel"):
        values = getattr(m, f"geom_{what}", None)  # since geoms have them
        if values is not None and values.any():
            for geom in np.flatnonzero(values.reshape(m.ngeom, -1).any(axis=1)):
                name = mjcf.element("geom", int(geom))
                findings.doubt("geom", name, f"{what} of its contacts", "none acts")


def _note_tendons(mjcf: Compiled, kept: Container[int], findings: Findings) -> None:
    """Add findings about tendons; those that exert forces are doubtful.

    `kept` has the indices of tendons that couplings replace.
    """
    m = mjcf.model
    forces = {
        "stiffness": "spring", "stiffnesspoly": "spring", "damping": "damper",
        "dampingpoly": "damper", "armature": "armature", "frictionloss": "friction",
        "limited": "limit",
    }  # fmt: skip
    for tendon in range(m.ntendon):
        name = mjcf.element("tendon", tendon)
        acting = [
            word
            for key, word in forces.items()
            if np.any(getattr(m, f"tendon_{key}", np.zeros(m.ntendon))[tendon])
        ]
        if acting:
            what = f"a tendon with {', '.join(dict.fromkeys(acting))}"
            findings.doubt("tendon", name, what, "none of it acts on the joints")
        elif tendon not in kept:
            findings.note("tendon", name, "no part of a Model")


def _note_softness(mjcf: Compiled, findings: Findings) -> None:
    """Add findings for elements with solver parameters that are not the defaults."""
    m = mjcf.model
    arrays = [
        ("joint", m.jnt_limited, m.jnt_solref, m.jnt_solimp),
        ("geom", m.geom_contype | m.geom_conaffinity, m.geom_solref, m.geom_solimp),
        ("equality", m.eq_active0, m.eq_solref, m.eq_solimp),
    ]
    for kind, counts, ref, imp in arrays:
        # _REF and _IMP are MuJoCo's defaults of solref and solimp; 1e-12 absorbs
        # rounding.
        changed = (np.abs(ref - _REF) > 1e-12).any(axis=1)
        changed |= (np.abs(imp - _IMP) > 1e-12).any(axis=1)
        if kind == "geom":
            changed |= (m.geom_margin != 0) | (m.geom_gap != 0)
        for k in np.flatnonzero(changed & (np.asarray(counts) != 0)).tolist():
            word = "equality constraint" if kind == "equality" else kind
            findings.note(word, mjcf.element(kind, k), _SOFT)
