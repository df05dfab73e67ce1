"""Controllers of a simulated robot as functions of time and state."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from dyn_core.engines import Program
from dyn_core.errors import SettingError
from dyn_core.model import Model
from dyn_core.model.checks.robots import check_robot
from dyn_core.solving.solver import check_function, takes
from dyn_core.validation import shown

ControlLaw = Callable[..., Any]  # (t, q, qd) -> joint forces, or None
_PLACES = {"t": 0, "time": 0, "q": 1, "qd": 2}  # of the arguments of a control law


def control_law(controller: Any, model: Model) -> ControlLaw:
    """Return a controller as a function of time [s], position (nq,) and velocity (nv,).

    The function returns joint forces, (nv,), or None for no new command; without a
    controller it always returns None. A plain function, unlike a method `update`, must
    not return None (SettingError).
    """
    if controller is None:
        return lambda t, q, qd: None
    law = getattr(controller, "update", controller)
    valid = "a function (t, q, qd) -> tau, an object with such an update, or None"
    inner = getattr(controller, "control", None)  # of a plan or a regulator
    if law is controller and callable(inner) and not callable(law):
        way = "lambda t, q, qd: law.control(q, qd)"
        way = "its method control" if takes(inner, 3) else way
        text = f"controller is a {type(controller).__name__}; valid: {way}"
        raise SettingError(text, "controller")
    # dicts and sets have a method `update`, too, which is no control law.
    if isinstance(law, type) or isinstance(controller, (dict, set)):
        raise SettingError(
            f"controller is {controller!r}; valid: {valid}", "controller"
        )
    check_function("controller", law, valid)
    if isinstance(law, Program):
        _check_program(law, model)
    try:
        arguments = inspect.signature(law)
        arguments.bind(0.0, None, None)
        names = [*arguments.parameters][:3]
        if any(_PLACES.get(x, k) != k for k, x in enumerate(names)):
            raise TypeError(f"its arguments are {', '.join(names)}")
    except TypeError as error:
        name = getattr(law, "__qualname__", shown(law))
        called = "law" if "<" in name else name  # a lambda has no name
        way = f"lambda t, q, qd: {called}(q, qd), " if takes(law, 2) else ""
        raise SettingError(
            f"controller {name} cannot be called with t, q, qd ({error});"
            f" valid: {way}{valid}",
            "controller",
        ) from error
    except ValueError:
        pass  # a builtin without a signature
    return _returning(law) if law is controller else law


def _check_program(program: Program[Any], model: Model) -> None:
    """Check that a Program has inputs t, q, qd of a robot, and returns joint forces."""
    check_robot(model, "simulate")
    wanted = ((("t", "time"), ()), (("q",), (model.nq,)), (("qd",), (model.nv,)))
    shapes = [port.shape for port in program.outputs]
    fits = len(program.inputs) == len(wanted) and all(
        port.name in names and port.shape == shape
        for port, (names, shape) in zip(program.inputs, wanted, strict=True)
    )
    if fits and shapes == [(model.nv,)]:
        return
    ports = [
        ", ".join(f"{port.name} {port.shape}" for port in ports)
        for ports in (program.inputs, program.outputs)
    ]
    arguments = ", ".join(port.name for port in program.inputs)
    raise SettingError(
        f"controller is a Program {program.signature.name} with inputs {ports[0]} and"
        f" outputs {ports[1]}; valid: inputs t (), q ({model.nq},), qd ({model.nv},)"
        f" and one output ({model.nv},), or a function of these, as"
        f" lambda t, q, qd: program({arguments}), with values for all arguments",
        "controller",
    )


def _returning(law: ControlLaw) -> ControlLaw:
    """Return a law that refuses None of `law`, most often a forgotten `return`."""

    def checked(t: float, q: Any, qd: Any) -> Any:
        tau = law(t, q, qd)
        if tau is None:
            raise SettingError(
                f"the controller returned None at t = {t:g} s; valid: {len(qd)} joint"
                " forces, or controller=None for a robot without a controller",
                "controller",
            )
        return tau

    return checked
