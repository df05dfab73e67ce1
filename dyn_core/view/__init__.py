"""View: robots, runs and planar systems in a browser, in a notebook, as a film.

The viewer needs the extra `view`: pip install 'dyn_ros[view]'. Nothing else in the
library imports this package.

    from dyn_core.view import show

    show(dyn.load("arm7"))  # in a notebook; show(model).save("arm.html") for a file
"""

from dyn_core.view.show import show

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

__all__ = ["show"]
