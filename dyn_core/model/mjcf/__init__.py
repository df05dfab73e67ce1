"""Reading MJCF, the robot files of MuJoCo, into the Description that a URDF becomes.

MuJoCo itself reads and compiles the file: defaults, angles, Euler sequences, inertias
of geoms and included files are its own. The numbers are those of the compiled model.
"""

from dyn_core.model.mjcf.load import load_mjcf

__all__ = ["load_mjcf"]
