"""Time steps of robots, and their derivatives."""
