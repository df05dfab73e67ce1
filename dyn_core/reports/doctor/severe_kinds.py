"""Errors and warnings of `dyn doctor`: faults that make a robot unusable or wrong."""

from dyn_core.reports.doctor.kinds import ERROR, WARNING, FindingKind

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
    "Radius of gyration larger than the robot",
    "sqrt(I / m) says how far from its centre the mass of a link lies; here it is"
    " further than the whole robot reaches.",
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
    _LOADING,
)
