"""The XML of a URDF: safe parsing, and reduction to the elements known to the parser."""
