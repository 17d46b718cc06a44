"""Joint limits of people from the literature: axes, ranges, and solvers that obey."""

from dataclasses import replace

import numpy as np
import posed
import pytest
from scipy.spatial.transform import Rotation

import marey
from marey import synth
from marey.anatomy.limb_roll import BodyTree, limb_sides
from marey.anatomy.limits import (
    LIMIT_SLACK_RAD,
    human_ranges,
    limit_joints,
    parse_ranges,
    safe_ranges,
    with_human_limits,
)
from marey.anatomy.t_pose import t_pose_rotations
from marey.synth.performance.angles import joint_angles

LEFT_ARM = [
    synth.human().skeleton.index(name)
    for name in ("LeftUpperArm", "LeftLowerArm", "LeftHand")
]


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
            assert posed.within_limits(skeleton, joint_angles(skeleton, motion.wxyz))


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


def test_other_figures_are_refused_and_other_rest_poses_left_free():
    with pytest.raises(marey.DataError, match="LeftUpperArm"):
        with_human_limits(synth.pendulum().skeleton)
    skeleton = without_limits(synth.human().skeleton)
    offset = skeleton.offset.copy()
    offset[skeleton.index("LeftLowerArm")] = [0.0, 0.05, -0.3]
    limited = limit_joints(replace(skeleton, offset=offset), human_ranges())
    assert limited.posed_otherwise == ("LeftUpperArm",)
    free = np.isnan(limited.skeleton.limits).all(axis=(1, 2))
    names = [name for name, one in zip(skeleton.names, free, strict=True) if one]
    assert "LeftUpperArm" in names
    assert "RightUpperArm" not in names
    with pytest.raises(marey.OptionError, match="slack"):
        with_human_limits(skeleton, slack=-0.1)


# --- rest pose ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def calibrated():
    """A person solved from markers."""
    take = synth.human(seed=5).record("exercise", seconds=4.0, noise=1e-3)
    return marey.solve(take, limits="none")


def test_knees_and_elbows_bend_about_the_axes_of_a_t_pose(calibrated):
    """Whatever the bones' first roll: knees about +y, elbows towards +x."""
    (motion,) = calibrated.subjects[0].motions
    skeleton, T = motion.skeleton, motion.T_world_joint()
    goals = {"LowerLeg": [0, 1, 0], "LowerArm": [0, 0, -1]}
    for name, goal in goals.items():
        for side, sign in (("Left", 1.0), ("Right", -1.0)):
            joint = skeleton.index(side + name)
            upper = int(skeleton.parent[joint])
            child = int(np.flatnonzero(skeleton.parent == joint)[0])
            points = T[..., :3, 3][:, [upper, joint, child]]
            bones = np.diff(points, axis=1)
            bones /= np.linalg.norm(bones, axis=-1, keepdims=True)
            normal = np.cross(bones[:, 0], bones[:, 1])
            bent = np.linalg.norm(normal, axis=-1) > np.sin(np.radians(20.0))
            axis = np.einsum("fji,fj->i", T[bent, upper, :3, :3], normal[bent])
            expected = np.array(goal, float) * (sign if name == "LowerArm" else 1.0)
            cosine = axis @ expected / np.linalg.norm(axis)
            assert cosine > np.cos(np.radians(5.0)), side + name


def test_the_rest_pose_does_not_depend_on_the_roll_of_the_bodies():
    """Bodies with any frames of their own give one and the same T-pose."""
    figure = synth.human(seed=5)
    motion = figure.perform("exercise", seconds=4.0, rate=30.0, seed=5)
    skeleton, R = motion.skeleton, motion.T_world_joint()[..., :3, :3]
    n = skeleton.n_joints
    tree = BodyTree(
        skeleton.names,
        skeleton.parent,
        np.where(skeleton.parent[:, None] < 0, 0.0, skeleton.offset),
        np.zeros((n, 3)),
        np.zeros((n, 3)),
    )
    Q = Rotation.random(n, random_state=1).as_matrix()
    in_parent = np.einsum("jki,jk->ji", Q[tree.parent], tree.in_parent)
    turned = tree._replace(in_parent=in_parent)
    at_rest = t_pose_rotations(tree, R[0], limb_sides(tree, R))
    other = t_pose_rotations(turned, R[0] @ Q, limb_sides(turned, R @ Q))
    limbs = [
        i
        for i, name in enumerate(skeleton.names)
        if name.endswith(("UpperLeg", "LowerLeg", "UpperArm"))
    ]
    np.testing.assert_allclose(
        (other @ Q.swapaxes(1, 2))[limbs], at_rest[limbs], atol=1e-12
    )
    assert len(limbs) == 6
    # The figure itself rests in a T-pose, its limbs rolled as a person's are.
    cosine = 0.5 * (np.trace(at_rest[limbs], axis1=1, axis2=2) - 1.0)
    assert np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))).max() < 10.0


def test_limits_about_unknown_axes_are_left_out():
    """Elbows that never bend: no axis is known, and no limit set about it."""
    skeleton = without_limits(synth.human().skeleton)
    straight = ("LeftUpperArm", "LeftLowerArm", "LeftHand")
    limited = limit_joints(skeleton, human_ranges(), straight)
    limits = limited.skeleton.limits
    assert limited.rolled == straight
    assert np.isnan(limits[skeleton.index("LeftLowerArm")]).all()
    shoulder = limits[skeleton.index("LeftUpperArm")]
    assert np.isfinite(shoulder[:2]).all()
    assert np.isnan(shoulder[2]).all()
    assert np.isfinite(limits[skeleton.index("RightLowerArm")]).all()


def test_limits_below_a_bone_of_one_marker_are_left_out():
    """Nothing shows its roll, and with it the axis about which the elbow bends."""
    take = synth.human(seed=1).record("walk", seconds=3.0, rate=60.0, markers="set53")
    of_left_arm = {"LELB", "LWRA", "LSHO"}
    kept = [
        i
        for i, label in enumerate(take.labels)
        if label in of_left_arm or take.truth.marker_joint[i] not in LEFT_ARM
    ]
    fewer = marey.Take(
        rate=take.rate,
        points=take.points[:, kept],
        labels=tuple(take.labels[i] for i in kept),
    )
    found = {f.code: f for f in marey.solve(fewer).report.findings}
    assert "LeftLowerArm" in found["limit-left-out"].message
    assert "Right" not in found["limit-left-out"].message


def test_straight_means_in_line_with_the_bone_before():
    """A rest pose with knees bent by 15 degrees: the same pose is at the limit."""
    skeleton = without_limits(synth.human().skeleton)
    knee, ankle = skeleton.index("LeftLowerLeg"), skeleton.index("LeftFoot")
    angle = np.radians(15.0)
    offset = skeleton.offset.copy()
    x, y, z = offset[ankle]
    cosine, sine = np.cos(angle), np.sin(angle)
    offset[ankle] = [cosine * x + sine * z, y, cosine * z - sine * x]
    bent = limit_joints(replace(skeleton, offset=offset), safe_ranges()).skeleton
    as_is = limit_joints(skeleton, safe_ranges()).skeleton
    shift = as_is.limits[knee, 0, 0] - bent.limits[knee, 0, 0]
    assert shift == pytest.approx(angle, abs=1e-3)


# --- tables by hand -------------------------------------------------------------------


def test_limits_by_hand_are_for_both_sides_mirrored():
    ranges = parse_ranges({"LowerLeg": {"swing_x": [-5, 150], "twist": [-10, 10]}})
    assert set(ranges) == {"LeftLowerLeg", "RightLowerLeg"}
    for row in ranges.values():
        np.testing.assert_allclose(np.degrees(row.limits[0]), [-5.0, 150.0])
        assert np.isnan(row.limits[1]).all()
    axes = {"swing_x": [-5, 5], "x": [0, 2, 0], "y": [1, 0, 0]}
    left, right = parse_ranges({"Hand": axes}).values()
    np.testing.assert_allclose(left.axes, [[0, 1, 0], [1, 0, 0]])
    np.testing.assert_allclose(right.axes, [[0, 1, 0], [-1, 0, 0]])


@pytest.mark.parametrize(
    "row",
    [
        {"bend": [0, 1]},
        {"twist": [1]},
        {"twist": [10, -10]},
        {"twist": "wide"},
        {"twist": [0, 1], "x": [1, 0, 0]},
        {},
    ],
)
def test_rows_of_another_form_are_refused_by_joint(row):
    with pytest.raises(marey.OptionError, match="limits of LeftHand"):
        parse_ranges({"LeftHand": row})
