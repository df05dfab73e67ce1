"""Loop constraints, which close a kinematic tree."""
