"""Sources of robots: files, names, packages, xacro, installed collections."""
