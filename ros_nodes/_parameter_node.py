"""A node whose parameters come from tables: declared, read, misspelt ones refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rclpy.lifecycle import LifecycleNode
from rclpy.parameter import Parameter

import dyn_core as dyn
from dyn_core.validation import Field, kind_like
from ros_nodes._descriptors import descriptor, ros_type
from ros_nodes.controller_parameters import CONTROLLER
from ros_nodes.parameters import OPTION, foreign_names
from ros_nodes.simulator_parameters import SIMULATOR


class ParameterNode(LifecycleNode):
    """A lifecycle node with declared parameters.

    Attributes:
        specs: Declared parameters by name.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self.specs: dict[str, Field] = {}
        self._warned = False

    def declare(self, specs: Sequence[Field]) -> None:
        """Declare parameters; those already declared keep their values."""
        for spec in specs:
            self.specs[spec.name] = spec
            if self.has_parameter(spec.name):
                continue
            default = ros_type(spec) if spec.default == [] else spec.default
            self.declare_parameter(spec.name, default, descriptor(spec))

    def value(self, name: str) -> Any:
        """Return a parameter's value; an unset list is empty, arrays are lists."""
        parameter = self.get_parameter_or(name)
        if parameter.type_ == Parameter.Type.NOT_SET:
            return list(self.specs[name].default)
        value = parameter.value
        return list(value) if is_array(value) else value

    def options(self, slot: str) -> dict[str, Any]:
        """Return the options of a slot's solver that the parameters give."""
        head = f"{slot}.options."
        names = [name for name in self.specs if name.startswith(head)]
        return {name.removeprefix(head): self.value(name) for name in names}

    def solver(self, slot: str) -> Any:
        """Return the solver of a slot: its name, or with options the Solver.

        Raises:
            DynError: The solver is unknown, or an option is not valid.
        """
        name, options = self.value(f"{slot}.plugin_name"), self.options(slot)
        return dyn.solver(name).with_options(**options) if options else name

    def _undeclared(self) -> list[str]:
        """Return the names of parameters that are given and not declared."""
        names = self._parameter_overrides
        return [name for name in names if not self.has_parameter(name)]

    def _declare_options(self) -> None:
        """Declare the options of solvers that are given, by the type they have."""
        for name in self._undeclared():
            if OPTION.fullmatch(name):
                value = self._parameter_overrides[name].value
                value = list(value) if is_array(value) else value
                doc = "option of the slot's solver; `dyn help SOLVER` lists them"
                self.declare([Field(name, kind_like(value), doc, "", value)])

    def _check_names(self) -> None:
        """Refuse misspelt parameters; warn once of those of other nodes."""
        every = {field.name for field in (*SIMULATOR, *CONTROLLER)}
        foreign = foreign_names(self._undeclared(), self.specs, every)
        if foreign and not self._warned:
            self._warned = True
            self.get_logger().warning(
                f"parameters that this node does not have: {', '.join(foreign)}"
            )


def is_array(value: Any) -> bool:
    """Whether it is an array of numbers, as rclpy returns them."""
    return hasattr(value, "typecode")
