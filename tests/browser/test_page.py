"""The HTML file: opened from disk, read and operated."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import marey
from marey import synth
from marey.io.formats import html
from marey.numerics import geometry
from marey.take import Take


@pytest.fixture(scope="module")
def file(walked, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "walk.html"
    marey.write(walked, path)
    return path


@pytest.fixture(scope="module")
def shared(open_tab, file):
    return open_tab(file.as_uri())


@pytest.fixture
def tab(shared):
    """The page as it is when it has just been opened."""
    if shared.snapshot["playing"]:
        shared.page.keyboard.press("Space")
    for _ in range(3):
        shared.page.keyboard.press("Escape")
    shared.ask("marey.select('')")
    shared.page.keyboard.press("4")
    shared.seek(0)
    return shared


def shown(text):
    """Numbers of a text as the page writes them."""
    return [float(n) for n in re.findall(r"-?\d+\.?\d*", text.replace("−", "-"))]


def test_opens_from_a_file_without_the_network_and_without_complaint(open_tab, file):
    tab = open_tab(file.as_uri())
    tab.page.keyboard.press("Space")
    tab.page.wait_for_timeout(300)
    assert tab.requests == [file.as_uri()]
    assert tab.error_messages == []
    tab.page.close()  # it plays, which would slow down other tests


def test_the_page_without_its_data_is_below_a_megabyte(file):
    page = Path(marey.__file__).parent / "viewer" / "page.html"
    assert page.stat().st_size < 1_000_000
    assert file.stat().st_size < 1_400_000


def test_plays_and_pauses(tab):
    tab.page.keyboard.press("Space")
    tab.until("marey.frame > 5")
    tab.page.keyboard.press("Space")
    tab.wait_for_frame()
    frame = tab.snapshot["frame"]
    tab.page.wait_for_timeout(150)
    assert tab.snapshot["frame"] == frame


def test_plays_a_range_over_and_over(tab):
    for frame, key in ((20, "i"), (26, "o")):
        tab.seek(frame)
        tab.page.keyboard.press(key)
    assert tab.snapshot["range"] == [20, 26]
    tab.page.keyboard.press("Space")
    seen = [20]
    for _ in range(500):
        tab.page.wait_for_timeout(35)
        seen.append(tab.snapshot["frame"])
        if seen[-1] < seen[-2]:
            break
    tab.page.keyboard.press("Space")
    assert min(seen) >= 20
    assert max(seen) <= 26
    assert seen[-1] < seen[-2]


def test_scrubbing_shows_the_frame_under_the_pointer(tab, walk):
    strips = tab.page.locator(".strips canvas").bounding_box()
    left, width = strips["x"] + 124, strips["width"] - 124 - 10
    for share in (0.25, 0.75):
        tab.page.mouse.click(left + share * width, strips["y"] + 10)
        expected = share * (walk.n_frames - 1)
        assert abs(tab.snapshot["frame"] - expected) <= 1


@pytest.mark.parametrize(
    ("key", "frame"),
    [("ArrowRight", 51), ("ArrowLeft", 49), ("Shift+ArrowRight", 60), ("Home", 0)],
)
def test_keys_step_through_the_frames(tab, key, frame):
    tab.seek(50)
    tab.page.keyboard.press(key)
    assert tab.snapshot["frame"] == frame


@pytest.mark.parametrize("name", ["LeftLowerLeg", "RightLowerArm", "Head"])
def test_a_click_in_the_scene_picks_the_joint_there(tab, name):
    tab.page.keyboard.press("m")  # markers off: some lie on top of joints
    tab.wait_for_frame()
    spot = tab.page.evaluate("name => marey.where(name)", name)
    tab.page.mouse.click(spot["x"], spot["y"])
    tab.page.keyboard.press("m")
    assert tab.snapshot["selected"] == name
    assert tab.text(".right .title") == name
    assert tab.text(".row.selected .text") == name


def test_a_click_in_the_scene_picks_the_marker_there(tab, walk):
    tab.page.keyboard.press("j")
    tab.wait_for_frame()
    spot = tab.page.evaluate("name => marey.where(name)", "LSHN")
    tab.page.mouse.click(spot["x"], spot["y"])
    tab.page.keyboard.press("j")
    assert tab.snapshot["selected"] == "LSHN"


def test_a_click_in_the_tree_selects_and_hover_shows_the_name(tab):
    tab.page.locator(".row.joint", has_text="RightLowerLeg").first.click()
    assert tab.snapshot["selected"] == "RightLowerLeg"
    tab.page.locator(".row.joint", has_text="LeftUpperArm").first.hover()
    tab.wait_for_frame()
    tags = tab.page.locator(".tag:visible").all_inner_texts()
    assert tags == ["RightLowerLeg", "LeftUpperArm"]


def bone_name(skeleton, joint):
    """The upper arm runs from shoulder to elbow; of the hips several bones start."""
    parent = int(skeleton.parent[joint])
    alone = (skeleton.parent == parent).sum() == 1
    names = [skeleton.names[parent], skeleton.names[joint]]
    return names[0] if alone else " – ".join(names)


def test_bone_lengths_and_their_errors_are_those_of_the_skeleton(tab, walked):
    skeleton = walked.skeleton
    rows = tab.page.locator("section", has_text="Bone lengths").locator("tr").all()
    assert len(rows) == skeleton.n_joints - 1
    for joint, line in enumerate(rows, start=1):
        cells = line.locator("td").all_inner_texts()
        assert cells[0] == bone_name(skeleton, joint)
        assert float(cells[1]) == pytest.approx(
            1000 * skeleton.lengths[joint], abs=0.06
        )
        sd = 1000 * skeleton.length_sd[joint]
        if np.isnan(sd):
            assert cells[2] == ""
        else:
            assert shown(cells[2]) == [pytest.approx(sd, abs=0.06)]


def test_residuals_are_the_distances_from_the_figure(tab, walked, walk):
    skeleton, motion = walked.skeleton, walked.motion
    T = motion.T_world_joint()
    for label in ("LSHN", "RKNE", "C7"):
        if label not in skeleton.marker_labels:
            continue
        at = skeleton.marker_labels.index(label)
        place = geometry.apply(
            T[:, skeleton.marker_joint[at]], skeleton.marker_offset[at][None, None]
        )
        seen = walked.take.points[:, walked.take.labels.index(label)]
        filled = walked.take.filled[:, walked.take.labels.index(label)]
        away = np.linalg.norm(place.reshape(-1, 3) - seen, axis=-1)
        away = np.where(filled, np.nan, away)
        tab.select(label)
        rms = 1000 * np.sqrt(np.nanmean(away**2))
        assert float(tab.fact("Residual rms")) == pytest.approx(rms, abs=0.02)
        for frame in np.flatnonzero(np.isfinite(away))[[0, -1]]:
            tab.seek(int(frame))
            now = float(tab.fact("Residual now"))
            assert now == pytest.approx(1000 * away[frame], abs=0.03)


def test_gaps_are_the_distances_between_the_halves_of_a_joint(tab, walked):
    names, fits = list(walked.bodies[0].names), walked.joints
    pair = sorted(names.index(n) for n in ("LeftUpperLeg", "LeftLowerLeg"))
    edge = [sorted(ab) for ab in fits.pair.tolist()].index(pair)
    T = walked.bodies[0].T_world_body
    a, b = fits.pair[edge]
    ends = (
        geometry.apply(T[:, body], center[None])
        for body, center in ((a, fits.center_a[edge]), (b, fits.center_b[edge]))
    )
    gap = 1000 * np.linalg.norm(np.subtract(*ends), axis=-1).reshape(-1)
    tab.select("LeftLowerLeg")
    rms = np.sqrt(np.nanmean(gap**2))
    assert float(tab.fact("Gap rms")) == pytest.approx(rms, abs=0.02)
    fit = 1000 * fits.residual[edge]
    assert float(tab.fact("Gap of the fit")) == pytest.approx(fit, abs=0.02)
    for frame in np.flatnonzero(np.isfinite(gap))[[0, -1]]:
        tab.seek(int(frame))
        assert float(tab.fact("Gap now")) == pytest.approx(gap[frame], abs=0.02)


def now(tab, section):
    """Names and present values of the curves in a section."""
    rows = tab.page.locator("section", has=tab.page.get_by_role("button", name=section))
    names = rows.locator(".now .text").all_inner_texts()
    values = [shown(t)[0] for t in rows.locator(".now b").all_inner_texts()]
    return dict(zip(names, values, strict=True))


def test_angles_of_people_are_clinical_and_named(tab, walked):
    angles = marey.angles(walked.motion)
    for joint, name in (("LeftLowerLeg", "left_knee"), ("RightUpperLeg", "right_hip")):
        tab.select(joint)
        for frame in (0, 37, walked.motion.n_frames - 1):
            tab.seek(frame)
            own = [n for n in angles.names if n.startswith(name)]
            expected = {n.replace("_", " ").capitalize(): angles[n][frame] for n in own}
            assert len(expected) == 3
            assert now(tab, "Selection") == pytest.approx(expected, abs=0.06)


def test_both_sides_of_a_joint_stand_side_by_side(tab, walked):
    angles = marey.angles(walked.motion)
    tab.select("RightFoot")
    assert tab.page.get_by_label("Joint of the angles").input_value() != ""
    found = now(tab, "Angles")
    expected = {
        n.replace("_", " ").capitalize(): angles[n][0]
        for n in angles.names
        if "ankle" in n
    }
    assert found == pytest.approx(expected, abs=0.06)
    assert len(found) == 6
    tab.page.get_by_label("Joint of the angles").select_option(label="knee")
    assert set(now(tab, "Angles")) == {
        f"{side} knee {angle}"
        for side in ("Left", "Right")
        for angle in ("flexion", "adduction", "internal rotation")
    }


def test_other_angles_are_named_by_joint_and_axis(open_tab, tmp_path):
    motion = synth.quadruped().perform("walk", seconds=0.5, rate=60.0)
    marey.write(motion, tmp_path / "dog.html")
    tab = open_tab((tmp_path / "dog.html").as_uri())
    ball = motion.skeleton.kind.index("ball")
    name = motion.skeleton.names[ball]
    angles = np.degrees(geometry.euler_continuous(motion.wxyz[:, ball], "ZXY"))
    tab.select(name)
    tab.seek(7)
    expected = {f"{name} about {axis}": angles[7, k] for k, axis in enumerate("zxy")}
    assert now(tab, "Selection") == pytest.approx(expected, abs=0.11)
    hinge = motion.skeleton.names[motion.skeleton.kind.index("hinge")]
    tab.select(hinge)
    assert list(now(tab, "Selection")) == [f"{hinge} about its hinge"]
    assert not tab.page.get_by_label("Joint of the angles").is_visible()
    tab.page.close()


def test_the_figure_stands_where_the_motion_has_it(tab, walked):
    """The middle of the screen is where the camera looks: put a joint there."""
    tab.seek(60)
    place = walked.motion.T_world_joint()[60, :, :3, 3]
    one, other = (walked.skeleton.index(n) for n in ("LeftFoot", "RightFoot"))
    a, b = (
        tab.page.evaluate("n => marey.where(n)", n) for n in ("LeftFoot", "RightFoot")
    )
    camera, target = (np.array(tab.snapshot[k]) for k in ("camera", "target"))
    back = (camera - target) / np.linalg.norm(camera - target)
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    box = tab.page.locator(".stage canvas").first.bounding_box()
    half = np.tan(np.radians(18.0))
    for spot, joint in ((a, one), (b, other)):
        away = place[joint] - camera
        x = (away @ right) / (-(away @ back) * half) * box["height"] / 2
        assert spot["x"] == pytest.approx(box["x"] + box["width"] / 2 + x, abs=0.5)


def test_the_same_frame_gives_the_same_picture(tab):
    def picture(frame):
        tab.seek(frame)
        tab.ask("marey.draw()")
        return tab.page.screenshot()

    first = picture(40)
    assert picture(90) != first
    assert picture(40) == first


def test_theme_follows_the_machine_and_the_key(open_tab, file, tab):
    light = open_tab(file.as_uri(), theme="light")
    assert light.snapshot["theme"] == "light"
    assert tab.snapshot["theme"] == "dark"
    tab.page.keyboard.press("d")
    assert tab.snapshot["theme"] == "light"
    tab.page.keyboard.press("d")


def test_question_mark_opens_the_card_of_shortcuts_and_escape_closes_it(tab):
    card = tab.page.locator(".help")
    assert not card.is_visible()
    tab.page.keyboard.press("?")
    assert card.is_visible()
    assert "play or pause" in card.inner_text()
    tab.page.keyboard.press("Escape")
    assert not card.is_visible()


def test_nothing_shifts_when_something_is_selected(tab):
    boxes = [".topbar", ".left", ".stage", ".right", ".timeline"]
    places = [tab.page.locator(b).bounding_box() for b in boxes]
    tab.select("LeftLowerLeg")
    tab.seek(33)
    assert [tab.page.locator(b).bounding_box() for b in boxes] == places


def test_standard_views_look_along_the_axes(tab):
    for key, axis in (("1", 1), ("2", 0), ("3", 2)):
        tab.page.keyboard.press(key)
        tab.wait_for_frame()
        state = tab.snapshot
        side = np.array(state["camera"]) - np.array(state["target"])
        assert abs(side[axis]) / np.linalg.norm(side) > 0.98


def test_takes_are_chosen_and_subjects_stand_side_by_side(open_tab, walked, tmp_path):
    later, subject = replace(walked.take, start=10.0), walked.subjects[0]
    motions = subject.motions[0], replace(subject.motions[0], start=10.0)
    double = replace(
        walked,
        takes=(walked.take, later),
        bodies=walked.bodies * 2,
        subjects=tuple(replace(subject, name=n, motions=motions) for n in "AB"),
    )
    marey.write(double, tmp_path / "double.html")
    tab = open_tab((tmp_path / "double.html").as_uri())
    assert tab.page.locator(".group").all_inner_texts()[:2] == ["A", "B"]
    roots = tab.page.locator(".row.joint", has_text=walked.skeleton.names[0])
    assert roots.count() == 2
    assert tab.text(".clock").startswith("0:00.000 s")
    tab.page.locator(".takes").select_option(index=1)
    assert tab.text(".clock").startswith("0:10.000 s")
    assert tab.error_messages == []


@pytest.fixture(scope="module")
def looks(walked):
    """Four frames at rest: one marker seen, filled, then far off and filled there."""
    take, subject, motion = walked.take, walked.subjects[0], walked.motion
    still = np.arange(take.n_frames)
    still[30:34] = 30
    points, filled = take.points[still], take.filled[still]
    marker = take.labels.index("LSHN")
    filled[30:34, marker] = [False, True, False, True]
    points[32:34, marker, 2] += 0.3
    held = {"T_world_root": motion.T_world_root[still], "wxyz": motion.wxyz[still]}
    rested = replace(motion, **held)
    return replace(
        walked,
        takes=(replace(take, points=points, filled=filled),),
        subjects=(replace(subject, motions=(rested,)),),
    )


def test_markers_look_as_they_are(open_tab, looks, tmp_path):
    """Balls, diamonds and crosses, in places where nothing else changes."""
    marey.write(looks, tmp_path / "looks.html")
    tab = open_tab((tmp_path / "looks.html").as_uri())
    pictures = {}
    tab.select("LSHN")
    for frame, word in ((30, "seen"), (31, "filled"), (32, "outlier"), (33, "filled")):
        tab.seek(frame)
        assert tab.fact("Now") == word
        spot = tab.page.evaluate("name => marey.where(name)", "LSHN")
        tab.ask("marey.draw()")
        around = {"x": spot["x"] - 8, "y": spot["y"] - 8, "width": 16, "height": 16}
        pictures[frame] = tab.page.screenshot(clip=around)
    assert pictures[30] != pictures[31]
    assert pictures[32] != pictures[33]


NASTY = "<img src=x onerror=alert(1)>"


def test_names_stay_text_whatever_they_contain(open_tab, tmp_path, rng):
    labels = (NASTY, "<script>alert(1)</script>", "a\x1b[31m\nb", "&amp;")
    points = rng.normal(size=(5, 4, 3))
    take = Take(rate=10.0, points=points, labels=labels)
    marey.write(take, tmp_path / "nasty.html")
    tab = open_tab((tmp_path / "nasty.html").as_uri())
    rows = tab.page.locator(".row.marker .text").all_inner_texts()
    assert rows[:2] == list(labels[:2])
    assert rows[3] == "&amp;"
    assert "\x1b" not in rows[2]
    assert tab.page.locator("#app img, #app script").count() == 0
    assert tab.error_messages == []


def test_a_take_without_a_solution_shows_its_markers_and_says_why(open_tab, tmp_path):
    take = synth.human(1.8).record("walk", seconds=0.5, rate=30.0, markers="set53")
    why = "too few frames <b>to tell</b>"
    page = html.read_page().with_scene(
        html.encode_scene(take, html.SceneOptions(unsolved=why)), "t"
    )
    path = tmp_path / "take.html"
    path.write_bytes(page)
    tab = open_tab(path.as_uri())
    assert tab.page.locator(".row.marker").count() == len(take.labels)
    assert tab.text(".unsolved") == why
    assert tab.error_messages == []


def test_a_long_take_is_shown_whole(open_tab, tmp_path, rng):
    points = np.cumsum(rng.normal(scale=1e-3, size=(5000, 53, 3)), axis=0)
    take = Take(rate=120.0, points=points, labels=tuple(f"m{i}" for i in range(53)))
    marey.write(take, tmp_path / "long.html")
    tab = open_tab((tmp_path / "long.html").as_uri())
    tab.page.keyboard.press("End")
    assert tab.snapshot["frame"] == 4999
    tab.select("m17")
    shows = [int(n) for n in tab.fact("At").replace("−", "-").split()]
    assert shows == pytest.approx(list(1000 * points[-1, 17]), abs=0.51)


def test_a_tablet_shows_all_parts(open_tab, file):
    tab = open_tab(file.as_uri(), width=1024, height=768, touch=True)
    for part in (".topbar", ".left", ".stage", ".right", ".timeline"):
        box = tab.page.locator(part).bounding_box()
        assert box["x"] + box["width"] <= 1024
        assert box["y"] + box["height"] <= 768
    spot = tab.ask("marey.where('LeftLowerLeg')")
    tab.page.touchscreen.tap(spot["x"] + 3, spot["y"] + 3)
    assert tab.snapshot["selected"] != ""


def test_a_wide_screen_shows_names_of_joints_whole(open_tab, file):
    tab = open_tab(file.as_uri(), width=1440, height=900, draws=False)
    cut = """[...document.querySelectorAll('.row.joint .text')]
      .filter(name => name.scrollWidth > name.clientWidth)
      .map(name => name.textContent)"""
    assert tab.ask(cut) == []
    tab.page.close()


def test_left_and_right_have_colours_and_a_legend(tab):
    swatch = """name => {
      const rows = [...document.querySelectorAll('.left .row.joint')];
      const row = rows.find((r) => r.querySelector('.text').textContent === name);
      return row.querySelector('.swatch').style.background; }"""

    def colour(name):
        return tab.page.evaluate(swatch, name)

    assert colour("LeftFoot") == colour("LeftShoulder") == colour("LeftHand_end")
    assert colour("RightFoot") == colour("RightShoulder")
    assert len({colour("LeftFoot"), colour("RightFoot"), colour("Hips")}) == 3
    legend = tab.page.locator(".legend .sides")
    assert legend.inner_text().split() == ["left", "right"]
    tab.page.get_by_label("Colours").select_option(label="bodies")
    assert not legend.is_visible()
    assert colour("LeftFoot") != colour("LeftUpperLeg")
    tab.page.get_by_label("Colours").select_option(label="left, right")
    assert legend.is_visible()
