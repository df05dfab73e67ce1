"""Frames, motion of bodies, energy, momentum, regressors."""
