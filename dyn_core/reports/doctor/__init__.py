"""`dyn doctor`: everything doubtful about a robot, ranked, with what to do about it."""
