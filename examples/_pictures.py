"""Pictures of the examples."""

import numpy as np


def pyplot():
    """Return matplotlib's pyplot for files, without a window."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def save(figure, path, dpi=100):
    """Write a picture, and its folder where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=dpi)
    pyplot().close(figure)
    return path


def draw_training(curve, path):
    """Draw the reward and the part that stood over the time of training."""
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(10, 3.2))
    left.plot(curve[:, 0], curve[:, 1])
    left.set(xlabel="time of training [s]", ylabel="sum of rewards")
    right.plot(curve[:, 0], 100 * curve[:, 2])
    right.set(xlabel="time of training [s]", ylabel="stood [%]")
    figure.tight_layout()
    return save(figure, path)


def draw_torques(motion, curves, path):
    """Draw measured torques of a motion and predicted ones, joint by joint."""
    n = motion.tau.shape[1]
    figure, axes = pyplot().subplots(n, 1, sharex=True, figsize=(9, 1.5 * n))
    for k, ax in enumerate(axes):
        ax.plot(motion.t, motion.tau[:, k], color="0.7", lw=2, label="measured")
        for name, tau in curves.items():
            ax.plot(motion.t, tau[:, k], lw=0.9, label=name)
        ax.set_ylabel(f"joint {k + 1} [N·m]")
    axes[0].legend(loc="upper right", ncol=3)
    axes[-1].set_xlabel("t [s]")
    figure.tight_layout()
    return save(figure, path, dpi=80)


def draw_lessons(results, path):
    """Draw learning curves, and cos(angle) of fresh starts over time.

    Args:
        results: By lesson: its name, scores (rounds, 2), the part of the starts that
            ends upright, time of a step [s], cosines (steps + 1, starts).
        path: Picture to write.
    """
    size = (10, 3.2 * len(results))
    figure, axes = pyplot().subplots(len(results), 2, figsize=size, squeeze=False)
    for (left, right), (name, scores, rate, dt, cosines) in zip(
        axes, results, strict=True
    ):
        left.plot(scores, label=["best", "mean"])
        left.set(title=name, xlabel="round", ylabel="sum of rewards")
        left.legend()
        time = np.arange(len(cosines)) * dt
        right.plot(time, cosines[:, :30], color="C0", alpha=0.3)
        right.set(title=f"{rate:.0%} of new starts end upright", xlabel="s")
        right.set(ylabel="cos(angle)")
    figure.tight_layout()
    return save(figure, path, dpi=110)


def draw_payload(rows, path):
    """Draw mass, first moments and moments of inertia over time, with two deviations.

    Args:
        rows: t, and ten numbers a row: truth, ten, deviations.
        path: Picture to write.
    """
    parts = (("mass [kg]", [0]), ("first moments [kg·m]", [1, 2, 3]))
    parts += (("Ixx, Iyy, Izz [kg·m²]", [4, 6, 9]),)
    figure, axes = pyplot().subplots(3, 1, sharex=True, figsize=(9, 7))
    for ax, (title, columns) in zip(axes, parts, strict=True):
        for n, k in enumerate(columns):
            x, s = rows["ten"][:, k], rows["deviations"][:, k]
            ax.fill_between(rows["t"], x - 2 * s, x + 2 * s, color=f"C{n}", alpha=0.3)
            ax.plot(rows["t"], x, color=f"C{n}")
            ax.plot(rows["t"], rows["truth"][:, k], color=f"C{n}", ls="--", lw=0.9)
        known = rows["truth"][:, columns]
        low, high = known.min(), known.max()
        margin = 0.6 * (high - low) + 0.3 * abs(known).max()
        ax.set(ylabel=title, ylim=(low - margin, high + margin))
    axes[-1].set_xlabel("t [s]; dashed: the truth, bands: two standard deviations")
    figure.tight_layout()
    return save(figure, path)
