"""Commands for running nodes and for recordings, without an installation of ROS."""
