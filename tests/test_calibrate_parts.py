"""Parts of the calibration: kernels against plain loops, priors, landmarks, frames."""

import threading
import time
from dataclasses import replace

import naive
import numpy as np
import pytest

from marey.anatomy.landmarks import find_landmarks
from marey.calibration.init.poses import (
    JOINT_WEIGHT,
    PARENT_AXES_WEIGHT,
    initial_poses,
    sample_frame_pairs,
    sample_frames,
    sample_takes,
)
from marey.calibration.model import (
    AxisConstraint,
    CenterMotion,
    Estimate,
    FramePoses,
    KinematicModel,
    ModelParameters,
)
from marey.calibration.moving_centers import follow_centers
from marey.calibration.priors import (
    LengthPrior,
    Prior,
    add_symmetry_and_proportions,
)
from marey.calibration.problem import problem_of_sessions
from marey.calibration.solver.levenberg_marquardt import (
    eliminate_session,
    frame_part,
    reduced_equations,
    residuals,
)
from marey.calibration.solver.schur_kernel import eliminate_poses, step_poses
from marey.kernels.threads import map_in_threads
from marey.numerics import geometry
from marey.numerics.thresholds import MARKER_NOISE_M
from marey.skeleton import Skeleton

PARENT = np.array([-1, 0, 1, 2, 1, 0, 5])
SEGMENT = np.sort([*np.repeat(np.arange(7), 2), 0, 3])
N, FRAMES = len(PARENT), 3


class RandomModel:
    """A model with random parameters and poses, some markers occluded."""

    def __init__(self, rng):
        n_markers = len(SEGMENT)
        self.model = KinematicModel(
            tuple("abcdefg"),
            PARENT,
            tuple(map(str, range(n_markers))),
            SEGMENT,
            (
                AxisConstraint(2, "hinge", 0.1, center_sd=0.3),
                AxisConstraint(6, "universal", 0.2),
            ),
        )
        self.columns = self.model.columns
        self.parameters = ModelParameters(
            model=self.model,
            joint_offset=rng.normal(size=(N, 3)),
            marker_offset=rng.normal(size=(1, n_markers, 3)),
            axis=rng.normal(size=(2, 2, 3)),
            marker_noise=rng.uniform(0.3, 0.6, size=(1, n_markers)),
            mean_rotation=geometry.rotation_exp(rng.normal(size=(N, 3))),
            center_motion=rng.normal(size=(1, 2, 3)),
        )
        self.t = rng.normal(size=(FRAMES, 3))
        self.R = geometry.rotation_exp(rng.normal(size=(FRAMES, N, 3)))
        self.points = rng.normal(size=(FRAMES, n_markers, 3))
        self.points[1, [2, 7]] = np.nan

    def predicted_points(self):
        """Positions of the markers according to the model."""
        rows = [self.naive_residuals(f, np.zeros(3 + 3 * N)) for f in range(FRAMES)]
        residual = np.array([frame[: len(SEGMENT)] for frame in rows])
        return np.nan_to_num(self.points) - residual

    @property
    def kernel_arguments(self):
        parameters = self.parameters.for_kernel(0)
        return self.model.tables, parameters, self.points, self.t, self.R

    def residuals(self, t=None, R=None):
        poses = FramePoses(
            self.points, self.t if t is None else t, self.R if R is None else R
        )
        return residuals(Estimate(self.parameters, (poses,)))[0]

    def reduced_equations(self):
        n = self.columns.count
        A, b, leverage = np.empty((n, n)), np.empty(n), np.empty(self.points.shape[:2])
        none = np.empty(0, int), np.empty((FRAMES, 0, n)), np.empty((FRAMES, 0))
        cost = eliminate_poses(*self.kernel_arguments, 0.0, A, b, leverage, *none)
        return np.tril(A) + np.tril(A, -1).T, b, leverage, cost

    def naive_residuals(self, frame, pose_step, parameter_step=None):
        if parameter_step is None:
            parameter_step = np.zeros(self.columns.count)
        still = np.zeros_like(self.parameters.center_motion)
        moved = self.parameters.add_step(parameter_step[None], 0.0, still)
        step = [naive.rotation(w) for w in pose_step[3:].reshape(N, 3)]
        R = [w @ R for w, R in zip(step, self.R[frame], strict=True)]
        axes = [(x.child, x.kind == "hinge", x.sd**-2) for x in self.model.axes]
        parameters = (
            moved.joint_offset,
            moved.marker_offset[0],
            moved.axis[:, 0],
            moved.axis[:, 1],
        )
        pose = (self.t[frame] + pose_step[:3], R)
        points = np.nan_to_num(self.points[frame])
        return naive.bundle_rests(PARENT, SEGMENT, axes, points, pose, parameters)

    def naive_equations(self):
        weights = [
            np.r_[np.repeat(np.sqrt(w), 3), np.ones(3 + 1)]
            for w in self.residuals().weight
        ]
        mean = self.parameters.mean_rotation
        return naive.bundle_equations(
            range(FRAMES),
            self.naive_residuals,
            weights,
            lambda f: naive.calm_equations(PARENT, self.R[f], mean, 1.0),
            3 + 3 * N,
            self.columns.count,
        )


def test_schur_complement_is_that_of_plain_loops(rng):
    case = RandomModel(rng)
    A, b, _, _ = case.reduced_equations()
    wanted_A, wanted_b = case.naive_equations()
    assert pytest.approx(wanted_A, abs=1e-6) == A
    assert b == pytest.approx(wanted_b, abs=1e-5)


def test_a_damped_step_of_the_poses_lowers_the_cost(rng):
    case = RandomModel(rng)
    t, R = np.empty_like(case.t), np.empty_like(case.R)
    step_poses(
        *case.kernel_arguments, 1e3, np.zeros((FRAMES, case.columns.count)), t, R
    )
    assert case.residuals(t, R).cost < case.residuals().cost


def test_leverages_add_up_to_the_degrees_of_freedom_of_the_poses(rng):
    case = RandomModel(rng)
    # Markers this accurate leave axis constraints and mean rotations no influence.
    case.parameters.marker_noise[:] = 1e-4
    case.points = case.predicted_points()
    total = case.reduced_equations()[2].sum(axis=1)
    assert total == pytest.approx(np.full(FRAMES, 3 + 3 * N), abs=1e-3)


def test_occluded_markers_cost_nothing(rng):
    case = RandomModel(rng)
    _, _, leverage, cost = case.reduced_equations()
    assert (leverage[1, [2, 7]] == 0.0).all()
    assert np.isfinite(cost)


# --- priors ---------------------------------------------------------------------------


def test_the_jacobian_of_nonlinear_priors_is_their_finite_difference(rng):
    case = RandomModel(rng)
    prior = Prior(case.model)
    prior.lengths += [
        LengthPrior(2, 3, 0.0, 0.1),
        LengthPrior(4, -1, 0.3, 0.2),
        LengthPrior(1, 5, 0.1, 0.05, is_distance=True),
    ]
    residual, jacobian = prior.nonlinear_rows(case.parameters)
    n = case.columns.count
    for x in range(n + 6 + 1):
        step = np.zeros((1, n + 6 + 1))
        step[0, x] = 1e-6
        more, less = (
            case.parameters.add_step(
                sign * step[:, :n],
                sign * step[0, -1],
                sign * step[:, n:-1].reshape(1, 2, 3),
            )
            for sign in (1.0, -1.0)
        )
        difference = prior.nonlinear_rows(less)[0] - prior.nonlinear_rows(more)[0]
        assert jacobian[:, x] == pytest.approx(difference / 2e-6, abs=1e-6)
    assert len(residual) == 3 + 4 + 6 + 1


def test_the_cost_of_priors_is_that_of_their_equations(rng):
    case = RandomModel(rng)
    prior = Prior(case.model)
    prior.add_gauge_constraints(case.parameters.marker_offset[0])
    prior.add_mirror_prior(1, 5, 0.1)
    prior.add_landmark_prior(2, [3, 4], np.array([0.1, 0.2, 0.3]), np.eye(3) / 0.05)
    prior.add_marker_priors(rng.normal(size=(len(SEGMENT), 3)), 0.3)
    prior.add_axis_prior(0, case.parameters, 0.5)
    A, b, cost = prior.linear_equations(case.parameters, 0, 7.0)
    nonlinear = 7.0 * np.sum(prior.nonlinear_rows(case.parameters)[0] ** 2)
    assert prior.cost(case.parameters, 7.0) == pytest.approx(cost + nonlinear)
    step = 1e-3 * rng.normal(size=(1, len(b)))
    moved = case.parameters.add_step(step, 0.0, np.zeros((1, 2, 3)))
    # For linear rows the cost after a step is known exactly.
    after = cost - 2.0 * step[0] @ b + step[0] @ A @ step[0]
    assert prior.linear_equations(moved, 0, 7.0)[2] == pytest.approx(after)


def test_a_prior_costs_only_where_it_holds_and_as_much_in_all_as_in_one(rng):
    case = RandomModel(rng)
    offset = np.array([0.1, 0.2, 0.3])
    twice = replace(
        case.parameters,
        marker_offset=np.repeat(case.parameters.marker_offset, 2, axis=0),
        marker_noise=np.repeat(case.parameters.marker_noise, 2, axis=0),
    )
    costs = []
    for sessions in ((), (0,), (1,)):
        prior = Prior(case.model)
        prior.add_landmark_prior(2, [3, 4], offset, np.eye(3) / 0.05, sessions=sessions)
        costs.append([prior.linear_equations(twice, k, 7.0)[2] for k in (0, 1)])
    (both, again), (first, none), (nothing, second) = costs
    assert none == nothing == 0.0
    assert first == second == pytest.approx(both + again)


def test_a_take_that_stands_still_gives_few_frames(rng):
    still = np.repeat(rng.normal(size=(1, 4, 3)), 300, axis=0)
    moving = still + rng.normal(size=still.shape)
    sampled = sample_takes([still, moving], 40)
    assert np.isin(sampled, still).all(axis=(1, 2)).sum() == 10
    assert len(sampled) == 90


def test_gauge_constraints_forbid_the_rotation_of_a_segment_in_its_axes(rng):
    case = RandomModel(rng)
    prior = Prior(case.model)
    m = case.parameters.marker_offset
    prior.add_gauge_constraints(m[0])
    _, _, cost = prior.linear_equations(case.parameters, 0, 1.0)
    assert cost == pytest.approx(0.0, abs=1e-12)
    R = geometry.rotation_exp(np.array([0.0, 0.1, 0.0]))
    rotated = m.copy()
    rotated[0, SEGMENT == 3] = m[0, SEGMENT == 3] @ R.T
    parameters = replace(case.parameters, marker_offset=rotated)
    assert prior.linear_equations(parameters, 0, 1.0)[2] > 1.0


def test_shoulders_without_arms_have_no_prior_on_the_length_of_clavicles():
    names = ("Hips", "Chest", "LeftShoulder", "RightShoulder")
    names = (*names, "LeftUpperLeg", "RightUpperLeg")
    parent = np.array([-1, 0, 1, 1, 0, 0])
    model = KinematicModel(names, parent, (), np.zeros(0, dtype=int))
    prior = Prior(model)
    add_symmetry_and_proportions(prior, mirror=True)
    hips = [names.index("LeftUpperLeg"), names.index("RightUpperLeg")]
    assert [[one.first, one.second] for one in prior.lengths] == [hips]


def test_bones_that_a_body_divides_have_no_usual_length():
    names = ("Hips", "LeftUpperLeg", "body", "LeftLowerLeg", "LeftFoot")
    names = (*names, "RightUpperLeg", "RightLowerLeg", "RightFoot")
    parent = np.array([-1, 0, 1, 2, 3, 0, 5, 6])
    model = KinematicModel(names, parent, (), np.zeros(0, dtype=int))
    prior = Prior(model)
    add_symmetry_and_proportions(prior, mirror=True)
    known = {
        names[k] for one in prior.lengths for k in (one.first, one.second) if k > 0
    }
    assert "LeftLowerLeg" not in known
    assert known >= {"LeftFoot", "RightLowerLeg", "RightFoot"}


# --- landmarks ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "segment", "meaning"),
    [
        ("LFWT", "Hips", ("Left", "waist_front")),
        ("JOE:RASI", "Hips", ("Right", "asis")),
        ("r.ASIS_study", "Hips", ("Right", "asis")),
        ("JOE_LKNE", "LeftUpperLeg", ("Left", "knee_outer")),
        ("L.Knee.Medial", "LeftUpperLeg", ("Left", "knee_inner")),
        ("LA", "Chest", ("Left", "acromion")),
        ("LLA", "LeftLowerLeg", ("Left", "ankle_outer")),
        ("C7", "Chest", ("", "c7")),
        ("WaistLBack", "Hips", ("Left", "waist_back")),
        ("RFAradius", "RightLowerArm", ("Right", "wrist_outer")),
        ("LLKN", "LeftUpperLeg", ("Left", "knee_outer")),
        ("RMKN", "RightUpperLeg", ("Right", "knee_inner")),
        ("LLAK", "LeftLowerLeg", ("Left", "ankle_outer")),
        ("R.Ankle.Lateral", "RightLowerLeg", ("Right", "ankle_outer")),
        ("L_Lat_Malleolus", "LeftLowerLeg", ("Left", "ankle_outer")),
        ("LLEPI", "LeftUpperLeg", ("Left", "knee_outer")),
        ("LLEPI", "LeftUpperArm", ("Left", "elbow_outer")),
        ("LateralEpicondyleR", "RightUpperArm", ("Right", "elbow_outer")),
        ("LSHL", "Chest", ("Left", "acromion")),
        ("S2", "Hips", ("", "sacrum")),
    ],
)
def test_labels_name_landmarks(label, segment, meaning):
    assert find_landmarks([label], [segment]).markers == {meaning: (0,)}


@pytest.mark.parametrize(
    ("label", "segment"),
    [
        ("LKNE", "RightUpperLeg"),
        ("LKNE", "LeftFoot"),
        ("LTHI", "LeftUpperLeg"),
        ("LSH1", "LeftLowerLeg"),
        ("LSH", "LeftLowerLeg"),
        ("S2", "Chest"),
        ("", "Hips"),
    ],
)
def test_labels_of_other_markers_name_no_landmark(label, segment):
    assert not find_landmarks([label], [segment]).markers


def test_the_segments_of_a_problem_are_sorted_depth_first():
    skeleton = Skeleton(
        names=("a", "c", "b", "d"),
        parent=np.array([-1, 0, 0, 1]),
        offset=np.zeros((4, 3)),
        marker_labels=("p", "q", "r"),
        marker_joint=np.array([2, 3, 0]),
        marker_offset=np.zeros((3, 3)),
    )
    model = problem_of_sessions(skeleton, (np.zeros((1, 3, 3)),), ((1,),), (0,)).model
    assert model.names == ("a", "c", "d", "b")
    assert model.parent.tolist() == [-1, 0, 1, 0]
    assert model.labels == ("r", "q", "p")
    assert model.marker_segment_names == ["a", "d", "b"]


# --- frames ---------------------------------------------------------------------------


def test_frames_are_sampled_evenly_among_those_well_seen():
    points = np.zeros((100, 4, 3))
    points[:50, 1:] = np.nan
    frames = sample_frames(points, 10)
    assert frames[0] == 50
    assert frames[-1] == 99
    assert len(frames) == 10
    assert np.ptp(np.diff(frames)) <= 1


def test_few_frames_are_all_sampled():
    assert sample_frames(np.zeros((7, 2, 3)), 80).tolist() == list(range(7))


def test_frame_pairs_are_consecutive_and_from_the_whole_take():
    points = np.arange(200.0)[:, None, None] * np.ones((1, 2, 3))
    frames = sample_frame_pairs(points)[:, :, 0, 0]
    assert (np.diff(frames, axis=1) == 1.0).all()
    assert frames[0, 0] == 0.0
    assert frames[-1, 1] == 199.0
    assert np.ptp(np.diff(frames[:, 0])) <= 1.0


def test_frame_pairs_show_half_of_the_markers():
    points = np.zeros((50, 4, 3))
    points[10:, :3] = np.nan
    assert len(sample_frame_pairs(points)) == 9
    assert sample_frame_pairs(points[11:]).shape == (0, 2, 4, 3)
    assert sample_frame_pairs(points[:1]).shape == (0, 2, 4, 3)


# --- linear algebra -------------------------------------------------------------------


def test_elimination_of_the_markers_keeps_the_solution_of_the_whole_system(rng):
    case = RandomModel(rng)
    prior = Prior(case.model)
    prior.add_marker_priors(case.parameters.marker_offset[0], 0.3)
    for axis in range(len(case.model.axes)):
        prior.add_axis_prior(axis, case.parameters, 0.5)
    poses = FramePoses(case.points, case.t, case.R)
    estimate = Estimate(case.parameters, (poses,))
    equations = reduced_equations(estimate, prior, prior_weight=2.0, damping=0.0)
    n, columns = case.columns.count, case.columns
    residual, J = prior.nonlinear_rows(case.parameters)
    whole, right = 2.0 * J.T @ J, 2.0 * J.T @ residual
    A, b, _, _ = case.reduced_equations()
    normal, gradient, _ = prior.linear_equations(case.parameters, 0, 2.0)
    whole[:n, :n] += A + normal
    right[:n] += b + gradient
    wanted = np.linalg.solve(whole, right)
    found = np.linalg.solve(equations.A, equations.b)
    assert found == pytest.approx(wanted[[*columns.shared, -1]], rel=1e-6, abs=1e-8)


def test_the_part_of_the_frames_is_what_their_weight_changes(rng):
    case = RandomModel(rng)
    prior = Prior(case.model)
    prior.add_marker_priors(case.parameters.marker_offset[0], 0.3)
    for axis in range(len(case.model.axes)):
        prior.add_axis_prior(axis, case.parameters, 0.5)
    poses = FramePoses(case.points, case.t, case.R)
    estimate = follow_centers(Estimate(case.parameters, (poses,)))
    low, mid, high = (
        reduced_equations(estimate, prior, 1.0, 0.0, data_weight=weight)
        for weight in (0.999, 1.0, 1.001)
    )
    found, right = frame_part(mid, case.columns)
    wanted = (high.A - low.A) / 0.002
    assert found == pytest.approx(wanted, rel=1e-4, abs=1e-4 * np.abs(wanted).max())
    wanted = (high.b - low.b) / 0.002
    assert right == pytest.approx(wanted, rel=1e-4, abs=1e-4 * np.abs(wanted).max())


def test_a_moving_centre_is_one_more_offset_in_every_frame(rng):
    """Its equations are those of the offset in each frame, times the angle's sine."""
    case = RandomModel(rng)
    poses = FramePoses(case.points, case.t, case.R)
    estimate = follow_centers(Estimate(case.parameters, (poses,)))
    (motion,) = estimate.motion
    H, g, _, _ = eliminate_session(estimate, 0, 0.0)
    n, offset = case.columns.count, case.columns.joint_offset[2]
    wanted_H, wanted_g = np.zeros_like(H), np.zeros_like(g)
    for f in range(FRAMES):
        one = FramePoses(case.points[f, None], case.t[f, None], case.R[f, None])
        at = CenterMotion(motion.angle[f, None], motion.R_world_parent[f, None])
        alone = Estimate(case.parameters, (one,), (at,))
        H_frame, g_frame = (x[:n] for x in eliminate_session(alone, 0, 0.0)[:2])
        J = np.zeros((n, n + 6))
        J[:, :n] = np.eye(n)
        J[offset, n:] = np.hstack([a * np.eye(3) for a in motion.angle[f, 0]])
        wanted_H += J.T @ H_frame[:, :n] @ J
        wanted_g += J.T @ g_frame
    assert pytest.approx(wanted_H, rel=1e-6, abs=1e-6) == H
    assert g == pytest.approx(wanted_g, rel=1e-6, abs=1e-6)


def test_a_step_of_a_moving_centre_moves_what_is_below_it(rng):
    case = RandomModel(rng)
    poses = FramePoses(case.points, case.t, case.R)
    estimate = follow_centers(Estimate(case.parameters, (poses,)))
    still = replace(case.parameters, center_motion=np.zeros((1, 2, 3)))
    before = residuals(replace(estimate, parameters=still))[0].vector
    moved = before - residuals(estimate)[0].vector
    below = np.isin(SEGMENT, [2, 3])
    assert (moved[:, ~below] == 0.0).all()
    motion = estimate.motion[0]
    wanted = motion.in_world(case.parameters.center_motion)[:, 0]
    seen = np.isfinite(case.points).all(axis=-1)
    for f, k in zip(*np.nonzero(seen & below), strict=True):
        assert moved[f, k] == pytest.approx(wanted[f])
    assert motion.angle.mean(axis=0) == pytest.approx(0.0, abs=1e-12)


def test_markers_that_nothing_determines_are_not_eliminated(rng):
    case = RandomModel(rng)
    case.points[:] = np.nan
    poses = FramePoses(case.points, case.t, case.R)
    prior = Prior(case.model)
    prior.add_marker_priors(np.full((len(SEGMENT), 3), np.nan), np.nan)
    with pytest.raises(np.linalg.LinAlgError):
        reduced_equations(Estimate(case.parameters, (poses,)), prior, 1.0, 0.0)


def test_results_of_threads_come_in_the_order_of_the_items():
    def slow(k):
        time.sleep(0.02 * (5 - k))
        return k

    assert map_in_threads(slow, range(5)) == (0, 1, 2, 3, 4)
    assert map_in_threads(str, [7]) == ("7",)
    with pytest.raises(ZeroDivisionError):
        map_in_threads(lambda k: 1 // k, [1, 0])


def test_a_process_of_one_thread_has_one(monkeypatch):
    """As workers of a batch are, of which there is one for each core."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    threads = map_in_threads(lambda _: threading.get_ident(), range(4))
    assert set(threads) == {threading.get_ident()}


def test_initial_poses_follow_markers_joint_and_parent(rng):
    """Segment by segment: its markers, its joint and the axes of its parent."""
    case = RandomModel(rng)
    parameters, model, points = case.parameters.of_session(0), case.model, case.points
    found = initial_poses(parameters, points)
    joints, _ = parameters.forward(found.root_position, found.R_world_segment)
    for frame, R in enumerate(found.R_world_segment):
        for i in range(1, N):
            markers = model.markers_of(i)
            m, joint = parameters.marker_offset[0, markers], joints[frame, i]
            size = np.sqrt(np.sum(m**2) / len(m)) + MARKER_NOISE_M
            local = np.vstack([m, np.zeros(3), size * np.eye(3)])
            world = np.vstack(
                [points[frame, markers], joint, joint + size * R[PARENT[i]].T]
            )
            weight = [1.0] * len(m) + [JOINT_WEIGHT] + [PARENT_AXES_WEIGHT] * 3
            T = naive.kabsch(local, world, np.array(weight))
            np.testing.assert_allclose(R[i], T[:3, :3], atol=1e-12)
