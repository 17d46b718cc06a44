"""The page on a phone: the scene first, the panels folded below it."""

from itertools import pairwise

import pytest

import marey


@pytest.fixture(scope="module")
def tab(open_tab, walked, tmp_path_factory):
    path = tmp_path_factory.mktemp("phone") / "walk.html"
    marey.write(walked, path)
    return open_tab(path.as_uri(), width=390, height=844, touch=True)


def box(tab, selector):
    return tab.page.locator(selector).first.bounding_box()


def test_the_scene_fills_the_width_and_half_the_height(tab):
    stage = box(tab, ".stage > canvas")
    assert (stage["x"], stage["width"]) == (0, 390)
    assert stage["y"] < 50
    assert stage["height"] >= 0.45 * 844


def test_nothing_is_wider_than_the_screen(tab):
    assert tab.ask("document.getElementById('app').scrollWidth") == 390
    for selector in (".topbar", ".timeline", ".right", ".left"):
        assert box(tab, selector)["width"] <= 390
    buttons = tab.page.locator(".topbar button")
    last = buttons.nth(buttons.count() - 1).bounding_box()
    assert last["x"] + last["width"] <= 390


def test_controls_of_a_served_page_fit_side_by_side(open_tab, walked):
    with marey.view(walked, browser=False, block=False) as viewer:
        tab = open_tab(viewer.url, width=390, height=844, touch=True, draws=False)
        tab.until("document.querySelectorAll('.row.joint').length > 0", 300)
        shown = [b for b in tab.page.locator(".topbar button").all() if b.is_visible()]
        assert {"Undo", "Redo"} <= {button.inner_text() for button in shown}
        boxes = sorted((b.bounding_box() for b in shown), key=lambda box: box["x"])
        for left, right in pairwise(boxes):
            assert left["x"] + left["width"] <= right["x"]
        assert boxes[-1]["x"] + boxes[-1]["width"] <= 390


def test_panels_are_folded_below_the_scene_and_open_by_touch(tab):
    timeline = box(tab, ".timeline")
    for name in ("Bone lengths", "Findings", "Tree"):
        head = tab.page.get_by_role("button", name=name)
        assert head.bounding_box()["y"] >= timeline["y"] + timeline["height"]
        assert head.get_attribute("aria-expanded") == "false"
    lengths = tab.page.get_by_role("button", name="Bone lengths")
    lengths.tap()
    assert lengths.get_attribute("aria-expanded") == "true"
    assert tab.page.locator(".right td", has_text="LeftLowerLeg").first.is_visible()
    tab.ask("document.getElementById('app').scrollTo(0, 400)")
    assert box(tab, ".stage > canvas")["y"] < 50  # the scene stays in view


def test_the_whole_skeleton_is_in_the_scene_and_a_tap_selects_a_joint(tab, walked):
    tab.ask("document.getElementById('app').scrollTo(0, 0)")
    stage = box(tab, ".stage > canvas")
    spots = [
        tab.page.evaluate("n => marey.where(n)", name) for name in walked.skeleton.names
    ]
    for spot in spots:
        assert stage["x"] < spot["x"] < stage["x"] + stage["width"]
        assert stage["y"] < spot["y"] < stage["y"] + stage["height"]
    tall = max(spot["y"] for spot in spots) - min(spot["y"] for spot in spots)
    assert tall > 0.4 * stage["height"]
    knee = spots[walked.skeleton.index("LeftLowerLeg")]
    tab.page.touchscreen.tap(knee["x"], knee["y"])
    tab.until("marey.snapshot().selected !== ''")
    title = tab.page.locator(".right .title")
    assert title.is_visible()
    assert title.inner_text() == tab.snapshot["selected"]


def test_a_finger_turns_the_scene(tab):
    tab.ask("document.getElementById('app').scrollTo(0, 0)")
    before = tab.snapshot["camera"]
    stage = box(tab, ".stage > canvas")
    touch = tab.page.context.new_cdp_session(tab.page)
    x, y = stage["x"] + 60, stage["y"] + stage["height"] / 2
    for kind, at in (
        *(("touchStart", 0), ("touchMove", 30), ("touchMove", 60), ("touchMove", 90)),
        ("touchEnd", None),
    ):
        points = [] if at is None else [{"x": x + at, "y": y}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    tab.until(f"marey.snapshot().camera[0].toFixed(3) !== '{before[0]:.3f}'")
    assert tab.ask("document.getElementById('app').scrollTop") == 0


def test_panels_stand_below_each_other_when_something_is_selected(tab):
    tab.select("LeftLowerLeg")
    heads = tab.page.locator("section:not([hidden]) > h2").all()
    places = [head.bounding_box() for head in heads]
    panels = [
        panel.bounding_box()
        for panel in tab.page.locator("section:not([hidden])").all()
    ]
    assert len(panels) >= 6
    for head in places:
        inside = [p for p in panels if p["y"] <= head["y"] < p["y"] + p["height"] - 0.5]
        assert len(inside) == 1


def test_an_upright_tablet_shows_the_scene_over_its_whole_width(
    open_tab, walked, tmp_path
):
    marey.write(walked, tmp_path / "walk.html")
    tab = open_tab((tmp_path / "walk.html").as_uri(), width=768, height=1024)
    stage = box(tab, ".stage")
    assert (stage["x"], stage["width"]) == (0, 768)
    for part in (".left", ".right", ".timeline"):
        place = box(tab, part)
        assert place["y"] >= stage["y"] + stage["height"] - 1
        assert place["y"] + place["height"] <= 1024
