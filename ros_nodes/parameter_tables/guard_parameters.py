"""Parameters of the node `guard`."""

from __future__ import annotations

from dyn_core.validation import Field, Quantity

GUARD_FIELDS = (
    Field("effort_timeout", Quantity(1e-3, 10.0),
        "silence of the controller after which zero effort is sent, if its last effort"
        " was not zero; longer than its state_timeout and 15 ms",
        "s", 0.2, structure=False),
    Field("diagnostic_updater.period", Quantity(0.05, 60.0),
        "period of /diagnostics", "s", 1.0),
)  # fmt: skip
