"""Learn a payload from joint forces, in PyTorch: physics is a layer with gradients.

    pip install '.[torch]' && python examples/torch_training.py

An arm carries something unknown; its joint forces are measured with noise, and its
joints have friction that no model describes. What it carries (mass and centre of mass)
is learned through inverse dynamics, and the friction by a network beside it, together.
"""

import numpy as np
import torch

import dyn_core as dyn
from dyn_core.bridges import torch as dyn_torch

ROUNDS, ROWS = 300, 512
TRUTH = (1.3, 0.05, -0.02, 0.08)  # mass [kg], centre of mass in link7 [m]


def payload(values):
    """Return the ten parameters of a point mass: m, m c, inertia about the origin."""
    m, c = values[0], values[1:]
    (x, y, z), square = c, (c * c).sum()
    inertia = square - x * x, -x * y, square - y * y, -x * z, -y * z, square - z * z
    return torch.stack([m, *(m * c), *(m * i for i in inertia)])


def main():
    """Train, and print what was learned."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    model = dyn.load("arm7")
    program = dyn.solver("rnea").build(model, inputs=["link7.payload"])
    rnea = dyn_torch.function(program)

    q, qd, qdd = (torch.tensor(rng.uniform(-x, x, (ROWS, 7))) for x in (2, 2, 4))
    truth = torch.tensor(TRUTH, dtype=torch.float64)
    with torch.no_grad():
        friction = 0.4 * torch.tanh(8 * qd) + 0.2 * qd
        measured = rnea(q, qd, qdd, payload(truth)) + friction
        measured += 0.05 * torch.randn(ROWS, 7, dtype=torch.float64)

    learned = torch.tensor(
        [0.2, 0.0, 0.0, 0.0], dtype=torch.float64, requires_grad=True
    )
    layers = torch.nn.Linear(1, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)
    network = torch.nn.Sequential(*layers).double()
    optimiser = torch.optim.Adam(
        [
            {"params": [learned], "lr": 0.02},
            {"params": network.parameters(), "lr": 0.02},
        ]
    )
    print("round   error [N m]   mass [kg]   centre of mass [m]")
    for k in range(ROUNDS + 1):
        guess = rnea(q, qd, qdd, payload(learned)) + network(qd[..., None])[..., 0]
        loss = ((guess - measured) ** 2).mean()
        if k % 60 == 0:
            mass, *centre = learned.tolist()
            shown = ", ".join(f"{x:6.3f}" for x in centre)
            print(f"{k:5d}   {loss.sqrt().item():11.4f}   {mass:9.3f}   {shown}")
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    print(
        "truth"
        + " " * 19
        + f"{TRUTH[0]:6.3f}   "
        + ", ".join(f"{x:6.3f}" for x in TRUTH[1:])
    )
    speeds = torch.tensor([[0.1], [1.0]], dtype=torch.float64)
    print("friction at 0.1 and 1 rad/s:", end=" ")
    print(", ".join(f"{x:.2f}" for x in network(speeds)[:, 0].tolist()), end=" N m;")
    print(
        " truth", ", ".join(f"{0.4 * np.tanh(8 * x) + 0.2 * x:.2f}" for x in (0.1, 1.0))
    )
    assert abs(learned[0].item() - TRUTH[0]) < 0.05


if __name__ == "__main__":
    main()
