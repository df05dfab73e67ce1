"""Declared parameters of a floating root's initial pose, and of contacts."""

from __future__ import annotations

from ros_nodes.parameters import Spec

NO_TURN = [0.0, 0.0, 0.0, 1.0]
AS_TOUCHED = -1.0  # of contact.mu


def start_specs() -> tuple[Spec, ...]:
    """Return the parameters of the initial pose of a floating root."""
    return (
        Spec(
            "initial_root_position",
            [0.0, 0.0, 0.0],
            "initial position of a floating root: x, y, z [m]",
            structure=True,
        ),
        Spec(
            "initial_root_orientation",
            NO_TURN,
            "initial orientation of a floating root: quaternion x, y, z, w",
            structure=True,
        ),
    )


def contact_specs() -> tuple[Spec, ...]:
    """Return the parameters of the world and the contact solver."""
    return (
        Spec(
            "contact.enabled",
            False,
            "whether contacts are simulated; contact.stepper then replaces"
            " step.plugin_name",
            structure=True,
        ),
        Spec(
            "contact.plugin_name",
            "",
            "solver of CONTACT_SOLVE; empty: the world file's, or admm",
            structure=True,
        ),
        Spec(
            "contact.stepper",
            "",
            "stewart_trinkle, anitescu_potra, moreau_jean or event_driven; empty: the"
            " world file's, or stewart_trinkle",
            structure=True,
        ),
        Spec(
            "contact.world_file",
            "",
            "path of a YAML mapping with the fields of dyn_core.World: half_spaces,"
            " solver_options, ...; empty: the parameters below",
            structure=True,
        ),
        Spec(
            "contact.ground", True, "whether the plane z = 0 is a floor", structure=True
        ),
        Spec(
            "contact.mu",
            AS_TOUCHED,
            "friction of the floor, combined with the link's: sqrt(mu_a mu_b); -1: the"
            " link's alone",
            low=AS_TOUCHED,
            high=1e6,
            structure=True,
        ),
        Spec(
            "contact.restitution",
            0.0,
            "restitution of the floor (the larger of floor and link acts); needs"
            " contact.mu",
            low=0.0,
            high=1.0,
            structure=True,
        ),
        Spec(
            "contact.erp",
            0.2,
            "part of an overlap that is corrected in a step",
            low=0.0,
            high=1.0,
            structure=True,
        ),
        Spec(
            "contact.margin",
            0.02,
            "largest gap of a contact that takes part in a step [m]",
            low=0.0,
            high=1e3,
            structure=True,
        ),
        Spec(
            "contact.publish_rate",
            20.0,
            "rate of ~/contact_wrenches and ~/joint_reactions while there are"
            " subscribers [Hz]",
            low=0.1,
            high=1000.0,
            structure=True,
        ),
        Spec(
            "contact.frame_id",
            "world",
            "header.frame_id of ~/contact_wrenches: the root frame of the model",
            structure=True,
        ),
    )
