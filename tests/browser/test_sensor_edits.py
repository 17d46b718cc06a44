"""Fine calibration in the browser: sensors on their bones, and joints by numbers."""

import pytest
from tabs import choose, decide, open_edit_actions, outcome

import marey
from marey import synth

FOOT, KNEE = "LeftFoot", "LeftLowerLeg"
SENSOR_SHOWN = "document.querySelector('.right').textContent.includes('Turned there')"


@pytest.fixture(scope="module")
def solved():
    """A performer with 15 sensors."""
    take = synth.human().record(
        "exercise", seed=1, markers="none", sensors=True, rate=30.0, seconds=4.0
    )
    return marey.solve(take, clean=False)


@pytest.fixture(scope="module")
def edits_path(tmp_path_factory):
    return tmp_path_factory.mktemp("edits") / "sensors.edits.toml"


@pytest.fixture(scope="module")
def shared(open_tab, solved, edits_path):
    viewer = marey.view(solved, browser=False, block=False, edits=edits_path)
    tab = open_tab(viewer.url, draws=False)
    tab.until("document.querySelectorAll('.row.joint').length > 0", 300)
    yield tab
    viewer.close()


@pytest.fixture
def tab(shared):
    """The page with nothing selected and no edit on trial or kept."""
    if shared.page.get_by_text("Drop", exact=True).is_visible():
        decide(shared, "Drop")
    while count := shared.page.locator(".edit").count():
        shared.page.get_by_role("button", name="Undo").click()
        shared.until(f"document.querySelectorAll('.edit').length === {count - 1}")
    for _ in range(2):
        shared.page.keyboard.press("Escape")
    shared.seek(0)
    return shared


def select_sensor(tab):
    """Go from a joint to the sensor on its bone, and return what can be done to it."""
    choose(tab, FOOT, "Sensor", FOOT, "Select")
    tab.until(SENSOR_SHOWN)
    return tab.page.locator("details.actions")


def kept_edit(tab, edits_path):
    """Keep the edit on trial, and return it as it is saved."""
    assert outcome(tab) == ""
    sides = tab.page.locator(".trial th").all_inner_texts()
    assert sides == ["before", "after"]
    decide(tab, "Keep")
    tab.until("document.querySelectorAll('.edit').length === 1")
    (edit,) = marey.read_edits(edits_path)
    assert tab.error_messages == []
    return edit


def null_model(solved):
    skeleton = solved.skeleton
    return skeleton.T_joint_sensor[skeleton.sensor_names.index(FOOT)]


def test_a_sensor_is_placed_with_the_keyboard_from_a_frame_on(tab, solved, edits_path):
    tab.seek(40)
    actions = select_sensor(tab)
    actions.get_by_label("Holds").select_option(label="from this frame on")
    field = actions.get_by_label("Place, mm, z")
    field.focus()
    tab.page.keyboard.press("ArrowUp")
    tab.page.keyboard.press("Enter")
    edit = kept_edit(tab, edits_path)
    assert (edit.do, edit.sensor, edit.since) == ("place-sensor", FOOT, 40)
    moved = [a - b for a, b in zip(edit.offset, null_model(solved)[:3, 3], strict=True)]
    assert moved[:2] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert moved[2] == pytest.approx(1e-3, abs=5.1e-5)


def test_a_sensor_is_turned_by_degrees_on_its_bone(tab, edits_path):
    actions = select_sensor(tab)
    before = tab.fact("Turned there")
    actions.get_by_label("Turn by, °, x").fill("10")
    actions.get_by_role("button", name="Turn").click()
    edit = kept_edit(tab, edits_path)
    assert edit.do == "place-sensor"
    assert not edit.offset
    tab.until(SENSOR_SHOWN)
    assert tab.fact("Turned there") != before


def test_a_null_model_is_taken_from_the_range(tab, edits_path):
    actions = select_sensor(tab)
    assert actions.get_by_role("button", name="Take from range").is_disabled()
    tab.ask("document.activeElement.blur()")
    for frame, key in ((50, "i"), (54, "o")):
        tab.seek(frame)
        tab.page.keyboard.press(key)
    actions.get_by_label("Holds").select_option(label="from this frame on")
    actions.get_by_role("button", name="Take from range").click()
    edit = kept_edit(tab, edits_path)
    assert (edit.do, edit.sensors) == ("null-model", (FOOT,))
    assert (edit.first, edit.last, edit.since) == (50, 54, 50)


def test_bodies_of_sensors_are_merged_and_split(tab, edits_path):
    choose(tab, KNEE, "Merge with", FOOT, "Merge")
    assert kept_edit(tab, edits_path).bodies == (KNEE, FOOT)
    box = open_edit_actions(tab, KNEE).locator(".split")
    box.locator("summary").click()
    box.get_by_text(f"{FOOT} (sensor)").click()
    box.get_by_role("button", name="Split").click()
    assert outcome(tab) == ""
    decide(tab, "Keep")
    tab.until("document.querySelectorAll('.edit').length === 2")
    split = marey.read_edits(edits_path)[1]
    assert (split.do, split.body, split.sensors) == ("split", KNEE, (FOOT,))


def test_a_joint_is_placed_and_given_an_axis_by_numbers(tab, solved, edits_path):
    actions = open_edit_actions(tab, KNEE)
    skeleton = solved.skeleton
    place = 1e3 * skeleton.offset[skeleton.index(KNEE)]
    field = actions.get_by_label("Centre, mm, x")
    assert float(field.input_value()) == pytest.approx(place[0], abs=0.051)
    field.fill(str(place[0] + 20.0))
    field.press("Enter")
    edit = kept_edit(tab, edits_path)
    assert edit.do == "place-joint"
    assert edit.offset[0] == pytest.approx(place[0] / 1e3 + 0.02)
    tab.page.get_by_role("button", name="Undo").click()
    tab.until("document.querySelectorAll('.edit').length === 0")
    actions = open_edit_actions(tab, KNEE)
    for axis, value in zip("xyz", ("0", "1", "0"), strict=True):
        actions.get_by_label(f"Hinge axis, {axis}").fill(value)
    actions.get_by_title("Hinge axis: Set").click()
    edit = kept_edit(tab, edits_path)
    assert (edit.do, edit.axis) == ("axis", (0.0, 1.0, 0.0))
    assert tab.fact("Type") == "hinge"
