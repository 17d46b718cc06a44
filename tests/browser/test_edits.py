"""Edits in the browser: each is tried, kept and undone."""

import pytest
from tabs import choose, drag, open_edit_actions, outcome, press, rename

import marey


@pytest.fixture(scope="module")
def edits_path(tmp_path_factory):
    return tmp_path_factory.mktemp("edits") / "walk.edits.toml"


@pytest.fixture(scope="module")
def viewer(walked, edits_path):
    viewer = marey.view(walked, browser=False, block=False, edits=edits_path)
    yield viewer
    viewer.close()


@pytest.fixture(scope="module")
def shared(open_tab, viewer):
    tab = open_tab(viewer.url, draws=False)
    tab.until("document.querySelectorAll('.row.joint').length > 0", 300)
    return tab


@pytest.fixture(scope="module")
def drawn(open_tab, viewer):
    """The page with its scene, for edits that drag in it."""
    tab = open_tab(viewer.url)
    tab.until("document.querySelectorAll('.row.joint').length > 0", 300)
    return tab


@pytest.fixture
def tab(shared):
    return cleared(shared)


def cleared(shared):
    """Return the page with nothing selected and no edit kept."""
    if shared.page.get_by_text("Drop", exact=True).is_visible():
        shared.page.get_by_text("Drop", exact=True).click()
        shared.until("!document.querySelector('.trial')")
    while shared.page.locator(".edit").count():
        undo(shared)
    for _ in range(2):
        shared.page.keyboard.press("Escape")
    shared.ask("marey.select('')")
    shared.seek(0)
    shared.page.keyboard.press("4")
    shared.wait_for_frame()
    return shared


def split(tab):
    box = open_edit_actions(tab, "Chest").locator(".split")
    box.locator("summary").click()
    for label in ("CLAV", "STRN"):
        box.get_by_text(label, exact=True).click()
    box.get_by_role("button", name="Split").click()


def mark_bad(tab):
    for frame, key in ((20, "i"), (29, "o")):
        tab.seek(frame)
        tab.page.keyboard.press(key)
    tab.page.get_by_role("button", name="Mark as bad").click()


def set_ground(tab):
    tab.page.get_by_label("Height of the ground in mm").fill("-40")
    tab.page.get_by_role("button", name="Set, mm").click()


EDITS = {
    "kind": lambda tab: choose(tab, "LeftLowerLeg", "Type", "hinge", "Set"),
    "rename": lambda tab: rename(tab, "LeftFoot", "Left <i>boot</i>"),
    "reroot": lambda tab: press(tab, "Chest", "Make it the root"),
    "move-marker": lambda tab: choose(tab, "STRN", "Move to", "Hips", "Move"),
    "merge": lambda tab: choose(tab, "LeftHand", "Merge with", "LeftLowerArm", "Merge"),
    "split": split,
    "cut": lambda tab: press(tab, "LeftHand", "Cut from LeftLowerArm"),
    "join": lambda tab: choose(tab, "LeftHand", "Join with", "LeftUpperArm", "Join"),
    "bad": mark_bad,
    "ground": set_ground,
}


def changes_edits(tab, by, act):
    """Do something and wait until so many edits more are listed."""
    after = tab.page.locator(".edit").count() + by
    act()
    tab.until(f"document.querySelectorAll('.edit').length === {after}")


def keep(tab):
    changes_edits(tab, 1, tab.page.get_by_role("button", name="Keep").click)
    tab.until("!document.querySelector('.trial')")


def undo(tab):
    changes_edits(tab, -1, tab.page.get_by_role("button", name="Undo").click)


def look(tab):
    """What a user sees of the answer: tree, lengths, score, first frame, ground."""
    tab.ask("marey.select('')")
    tab.seek(0)
    parts = (".left .row.joint", "section:has-text('Bone lengths') tr", ".score")
    texts = [tab.page.locator(part).all_text_contents() for part in parts]
    ground = tab.page.get_by_label("Height of the ground in mm").input_value()
    return [*texts, tab.text(".readout"), ground]


def sees(tab, wanted):
    """What the user sees, once it is as wanted: the scene comes after the state."""
    for _ in range(100):
        if (seen := look(tab)) == wanted:
            break
        tab.page.wait_for_timeout(100)
    return seen


def try_keep_and_undo(tab, edit):
    before = look(tab)
    edit(tab)
    assert outcome(tab) == ""
    sides = tab.page.locator(".trial th").all_inner_texts()
    assert sides == ["before", "after"]
    keep(tab)
    assert look(tab) != before
    undo(tab)
    assert sees(tab, before) == before
    assert tab.error_messages == []


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_tried_kept_and_undone(tab, name):
    try_keep_and_undo(tab, EDITS[name])


def test_what_was_undone_is_done_again(tab):
    EDITS["kind"](tab)
    assert outcome(tab) == ""
    keep(tab)
    after = look(tab)
    undo(tab)
    changes_edits(tab, 1, lambda: tab.page.keyboard.press("Control+Shift+Z"))
    assert sees(tab, after) == after


def test_a_dropped_edit_leaves_everything_as_it_was(tab):
    before = look(tab)
    EDITS["kind"](tab)
    assert outcome(tab) == ""
    kind = tab.page.locator(".fact", has=tab.page.get_by_text("Type", exact=True))
    assert kind.locator("b").inner_text() == "hinge"
    tab.page.get_by_role("button", name="Drop").click()
    tab.until("!document.querySelector('.trial')")
    assert sees(tab, before) == before
    assert tab.page.locator(".edit").count() == 0


def test_an_edit_that_cannot_be_is_refused_with_the_reason(tab):
    before = look(tab)
    rename(tab, "LeftFoot", "RightFoot")
    assert "RightFoot" in outcome(tab)
    assert sees(tab, before) == before


def test_what_was_kept_is_in_the_file_in_the_order_it_was_done(tab, edits_path):
    for name in ("kind", "ground"):
        EDITS[name](tab)
        assert outcome(tab) == ""
        keep(tab)
    assert [edit.do for edit in marey.read_edits(edits_path)] == ["kind", "ground"]
    lines = tab.page.locator(".edit").all_inner_texts()
    assert [line[0] for line in lines] == ["1", "2"]
    undo(tab)
    assert [edit.do for edit in marey.read_edits(edits_path)] == ["kind"]


# Last, because from here on a second page draws every change.
@pytest.mark.parametrize("name", ["LSHN", "LeftLowerLeg"])
def test_a_marker_or_joint_is_dragged_kept_and_put_back(drawn, name):
    try_keep_and_undo(cleared(drawn), lambda tab: drag(tab, name))


def test_nothing_is_dragged_where_nothing_is_drawn(tab):
    actions = open_edit_actions(tab, "LeftLowerLeg")
    assert actions.get_by_role("button", name="Cut from LeftUpperLeg").count() == 1
    assert actions.get_by_role("button", name="Drag in the scene").count() == 0
