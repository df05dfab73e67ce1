"""Identification of robot parameters from measured motion."""

from dyn_core.identification.estimation import identify
from dyn_core.identification.evaluation import Evaluation, evaluate
from dyn_core.identification.identified_files import write_sidecar
from dyn_core.identification.regressor_rank import BaseParameters, base_parameters
from dyn_core.identification.result import (
    CrossValidation,
    Identification,
    with_table,
    write_table,
)
from dyn_core.identification.selection import FRICTION_LAWS
from dyn_core.model.parameter_vector import (
    parameter_names,
    parameters_of,
    with_linear_parameters,
)

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

__all__ = [
    "FRICTION_LAWS",
    "BaseParameters",
    "CrossValidation",
    "Evaluation",
    "Identification",
    "base_parameters",
    "evaluate",
    "identify",
    "parameter_names",
    "parameters_of",
    "with_linear_parameters",
    "with_table",
    "write_sidecar",
    "write_table",
]
