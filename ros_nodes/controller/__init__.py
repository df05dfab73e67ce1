"""Parts of the node `computed_torque`."""
