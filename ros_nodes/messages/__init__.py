"""Conversion of ROS messages to arrays and settings, mostly without importing ROS."""
