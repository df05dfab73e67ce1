"""Input sources and result targets of a batch."""
