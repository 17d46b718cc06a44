"""The page as one file to mail: what is in it, and what it may do."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import samples
import scenes

import marey
from marey.cli import main
from marey.io.formats.html import encode_scene
from marey.io.formats.html import page as _page
from marey.io.formats.html.page import parse_page
from marey.viewer.worker.exact_values import encode_exact_values

PAGE = """<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>marey</title>
    <style>body { margin: 0 }</style>
    <script type="module">if (1 < 2) { const a = "<style>"; }
// and a second line
</script>
  </head>
  <body>
    <div id="app"></div>
    <script type="application/octet-stream" id="scene"></script>
  </body>
</html>
"""


@pytest.fixture
def page(monkeypatch):
    """A small page instead of the one that is built."""
    monkeypatch.setattr("marey.io.formats.html.read_page", lambda: parse_page(PAGE))


class Inside(HTMLParser):
    """Elements of a page with their attributes and texts, as a browser has them."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append([tag, dict(attrs), ""])

    def handle_endtag(self, tag):
        self.found.append([f"after {tag}", {}, ""])

    def handle_data(self, data):
        if self.found:
            self.found[-1][2] += data

    def of(self, tag):
        return [(attrs, text) for name, attrs, text in self.found if name == tag]


def hashed(text):
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def policy(text):
    (meta,) = (a for a, _ in Inside(text).of("meta") if "http-equiv" in a)
    assert meta["http-equiv"] == "Content-Security-Policy"
    return {
        name: sources
        for name, *sources in (rule.split() for rule in meta["content"].split(";"))
    }


def test_a_page_holds_the_scene_of_a_take_a_motion_or_a_solution(page, tmp_path):
    marey.write(samples.take(6), tmp_path / "take.html")
    marey.write(samples.motion(6), tmp_path / "motion.html")
    header, arrays = scenes.mailed(tmp_path / "take.html")
    take = samples.take(6)
    points = arrays[header["takes"][0]["points"]]
    np.testing.assert_allclose(points[take.seen], take.points[take.seen], atol=5.1e-6)
    header, _ = scenes.mailed(tmp_path / "motion.html")
    assert header["subjects"][0]["joints"][3]["name"] == "Foot"
    assert header["editable"] is False


def test_truth_and_measured_lengths_come_along(page, tmp_path):
    motion = samples.motion(6)
    path = tmp_path / "motion.html"
    marey.write(motion, path, truth=[motion], measured={"Foot": 0.43})
    header, _ = scenes.mailed(path)
    assert header["measured"] == {"Foot": 0.43}
    assert header["truth"]["subjects"][0]["joints"][0]["name"] == "Hips"


@pytest.mark.parametrize("page_options", [{"measured": {"Foot": 0.4}}, {"truth": [1]}])
def test_only_a_page_shows_truth_and_measured_lengths(page_options, tmp_path):
    page_options = {
        k: v if k == "measured" else [samples.motion()] for k, v in page_options.items()
    }
    with pytest.raises(marey.OptionError, match="a page shows it"):
        marey.write(samples.motion(), tmp_path / "motion.bvh", **page_options)
    assert list(tmp_path.iterdir()) == []


def test_joints_have_sides_and_parts_whatever_the_scheme_of_their_names():
    motion = marey.synth.human().perform("still", seconds=0.1)
    names = [n.replace("Left", "mixamorig:Left") for n in motion.skeleton.names]
    for skeleton in (motion.skeleton, replace(motion.skeleton, names=tuple(names))):
        header = scenes.header(encode_scene(replace(motion, skeleton=skeleton)))
        joints = header["subjects"][0]["joints"]
        for joint, name in zip(joints, motion.skeleton.names, strict=True):
            side = next((s for s in ("Left", "Right") if name.startswith(s)), "")
            assert joint["side"] == side
        (head,) = (joint for joint in joints if joint["part"] == "Head")
        assert head["name"].endswith("Head")


def test_angles_of_people_come_along_in_degrees():
    motion = marey.synth.human().perform("walk", seconds=0.5)
    header, arrays = scenes.unpacked(encode_scene(motion))
    angles = header["takes"][0]["motions"][0]["angles"]
    expected = marey.angles(motion)
    at = angles["names"].index("Right knee flexion")
    assert angles["joints"][at] == motion.skeleton.index("RightLowerLeg")
    found = arrays[angles["degrees"]][:, at]
    np.testing.assert_allclose(found, expected["right_knee_flexion"], atol=0.0051)
    _, exact = scenes.unpacked(
        encode_exact_values(motion, take=0, subject=0, joint=angles["joints"][at])
    )
    column = expected.names.index("right_knee_flexion")
    of_knee = expected.degrees[:, column : column + 3]
    np.testing.assert_allclose(exact["clinical"], of_knee, atol=1e-4)
    dog = marey.synth.quadruped().perform("walk", seconds=0.1)
    header = scenes.header(encode_scene(dog))
    assert header["takes"][0]["motions"][0]["angles"] is None


def test_nothing_runs_but_what_was_built_and_nothing_is_fetched(page, tmp_path):
    marey.write(samples.take(6), tmp_path / "take.html")
    text = (tmp_path / "take.html").read_text(encoding="utf-8")
    rules = policy(text)
    scripts = [t for a, t in Inside(text).of("script") if a.get("id") != "scene"]
    styles = [t for _, t in Inside(text).of("style")]
    assert rules["default-src"] == ["'none'"]
    assert rules["script-src"] == [hashed(script) for script in scripts]
    assert rules["style-src"] == [hashed(style) for style in styles]
    assert rules["base-uri"] == rules["form-action"] == ["'none'"]
    assert len(scripts) == len(styles) == 1
    # The policy stands before anything it has to guard.
    assert text.index("Content-Security-Policy") < text.index("<style>")


@pytest.mark.parametrize(
    "name",
    [
        "</title><script>alert(1)</script>.c3d",
        "a\x00b\x1b[31m.c3d",
        '"><img src=x onerror=alert(1)>.c3d',
        "täke – 歩く.c3d",
    ],
)
def test_names_stay_text(page, tmp_path, name):
    take = marey.Take(
        rate=10.0,
        points=np.zeros((3, 1, 3)),
        labels=(name,),
        source=marey.Source(path=name),
    )
    marey.write(take, tmp_path / "take.html")
    text = (tmp_path / "take.html").read_text(encoding="utf-8")
    inside = Inside(text)
    assert len(inside.of("script")) == 2
    assert inside.of("img") == []
    ((_, title),) = inside.of("title")
    assert title.endswith(" · marey")
    assert "\x1b" not in text
    assert "\x00" not in text
    header, _ = scenes.mailed(tmp_path / "take.html")
    assert header["takes"][0]["markers"][0]["label"] == name


def test_the_same_thing_gives_the_same_bytes(page, tmp_path):
    for name in ("one.html", "two.html"):
        marey.write(samples.take(6), tmp_path / name)
    one, two = ((tmp_path / n).read_bytes() for n in ("one.html", "two.html"))
    assert one == two


def test_another_unit_or_axis_is_refused(page, tmp_path):
    with pytest.raises(marey.OptionError, match="m and z"):
        marey.write(samples.take(), tmp_path / "take.html", unit="mm")


def test_a_page_is_not_read(page, tmp_path):
    path = tmp_path / "take.html"
    marey.write(samples.take(6), path)
    with pytest.raises(marey.FormatError, match="page for any browser"):
        marey.read(path)
    with pytest.raises(marey.FormatError, match="page for any browser"):
        marey.load(path)


def test_a_page_that_was_not_built_is_said_so(monkeypatch, tmp_path):
    monkeypatch.setattr(_page, "files", lambda package: tmp_path)
    with pytest.raises(marey.OutputError, match="pip install -e"):
        marey.write(samples.take(), tmp_path / "take.html")
    with pytest.raises(marey.OutputError, match="no title"):
        parse_page(PAGE.replace("title", "h1"))
    assert list(tmp_path.iterdir()) == []


def test_every_place_is_found_whatever_stands_in_the_scripts():
    tricky = PAGE.replace(
        "// and a second line", "const s = '<title>no</title><script id=scene>';"
    )
    found = parse_page(tricky)
    assert tricky[slice(*found.title)] == "marey"
    assert tricky[slice(*found.scene)] == ""
    assert [s.count("<title>no") for s in found.scripts] == [1]


def test_ten_seconds_of_fifty_three_markers_are_under_two_megabytes(tmp_path):
    figure = marey.synth.human(height=1.8, seed=0)
    take = figure.record("walk", seconds=10.0, markers="set53", noise=1e-3, gaps=0.05)
    motion = take.truth.motions[0]
    worn = marey.Motion(
        skeleton=motion.skeleton,
        T_world_root=motion.T_world_root,
        wxyz=motion.wxyz,
        rate=motion.rate,
    )
    marey.write(take, tmp_path / "take.html", truth=[worn])
    size = (tmp_path / "take.html").stat().st_size
    assert size < 2e6
    scene = re.search(r'id="scene">([^<]*)<', (tmp_path / "take.html").read_text())
    assert len(scene[1]) < 6e5


def test_the_page_that_is_built_is_under_a_megabyte_and_well_formed():
    page = _page.read_page()
    assert len(page.text.encode()) < 1e6
    assert "\r" not in page.text
    assert page.scripts
    assert all(page.policy("'none'").count(hashed(s)) == 1 for s in page.scripts)


def test_a_solve_at_the_command_line_ends_in_a_page(page, tmp_path, capsys):
    figure = marey.synth.pendulum()
    take = figure.record(seconds=2.0, markers="none", sensors=True, noise=1e-3)
    marey.write(take, tmp_path / "swing.csv")
    (tmp_path / "tape.toml").write_text("[lengths]\nMiddle = 0.5\n")
    command = ["solve", tmp_path / "swing.csv", "-o", tmp_path / "swing.html"]
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in (*command, "--measured", tmp_path / "tape.toml")])
    assert stop.value.code == 0
    header, _ = scenes.mailed(tmp_path / "swing.html")
    assert header["title"] == "swing.csv"
    assert header["measured"] == {"Middle": 0.5}
    assert "Middle" in [joint["name"] for joint in header["subjects"][0]["joints"]]
