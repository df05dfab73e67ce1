"""Viewer: a VisualScene in a browser, with sliders, switches, time line, curves.

LAYERS are visual, collision, inertia, centre of mass, frames and contact forces.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dyn_core.errors import DynError, UnsupportedError
from dyn_core.validation.quoting import html_text
from dyn_core.view import colors
from dyn_core.view.browser.server import HOST, PORT, start_server, stop_server
from dyn_core.view.browser.stage import LAYERS, Stage
from dyn_core.view.replay import Arrows, Replay
from dyn_core.view.scene import COLLISION, INERTIA, VisualScene

MOST_POINTS = 500  # maximum points of a curve
MOST_NAMED = 8  # maximum curves of a plot with a legend
STEPS = 100  # steps of the mark from left to right
MARK = "#202020"
# Dashes of curves [pixels], and the CSS that looks like them: beyond seven curves the
# colours begin again.
DASHES: tuple[tuple[str, list[int]], ...] = (
    ("solid", []), ("dashed", [6, 3]), ("dotted", [2, 2]), ("double", [9, 2, 2, 2]),
)  # fmt: skip
ABOVE, BESIDE = 12, 14  # padding of a plot, so that no tick label is cut off [pixels]
LABEL = 70  # width of the labels beside a plot; uPlot's 50 cut the sign of -0.025 off
# viser's labels are light grey, and their letters are squeezed.
STYLE = (
    "<style>:root[data-mantine-color-scheme=light]{--mantine-color-dimmed:#495057}"
    "label,.mantine-Text-root{letter-spacing:normal!important}"
    ".mantine-Slider-markLabel{color:var(--mantine-color-dimmed)}</style>"
)


class Curves:
    """The plots of a panel, one for each group of curves; `plots` are their handles."""

    def __init__(self, gui: Any, replay: Replay) -> None:
        rows = np.unique(np.linspace(0, len(replay.t) - 1, MOST_POINTS).astype(int))
        self._t = replay.t[rows] - replay.t[0]
        self._step = replay.duration / STEPS
        self._time = 0.0
        self._columns = []
        self.plots = []
        joints = dict.fromkeys(
            x for listed, _ in replay.curves.values() for x in listed
        )
        looks = {name: _look(k) for k, name in enumerate(joints)}
        many = max(len(listed) for listed, _ in replay.curves.values()) > MOST_NAMED
        if many:
            gui.add_html(_legend(looks))
        for title, (names, values) in replay.curves.items():
            columns = np.nan_to_num(values[rows].T)
            self._columns.append(columns)
            self.plots.append(
                gui.add_uplot(
                    with_mark(self._t, columns, self._time),
                    (
                        {"label": "t [s]"},
                        *(
                            {
                                "label": name,
                                "stroke": stroke,
                                "width": 1.5,
                                "dash": DASHES[dash][1],
                            }
                            for name in names
                            for stroke, dash in [looks[name]]
                        ),
                        {"label": "now", "stroke": MARK, "width": 1.0},
                    ),
                    title=title,
                    scales={"x": {"time": False}, "y": {"range": y_range(columns)}},
                    legend={"show": not many},
                    aspect=1.6,
                    axes=({}, {"size": LABEL}),
                    padding=(ABOVE, BESIDE, 0, 0),
                )
            )

    def mark(self, time: float, all_steps: bool = False) -> None:
        """Move the mark in all plots to a time since the start [s].

        Steps below 1/100 of the run's duration are ignored unless `all_steps`, as each
        step sends all curves.
        """
        if time == self._time or (
            abs(time - self._time) < self._step and not all_steps
        ):
            return
        self._time = time
        for plot, columns in zip(self.plots, self._columns, strict=True):
            plot.data = with_mark(self._t, columns, time)


def with_mark(
    t: np.ndarray, columns: np.ndarray, time: float
) -> tuple[np.ndarray, ...]:
    """Return times, curves and a last curve with a vertical line at one time.

    They are k + 2 arrays (n + 3,) of t (n,) and k curves (k, n), which have three
    equal, interpolated points at the mark. The line goes from the top of y_range to
    below it; at all other times it is there, out of sight.
    """
    bottom, top = y_range(columns)
    place = int(np.searchsorted(t, time, side="right"))
    times = np.insert(t, place, [time] * 3)
    curves = [
        np.insert(column, place, [float(np.interp(time, t, column))] * 3)
        for column in columns
    ]
    mark = np.full(len(times), bottom - (top - bottom))
    mark[place + 1] = top
    return times, *curves, mark


def y_range(columns: np.ndarray) -> tuple[float, float]:
    """Return (low, high) of a plot: the values' range, and a tenth of it beyond."""
    low, high = float(columns.min()), float(columns.max())
    margin = 0.1 * (high - low) or 1.0
    return low - margin, high + margin


def _look(k: int) -> tuple[str, int]:
    """Return the colour of the curves of joint k, from 0, and the index of its dash.

    After as many joints as there are colours the next dash of DASHES follows.
    """
    count = len(colors.CURVES)
    return colors.CURVES[k % count], k // count % len(DASHES)


def _legend(looks: Mapping[str, tuple[str, int]]) -> str:
    """Return the legend of all plots as HTML, from (colour, index of dash) by name."""
    line = "display:inline-block;width:20px;vertical-align:middle;margin-right:6px"
    entries = [
        '<div style="white-space:nowrap;overflow:hidden;text-overflow:ellipsis"'
        f' title="{html_text(name)}"><span style="{line};border-top:'
        f'{3 if dash == 3 else 2}px {DASHES[dash][0]} {stroke}"></span>'
        f"{html_text(name)}</div>"
        for name, (stroke, dash) in looks.items()
    ]
    style = "columns:2;font-size:11px;line-height:1.6;padding:0 12px"
    return f'<div style="{style}">{"".join(entries)}</div>'


__all__ = ["Curves", "with_mark", "y_range"]


SPEEDS = {"1/10": 0.1, "1/4": 0.25, "1/2": 0.5, "1": 1.0, "2": 2.0, "5": 5.0}
RATE = 30.0  # frames of a replay per second
PLAY, PAUSE = "Play", "Pause"
COLORED = "joint forces as colours"


class Viewer:
    """A scene in a browser; it is served until `close`.

        with Viewer(RobotScene(model)) as viewer:
            print(viewer.address)

    A scene with a sketch is served at once; `finish` replaces the sketch by its
    visuals. Without a `replay` sliders move the scene, if `sliders` is true. `time` is
    since the replay's start [s], `speed` relative to real time; with `repeat` a replay
    begins again at its end. With `torque_colors` colours of bodies show joint forces.
    """

    def __init__(
        self,
        scene: VisualScene,
        replay: Replay | None = None,
        host: str = HOST,
        port: int = PORT,
        sliders: bool = True,
    ) -> None:
        self.scene, self.replay, self._movable = scene, replay, sliders
        self.server = start_server(host, port, scene.name)
        self._lock = threading.RLock()
        self._following = False  # True while sliders are set from the state
        self.address = f"http://{host}:{self.server.get_port()}"
        self.time, self.playing, self.speed = 0.0, False, 1.0
        self.repeat = True
        self.state = scene.start() if replay is None else replay.state(0.0)
        self._first = self.state if replay is None else None
        self.stage = self._stage()
        self.torque_colors = False
        self._colored: Any = None
        self._sliders: list[Any] = []
        self._boxes: dict[str, Any] = {}
        self.curves: Curves | None = None
        self._fill_panel()
        self.refresh()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server; the viewer cannot be used afterwards."""
        stop_server(self.server)

    def finish(self) -> None:
        """Replace a sketch, if any, by the visuals; wait until they are made."""
        if not self.scene.sketch:
            return
        self.scene.parts()  # slow, hence without the lock
        with self._lock:
            if self.state is self._first:
                self.state = self.scene.start()
                self._follow()
            shown = self.stage.layers
            with self.server.atomic():
                self.server.scene.reset()
                self.stage = self._stage()
                for layer, wanted in shown.items():
                    self.stage.show(layer, wanted)
            self._notes.content = self._said("")
            self.refresh()

    def _stage(self) -> Stage:
        """Return a Stage with the sketch, or the visuals if there is none.

        Its nodes are added to the server. The camera sees the whole run, if there is
        one.
        """
        scene, replay, camera = self.scene, self.replay, None
        visual = scene.sketch or scene.parts()
        if replay is not None:
            rows = np.unique(np.linspace(0, len(replay.t) - 1, 40).astype(int))
            camera = scene.camera(scene.poses(replay.states[rows]), visual)
        return Stage(self.server, scene, camera, visual)

    # The panel.

    def _fill_panel(self) -> None:
        """Add all controls to the panel; sets `curves` if the replay has some.

        Sliders of joints are added only without a replay, and if the viewer was made
        with `sliders`. Colours can be switched if the replay has joint forces, or with
        neither replay nor `sliders`.
        """
        gui = self.server.gui
        gui.configure_theme(show_logo=False, show_share_button=False)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(320)
        gui.add_html(STYLE)
        if self.replay is not None:
            self._fill_replay(gui, self.replay)
        with gui.add_folder("Show", expand_by_default=True):
            for layer in self._switchable():
                self._boxes[layer] = gui.add_checkbox(layer, self.stage.layers[layer])
                self._boxes[layer].on_update(self._switch(layer))
            live = self.replay is None and not self._movable
            if live or (self.replay is not None and self.replay.tau is not None):
                self._colored = gui.add_checkbox(COLORED, False)
                self._colored.on_update(self._switch_colors)
                meaning = "share of the effort limit"
                if self.replay is not None:
                    meaning = self.replay.share_meaning
                gui.add_html(colors.torque_legend(meaning))
        self._notes = gui.add_html(self._said(""))
        if self._movable and self.scene.sliders and self.replay is None:
            self._fill_joints(gui)
        if self.replay is not None and self.replay.curves:
            with gui.add_folder("Curves"):
                self.curves = Curves(gui, self.replay)

    def _switchable(self) -> list[str]:
        """Return the layers that can be shown, in the order of LAYERS.

        Left out are the centre of mass without masses, contact forces without a run
        that has some, and collision shapes and inertias of planar systems.
        """
        poses = self.scene.poses(self.state)
        lacking = {
            "centre of mass": self.scene.mass_centre(poses) is None,
            "contact forces": self.replay is None or self.replay.contacts is None,
        }
        planar = getattr(self.scene, "model", None) is None
        lacking |= {COLLISION: planar, INERTIA: planar}
        return [layer for layer in LAYERS if not lacking.get(layer)]

    def _fill_joints(self, gui: Any) -> None:
        """Add a slider for each coordinate, and the buttons start and random."""
        with gui.add_folder("Joints"):
            actions = {"start": self.scene.start, "random": self._random}
            buttons = gui.add_button_group("move to", tuple(actions))
            buttons.on_click(
                lambda event: self.show_state(actions[event.target.value]())
            )
            for k, slider in enumerate(self.scene.sliders):
                # the step below is a power of ten of the span, which must be positive
                span = max(slider.high - slider.low, 1e-9)
                start = round(float(np.clip(slider.start, slider.low, slider.high)), 6)
                control = gui.add_slider(
                    slider.name,
                    min=slider.low,
                    max=max(slider.high, slider.low + 1e-9),
                    step=10.0 ** np.floor(np.log10(span / 1000)),
                    initial_value=min(max(start, slider.low), slider.high),
                    hint=f"{slider.low:.4g} .. {slider.high:.4g} {slider.unit}",
                )
                control.on_update(self._moved(k))
                self._sliders.append(control)

    def _fill_replay(self, gui: Any, replay: Replay) -> None:
        """Add the controls of the replay: play, time, speed and repeat."""
        with gui.add_folder("Replay"):
            self._button = gui.add_button(PLAY)
            self._button.on_click(lambda _: self.play(not self.playing))
            self._line = gui.add_slider(
                "time [s]",
                min=0.0,
                max=max(replay.duration, 1e-3),
                step=0.001,
                initial_value=0.0,
            )
            self._line.on_update(self._scrubbed)
            chosen = gui.add_dropdown("speed", tuple(SPEEDS), initial_value="1")
            chosen.on_update(lambda event: self._set_speed(event.target.value))
            again = gui.add_checkbox("repeat", self.repeat)
            again.on_update(
                lambda event: setattr(self, "repeat", bool(event.target.value))
            )

    def _said(self, more: str) -> str:
        """Return the scene's notes and one more ("": none) as HTML, escaped.

        While the scene has a sketch, they also say that meshes are being read.
        """
        reading = "meshes are being read" if self.scene.sketch else ""
        notes = [html_text(x) for x in [*self.scene.notes, reading, more] if x]
        return "".join(f'<p style="padding:0 12px"><i>{x}</i></p>' for x in notes)

    # Callbacks of the controls.

    def _switch(self, layer: str) -> Callable[[Any], None]:
        return lambda event: self.show_layer(layer, bool(event.target.value))

    def _switch_colors(self, event: Any) -> None:
        self.show_torque_colors(bool(event.target.value))

    def _moved(self, k: int) -> Callable[[Any], None]:
        def move(_: Any) -> None:
            with self._lock:
                if not self._following:
                    self.move([x.value for x in self._sliders], k)

        return move

    def move(self, values: list[float], moved: int | None = None) -> None:
        """Show the state of the sliders' values, and set the sliders to it.

        At a DynError, as for loops that cannot be closed, the state does not change,
        and the panel shows the error. The joint of the slider `moved` stays where loops
        are closed; None: no joint stays.
        """
        with self._lock:
            try:
                self.state = self.scene.state(values, moved)
                self._notes.content = self._said("")
            except DynError as error:
                self._notes.content = self._said(str(error))
            self._follow()
            self.refresh()

    def _follow(self) -> None:
        """Set the sliders to the current state, clipped to their ranges.

        The sliders' callbacks do not move the scene meanwhile.
        """
        self._following = True
        try:
            standing = self.scene.values(self.state)
            for control, slider, x in zip(
                self._sliders, self.scene.sliders, standing, strict=False
            ):
                shown = float(np.clip(x, slider.low, slider.high))
                # only changes are sent to the browsers
                if abs(control.value - shown) > 1e-6:
                    control.value = shown
        finally:
            self._following = False

    def _random(self) -> np.ndarray:
        return self.scene.random(np.random.default_rng())

    def _scrubbed(self, event: Any) -> None:
        with self._lock:
            if not self._following:
                self.seek(float(event.target.value))

    def _set_speed(self, name: str) -> None:
        self.speed = SPEEDS[name]

    # Methods for programs.

    def show_layer(self, layer: str, wanted: bool) -> None:
        """Show or hide one of LAYERS, set its checkbox, and clear the panel's error."""
        with self._lock:
            self.stage.show(layer, wanted)
            if layer in self._boxes and self._boxes[layer].value != wanted:
                self._boxes[layer].value = wanted
            self._notes.content = self._said("")
            self.refresh()

    def show_torque_colors(self, wanted: bool) -> None:
        """Colour the bodies by a replay's joint forces, or in their own colours.

        Without a replay, the colours and arrows of the last `show_state` are removed.
        """
        with self._lock:
            self.torque_colors = wanted
            if self._colored is not None and self._colored.value != wanted:
                self._colored.value = wanted
            self.refresh()

    def show_state(
        self,
        state: np.ndarray,
        shares: np.ndarray | None = None,
        forces: Arrows | None = None,
    ) -> None:
        """Show a state, and set the sliders to it; `torque_colors` is ignored.

        An array of floats is not copied. `shares` and `forces` are those of
        Stage.place.
        """
        with self._lock:
            self.state = np.asarray(state, float)
            self._follow()
            self.stage.place(self.scene.poses(self.state), shares, forces)

    def _replayed(self) -> Replay:
        """Return the replay. Raises UnsupportedError if there is none."""
        if self.replay is None:
            valid = "Viewer(scene, replay)"
            raise UnsupportedError(f"the viewer has no run to show; valid: {valid}")
        return self.replay

    def play(self, playing: bool) -> None:
        """Start (at its end, anew) or pause the replay; `run` or `advance` move it."""
        replay = self._replayed()
        with self._lock:
            if playing and self.time >= replay.duration:
                self.seek(0.0)
            self.playing = playing
            self._button.label = PAUSE if playing else PLAY

    def seek(self, when: float) -> None:
        """Show the replay at a time since its start [s], clipped to its duration."""
        replay = self._replayed()
        with self._lock:
            self.time = float(np.clip(when, 0.0, replay.duration))
            self.state = replay.state(self.time)
            # half a step of the slider
            if abs(self._line.value - self.time) > 5e-4:
                self._following = True
                self._line.value = self.time
                self._following = False
            if self.curves is not None:
                ended = self.time >= replay.duration
                self.curves.mark(self.time, all_steps=ended or not self.playing)
            self.refresh()

    def advance(self, seconds: float) -> None:
        """Advance a playing replay by `speed` times `seconds` of real time.

        At its end the replay begins again or, without `repeat`, is paused.
        """
        if self.replay is None or not self.playing:
            return
        with self._lock:
            if self.time >= self.replay.duration:
                self.seek(0.0)
                return
            self.seek(self.time + self.speed * seconds)
            if self.time >= self.replay.duration and not self.repeat:
                self.play(False)

    def refresh(self) -> None:
        """Show the current state again; sliders are not set.

        Forces and colours are those of a replay; without one there are none.
        """
        shares, forces = None, None
        if self.replay is not None:
            forces = self.replay.arrows(self.time)
            shares = self.replay.shares(self.time) if self.torque_colors else None
        self.stage.place(self.scene.poses(self.state), shares, forces)

    def run(self, done: Callable[[], bool]) -> None:
        """Advance a playing replay in real time, times `speed`, until `done` is true.

        Blocks meanwhile; `done` is called about 30 times per second. Without a replay
        it only waits.
        """
        before = time.monotonic()
        while not done():
            time.sleep(1.0 / RATE)
            now = time.monotonic()
            self.advance(now - before)
            before = now
