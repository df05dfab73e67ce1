"""Options accepted by every `build`, and checks of all options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from dyn_core.engines import ENGINES
from dyn_core.errors import (
    ModelError,
    UnsupportedError,
    guesses,
    nearest,
    one_line,
    unknown_name,
)
from dyn_core.model.coordinates.matrix_forms import FORMS, changes_some, kept_places
from dyn_core.model.parameter_paths import kind_of
from dyn_core.numbers.scalar import Number
from dyn_core.problems import PASSIVE, Port, Signature
from dyn_core.validation import Quantity, Whole, kind_like, shown


@dataclass(frozen=True, repr=False)
class Required:
    """The default of a solver option that must be given.

    Attributes:
        meaning: Description of the option's value, such as "the name of a link".
    """

    meaning: str

    def __repr__(self) -> str:
        return f"<{self.meaning}>"


def option_values(solver: Any, model: Any, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of each option of a solver by name.

    Given values, and defaults that with_options changed, are checked and converted by
    `valid`, without a rule by the kind of the default. Other options have their
    default, unchecked. Without a model, required options that are not given are absent.
    """
    values = {}
    for key, default in solver.options.items():
        value = chosen.get(key, default)
        if isinstance(value, Required):
            if model is None:
                continue
            links = getattr(model, "frame_names", ()) if "link" in value.meaning else ()
            known = f"valid: {', '.join(links)}" if links else "see its help page"
            raise UnsupportedError(
                f"{solver.name}: give {key}=, {value.meaning}; {known}"
            )
        if key in chosen or key in solver.changed_options:
            value = read_option(solver, model, key, value)
        values[key] = value
    return values


def read_option(solver: Any, model: Any, key: str, value: Any) -> Any:
    """Return the checked value of a given option.

    A rule of the solver's `valid` decides: a Kind converts the value, such as an int to
    a float; a function only checks it. Without a rule it must be of the kind of the
    default, but a list, set or array passes for a tuple and any mapping for a dict, as
    it is; where the default has another type, such as None, any value passes. A traced
    Number is returned unchecked.
    """
    default, rule = solver.options[key], solver.valid.get(key)
    where = f"{solver.name}: option {key}"
    if isinstance(value, Number):
        return value  # traced: passed by an algorithm to a solver in a Deferred slot
    for kind, taken, valid in _COLLECTIONS:
        if isinstance(default, kind) and not isinstance(value, taken):
            raise UnsupportedError(f"{where} is {shown(value)}; valid: {valid}")
    if callable(rule):
        try:
            rule(model, value)
        except UnsupportedError as error:
            raise UnsupportedError(f"{where}: {error}") from error
        return value
    if rule is None:
        if not isinstance(default, (bool, int, float, str)):
            return value
        rule = Quantity() if type(default) is float else kind_like(default)
    try:
        return rule.read(where, value)
    except ModelError as error:
        raise UnsupportedError(str(error)) from error


_COLLECTIONS: tuple[tuple[type, tuple[type, ...], str], ...] = (
    (tuple, (tuple, list, set, frozenset, np.ndarray), "a list"),
    (dict, (Mapping,), "a mapping"),
)


def _option(default: Any, meaning: str) -> Any:
    """Return a dataclass field with a default and its sentence on help pages."""
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True)
class BuildOptions:
    """Options of every `build`; help pages print the meaning beside each default.

    `parse` checks values; the constructor does not.
    """

    engine: str | None = _option(
        None, "native (default where LLVM is installed), graph or plain"
    )
    inputs: tuple[str, ...] = _option(
        (), "optional inputs (f_ext) and parameter paths that become inputs"
    )
    joint_friction: bool = _option(False, "whether damping and dry friction act")
    joint_springs: bool = _option(
        False, "whether springs and the forces of Model.with_forces act"
    )
    finite: bool = _option(
        False, "whether NaN, infinity and quaternions not of unit length are refused"
    )
    f_ext_frame: str = _option("body", "coordinates of external forces: body or base")
    threads: int | None = _option(
        None, "maximum number of threads of a batch (default: DYN_THREADS, all cores)"
    )
    wait: bool = _option(
        False,
        "whether a first call waits for the compiler; if not, a slower form with the"
        " same bits serves until a large kernel is ready",
    )
    dtype: str = _option(
        "float64",
        "numbers of machine code and of its arrays: float64, or float32, of which twice"
        " as many are computed at once",
    )
    matrices: str = _option(
        "dense", "form of joint-space matrices: dense, packed or sparse"
    )

    @classmethod
    def parse(
        cls, solver: Any, options: Mapping[str, Any], solver_names: Sequence[str]
    ) -> tuple[BuildOptions, dict[str, Any]]:
        """Return (checked common options, the solver's own options, unchecked).

        Unknown names are refused, as are common options of no effect on the problem.
        """
        names = [item.name for item in fields(cls)]
        common = {key: value for key, value in options.items() if key in names}
        rest = {key: value for key, value in options.items() if key not in common}
        check_names(f"{solver.name}: unknown option", rest, [*names, *solver_names])
        common["inputs"] = input_names(solver.name, common.get("inputs", ()))
        dtype = common.get("dtype")  # np.float32, too
        if isinstance(dtype, (type, np.dtype)) and dtype in (np.float32, np.float64):
            common["dtype"] = np.dtype(dtype).name
        result = cls(**common)
        result._check(solver.name)
        result._check_acting(solver.name, solver.signature)
        return result, rest

    def _check(self, name: str) -> None:
        """Raise UnsupportedError if an option has an invalid value.

        With engine graph or plain, values of threads, wait and dtype other than the
        defaults are invalid. `inputs` is not checked.
        """
        for option, valid in (
            ("f_ext_frame", ("body", "base")),
            ("matrices", FORMS),
            ("dtype", ("float64", "float32")),
        ):
            value = getattr(self, option)
            if not isinstance(value, str) or value not in valid:
                listed = ", ".join(valid)
                what = f"{name}: {option} {shown(value)}"
                raise UnsupportedError(f"{what}; valid: {listed}")
        for option in ("joint_friction", "joint_springs", "finite", "wait"):
            value = getattr(self, option)
            if not isinstance(value, (bool, np.bool_)):  # "no" would count as True
                raise UnsupportedError(
                    f"{name}: {option} {shown(value)}; valid: True, False"
                )
        threads = self.threads
        if threads is not None and not Whole(1).takes(threads):
            raise UnsupportedError(
                f"{name}: threads {shown(threads)}; valid: a whole number >= 1, or None"
            )
        if self.engine is not None and str(self.engine) not in ENGINES:
            raise UnsupportedError(unknown_name("engine", self.engine, ENGINES))
        if self.engine in ("graph", "plain"):
            self.refuse_native(name, f"on engine '{self.engine}'")

    def refuse_native(self, name: str, where: str) -> None:
        """Refuse values of threads, wait and dtype that only machine code supports."""
        native = {"threads": None, "wait": False, "dtype": "float64"}
        for option, default in native.items():
            value = getattr(self, option)
            if value != default:
                raise UnsupportedError(
                    f"{name}: {option}={shown(value)} changes nothing {where}; valid:"
                    f" {default!r}, or engine='native' of a TracedSolver"
                )

    def _check_acting(self, name: str, signature: Signature) -> None:
        """Raise UnsupportedError for options without effect on this kind of problem.

        They are joint_friction, joint_springs, f_ext_frame and matrices, if they are
        not default; f_ext_frame also if external forces are optional and not named in
        `inputs`. finite=True is refused if the Signature has answers_all.
        """
        if self.finite and signature.answers_all:
            raise UnsupportedError(
                f"{name}: finite=True; valid: False, since {signature.name} has an"
                " answer to numbers that are not finite"
            )
        for option in PASSIVE:
            if getattr(self, option) and option not in signature.acting:
                valid = ", ".join(signature.acting) or "neither friction nor springs"
                raise UnsupportedError(
                    f"{name}: {option} changes nothing in {signature.name}; valid:"
                    f" {valid}"
                )
        kinds = [port.kind for port in signature.inputs]
        if self.f_ext_frame != "body" and "wrenches" not in kinds:
            raise UnsupportedError(
                f"{name}: f_ext_frame changes nothing in {signature.name}, which takes"
                " no external forces; valid: body"
            )
        wrenches = [port for port in signature.inputs if port.kind == "wrenches"]
        taken = [p for p in wrenches if not p.optional or p.name in self.inputs]
        if self.f_ext_frame != "body" and not taken:
            raise UnsupportedError(
                f"{name}: f_ext_frame changes nothing without external forces; valid:"
                " inputs=['f_ext'] with it"
            )
        kinds = [port.kind for port in signature.outputs]
        valid = ", ".join(form for form in FORMS if changes_some(form, kinds))
        if self.matrices not in valid.split(", "):
            raise UnsupportedError(
                f"{name}: matrices {shown(self.matrices)} changes nothing in"
                f" {signature.name}; valid: {valid}"
            )

    def ports(
        self, model: Any, signature: Signature, sizes: Mapping[str, int]
    ) -> tuple[list[Port], list[Port], list[str]]:
        """Return (sized inputs, sized outputs, names of parameter inputs).

        Parameters follow the Signature's inputs, in the order of the option `inputs`,
        which also names the optional inputs to include. A packed or sparse matrix has
        one axis, and its indices in `places`. `sizes` add to model.sizes.
        """
        optional = [port.name for port in signature.inputs if port.optional]
        paths = [name for name in self.inputs if name not in optional]
        sizes = {**model.sizes, **sizes}
        inputs = [
            port.sized(sizes)
            for port in signature.inputs
            if not port.optional or port.name in self.inputs
        ]
        inputs += [_parameter_port(model, path, signature, optional) for path in paths]
        for path in paths:
            self._check_influence(model, path, signature)
        outputs = []
        for port in signature.outputs:
            kept = kept_places(model, port.kind, self.matrices)
            shape = port.shape if kept is None else (len(kept[0]),)
            outputs.append(replace(port, shape=shape, places=kept).sized(sizes))
        return inputs, outputs, paths

    def _check_influence(self, model: Any, path: str, signature: Signature) -> None:
        """Raise UnsupportedError for a parameter of a robot that changes no output."""
        what = path.rpartition(".")[2]
        if model.kind != "robot":
            return
        if what in signature.ignores:
            raise UnsupportedError(
                f"inputs: {path} changes nothing in {signature.name}; valid: other"
                " parameters, such as JOINT.origin"
            )
        kind = kind_of(model, path)
        if kind.owner == "loop" and not signature.depends_on_loops:
            raise UnsupportedError(
                f"inputs: {path} changes nothing in {signature.name}, which is of the"
                " open tree; valid: parameters of links and joints"
            )
        option = kind.option
        if option and option not in signature.acting:
            raise UnsupportedError(
                f"inputs: {path} changes nothing in {signature.name}, which has no"
                f" {option.replace('_', ' ')}; valid: other parameters"
            )
        if option and not getattr(self, option):
            raise UnsupportedError(
                f"inputs: {path} acts only with {option}; valid: {option}=True"
            )
        if path == "time" and not model.driven:
            raise UnsupportedError(
                "inputs: no joint is driven, so nothing depends on the time; valid:"
                " parameters of links and joints"
            )


def input_names(solver: str, inputs: Any) -> tuple[str, ...]:
    """Return the names in option `inputs` as a tuple; a string counts as one name.

    The order is that of a list or tuple; for a set it is arbitrary.

    Args:
        solver: Name of the solver, for messages.
        inputs: Value of the option.

    Raises:
        UnsupportedError: Not a list, tuple or set of names, or a name occurs twice.
    """
    names = (inputs,) if isinstance(inputs, str) else inputs
    listed = isinstance(names, (list, tuple, set, frozenset))
    if not listed or not all(isinstance(name, str) for name in names):
        raise UnsupportedError(
            f"{solver}: inputs {shown(inputs)}; valid: names of optional inputs and"
            " parameter paths"
        )
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise UnsupportedError(
            f"{solver}: inputs name {', '.join(twice)} twice; valid: each name once"
        )
    return tuple(names)


def _parameter_port(
    model: Any, path: str, signature: Signature, optional: Sequence[str]
) -> Port:
    """Return the Port of a parameter that becomes an input.

    Its shape is () for one number, else (count,).
    """
    if any(path == port.name for port in signature.inputs):
        raise UnsupportedError(
            f"inputs: '{path}' is an input of {signature.name} already; valid:"
            f" {', '.join(optional) or 'no optional input'}, and parameter paths"
        )
    try:
        count = len(model.parameter(path))
    except ModelError as error:
        near = nearest(str(path), optional)
        guess = f"; did you mean {' or '.join(map(repr, near))}?" if near else ";"
        also = ", ".join(optional) or "none"
        raise ModelError(
            f"inputs: {error}{guess} optional inputs of {signature.name}: {also}",
            error.element,
        ) from error
    shape = () if count == 1 else (count,)
    meaning = f"parameter of {getattr(model, 'name', 'the model')}"
    return Port(path, shape, model.unit(path), meaning=meaning)


def check_names(what: str, names: Iterable[str], valid: Sequence[str]) -> None:
    """Raise UnsupportedError if a name is not valid; `what` begins the message."""
    unknown = [name for name in names if name not in valid]
    if unknown:
        raise UnsupportedError(
            f"{what} {one_line(', '.join(unknown))}{guesses(unknown[0], valid, 1)}"
            f" valid: {', '.join(valid)}"
        )
