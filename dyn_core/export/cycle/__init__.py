"""The cycle of a controller as one exported function."""
