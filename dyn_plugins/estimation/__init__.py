"""Estimation of unmeasured external forces and payloads."""
