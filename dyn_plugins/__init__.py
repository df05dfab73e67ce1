"""The solvers that ship with dyn_ros: one file each."""
