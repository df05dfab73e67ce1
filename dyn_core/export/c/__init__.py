"""Programs as C source, the header of an export, and its check program."""
