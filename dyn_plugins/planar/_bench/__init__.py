"""What `dyn bench-planar` measures, and the peers beside it."""
