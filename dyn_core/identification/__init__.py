"""Parameters from measured motion."""

from dyn_core.identification.estimation import Identification, identify
from dyn_core.identification.parameter_vector import (
    parameter_names,
    parameters_of,
    with_linear_parameters,
)
from dyn_core.identification.regressor_rank import BaseParameters, base_parameters

__all__ = [
    "BaseParameters",
    "Identification",
    "base_parameters",
    "identify",
    "parameter_names",
    "parameters_of",
    "with_linear_parameters",
]
