"""Control of the wrench at a tool by a force-torque sensor: tare, contact, PI law."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dyn_core.control.modes.tool_targets import SENSOR, in_axes
from dyn_core.errors import SettingError, TargetError
from dyn_core.model import Model
from dyn_core.solving.control_mode import ModeMessage, ModeTopic
from dyn_core.validation import Field, ListOf, Name, Quantity, Switch

SAMPLES = 100  # number of samples that a tare averages
REST = 0.01  # joint speed up to which the tool rests [rad/s | m/s]
FAST = 2.0  # part of contact_speed from which an axis has no contact
AXES = ("moment x", "moment y", "moment z", "force x", "force y", "force z")
TOPIC, INTEGRAL = "cartesian.wrench_topic", "cartesian.wrench_integral"
WRENCH_FIELDS = (
    Field(TOPIC, Name(),
        "topic of a force-torque sensor, geometry_msgs/WrenchStamped: the wrench of the"
        " environment on what its link carries; empty: no sensor", "", ""),
    Field("cartesian.sensor_link", Name(),
        "link in whose frame the sensor measures; empty: frame_id of its messages",
        "", ""),
    Field("cartesian.sensor_weighs", Switch(),
        "whether the sensor measures the weight of what its link carries; not so"
        " ~/external_wrench, which may be the wrench_topic", "", True),
    Field("cartesian.tare", Switch(),
        "whether the sensor's offset is measured while the tool rests without contact:"
        " once after a configuration, and again when set to true", "", True,
        structure=False),
    Field("cartesian.wrench_gain", ListOf(Quantity(0.0, 10.0), 6),
        "gain of the error of the wrench, angular before linear; 0: the axis is not"
        " controlled", "1", [0.0] * 6, structure=False),
    Field(INTEGRAL, Quantity(0.0, 1e3),
        "rate at which the error of the wrench is integrated, times its gain",
        "1/s", 5.0, structure=False),
    Field("cartesian.wrench_limit", ListOf(Quantity(0.0, 1e4), 6),
        "largest wrench that the sensor adds, angular before linear",
        "N·m, N", [2.0] * 3 + [20.0] * 3, structure=False),
    Field("cartesian.contact_threshold", ListOf(Quantity(0.0, 1e4), 2),
        "measured moment and force below which the tool has no contact, if the target"
        " is at least twice as large; else half of the target",
        "N·m, N", [0.1, 1.0], structure=False),
    Field("cartesian.contact_speed", ListOf(Quantity(1e-4, 10.0), 2),
        "speed at which a target wrench pushes no more, and beyond which it brakes,"
        " angular and linear, on controlled axes without contact",
        "rad/s, m/s", [0.1, 0.01], structure=False),
)  # fmt: skip
WRENCH_TOPIC = ModeTopic(
    SENSOR,
    "geometry_msgs/WrenchStamped",
    "measured wrench, of a force-torque sensor",
    TOPIC,
)


def check_integral(
    values: Mapping[str, Any], period: float | None, share: float = 1.0
) -> None:
    """Raise a SettingError if no contact keeps the integral of the wrench stable.

        wrench_integral T < share (1 + 1 / wrench_gain)

    For a sensor one cycle late, this is the bound of a slow contact with much damping,
    and no mass on a spring with a damper is stable beyond it. Within it a stiff contact
    may be unstable, which depends on its damping. wrench_gain is the largest of all
    axes; nothing is checked if it is 0 or the period of the states T [s] is None.
    """
    gain, rate = max(values["cartesian.wrench_gain"]), values[INTEGRAL]
    if not period or not gain or rate * period < share * (1 + 1 / gain):
        return
    bound = share * (1 + 1 / gain) / period
    raise SettingError(
        f"{INTEGRAL} is {rate:g}; valid: less than {bound:.4g}"
        f" 1/s for a wrench_gain of {gain:g}, where states come each {period:.4g} s:"
        " beyond it no contact is stable",
        INTEGRAL,
    )


class ForceTorqueSensor:
    """A force-torque sensor in a robot, which carries the tool.

        reading = contact + weight + offset,   at the link's origin, in its axes

    The weight is that of the link and all links that it carries, by the Model, with the
    payload if one is attached to one of them. Their inertial forces count as contact.

    Attributes:
        link: Name of its link; empty before the first message names it.
        offset: Reading without contact and weight, [moment; force] in the link's axes,
            (6,) [N·m; N]; None while it is not measured yet.
        seen: Time of the last valid sample [s]; None before it.
    """

    def __init__(self, model: Model, tool: str, link: str, weighs: bool = True) -> None:
        self._model, self._weighs = model, weighs
        self._parents = {
            joint.child: joint.parent for joint in model.build.description.joints
        }
        self._bearers = [x for x in self._chain(tool) if model.frame(x).body]
        self.link = ""
        if link:
            if link not in self._bearers:
                raise SettingError(
                    f"cartesian.sensor_link is '{link}'; valid: empty, or a link that"
                    f" carries the tool: {', '.join(self._bearers)}",
                    "cartesian.sensor_link",
                )
            self.set_link(link)
        self.seen: float | None = None
        self._reading = np.zeros(6)
        self.offset: np.ndarray | None = None
        self.tare()

    def _chain(self, link: str | None) -> list[str]:
        """Return a link and those that carry it, up to the root; [] for no link."""
        chain = []
        while link in self._model.frame_names:
            chain.append(link)
            link = self._parents.get(link)
        return chain

    def set_link(self, link: str) -> None:
        """Set the sensor's link, unchecked, the links that it carries, their masses.

        A sensor that does not measure weights is treated as if it carried none.
        """
        self.link = link
        links = self._model.frame_names
        self._carried = [k for k, x in enumerate(links) if link in self._chain(x)]
        if not self._weighs:
            self._carried = []
        bodies = [self._model.frame(links[k]).inertia for k in self._carried]
        self._masses = np.array([[body.m, *body.h] for body in bodies], float)

    def check(self, frame: str) -> None:
        """Raise a TargetError if a message's frame_id is not the sensor's link.

        If that is not known yet, `frame` must carry the tool and be moved by a joint.
        """
        if frame not in ([self.link] if self.link else self._bearers):
            valid = self.link or f"a link that carries the tool: {self._bearers}"
            raise TargetError(f"{SENSOR}: frame_id is '{frame}'; valid: {valid}")

    def tare(self) -> None:
        """Begin to measure `offset`, None until 100 samples in a row at rest."""
        self.offset = None
        self._sum, self._count = np.zeros(6), 0

    def accept(
        self, t: float, reading: np.ndarray, poses: Any, rests: bool, payload: Any
    ) -> None:
        """Store a valid sample; 100 of them in a row at rest set a missing offset.

        The offset is the mean of reading - weight. Until it is known, a sample at rest
        raises ValueError if the link is not known. `reading` is [moment; force] at the
        link's origin in its axes, (6,) [N·m; N], neither checked nor copied. `poses`
        returns the poses of all links, (links, 4, 4); it is called for samples of the
        offset only. `rests`: the tool rests without a target wrench; if not, an
        unfinished measurement begins again.
        """
        self.seen, self._reading = t, reading
        if self.offset is not None:
            return
        if not rests:
            self.tare()
            return
        T = poses()
        axes = np.kron(np.eye(2), T[self._index][:3, :3])
        self._sum = self._sum + reading - axes.T @ self._weight(T, payload)
        self._count += 1
        if self._count == SAMPLES:
            self.offset = self._sum / SAMPLES

    @property
    def _index(self) -> int:
        """Index of the link in model.frame_names. ValueError before it is known."""
        return self._model.frame_names.index(self.link)

    def contact(self, T: np.ndarray, tool: int, payload: Any) -> np.ndarray:
        """Return the wrench of the environment on the tool, [moment; force], (6,).

        It is computed from the last sample, before one from a reading of zeros, about
        the tool's origin and in base axes [N·m; N]. AssertionError if the offset is not
        known, ValueError if the sensor's link is not.
        """
        assert self.offset is not None
        axes = np.kron(np.eye(2), T[self._index][:3, :3])
        f = axes @ (self._reading - self.offset) - self._weight(T, payload)
        arm = T[self._index][:3, 3] - T[tool][:3, 3]
        return np.concatenate([f[:3] + np.cross(arm, f[3:]), f[3:]])

    def _weight(self, T: np.ndarray, payload: Any) -> np.ndarray:
        """Return the weight that the sensor carries, [moment; force], (6,) [N·m; N].

        It acts at the origin of the sensor's link, in base axes, and is zero if the
        sensor does not measure weights. `payload` counts if the sensor carries its
        link.
        """
        parts = list(zip(self._carried, self._masses, strict=True))
        links = self._model.frame_names
        if payload.link and links.index(payload.link) in self._carried:
            parts.append((links.index(payload.link), payload.values[0][:4]))
        gravity = np.array(list(self._model.a_grav.lin), float)
        mass, moment = 0.0, np.zeros(3)
        for k, (m, *h) in parts:
            arm = T[k][:3, 3] - T[self._index][:3, 3]
            mass, moment = mass + m, moment + T[k][:3, :3] @ h + m * arm
        return np.concatenate([np.cross(moment, gravity), mass * gravity])


class WrenchControl:
    """Adds the error of the wrench to a target wrench, by a PI law on chosen axes.

        f = f_ref (1 - (1 - c) v / contact_speed) + s c clip(gain e + I, wrench_limit)
        e = f_ref - wrench that the tool exerts,   dI/dt = c gain wrench_integral e

    s is the share of the target wrench, ToolTargets.share, which f_ref contains. Speed
    v lowers f_ref on axes with a gain only, see `_brake`. c is the share of the contact
    of an axis: 0 without contact, and at twice contact_speed along f_ref; there the
    tool approaches at about contact_speed. It is 1 from target_timeout after its
    beginning. I, `integral`, (6,) in the axes of cartesian.reference, fades in
    target_timeout without contact and without samples, is bounded by wrench_limit, and
    does not grow while efforts are at their limits. f = I = 0 without a target wrench.
    """

    def __init__(self, law: Any) -> None:
        self._law = law
        values = law.host.parameters
        model, link = law.host.model, values["cartesian.sensor_link"]
        weighs = values["cartesian.sensor_weighs"]
        self.sensor = ForceTorqueSensor(model, law.link, link, weighs)
        self._tare = True
        if not values["cartesian.tare"]:
            self.sensor.offset = np.zeros(6)
        self.clear()
        self.change()

    def clear(self) -> None:
        """Set integral and contact to zero, delete all warnings; the offset stays."""
        self.integral, self._contact, self._error = np.zeros((3, 6))
        self.warnings: dict[str, str] = {}

    def change(self) -> None:
        """Use the changed parameters of the law's host.

        If cartesian.tare has become true, a tare begins; if false, an unfinished one or
        the offset stays. sensor_link and sensor_weighs are read at construction only.
        """
        values = self._law.host.parameters
        self.gain = np.array(values["cartesian.wrench_gain"], float)
        self._acts = bool(self.gain.any())
        self._rate = values[INTEGRAL]
        self._limit = np.array(values["cartesian.wrench_limit"], float)
        self._threshold = np.repeat(values["cartesian.contact_threshold"], 3)
        self._speed = np.repeat(values["cartesian.contact_speed"], 3)
        self._named = bool(values[TOPIC])
        tare, before = values["cartesian.tare"], self._tare
        self._tare = tare
        if tare and not before:
            self.sensor.tare()

    def receive(self, message: ModeMessage) -> None:
        """Use a sample of topic sensor_wrench; TargetError: invalid, of another link.

        It is [moment; force] in the axes of the sensor's link, (6,) [N·m; N]. Without
        an offset it also counts for the tare, if the law acts and the tool rests
        without a target wrench. A set cartesian.sensor_link replaces its frame_id.
        """
        law, host = self._law, self._law.host
        link = host.parameters["cartesian.sensor_link"] or message.frame
        self.sensor.check(link)
        x = law.targets.receive(message)
        if not self.sensor.link:  # that of the first valid sample
            self.sensor.set_link(link)
        acts = law.targets.R is not None and host.safety.running is None
        rests = acts and host.enabled and not law.targets.share
        rests = rests and bool((np.abs(host.samples.qd) <= REST).all())
        self.sensor.accept(message.t, x, law.poses, rests, host.carried)

    def wrench(self, t: float, step: float, R: np.ndarray | None) -> np.ndarray:
        """Return the wrench for the law, in the axes of cartesian.reference, (6,).

        It must be called once in each cycle: contact, integral and `warnings` are
        updated. R is the rotation matrix of these axes in the base; None: base axes.
        While all gains are zero, or with neither a topic nor samples of the sensor, the
        result is the target wrench alone [N·m; N], perhaps targets.f itself, not a
        copy, and nothing is updated. Without a target wrench it is zero, and contact
        and integral are cleared. If the sensor is silent or its offset is not known,
        what was added for it fades within the timeout of targets, and a warning is set.
        """
        law, targets, sensor = self._law, self._law.targets, self.sensor
        f, on = in_axes(targets.f, R), self.gain > 0
        if not self._acts or not (self._named or sensor.seen is not None):
            return f
        missing = self._missing(t, targets.timeout)
        if not targets.share:
            self.clear()
        self.warnings = {"sensor": missing} if missing else {}
        if not targets.share:
            return f
        into = np.eye(6) if R is None else np.kron(np.eye(2), R.T)
        fade, brake = step / targets.timeout, self._brake(f, step, into)
        if missing:  # the last error fades with the share of the contact
            self._contact = np.maximum(self._contact - fade, 0.0) * (brake < FAST)
            touches = np.zeros(6, bool)
        else:
            tool = targets.links.index(law.link)
            exerted = -into @ sensor.contact(law.poses(), tool, law.host.carried)
            least = np.minimum(self._threshold, 0.5 * np.abs(f))
            # The inertia of what the sensor carries feels like contact in free flight.
            touches = (np.sign(f) * exerted >= least) & (brake < FAST)
            self._contact = np.minimum(self._contact + fade, 1.0) * touches
            self._error = np.where(touches, f - exerted, 0.0)
            self._tell_contact(on & ~touches, f, exerted)
        self._integrate(touches, step, fade)
        added = np.clip(
            self.gain * self._error + self.integral, -self._limit, self._limit
        )
        slowed = np.where(on, (1 - self._contact) * brake, 0.0)
        return f * (1 - slowed) + targets.share * self._contact * added

    def _integrate(self, touches: np.ndarray, step: float, fade: float) -> None:
        """Advance the integral of axes with contact and a gain; all others fade.

        It uses _error and _contact of this cycle. While any effort is at its limit, it
        only changes towards zero. `fade` is step divided by the timeout of targets.
        """
        before = self.integral
        after = before + self._contact * self.gain * self._rate * self._error * step
        after = np.clip(after, -self._limit, self._limit)
        if self._law.host.safety.saturated.any():
            after = np.where(np.abs(after) < np.abs(before), after, before)
        faded = before * max(1.0 - fade, 0.0)
        self.integral = np.where(touches & (self.gain > 0), after, faded)

    def _brake(self, f: np.ndarray, step: float, into: np.ndarray) -> np.ndarray:
        """Return the fraction by which speed lowers each component of a wrench, (6,).

            sign(f) v / contact_speed,   limited to -1..2

        v is the velocity of the tool relative to the reference. So beyond contact_speed
        the wrench brakes, which wrong masses may require. Where the sampled damping f /
        contact_speed would make the tool unstable, f step / m takes the place of
        contact_speed, m the mass along the axis. `into` turns from base axes into those
        of f.
        """
        law = self._law
        v = into @ (law.velocity() - law.targets.v)
        speed = np.maximum(self._speed, np.abs(f) * step * law.mobility())
        return np.clip(np.sign(f) * v / speed, -1.0, FAST)

    def _missing(self, t: float, timeout: float) -> str:
        """Return why the sensor is not used, or an empty string."""
        sensor, goes = self.sensor, "the law goes on without it"
        if sensor.seen is None:
            return f"the force-torque sensor has sent nothing yet: {goes}"
        if t - sensor.seen > timeout:
            return (
                f"the force-torque sensor is silent for {t - sensor.seen:.2f} s: {goes}"
            )
        if sensor.offset is None:
            how = f"{SAMPLES} samples at rest without a target wrench"
            return f"the tare of the force-torque sensor waits for {how}: {goes}"
        return ""

    def _tell_contact(self, lost: np.ndarray, f: Any, exerted: Any) -> None:
        """Set the warning of axes without contact, if there are any."""
        if lost.any():
            parts = [
                f"{AXES[k]} {exerted[k]:.3g} of {f[k]:.3g} {'N' if k > 2 else 'N·m'}"
                for k in np.flatnonzero(lost)
            ]
            slow = "the tool approaches at cartesian.contact_speed"
            self.warnings["contact"] = f"no contact: {', '.join(parts)}; {slow}"
