"""Two subjects in one recording: the page assigns each joint to its subject."""

import pytest
from tabs import choose, decide, drag, open_edit_actions, outcome, press, rename

import marey
from marey.synth import scenes

KNEE = "B:LeftLowerLeg"
ROWS = ".left .row.joint"


@pytest.fixture(scope="module")
def viewer():
    together = marey.solve(scenes.scene("together", seconds=4.0, rate=50.0))
    with marey.view(together, browser=False, block=False) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def shared(open_tab, viewer):
    tab = open_tab(viewer.url, draws=False)
    tab.until(f"document.querySelectorAll('{ROWS}').length > 0", 300)
    return tab


@pytest.fixture
def tab(shared):
    return cleared(shared)


def cleared(shared):
    """Return the page with nothing selected, no edit kept and none tried."""
    if shared.page.locator(".trial").count():
        decide(shared, "Drop")
    while n_edits := shared.page.locator(".edit").count():
        shared.page.get_by_role("button", name="Undo").click()
        shared.until(f"document.querySelectorAll('.edit').length === {n_edits - 1}")
    shared.ask("marey.select('')")
    return shared


def rows(tab, name):
    """The rows of a name in the tree, of A and of B."""
    there = tab.page.get_by_text(name, exact=True)
    return tab.page.locator(ROWS, has=there)


def chosen(tab):
    """Which rows of the tree are selected, of all."""
    script = f"""[...document.querySelectorAll('{ROWS}')].flatMap(
      (row, i) => row.classList.contains('selected') ? [i] : [])"""
    return tab.ask(script)


EDITS = {
    "kind": lambda tab: choose(tab, KNEE, "Type", "hinge", "Set"),
    "rename": lambda tab: rename(tab, KNEE, "Shin"),
    "reroot": lambda tab: press(tab, KNEE, "Make it the root"),
    "cut": lambda tab: press(tab, KNEE, "Cut from LeftUpperLeg"),
    "merge": lambda tab: choose(tab, KNEE, "Merge with", "B:LeftFoot", "Merge"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_a_joint_is_of_the_one_selected(tab, name):
    assert_is_of_the_knee(tab, EDITS[name])


def assert_is_of_the_knee(tab, edit):
    tab.page.keyboard.press("4")
    tab.wait_for_frame()
    edit(tab)
    assert outcome(tab) == ""
    assert KNEE in tab.text(".trial")
    assert tab.error_messages == []


def test_both_may_have_a_joint_of_one_name(tab):
    for whose in "AB":
        rename(tab, f"{whose}:LeftLowerLeg", "Shin")
        assert outcome(tab) == ""
        assert f"{whose}:Shin" in tab.text(".trial")
        decide(tab, "Keep")
    shins = ["Shin", "Shin"]
    tab.until_texts(f"{ROWS} .text:text-is('Shin')", shins)
    assert rows(tab, "LeftLowerLeg").count() == 0


@pytest.mark.parametrize("name", ["Hips", "LeftLowerLeg", "LeftFoot_end"])
def test_what_is_selected_stays_selected_whose_it_is(tab, name):
    for whose in (1, 0):
        rows(tab, name).nth(whose).click()
        tab.until("document.querySelector('.left .row.joint.selected')")
        before = chosen(tab)
        assert len(before) == 1
        tab.page.get_by_label("Height of the ground in mm").fill("5")
        tab.page.get_by_role("button", name="Set, mm").click()
        assert outcome(tab) == ""
        assert chosen(tab) == before
        decide(tab, "Drop")
        tab.until(f"document.querySelectorAll('{ROWS}').length > 0")
        assert chosen(tab) == before


def test_one_length_lights_up_for_one_joint(tab):
    rows(tab, "LeftLowerLeg").nth(1).click()
    tab.until("document.querySelector('tr.selected')")
    marked = "[...document.querySelectorAll('tr')].map(r => r.classList.contains('{}'))"
    lit = tab.ask(marked.format("selected"))
    assert [i for i, on in enumerate(lit) if on] == [lit.index(True)]
    assert lit.index(True) >= len(lit) / 2
    rows(tab, "LeftLowerLeg").nth(0).hover()
    tab.until("document.querySelector('tr.hovered')")
    over = tab.ask(marked.format("hovered"))
    assert [i for i, on in enumerate(over) if on] == [lit.index(True) - len(lit) // 2]


def test_a_joint_without_a_body_is_not_offered_what_bodies_are(tab):
    rows(tab, "LeftFoot_end").nth(1).click()
    labels = (
        open_edit_actions(tab, "LeftFoot_end").get_by_role("button").all_inner_texts()
    )
    assert "Rename" in labels
    assert not {"Make it the root", "Join", "Merge"} & set(labels)


# Last, because from here on a second page draws every change.
def test_a_joint_that_is_dragged_is_the_one_selected(open_tab, viewer):
    drawn = open_tab(viewer.url)
    drawn.until(f"document.querySelectorAll('{ROWS}').length > 0", 300)
    assert_is_of_the_knee(cleared(drawn), lambda tab: drag(tab, KNEE))
