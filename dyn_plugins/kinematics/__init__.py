"""Kinematics of frames and bodies, energy, momentum, and regressors."""
