"""Bodies of a template: names, patterns, subjects, poses and missing markers."""

import numpy as np
import pytest

import marey
from marey.errors import DataError, FormatError, OptionError
from marey.numerics import geometry
from marey.segmentation import Template, read_template, segment
from marey.segmentation.template import contract_tree

MAP = """
[bodies]
pelvis = ["LFWT", "RFWT", "LBWT", "RBWT"]
thigh = { markers = ["LTHI", "LKNE"], parent = "pelvis" }
shank = { markers = ["LSHN", "LANK", "LKNE"], parent = "thigh" }
"""


@pytest.fixture
def walk():
    return marey.synth.human(seed=0).record("walk", seconds=2.0)


@pytest.fixture
def toml(tmp_path):
    path = tmp_path / "map.toml"
    path.write_text(MAP, encoding="utf-8")
    return path


def test_a_file_and_a_mapping_are_equal(toml):
    mapping = {
        "pelvis": ["LFWT", "RFWT", "LBWT", "RBWT"],
        "thigh": {"markers": ["LTHI", "LKNE"], "parent": "pelvis"},
        "shank": {"markers": ["LSHN", "LANK", "LKNE"], "parent": "thigh"},
    }
    from_file = read_template(toml)
    for source in (mapping, {"bodies": mapping}, from_file):
        template = read_template(source)
        assert template.markers == from_file.markers
        assert template.parent == {"thigh": "pelvis", "shank": "thigh"}


def test_bodies_are_those_of_the_map(walk, toml):
    bodies = segment(walk, method="template", template=toml)
    assert bodies.names == ("pelvis", "thigh", "shank")
    assert bodies.determined.tolist() == [True, False, True]
    assert bodies.findings == ()
    of = {label: i for i, label in enumerate(walk.labels)}
    assert bodies.marker_body[of["RBWT"]] == 0
    assert bodies.marker_body[of["LKNE"]] == 1
    assert bodies.shared[of["LKNE"]].tolist() == [False, True, True]
    assert bodies.marker_body[of["RTOE"]] == -1
    assert np.isnan(bodies.marker_offset[of["RTOE"]]).all()
    assert (bodies.marker_confidence == (bodies.marker_body >= 0)).all()


def test_a_map_is_enough_for_auto(walk, toml):
    assert segment(walk, template=toml).names == ("pelvis", "thigh", "shank")


def test_poses_reproduce_the_markers_of_a_rigid_figure(walk):
    template = {"pelvis": ["LFWT", "RFWT", "LBWT", "RBWT"], "head": ["?FHD", "?BHD"]}
    bodies = segment(walk, method="template", template=template)
    for body, rms in enumerate(bodies.rms):
        markers = bodies.marker_body == body
        positions = geometry.apply(
            bodies.T_world_body[:, None, body], bodies.marker_offset[markers]
        )
        np.testing.assert_allclose(positions, walk.points[:, markers], atol=1e-9)
        assert rms < 1e-9


@pytest.mark.parametrize(
    "names",
    [["*WT"], ["lfwt", "RfWT", "?BWT"], ["JOE:LFWT", "JOE::RFWT", "J*:?BWT"]],
    ids=["pattern", "case", "subject"],
)
def test_names_may_be_patterns_in_any_case_with_a_subject(names):
    take = marey.synth.human().record("walk", seconds=0.5, subject="JOE")
    bodies = segment(take, method="template", template={"pelvis": names})
    found = {take.labels[i] for i in np.flatnonzero(bodies.marker_body == 0)}
    assert found == {"LFWT", "RFWT", "LBWT", "RBWT"}


def test_a_subject_with_brackets_is_itself():
    """Brackets are a pattern in the map, unless it is the name of the subject."""
    take = marey.synth.human().record("walk", seconds=0.5, subject="Odd [b]")
    names = ["Odd [b]:LFWT", "Odd [b]:?BWT"]
    bodies = segment(take, method="template", template={"pelvis": names})
    found = {take.labels[i] for i in np.flatnonzero(bodies.marker_body == 0)}
    assert found == {"LFWT", "LBWT", "RBWT"}


def test_each_subject_gets_bodies_of_its_own():
    one = marey.synth.human().record("walk", seconds=0.5)
    take = marey.Take(
        rate=one.rate,
        points=np.concatenate([one.points, one.points + 1.0], axis=1),
        labels=one.labels * 2,
        subjects=("JOE",) * 41 + ("ANN",) * 41,
    )
    both = segment(take, method="template", template={"pelvis": ["*WT"], "T": ["T10"]})
    assert both.names == ("JOE:pelvis", "JOE:T", "ANN:pelvis", "ANN:T")
    distance = both.T_world_body[:, 2, :3, 3] - both.T_world_body[:, 0, :3, 3]
    np.testing.assert_allclose(distance, 1.0, atol=1e-9)
    joe = segment(take, method="template", template={"pelvis": ["JOE:*WT"]})
    assert joe.names == ("pelvis",)


def test_a_missing_marker_is_a_finding(walk):
    template = {"pelvis": ["LFWT", "RFWT", "LBWT", "SACR"]}
    bodies = segment(walk, method="template", template=template)
    (finding,) = bodies.findings
    assert (finding.code, finding.subject) == ("marker-missing", "SACR")
    assert "pelvis is found without it" in finding.message
    assert bodies.determined.all()


def test_markers_on_a_line_are_a_finding():
    points = np.arange(3.0)[:, None] * np.ones(3) + np.arange(20.0)[:, None, None]
    take = marey.Take(rate=1.0, points=points, labels=("a", "b", "c"))
    bodies = segment(take, method="template", template={"rod": ["*"]})
    assert not bodies.determined[0]
    assert [f.code for f in bodies.findings] == ["markers-on-a-line"]
    assert np.isfinite(bodies.T_world_body).all()


def test_a_body_without_any_marker_is_refused_by_name(walk):
    template = {"pelvis": ["*WT"], "tail": ["TAIL1", "TAIL2"]}
    with pytest.raises(DataError, match=r"no marker of tail among LFHD.*TAIL1"):
        segment(walk, method="template", template=template)
    with pytest.raises(DataError, match="no marker of pelvis among no markers"):
        segment(marey.Take(rate=1.0), method="template", template={"pelvis": ["A"]})


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("bodies = [", FormatError, "expected TOML"),
        ("[body]\na = ['A']", DataError, r"need a table \[bodies\]"),
        ("[bodies]\na = []", DataError, "body a: found"),
        ("[bodies]\na = [1]", DataError, "body a: found"),
        ("[bodies]\na = {marker = ['A']}", DataError, "found keys"),
        ("[bodies]\na = {markers = ['A'], parent = 'b'}", DataError, "parent of a"),
        (
            "[bodies]\na = {markers = ['A'], parent = 'b'}\n"
            "b = {markers = ['B'], parent = 'a'}",
            DataError,
            "a cycle a - b",
        ),
        ("[bodies]\na = {markers = ['A'], parent = 'a'}", DataError, "a cycle a"),
    ],
)
def test_a_bad_map_says_what_is_wrong(tmp_path, text, error, words):
    path = tmp_path / "map.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=words):
        read_template(path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "map.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatError, match="expected TOML"):
        read_template(path)


def test_a_template_needs_a_map(walk):
    with pytest.raises(OptionError, match="template: found None, need a marker map"):
        segment(walk, method="template")
    with pytest.raises(
        OptionError, match="one of auto, template, sensors, labels, keypoints"
    ):
        segment(walk, method="map", template=Template({"a": ("A",)}))


# --- trees and skeletons --------------------------------------------------------------

TREE = {"b": "a", "c": "b", "d": "b", "e": "d", "f": "a"}


@pytest.mark.parametrize(
    ("present", "parents"),
    [
        ("abcdef", TREE),
        ("acdef", {"c": "a", "d": "a", "e": "d", "f": "a"}),
        ("ace", {"c": "a", "e": "a"}),
        ("bcef", {"c": "b", "e": "b", "f": "b"}),
        ("cef", {"e": "c", "f": "c"}),
        ("fec", {"e": "f", "c": "f"}),
        ("c", {}),
        ("", {}),
    ],
)
def test_bodies_that_are_not_present_are_contracted(present, parents):
    assert contract_tree(TREE, list(present)) == parents


def test_two_trees_stay_two():
    parent = {"b": "a", "c": "b", "y": "x", "z": "x"}
    assert contract_tree(parent, list("bcyz")) == {"c": "b", "z": "y"}


def test_a_skeleton_with_markers_is_a_map(walk):
    skeleton = marey.Skeleton(
        names=("pelvis", "hip", "thigh", "shank", "end"),
        parent=np.array([-1, 0, 1, 2, 3]),
        offset=np.zeros((5, 3)),
        marker_labels=("LFWT", "LTHI", "RFWT", "LSHN", "LKNE", "LBWT"),
        marker_joint=np.array([0, 2, 0, 3, 2, 0]),
        marker_offset=np.zeros((6, 3)),
    )
    template = read_template(skeleton)
    assert template.markers == {
        "pelvis": ("LFWT", "RFWT", "LBWT"),
        "thigh": ("LTHI", "LKNE"),
        "shank": ("LSHN",),
    }
    assert template.parent == {"thigh": "pelvis", "shank": "thigh"}
    assert segment(walk, template=skeleton).names == ("pelvis", "thigh", "shank")


def test_a_skeleton_without_markers_is_no_map():
    bare = marey.Skeleton(names=("a",), parent=np.array([-1]), offset=np.zeros((1, 3)))
    with pytest.raises(DataError, match="skeleton as a marker map: found no markers"):
        read_template(bare)


def test_the_path_of_a_vsk_is_refused_with_advice(tmp_path):
    path = tmp_path / "joe.vsk"
    path.write_text("<KinematicModel></KinematicModel>", encoding="utf-8")
    with pytest.raises(FormatError, match=r"marey\.read_skeleton"):
        read_template(path)
