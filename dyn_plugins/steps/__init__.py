"""Steps in time."""
