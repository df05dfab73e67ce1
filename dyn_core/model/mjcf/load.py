"""The function load_mjcf: a Model from an MJCF, and findings of what is left out."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import ModelError
from dyn_core.model.checks.findings import Findings
from dyn_core.model.description_builder import DescriptionBuilder
from dyn_core.model.mjcf.bodies import (
    ROOT_JOINTS,
    add_links,
    add_materials,
    add_shapes,
    how_joined,
    initial_positions,
    read_pairs,
)
from dyn_core.model.mjcf.compiled import Compiled, compile_mjcf, is_path
from dyn_core.model.mjcf.drives import read_drives
from dyn_core.model.mjcf.equalities import read_equalities
from dyn_core.model.model import Model
from dyn_core.model.reading import GRAVITY, Choices, complete_model
from dyn_core.model.sidecar import Extras
from dyn_core.model.sources.origin import Origin
from dyn_core.model.urdf_xml.xml_text import Source
from dyn_core.validation import known_keywords

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

    Elements that change the motion of the robot are doubtful findings, others notes.
    Actuators, equality constraints and shapes are not reported here. `kept_tendons` are
    indices of tendons that followers or couplings replace.
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
    """Add findings about <option> and its flags, and about fusestatic."""
    option, bits = mjcf.model.opt, mjcf.mujoco.mjtDisableBit
    if mjcf.fused:
        what = "<compiler>: fusestatic changes inertias; with it MuJoCo moves"
        here = f"bodies stay apart, and {mjcf.fused[0]:.6g} kg move"
        findings.doubt("", "", f"{what} {mjcf.fused[1]:.6g} kg", here)
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
    """Add findings about tendons; those in `kept`, without forces, give none."""
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
    """Add notes on elements whose solref, solimp, margin or gap is not the default.

    Checked are joints with limits, geoms that can touch others, and active equality
    constraints; margin and gap count for geoms only.
    """
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


@known_keywords
def load_mjcf(
    source: Source,
    *,
    root_joint: str | None = None,
    lock: Mapping[str, ArrayLike] | None = None,
    root: str | None = None,
    tip: str | None = None,
    extras: Extras | None = None,
    sidecar: bool = True,
    check: str = "warn",
    gravity: tuple[float, ...] | None = None,
) -> Model:
    """Return the Model of an MJCF, the robot file of MuJoCo.

    The root link is `world`; bodies and sites with names are links. Joints have
    MuJoCo's order and names. Positions are MuJoCo's: q of a hinge or slide is its qpos,
    with `ref`; a free joint is floating, q = (x, y, z, qx, qy, qz, qw) in the world, qd
    its twist in the body's axes, [angular; linear]; a ball joint is spherical, q =
    (x, y, z, w). A joint that an equality fixes has no coordinates, nor has the first
    of two joints in a linear equality; other equalities are loops and couplings.

    Elements that a Model cannot represent (actuators, sensors, tendons, ...) are listed
    in `model.warnings`, and in one ModelWarning.

    Args:
        source: Path, XML as str or bytes, or open file.
        root_joint: None: as in the file. fixed: free joints are fixed where the file
            places their bodies. floating: the only body that is fixed to the world
            moves freely; a file with a free joint stays as it is.
        lock: Joint positions at which joints are fixed, by name [rad | m].
        root, tip: First and last link of a sub-chain; without tip the tree below root.
        extras: Sidecar with data that MJCF cannot express: path, YAML text or mapping,
            or "quadruped_stand".
        sidecar: Whether NAME.dyn.yaml beside the path is read, if there are no extras.
        check: warn: doubtful elements are warnings. error: they are a ModelError.
        gravity: Gravity acceleration in the world, 3 [m/s²]; None: as in the file.

    Raises:
        ModelError: The file or an argument is not valid; includes MuJoCo's reason.
        UnsupportedError: mujoco is not installed, or too old; names the extra.
        SettingError: Unknown keyword.
    """
    file = os.fspath(source) if is_path(source) else None
    origin = Origin("mjcf", None if file is None else os.path.abspath(file))
    choices = Choices(root_joint, lock, root, tip, extras, sidecar, check, gravity)
    return read_mjcf(source, origin, choices)


def read_mjcf(source: Source, origin: Origin, choices: Choices) -> Model:
    """Return the Model of an MJCF; issue one ModelWarning if it has more than hints.

    A file of a collection (see `origin`) is trusted: MuJoCo compiles it in this
    process.
    """
    root_joint = choices.root_joint
    if root_joint is not None and root_joint not in ROOT_JOINTS:
        raise ModelError(f"root_joint '{root_joint}': valid are None, fixed, floating")
    mjcf = compile_mjcf(source, trusted=bool(origin.collection))
    findings = Findings(choices.strict)
    builder = described(mjcf, root_joint, findings)
    g = choices.gravity
    g = _gravity(mjcf, findings) if g is None else g
    description = builder.description()
    return complete_model(description, origin, mjcf.path, choices, "fixed", g)


def described(
    mjcf: Compiled, root_joint: str | None, findings: Findings
) -> DescriptionBuilder:
    """Return a builder of an MJCF without its gravity; root_joint as in how_joined."""
    builder = DescriptionBuilder(mjcf.name, findings)
    add_shapes(mjcf, builder, findings)
    drives = read_drives(mjcf, findings)
    equalities = read_equalities(mjcf, findings)
    kinds = how_joined(mjcf, root_joint)
    add_links(mjcf, builder, drives, kinds, equalities.places)
    equalities.add_to(builder)
    add_materials(mjcf, builder, findings)
    builder.pairs = read_pairs(mjcf, builder.shapes, kinds, findings)
    note_what_is_left_out(mjcf, equalities.tendons, findings)
    return builder


def _gravity(mjcf: Compiled, findings: Findings) -> tuple[float, ...]:
    """Return gravity [m/s²], zero if a flag disables it; an unusual one is a note."""
    option = mjcf.model.opt
    g = tuple(option.gravity.tolist())
    if option.disableflags & int(mjcf.mujoco.mjtDisableBit.mjDSBL_GRAVITY):
        g = (0.0, 0.0, 0.0)
    if g != GRAVITY:
        findings.note("", "", f"gravity is {g} m/s², as <option> has it")
    return g
