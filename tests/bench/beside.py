"""A peer beside a solver: values first, then time; and what its table does not show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.measure import ROWS, Beside, Figures
from bench.peers import Peer
from bench.peers.peer_values import AGREE, difference
from dyn_core.commands.timing import per_call


def measure_beside(peer: Peer, figures: Figures) -> Beside:
    """Compare a peer's values with ours, then measure its call and batch."""
    name = figures.algorithm.partition(":")[0]
    lack = peer.lack(name)
    if lack:
        return Beside(reason=lack)
    try:
        error = difference(peer, name, figures.values)
        call, rate = peer.calls[name], None
        seconds = per_call(call.statement, call.states, call.names, peer.space)
        if name in peer.batches:
            batch = peer.batches[name]
            once = per_call(batch.statement, batch.states, batch.names, peer.space)
            rate = ROWS / once
    except Exception as trouble:  # a peer's own trouble ends no measurement
        return Beside(reason=f"fails: {trouble}")
    said = [peer.remarks[name]] if name in peer.remarks else []
    if error > AGREE:
        known = peer.because.get(name)
        said.append(f"differs by {error:.0e}" + (f" ({known})" if known else ""))
    return Beside(seconds, rate, "; ".join(said))


def notes(rows: Sequence[Figures], peers: Sequence[str]) -> Iterator[str]:
    """Return lines on cells without a figure, that differ, and where a peer is faster.

    Args:
        rows: Of one robot.
        peers: Names, in the table's order.
    """
    slower = []
    for peer in peers:
        reasons: dict[str, list[str]] = {}
        for row in rows:
            cell = row.peers[peer]
            if cell.reason:
                reasons.setdefault(cell.reason, []).append(row.algorithm)
            for what, ratio in zip(
                ("call", "batch"), cell.ratios(row) or (), strict=False
            ):
                if ratio < 1:
                    slower.append(f"{row.algorithm}, {what} ({peer}, {ratio:.2f}x)")
        for reason, names in reasons.items():
            named = "all" if len(names) == len(rows) else ", ".join(names)
            yield f"{peer}: {named}: {reason}."
    if peers:
        yield f"Slower here: {'; '.join(slower) or 'none'}."
