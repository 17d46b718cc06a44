import numpy as np
import pytest

import marey
from marey.joints import JointFits
from marey.take import Fact


def take(path=""):
    return marey.Take(
        rate=100.0,
        points=np.zeros((2, 1, 3)),
        labels=("a",),
        source=marey.Source(path=path),
    )


def skeleton():
    return marey.Skeleton(
        names=("hips",), parent=np.array([-1]), offset=np.zeros((1, 3))
    )


def motion():
    return marey.Motion(
        skeleton=skeleton(),
        T_world_root=np.tile(np.eye(4), (2, 1, 1)),
        wxyz=np.tile([1.0, 0.0, 0.0, 0.0], (2, 1, 1)),
        rate=100.0,
    )


def bodies(take):
    return marey.Bodies(
        take=take,
        names=("hips",),
        T_world_body=np.full((2, 1, 4, 4), np.nan),
        determined=np.array([True]),
        marker_body=np.array([0]),
        shared=np.array([[True]]),
        marker_confidence=np.ones(1),
        body_confidence=np.ones(1),
        marker_offset=np.zeros((1, 3)),
        rms=np.zeros(1),
    )


def no_joints():
    return JointFits(
        pair=np.zeros((0, 2), dtype=int),
        center_a=np.zeros((0, 3)),
        center_b=np.zeros((0, 3)),
        axis_a=np.zeros((0, 3)),
        axis_b=np.zeros((0, 3)),
        residual=np.zeros(0),
        noise=np.zeros(0),
        distance=np.zeros(0),
        mediated=np.zeros(0),
        spread=np.zeros((0, 6)),
        covariance=np.zeros((0, 6, 6)),
        kind=(),
    )


def solution(paths=("walk.c3d",), subjects=("Ann",)):
    takes = tuple(map(take, paths))
    return marey.Solution(
        takes=takes,
        bodies=tuple(map(bodies, takes)),
        joints=no_joints(),
        tree=marey.Tree(
            parent=np.array([-1]), edge=np.array([-1]), margin=np.array([np.inf])
        ),
        subjects=tuple(
            marey.Subject(name, skeleton(), tuple(motion() for _ in paths))
            for name in subjects
        ),
    )


def test_one_take_and_one_subject_need_no_choice():
    one = solution()
    assert one.take is one.takes[0]
    assert one.skeleton is one.subjects[0].skeleton
    assert one.motion is one.subjects[0].motions[0]


def test_several_takes_are_named_and_the_plural_offered():
    two = solution(paths=("walk.c3d", ""))
    with pytest.raises(marey.DataError) as error:
        _ = two.take
    assert str(error.value) == (
        "the only take of the solution: found 2: walk.c3d, take 1, "
        "need exactly one; choose, such as solution.takes[0]"
    )
    with pytest.raises(marey.DataError) as error:
        _ = two.motion
    assert "found 2: walk.c3d, take 1" in str(error.value)
    assert str(error.value).endswith("solution.subjects[0].motions[0]")
    assert two.skeleton is two.subjects[0].skeleton
    assert two.subjects[0].motions[0].n_frames == 2


@pytest.mark.parametrize("what", ["skeleton", "motion"])
def test_several_subjects_are_named_and_the_plural_offered(what):
    with pytest.raises(marey.DataError) as error:
        getattr(solution(subjects=("Ann", "Bob\x1b")), what)
    assert str(error.value) == (
        r"the only subject of the solution: found 2: Ann, Bob\x1b, "
        "need exactly one; choose, such as solution.subjects[0]"
    )


def test_nothing_is_not_one():
    with pytest.raises(marey.DataError, match="found none, need exactly one"):
        _ = solution(subjects=()).skeleton
    with pytest.raises(marey.DataError, match="found none, need exactly one"):
        _ = solution(paths=()).take


def test_bodies_joints_and_trees_answer_simple_questions():
    one = solution()
    np.testing.assert_array_equal(one.bodies[0].seen, [[False], [False]])
    assert one.joints.fitted.shape == (0,)
    np.testing.assert_array_equal(one.tree.roots, [0])


def test_a_wrong_shape_is_caught_where_it_enters():
    with pytest.raises(TypeError):
        marey.Tree(parent=np.array([-1]), edge=np.array([-1, 0]), margin=np.zeros(1))


def test_every_part_describes_itself_on_one_short_line():
    found = solution()
    parts = [found, found.report, found.skeleton, found.motion, found.take]
    parts += [found.bodies[0], found.joints, found.subjects[0]]
    for part in parts:
        assert len(repr(part)) < 200
        assert "\n" not in repr(part)
    assert repr(found) == "Solution(Ann; takes: 1; Report(no findings))"


def test_a_notebook_shows_causes_and_tables_with_names_escaped():
    finding = marey.Finding("odd", "clean", "warning", "looks odd", subject="<b>")
    table = marey.report.Table(("bone & joint", "length mm"), (("<Hips>", 431.5),))
    page = marey.Report(findings=(finding,), tables={"bones": table})._repr_html_()
    assert "&lt;b&gt;: looks odd" in page
    assert "<th>bone &amp; joint</th>" in page
    assert "<td>&lt;Hips&gt;</td><td>431.5</td>" in page


def test_a_notebook_shows_what_a_take_holds_and_where_its_unit_is_from():
    points = np.zeros((8, 2, 3))
    points[2:5, 1] = np.nan
    source = marey.Source(path="<walk>.c3d", unit=Fact("mm", "stated", "POINT:UNITS"))
    recorded = marey.Take(rate=4.0, points=points, labels=("A", "<B>"), source=source)
    page = recorded._repr_html_()
    assert "Take(&lt;walk&gt;.c3d: 2 markers, 0 sensors, 8 frames at 4 Hz)" in page
    assert "duration: 1.75 s<br>unit: mm (stated: POINT:UNITS)</p>" in page
    assert "<td>A</td><td>100</td><td>0</td>" in page
    assert "<td>&lt;B&gt;</td><td>62.5</td><td>3</td>" in page
    assert "sensors</summary>" not in page


def test_a_notebook_shows_the_bones_of_a_skeleton_and_the_rotations_of_a_motion():
    unused = [[np.nan] * 3] * 2
    leg = marey.Skeleton(
        names=("Hips", "Knee", "Sole"),
        parent=np.array([-1, 0, 1]),
        offset=np.array([[0.0, 0.0, 0.9], [0.0, 0.0, -0.4], [0.0, 0.0, -0.4321]]),
        kind=("root", "hinge", "fixed"),
        axes=np.array([unused, [[1.0, 0.0, 0.0], [np.nan] * 3], unused]),
        length_sd=np.array([np.nan, 0.0025, np.nan]),
    )
    page = leg._repr_html_()
    assert "<td>Knee</td><td>Hips</td><td>hinge</td><td>400</td><td>2.5</td>" in page
    assert "<td>Sole</td><td>Knee</td><td>fixed</td><td>432.1</td><td></td>" in page
    wxyz = np.tile([1.0, 0.0, 0.0, 0.0], (3, 3, 1))
    wxyz[2, 1] = marey.geometry.quat_exp(np.radians([30.0, 0.0, 0.0]))
    wxyz[0, 1] = np.nan
    bend = marey.Motion(
        skeleton=leg,
        T_world_root=np.tile(np.eye(4), (3, 1, 1)),
        wxyz=wxyz,
        rate=10.0,
        angle_sd=np.full((3, 3, 3), np.radians(0.5)),
    )
    page = bend._repr_html_()
    assert "duration: 0.20 s</p>" in page
    assert "<td>Hips</td><td>0</td><td>0.5</td>" in page
    assert "<td>Knee</td><td>30</td><td>0.5</td>" in page
    assert "<td>Knee</td><td>Hips</td><td>hinge</td><td>400</td>" in page
    uneven = bend.at(np.array([0.1, 0.13, 0.2]))._repr_html_()
    assert "duration" not in uneven
