"""Messages of ROS as arrays and settings, mostly without importing ROS."""
