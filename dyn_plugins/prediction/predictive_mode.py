"""The mode of the controller that plans ahead."""

from dyn_core.authoring import ControlMode, hookimpl
from dyn_core.problems import OPTIMAL_CONTROL


@hookimpl
def dyn_control_modes():
    """Return a list of the one ControlMode of this file, for the Registry."""
    from dyn_core.prediction import PredictiveLaw  # needed by controllers alone

    return [
        ControlMode(
            "predictive",
            OPTIMAL_CONTROL,
            "box_fddp",
            "plans ahead within the effort limits, and follows the last plan",
            slot="optimal_control",
            law=PredictiveLaw,
            gains=("p", "d"),
            follows=False,
            status="planning",
            parameters=PredictiveLaw.fields,
            topics=PredictiveLaw.topics,
        ),
    ]
