"""Modes of the controller, as data: law, gains, parameters and topics of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dyn_core.problems import Signature
from dyn_core.validation import Field

INVERSE_DYNAMICS = "inverse_dynamics"  # the slot that most laws have
GAINS = ("p", "d", "i", "i_clamp")  # keys of the gains of a joint


@dataclass(frozen=True)
class ModeTopic:
    """A topic that a mode listens to.

    Attributes:
        name: Name of the topic below the name of the node, such as target_pose.
        type: Type of its messages, such as geometry_msgs/PoseStamped.
        meaning: Effect of a message on the law.
        parameter: For a sensor: parameter of the mode whose value is the name of the
            topic; without a value there is no such sensor. Empty: the topic is `name`,
            below the name of the node.
    """

    name: str
    type: str
    meaning: str
    parameter: str = ""


@dataclass(frozen=True)
class ModeMessage:
    """A message of a topic of the mode.

    Attributes:
        topic: Name of the ModeTopic.
        t: Time of receipt, on the clock of the references [s].
        values: Numbers of the message.
        frame: Link in whose axes they are; empty: the root.
        stamp: Time stamp [s]; None: none.
        clock: Present time of the stamps' clock [s]; None: the age is not tested.
    """

    topic: str
    t: float
    values: Any
    frame: str = ""
    stamp: float | None = None
    clock: float | None = None


@dataclass(frozen=True)
class ControlMode:
    """A mode of the controller.

    Attributes:
        name: Name of the mode, the value of the setting `mode`.
        problem: Kind of problem that the solver of the law solves.
        solver: Name of the solver of the law.
        meaning: What the mode does, as a noun phrase.
        slot: Name of the choice SLOT.plugin_name: a slot of the law's solver, or the
            name of `problem` if the law's solver itself is chosen.
        law: Function of a Controller that returns its ControlLaw
            (dyn_core.control.modes); None: JointLaw, which finds the inputs of the
            solver by the names of their Ports.
        gains: Keys of the joint gains that act, of GAINS; d always brakes in ramps.
        stiff: Whether p and d are joint stiffness and damping; else they act before the
            inertia.
        follows: Whether the mode follows trajectories of the joints.
        holds: Whether it can hold a position, in a stop of kind hold.
        tracks: Whether the tracking error of the joints is bounded by default.
        status: What /diagnostics says while a mode acts that follows no trajectory.
        parameters: Further parameters of the mode, with names that no other mode has.
            One with the name of a Port is an input of the law.
        topics: Topics that the law receives messages of.
        exportable: Whether the cycle of the law is exported (dyn_core.export.cycle).
    """

    name: str
    problem: Signature
    solver: str
    meaning: str
    slot: str = INVERSE_DYNAMICS
    law: Callable[[Any], Any] | None = None
    gains: tuple[str, ...] = GAINS
    stiff: bool = False
    follows: bool = True
    holds: bool = True
    tracks: bool = False
    status: str = ""
    parameters: tuple[Field, ...] = ()
    topics: tuple[ModeTopic, ...] = ()
    exportable: bool = False
