"""Recordings of markers solved from end to end."""

import numpy as np
import pytest

import marey
from marey import metrics, synth


def record(motion="chicken_walk", **options):
    settings = {"markers": "dense110", "seconds": 8.0, "rate": 50.0} | options
    return synth.human(seed=1).record(motion, **settings)


@pytest.fixture(scope="module")
def exact():
    take = record()
    return take, marey.solve(take, options=marey.SolveOptions(segment="overlap"))


def test_exact_markers_without_names_give_the_exact_skeleton(exact):
    take, solution = exact
    score = metrics.compare(solution.skeleton, take)
    assert score.max < 1e-6
    assert solution.skeleton.names[0] == "Hips"


def test_the_motion_reproduces_the_markers(exact):
    take, solution = exact
    skeleton, motion = solution.skeleton, solution.motion
    T = motion.T_world_joint()[:, skeleton.marker_joint]
    positions = np.einsum("fmij,mj->fmi", T[..., :3, :3], skeleton.marker_offset)
    positions = positions + T[..., :3, 3]
    order = [take.labels.index(label) for label in skeleton.marker_labels]
    np.testing.assert_allclose(positions, take.points[:, order], atol=1e-6)


def test_known_labels_determine_the_tree():
    take = synth.human(seed=1).record(
        "walk", markers="sparse41", seconds=4.0, rate=50.0, noise=1e-3
    )
    solution = marey.solve(take)
    codes = [finding.code for finding in solution.report.findings]
    assert "labels-recognised" in codes
    assert "tree-unsure" not in codes
    names = solution.skeleton.names
    parent = solution.skeleton.parent
    assert names[parent[names.index("LeftFoot")]] == "LeftLowerLeg"


def test_two_performers_are_two_subjects():
    take = synth.scene("together", markers="dense110", rate=50.0, noise=3e-4)
    solution = marey.solve(
        take, options=marey.SolveOptions(segment="overlap", pose="gauss_newton")
    )
    large = [s for s in solution.subjects if len(s.skeleton.names) > 10]
    assert len(large) == 2
    with pytest.raises(marey.DataError, match="exactly one"):
        _ = solution.skeleton


def test_one_rigid_body_is_a_skeleton_with_only_a_root():
    take = synth.prop().record(markers=6, seconds=3.0, noise=1e-4)
    solution = marey.solve(take)
    assert len(solution.bodies[0].names) == 1
    assert solution.skeleton.kind[0] == "root"
    assert np.isfinite(solution.motion.T_world_root).all()


def test_the_subject_can_be_named():
    take = record(seconds=3.0)
    options = marey.SolveOptions(subject="S01", segment="overlap")
    assert marey.solve(take, options=options).subjects[0].name == "S01"


def test_of_several_subjects_one_can_be_chosen():
    """Without a choice, markers of no subject are solved with the others."""
    take = record(seconds=3.0)
    half = len(take.labels) // 2
    mixed = marey.Take(
        rate=take.rate,
        points=take.points,
        labels=take.labels,
        subjects=("JOE",) * half + ("",) * (len(take.labels) - half),
    )
    everyone = marey.SolveOptions(segment="overlap")
    joe = marey.SolveOptions(segment="overlap", subject="JOE")
    assert len(marey.solve(mixed, options=everyone).takes[0].labels) == 2 * half
    assert len(marey.solve(mixed, options=joe).takes[0].labels) == half
