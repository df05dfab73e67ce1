"""The function load_mjcf, which reads a Model from an MJCF file."""

from __future__ import annotations

import os
from collections.abc import Mapping

from numpy.typing import ArrayLike

from dyn_core.errors import ModelError
from dyn_core.model.checks.findings import Findings
from dyn_core.model.description_builder import DescriptionBuilder
from dyn_core.model.mjcf.bodies import ROOT_JOINTS, add_links, how_joined
from dyn_core.model.mjcf.compiled import Compiled, compile_mjcf, is_path
from dyn_core.model.mjcf.contacts import read_pairs
from dyn_core.model.mjcf.drives import read_drives
from dyn_core.model.mjcf.equalities import read_equalities
from dyn_core.model.mjcf.geoms import add_materials, add_shapes
from dyn_core.model.mjcf.left_out import note_what_is_left_out
from dyn_core.model.model import Model
from dyn_core.model.reading import GRAVITY, Choices, complete_model
from dyn_core.model.sidecar import Extras
from dyn_core.model.sources.origin import Origin
from dyn_core.model.urdf_xml.source import Source
from dyn_core.validation import known_keywords


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
    its twist in the body's axes, [angular; linear]; a ball joint is spherical. Joints
    that a constant or linear equality fixes or couples have no coordinates.

    Elements that a Model cannot represent (actuators, sensors, tendons, ...) are listed
    in `model.warnings`, and in one ModelWarning.

    Args:
        source: Path, XML as str or bytes, or open file.
        root_joint: None: as in the file. fixed: free joints are fixed where the file
            places their bodies. floating: the only body that is fixed to the world
            moves freely.
        lock: Joint positions at which joints are fixed, by name [rad | m].
        root, tip: First and last link of a sub-chain; without tip the tree below root.
        extras: Path or mapping of a sidecar, with data that MJCF cannot express.
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
    """Return the Model of an MJCF.

    Args:
        source: Path, XML or open file.
        origin: Record of the source; files of a collection are trusted.
        choices: Choices of the caller.

    Raises:
        ModelError, UnsupportedError: As load_mjcf.
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
    """Return the content of an MJCF; warnings go to `findings`.

    Raises ModelError for an invalid root_joint, and for doubts where findings are
    strict.
    """
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
    """Return the gravity of the file [m/s²]; a finding if it is not (0, 0, -9.81)."""
    option = mjcf.model.opt
    g = tuple(option.gravity.tolist())
    if option.disableflags & int(mjcf.mujoco.mjtDisableBit.mjDSBL_GRAVITY):
        g = (0.0, 0.0, 0.0)
    if g != GRAVITY:
        findings.note("", "", f"gravity is {g} m/s², as <option> has it")
    return g
