"""A node whose parameters come from tables: declared, read, misspelt ones refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

import yaml
from rcl_interfaces.msg import SetParametersResult
from rclpy.exceptions import (
    InvalidParameterTypeException,
    ParameterNotDeclaredException,
)
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_parameters

import dyn_core as dyn
from dyn_core.errors import one_line, unknown_name
from dyn_core.validation import Field, ListOf, Quantity, kind_like, shown
from ros_nodes.base.descriptors import descriptor, ros_type
from ros_nodes.parameter_tables.parameter_files import NODES
from ros_nodes.parameters import OPTION, foreign_names
from ros_nodes.running.callbacks import Callbacks

NOT_SET = Parameter.Type.NOT_SET
# As deep as the queues of parameter services: a burst of requests must not be lost.
SERVICES = qos_profile_parameters
EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")  # text in YAML 1.1


class LiveSettings(Protocol):
    """A part of a configured node with live parameters of its own."""

    def check(self, values: dict[str, Any]) -> object:
        """Raise a DynError for parameters that cannot be applied."""

    def change(self, values: dict[str, Any]) -> object:
        """Apply parameters that were accepted."""


class TableNode(Node):
    """A node whose parameters come from tables.

    Attributes:
        specs: Declared parameters by name.
        live: Parts with live parameters, by name; each configure sets them anew.
        model: The robot in use; None in state unconfigured.
        callbacks: Calls what the executor calls, and the hooks in it.
    """

    def __init__(self, name: str, specs: Sequence[Field], **kwargs: Any) -> None:
        self.callbacks = Callbacks(self.get_logger)
        super().__init__(name, **kwargs)
        self.specs: dict[str, Field] = {}
        self.model: Any = None  # a Model once configured
        self.live: dict[str, LiveSettings] = {}
        self._warned = False
        # Added before the first declaration, so that start-up values are checked, too.
        if hasattr(self, "add_pre_set_parameters_callback"):  # since Iron
            self.add_pre_set_parameters_callback(self._declared)
        self.add_on_set_parameters_callback(self._on_set)
        self._has_post_set = hasattr(self, "add_post_set_parameters_callback")
        if self._has_post_set:  # since Iron
            self.add_post_set_parameters_callback(self._after_set)
        try:
            self.declare(specs)
            self._declare_options()
        except Exception:
            super().destroy_node()  # not left to the garbage collector
            raise

    @property
    def configured(self) -> bool:
        """Whether a lifecycle node is configured; others never are."""
        return False

    def create_service(
        self, srv_type: Any, srv_name: str, callback: Any, **more: Any
    ) -> Any:
        """Create a service that answers every request, whatever its callback raises."""
        more.setdefault("qos_profile", SERVICES)
        serve = self.callbacks.service(callback)
        return super().create_service(srv_type, srv_name, serve, **more)

    def autostart(self) -> bool:
        """Start what is to be started with the process; return False if that failed."""
        return True

    def declare(self, specs: Sequence[Field]) -> None:
        """Declare parameters; those already declared keep their values."""
        for spec in specs:
            self.specs[spec.name] = spec
            if self.has_parameter(spec.name):
                continue
            unset = spec.default == []
            default = ros_type(spec) if unset else spec.default
            try:
                self.declare_parameter(spec.name, default, descriptor(spec))
            except InvalidParameterTypeException as error:
                raise _wrong_type(spec, self._parameter_overrides) from error
            if unset and self.get_parameter_or(spec.name).type_ == NOT_SET:
                # A list without a value would hide every parameter from
                # `ros2 param dump`.
                self.set_parameters([Parameter(spec.name, ros_type(spec), [])])

    def _declared(self, parameters: Sequence[Parameter]) -> list[Parameter]:
        """Return parameters to set; what YAML misreads has the declared type.

        The tools read `[]` as booleans and 1e-06 as text; `ros2 param dump` has both.

        Raises:
            ParameterNotDeclaredException: One is unknown; rclpy would leave out which.
        """
        for name in (p.name for p in parameters if not self.has_parameter(p.name)):
            raise ParameterNotDeclaredException(
                unknown_name("parameter", name, self._parameters)
            )
        return [self._retyped(p) for p in parameters]

    def _retyped(self, parameter: Parameter) -> Parameter:
        """Return a parameter with the declared type, if its value is such a one."""
        spec, value = self.specs.get(parameter.name), plain(parameter.value)
        if spec is None:
            return parameter
        kind = spec.value_kind
        if value == [] and isinstance(kind, ListOf):
            return Parameter(spec.name, ros_type(spec), [])
        listed = isinstance(kind, ListOf) and isinstance(kind.kind, Quantity)
        number = written_numbers(value) if listed else written_number(value)
        if number is None or not (listed or isinstance(kind, Quantity)):
            return parameter
        return Parameter(spec.name, ros_type(spec), number)

    def _on_set(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        """Accept a set of parameters, or refuse it with a reason."""
        for parameter in parameters:
            spec = self.specs.get(parameter.name)
            if spec is None or parameter.type_ == NOT_SET:
                continue
            value = plain(parameter.value)
            if spec.structure and self.configured and self._differs(spec, value):
                reason = (
                    f"{spec.name} is structure: clean up first, then set and configure"
                )
                return SetParametersResult(successful=False, reason=reason)
            try:
                spec.read(spec.name, value)
            except dyn.ModelError as error:
                return SetParametersResult(successful=False, reason=str(error))
        values = {p.name: p.value for p in parameters}
        try:
            self.check_change(values)
            for part in self._live_parts():
                part.check(values)
        except dyn.DynError as error:
            return SetParametersResult(successful=False, reason=str(error))
        except Exception as error:  # whatever a part raises: refused
            reason = self.callbacks.failed("a check of parameters", error)
            return SetParametersResult(successful=False, reason=reason)
        if not self._has_post_set:
            self._apply(values)
        return SetParametersResult(successful=True)

    def _differs(self, spec: Field, value: Any) -> bool:
        """Whether a value is another than that of a declared parameter."""
        if not self.has_parameter(spec.name):
            return False
        return repr(self.value(spec.name)) != repr(value)  # NaN is NaN

    def _after_set(self, parameters: Sequence[Parameter]) -> None:
        """Apply a set of parameters that nobody has refused."""
        self._apply({p.name: p.value for p in parameters})

    def _apply(self, values: dict[str, Any]) -> None:
        self.callbacks.attempt(self.changed, values)
        for part in self._live_parts():
            self.callbacks.attempt(part.change, values)

    def _live_parts(self) -> list[LiveSettings]:
        """Return the parts of a configured node that have live parameters."""
        return list(self.live.values()) if self.configured else []

    def check_change(self, values: dict[str, Any]) -> None:
        """Raise a DynError for live parameters that cannot be applied."""

    def changed(self, values: dict[str, Any]) -> None:
        """Apply live parameters that were accepted."""

    def value(self, name: str) -> Any:
        """Return a parameter's value; an unset list is empty, arrays are lists."""
        parameter = self.get_parameter_or(name)
        if parameter.type_ == NOT_SET:
            return list(self.specs[name].default)
        return plain(parameter.value)

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
                value = plain(self._parameter_overrides[name].value)
                doc = "option of the slot's solver; `dyn help SOLVER` lists them"
                self.declare([Field(name, kind_like(value), doc, "", value)])

    def _check_names(self) -> None:
        """Refuse misspelt parameters; warn once of those of other nodes."""
        every = {name for fields in NODES.values() for name in fields}
        foreign = foreign_names(self._undeclared(), self.specs, every)
        if foreign and not self._warned:
            self._warned = True
            listed = ", ".join(foreign)
            self.get_logger().warning(
                one_line(f"parameters that this node does not have: {listed}")
            )


class ParameterNode(TableNode, LifecycleNode):
    """A lifecycle node with declared parameters."""


def plain(value: Any) -> Any:
    """Return a value; an array of numbers, as rclpy returns them, as a list."""
    return list(value) if hasattr(value, "typecode") else value


def written_number(value: Any) -> float | None:
    """Return a float, or a text such as 1e-06 as one; None for any other value."""
    if isinstance(value, str) and EXPONENT.fullmatch(value):
        return float(value)
    return value if isinstance(value, float) else None


def written_numbers(value: Any) -> list[float] | None:
    """Return a list of floats, or of texts of them; None for any other value."""
    if isinstance(value, str) and value.startswith("["):  # of texts and floats
        try:
            value = yaml.safe_load(value)
        except yaml.YAMLError:
            return None
    rows = [written_number(x) for x in value] if isinstance(value, list) else [None]
    numbers = [x for x in rows if x is not None]
    return numbers if len(numbers) == len(rows) else None


def _wrong_type(spec: Field, overrides: Any) -> dyn.SettingError:
    """Return the error of a value of another type, with what to write."""
    value = overrides[spec.name].value
    valid = spec.value_kind.valid
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and isinstance(spec.value_kind, Quantity):
        valid = f"write {value}.0"
    return dyn.SettingError(f"{spec.name} is {shown(value)}; valid: {valid}", spec.name)
