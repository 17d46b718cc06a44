"""The page on a phone: the scene first, the panels folded below it."""

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
