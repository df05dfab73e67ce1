"""The default solver of a problem, chosen for each robot when it is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyn_core.engines import Program
from dyn_core.errors import UnsupportedError, unknown_name
from dyn_core.problems import Port, Signature
from dyn_core.solving.solver import AUTO, Lookup, Solver


class DefaultSolver(Solver):
    """The default solver of a problem: for robots with loops, the one that closes them.

    Plugins mark a solver as a default with `default=True`. A problem has at most two:
    one that closes loops and one that does not. Without one of them the other is chosen
    for all robots; one for trees may refuse robots with loops. `lookup(name,
    signature)` is the function of the registry that returned it.
    """

    def __init__(
        self, signature: Signature, defaults: Sequence[Solver], lookup: Lookup
    ) -> None:
        self.name, self.signature, self.lookup = signature.name, signature, lookup
        by_loops = {each.closes_loops: each for each in defaults}
        self.of_trees = by_loops.get(False, defaults[0])
        self.of_loops = by_loops.get(True, self.of_trees)
        self.origin = self.of_trees.origin

    def for_model(self, model: Any) -> Solver:
        """Return the solver for a System, with the options that with_options set."""
        loops = getattr(model, "kind", None) == "robot" and bool(model.loops)
        chosen = self.of_loops if loops else self.of_trees
        options = self.changed_options
        return chosen.with_options(**options) if options else chosen

    def build(self, model: Any, *more: Any, **options: Any) -> Program[Any]:
        """Return the Program of the chosen solver; `more` must be empty."""
        return self.for_model(model).build(model, *more, **options)

    def with_options(self, **options: Any) -> Solver:
        """Return a copy with other defaults of options of the chosen solver.

        One of the two solvers must have each option. For a robot whose solver does not,
        `for_model` and `build` of the copy raise UnsupportedError.
        """
        both = {each.name: each for each in (self.of_trees, self.of_loops)}.values()
        for key, value in options.items():
            owners = [each for each in both if key in getattr(each, "options", {})]
            for each in owners:
                each.with_options(**{key: value})
            if not owners:
                known = {name for each in both for name in getattr(each, "options", {})}
                message = unknown_name("option", key, sorted(known))
                raise UnsupportedError(f"{self}: {message}")
        changed = object.__new__(type(self))
        merged = {**self.changed_options, **options}
        changed.__dict__.update(self.__dict__, changed_options=merged)
        return changed

    def refusal(self, model: Any) -> str | None:
        """Return why the chosen solver does not support this robot, or None."""
        return self.for_model(model).refusal(model)

    def describe(
        self,
        inputs: Sequence[Port] | None = None,
        outputs: Sequence[Port] | None = None,
    ) -> str:
        """Return the default solvers' names and a help page, preferably for trees."""
        return f"{self}\n\n{self.of_trees.describe(inputs, outputs)}"

    def names(self) -> str:
        """Return the names as text, such as "aba, for robots with loops aba_loops"."""
        if self.of_loops is self.of_trees:
            return self.of_trees.name
        return f"{self.of_trees.name}, for robots with loops {self.of_loops.name}"

    def __str__(self) -> str:
        """Return the text "default solver of PROBLEM: NAMES"."""
        return f"default solver of {self.signature.name}: {self.names()}"

    def __reduce__(self) -> tuple[Any, ...]:
        parts = self.lookup, self.signature.name, dict(self.changed_options)
        return _look_up, parts

    def __repr__(self) -> str:
        return f"<{self}>"


def _look_up(lookup: Lookup, problem: str, options: dict[str, Any]) -> Solver:
    """Return the default solver of a problem, with changed options if there are any.

    Used by pickle.
    """
    chosen = lookup(AUTO, problem)
    return chosen.with_options(**options) if options else chosen
