"""The viewer in a real browser without a window, with --full."""

import io

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.view.robot_scene import RobotScene
from dyn_core.view.show import show

pytest.importorskip("viser", reason="viser is not installed (extra view)")
from chromium import HeadlessBrowser, chromium, until  # noqa: E402

from dyn_core.view.browser.viewer import Viewer  # noqa: E402

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        chromium() is None, reason="Chromium is not installed (apt install chromium)"
    ),
]
SLIDER = "document.querySelectorAll('[role=slider]')"


def _dark(png):
    """Return where the left part of a page, without the panel, shows the robot."""
    from PIL import Image

    image = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    return image[:, : image.shape[1] * 6 // 10].sum(axis=2) < 520


def _picture(browser):
    """Return the silhouette once two pictures, one after the other, are the same."""
    seen = []

    def stands():
        seen.append(_dark(browser.screenshot()))
        return (
            len(seen) > 1 and seen[-1].sum() > 500 and (seen[-1] != seen[-2]).sum() < 50
        )

    until(stands, "the picture", 200.0)
    return seen[-1]


@pytest.mark.timeout(600)
def test_a_slider_moves_the_robot_in_the_browser():
    """The page loads; keys on the slider of a joint change state and silhouette.

    Needs --full: a browser without a graphics card draws a picture in seconds.
    """
    with (
        Viewer(RobotScene(dyn.load("arm7")), port=0) as viewer,
        HeadlessBrowser(viewer.address, 800, 600) as browser,
    ):
        browser.wait_for(f"{SLIDER}.length >= 7")
        before = _picture(browser)
        assert (
            browser.evaluate("document.body.innerText").count(
                viewer.scene.sliders[1].name
            )
            == 1
        )
        browser.evaluate(f"{SLIDER}[1].focus()")
        browser.press("End", 35)
        high = viewer.scene.sliders[1].high
        until(lambda: abs(viewer.state[1] - high) < 1e-6, "the slider")
        after = _picture(browser)
        assert (before != after).sum() > 0.5 * before.sum()
        others = np.delete(np.arange(7), 1)
        assert viewer.state[others] == pytest.approx(viewer.scene.start()[others])


@pytest.mark.timeout(600)
def test_the_page_of_a_run_stays_in_sight(tmp_path):
    """Also at each repeat: with an environment map it faded out until that was read.

    Needs --full, as above.
    """
    arm = dyn.load("arm7")
    path = tmp_path / "run.html"
    show(dyn.simulate(arm, duration=0.5)).save(path)
    canvas = "document.querySelector('canvas[data-engine]')"
    opacity = f"getComputedStyle({canvas}).opacity"
    with HeadlessBrowser(path.as_uri(), 800, 600) as browser:
        browser.wait_for(f"{canvas} != null")
        _picture(browser)
        assert {browser.evaluate(opacity) for _ in range(200)} == {"1"}
