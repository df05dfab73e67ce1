"""Components of the node `computed_torque`."""
