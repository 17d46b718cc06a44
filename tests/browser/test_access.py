"""Keyboard and screen reader: the rules of axe-core, and all parts without a mouse."""

from contextlib import contextmanager
from dataclasses import replace

import pytest
from tabs import decide, open_edit_actions, outcome, rename, violations

import marey
from marey.library.index import take_row
from marey.library.page import index_page, page_row
from marey.library.records import Record

FOCUSED = "document.activeElement.textContent"
SELECTED_TEXT = "['selectionStart', 'selectionEnd'].map(k => document.activeElement[k])"
ROLE = "document.activeElement.getAttribute('role')"
NO_SPAM = "!document.querySelector('[role=tree]').textContent.includes('Spam')"


@pytest.fixture(scope="module")
def folder(walked, tmp_path_factory):
    folder = tmp_path_factory.mktemp("access")
    for name in ("other.marey", "walk.marey"):
        marey.write(walked, folder / name)
    marey.write(walked, folder / "walk.html")
    return folder


@contextmanager
def walk_in_a_tab(open_tab, folder):
    with marey.view(folder / "walk.marey", browser=False, block=False) as viewer:
        tab = open_tab(viewer.url)
        tab.until("document.querySelectorAll('.row.joint').length > 0", 300)
        # The tree is built again when the last of the page has arrived.
        tab.page.wait_for_load_state("networkidle")
        yield tab


@pytest.fixture(scope="module")
def tab(open_tab, folder):
    with walk_in_a_tab(open_tab, folder) as tab:
        yield tab


def unfold(tab):
    tab.ask("document.querySelectorAll('section.shut .head').forEach(h => h.click())")


@pytest.mark.parametrize(
    ("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)]
)
def test_no_rule_of_axe_is_broken(open_tab, folder, axe, theme, width):
    address = (folder / "walk.html").as_uri()
    tab = open_tab(address, theme=theme, width=width, height=844)
    tab.select("RightLowerLeg")
    unfold(tab)
    assert violations(tab.page, axe) == []
    tab.page.keyboard.press("?")
    assert violations(tab.page, axe) == []
    tab.page.close()


def test_no_rule_is_broken_on_an_empty_page(open_tab, tmp_path, axe):
    with marey.view(tmp_path, browser=False, block=False) as viewer:
        assert violations(open_tab(viewer.url).page, axe) == []


def test_no_rule_is_broken_while_a_recording_is_solved(open_tab, tmp_path, axe):
    with marey.view(tmp_path, browser=False, block=False) as viewer:
        tab = open_tab(viewer.url, draws=False)
        tab.page.get_by_role("button", name="Show me a generated performer").click()
        tab.until("!document.querySelector('.progress').hidden")
        assert violations(tab.page, axe) == []
        assert tab.page.get_by_role("status").is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 768, 390])
def test_no_rule_is_broken_in_the_index_of_takes(browser, tmp_path, axe, theme, width):
    facts = {
        "n_frames": 300,
        "rate": 60.0,
        "seen": 0.93,
        "residual_mm": 7.2,
        "worst_bone": "LeftHand",
        "picture": {
            "left": "M10 10L20 30",
            "right": "M30 10L20 30",
            "middle": "M5 5L9 9",
        },
        "findings": [["error", "clean", "labels-swapped", "LASI", "is swapped"]],
    }
    done = Record(
        kind="take",
        name="walk.c3d",
        subject="Ann",
        state="done",
        key="",
        facts=facts,
        outputs={"walk.bvh": {}},
    )
    failed = replace(
        done, name="run.c3d", state="failed", error="no markers", facts={}, outputs={}
    )
    records = [done, failed]
    rows = [take_row(record) for record in records]
    lines = [page_row(*pair) for pair in zip(records, rows, strict=True)]
    (tmp_path / "index.html").write_text(index_page(lines, rows), "utf-8")
    # The policy of the page allows its own script alone.
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=theme, bypass_csp=True
    )
    page = context.new_page()
    page.goto((tmp_path / "index.html").as_uri())
    page.locator("summary").click()
    page.get_by_role("button", name="state").click()
    assert violations(page, axe) == []
    # Every column is in sight, and why a take failed.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    reason = page.get_by_text("no markers").bounding_box()
    assert reason["x"] + reason["width"] <= width
    context.close()


def test_the_head_of_the_index_stays_in_view(browser, tmp_path):
    """Also far below its first rows, so that columns can be read and sorted there."""
    record = Record(
        kind="take", name="walk.c3d", subject="Ann", state="failed", key="", error="?"
    )
    row = take_row(record)
    lines = [page_row(record, row)] * 100
    (tmp_path / "index.html").write_text(index_page(lines, [row] * 100), "utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 844})
    page.goto((tmp_path / "index.html").as_uri())
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert page.evaluate("scrollY") > 844
    head = page.get_by_role("button", name="residual, rms").bounding_box()
    assert 0 <= head["y"] < 50
    for column in page.locator("th:has(button)").all():
        button = column.get_by_role("button")
        button.click()  # it has the mark of its order then
        box, cell = button.bounding_box(), column.bounding_box()
        assert box["x"] + box["width"] <= cell["x"] + cell["width"]
    page.close()


def test_no_rule_is_broken_while_an_edit_is_tried(tab, axe):
    unfold(tab)
    rename(tab, "RightUpperArm", "Spam")
    assert outcome(tab) == ""
    assert violations(tab.page, axe) == []
    decide(tab, "Drop")
    tab.until(NO_SPAM)
    tab.ask("document.activeElement.blur()")


def test_the_focus_stays_where_the_page_is_built_again(open_tab, folder):
    with walk_in_a_tab(open_tab, folder) as tab:
        unfold(tab)
        rename(tab, "RightUpperArm", "Spam")
        assert outcome(tab) == ""
        tab.until(f"{FOCUSED} === 'Keep'")
        tab.page.keyboard.press("Enter")
        tab.until("!document.querySelector('.trial')")
        assert tab.ask(FOCUSED).startswith("Edits")
        tab.page.locator("[role=treeitem]", has_text="Chest").first.focus()
        tab.page.keyboard.press("Control+z")
        tab.until(NO_SPAM)
        assert tab.ask("document.activeElement.title") == "Chest"
        assert tab.ask(ROLE) == "treeitem"


def test_what_is_typed_stays_where_the_page_is_built_again(open_tab, folder):
    with walk_in_a_tab(open_tab, folder) as tab:
        rename(tab, "RightUpperArm", "Spam")
        assert outcome(tab) == ""
        decide(tab, "Keep")
        tab.until("document.querySelectorAll('.edit').length === 1")
        field = open_edit_actions(tab, "Head").get_by_label("Rename")
        field.fill("Skull")
        tab.ask("document.activeElement.setSelectionRange(1, 3)")
        tab.page.get_by_role("button", name="Undo").evaluate("undo => undo.click()")
        tab.until(NO_SPAM)
        assert field.input_value() == "Skull"
        assert tab.ask(SELECTED_TEXT) == [1, 3]
        assert tab.select("Chest")
        assert (
            open_edit_actions(tab, "Chest").get_by_label("Rename").input_value()
            == "Chest"
        )


def test_arrows_walk_through_the_tree_and_enter_selects(tab):
    tab.ask("marey.select('')")
    tab.page.locator("[role=treeitem]").first.focus()
    frame = tab.snapshot["frame"]
    names = tab.page.locator("[role=treeitem] .text").all_text_contents()
    assert (
        tab.ask("document.querySelectorAll('[role=treeitem][tabindex=\"0\"]').length")
        == 1
    )
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("ArrowDown")
    focused = "document.activeElement.querySelector('.text').textContent"
    assert tab.ask(focused) == "Chest"
    tab.page.keyboard.press("Enter")
    assert tab.snapshot["selected"] == "Chest"
    tab.page.keyboard.press("ArrowRight")  # the markers of the chest unfold
    assert tab.ask("document.activeElement.ariaExpanded") == "true"
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press(" ")
    assert tab.snapshot["type"] == "marker"
    tab.page.keyboard.press("ArrowLeft")
    assert tab.ask(focused) == "Chest"
    tab.page.keyboard.press("ArrowLeft")
    assert tab.ask("document.activeElement.ariaExpanded") == "false"
    tab.page.keyboard.press("Home")
    assert tab.ask(focused) == names[0]
    assert tab.snapshot["frame"] == frame
    assert not tab.snapshot["playing"]


def test_the_timeline_is_a_slider_that_says_its_time(tab):
    slider = tab.page.get_by_role("slider", name="Time")
    slider.focus()
    tab.page.keyboard.press("Home")
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("PageDown")
    assert tab.snapshot["frame"] == 13  # one, and a tenth of 120
    assert slider.get_attribute("aria-valuenow") == "13"
    assert slider.get_attribute("aria-valuetext") == "0.22 s, frame 13"
    tab.page.keyboard.press("Space")
    tab.until("marey.snapshot().playing")
    tab.page.keyboard.press("Space")
    tab.until("!marey.snapshot().playing")


def test_keys_reach_lengths_and_findings(tab):
    unfold(tab)
    tab.page.locator("td.name button").first.focus()
    tab.page.keyboard.press("ArrowDown")
    name = tab.ask(FOCUSED)
    tab.page.keyboard.press("Enter")
    assert tab.snapshot["type"] == "joint"
    assert name.startswith("Spine")
    assert tab.page.locator(".finding").first.get_attribute("role") == "button"


def test_space_works_the_button_that_has_the_focus(tab):
    box = tab.page.get_by_label("Names")
    box.focus()
    tab.page.keyboard.press("Space")
    assert box.is_checked()
    tab.page.keyboard.press("Space")
    assert not box.is_checked()
    assert not tab.snapshot["playing"]


def test_the_card_of_shortcuts_takes_the_focus_and_gives_it_back(tab):
    fit = tab.page.get_by_role("button", name="Fit to view (f)")
    fit.focus()
    tab.page.keyboard.press("?")
    assert tab.ask(FOCUSED) == "Close"
    tab.page.keyboard.press("Tab")
    assert tab.ask(FOCUSED) == "Close"
    tab.page.keyboard.press("Escape")
    assert tab.ask("document.activeElement.title") == "Fit to view (f)"


def test_arrows_and_enter_open_a_file(open_tab, folder):
    # In a tab of its own: a page with another file would change what others see.
    with walk_in_a_tab(open_tab, folder) as tab:
        unfold(tab)
        tab.page.locator("[role=option]").first.focus()
        tab.page.keyboard.press("End")
        tab.page.keyboard.press("Home")
        assert tab.ask(ROLE) == "option"
        tab.page.keyboard.press("Enter")
        tab.until("marey.snapshot().title === 'other.marey'", 300)
        tab.page.wait_for_load_state("networkidle")
        assert tab.ask(ROLE) == "option"
        assert tab.error_messages == []
