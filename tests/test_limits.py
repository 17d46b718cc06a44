"""Joint limits of people from the literature: axes, ranges, and solvers that obey."""

from dataclasses import replace

import numpy as np
import posed
import pytest

import marey
from marey import synth
from marey.anatomy.limits import LIMIT_SLACK_RAD, human_ranges, with_human_limits
from marey.synth.performance.angles import joint_angles, within_limits


def without_limits(skeleton):
    """The skeleton without limits; balls without axes too."""
    ball = np.array(skeleton.kind) == "ball"
    return replace(
        skeleton,
        axes=np.where(ball[:, None, None], np.nan, skeleton.axes),
        limits=np.full_like(skeleton.limits, np.nan),
    )


def test_what_people_do_is_within_their_limits():
    for seed in range(2):
        figure = synth.human(seed=seed)
        skeleton = with_human_limits(without_limits(figure.skeleton))
        for name in ("walk", "kick_punch", "exercise", "jump"):
            motion = figure.perform(name, seconds=6.0, rate=20.0, seed=seed)
            assert within_limits(skeleton, joint_angles(skeleton, motion.wxyz))


def test_every_joint_of_a_person_has_equal_limits_on_both_sides():
    figure = synth.human()
    skeleton = with_human_limits(without_limits(figure.skeleton))
    balls = [kind == "ball" for kind in skeleton.kind]
    assert np.isfinite(skeleton.limits[balls]).all()
    np.testing.assert_array_equal(skeleton.axes, figure.skeleton.axes)
    for name in ("UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot"):
        left, right = (skeleton.index(side + name) for side in ("Left", "Right"))
        np.testing.assert_array_equal(skeleton.limits[left], skeleton.limits[right])


def test_figures_are_the_published_ones_and_slack_is_added():
    """A knee bends by 143 degrees, an elbow too (Boone and Azen 1979)."""
    known = human_ranges()
    for name in ("LeftLowerLeg", "RightLowerArm"):
        assert np.degrees(known[name].limits[0, 1]) == pytest.approx(143.0)
    skeleton = with_human_limits(without_limits(synth.human().skeleton), slack=0.0)
    knee = skeleton.index("RightLowerLeg")
    np.testing.assert_array_equal(skeleton.limits[knee], known["RightLowerLeg"].limits)
    wide = with_human_limits(without_limits(synth.human().skeleton)).limits[knee]
    np.testing.assert_allclose(
        wide - skeleton.limits[knee], [[-LIMIT_SLACK_RAD, LIMIT_SLACK_RAD]] * 3
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_hinge_gets_the_range_of_its_axis_in_either_direction(sign):
    robot = synth.robot().skeleton
    knee = robot.index("LeftLowerLeg")
    axes = robot.axes.copy()
    axes[knee, 0] *= sign
    skeleton = with_human_limits(replace(without_limits(robot), axes=axes), slack=0.0)
    low, high = np.degrees(skeleton.limits[knee, 0])
    assert (low, high) == pytest.approx((0.0, 143.0) if sign > 0 else (-143.0, 0.0))


def test_unknown_axes_stay_free_and_given_limits_stay():
    robot = synth.robot().skeleton
    knee = robot.index("LeftLowerLeg")
    axes = robot.axes.copy()
    axes[knee, 0] = np.array([1.0, 1.0, 1.0]) / np.sqrt(3.0)
    odd = with_human_limits(replace(without_limits(robot), axes=axes))
    assert np.isnan(odd.limits[knee]).all()
    own = synth.human().skeleton
    np.testing.assert_array_equal(with_human_limits(own).limits, own.limits)


@pytest.mark.parametrize("method", ["gauss_newton", "bfgs"])
def test_both_solvers_keep_to_them(method):
    """A knee that markers bend the wrong way: one stops it, the other resists."""
    skeleton, take = posed.record(synth.human(), "still", seconds=0.2)
    limited = with_human_limits(without_limits(skeleton), slack=0.0)
    knee = skeleton.index("LeftLowerLeg")
    motion = take.truth.motion
    wxyz = motion.wxyz.copy()
    wxyz[:, knee] = [np.cos(0.1), 0.0, -np.sin(0.1), 0.0]
    bent = replace(motion, skeleton=skeleton, wxyz=wxyz)
    wrong = replace(take, points=bent.marker_points())
    found = marey.solve_pose(limited, wrong, method=method, limits=True)
    free = marey.solve_pose(limited, wrong, method=method, limits=False)
    angles = [joint_angles(limited, m.wxyz)[0, knee, 0] for m in (found, free)]
    assert angles[0] > (-1e-9 if method == "gauss_newton" else -0.15)
    assert angles[1] == pytest.approx(-0.2, abs=1e-6)
    assert angles[0] - angles[1] > 0.05


def test_other_figures_and_other_rest_poses_are_refused():
    with pytest.raises(marey.DataError, match="LeftUpperArm"):
        with_human_limits(synth.pendulum().skeleton)
    skeleton = without_limits(synth.human().skeleton)
    offset = skeleton.offset.copy()
    offset[skeleton.index("LeftLowerArm")] = [0.0, 0.05, -0.3]
    with pytest.raises(marey.DataError, match="T-pose"):
        with_human_limits(replace(skeleton, offset=offset))
    with pytest.raises(marey.OptionError, match="slack"):
        with_human_limits(skeleton, slack=-0.1)
