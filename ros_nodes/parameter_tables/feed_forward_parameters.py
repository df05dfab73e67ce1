"""Parameters of the node `feed_forward`; without ROS."""

from __future__ import annotations

from dyn_core.validation import Field, Name, Quantity, Switch
from ros_nodes.parameters import ROBOT

FEED_FORWARD = (
    *ROBOT,
    Field("inverse_dynamics.plugin_name", Name(),
        "solver of INVERSE_DYNAMICS; auto or empty: the default one, which closes the"
        " loops of a robot", "", "auto"),
    Field("joint_friction", Switch(),
        "whether the efforts overcome the friction of the joints", "", True),
    Field("point_period", Quantity(0.0, 10.0),
        "longest time between points: some are added on the same motion; 0: none",
        "s", 0.0),
)  # fmt: skip
