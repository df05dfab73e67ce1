"""Collision detection: pairs of shapes, contact points, normals and gaps."""
