"""Reports, pictures, and the commands sim, id, fd, report: what is said and written."""

import base64
import re
import shutil
import warnings
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import cli, robots
from dyn_core.contact.stepping import array_reports
from dyn_core.control.controller import Controller
from dyn_core.errors import ModelWarning, SettingError
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.plots import Curve, Panel, draw, pages
from dyn_core.plots.figures import pixels
from dyn_core.plots.motions import plot_motion
from dyn_core.plots.pages import table
from dyn_core.plots.table_plots import plot_errors
from dyn_core.recordings import MotionRecord, read_motion, run_record, write_motion
from dyn_core.recordings.runs import named_robot, robot_facts
from dyn_core.reports import (
    differences,
    report_page,
    screenshot,
    write_identification_report,
    write_report,
)
from dyn_core.reports.figures import differences_figure
from dyn_core.reports.sections import energy_sentence, robot_pictures, run_sections

VOID = {"meta", "img", "br"}


@pytest.fixture(autouse=True)
def matplotlib():
    """Pictures need it; a plot that does not fit its figure is a failure."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra plot)")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


@pytest.fixture
def drafts(monkeypatch):
    """Make figures of pages, but write no SVG, which takes most of a page's time."""
    empty = base64.b64encode(b"<svg/>").decode()
    monkeypatch.setattr(
        pages, "data_uri", lambda figure: f"data:image/svg+xml;base64,{empty}"
    )


class _Page(HTMLParser):
    """Headings, addresses and open tags of a page."""

    def __init__(self, content):
        super().__init__()
        self.open, self.addresses, self.headings = [], [], []
        self.feed(content)
        self.close()

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        for key, value in attributes:
            if key in ("src", "href", "action", "data", "srcset", "poster"):
                self.addresses.append(value)
            assert not key.startswith("on")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] in (["h1"], ["h2"]):
            self.headings.append(data)


def _checked(content):
    """Return a page whose tags are closed and that needs nothing from outside."""
    page = _Page(content)
    assert page.open == []
    assert page.addresses
    for address in page.addresses:
        head, coded = address.split(",", 1)
        assert head == "data:image/svg+xml;base64"
        assert b"<svg" in base64.b64decode(coded)
    assert not re.search(r"https?://|@import|url\(|<script|<link", content)
    return page


def _run(robot="two_link", **options):
    """Return the record of a run under a controller with a reference."""
    model = dyn.load(robot)
    controller = Controller(model, 100.0, 20.0)
    settings = {"period": 0.005, "duration": 0.3, "step": "semi_implicit_euler"}
    run = dyn.simulate(model, controller, **{**settings, **options})
    return run_record(run, {"step": options.get("step", settings["step"])}, "aba")


def test_a_report_of_a_run_is_one_page():
    """All sections, the hash, the residual; nothing from outside."""
    record = _run()
    page = report_page([record], ["a <b>run</b>"])
    assert _checked(page).headings == [
        "a <b>run</b>", "What was run", "Robot", "Motion", "Tracking",
        "Joint forces and limits", "Energy", "Times",
    ]  # fmt: skip
    assert record.facts["model_hash"] in page
    residual = record.series["residual"]
    assert f"residual {residual[-1]:.3g} J" in page
    assert f"{np.abs(residual).max():.3g} J" in page
    assert "a &lt;b&gt;run" in page
    assert report_page([record], ["a <b>run</b>"]) == page


def test_a_report_of_contacts_has_their_residuals():
    """And dry joints have no table of tracking where there is no reference."""
    model = dyn.load("quadruped")
    q0 = model.neutral()
    q0[2] = 0.445
    with pytest.warns(ModelWarning, match="beyond the limits of joint"):
        run = dyn.simulate(model, world={}, q0=q0, duration=0.06)
    record = run_record(run)
    assert record.qdd is None
    assert record.series["contacts"].max() == 4
    assert 0 < record.series["contact_force"].max()
    page = report_page([record], ["run"])
    assert "Contacts" in _checked(page).headings
    assert "Tracking" not in _checked(page).headings
    assert f"{record.series['contact_residual'].max():.4g}" in page


def test_a_saved_run_of_contacts_has_no_spectra(monkeypatch, tmp_path):
    """Eigenvalues of a humanoid's contacts cost more than the rest of the file."""
    asked = []
    monkeypatch.setattr(
        array_reports, "_spectrum", lambda *step: asked.append(1) or np.ones(3)
    )
    model = dyn.load("quadruped")
    q0 = model.neutral()
    q0[2] = 0.445
    with pytest.warns(ModelWarning, match="beyond the limits of joint"):
        run = dyn.simulate(model, world="floor", q0=q0, duration=0.02)
    run.save(tmp_path / "run.npz")
    assert not asked
    assert run.reports[0][0].rank == 3 and asked


@pytest.mark.usefixtures("drafts")
def test_a_comparison_shows_what_differs():
    """Settings apart from those that agree, differences by kind, times of each."""
    first, second = _run(), _run(step="rk4")
    by_column = {(x.kind, x.name): x for x in differences(first, second)}
    for (kind, name), x in by_column.items():
        k = first.names(kind).index(name)
        change = getattr(second, kind)[:, k] - getattr(first, kind)[:, k]
        assert x.largest == np.abs(change).max()
        assert x.rms == pytest.approx(np.sqrt((change**2).mean()))
        assert x.time == first.t[np.abs(change).argmax()]
    assert {kind for kind, _ in by_column} == {"q", "qd", "qdd", "tau"}
    page = report_page([first, second], ["one", "two"])
    headings = _checked(page).headings
    assert headings[:4] == [
        "Runs of two_link",
        "What is compared",
        "Differences",
        "Times",
    ]
    assert [x for x in headings if x in ("one", "two")] == ["one", "two"]
    agree = page.index("the same in all")
    assert (
        page.index("<td>step</td>") < agree < page.index("<td>hash of the model</td>")
    )
    with pytest.raises(
        dyn.SettingError,
        match="no columns in common: .*the second 'slide', 'hinge'; valid",
    ):
        other = dyn.simulate(dyn.load("cart_pole"), duration=0.1, period=0.005)
        differences(first, run_record(other))


@pytest.mark.usefixtures("drafts")
def test_a_comparison_names_the_starts_that_differ():
    """The joint and both values; a start that all runs have is not named."""
    runs = [_run(q0=[0.1, 0.2], qd0=[0.0, 0.3]), _run(q0=[0.1, 0.5], qd0=[0.0, 0.3])]
    page = report_page(runs, ["one", "two"])
    joint = runs[0].names("q")[1]
    row = f"<td>start of q[{joint}]</td><td>0.2</td><td>0.5</td>"
    assert row in re.sub(' class="[^"]*"', "", page)
    assert page.count("start of") == 1


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b", "c"), "ab"])
def test_names_of_a_report_are_one_for_each_run(names, tmp_path):
    """Too few, too many and a string are refused before a page is made."""
    records = [_run(), _run()]
    for make in (report_page, partial(write_report, path=tmp_path / "a.html")):
        with pytest.raises(SettingError, match=r"valid: a list of 2 names, one a run"):
            make(records, names)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("drafts")
def test_runs_of_a_report_stay_apart_whatever_their_names_are():
    """A name made unique is not that of another run, given or made."""
    record = MotionRecord.of_joints(["a"], [0.0, 1.0], [[0.0], [1.0]])
    for names, wanted in (
        (["a", "a (3)", "a"], ["a", "a (3)", "a (3) (3)"]),
        (["a", "a", "a (2)"], ["a", "a (2)", "a (2) (3)"]),
    ):
        headings = _checked(report_page([record] * 3, names)).headings
        assert [x for x in headings if x.startswith("a")] == wanted


def test_numbers_of_a_table_are_aligned_whatever_their_type_is():
    """NumPy's integers and floats are as Python's; text is text."""
    for cell, shown in ((1234567, "1234567"), (0.12345, "0.1235")):
        wanted = table(("x",), [[cell]])
        assert f'<td class="number">{shown}</td>' in wanted
        for kind in (np.int32, np.int64) if isinstance(cell, int) else (np.float32,):
            assert table(("x",), [[kind(cell)]]) == wanted
    assert "number" not in table(("x",), [["1"]])


def test_evaluations_of_a_report_are_of_the_same_joints(tmp_path):
    """Else the rows of the table would belong to different joints."""
    before, after = (SimpleNamespace(names=x) for x in (("a",), ("a", "b")))
    with pytest.raises(
        SettingError, match="of a and of a, b; valid: of the same joints"
    ):
        write_identification_report(None, tmp_path / "a.html", before, after)


@pytest.mark.usefixtures("drafts")
def test_runs_of_other_times_are_interpolated():
    """At the times of the first that the other has."""
    model = dyn.load("two_link")

    def line(t):
        return MotionRecord(coordinates_of(model), t, np.outer(t, [1.0, -2.0]))

    first, second = line(np.linspace(0, 1, 11)), line(np.linspace(0.05, 2, 8))
    assert max(x.largest for x in differences(first, second)) < 1e-12
    assert "interpolated" in report_page([first, second], ["a", "b"])
    with pytest.raises(dyn.SettingError, match="no times in common"):
        differences(first, line(np.array([5.0, 6.0])))


def test_little_is_enough_for_a_report(tmp_path):
    """Positions alone, from CSV; an existing report is replaced, nothing else is there."""
    t = np.linspace(0, 1, 30)
    model = dyn.load("two_link")
    motion = MotionRecord(coordinates_of(model), t, np.outer(t, [1.0, 2.0]))
    write_motion(motion, tmp_path / "a.csv")
    for _ in range(2):
        write_report([read_motion(tmp_path / "a.csv")], ["a"], tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert _checked(page).headings == ["a", "What was run", "Motion"]
    assert sorted(x.name for x in tmp_path.iterdir()) == ["a.csv", "a.html"]


def test_a_recording_draws_itself(tmp_path, capsys):
    """Panels with units, a legend of joints, limits near the curves."""
    model = dyn.load("arm7")
    limit = model.effort_limit
    run = dyn.simulate(model, lambda t, q, qd: 0.9 * limit, duration=0.02)
    figure = run.plot(str(tmp_path / "run.svg"))
    assert "plot: " in capsys.readouterr().out
    labels = [axis.get_ylabel() for axis in figure.axes]
    assert labels == ["position\n[rad | m]", "velocity\n[rad/s | m/s]",
                      "joint force\n[N·m | N]", "energy [J]"]  # fmt: skip
    legend = figure.axes[0].get_legend()
    assert [x.get_text() for x in legend.get_texts()] == list(model.joint_names)
    levels = {abs(float(x.get_ydata()[0])) for x in figure.axes[2].lines[7:]}
    assert levels == set(map(float, limit))
    with pytest.raises(dyn.SettingError, match="ends with"):
        run.plot(str(tmp_path / "run.xyz"))
    empty = dyn.simulate(model, duration=0.0)
    for plot in (empty.plot, empty.motion.plot):
        with pytest.raises(dyn.SettingError, match="without rows cannot be drawn"):
            plot(str(tmp_path / "empty.svg"))
    assert not (tmp_path / "empty.svg").exists()


def _drawn(figure):
    """Return the curves of each panel by its label."""
    return {
        axis.get_ylabel(): np.array([line.get_ydata() for line in axis.lines])
        for axis in figure.axes
    }


def test_the_command_and_the_recording_draw_the_same_panels(tmp_path, monkeypatch):
    """Each draws the energy, too; a file has its accelerations besides."""
    figures = []
    monkeypatch.setattr(
        "dyn_core.recordings.motion.save", lambda figure, _: figures.append(figure)
    )
    file = str(tmp_path / "run.npz")
    options = ["--duration", "0.1", "--out", file, "--plot", str(tmp_path / "run.png")]
    assert cli.main(["sim", "two_link", "--q0", "joint1=0.3", *options]) == 0
    run = dyn.simulate(dyn.load("two_link"), q0=[0.3, 0.0], duration=0.1)
    ours, typed = _drawn(run.plot()), _drawn(figures[0])
    assert list(ours) == list(typed) and "energy [J]" in ours
    for label, curves in ours.items():
        np.testing.assert_allclose(typed[label], curves, rtol=1e-9, atol=1e-12)
    read = _drawn(read_motion(file).plot())
    assert [x for x in read if not x.startswith("acceleration")] == list(ours)
    np.testing.assert_allclose(read["energy [J]"], ours["energy [J]"])


@pytest.mark.usefixtures("drafts")
def test_a_report_of_many_joints_names_the_largest_curves():
    """All of them are folded away; what is short is shown whole."""
    model, rng = dyn.load("quadruped"), np.random.default_rng(0)
    q = np.tile(model.neutral(), (6, 1))
    tau = rng.normal(size=(6, model.nv)) * np.arange(model.nv)
    motion = MotionRecord(coordinates_of(model), np.arange(6.0), q, tau=tau, q_ref=q)
    base, joints, forces_of_base, forces = motion.plot(largest=7).axes
    assert [len(x.get_legend().get_texts()) for x in (base, joints, forces)] == [7] * 3
    assert [x.get_text() for x in forces.get_legend().get_texts()] == [
        motion.names("tau")[k] for k in sorted(np.argsort(-np.abs(tau).max(0))[:7])
    ]
    assert "7 largest of 12" in forces.texts[0].get_text()
    assert "of" not in forces_of_base.texts[0].get_text()
    sections = {x.title: x.content for x in run_sections(motion)}
    for title in ("Motion", "Tracking"):
        assert sections[title].count("<img") == 2, title
        assert "<summary>All joints</summary>" in sections[title]
    few = MotionRecord(coordinates_of(dyn.load("arm7")), np.arange(6.0), q[:, :7])
    (content,) = [x.content for x in run_sections(few) if x.title == "Motion"]
    assert content.count("<img") == 1 and "<summary>" not in content


@pytest.mark.parametrize("step", ["semi_implicit_euler", "rk4"])
def test_accelerations_at_a_stop_are_those_of_the_motion(step, tmp_path, capsys):
    """Also in the last row; the summary and the picture name what stopped the joints."""
    path = tmp_path / "run.npz"
    options = ["--step", step, "--substeps", "4", "--duration", "1.0", "--out"]
    assert cli.main(["sim", "arm7", *options, str(path)]) == 0
    said = capsys.readouterr().out
    assert "The residual contains the stops at limits of joint2, joint4" in said
    record, model = read_motion(path), dyn.load("arm7")
    beyond = ((record.q < model.lower) | (record.q > model.upper)).any(axis=1)
    assert beyond[-1] and not beyond.all()
    again = dyn.simulate(model, duration=1.002, step=step, substeps=4)
    mean = np.diff(again.qd, axis=0) / 0.002
    scale = np.abs(mean).max()
    np.testing.assert_allclose(record.qdd[beyond], mean[beyond], atol=1e-9 * scale)
    figure = record.plot()
    drawn = {float(line.get_ydata()[0]) for line in figure.axes[0].lines[7:]}
    assert drawn and drawn < {*model.lower, *model.upper}
    assert "dotted: limits" in " ".join(x.get_text() for x in figure.axes[0].texts)
    assert cli.main(["sim", "two_link", "--duration", "0.1"]) == 0
    assert "stops" not in capsys.readouterr().out
    free = dyn.simulate(model, duration=1.0, limit_stops=False)
    assert "stops" not in energy_sentence(run_record(free))


def test_curves_differ_without_colour():
    """No two of 28 curves have the same colour and style; colours differ in lightness."""
    t = np.linspace(0, 1, 5)
    figure = draw([Panel("x [m]", [Curve(t, k * t, str(k)) for k in range(28)])])
    looks = [(x.get_color(), x.get_linestyle()) for x in figure.axes[0].lines]
    assert len(set(looks)) == 28


def test_a_panel_says_what_its_thin_lines_are():
    """Its remark, then limits: those that are near are drawn, of others the least is named."""
    t = np.linspace(0.0, 1.0, 3)
    panels = [
        Panel("x [m]", [Curve(t, t)], [limit], "thin: reference")
        for limit in (2.0, 50.0)
    ]
    figure = draw([*panels, Panel("x [m]", [Curve(t, t)])])
    said = [text.get_text() for axis in figure.axes for text in axis.texts]
    assert said == [
        "thin: reference, dotted: limits that are near",
        "thin: reference, limits from ±50 on",
        "",
    ]


@pytest.mark.parametrize("energy", [-7.25, 1.0e7])
def test_a_constant_energy_is_a_flat_line(energy):
    """Rounding errors fill no panel; numbers of an axis are whole, beside the legend."""
    t = np.linspace(0, 1, 50)
    noise = energy * 1e-12 * np.random.default_rng(0).normal(size=50)
    figure = plot_motion(t, {}, {}, energy=energy + noise)
    pixels(figure)
    axis = figure.axes[0]
    offset = axis.yaxis.get_offset_text()
    assert offset.get_text() in ("", "1e7")  # a power of ten, nothing to be added
    assert np.ptp(axis.get_ylim()) > 1e4 * np.ptp(noise)
    extents = [x.get_window_extent() for x in (offset, axis.get_legend())]
    assert not extents[0].overlaps(extents[1])


def test_logarithmic_axes_have_two_labels():
    """Also where all differences lie within one decade, or are equal."""
    t = np.linspace(0.0, 1.0, 3)
    runs = {"a": {"x": np.array([0.0, 0.009, 0.017])}, "b": {"x": np.full(3, 1e-3)}}
    for axis in differences_figure(t, runs).axes:
        low, high = np.log10(axis.get_ylim())
        assert high - low >= 1 and low == round(low) and high == round(high)


def test_errors_and_parameters_are_drawn():
    """A mark for each error; parameters with what they were."""
    errors = {"joint1": {"a": 1e-12, "b": 0.0}, "joint2": {"a": 1e-6, "b": 1e-3}}
    axis = plot_errors(errors, 1e-9).axes[0]
    np.testing.assert_array_equal(axis.lines[0].get_xdata(), [1e-12, 1e-6])
    assert [x.get_text() for x in axis.get_yticklabels()] == ["joint1", "joint2"]
    model = dyn.load("two_link")
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 60, 2))
    tau = dyn.solver("rnea").build(model, engine="graph")(q, qd, qdd)
    tau = tau + np.outer(qd[:, 1], [0.0, 0.7])
    result = dyn.identify(model, q, qd, qdd, tau, partial=True)
    axis = result.plot().axes[0]
    labels = [x.get_text() for x in axis.get_yticklabels()]
    k = result.names.index("joint2.damping")
    assert result.parameters[k] == pytest.approx(0.7, rel=0.01)
    row = labels.index("joint2.damping")
    points = np.vstack([line.get_xydata() for line in axis.lines])
    drawn = set(np.round(points[points[:, 1] == row, 0], 9))
    assert drawn == {1.0, round(result.prior[k] / result.parameters[k], 9)}


def test_a_page_becomes_a_picture(tmp_path):
    """Of its own height; without a browser it is said in words."""
    (tmp_path / "a.html").write_text("<h1>one</h1>")
    if not shutil.which("chromium"):
        with pytest.raises(dyn.UnsupportedError, match="valid: Chromium or Chrome"):
            screenshot(tmp_path / "a.html", tmp_path / "a.png")
        return
    from matplotlib import image

    screenshot(tmp_path / "a.html", tmp_path / "a.png", width=500)
    pixels = image.imread(tmp_path / "a.png")
    assert pixels.shape[1] == 500
    assert 20 < pixels.shape[0] < 300


def test_a_picture_without_content_is_refused(tmp_path, monkeypatch):
    """A page of the viewer fills any window; a browser may also draw nothing at all."""
    from matplotlib import image

    page = tmp_path / "page.html"
    page.write_text("<script>window.__VISER_EMBED_CONFIG__={}</script>")
    with pytest.raises(SettingError, match="page of the viewer.*dyn view --film"):
        screenshot(page, tmp_path / "page.png")
    page.write_text("<h1>one</h1>")
    image.imsave(tmp_path / "white.png", np.ones((9, 9, 3)))
    browser = tmp_path / "chromium"
    browser.write_text(
        "#!/bin/sh\nfor x; do case $x in --screenshot=*)"
        f' cp {tmp_path}/white.png "${{x#*=}}";; esac; done\n'
    )
    browser.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SettingError, match="blank"):
        screenshot(page, tmp_path / "page.png")
    assert not (tmp_path / "page.png").exists()


def test_commands_follow_one_another(tmp_path, monkeypatch, capsys):
    """sim, id of its motion, fd of that, a comparison; torques of a file do the same."""
    monkeypatch.chdir(tmp_path)
    start = ["--q0", "joint1=0.3", "joint2=-0.4"]
    common = ["--duration", "0.1", "--no-joint-friction"]
    law = ["--controller", "computed_torque", "--gains", "50", "10"]
    outputs = ["--report", "a.html", "--plot", "a.png"]
    assert (
        cli.main(["sim", "two_link", *start, *common, *law, "-o", "a.npz", *outputs])
        == 0
    )
    said = capsys.readouterr().out
    assert "two_link: 50 rows, 0 to 0.098 s" in said
    assert "+ residual" in said
    _checked(Path("a.html").read_text(encoding="utf-8"))
    run = read_motion("a.npz")
    np.testing.assert_array_equal(run.q[0], [0.3, -0.4])
    friction = "--no-joint-friction"
    assert cli.main(["id", "two_link", "a.npz", friction, "-o", "b.csv"]) == 0
    np.testing.assert_allclose(read_motion("b.csv").tau, run.tau, atol=1e-9)
    assert (
        cli.main(
            ["fd", "two_link", "b.csv", friction, "--solver", "dense", "-o", "c.npz"]
        )
        == 0
    )
    np.testing.assert_allclose(read_motion("c.npz").qdd, run.qdd, atol=1e-9)
    same = [
        "sim",
        "two_link",
        "--torques",
        "b.csv",
        "--no-joint-friction",
        "-o",
        "d.npz",
    ]
    assert cli.main(same) == 0
    again = read_motion("d.npz")
    np.testing.assert_allclose(again.q, run.q, atol=1e-9)
    assert (
        cli.main(["sim", "two_link", *law, "--reference", "a.npz", "-o", "e.npz"]) == 0
    )
    np.testing.assert_array_equal(read_motion("e.npz").q[0], run.q[0])
    capsys.readouterr()
    assert (
        cli.main(["report", "b.csv", "d.npz", "-o", "f.html", "--title", "both"]) == 0
    )
    page = _checked(Path("f.html").read_text(encoding="utf-8"))
    assert page.headings[0] == "both"


def test_a_world_and_gravity_from_the_command_line(tmp_path, monkeypatch, capsys):
    """A YAML file of a World; a robot that carries its weight stays."""
    monkeypatch.chdir(tmp_path)
    Path("w.yaml").write_text("stepper: moreau_jean\nhalf_spaces: []\n")
    fall = ["sim", "quadruped", "--world", "w.yaml", "--duration", "0.02",
            "--q0", "root_joint.2=0.7"]  # fmt: skip
    assert cli.main([*fall, "-o", "a.npz"]) == 0
    assert cli.main(["plot", "a.npz", "-o", "a.svg"]) == 0
    assert "<!-- root_joint.6 -->" in Path("a.svg").read_text(encoding="utf-8")
    run = read_motion("a.npz")
    assert run.facts["settings"]["stepper"] == "moreau_jean"
    assert run.q[0, 2] == 0.7
    assert run.q[-1, 2] < 0.7
    still = [
        "sim",
        "arm7",
        "--controller",
        "gravity",
        "--duration",
        "0.1",
        "-o",
        "b.npz",
    ]
    assert cli.main([*still, "--q0", "joint2=0.5", "joint4=-1"]) == 0
    run = read_motion("b.npz")
    np.testing.assert_allclose(run.q - run.q[0], 0.0, atol=1e-9)
    assert np.abs(run.tau).max() > 1
    free = ["sim", "cart_pole", "--controller", "computed_torque", "--q0", "hinge=0.1"]
    assert cli.main([*free, "--duration", "0.05"]) == 0  # its file has no limit
    capsys.readouterr()


def test_derivative_checks_are_drawn(tmp_path, capsys):
    """A picture beside the table."""
    picture = tmp_path / "d.png"
    arguments = [
        "check-derivatives",
        "two_link",
        "--states",
        "1",
        "--plot",
        str(picture),
    ]
    assert cli.main(arguments) == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert "plot: " in capsys.readouterr().out


WRONG = {
    "both": (["sim", "two_link", "--torques", "a.csv", "--controller", "gravity"], "both give the joint forces"),
    "gains": (["sim", "two_link", "--gains", "1", "1"], "--gains changes nothing with --controller none"),
    "reference": (["sim", "two_link", "--controller", "gravity", "--reference", "a.csv"], "--reference changes nothing"),
    "world": (["sim", "two_link", "--world", "floor", "--step", "rk4"], "change nothing beside --world"),
    "floats": (["sim", "quadruped", "--controller", "gravity"], "the robot floats"),
    "torques": (["sim", "two_link", "--torques", "a.csv"], "the motion has no tau"),
    "start": (["sim", "two_link", "--q0", "0.1"], "or 2 finite numbers for joint1, joint2"),
    "joint": (["sim", "two_link", "--q0", "joint9=1"], "joint9"),
    "number": (["sim", "two_link", "--q0", "joint1=x"], "--q0 joint1=x"),
    "fd": (["fd", "two_link", "a.csv"], "the motion has no qd: columns qd[joint1]"),
    "solver": (["id", "two_link", "a.csv", "--solver", "aba"], "'aba' solves forward_dynamics, not inverse_dynamics; valid: "),
    "row": (["id", "two_link", "late.csv"], "row 3: t = 0.1 s is not later than 0.1 s"),
    "joints": (["id", "arm7", "a.csv"], "no column is called 'q[joint3]'"),
    "cutoff": (["id", "two_link", "a.csv", "--cutoff", "90"], "valid: more than 0, at most"),
    "engine": (["id", "two_link", "a.csv", "--engine", "fast"], "no engine is called 'fast'"),
    "format": (["id", "two_link", "a.csv", "-o", "a.txt"], "ends with .npz, .csv, .mcap"),
    "topic": (["id", "two_link", "a.csv", "--joint-states", "x"], "--joint-states changes nothing; valid: a bag"),
    "report": (["report", "a.csv", "-o", "a.pdf"], "ends with .html"),
    "folder": (["report", "a.csv", "-o", "none/a.html"], "there is no such folder"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_answered_in_words(tmp_path, monkeypatch, capsys, case):
    """In the last line, with status 1, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    t = np.linspace(0, 1, 21)
    model = dyn.load("two_link")
    motion = MotionRecord(coordinates_of(model), t, np.outer(t, [1.0, 2.0]))
    write_motion(motion, "a.csv")
    Path("late.csv").write_text("t,q[joint1],q[joint2]\n0,0,0\n0.1,0,0\n0.1,0,0\n")
    before = sorted(tmp_path.iterdir())
    arguments, message = WRONG[case]
    assert cli.main(arguments) == 1
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert sorted(tmp_path.iterdir()) == before


def test_a_motion_is_drawn_whatever_it_has():
    """Positions alone; more coordinates than colours; numbers that are not known."""
    model = dyn.load("every_joint")
    q = np.tile(model.neutral(), (6, 1))
    q[2] = np.nan
    motion = MotionRecord(coordinates_of(model), np.arange(6.0), q)
    figure = motion.plot(title="every joint")
    # joints of several coordinates above, all others below
    assert len(figure.axes) == 2
    assert sum(len(axis.lines) for axis in figure.axes) == model.nq


def test_names_of_joints_may_end_with_numbers():
    """Joints arm.1 and arm.2 are drawn as any other, their zero forces too."""
    urdf = robots.path("two_link").read_text().replace('"joint', '"arm.')
    model = dyn.load(urdf)
    zeros = np.zeros((6, 2))
    motion = MotionRecord(coordinates_of(model), np.arange(6.0), zeros, tau=zeros)
    axes = motion.plot().axes
    assert model.joint_names == ("arm.1", "arm.2")
    assert [len(axis.lines) for axis in axes] == [2, 2]


@pytest.mark.usefixtures("drafts")
def test_a_joint_has_one_look_in_all_panels_and_a_free_base_its_own():
    """Zeros of a free base are left out, in the picture as in the table of limits."""
    model = dyn.load("quadruped")
    q = np.tile(model.neutral(), (6, 1))
    force = np.where(np.arange(model.nv) < 6, 0.0, 1.0) * np.ones((6, 1))
    motion = MotionRecord(
        coordinates_of(model), np.arange(6.0), q, np.zeros((6, 18)), tau=force,
        facts=robot_facts(model),
    )  # fmt: skip
    axes = motion.plot().axes
    assert [len(axis.lines) for axis in axes] == [7, 13, 6, 12, 12]  # one limit
    looks = [
        {name: (x.get_color(), x.get_linestyle()) for x in axis.lines
         if not (name := x.get_label()).startswith("_")}
        for axis in axes
    ]  # fmt: skip
    assert looks[1] == looks[3] == looks[4] and len({*looks[1].values()}) == 12
    limits = next(x for x in run_sections(motion) if x.title.startswith("Joint forces"))
    assert "root_joint" not in limits.content and "hind_left_knee" in limits.content
    pushed = replace(motion, tau=force + (np.arange(model.nv) == 2))
    limits = next(x for x in run_sections(pushed) if x.title.startswith("Joint forces"))
    assert limits.content.count("root_joint") == 1


def test_panels_have_the_limits_and_references_of_their_own_coordinates():
    """Joints of several coordinates come first in no column."""
    names = ["hip", "base.0", "base.1", "knee"]
    limits, rows = np.array([5.0, 6.0, 7.0, 8.0]), np.ones((3, 1))
    columns = {"q": np.zeros((3, 4)), "q_ref": rows * [1.0, 2.0, 3.0, 4.0],
               "tau": 0.95 * rows * limits}  # fmt: skip
    by_key = {"q": names, "tau": names}
    figure = plot_motion(np.arange(3.0), columns, by_key, {"tau": limits})
    base, joints, _, forces = figure.axes
    assert [x.get_ydata()[0] for x in base.lines[2:4]] == [2.0, 3.0]
    assert [x.get_ydata()[0] for x in joints.lines[2:4]] == [1.0, 4.0]
    levels = {abs(float(x.get_ydata()[0])) for x in forces.lines[2:]}
    assert levels == {5.0, 8.0}


def test_a_report_shows_the_robot_and_no_folders():
    """Three pictures of the run; only the name of the file that it was read from."""
    model = dyn.load("two_link")
    run = dyn.simulate(model, duration=0.05, progress=False)
    record = run_record(run)
    shots = robot_pictures(record)
    assert shots.shape == (340, 3 * 380, 3) and shots.min() < 100 < shots.max()
    page = report_page([record], ["run"])
    assert page.count("<h2>Robot</h2>") == 1
    assert "two_link.urdf" in page and str(Path(model.source.file).parent) not in page
    lost = replace(record, facts={**record.facts, "source": "/nowhere/two_link.urdf"})
    other = replace(record, facts={**record.facts, "source": "arm7"})
    assert robot_pictures(lost) is None and robot_pictures(other) is None
    assert named_robot(lost.facts) == ("", "")
    assert named_robot(other.facts)[0] == "arm7"


@pytest.mark.usefixtures("drafts")
def test_runs_of_one_name_are_told_apart_without_folders_of_the_user(tmp_path):
    """By the folders in which they differ."""
    model = dyn.load("two_link")
    run = run_record(dyn.simulate(model, duration=0.01, progress=False))
    motion = replace(run, tau=None, series={})  # few panels are enough
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_motion(motion, tmp_path / folder / "run.npz")
    page = tmp_path / "page.html"
    files = [str(tmp_path / folder / "run.npz") for folder in ("a", "b")]
    assert cli.main(["report", *files, "--out", str(page)]) == 0
    assert str(tmp_path) not in page.read_text() and "b/run.npz" in page.read_text()
    assert cli.main(["report", *[files[0]] * 3, "--out", str(page)]) == 0
    assert "b/run.npz" not in page.read_text() and "run.npz" in page.read_text()
    for name in ("run.npz (2)", "run.npz (3)"):  # two runs of one name stay two
        assert f">{name}<" in page.read_text()
