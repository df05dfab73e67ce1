"""The XML of a URDF: safe parsing, and reduction to elements known to the parser."""
