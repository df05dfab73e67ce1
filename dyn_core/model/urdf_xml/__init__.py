"""The XML of a URDF: read safely, and made into what the parser knows."""
