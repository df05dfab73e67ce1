"""From the description of a robot to the tree that algorithms see."""
