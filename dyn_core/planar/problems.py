"""Problems of planar chains, planar objects and their tasks.

The constraints of joints (kind, s, a_w, active, alpha_w) are optional inputs: the
chain's own hold unless a Program is built with inputs=[...] for them.
"""

from dyn_core.problems.signatures import Signature
from dyn_core.problems.signatures import port_row as P

CHAIN, OBJECT, TASK = "planar_chain", "planar_object", "task"

# fmt: off
x = P("x", "n 2", "m", "positions of the joints")
v = P("v", "n 2", "m/s", "velocities of the joints")
F = P("F", "n 2", "N", "external force on each joint")
tau = P("tau", "n", "N·m", "torque at each joint")
dt = P("dt", "", "s", "length of the step")
kind = P("kind", "n", "0 free, 1 line, 2 guided", "constraint of each joint",
    optional=True)
s = P("s", "n 2", "1", "unit normal of each joint's line", optional=True)
a_w = P("a_w", "n 2", "m/s²", "prescribed acceleration of guided joints",
    optional=True)
active = P("active", "n", "0 | 1",
    "whether the joint's angular acceleration is prescribed", optional=True)
alpha_w = P("alpha_w", "n", "rad/s²",
    "prescribed angular accelerations of active joints", optional=True)

a = P("a", "n 2", "m/s²", "accelerations of the joints")
F_d = P("F_d", "n 2", "N", "force of the link before on each joint")
tau_w = P("tau_w", "n", "N·m", "torques of active joints")
alpha = P("alpha", "n", "rad/s²", "angular accelerations of the joints")
reaction = P("reaction", "n 2", "N", "force of the support on each joint")
dropped = P("dropped", "n 2", "0 | 1",
    "constraints given up: length of the link after, angle")
jump = P("jump", "n 2", "m/s", "velocity change of guided joints")
turn = P("turn", "n", "rad/s", "rate change of active angles")
v_next = P("v_next", "n 2", "m/s", "velocities after the impact")
impulse = P("impulse", "n 2", "N·s", "support impulse on each joint")
torque_impulse = P("torque_impulse", "n", "N·m·s", "impulses of active joints")
loss = P("loss", "", "J", "kinetic energy lost")
J = P("J", "n n 2 2", "1/kg", "acceleration of each joint per force on each joint")
S = P("S", "n n", "1/(kg·m²)",
    "angular acceleration of each joint per torque at each joint")
contact = P("contact", "n", "0 off, k on ground k-1", "ground that each joint is on")
limit = P("limit", "n", "0 off, 1 upper, -1 lower",
    "limit that each joint angle is at")
impact_loss = P("loss", "", "J", "energy lost in impacts")

q = P("q", "nq", "rad | m", "positions")
qd = P("qd", "nq", "rad/s | m/s", "velocities")
u = P("u", "nu", "N·m | N | V", "motor torques, forces or voltages")
qdd = P("qdd", "nq", "rad/s² | m/s²", "accelerations")
kinetic = P("kinetic", "", "J", "kinetic energy")
potential = P("potential", "", "J", "potential energy")

state = P("state", "ns", "SI", "state of the task")
action = P("action", "na", "SI", "action of the agent")
observation = P("observation", "no", "SI", "what the agent observes")
reward = P("reward", "", "1", "reward of the step")
terminated = P("terminated", "", "0 | 1", "whether the episode ends")

CHAIN_FORCES = Signature("chain_forces", (x, v, tau), (F,), system=CHAIN,
    meaning="external forces on the joints: gravity, torques, resistance")
CHAIN_ACCELERATIONS = Signature("chain_accelerations",
    (x, v, F, kind, s, a_w, active, alpha_w),
    (a, F_d, tau_w, alpha, reaction, dropped), system=CHAIN,
    meaning="accelerations of a planar chain under forces and constraints")
CHAIN_IMPACT = Signature("chain_impact",
    (x, v, jump, turn, kind, s, active), (v_next, impulse, torque_impulse, loss),
    system=CHAIN,
    meaning="velocities of a planar chain after a plastic impact")
CHAIN_FORCE_JACOBIAN = Signature("chain_force_jacobian", (x, kind, s, active), (J,),
    system=CHAIN, meaning="accelerations of the joints per force on each joint")
CHAIN_TORQUE_RESPONSE = Signature("chain_torque_response", (x, kind, s, active), (S,),
    system=CHAIN,
    meaning="angular accelerations of the joints per torque at each joint")
CHAIN_TORQUES = Signature("chain_torques",
    (x, v, F, kind, s, a_w, active, alpha_w), (tau,), system=CHAIN,
    meaning="joint torques that reach prescribed accelerations")
CHAIN_STEP = Signature("chain_step",
    (x, v, tau, dt, kind, s, a_w, active, alpha_w), (x, v), system=CHAIN,
    meaning="state of a planar chain after a step in time")
CHAIN_EVENT_STEP = Signature("chain_event_step",
    (x, v, contact, limit, tau, dt), (x, v, contact, limit, impact_loss),
    system=CHAIN,
    meaning="state of a planar chain after a step with ground contacts and limits")

OBJECT_DYNAMICS = Signature("object_dynamics", (q, qd, u), (qdd,), system=OBJECT,
    meaning="accelerations of a planar object")
OBJECT_ENERGY = Signature("object_energy", (q, qd), (kinetic, potential),
    system=OBJECT, meaning="kinetic and potential energy of a planar object")
OBJECT_STEP = Signature("object_step", (q, qd, u, dt), (q, qd), system=OBJECT,
    meaning="state of a planar object after a step in time")
TASK_STEP = Signature("task_step",
    (state, action), (state, observation, reward, terminated), system=TASK,
    meaning="state, observation and reward of a learning task after a step")
# fmt: on

PROBLEMS: tuple[Signature, ...] = (
    CHAIN_ACCELERATIONS,
    CHAIN_EVENT_STEP,
    CHAIN_FORCES,
    CHAIN_FORCE_JACOBIAN,
    CHAIN_IMPACT,
    CHAIN_STEP,
    CHAIN_TORQUES,
    CHAIN_TORQUE_RESPONSE,
    OBJECT_DYNAMICS,
    OBJECT_ENERGY,
    OBJECT_STEP,
    TASK_STEP,
)
