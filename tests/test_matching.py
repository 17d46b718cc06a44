"""A skeleton's markers found in a take by one rule, and takes of a few frames."""

from dataclasses import replace

import numpy as np
import pytest
import scenes

import marey
from marey import metrics, synth
from marey.editing import EditSession
from marey.io.formats.html import encode_scene
from marey.skeleton import marker_columns
from marey.take import Take, match_labels

WALK = {"markers": "set53", "seconds": 1.0, "rate": 50.0, "noise": 1e-3}


def called(take, subject):
    """The take as if its file named this subject."""
    return replace(take, subjects=(subject,) * len(take.labels))


def labelled(skeleton, subject):
    """The skeleton as if solved from a file that names this subject."""
    bare = (label.rpartition(":")[2] for label in skeleton.marker_labels)
    labels = tuple(f"{subject}:{label}" if subject else label for label in bare)
    return replace(skeleton, marker_labels=labels)


@pytest.fixture(scope="module")
def bare():
    take = synth.human(seed=1).record("walk", **WALK)
    return Take(rate=take.rate, points=take.points, labels=take.labels)


@pytest.fixture(scope="module")
def performer(bare):
    return marey.solve(bare, whole=False).skeleton


@pytest.fixture(scope="module")
def known(bare, performer):
    """What the performer's own skeleton gives, where nothing names a subject."""
    desk = EditSession(bare, options=marey.SolveOptions(skeleton=performer))
    return desk, marey.calibrate(performer, bare).skeleton


# --- the rule -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "labels", "subjects", "found"),
    [
        (("A", "B"), ("B", "A"), ("", ""), [1, 0]),
        (("A", "C"), ("B", "A"), ("JOE", "JOE"), [1, -1]),
        (("JOE:A",), ("A", "A"), ("JIM", "JOE"), [1]),
        (("JOE:A",), ("B", "A"), ("", ""), [1]),
        (("JOE:A",), ("A",), ("JIM",), [-1]),
        # JOE is there, and that marker of his is not.
        (("JOE:A",), ("A", "B"), ("", "JOE"), [-1]),
        # The whole label is there: who else has one does not matter.
        (("A",), ("A", "A"), ("", "JOE"), [0]),
        (("A",), (), (), [-1]),
    ],
)
def test_a_label_is_matched_whole_then_where_only_one_names_a_subject(
    wanted, labels, subjects, found
):
    points = np.zeros((2, len(labels), 3))
    take = Take(rate=1.0, points=points, labels=labels, subjects=subjects)
    columns = match_labels(wanted, take.full_labels, take.labels)
    assert columns.tolist() == found


@pytest.mark.parametrize(
    ("wanted", "full_labels", "words"),
    [
        (("A",), ("JOE:A", "JIM:A"), "marker A: found JOE:A, JIM:A,"),
        (("A",), ("A", "A"), "marker A: found A, A,"),
        (("JOE:A", "JIM:A"), ("A",), "marker A: found JOE:A and JIM:A,"),
    ],
)
def test_what_may_be_two_is_refused(wanted, full_labels, words):
    labels = [label.rpartition(":")[2] for label in full_labels]
    with pytest.raises(marey.DataError, match=words):
        match_labels(wanted, full_labels, labels)


def test_the_order_of_columns_does_not_matter(bare, performer, rng):
    order = rng.permutation(len(bare.labels))
    columns = marker_columns(performer, bare.select(order))
    np.testing.assert_array_equal(order[columns], marker_columns(performer, bare))


# --- everywhere alike -----------------------------------------------------------------


@pytest.mark.parametrize("worn", ["", "JOE"])
@pytest.mark.parametrize("recorded", ["", "JOE"])
def test_subjects_named_or_not_give_the_same_answer(
    bare, performer, known, worn, recorded
):
    """By the poses, the score, the page and the calibration."""
    skeleton, take = labelled(performer, worn), called(bare, recorded)
    desk = EditSession(take, options=marey.SolveOptions(skeleton=skeleton))
    assert np.isfinite(desk.score.marker_rms)
    assert desk.score == known[0].score
    motion, expected = desk.solution.motion, known[0].solution.motion
    np.testing.assert_array_equal(motion.wxyz, expected.wxyz)
    drawn = scenes.header(encode_scene(desk.solution))["takes"][0]["motions"][0]
    assert len(drawn["markers"]) == len(bare.labels)
    refined = marey.calibrate(skeleton, take).skeleton
    np.testing.assert_array_equal(refined.offset, known[1].offset)


def test_what_is_ignored_is_found_by_the_same_rule(bare, performer):
    ignore = np.zeros((bare.n_frames, performer.n_joints), dtype=bool)
    ignore[10:20] = True
    motion = [
        marey.solve_pose(
            labelled(performer, who), bare, method="gauss_newton", ignore=ignore
        )
        for who in ("", "JOE")
    ]
    np.testing.assert_array_equal(motion[0].wxyz, motion[1].wxyz)


def test_a_marker_is_placed_whoever_wears_it(bare, performer):
    options = marey.SolveOptions(skeleton=performer)
    desk = EditSession(called(bare, "JOE"), options=options)
    label = performer.marker_labels[7]
    trial = desk.attempt({"do": "place-marker", "marker": label, "offset": (0, 0, 0.1)})
    placed = trial.solution.skeleton.marker_offset[7]
    np.testing.assert_array_equal(placed, [0.0, 0.0, 0.1])


def test_bones_are_compared_whoever_wears_the_markers(performer):
    take = synth.human(seed=1).record("walk", **WALK)
    scores = [
        metrics.compare_skeleton(labelled(performer, who), called(take, also))
        for who in ("", "JOE")
        for also in ("", "JOE")
    ]
    assert scores == scores[:1] * 4


def test_another_subject_is_somebody_else(bare, performer):
    joe, jim = labelled(performer, "JOE"), called(bare, "JIM")
    with pytest.raises(marey.DataError, match="need some of JOE:"):
        marey.solve_pose(joe, jim, method="gauss_newton")
    with pytest.raises(marey.DataError, match="no frame that shows a marker"):
        marey.calibrate(joe, jim)


def test_two_of_one_label_are_refused_by_calibration_as_by_poses(bare, performer):
    twice = replace(
        bare,
        points=np.concatenate([bare.points, bare.points + 2.0], axis=1),
        filled=np.zeros((bare.n_frames, 2 * len(bare.labels)), dtype=bool),
        labels=bare.labels * 2,
        subjects=("JOE",) * len(bare.labels) + ("JIM",) * len(bare.labels),
    )
    label = performer.marker_labels[0]
    words = f"marker {label}: found JOE:{label}, JIM:{label},"
    with pytest.raises(marey.DataError, match=words):
        marey.calibrate(performer, twice)
    with pytest.raises(marey.DataError, match=words):
        marey.solve_pose(performer, twice, method="gauss_newton")


# --- too few frames -------------------------------------------------------------------


@pytest.mark.parametrize("n_frames", [1, 4])
def test_a_take_of_a_few_frames_is_solved_with_the_bones_as_they_were(bare, n_frames):
    short = bare.cut(0, n_frames)
    solution = marey.solve(short)
    rough = marey.solve(short, options=marey.SolveOptions(calibrate=False))
    np.testing.assert_array_equal(solution.skeleton.offset, rough.skeleton.offset)
    assert np.isfinite(solution.motion.wxyz).all()
    told = [f.message for f in solution.report.findings if f.stage == "calibrate"]
    assert told == ["the skeleton stays as it was: fewer than 10 frames show it"]


def test_too_few_frames_leave_a_known_skeleton_alone(bare, performer, known):
    few = bare.cut(0, 4)
    found = marey.calibrate(performer, few)
    assert found.skeleton is performer
    assert found.skeletons == (performer,)
    assert [f.code for f in found.findings] == ["not-calibrated"]
    # A session that is long enough does not suffer from one that is not.
    both = marey.calibrate(performer, [bare, few])
    np.testing.assert_allclose(both.skeleton.offset, known[1].offset, atol=1e-12)
