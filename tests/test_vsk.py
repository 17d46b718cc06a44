"""VSK: subjects are written here as Vicon does and read back."""

import numpy as np
import pytest
from damage import survive
from scipy.spatial.transform import Rotation

import marey
from marey.io.file import File
from marey.io.formats import vsk
from marey.io.units_axes import rotation_to_z_up

FREE, BALL, DUMMY = "<JointFree/>", "<JointBall MEAN='0 0 0'/>", "<JointDummy/>"
HINGE = '<JointHinge AXIS="0 2 0"/>'
SPICER = '<JointHardySpicer AXIS-PAIR="0 1 0 0 0 3"/>'


def segment(name, position, turn, joint, *inside):
    return (
        f'<Segment NAME="{name}" POSITION="{position}" ORIENTATION="{turn}" '
        'RGB="0 1 0">'
        f"{joint}{''.join(inside)}</Segment>\n"
    )


def marker(name, carrier, position):
    return f'<Marker NAME="{name}" SEGMENT="{carrier}" POSITION="{position}"/>\n'


def model(skeleton, markers=""):
    return (
        '<?xml version="1.0" standalone="yes"?>\n<KinematicModel>\n<Parameters>'
        '<Parameter NAME="Thigh" VALUE="400"/><Parameter NAME="Hip" VALUE="1e2"/>'
        '<Parameter NAME="Odd" VALUE="long"/></Parameters>\n'
        f"<Skeleton>\n{skeleton}</Skeleton>\n"
        f"<MarkerSet><Markers>{markers}</Markers></MarkerSet>\n</KinematicModel>\n"
    )


LEG = segment(
    *("Pelvis", "0 0 900", "0 0 0.5", FREE),
    segment(
        *("Femur", "Hip 0 0", "0.1 -0.2 0.3", BALL),
        segment(
            *("Tibia", "0 0 -Thigh", "0 0 0", HINGE),
            segment(
                *("Foot", "0 0 -390", "0.4 0 0", SPICER),
                segment("Tip", "0 150 0", "0 0 0", DUMMY),
            ),
        ),
    ),
    segment("Spine", "0 0 '120'", "0 0 0", BALL),
)
MARKERS = (
    marker("LASI", "Pelvis", "90 -Hip 0")
    + marker("LKNE", "Tibia", "'-Hip' 5 'Thigh'")
    + marker("LTOE", "Foot", "0 140 1")
)


def saved(folder, text):
    path = folder / "subject.vsk"
    path.write_text(text, encoding="utf-8")
    return path


def load(path):
    """The skeleton, and the codes of the findings of reading it."""
    file = File(path, "vsk")
    return vsk.read_skeleton(file), [finding.code for finding in file.findings]


def rest_by_hand():
    """World poses of LEG at rest, by one product after the other, in millimetres."""

    def local(position, turn):
        T = np.eye(4)
        T[:3, :3] = Rotation.from_rotvec(turn).as_matrix()
        T[:3, 3] = position
        return T

    pelvis = local([0, 0, 900], [0, 0, 0.5])
    femur = pelvis @ local([100, 0, 0], [0.1, -0.2, 0.3])
    tibia = femur @ local([0, 0, -400], [0, 0, 0])
    foot = tibia @ local([0, 0, -390], [0.4, 0, 0])
    tip = foot @ local([0, 150, 0], [0, 0, 0])
    return np.array(
        [pelvis, femur, tibia, foot, tip, pelvis @ local([0, 0, 120], [0] * 3)]
    )


@pytest.mark.parametrize("up", [None, "y", "-z"])
def test_the_rest_pose_is_that_of_the_file(up, tmp_path):
    skeleton = marey.read_skeleton(saved(tmp_path, model(LEG, MARKERS)), up=up)
    T, U = rest_by_hand(), rotation_to_z_up(up or "z")
    assert skeleton.names == ("Pelvis", "Femur", "Tibia", "Foot", "Tip", "Spine")
    assert skeleton.parent.tolist() == [-1, 0, 1, 2, 3, 0]
    np.testing.assert_allclose(
        skeleton.rest()[:, :3, 3], 1e-3 * T[:, :3, 3] @ U.T, atol=1e-12
    )
    # Markers sit where they sit on the turned segments.
    sites = np.array([[90, -100, 0, 1], [-100, 5, 400, 1], [0, 140, 1, 1]])
    world = np.einsum("mij,mj->mi", T[[0, 2, 3]], sites)[:, :3]
    found = skeleton.rest()[skeleton.marker_joint, :3, 3] + skeleton.marker_offset
    np.testing.assert_allclose(found, 1e-3 * world @ U.T, atol=1e-12)
    assert skeleton.marker_labels == ("LASI", "LKNE", "LTOE")


def test_kinds_and_axes_are_those_of_the_joints(tmp_path):
    skeleton = marey.read_skeleton(saved(tmp_path, model(LEG)))
    assert skeleton.kind == ("root", "ball", "hinge", "universal", "fixed", "ball")
    R = rest_by_hand()[:, :3, :3]
    np.testing.assert_allclose(skeleton.axes[2, 0], R[2] @ [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(
        skeleton.axes[3], [R[3] @ [0, 1, 0], R[3] @ [0, 0, 1]], atol=1e-12
    )
    unused = np.ones((6, 2), dtype=bool)
    unused[2, 0] = unused[3] = False
    assert (np.isnan(skeleton.axes).all(axis=-1) == unused).all()


def test_parameters_come_by_name(tmp_path):
    skeleton, codes = load(saved(tmp_path, model(LEG)))
    assert skeleton.lengths[2] == pytest.approx(0.4)
    assert codes == []


@pytest.mark.parametrize(
    ("thigh", "up"),
    [("0 0 -1", "z"), ("0 -1 0", "y"), ("1 0 0", "-x"), ("0.7 0.7 0", "z")],
)
def test_the_longest_bone_points_down(thigh, up, tmp_path):
    position = np.array(thigh.split(), dtype=float)
    femur = segment(
        "Femur", thigh, "0 0 0", BALL, segment("Toe", "0 0 0.1", "0 0 0", "")
    )
    text = model(segment("Pelvis", "0 0 0", "0 0 0", FREE, femur))
    skeleton, codes = load(saved(tmp_path, text))
    rest = skeleton.rest()[:, :3, 3]
    np.testing.assert_allclose(
        rest[1], 1e-3 * rotation_to_z_up(up) @ position, atol=1e-12
    )
    assert codes == (["up-assumed"] if "7" in thigh else [])


def test_targets_place_markers_too(tmp_path):
    target = (
        '<TargetLocalPointToWorldPoint MARKER="LTOE" SEGMENT="Foot" POSITION="1 2 3"/>'
    )
    text = model(LEG, '<Marker NAME="LTOE" RADIUS="7"/>').replace(
        "</MarkerSet>", f"</MarkerSet><TargetSet>{target}</TargetSet>"
    )
    skeleton = marey.read_skeleton(saved(tmp_path, text))
    assert skeleton.marker_labels == ("LTOE",)
    assert skeleton.names[skeleton.marker_joint[0]] == "Foot"


def test_doubts_are_findings(tmp_path):
    two = segment("A", "0 0 0", "0 0 0", FREE) + segment("B", "0 0 -5", "0 0 0", FREE)
    markers = marker("M", "Nobody", "0 0 0") + 2 * marker("N", "B", "0 0 0")
    skeleton, codes = load(saved(tmp_path, model(two, markers)))
    assert skeleton.names == ("root", "A", "B")
    assert skeleton.kind == ("root", "ball", "ball")
    assert skeleton.marker_labels == ("N", "N_2")
    assert codes == [
        "roots-several",
        "joint-simplified",
        "joint-simplified",
        "markers-left-out",
        "labels-repeated",
    ]


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda t: t.replace("<Kin", "<!DOCTYPE a><Kin"), "without a document type"),
        (lambda t: t.replace("KinematicModel", "Model"), "KinematicModel|none of them"),
        (lambda t: t.replace('"Tibia"', '"Femur"'), "another name"),
        (lambda t: t.replace('NAME="Tibia"', ""), "another name"),
        (lambda t: t.replace("0 0 -Thigh", "0 0 -Odd"), "'-Odd'"),
        (lambda t: t.replace("0 0 -Thigh", "0 0 Thigh*2"), r"'Thigh\*2'"),
        (lambda t: t.replace("0 0 -Thigh", "0 0"), "3 numbers in POSITION"),
        (lambda t: t.replace("0 0 -Thigh", "0 0 1e300"), "'1e300'"),
        (lambda t: t.replace("0 2 0", "0 0 0"), "an axis"),
        (lambda t: t.replace("AXIS-PAIR=", "AXIS-PAIR='0' b="), "6 numbers"),
        (lambda t: t.replace("Segment", "Part"), "a Skeleton of Segments"),
        (lambda t: t.replace("</Skeleton>", "<a>" * 300), "at most 200 elements"),
    ],
)
def test_a_broken_file_is_refused_by_what_is_wrong(harm, says, tmp_path):
    path = saved(tmp_path, harm(model(LEG, MARKERS)))
    with pytest.raises(marey.FormatError, match=says):
        marey.read_skeleton(path)


def test_a_deep_tree_is_refused(tmp_path):
    tree = ""
    for i in range(300):
        tree = segment(f"S{i}", "0 0 1", "0 0 0", BALL, tree)
    with pytest.raises(marey.FormatError, match="at most 200 elements inside"):
        marey.read_skeleton(saved(tmp_path, model(tree)))


def test_every_cut_is_refused(tmp_path):
    text = model(LEG, MARKERS)
    path = saved(tmp_path, text)
    for cut in range(len(text.rstrip())):
        path.write_text(text[:cut])
        with pytest.raises(marey.FormatError):
            marey.read_skeleton(path)


def test_damaged_files_give_a_typed_error_or_a_skeleton(tmp_path, request):
    path = saved(tmp_path, model(LEG, MARKERS))
    survive(marey.read_skeleton, path)
