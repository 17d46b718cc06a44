"""Export: every format from the server, and what a mailed page writes by itself."""

import zipfile
from dataclasses import replace

import numpy as np
import pytest

import marey


@pytest.fixture(scope="module")
def served(open_tab, walked):
    with marey.view(walked, browser=False, block=False) as viewer:
        tab = open_tab(viewer.url, draws=False)
        tab.until("document.querySelectorAll('.row.joint').length > 0", 300)
        tab.page.get_by_role("button", name="Export").click()
        yield tab


def labels(tab):
    """The buttons of the export panel, as (row, label)."""
    rows = tab.page.locator(".export").all()
    return [
        (row.locator("span").first.inner_text(), label)
        for row in rows
        for label in row.get_by_role("button").all_inner_texts()
    ]


def saved(tab, row, label, folder):
    """Press a button of the export panel and return the file that it saves."""
    line = tab.page.locator(".export", has=tab.page.get_by_text(row, exact=True))
    with tab.page.expect_download(timeout=120_000) as download:
        line.get_by_role("button", name=label, exact=True).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def largest_difference(one, other):
    """The largest distance between joints of one name, in metres."""
    assert sorted(one.skeleton.names) == sorted(other.skeleton.names)
    order = [one.skeleton.index(name) for name in other.skeleton.names]
    a, b = (m.T_world_joint()[..., :3, 3] for m in (one, other))
    return np.abs(a[:, order] - b).max()


def test_every_format_of_a_solution_has_a_button(served):
    found = labels(served)
    suffixes = {label for _, label in found if label.startswith(".")}
    for needed in (".c3d", ".bvh", ".amc", ".trc", ".glb", ".usda", ".fbx", ".html"):
        assert needed in suffixes
    assert {".mjcf", ".urdf", ".osim", ".sto", ".mot", ".marey"} <= suffixes
    assert ("Table .csv", "angles") in found
    assert ("Table .csv", "markers") in found


def test_what_is_saved_is_the_solution(served, walked, tmp_path):
    bvh = marey.read_motion(saved(served, "BVH", ".bvh", tmp_path))
    assert largest_difference(bvh, walked.motion) < 1e-5
    table = saved(served, "Table .csv", "angles", tmp_path)
    assert "right_knee_flexion" in table.read_text().splitlines()[0]
    with zipfile.ZipFile(saved(served, "AMC", ".amc", tmp_path)) as archive:
        suffixes = {name.rpartition(".")[2] for name in archive.namelist()}
    assert suffixes == {"amc", "asf"}
    # What a format does not hold is said where the file was asked for.
    assert len(served.page.locator(".said p").all()) > 1
    assert served.error_messages == []


def test_a_mailed_page_writes_its_motion(open_tab, walked, tmp_path):
    marey.write(walked, tmp_path / "walk.html")
    tab = open_tab((tmp_path / "walk.html").as_uri())
    tab.page.get_by_role("button", name="Export").click()
    motion = marey.read_motion(saved(tab, "BVH", ".bvh", tmp_path))
    expected = walked.motion
    assert motion.rate == pytest.approx(expected.rate)
    # The page has positions to 0.01 mm and quaternions to 1e-5.
    assert largest_difference(motion, expected) < 2e-4
    table = saved(tab, "Table .csv", "joints", tmp_path).read_text().splitlines()
    names, first = table[0].split(","), table[1].split(",")
    assert len(table) == 1 + expected.n_frames
    at = names.index("LeftFoot_z")
    foot = expected.T_world_joint()[0, expected.skeleton.index("LeftFoot"), 2, 3]
    assert float(first[at]) == pytest.approx(foot, abs=1e-3)
    assert tab.error_messages == []


def test_a_mailed_page_shows_the_command_for_the_other_formats(
    open_tab, walked, tmp_path
):
    (take,) = walked.takes
    source = replace(take.source, path="/data/one walk.c3d")
    solution = replace(walked, takes=(replace(take, source=source),))
    marey.write(solution, tmp_path / "walk.html")
    tab = open_tab((tmp_path / "walk.html").as_uri())
    tab.page.get_by_role("button", name="Export").click()
    formats = tab.page.get_by_label("Format to write with marey")
    start = "marey solve 'one walk.c3d' -o"
    assert tab.text(".command code") == f"{start} one_walk.fbx"
    formats.select_option(label=".glb")
    assert tab.text(".command code") == f"{start} one_walk.glb"
    formats.select_option(label=".csv: markers")
    assert tab.text(".command code") == f"{start} one_walk.csv --content markers"


def test_the_command_of_a_mailed_page_does_not_replace_its_recording(
    open_tab, walked, tmp_path
):
    (take,) = walked.takes
    source = replace(take.source, path="/data/walk.c3d")
    solution = replace(walked, takes=(replace(take, source=source),))
    marey.write(solution, tmp_path / "walk.html")
    tab = open_tab((tmp_path / "walk.html").as_uri(), draws=False)
    tab.page.get_by_role("button", name="Export").click()
    tab.page.get_by_label("Format to write with marey").select_option(label=".c3d")
    assert tab.text(".command code") == "marey solve walk.c3d -o walk_marey.c3d"
