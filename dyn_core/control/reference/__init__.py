"""Reference of a controller: trajectories, goals, and the motion that follows them."""
