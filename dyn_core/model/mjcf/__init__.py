"""Reader of MJCF, MuJoCo's robot files, as a Description like the one of a URDF.

MuJoCo itself reads and compiles the file: it resolves defaults, angles, Euler
sequences, inertias of geoms and included files. All numbers are taken from the compiled
model.
"""

from dyn_core.model.mjcf.load import load_mjcf

__all__ = ["load_mjcf"]
