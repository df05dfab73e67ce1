"""Programs outside Python: machine code and C source with a header, for any target."""
