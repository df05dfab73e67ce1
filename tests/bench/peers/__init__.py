"""Peers: what others offer for the same problems, called as their manuals advise."""

from __future__ import annotations

from importlib import metadata

from bench.peers.dynibo import Dynibo
from bench.peers.generated import CasADi, PinocchioCode
from bench.peers.mujoco_peer import MuJoCo
from bench.peers.peer import Peer, PeerCall
from bench.peers.pinocchio_peer import Pinocchio
from dyn_core.errors import UnsupportedError

__all__ = ["PEERS", "Peer", "PeerCall", "find", "missing"]

PEERS: dict[str, type[Peer]] = {
    "pinocchio": Pinocchio, "pin-casadi": PinocchioCode, "mujoco": MuJoCo,
    "dynibo": Dynibo, "casadi": CasADi,
}  # fmt: skip


def find(names: str) -> list[type[Peer]]:
    """Return peers by their names, separated by commas.

    Raises:
        UnsupportedError: A name is unknown.
    """
    chosen = list(filter(None, names.split(",")))
    for name in chosen:
        if name not in PEERS:
            raise UnsupportedError(f"no peer '{name}'; known: {', '.join(PEERS)}")
    return [PEERS[name] for name in chosen]


def missing(peer: type[Peer]) -> str:
    """Return which package of a peer is not installed, in words; or nothing."""
    for name in peer.packages:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            return f"{name} is not installed"
    return ""
