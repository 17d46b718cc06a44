"""Poses by BFGS: the fitness and its gradient, then whole takes."""

from dataclasses import replace
from typing import Any

import numpy as np
import posed
import pytest

import marey
from marey import synth
from marey.articulated.targets import TargetNames
from marey.numerics import geometry
from marey.pose import fit_pose
from marey.pose.bfgs.fit import BfgsSolver
from marey.pose.bfgs.fit import fit_bfgs as fit
from marey.pose.bfgs.fitness_kernel import FitnessTerms, evaluate_fitness
from marey.pose.options import BfgsOptions
from marey.rig.lengths import with_bone_lengths
from marey.synth.performance.angles import joint_angles

SDS: dict[str, Any] = {
    "marker_sd": 2e-3,
    "sensor_sd": 3e-3,
    "rotation_sd": 0.01,
    "limit_sd": 0.01,
}


class Frame:
    """One frame with every kind of joint, far from its targets and beyond limits."""

    def __init__(self, rng, *, euler, prior):
        skeleton = posed.skeleton_of_every_kind(rng)
        n = skeleton.n_joints
        self.skeleton = replace(skeleton, limits=np.tile([-0.1, 0.2], (n, 3, 1)))
        self.points = rng.normal(size=(len(skeleton.marker_labels), 3))
        self.points[4] = np.nan
        self.sensors = geometry.transform_exp(rng.normal(size=(2, 6)))
        labels = skeleton.marker_labels
        names = TargetNames(labels, labels, skeleton.sensor_names)
        solver = BfgsSolver(self.skeleton, names, BfgsOptions(**SDS))
        self.nodes, self.problem = solver.nodes, solver.problem
        m = len(self.nodes.tree.parent)
        self.base = self.random_rotations(rng, m)
        self.reference_q = self.random_rotations(rng, m)
        self.terms = FitnessTerms(euler, SDS["limit_sd"] ** -2, np.full(m, prior))

    def random_rotations(self, rng, m):
        """Rotations of nodes that each can make."""
        q = geometry.quat_exp(0.5 * rng.normal(size=(m, 3)))
        for i in np.flatnonzero(self.nodes.tree.is_hinge):
            q[i] = geometry.quat_exp(0.5 * rng.normal() * self.nodes.tree.axis[i])
        return q

    def unknowns(self, rng):
        """Random unknowns; the two that a hinge does not use are zero."""
        x = 0.4 * rng.normal(size=(len(self.base) + 1, 3))
        x[1:][self.nodes.tree.is_hinge, 1:] = 0.0
        return x.ravel()

    def fitness(self, x):
        frame = self.points, self.sensors, self.reference_q
        return evaluate_fitness(self.problem, frame, self.terms, x, self.base)

    def rotations(self, x):
        """Rotations of the nodes, written out with the geometry of the project."""
        tree, q = self.nodes.tree, []
        for i in range(len(tree.parent)):
            a, b = 3 * i + 3, 3 * i + 6
            if tree.is_hinge[i]:
                q.append(geometry.quat_exp(x[a] * tree.axis[i]))
            elif self.terms.euler:
                q.append(geometry.quat_from_euler(x[a:b], "XYZ"))
            else:
                turn = np.concatenate([[1.0], 0.5 * x[a:b]])
                turn /= np.linalg.norm(turn)
                q.append(geometry.quat_multiply(turn, self.base[i]))
        return np.array(q)

    def naive_fitness(self, x):
        """The fitness as the paper prints it, term after term."""
        skeleton, q = self.skeleton, self.rotations(x)
        wxyz = self.nodes.joint_rotations(q[None])
        root = geometry.transform(geometry.matrix_from_quat(q[:1]), x[None, :3])
        T = skeleton.forward(root, wxyz)[0]
        there = geometry.apply(T[skeleton.marker_joint], skeleton.marker_offset)
        total = np.nansum((there - self.points) ** 2) / SDS["marker_sd"] ** 2
        sensors = T[skeleton.sensor_joint] @ skeleton.T_joint_sensor
        away = sensors - self.sensors
        total += np.sum(away[:, :3, 3] ** 2) / SDS["sensor_sd"] ** 2
        total += np.sum(away[:, :3, :2] ** 2) / SDS["rotation_sd"] ** 2
        angles = joint_angles(skeleton, wxyz)[0]
        low, high = skeleton.limits[..., 0], skeleton.limits[..., 1]
        beyond = np.maximum(angles - high, 0.0) + np.minimum(angles - low, 0.0)
        uses = {"ball": 3, "universal": 2, "hinge": 1}
        for joint, kind in enumerate(skeleton.kind):
            over = beyond[joint, : uses.get(kind, 0)]
            total += np.sum(over**2) / SDS["limit_sd"] ** 2
        turn = geometry.quat_multiply(q, geometry.quat_conjugate(self.reference_q))
        return total + 4.0 * np.sum(self.terms.prior[:, None] * turn[:, 1:] ** 2)


@pytest.fixture(params=["quaternion", "euler"])
def frame(request, rng):
    return Frame(rng, euler=request.param == "euler", prior=100.0)


def test_the_fitness_is_the_papers(frame, rng):
    for _ in range(3):
        x = frame.unknowns(rng)
        assert frame.fitness(x)[0] == pytest.approx(frame.naive_fitness(x), rel=1e-12)


def test_the_slope_is_the_finite_difference(frame, rng):
    """The corrected gradient: along the joint's own axis, limits included."""
    x, h = frame.unknowns(rng), 1e-6
    gradient = frame.fitness(x)[1]
    steps = h * np.eye(len(x))
    numeric = [
        (frame.fitness(x + s)[0] - frame.fitness(x - s)[0]) / (2 * h) for s in steps
    ]
    np.testing.assert_allclose(gradient, numeric, atol=1e-7 * np.abs(gradient).max())


# --- whole takes ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def walk():
    return posed.record(
        synth.human(seed=2),
        "walk",
        markers="none",
        sensors=True,
        rate=30.0,
        seconds=2.0,
        noise=2e-3,
        turn_noise=5e-3,
    )


def test_it_finds_the_least_squares_of_gauss_newton():
    """With plain squares of markers both minimise the same."""
    skeleton, take = posed.record(
        synth.human(seed=2), "walk", markers=6, rate=30.0, noise=3e-3
    )
    plain: dict[str, Any] = {"limits": False, "tolerance": 1e-13}
    one = fit(skeleton, take, **plain).motion
    two = marey.solve_pose(skeleton, take, method="gauss_newton", outlier=0.0, **plain)
    np.testing.assert_allclose(one.T_world_joint(), two.T_world_joint(), atol=1e-6)


def test_euler_angles_and_quaternions_find_the_same_poses(walk):
    skeleton, take = walk
    one, two = (fit(skeleton, take, rotation=r) for r in ("quaternion", "euler"))
    np.testing.assert_allclose(one.motion.wxyz, two.motion.wxyz, atol=1e-7)
    np.testing.assert_allclose(one.fitness, two.fitness, rtol=1e-9)


def test_frames_begin_where_the_last_one_ended(walk):
    """After the first a frame needs few iterations; alone, many."""
    skeleton, take = walk
    steps = fit(skeleton, take, tolerance=1e-6, both_ways=False).steps
    one = take.cut(30, 31)
    alone = fit(skeleton, one, tolerance=1e-6, both_ways=False).steps[0]
    assert np.median(steps[2:]) < 15
    assert alone > 2 * np.median(steps[2:])


def test_through_gimbal_lock_quaternions_go_on(rng):
    """An arm that swings through 90 degrees about the middle axis."""
    skeleton = replace(
        posed.skeleton_of_every_kind(rng),
        kind=("root", "ball", "fixed", "fixed", "fixed", "fixed", "fixed"),
    )
    n = 41
    angles = np.stack([np.full(n, 0.3), np.linspace(1.2, 1.9, n), np.full(n, -0.2)], 1)
    wxyz = np.tile([1.0, 0.0, 0.0, 0.0], (n, 7, 1))
    wxyz[:, 1] = geometry.quat_from_euler(angles, "XYZ")
    motion = marey.Motion(
        skeleton=skeleton,
        T_world_root=np.tile(np.eye(4), (n, 1, 1)),
        wxyz=wxyz,
        rate=30.0,
    )
    take = marey.Take(
        rate=30.0, points=motion.marker_points(), labels=skeleton.marker_labels
    )
    for rotation in ("quaternion", "euler"):
        found = fit(skeleton, take, rotation=rotation)
        np.testing.assert_allclose(
            found.motion.T_world_joint(), motion.T_world_joint(), atol=1e-7
        )
    assert fit(skeleton, take, both_ways=False).steps[1:].max() < 30


def test_what_is_ignored_does_not_count(walk):
    """Gross errors, tagged: the poses are those of data without them."""
    skeleton, take = walk
    T = take.T_world_sensor.copy()
    arm, leg = skeleton.index("LeftLowerArm"), skeleton.index("RightLowerLeg")
    names = [take.sensor_names.index(n) for n in ("LeftLowerArm", "RightLowerLeg")]
    T[20:23, names[0], :3, 3] += 1.0
    T[40, names[1], :3, 3] -= 3.0
    spoilt = replace(take, T_world_sensor=T)
    ignore = np.zeros((take.n_frames, skeleton.n_joints), dtype=bool)
    ignore[20:23, arm] = ignore[40, leg] = True
    for method in ("bfgs", "gauss_newton", "playback"):
        clean = marey.solve_pose(skeleton, take, method=method, ignore=ignore)
        found = marey.solve_pose(skeleton, spoilt, method=method, ignore=ignore)
        np.testing.assert_array_equal(found.wxyz, clean.wxyz)
    wrong = posed.joint_errors(marey.solve_pose(skeleton, spoilt, method="bfgs"), take)
    right = posed.joint_errors(
        marey.solve_pose(skeleton, spoilt, method="bfgs", ignore=ignore), take
    )
    assert wrong[20:23].max() > 0.1
    assert right.max() < 0.05


def test_frames_without_anything_are_bridged_and_named(walk):
    """From the last pose over to the next; one way, the last one stays."""
    skeleton, take = walk
    T = take.T_world_sensor.copy()
    T[:3], T[30:33] = np.nan, np.nan
    gone = replace(take, T_world_sensor=T)
    motion, findings = fit_pose(skeleton, gone, method="bfgs")
    assert [(f.code, f.frames) for f in findings] == [
        ("pose-unseen", (0, 2)),
        ("pose-unseen", (30, 32)),
    ]
    before, middle, after = motion.wxyz[29], motion.wxyz[31], motion.wxyz[33]
    half = geometry.quat_slerp(before, after, np.full(len(before), 0.5))
    np.testing.assert_allclose(
        geometry.matrix_from_quat(middle), geometry.matrix_from_quat(half), atol=1e-9
    )
    np.testing.assert_allclose(motion.wxyz[0], motion.wxyz[3], atol=1e-12)
    motion = fit(skeleton, gone, both_ways=False).motion
    np.testing.assert_allclose(motion.wxyz[32], motion.wxyz[29], atol=1e-12)


def test_frames_that_do_not_fit_are_reported(walk):
    skeleton, take = walk
    T = take.T_world_sensor.copy()
    T[10:12, :, :3, 3] *= 2.0
    _, findings = fit_pose(skeleton, replace(take, T_world_sensor=T), method="bfgs")
    assert [(f.code, f.frames) for f in findings] == [("pose-lost", (10, 11))]


# --- weights by body, and props -------------------------------------------------------


@pytest.mark.parametrize("method", ["bfgs", "gauss_newton"])
def test_a_weight_of_a_joint_is_that_of_all_it_carries(method):
    skeleton, take = posed.record(sensors=True, noise=5e-3, seconds=0.3)
    markers = posed.markers_on(take, skeleton, "LeftLowerArm")
    each = {take.labels[i]: 9.0 for i in markers} | {"LeftLowerArm": 9.0}
    one, two, plain = (
        marey.solve_pose(skeleton, take, method=method, weights=w)
        for w in ({"LeftLowerArm": 9.0}, each, {})
    )
    np.testing.assert_array_equal(one.wxyz, two.wxyz)
    assert np.abs(one.wxyz - plain.wxyz).max() > 1e-4
    with pytest.raises(marey.OptionError, match="Tail"):
        marey.solve_pose(skeleton, take, method=method, weights={"Tail": 2.0})


@pytest.mark.parametrize("method", ["bfgs", "gauss_newton"])
def test_a_hand_stays_on_its_prop(method):
    """Two people hand a stick over; the skeleton's arms are 4 % too short.

    Bodenheimer1997, Fig. 11: end effectors must not leave the props they hold.
    """
    take = synth.scene("handover", seconds=4.0, rate=30.0, markers="none", sensors=True)
    truth, mine = take.truth, take.truth.sensor_subject == 0
    skeleton = truth.figures[0].skeleton
    arm = [skeleton.index(f"Right{part}") for part in ("LowerArm", "Hand")]
    short = np.full(skeleton.n_joints, np.nan)
    short[arm] = 0.96 * skeleton.lengths[arm]
    skeleton = replace(
        with_bone_lengths(skeleton, short),
        sensor_names=tuple(n for n in take.sensor_names if n.startswith("A:")),
        sensor_joint=truth.sensor_joint[mine],
        T_joint_sensor=truth.T_body_sensor[mine],
    )
    hand = skeleton.index("RightHand")
    T_prop_hand = (
        geometry.inverse(truth.motions[2].T_world_root)
        @ (truth.motions[0].T_world_joint()[:, hand])
    )
    held = take.times < truth.links[0].end
    slides = []
    for weight in (1.0, 100.0):
        motion = marey.solve_pose(
            skeleton, take, method=method, weights={"RightHand": weight}
        )
        T = (
            geometry.inverse(truth.motions[2].T_world_root)
            @ motion.T_world_joint()[:, hand]
        )
        away = np.linalg.norm((T - T_prop_hand)[held, :3, 3], axis=-1)
        slides.append(away.max())
    assert slides[1] < 1e-3
    assert slides[1] < 0.3 * slides[0]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("marker_sd", 0.0),
        ("limit_sd", -1.0),
        ("tolerance", -1.0),
        ("steps", 0),
        ("rotation", "matrix"),
        ("reference_sd", 0.0),
        ("keys", ((0.0, 0.0),)),
        ("weights", {"Nose": 1.0}),
    ],
)
def test_bad_options_are_named(option, value, walk):
    with pytest.raises(marey.OptionError, match=option):
        marey.solve_pose(*walk, method="bfgs", **{option: value})


def test_tags_of_another_take_are_refused(walk):
    skeleton, take = walk
    with pytest.raises(marey.DataError, match="ignore"):
        marey.solve_pose(skeleton, take, ignore=np.zeros((3, 2), dtype=bool))
