"""The reference of a controller: trajectories, goals, how they are followed."""
