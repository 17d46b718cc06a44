"""A stream in the browser: the figure grows, keys record, nothing stale is shown."""

import pytest

import marey
from marey import synth

PATIENCE_MS = 120_000


@pytest.fixture(scope="module")
def stream_file(tmp_path_factory):
    take = synth.human().record(
        "walk", rate=60.0, seconds=3.0, markers="set53", noise=5e-4
    )
    path = tmp_path_factory.mktemp("stream") / "walk.npz"
    marey.write(marey.Take(rate=60.0, points=take.points, labels=take.labels), path)
    return path


def test_a_figure_is_learnt_shown_recorded_and_hidden_when_the_stream_ends(
    stream_file, open_tab, tmp_path
):
    session = tmp_path / "session.marey-live"
    poses = marey.stream(f"file:{stream_file}?loop=1", to=f"record:{session}?wait=1")
    with marey.view(poses, browser=False, block=False) as viewer:
        page = open_tab(viewer.url).page
        page.wait_for_selector(".lamp.on", timeout=PATIENCE_MS)
        assert page.locator(".banner").is_hidden()
        page.keyboard.press("r")
        page.wait_for_selector("button.recording")
        page.keyboard.press("m")
        page.wait_for_selector(".need", timeout=PATIENCE_MS)
        shown = "() => window.marey.where('Hips') !== null"
        page.wait_for_function(shown, timeout=PATIENCE_MS)
        before = page.evaluate("() => window.marey.where('LeftFoot')")
        page.wait_for_function(
            "(was) => Math.abs(window.marey.where('LeftFoot').x - was.x) > 1",
            arg=before,
        )
        page.keyboard.press("r")
        page.wait_for_selector("button.recording", state="detached")
        poses._intake._is_open = False  # the source goes silent
        page.wait_for_selector(".lamp.off", timeout=PATIENCE_MS)
        assert page.locator(".banner").is_visible()
        assert page.evaluate("() => window.marey.where('Hips')") is None
    take = marey.read(session)
    assert take.n_frames > 0
    assert [event.label for event in take.events] == ["mark"]
