"""Assembly of the tree that algorithms use, from the description of a robot."""
