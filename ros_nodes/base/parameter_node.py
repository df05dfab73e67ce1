"""A node that declares and checks its parameters from tables of Fields.

ROS parameter types and descriptors are derived from the same Fields. Topics go on under
the names that they had in the last minor version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, Protocol

import yaml
from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.exceptions import (
    InvalidParameterTypeException,
    InvalidParameterValueException,
    ParameterNotDeclaredException,
)
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_parameters

import dyn_core as dyn
from dyn_core.errors import one_line, renamed, unknown_name
from dyn_core.validation import (
    Field,
    ListOf,
    Name,
    Quantity,
    Switch,
    Whole,
    kind_like,
    shown,
    with_present_names,
)
from ros_nodes.parameter_tables.parameter_files import NODES, node_fields
from ros_nodes.parameters import (
    OPTION,
    check_solver,
    check_value,
    foreign_names,
    near_names,
    unusual_time,
)
from ros_nodes.running.callbacks import Callbacks

STRUCTURE = "structure: writable in state unconfigured only"
_TYPES = {
    Quantity: Parameter.Type.DOUBLE,
    Whole: Parameter.Type.INTEGER,
    Switch: Parameter.Type.BOOL,
    Name: Parameter.Type.STRING,
}
_LISTS = {
    Quantity: Parameter.Type.DOUBLE_ARRAY,
    Whole: Parameter.Type.INTEGER_ARRAY,
    Switch: Parameter.Type.BOOL_ARRAY,
    Name: Parameter.Type.STRING_ARRAY,
}
NOT_SET = Parameter.Type.NOT_SET
# As deep as the queues of parameter services: a burst of requests must not be lost.
SERVICES = qos_profile_parameters
# YAML 1.1 reads 1e-06 as text.
EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")
FORMER: dict[str, str] = {}  # present name of a topic, as in the code -> former name


def ros_type(field: Field) -> Parameter.Type:
    """Return the ROS parameter type of a Field, an array type for a ListOf."""
    kind = field.value_kind
    if isinstance(kind, ListOf):
        return _LISTS[type(kind.kind)]
    return _TYPES[type(kind)]


def descriptor(field: Field) -> ParameterDescriptor:
    """Return the ROS descriptor of a parameter: type, limits, meaning and unit."""
    kind: Any = field.value_kind
    unit = f" [{field.unit}]" if field.unit else ""
    structure = f" ({STRUCTURE})" if field.structure else ""
    described = ParameterDescriptor(
        name=field.name,
        type=ros_type(field).value,
        description=field.doc + unit + structure,
    )
    if isinstance(kind, Name) and kind.known:
        described.additional_constraints = f"one of {kind.valid}"
    elif isinstance(kind, Whole):
        if kind.high is not None:
            described.integer_range = [
                IntegerRange(from_value=kind.low, to_value=kind.high, step=1)
            ]
        else:
            described.additional_constraints = kind.valid
    elif isinstance(kind, Quantity) and isfinite(kind.high) and isfinite(kind.low):
        described.floating_point_range = [
            FloatingPointRange(from_value=kind.low, to_value=kind.high, step=0.0)
        ]
    elif isinstance(kind, (ListOf, Quantity)):
        described.additional_constraints = kind.valid
    return described


class LiveSettings(Protocol):
    """A component of a configured node that has live parameters."""

    def check(self, values: dict[str, Any]) -> object:
        """Raise a DynError if changed parameters cannot be applied; change nothing."""

    def change(self, values: dict[str, Any]) -> object:
        """Apply parameters that have passed `check`; an exception is only logged."""


class FormerTopics(Node):
    """A node whose renamed topics can also be used by their former names.

    It receives and publishes on both names; the first message on a former name, or the
    first subscriber to it, causes a warning that says the present name.
    """

    def create_subscription(
        self,
        msg_type: Any,
        topic: str,
        callback: Callable[[Any], None],
        qos_profile: Any,
        **choices: Any,
    ) -> Any:
        """Return a subscription; its callback gets messages of the former name, too."""
        create = super().create_subscription
        made = create(msg_type, topic, callback, qos_profile, **choices)
        if topic in FORMER:
            warn = self._warning(topic)

            def received(message: Any) -> None:
                warn()
                made.callback(message)  # it may have been guarded since

            choices.pop("qos_overriding_options", None)  # parameters have present names
            quality = made.qos_profile
            other = create(msg_type, FORMER[topic], received, quality, **choices)
            self._others[made] = other, super().destroy_subscription
        return made

    def create_publisher(
        self, msg_type: Any, topic: str, qos_profile: Any, **choices: Any
    ) -> Any:
        """Return a publisher; its `publish` also publishes under the former name."""
        create = super().create_publisher
        made: Any = create(msg_type, topic, qos_profile, **choices)
        if topic in FORMER:
            warn = self._warning(topic)
            choices.pop("qos_overriding_options", None)
            other = create(msg_type, FORMER[topic], made.qos_profile, **choices)
            publish = made.publish

            def publish_both(message: Any) -> None:
                publish(message)
                other.publish(message)
                if other.get_subscription_count():
                    warn()

            made.publish = publish_both
            self._others[made] = other, super().destroy_publisher
        return made

    @property
    def _others(self) -> dict[Any, tuple[Any, Callable[[Any], bool]]]:
        """Endpoint and destructor of the former name, by the endpoint of the present.

        A property, because rclpy creates endpoints in its own constructor.
        """
        others: dict[Any, Any] = self.__dict__.setdefault("_of_former_names", {})
        return others

    def destroy_subscription(self, subscription: Any) -> bool:
        """Destroy a subscription and its former name's; False if not of this node."""
        self._destroy_other(subscription)
        return bool(super().destroy_subscription(subscription))

    def destroy_publisher(self, publisher: Any) -> bool:
        """Destroy a publisher and its former name's; False if not of this node."""
        self._destroy_other(publisher)
        return bool(super().destroy_publisher(publisher))

    def _destroy_other(self, endpoint: Any) -> None:
        """Destroy the endpoint of the former name, if there is one."""
        if endpoint in self._others:
            other, destroy = self._others.pop(endpoint)
            destroy(other)

    def _warning(self, topic: str) -> Callable[[], None]:
        """Return a function that warns once that a topic has another name now."""
        said: list[str] = []

        def warn() -> None:
            if not said:
                said.append(renamed("topic", FORMER[topic], topic))
                self.get_logger().warning(said[0])

        return warn


class TableNode(FormerTopics):
    """A node whose parameters are declared from a table of Fields.

    Values are checked against the Fields whenever they are set; a parameter marked as
    structure can only change in state unconfigured.

    Attributes:
        specs: Declared parameters by name.
        live: Components with live parameters, by name; set anew by each configure.
        model: The robot in use; None in state unconfigured.
    """

    def __init__(self, name: str, specs: Sequence[Field], **kwargs: Any) -> None:
        self.callbacks = Callbacks(self.get_logger)
        super().__init__(name, **kwargs)
        self.specs: dict[str, Field] = {}
        self.model: Any = None  # a Model; None before configure
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
        """Whether the node is configured; False for a node without a life cycle."""
        return False

    def create_service(
        self, srv_type: Any, srv_name: str, callback: Any, **more: Any
    ) -> Any:
        """Return a new service that sends a response even if its callback raises.

        The response then, and for None, has success=False and the reason as message, as
        far as its type has these fields. By default the queue is as deep as those of
        parameter services.
        """
        more.setdefault("qos_profile", SERVICES)
        serve = self.callbacks.service(callback)
        return super().create_service(srv_type, srv_name, serve, **more)

    def autostart(self) -> bool:
        """Start the node with the process; return False if that fails; a hook."""
        return True

    def declare(self, specs: Sequence[Field]) -> None:
        """Declare and store `specs`; parameters declared before keep their values.

        A list whose default is empty is set to [] if no value was given at start-up. A
        start-up value under a former name is used for the present one, with a warning.
        """
        self._parameter_overrides = dict(
            with_present_names(
                self.get_name(),
                self._parameter_overrides,
                specs,
                "parameter",
                self.get_logger().warning,
            )
        )
        for spec in specs:
            self.specs[spec.name] = spec
            if self.has_parameter(spec.name):
                continue
            unset = spec.default == []
            default = ros_type(spec) if unset else spec.default
            try:
                self.declare_parameter(spec.name, default, descriptor(spec))
            except InvalidParameterTypeException as error:
                value = plain(self._parameter_overrides[spec.name].value)
                check_value(spec, spec.name, value)
                raise dyn.SettingError(
                    f"{spec.name} is {shown(value)}; valid: {spec.value_kind.valid}",
                    spec.name,
                ) from error
            except InvalidParameterValueException:
                # rclpy checks ranges first, and does not say the unit.
                spec.read(spec.name, plain(self._parameter_overrides[spec.name].value))
                raise
            if unset and self.get_parameter_or(spec.name).type_ == NOT_SET:
                # A list without a value would hide every parameter from
                # `ros2 param dump`.
                self.set_parameters([Parameter(spec.name, ros_type(spec), [])])

    def _declared(self, parameters: Sequence[Parameter]) -> list[Parameter]:
        """Return the parameters of a request, with declared types where YAML misreads.

        The ROS tools read `[]` as booleans and 1e-06 as text; `ros2 param dump` writes
        both. An unknown name is refused here: rclpy itself would not say which.
        """
        for name in (p.name for p in parameters if not self.has_parameter(p.name)):
            raise ParameterNotDeclaredException(
                unknown_name("parameter", name, self._parameters)
            )
        return [self._retyped(p) for p in parameters]

    def set_parameters_atomically(
        self, parameter_list: list[Parameter]
    ) -> SetParametersResult:
        """Set all parameters, or none; the services of parameters call it.

        Options of solvers that the node does not have yet are declared, if it is not
        configured. An unknown name raises ParameterNotDeclaredException.
        """
        new, result = [], SetParametersResult(successful=False)
        try:
            for x in parameter_list:
                known = self.has_parameter(x.name) or x.type_ == NOT_SET
                if known or not OPTION.fullmatch(x.name):
                    continue
                if self.configured:
                    reason = self._only_unconfigured(x.name)
                    return SetParametersResult(successful=False, reason=reason)
                self._declare_option(x.name, plain(x.value))
                new.append(x.name)
            result = super().set_parameters_atomically(parameter_list)
        except dyn.DynError as error:
            result.reason = str(error)
        finally:  # also where a name is unknown
            for name in new if not result.successful else ():
                self.undeclare_parameter(name)
        return result

    def _only_unconfigured(self, name: str) -> str:
        """Return how to change a parameter of structure in a configured node."""
        node = self.get_fully_qualified_name()
        return (
            f"{name} is structure: clean up first, by dyn lifecycle set {node}"
            f" deactivate cleanup, then set it, then dyn lifecycle set {node} configure"
            " activate"
        )

    def _retyped(self, parameter: Parameter) -> Parameter:
        """Return a parameter converted to its declared type.

        An empty list gets the type of its Field. For a Quantity, text such as 1e-06
        becomes a number; for a list of them, a list with such texts, or a text such as
        "[1e-06, 2.0]", becomes numbers. Any other parameter is unchanged.
        """
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
        """Check a request that sets parameters; accept it, or refuse it with a reason.

        Any exception of `check_change` or a live component refuses it; only these see a
        parameter that has no Field or no value. A start-up value may name an unknown
        solver here. A time that may be in milliseconds is accepted with a warning.
        rclpy before Iron has no callback after setting: then values are applied here.
        """
        for parameter in parameters:
            spec = self.specs.get(parameter.name)
            if spec is None:
                continue
            value = plain(parameter.value)
            if spec.structure and self.configured and self._differs(spec, value):
                reason = self._only_unconfigured(spec.name)
                return SetParametersResult(successful=False, reason=reason)
            if parameter.type_ == NOT_SET:
                continue
            try:
                spec.read(spec.name, value)
                if doubt := unusual_time(spec, value):
                    self.get_logger().warning(doubt)
                if self.has_parameter(spec.name):  # a start-up value: see on_configure
                    check_solver(spec.name, value)
            except dyn.DynError as error:
                return SetParametersResult(successful=False, reason=str(error))
        values = {p.name: p.value for p in parameters}
        try:
            self.check_change(values)
            for part in self._live_parts():
                part.check(values)
        except dyn.DynError as error:
            return SetParametersResult(successful=False, reason=str(error))
        except Exception as error:  # any other error: refused, too
            reason = self.callbacks.failed("a check of parameters", error)
            return SetParametersResult(successful=False, reason=reason)
        if not self._has_post_set:
            self._apply(values)
        return SetParametersResult(successful=True)

    def _differs(self, spec: Field, value: Any) -> bool:
        """Return whether a value differs, as text: NaN equals NaN, 1 is not 1.0."""
        if not self.has_parameter(spec.name):
            return False
        return repr(self.value(spec.name)) != repr(value)  # by repr, NaN equals NaN

    def _after_set(self, parameters: Sequence[Parameter]) -> None:
        """Apply a request that all checks have accepted; log and count exceptions."""
        self._apply({p.name: p.value for p in parameters})

    def _apply(self, values: dict[str, Any]) -> None:
        """Pass values to the node and its live parts, whatever one of them raises."""
        self.callbacks.attempt(self.changed, values)
        for part in self._live_parts():
            self.callbacks.attempt(part.change, values)

    def _live_parts(self) -> list[LiveSettings]:
        """Return the components with live parameters; none before configure."""
        return list(self.live.values()) if self.configured else []

    def check_change(self, values: dict[str, Any]) -> None:
        """Check a request's changes; raise a DynError if one is invalid; a hook."""

    def changed(self, values: dict[str, Any]) -> None:
        """Apply accepted parameter values, by name. Hook; does nothing here."""

    def value(self, name: str) -> Any:
        """Return the value of a declared parameter; an array is returned as a list."""
        parameter = self.get_parameter_or(name)
        if parameter.type_ == NOT_SET:
            return list(self.specs[name].default)
        return plain(parameter.value)

    def options(self, slot: str) -> dict[str, Any]:
        """Return the options set by parameters SLOT.options.NAME, by option name."""
        head = f"{slot}.options."
        names = [name for name in self._parameters if name.startswith(head)]
        return {name.removeprefix(head): self.value(name) for name in names}

    def solver(self, slot: str) -> Any:
        """Return the solver of a slot: its name, or a Solver if options are set.

        SLOT.plugin_name is unchecked without options; an empty one is "auto".
        """
        name, options = self.value(f"{slot}.plugin_name") or "auto", self.options(slot)
        if not options:
            return name
        check_solver(f"{slot}.plugin_name", name)
        problem = slot if name == "auto" else None
        try:
            return dyn.solver(name, problem).with_options(**options)
        except dyn.UnsupportedError as error:
            listed = ", ".join(f"{slot}.options.{x}" for x in options)
            raise dyn.UnsupportedError(
                f"{error}; given are {listed}; dyn param delete"
                f" {self.get_fully_qualified_name()} NAME takes one back"
            ) from error

    def _undeclared(self) -> list[str]:
        """Return the names of start-up parameters that are not declared."""
        names = self._parameter_overrides
        return [name for name in names if not self.has_parameter(name)]

    def _declare_options(self) -> None:
        """Declare the start-up parameters SLOT.options.NAME, typed by their values.

        `solver` checks later whether the solver has such an option.
        """
        for name in self._undeclared():
            if OPTION.fullmatch(name):
                self._declare_option(name, plain(self._parameter_overrides[name].value))

    def _declare_option(self, name: str, value: Any) -> None:
        """Declare a solver option, which can be deleted again; see _declare_options."""
        doc = "option of the slot's solver; `dyn help SOLVER` lists them"
        if value == []:
            raise dyn.SettingError(f"{name} is []; valid: a value of the option", name)
        option = Field(name, kind_like(value), doc, "", value)
        option.read(name, value)
        self.declare([option])
        self._descriptors[name].dynamic_typing = True  # rclpy deletes no others

    def _check_names(self) -> None:
        """Refuse misspelt parameters; warn once about names unknown to all nodes."""
        every = {name for node in NODES for name in node_fields(node)}
        names = self._undeclared()
        # A shared file (`/**`) may be for nodes of other packages, and extensions have
        # parameters of their own: names like none of ours are no error.
        foreign = foreign_names(self.get_name(), names, self.specs, every)
        if foreign and not self._warned:
            self._warned = True
            listed = ", ".join(foreign)
            near = [near_names(x, self.specs) for x in foreign]
            if guesses := ", ".join(f"'{x[0]}'" for x in near if x):
                listed += f"; did you mean {guesses}?"
            self.get_logger().warning(
                one_line(
                    f"parameters that this node does not have: {listed}; dyn param list"
                    f" {self.get_fully_qualified_name()} prints those that it has"
                )
            )


class ParameterNode(TableNode, LifecycleNode):
    """A lifecycle node whose parameters are declared from a table of Fields."""


def plain(value: Any) -> Any:
    """Return a parameter value; an array.array, as rclpy has it, becomes a list."""
    return list(value) if hasattr(value, "typecode") else value


def written_number(value: Any) -> float | None:
    """Return a float, or a string with exponent ("1e-06") as float; else None."""
    if isinstance(value, str) and EXPONENT.fullmatch(value):
        return float(value)
    return value if isinstance(value, float) else None


def written_numbers(value: Any) -> list[float] | None:
    """Return a list of floats and strings such as "1e-06" as a list of floats.

    A string that begins with `[` is first parsed as YAML. None for any other value,
    also for a list with another element, such as an int.
    """
    # A list of texts and floats arrives as text.
    if isinstance(value, str) and value.startswith("["):
        try:
            value = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError, LookupError, RecursionError):
            return None  # PyYAML passes on errors of its conversions
    rows = [written_number(x) for x in value] if isinstance(value, list) else [None]
    numbers = [x for x in rows if x is not None]
    return numbers if len(numbers) == len(rows) else None
