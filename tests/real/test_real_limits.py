"""Limits on real people: nobody's knees bend backward, and markers still fit."""

import numpy as np
import pytest

import marey
from marey.anatomy.limits import with_human_limits
from marey.skeleton import marker_columns

TAKES = {
    "walk": "cmu/07_12.c3d",
    "boxer": "cmu/02_05.c3d",
    "actor": "hdm05/HDM_dg_06-03_03_120.c3d",
}
JOINTS = ("LeftLowerLeg", "RightLowerLeg", "LeftLowerArm", "RightLowerArm")


@pytest.fixture(scope="module")
def solve(recordings):
    """At most 600 frames of a take, solved with some limits, each way once."""
    known = {}

    def solve(name, limits):
        if (name, limits) not in known:
            take = marey.read(recordings / TAKES[name])
            take = take.cut(0, min(take.n_frames, 600))
            known[name, limits] = marey.solve(take, limits=limits)
        return known[name, limits]

    return solve


def marker_rms(solution):
    """Root mean square distance of markers from the skeleton's, in metres."""
    (motion,), (take,) = solution.subjects[0].motions, solution.takes
    columns = marker_columns(motion.skeleton, take)
    seen = columns >= 0
    measured = take.measured.points[:, columns[seen]]
    difference = motion.marker_points()[:, seen] - measured
    return float(np.sqrt(np.nanmean(np.sum(difference**2, axis=-1))))


def flexion(motion, name):
    """Angle of a knee or elbow in degrees, from positions; negative: past straight.

    The sign is that of the mean normal of both bones in the frame of the upper one.
    """
    skeleton, T = motion.skeleton, motion.T_world_joint()
    joint = skeleton.index(name)
    upper, lower = int(skeleton.parent[joint]), np.flatnonzero(skeleton.parent == joint)
    bones = np.diff(T[..., :3, 3][:, [upper, joint, int(lower[0])]], axis=1)
    bones /= np.linalg.norm(bones, axis=-1, keepdims=True)
    normal = np.cross(bones[:, 0], bones[:, 1])
    normal = np.einsum("fji,fj->fi", T[:, upper, :3, :3], normal)
    axis = normal.sum(axis=0) / np.linalg.norm(normal.sum(axis=0))
    cosine = np.sum(bones[:, 0] * bones[:, 1], axis=-1)
    return np.degrees(np.arctan2(normal @ axis, cosine))


@pytest.mark.parametrize("name", TAKES)
def test_knees_and_elbows_stay_within_ten_degrees_of_straight(solve, name):
    free, safe = (solve(name, limits) for limits in ("none", "safe"))
    (motion,) = safe.subjects[0].motions
    for joint in JOINTS:
        assert flexion(motion, joint).min() > -10.0, joint
        limits = safe.skeleton.limits[safe.skeleton.index(joint)]
        assert np.isfinite(limits[0, 0]), joint
    assert marker_rms(safe) < 1.05 * marker_rms(free)


@pytest.mark.parametrize("name", TAKES)
def test_published_limits_fit_real_people(solve, name):
    """Hands and feet of two markers have a T-pose too."""
    free, human = (solve(name, limits) for limits in ("none", "human"))
    limited = with_human_limits(free.skeleton)
    assert np.isfinite(limited.limits[limited.index("LeftHand")]).all()
    assert marker_rms(human) < 1.05 * marker_rms(free)


def test_an_arm_with_a_marker_on_elbow_and_wrist_alone_is_not_limited(recordings):
    """Its roll is a guess, and so is the axis about which the elbow bends."""
    take = marey.read(recordings / "c3dorg_helenhayes_jump" / "Sample_Jump2.c3d")
    limited, free = (marey.solve(take, limits=limits) for limits in ("safe", "none"))
    assert marker_rms(limited) < 1.02 * marker_rms(free)
    (finding,) = (f for f in limited.report.findings if f.code == "limit-left-out")
    assert "LeftLowerArm" in finding.message
