"""From the Description of a robot's file to its Model: what all readers do last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from numpy.typing import ArrayLike

from dyn_core.model import sidecar as sidecar_file
from dyn_core.model.assembly.build import Build
from dyn_core.model.checks.description import check_choices, check_gravity
from dyn_core.model.checks.findings import warn_of
from dyn_core.model.description import Description
from dyn_core.model.garbage import seldom_collected
from dyn_core.model.model import Model, assemble
from dyn_core.model.sources.origin import Origin

GRAVITY = (0.0, 0.0, -9.81)  # of files that do not say [m/s²]


@dataclass(frozen=True)
class Choices:
    """The caller's arguments, as in load_urdf and load_mjcf.

    None means the file's own, or none. `lock` has the positions at which joints are
    fixed, by name [rad | m]; `root` and `tip` are first and last link of a sub-chain;
    `gravity` is in the root frame, 3 [m/s²]. Only check (warn or error), lock and
    gravity are checked here.
    """

    root_joint: str | None
    lock: Mapping[str, ArrayLike] | None
    root: str | None
    tip: str | None
    extras: sidecar_file.Extras | None
    sidecar: bool
    check: str
    gravity: tuple[float, ...] | None

    def __post_init__(self) -> None:
        check_choices(self.check, self.lock)
        if self.gravity is not None:
            object.__setattr__(self, "gravity", check_gravity(self.gravity))

    @property
    def strict(self) -> bool:
        """Whether doubtful elements raise a ModelError (check is "error")."""
        return self.check == "error"


def complete_model(
    description: Description,
    origin: Origin,
    path: Path | None,
    choices: Choices,
    root_joint: str,
    gravity: tuple[float, ...],
) -> Model:
    """Return the Model of a file's description, completed by its sidecar.

    The sidecar is NAME.dyn.yaml beside `path`. root_joint (fixed or floating) and
    gravity (3 [m/s²], in the root frame) are read instead of those of `choices`. Issues
    one ModelWarning with the first 3 of the Model's warnings, if some are more than
    hints.
    """
    beside = None if path is None else path.with_name(_stem(path) + ".dyn.yaml")
    description, origin = sidecar_file.complete(
        description, origin, path, beside, choices.extras, choices.sidecar
    )
    build = Build(
        description,
        choices.root,
        choices.tip,
        root_joint,
        dict(choices.lock or {}),
        gravity,
        choices.strict,
        origin=origin,
    )
    with seldom_collected():
        model = assemble(build)
    warn_of(model.name, model.warnings)
    return model


def _stem(path: Path) -> str:
    """Return a file's name without its suffix, .urdf.xacro or .xml.xacro as a whole."""
    inner = Path(path.stem)
    whole = path.suffix == ".xacro" and inner.suffix in (".urdf", ".xml")
    return inner.stem if whole else path.stem
