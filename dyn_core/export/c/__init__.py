"""Programs as C source, and the header of an export."""
