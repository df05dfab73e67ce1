"""Diagnosis of a robot, `dyn doctor`: ranked findings with remedies."""
