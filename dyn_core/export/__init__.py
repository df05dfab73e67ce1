"""Programs outside Python: machine code and C source for any target."""
