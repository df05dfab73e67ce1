"""Predictive and linear optimal control."""

from dyn_core.prediction.linear import Estimator, Linear, Regulator, kalman, lqr

__all__ = ["Estimator", "Linear", "Regulator", "kalman", "lqr"]
