"""Where robots come from: files, names, packages, xacro, installed collections."""
