"""What `dyn bench --planar` and `--envs` measure, and the peers beside it."""
