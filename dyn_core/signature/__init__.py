"""Kinds of problem: named inputs and outputs with size and unit. Data, not classes."""

from dyn_core.signature import contact, planar, robots
from dyn_core.signature.contact import *  # noqa: F403
from dyn_core.signature.planar import *  # noqa: F403
from dyn_core.signature.ports import KINDS, Port, Signature
from dyn_core.signature.robots import *  # noqa: F403

SIGNATURES: tuple[Signature, ...] = tuple(
    kind
    for module in (robots, planar, contact)
    for kind in vars(module).values()
    if isinstance(kind, Signature)
)
