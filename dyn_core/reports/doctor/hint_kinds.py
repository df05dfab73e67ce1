"""Hints of `dyn doctor`: properties of a robot that work and could be better."""

from dyn_core.reports.doctor.kinds import HINT, FindingKind

_CONCENTRATED = FindingKind(
    "concentrated-inertia",
    HINT,
    "Moments are much smaller than those of the shape",
    "A uniform body of this mass in the box around the link's shapes has moments more"
    " than ten times larger. Where the mass does not sit in one place (a motor), the"
    " link turns too easily.",
    "Check that the moments are in kg·m², or compute them from the geometry.",
)
_LIGHT = FindingKind(
    "light-placeholder",
    HINT,
    "Light links whose numbers do not fit their shapes",
    "Less than a thousandth of the robot's mass: placeholders of sensors and frames"
    " that change next to nothing.",
    "Nothing to do, unless the mass is wrong.",
)
_TINY = FindingKind(
    "tiny-mass",
    HINT,
    "A moving body of almost no mass",
    "Placeholders of a milligram make H badly conditioned and simulations stiff.",
    "Give its true mass, or none at all and merge it by a fixed joint.",
)
_MASSLESS = FindingKind(
    "massless-body",
    HINT,
    "A moving body without mass in the chain",
    "It works, since something further out has inertia; solvers that go body by body"
    " pass a singular inertia.",
    "If the link is real, give it an <inertial>; if three joints stand for one ball"
    " joint, say so in the sidecar.",
)
_SAME = FindingKind(
    "placeholder-inertia",
    HINT,
    "Links of different mass have the same moments",
    "The numbers look like placeholders.",
    "Compute each link's inertia from its geometry.",
)
_NO_VELOCITY = FindingKind(
    "no-velocity-limit",
    HINT,
    "No velocity limit",
    "Trajectories are not checked against one; 0 is read as none.",
    "Give velocity in <limit> [rad/s | m/s].",
)
_NEUTRAL = FindingKind(
    "neutral-outside",
    HINT,
    "Zero lies outside the limits",
    "model.neutral() is no allowed position; a simulation from there starts in a stop.",
    "Start elsewhere, such as model.random(0) or model.position({...}).",
)
_LONG_AXIS = FindingKind(
    "axis-not-unit",
    HINT,
    "The axis is no unit vector",
    "It is scaled to length one here; other programs may take its length as a factor.",
    "Divide it by its length.",
)
_SLANTED = FindingKind(
    "axis-almost-straight",
    HINT,
    "The axis is off a principal direction by a tiny angle",
    "Probably rounding of an exporter; zeros that would fold away cost time in each"
    " call.",
    "Write the direction that is meant.",
)
_ROUNDED = FindingKind(
    "rounded-angle",
    HINT,
    "A quarter turn with few digits",
    "1.57 is 0.05 degrees off; over a metre the tip is 0.8 mm beside its place.",
    "Write 1.5707963267948966.",
)
_MIMIC_CHAIN = FindingKind(
    "mimic-chain",
    HINT,
    "A follower follows a follower",
    "It is composed exactly here; some other programs refuse it.",
    "Name the first leader, with the product of the multipliers.",
)
_GAP = FindingKind(
    "loop-gap",
    HINT,
    "The loops are open at zero",
    "model.neutral() does not close them, so a simulation cannot start there.",
    "Start from dyn.close_loops(model, q) with a q near the position that is meant.",
)
_DEPENDENT = FindingKind(
    "dependent-rows",
    HINT,
    "Constraints of the loops depend on each other",
    "Accelerations are unique, forces in the loops are not.",
    "Use loop kinds with fewer rows (point instead of pin), or a solver that takes the"
    " least forces (dependent='least_norm').",
)
_IDLE = FindingKind(
    "idle-motion",
    HINT,
    "Joints whose motions cancel at the tip in every position",
    "The chain has as many joints as directions or fewer, and still a motion that the"
    " tip never shows, as of two axes on one line. Inverse kinematics has no unique"
    " answer.",
    "Lock one of the joints where the tip alone matters.",
)
_MESHES = FindingKind(
    "meshes-unread",
    HINT,
    "Meshes were not looked at",
    "Masses and inertias of these links were not compared with their shapes.",
    "Give --package-path FOLDER where files are missing; DAE files need"
    " pip install 'dyn_ros[collision]'.",
)
_LEFT_OUT = FindingKind(
    "left-out",
    HINT,
    "Parts of the file that dynamics does not use",
    "Other programs may read them; here they change nothing.",
    "Nothing to do, unless a name is misspelt.",
)
_ROTORS = FindingKind(
    "sidecar-rotors",
    HINT,
    "No joint has rotor inertia",
    "Behind a gear of 100, a rotor of 1e-5 kg·m² counts as 0.1 kg·m², often as much as"
    " the links. URDF has no word for it.",
    "Take both numbers from the data sheet of the motor (those below are examples), and"
    " put the lines into the sidecar.",
)
_FRICTION = FindingKind(
    "sidecar-friction",
    HINT,
    "No joint has damping or friction",
    "Joints swing for ever in a simulation; controllers have nothing to compensate.",
    "Identify them (dyn.identify) or take them from the data sheet; the numbers below"
    " are examples.",
)
_BALL = FindingKind(
    "sidecar-ball",
    HINT,
    "Three revolute joints that stand for a ball joint",
    "Crossing axes without mass between them lock when two become parallel (gimbal"
    " lock). A spherical joint has a quaternion and no such position.",
    "Put the lines into the sidecar; the quaternion stands for the three angles.",
)
_GEAR = FindingKind(
    "sidecar-gear",
    HINT,
    "Two equal sliding fingers move independently",
    "Most grippers drive both with one motor.",
    "Where that is so, put the lines into the sidecar; the ratio's sign depends on the"
    " directions of the axes.",
)

HINTS = (
    _CONCENTRATED,
    _LIGHT,
    _TINY,
    _MASSLESS,
    _SAME,
    _NO_VELOCITY,
    _NEUTRAL,
    _LONG_AXIS,
    _SLANTED,
    _ROUNDED,
    _MIMIC_CHAIN,
    _GAP,
    _DEPENDENT,
    _IDLE,
    _MESHES,
    _LEFT_OUT,
    _ROTORS,
    _FRICTION,
    _BALL,
    _GEAR,
)
