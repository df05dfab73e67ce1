"""All kinds of findings of `dyn doctor` by code, in the order of a report.

A kind has a severity, a meaning and a remedy: errors and warnings are faults that make
a robot unusable or wrong, hints are properties that work and could be better. The
checks report places and numbers; the texts are here, once.
"""

from typing import NamedTuple

ERROR, WARNING, HINT = "error", "warning", "hint"
SEVERITIES = (ERROR, WARNING, HINT)  # in the order of a report


class FindingKind(NamedTuple):
    """A kind of finding.

    Attributes:
        code: Short unique name, for programs.
        severity: "error": the robot cannot be used, or is physically impossible;
            "warning": results are probably wrong; "hint": it works, and could be
            better.
        title, meaning, remedy: The fault, its consequences, and how to correct it.
    """

    code: str
    severity: str
    title: str
    meaning: str
    remedy: str


_UNREADABLE = FindingKind(
    "unreadable",
    ERROR,
    "The file cannot be read",
    "Nothing else was looked at.",
    "Write a file of well-formed XML with a <robot> or <mujoco> element.",
)
_REFUSED = FindingKind(
    "refused",
    ERROR,
    "Loading refuses the robot",
    "No Model can be made, so what needs one (limits of followers, inertia in motion,"
    " weight against effort) was not looked at. The file itself was.",
    "Mend what the sentence names, and the errors below; then run the command again.",
)
_TREE = FindingKind(
    "broken-tree",
    ERROR,
    "Links and joints form no tree",
    "A robot needs links and joints of different names, one root, and one parent for"
    " every other link.",
    "Mend the names in <parent> and <child>; cut a closed loop at one joint and close"
    " it in the sidecar (loops).",
)
_INERTIA = FindingKind(
    "impossible-inertia",
    ERROR,
    "No body has this inertia",
    "Moments of inertia must be positive, and each at most the sum of the other two."
    " Otherwise kinetic energy can be negative and a simulation can explode.",
    "Compute the inertia anew from the geometry, about the centre of mass, in kg·m²."
    " Frequent causes: a wrong sign of products, moments about another point, few"
    " digits.",
)
_ZERO_AXIS = FindingKind(
    "zero-axis",
    ERROR,
    "The axis has no direction",
    "A joint cannot turn about, or slide along, a vector of length zero.",
    'Give a unit vector, such as <axis xyz="0 0 1"/>.',
)
_REVERSED = FindingKind(
    "reversed-limits",
    ERROR,
    "The lower limit is above the upper one",
    "No position is allowed; loading takes the joint as free.",
    "Exchange the two limits, or mend the sign of one.",
)
_NO_INERTIA = FindingKind(
    "no-inertia-along",
    ERROR,
    "Nothing that the joint carries has inertia along it",
    "Its acceleration would be infinite: forward dynamics and simulation are refused.",
    "Give a link below it mass and inertia, or the joint an armature, or lock it"
    " (model.lock).",
)
_LOST_MIMIC = FindingKind(
    "lost-mimic",
    ERROR,
    "<mimic> leads to no joint that can be followed",
    "The rule is left out, and the joint moves freely.",
    "Name a joint that is there, is not fixed, and does not follow this one.",
)
_FAR = FindingKind(
    "far-origin",
    ERROR,
    "An origin is absurdly far away",
    "Numbers of this size hide the rest of the robot: positions lose digits, and"
    " torques are those of a lever of this length.",
    "Lengths are in metres. Mend the number, or divide by 1000 where it is in"
    " millimetres.",
)
_OPEN_LOOP = FindingKind(
    "open-loop",
    ERROR,
    "No position that closes the loops was met",
    "A simulation of the closed robot cannot start.",
    "Check at_a and at_b of the loops in the sidecar: lengths in metres, in the frames"
    " of the links.",
)
_PART = FindingKind(
    "impossible-part",
    WARNING,
    "No body has this inertia, but it is fixed to one that makes up for it",
    "What moves as one has a possible inertia, so simulations are sound; its numbers"
    " are still not those of the robot.",
    "Compute the inertia anew from the geometry, about the centre of mass, in kg·m².",
)
_MOMENTS = FindingKind(
    "moments-without-mass",
    WARNING,
    "Mass 0, but moments of inertia",
    "Such a body turns heavily and weighs nothing.",
    "Give the mass, or leave the whole <inertial> out.",
)
_SHAPE = FindingKind(
    "shape-without-mass",
    WARNING,
    "A moving link has a shape, but no mass",
    "A link without <inertial> weighs nothing: torques lack its weight and inertia, and"
    " loading is refused where nothing behind the joint has inertia.",
    "Give it an <inertial>: mass in kg, moments in kg·m² about the centre of mass.",
)
_IMPROBABLE = FindingKind(
    "improbable-inertia",
    WARNING,
    "Inertia does not fit the shape",
    "A uniform body of this mass in the box around the link's shapes has moments that"
    " are more than ten times smaller. No body inside the box has more than three times"
    " those of the uniform one.",
    "Check units (kg·m², not kg·mm² or g·mm²), that the moments are about the centre"
    " of mass, and that they are no placeholder. Identified parameters may fit the"
    " motion and no body; they serve as they are.",
)
_DENSITY = FindingKind(
    "improbable-density",
    WARNING,
    "Mass does not fit the volume of the shape",
    "No robot is made of something heavier than tungsten (19 300 kg/m³) or lighter than"
    " air (1.2 kg/m³).",
    "Check units: masses in kg, lengths and mesh scales in m.",
)
_CENTRE = FindingKind(
    "centre-outside",
    WARNING,
    "Centre of mass outside the shape",
    "Gravity acts beside the body: torques are those of a longer lever.",
    "Check the <origin> of <inertial>: metres, in the frame of the link.",
)
_INERTIA_UNITS = FindingKind(
    "inertia-units",
    WARNING,
    "Radius of gyration does not fit the robot",
    "sqrt(I / m) says how far from its centre the mass of a link lies; here it is"
    " further than the whole robot reaches, or less than a tenth of that of a ball of"
    " tungsten.",
    "Moments are in kg·m²: 1 kg·mm² = 1e-6, 1 g·mm² = 1e-9, 1 kg·cm² = 1e-4 kg·m².",
)
_MASS_UNITS = FindingKind(
    "mass-units",
    WARNING,
    "Very heavy for its size",
    "All links together weigh more than a block of rock of the robot's reach.",
    "Masses are in kg; divide by 1000 where they are in grams.",
)
_DEGREES = FindingKind(
    "limits-in-degrees",
    WARNING,
    "Limits look like degrees",
    "Angles are in radians: 90 would be 14 turns. Nothing is limited as it should be.",
    "Multiply by pi/180; for a joint that turns without end, use type continuous.",
)
_RPY_DEGREES = FindingKind(
    "angles-in-degrees",
    WARNING,
    "Angles of an origin look like degrees",
    "rpy is in radians, and no angle of more than a turn is ever needed.",
    "Multiply by pi/180.",
)
_MILLIMETRES = FindingKind(
    "lengths-in-millimetres",
    WARNING,
    "Lengths look like millimetres",
    "Torques of gravity grow with the lengths, inertias with their squares.",
    'Divide by 1000; a mesh in millimetres takes scale="0.001 0.001 0.001".',
)
_NO_LIMITS = FindingKind(
    "missing-limits",
    WARNING,
    "No position limits",
    "The joint is taken as free: plans and simulations go through the stops.",
    'Add <limit lower="..." upper="..." effort="..." velocity="..."/>, or use type'
    " continuous.",
)
_ZERO_RANGE = FindingKind(
    "zero-range",
    WARNING,
    "Upper and lower limit are equal",
    "The joint cannot move, but has a coordinate: stops act on it all the time.",
    "Give a range, or type fixed. A <limit> without lower and upper means 0 and 0.",
)
_NO_EFFORT = FindingKind(
    "no-effort-limit",
    WARNING,
    "No effort limit",
    "0 or nothing never means unlimited here: the nodes ask for a limit before they"
    " drive the joint.",
    "Give effort in <limit> [N·m | N], or in the sidecar.",
)
_FOLLOWER = FindingKind(
    "follower-range",
    WARNING,
    "Limits of followers leave the leader no range",
    "The leader keeps its own limits, and the follower goes beyond its.",
    "Limits of a follower are those of q = multiplier q_leader + offset; mend them or"
    " the multiplier.",
)
_ZERO_MIMIC = FindingKind(
    "zero-mimic",
    WARNING,
    "A follower with multiplier 0",
    "It never moves, whatever its leader does.",
    "Give the multiplier, or type fixed.",
)
_WEAK = FindingKind(
    "weak-effort",
    WARNING,
    "Too weak for its own weight",
    "In some positions the effort limit is less than what gravity alone asks for, so"
    " the joint falls. Other links, the ground and self-collision are not considered.",
    "Check effort limits (those of the joint, behind the gear), masses and their units;"
    " or keep away from these positions.",
)
_CONDITION = FindingKind(
    "ill-conditioned",
    WARNING,
    "H is nearly singular",
    "Scaled to a diagonal of ones, the joint-space inertia matrix H has this condition"
    " number; accelerations lose as many digits as it has.",
    "Some motion of the named joints meets almost no inertia: give the last links their"
    " masses, or the joints an armature, or lock one.",
)
_ARMATURE = FindingKind(
    "large-armature",
    WARNING,
    "A rotor with more inertia than a hundred robots",
    "Nothing else counts at this joint: accelerations are nearly zero.",
    "Check the units of armature or of rotors (kg·m²; g·cm² is 1e-7 kg·m²), and the"
    " ratio of the gear, which counts squared.",
)
_LARGE_FRICTION = FindingKind(
    "large-friction",
    WARNING,
    "Dry friction above the effort limit",
    "The motor cannot move the joint: it stands still whatever is commanded.",
    "Check the units of friction in <dynamics> (N·m | N), or the effort limit.",
)
_LOADING = FindingKind(
    "loading",
    WARNING,
    "Doubts of loading",
    "What the file says there is changed or replaced by a default.",
    "See docs/loading.md; `check='error'` refuses such a file.",
)

SEVERE = (
    _UNREADABLE,
    _REFUSED,
    _TREE,
    _INERTIA,
    _ZERO_AXIS,
    _REVERSED,
    _NO_INERTIA,
    _LOST_MIMIC,
    _FAR,
    _OPEN_LOOP,
    _PART,
    _MOMENTS,
    _SHAPE,
    _IMPROBABLE,
    _DENSITY,
    _CENTRE,
    _INERTIA_UNITS,
    _MASS_UNITS,
    _DEGREES,
    _RPY_DEGREES,
    _MILLIMETRES,
    _NO_LIMITS,
    _ZERO_RANGE,
    _NO_EFFORT,
    _FOLLOWER,
    _ZERO_MIMIC,
    _WEAK,
    _CONDITION,
    _ARMATURE,
    _LARGE_FRICTION,
    _LOADING,
)


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
    "Start at model.start(), model.random(0) or model.position({...}).",
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


CATALOGUE = {kind.code: kind for kind in (*SEVERE, *HINTS)}
