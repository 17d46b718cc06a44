"""The parts of calibration: kernels against plain loops, rows, landmarks, frames."""

import time

import naive
import numpy as np
import pytest

from marey.calibration.init.poses import chosen_frames
from marey.calibration.init.reference_frame import without_gaps
from marey.calibration.landmarks import landmarks_of
from marey.calibration.noise_model import pairs_of
from marey.calibration.parallel import side_by_side
from marey.calibration.priors import Lengths, Prior, Rows
from marey.calibration.solver.cholesky_kernel import eliminate, restore
from marey.calibration.solver.pose_kernel import costs
from marey.calibration.solver.schur_kernel import followed, reduced
from marey.calibration.unknowns import HINGE, SQUARE, Axis, Figure, Shape, figure_of
from marey.numerics import geometry

PARENT = np.array([-1, 0, 1, 2, 1, 0, 5])
SEGMENT = np.sort([*np.repeat(np.arange(7), 2), 0, 3])
N, FRAMES = len(PARENT), 3


class Case:
    """A figure in any shape and pose, some markers unseen."""

    def __init__(self, rng):
        n_markers = len(SEGMENT)
        self.figure = Figure(
            tuple("abcdefg"),
            PARENT,
            tuple(map(str, range(n_markers))),
            SEGMENT,
            (Axis(2, HINGE, 0.1), Axis(6, SQUARE, 0.2)),
        )
        self.shape = Shape(
            o=rng.normal(size=(N, 3)),
            m=rng.normal(size=(1, n_markers, 3)),
            a=rng.normal(size=(2, 3)),
            b=rng.normal(size=(2, 3)),
            noise=rng.uniform(0.3, 0.6, size=(1, n_markers)),
            usual=geometry.rotation_exp(rng.normal(size=(N, 3))),
        )
        self.t = rng.normal(size=(FRAMES, 3))
        self.R = geometry.rotation_exp(rng.normal(size=(FRAMES, N, 3)))
        self.y = rng.normal(size=(FRAMES, n_markers, 3))
        self.y[1, [2, 7]] = np.nan

    def places(self):
        """Where the markers are."""
        rows = [self.rests(f, np.zeros(3 + 3 * N), self.still) for f in range(FRAMES)]
        left = np.array([frame[: len(SEGMENT)] for frame in rows])
        return np.nan_to_num(self.y) - left

    @property
    def still(self):
        return np.zeros(self.figure.columns.count)

    @property
    def problem(self):
        return self.figure.tree, self.shape.of(0), self.y, self.t, self.R

    def equations(self):
        n = self.figure.columns.count
        A, b, leverage = np.empty((n, n)), np.empty(n), np.empty(self.y.shape[:2])
        cost = reduced(*self.problem, 0.0, A, b, leverage)
        return np.tril(A) + np.tril(A, -1).T, b, leverage, cost

    def rests(self, frame, dq, dp):
        moved = self.shape.moved(self.figure.columns, dp[None], 0.0)
        turn = [naive.rotation(w) for w in dq[3:].reshape(N, 3)]
        R = [w @ R for w, R in zip(turn, self.R[frame], strict=True)]
        axes = [(x.child, x.kind == HINGE, x.sd**-2) for x in self.figure.axes]
        shape = (moved.o, moved.m[0], moved.a, moved.b)
        pose = (self.t[frame] + dq[:3], R)
        y = np.nan_to_num(self.y[frame])
        return naive.bundle_rests(PARENT, SEGMENT, axes, y, pose, shape)

    def weights(self):
        rest, weight = np.empty_like(self.y), np.empty(self.y.shape[:2])
        costs(*self.problem, rest, weight)
        ones = np.ones(3 + 1)
        return [np.r_[np.repeat(np.sqrt(w), 3), ones] for w in weight]

    def naive(self):
        return naive.bundle_equations(
            range(FRAMES),
            self.rests,
            self.weights(),
            lambda f: naive.calm_equations(PARENT, self.R[f], self.shape.usual, 1.0),
            3 + 3 * N,
            self.figure.columns.count,
        )


def test_equations_are_those_of_plain_loops(rng):
    case = Case(rng)
    A, b, _, _ = case.equations()
    wanted_A, wanted_b = case.naive()
    assert pytest.approx(wanted_A, abs=1e-6) == A
    assert b == pytest.approx(wanted_b, abs=1e-5)


def test_a_step_of_the_poses_is_the_slope_of_the_cost(rng):
    """Poses that follow no step of the shape go straight downhill, all of the way."""
    case = Case(rng)
    t, R = np.empty_like(case.t), np.empty_like(case.R)
    room = np.empty_like(case.y), np.empty(case.y.shape[:2])
    before = costs(*case.problem, *room)
    followed(*case.problem, 1e3, case.still, t, R)
    tree, shape, y, _, _ = case.problem
    assert costs(tree, shape, y, t, R, *room) < before


def test_leverages_add_up_to_the_freedoms_of_the_poses(rng):
    case = Case(rng)
    # Markers this exact leave axes and usual turns nothing to say.
    case.shape.noise[:] = 1e-4
    case.y = case.places()
    free = case.equations()[2].sum(axis=1)
    assert free == pytest.approx(np.full(FRAMES, 3 + 3 * N), abs=1e-3)


def test_unseen_markers_cost_nothing(rng):
    case = Case(rng)
    leverage = case.equations()[2]
    assert (leverage[1, [2, 7]] == 0.0).all()
    assert np.isfinite(case.equations()[3])


# --- what is known beforehand ---------------------------------------------------------


def test_slopes_of_bent_rows_are_their_differences(rng):
    case = Case(rng)
    rows = Rows(case.figure)
    rows.lengths += [
        Lengths(2, 3, 0.0, 0.1),
        Lengths(4, -1, 0.3, 0.2),
        Lengths(1, 5, 0.1, 0.05, apart=True),
    ]
    prior = Prior.of(rows, 1)
    columns = case.figure.columns
    left, slope = prior.bent(case.shape)
    for x in range(columns.count + 1):
        step = np.zeros((1, columns.count + 1))
        step[0, x] = 1e-6
        more = case.shape.moved(columns, step[:, :-1], step[0, -1])
        less = case.shape.moved(columns, -step[:, :-1], -step[0, -1])
        found = (prior.bent(less)[0] - prior.bent(more)[0]) / 2e-6
        assert slope[:, x] == pytest.approx(found, abs=1e-6)
    assert len(left) == 3 + 4 + 1


def test_the_cost_of_rows_is_that_of_their_equations(rng):
    case = Case(rng)
    rows = Rows(case.figure)
    rows.hold_axes(case.shape.m[0])
    rows.mirrored(1, 5, 0.1)
    rows.joint_near(2, [3, 4], np.array([0.1, 0.2, 0.3]), 0.05)
    rows.marker_at(2, np.zeros(3), 0.3)
    rows.axis_along(0, np.eye(3)[0], np.eye(3)[1], 0.5)
    prior = Prior.of(rows, 1)
    A, b, cost = prior.equations(case.shape, 0, 7.0)
    bent = 7.0 * np.sum(prior.bent(case.shape)[0] ** 2)
    assert prior.cost(case.shape, 7.0) == pytest.approx(cost + bent)
    step = 1e-3 * rng.normal(size=(1, len(b)))
    moved = case.shape.moved(case.figure.columns, step, 0.0)
    # Linear rows: the cost after a step is known exactly.
    after = cost - 2.0 * step[0] @ b + step[0] @ A @ step[0]
    assert prior.equations(moved, 0, 7.0)[2] == pytest.approx(after)


def test_turning_a_segment_against_its_axes_is_held(rng):
    case = Case(rng)
    rows = Rows(case.figure)
    rows.hold_axes(case.shape.m[0])
    prior = Prior.of(rows, 1)
    assert prior.equations(case.shape, 0, 1.0)[2] == pytest.approx(0.0, abs=1e-12)
    R = geometry.rotation_exp(np.array([0.0, 0.1, 0.0]))
    m = case.shape.m.copy()
    m[0, SEGMENT == 3] = m[0, SEGMENT == 3] @ R.T
    turned = Shape(*(getattr(case.shape, f) for f in ("o",)), m, *_rest(case.shape))
    assert prior.equations(turned, 0, 1.0)[2] > 1.0


def _rest(shape):
    return shape.a, shape.b, shape.noise, shape.usual


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
    ],
)
def test_labels_mark_landmarks(label, segment, meaning):
    figure = figure_of({"Hips": "", segment: "Hips"} | {"Hips": ""}, [(label, segment)])
    assert dict(landmarks_of(figure).of) == {meaning: (0,)}


@pytest.mark.parametrize(
    ("label", "segment"),
    [
        ("LKNE", "RightUpperLeg"),
        ("LKNE", "LeftFoot"),
        ("LTHI", "LeftUpperLeg"),
        ("", "Hips"),
    ],
)
def test_other_labels_do_not(label, segment):
    figure = figure_of({"Hips": "", segment: "Hips"} | {"Hips": ""}, [(label, segment)])
    assert not landmarks_of(figure).of


# --- frames ---------------------------------------------------------------------------


def test_frames_are_chosen_evenly_among_those_well_seen():
    points = np.zeros((100, 4, 3))
    points[:50, 1:] = np.nan
    frames = chosen_frames(points, 10)
    assert frames[0] == 50
    assert frames[-1] == 99
    assert len(frames) == 10
    assert np.ptp(np.diff(frames)) <= 1


def test_few_frames_are_all_taken():
    assert chosen_frames(np.zeros((7, 2, 3)), 80).tolist() == list(range(7))


def test_pairs_are_neighbouring_frames_from_all_of_a_take():
    points = np.arange(200.0)[:, None, None] * np.ones((1, 2, 3))
    frames = pairs_of(points)[:, :, 0, 0]
    assert (np.diff(frames, axis=1) == 1.0).all()
    assert frames[0, 0] == 0.0
    assert frames[-1, 1] == 199.0
    assert np.ptp(np.diff(frames[:, 0])) <= 1.0


def test_pairs_show_half_of_the_markers():
    points = np.zeros((50, 4, 3))
    points[10:, :3] = np.nan
    assert len(pairs_of(points)) == 9
    assert pairs_of(points[11:]).shape == (0, 2, 4, 3)
    assert pairs_of(points[:1]).shape == (0, 2, 4, 3)


def test_a_marker_unseen_in_a_frame_is_carried_by_its_neighbours(rng):
    figure = Figure(("a",), np.array([-1]), tuple("pqrst"), np.zeros(5, dtype=int))
    shape = rng.normal(size=(5, 3))
    T = geometry.transform(
        geometry.rotation_exp(rng.normal(size=(9, 3))), rng.normal(size=(9, 3))
    )
    points = geometry.apply(T[:, None], shape[None])
    hidden = points.copy()
    hidden[4, 2] = np.nan
    assert without_gaps(figure, hidden, 4) == pytest.approx(points[4])
    hidden[:, 2] = np.nan
    assert np.isnan(without_gaps(figure, hidden, 4)[2]).all()


@pytest.mark.parametrize(("count", "more"), [(1, 0), (0, 3), (7, 4), (60, 25)])
def test_unknowns_that_are_eliminated_and_restored_solve_the_whole(rng, count, more):
    square = rng.normal(size=(count + more, count + more + 3))
    A, b = square @ square.T, rng.normal(size=count + more)
    H, g = A.copy(), b.copy()
    assert eliminate(H, g, count)
    L = np.linalg.cholesky(A)[:count, :count]
    np.testing.assert_allclose(np.tril(H[:count, :count]), L, atol=1e-9)
    tie = A[:count, count:]
    left = A[count:, count:] - tie.T @ np.linalg.solve(A[:count, :count], tie)
    np.testing.assert_allclose(H[count:, count:], left, atol=1e-9)
    rest = np.linalg.solve(H[count:, count:], g[count:])
    x = np.concatenate([restore(H, g, rest, count), rest])
    np.testing.assert_allclose(A @ x, b, atol=1e-7)


def test_what_is_not_positive_is_not_eliminated():
    assert not eliminate(np.diag([1.0, 0.0]), np.ones(2), 2)
    assert not eliminate(np.diag([1.0, np.nan]), np.ones(2), 2)


def test_jobs_side_by_side_come_back_in_their_order():
    def slow(k):
        time.sleep(0.02 * (5 - k))
        return k

    assert side_by_side(slow, range(5)) == (0, 1, 2, 3, 4)
    assert side_by_side(str, [7]) == ("7",)
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda k: 1 // k, [1, 0])
