"""Bodies of unlabelled markers: laws of pair statistics, log odds and clustering."""

import sys
from dataclasses import replace
from importlib import import_module
from itertools import combinations
from types import SimpleNamespace

import naive
import numpy as np
import pytest
from scipy.special import expit

import marey
from marey import DataError, OptionError, synth
from marey.numerics import geometry
from marey.numerics.resampling import symmetric_sample
from marey.segmentation import REGISTRY, segment
from marey.segmentation.clusters.cross_validation import (
    LeaveOneOut,
    PredictionErrors,
    weighted_poses,
    without_redundant_bodies,
)
from marey.segmentation.clusters.model_selection import (
    Clustering,
    cluster_markers,
    mean_agreement,
    prefer_predictive,
    rand_matrix,
)
from marey.segmentation.clusters.overlap import (
    MAX_BODIES_PER_MARKER,
    MEMBERSHIP_PRICE,
    complete_linkage,
    improve_cover,
    overlapping_bodies,
    owning_bodies,
    pair_single_markers,
    without_subsets,
)
from marey.segmentation.clusters.pair_statistics import (
    PairStats,
    has_white_noise,
    log_odds,
    members_of_labels,
    nearest_neighbour_bodies,
    pair_deviations,
    pair_statistics,
)
from marey.segmentation.clusters.spectral import eigengap, spectral_labels
from marey.segmentation.contract import SegmentationTask, Suitability
from marey.segmentation.methods.overlap import INTERCEPT, SLOPE, body_confidence

TASK = SegmentationTask((synth.human().record("walk", seconds=0.5, rate=50.0),))


def record(motion="swing", markers="dense110", seed=0, seconds=8.0, **corruption):
    return synth.human(seed=seed).record(
        motion, markers=markers, seconds=seconds, rate=50.0, seed=seed, **corruption
    )


@pytest.fixture(scope="module")
def dancer():
    return record(noise=5e-4)


def same_partition(one, two):
    """Whether two labellings have the same groups, whatever their numbers."""
    grouped = np.equal.outer(one, one)
    return (grouped == np.equal.outer(two, two)).all()


# --- distances ------------------------------------------------------------------------


@pytest.mark.parametrize("median_frames", [1, 3, 5])
def test_pair_statistics_agree_with_naive_loops(median_frames, rng):
    points = rng.normal(size=(120, 7, 3))
    points[rng.random((120, 7)) < 0.2] = np.nan
    stats = pair_statistics([points], median_frames=median_frames)
    spread, distance = naive.pair_statistics(points, median_frames=median_frames)
    np.testing.assert_allclose(stats.spread, spread, atol=1e-12)
    np.testing.assert_allclose(stats.distance, distance, atol=1e-12)


@pytest.mark.parametrize("n_frames", [1, 2, 9, 10, 11, 600, 601, 1250])
@pytest.mark.parametrize("max_frames", [1, 2, 5, 10, 600])
def test_a_sample_of_frames_is_the_same_played_backwards(n_frames, max_frames):
    frames = symmetric_sample(n_frames, max_frames)
    assert 1 <= len(frames) <= max_frames
    assert len(frames) == n_frames or n_frames > max_frames
    assert (np.diff(frames) > 0).all()
    if len(frames) > 1:
        assert (n_frames - 1 - frames[::-1] == frames).all()
        assert np.ptp(np.diff(frames)) <= 2


def test_pair_deviations_agree_with_naive_loops(rng):
    points = rng.normal(size=(300, 6, 3))
    points[rng.random((300, 6)) < 0.2] = np.nan
    stats = pair_deviations(points)
    for i, j in combinations(range(6), 2):
        distance = np.linalg.norm(points[:, i] - points[:, j], axis=-1)
        assert stats.spread[i, j] == pytest.approx(np.nanstd(distance), rel=1e-5)
        assert stats.distance[i, j] == pytest.approx(np.nanmean(distance), rel=1e-6)


def test_pair_statistics_are_invariant_to_motion_of_the_world(dancer, rng):
    T = geometry.transform_exp(rng.normal(size=6))
    moved = geometry.apply(T, dancer.points)
    here, there = pair_statistics([dancer.points]), pair_statistics([moved])
    np.testing.assert_allclose(here.spread, there.spread, atol=1e-12)


@pytest.mark.parametrize(("lasting", "is_white"), [(0.0, True), (2e-3, False)])
def test_noise_that_lasts_is_not_white(lasting, is_white, rng):
    """Here it lasts for ten frames, as that of skin which moves."""
    slow = np.repeat(rng.normal(scale=lasting, size=(60, 5, 3)), 10, axis=0)
    points = 0.01 * np.arange(15.0).reshape(5, 3) + slow
    points = points + rng.normal(scale=1e-3, size=points.shape)
    computed = np.repeat(points[:, :1], 20, axis=1) + 0.1 * rng.normal(size=(20, 3))
    for markers in (points, np.concatenate([points, computed], axis=1)):
        assert has_white_noise(pair_statistics([markers]), [markers]) == is_white


@pytest.mark.parametrize("n_frames", [7, 83, 90, 1250, 1277])
def test_pair_statistics_have_no_direction_of_time(n_frames, rng):
    points = np.cumsum(rng.normal(size=(n_frames, 4, 3)), axis=0)
    points[rng.random((n_frames, 4)) < 0.1] = np.nan
    forward, backward = (
        pair_statistics([path], median_frames=3) for path in (points, points[::-1])
    )
    np.testing.assert_allclose(forward.spread, backward.spread, rtol=1e-12)
    np.testing.assert_allclose(forward.distance, backward.distance, rtol=1e-12)


def test_one_frame_less_hardly_changes_the_distances_of_a_long_take(rng):
    """All frames count; another sample of them would have other noise."""
    points = 0.2 * np.arange(15.0).reshape(5, 3) + rng.normal(size=(3000, 5, 3))
    whole, less = (pair_statistics([path]) for path in (points, points[1:]))
    pairs = np.triu_indices(5, 1)
    np.testing.assert_allclose(less.spread[pairs], whole.spread[pairs], rtol=5e-3)


def test_of_clusterings_that_predict_clearly_better_the_one_that_agrees_is_taken():
    """Their errors hardly differ, and any frame more or less would turn them."""
    owners = ([0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 1, 1], [0, 1, 2, 2, 2, 2])
    tried = [
        Clustering(members_of_labels(owner), np.array(owner), np.zeros((6, 6)))
        for owner in owners
    ]
    agreement = mean_agreement(tried)
    assert agreement[1] > agreement[2]

    def choose(*cost):
        values = {one.members.tobytes(): c for one, c in zip(tried, cost, strict=True)}
        criterion = LeaveOneOut.__new__(LeaveOneOut)
        object.__setattr__(criterion, "cost", lambda one: values[one.tobytes()])
        return tried.index(prefer_predictive(tried[0], tried, criterion))

    assert choose(0.0, -1.0, -1.1) == 0
    assert choose(0.0, -9.0, -9.1) == choose(0.0, -9.1, -9.0) == 1
    assert choose(0.0, 0.0, -9.0) == 2


def test_a_joint_that_moves_for_a_moment_does_not_pass_for_noise():
    """A tenth of the take is within the middle nine tenths of a plain quantile."""
    points = np.zeros((600, 2, 3))
    points[:, 1, 0] = 0.3
    points[300:345, 1, 0] += 0.1
    assert pair_statistics([points]).spread[0, 1] > 0.02


def test_noise_that_is_independent_from_frame_to_frame_halves(rng):
    """The median of five normal values has 0.54 of their standard deviation."""
    points = 1e-3 * rng.normal(size=(3000, 2, 3))
    points[:, 1, 0] += 0.3
    one, five = (
        pair_statistics([points], median_frames=n).spread[0, 1] for n in (1, 5)
    )
    assert five == pytest.approx(0.536 * one, rel=0.1)


def test_a_millimetre_of_noise_hides_no_ankles_or_elbows_of_a_walk():
    """The agreement was 0.6 where noise was compared frame by frame."""
    take = synth.human(seed=1).record(
        "walk", seconds=12.0, rate=100.0, markers="set53", noise=1e-3
    )
    bodies = segment(unlabelled(take.points), method="overlap")
    found, true = bodies.marker_body.tolist(), take.truth.marker_joint.tolist()
    assert naive.adjusted_rand(found, true) > 0.85


def test_single_outlier_frames_do_not_count(rng):
    points = np.zeros((600, 2, 3))
    points[:, 1, 0] = 0.3
    outliers = points.copy()
    outliers[rng.permutation(600)[:12], 1] += 1.0
    assert pair_statistics([outliers]).spread[0, 1] < 1e-12


def test_markers_attached_elsewhere_in_the_next_take_change_nothing(dancer, rng):
    moved = dancer.points.copy()
    moved[:, 3] += 0.02 * rng.normal(size=3)
    once = pair_statistics([dancer.points])
    twice = pair_statistics([dancer.points, dancer.points])
    np.testing.assert_allclose(once.spread, twice.spread, atol=1e-12)


def test_markers_never_seen_together_have_zero_log_odds():
    points = np.random.default_rng(0).normal(size=(100, 3, 3))
    points[:50, 0] = np.nan
    points[50:, 1] = np.nan
    stats = pair_statistics([points])
    assert np.isnan(stats.spread[0, 1])
    assert not stats.is_known[0, 1]
    assert log_odds(stats, nearest_neighbour_bodies(stats))[0, 1] == 0.0


# --- log odds and cover ---------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-3, 39.37, 1e3])
def test_log_odds_have_no_unit(dancer, unit):
    here, there = (cluster_markers([s * dancer.points]) for s in (1.0, unit))
    np.testing.assert_allclose(here.log_odds, there.log_odds, atol=1e-6)
    assert same_partition(here.owner, there.owner)


def find_cover(odds):
    return improve_cover(odds, np.eye(len(odds), dtype=bool))


def test_no_single_change_improves_a_cover(rng):
    for _ in range(10):
        odds = rng.normal(0.0, 4.0, size=(8, 8))
        odds = np.triu(odds, 1) + np.triu(odds, 1).T
        cover = find_cover(odds)
        value = naive.cover_worth(odds, cover, MEMBERSHIP_PRICE)
        for other in naive.cover_neighbours(cover, MAX_BODIES_PER_MARKER):
            assert naive.cover_worth(odds, other, MEMBERSHIP_PRICE) <= value + 1e-6


def test_bodies_within_others_are_left_out_whatever_rows_are_empty(rng):
    for _ in range(20):
        cover = rng.random((9, 5)) < 0.4
        cover[rng.random(9) < 0.3] = False
        sets = [set(np.flatnonzero(row)) for row in cover]
        for i, row in enumerate(without_subsets(cover)):
            others = (j for j in range(9) if j != i and sets[i] <= sets[j])
            needless = any(sets[i] < sets[j] or j < i for j in others)
            np.testing.assert_array_equal(row, cover[i] & (not needless))


def test_markers_with_positive_odds_of_all_pairs_are_one_body(rng):
    odds = rng.random((6, 6)) + 1e-9
    odds = np.triu(odds, 1) + np.triu(odds, 1).T
    assert complete_linkage(odds).tolist() == [[True] * 6]
    odds[1, 4] = odds[4, 1] = -1e-9
    assert len(complete_linkage(odds)) == 2


@pytest.mark.parametrize("n_markers", [7, 12])
def test_leverage_predicts_the_error_of_a_marker_that_is_left_out(rng, n_markers):
    """One pose of all markers, in place of one pose without each."""
    T_world_body = geometry.transform_exp(0.3 * rng.normal(size=(100, 6)))
    noise = 2e-3 * rng.normal(size=(100, n_markers, 3))
    shape = 0.1 * rng.normal(size=(n_markers, 3))
    points = geometry.apply(T_world_body[:, None], shape) + noise
    squares = []
    for marker in range(n_markers):
        others = np.arange(n_markers) != marker
        T = weighted_poses(points[:, others], np.ones(n_markers - 1))
        local = geometry.apply(geometry.inverse(T), points[:, marker])
        squares.append(np.sum((local - np.median(local, axis=0)) ** 2))
    stats, odds = pair_statistics([points]), np.zeros((n_markers, n_markers))
    criterion = LeaveOneOut(PredictionErrors([points], stats), stats.noise, odds)
    cost = criterion.cost(np.ones((1, n_markers), dtype=bool))
    error = np.sqrt(np.array(squares) / len(points))
    assert cost == pytest.approx(np.log(error + stats.noise).sum(), abs=0.3)


def test_poses_of_markers_that_move_do_not_depend_on_the_direction_of_time(rng):
    """Their shape is no average of all frames yet when the alternations end."""
    points = np.cumsum(0.05 * rng.normal(size=(40, 6, 3)), axis=0)
    points[3:9, 2] = np.nan
    weight = np.array([1.0, 1.0, 1.0, 0.02, 0.02, 0.01])
    T = weighted_poses(points, weight)
    reverse = weighted_poses(points[::-1], weight)[::-1]
    np.testing.assert_allclose(reverse, T, atol=1e-9)


def test_a_marker_on_a_joint_line_belongs_to_both():
    """Thigh, knee, shank: the knee goes with either, thigh and shank do not."""
    odds = np.full((5, 5), 4.0)
    odds[:2, 3:] = odds[3:, :2] = -8.0
    np.fill_diagonal(odds, 0.0)
    cover = find_cover(odds)
    assert sorted(map(tuple, cover.astype(int).tolist())) == [
        (0, 0, 1, 1, 1),
        (1, 1, 1, 0, 0),
    ]


def test_a_single_marker_shares_those_that_it_is_likely_with():
    """Shin, two ankles, two of the foot: the ankles go with either, the shin with none.

    The shin alone would be a body without a pose.
    """
    odds = np.full((5, 5), 4.0)
    odds[0, 1:3] = odds[1:3, 0] = 1.9
    odds[0, 3:] = odds[3:, 0] = -8.0
    np.fill_diagonal(odds, 0.0)
    alone = np.array([[1, 0, 0, 0, 0], [0, 1, 1, 1, 1]], dtype=bool)
    paired = pair_single_markers(alone, odds)
    assert paired.tolist() == [[True] * 3 + [False] * 2, alone[1].tolist()]
    assert owning_bodies(paired, odds).tolist() == [0, 0, 0, 1, 1]
    unlikely = np.where(odds == 1.9, -1.0, odds)
    np.testing.assert_array_equal(pair_single_markers(alone, unlikely), alone)


def test_ankle_markers_stay_with_the_shin_in_an_exercise():
    """They hardly move against the foot, and are far from the only shin marker."""
    take = synth.human().record(
        "exercise", rate=60.0, seconds=30.0, markers="set53", noise=5e-4
    )
    owner = cluster_markers([take.points]).owner
    assert same_partition(owner, take.truth.marker_joint)


@pytest.mark.parametrize("own_rotation", [0.0, 0.3])
def test_a_body_is_redundant_unless_it_rotates_by_itself(rng, own_rotation):
    """Condyles and the centre of a knee, which moves forward with flexion.

    They hardly move against each other, but less against thigh and shank.
    """
    thigh = [[0.1, 0.05, 0.2], [-0.1, 0.06, 0.15], [0.08, -0.07, 0.1]]
    condyles = [[0.0, 0.045, 0.0], [0.0, -0.045, 0.0]]
    shank = [[0.05, 0.05, -0.15], [-0.05, 0.05, -0.2], [0.0, -0.06, -0.25]]
    flexion = 0.6 * np.sin(np.linspace(0.0, 12.0, 300))[:, None]
    T_world_thigh = geometry.transform_exp(
        np.cumsum(0.05 * rng.normal(size=(300, 6)), axis=0)
    )
    T_thigh_shank = geometry.transform(
        geometry.rotation_exp(flexion * [0.0, 1.0, 0.0]), flexion * [0.01, 0.0, 0.0]
    )
    turn = own_rotation * np.cos(np.linspace(0.0, 31.0, 300))[:, None] * [1.0, 0.0, 0.0]
    T_thigh_knee = geometry.transform(geometry.rotation_exp(turn), np.zeros(3))
    points = [
        geometry.apply(T[:, None], np.array(shape))
        for T, shape in (
            (T_world_thigh, thigh),
            (T_world_thigh @ T_thigh_knee, condyles),
            (T_world_thigh @ T_thigh_shank, [*shank, [0.0, 0.0, 0.0]]),
        )
    ]
    exact = np.concatenate(points, axis=1)
    noisy = exact + 1e-4 * rng.normal(size=exact.shape)
    cover = np.array(
        [
            [1, 1, 1, 1, 1, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 1, 1, 1, 1],
            [0, 0, 0, 1, 1, 0, 0, 0, 1],
        ],
        dtype=bool,
    )
    errors = PredictionErrors([noisy], pair_statistics([noisy]))
    kept = without_redundant_bodies(cover, errors)
    np.testing.assert_array_equal(kept, cover if own_rotation else cover[:2])


def test_owners_are_members(dancer):
    stats = pair_statistics([dancer.points])
    members, odds = overlapping_bodies(stats)
    owner = owning_bodies(members, odds)
    assert members[owner, np.arange(len(owner))].all()


def test_agreement_of_clusterings_is_the_adjusted_rand_index(rng):
    labels = [rng.integers(0, 4, size=20) for _ in range(3)]
    labels += [np.zeros(20, dtype=int), np.arange(20)]
    matrix = rand_matrix(labels)
    for i, j in combinations(range(5), 2):
        expected = naive.adjusted_rand(labels[i], labels[j])
        assert matrix[i, j] == matrix[j, i] == pytest.approx(expected, abs=1e-12)
    assert np.diagonal(matrix) == pytest.approx(1.0)


# --- spectral -------------------------------------------------------------------------


def test_the_eigengap_is_the_number_of_large_eigenvalues():
    assert eigengap(np.array([1.0, 0.99, 0.98, 0.2, 0.1, 0.05, 0.0, 0.0])) == 3


def test_self_tuning_has_no_unit_and_the_printed_affinity_has(dancer):
    """DeAguiar2006, Eq. 1 divides a length by a squared one."""
    stats = pair_statistics([dancer.points])
    larger = PairStats(1e3 * stats.spread, 1e3 * stats.distance)
    assert same_partition(spectral_labels(stats), spectral_labels(larger))
    one, two = (
        spectral_labels(s, affinity="printed", n_frames=dancer.n_frames)
        for s in (stats, larger)
    )
    assert not same_partition(one, two)


def test_an_unknown_affinity_is_refused(dancer, unchecked):
    stats = pair_statistics([dancer.points])
    with pytest.raises(OptionError, match="one of self_tuning, printed"):
        spectral_labels(stats, affinity="rbf")  # type: ignore[arg-type]


# --- the registry of methods ----------------------------------------------------------


@pytest.mark.parametrize("method", REGISTRY)
def test_every_method_meets_the_contract(method):
    module = import_module(REGISTRY[method])
    assert callable(module.find_bodies)
    assert isinstance(module.check_suitability(TASK), Suitability)


@pytest.fixture(scope="module")
def exact():
    """An exact take for each method, and the option it needs; "" for other methods."""
    walk = synth.human().record("walk", seconds=2.0, rate=50.0, sensors=True)
    joints = walk.truth.motion.skeleton.names
    members: dict[str, list[str]] = {}
    for label, joint in zip(walk.labels, walk.truth.marker_joint, strict=True):
        members.setdefault(joints[joint], []).append(label)
    bare = replace(walk, T_world_sensor=np.zeros((100, 0, 4, 4)), sensor_names=())
    centers = walk.truth.motion.T_world_joint()[..., :3, 3]
    return {
        "template": (bare, {"bodies": members}),
        "sensors": (walk.select([]), None),
        "labels": (bare, None),
        "keypoints": (marey.Take(rate=50.0, points=centers, labels=joints), None),
        "": (unlabelled(record(seconds=2.0).points), None),
    }


@pytest.mark.parametrize("method", REGISTRY)
def test_every_method_gives_all_takes_the_same_bodies_that_carry_their_markers(
    method, exact
):
    """To 2 cm, since bodies of labels and keypoints span joints that hardly move."""
    take, template = exact.get(method, exact[""])
    takes = (take, take.cut(10, 90))
    found = segment(takes, method=method, template=template)
    assert found[0].names == found[1].names == tuple(dict.fromkeys(found[0].names))
    for bodies, source in zip(found, takes, strict=True):
        assert len(bodies.names) > 1
        assert np.isfinite(bodies.T_world_body).all()
        owned = np.flatnonzero(bodies.marker_body >= 0)
        owned = owned[bodies.determined[bodies.marker_body[owned]]]
        T = bodies.T_world_body[:, bodies.marker_body[owned]]
        there = geometry.apply(T, bodies.marker_offset[owned])
        np.testing.assert_allclose(there, source.points[:, owned], atol=0.02)


def test_auto_is_the_first_method_that_suits(dancer, monkeypatch):
    """A method that is added in front of all others is asked first."""
    added = SimpleNamespace(
        check_suitability=lambda task: Suitability(suits=True),
        find_bodies=lambda task: (segment(task.takes[0], method="overlap"),),
    )
    monkeypatch.setitem(sys.modules, "added_method", added)
    monkeypatch.setattr(
        "marey.segmentation.REGISTRY", {"added": "added_method", **REGISTRY}
    )
    chosen, named = segment(dancer), segment(dancer, method="added")
    assert (chosen.marker_body == named.marker_body).all()


# --- bodies ---------------------------------------------------------------------------


def test_exact_markers_give_exact_bodies():
    take = record()
    bodies = segment(take, method="overlap")
    assert same_partition(bodies.marker_body, take.truth.marker_body)
    assert bodies.determined.all()
    assert bodies.rms.max() < 1e-9


@pytest.mark.parametrize(
    ("motion", "skin", "gaps", "least"),
    [
        ("swing", 0.02, 0.3, 0.98),
        ("exercise", 0.01, 0.0, 0.98),
        ("chicken_walk", 0.01, 0.0, 0.98),
    ],
)
def test_dense_markers_under_skin_motion(motion, skin, gaps, least):
    take = record(motion, seconds=16.0, noise=5e-4, soft_tissue=skin, gaps=gaps)
    bodies = segment(take, method="overlap")
    assert len(bodies.names) == 15
    assert naive.adjusted_rand(take.truth.marker_body, bodies.marker_body) >= least


CHANGES = {
    "order of markers": lambda p, rng: p[:, rng.permutation(p.shape[1])],
    "direction of time": lambda p, rng: p[::-1],
    "rotation": lambda p, rng: geometry.apply(
        geometry.transform_exp(rng.normal(size=6)), p
    ),
    "shift": lambda p, rng: p + np.array([3.0, -2.0, 1.0]),
    "unit": lambda p, rng: 39.37 * p,
    "one frame less": lambda p, rng: p[:-1],
}


@pytest.fixture(scope="module")
def walker():
    take = record("chicken_walk", markers="set53", noise=1e-3, soft_tissue=0.01)
    return take.points, find_tree(take.points)


def find_tree(points):
    """The bodies of markers as sets, and the joints as pairs of such sets."""
    bodies = segment(unlabelled(points), method="overlap")
    tree = marey.infer_tree(marey.fit_joints(bodies))
    sets = [frozenset(np.flatnonzero(row).tolist()) for row in bodies.shared.T]
    pairs = ((i, int(p)) for i, p in enumerate(tree.parent) if p >= 0)
    return {frozenset((sets[a], sets[b])) for a, b in pairs}


@pytest.mark.parametrize("change", CHANGES)
def test_bodies_and_tree_are_invariant(walker, change):
    points, expected = walker
    # The markers are numbered after the change as before it.
    changed = CHANGES[change](points, np.random.default_rng(0))
    number = range(points.shape[1])
    if change == "order of markers":
        number = np.random.default_rng(0).permutation(points.shape[1]).tolist()
    found = {
        frozenset(frozenset(number[i] for i in body) for body in joint)
        for joint in find_tree(changed)
    }
    assert found == expected
    assert len(expected) > 10


def test_the_same_answer_every_time(dancer):
    one, two = segment(dancer), segment(dancer)
    assert (one.marker_body == two.marker_body).all()
    assert (one.T_world_body == two.T_world_body).all()


@pytest.mark.parametrize("count", [10, 15, 20])
def test_the_number_of_bodies_can_be_given(dancer, count):
    assert len(segment(dancer, n_bodies=count).names) == count


def test_takes_are_pooled():
    """Legs move in one take, arms in the other; only both show all bodies."""
    walk = record("walk", seed=1)
    swing = replace(record("swing", seed=1), labels=walk.labels)
    both = segment([walk, swing])
    assert both[0].names == both[1].names
    assert (both[0].marker_body == both[1].marker_body).all()
    assert len(both[0].names) == 15


def test_takes_without_common_markers_are_refused(dancer):
    other = replace(dancer, labels=tuple(f"x{i}" for i in range(len(dancer.labels))))
    with pytest.raises(DataError, match="one by one"):
        segment([dancer, other], method="overlap")


@pytest.mark.slow
def test_confidence_is_a_probability_and_falls_with_skin_motion(dancer):
    soft = segment(record("walk", noise=5e-4, soft_tissue=0.02), method="overlap")
    hard = segment(dancer, method="overlap")
    for bodies in (soft, hard):
        assert ((bodies.marker_confidence >= 0) & (bodies.marker_confidence <= 1)).all()
    assert soft.marker_confidence.mean() < hard.marker_confidence.mean()


def test_a_body_is_as_certain_as_its_weakest_pair():
    odds = np.array([[0.0, 4.0, 2.0], [4.0, 0.0, -3.0], [2.0, -3.0, 0.0]])
    pair = np.array([[True, True, False], [False, False, True]])
    two = Clustering(pair, np.array([0, 0, 1]), odds)
    one = Clustering(np.ones((1, 3), dtype=bool), np.zeros(3, dtype=int), odds)
    probability = expit(INTERCEPT + SLOPE * np.array([4.0, 0.0, -3.0]))
    np.testing.assert_allclose(body_confidence(two), probability[:2])
    np.testing.assert_allclose(body_confidence(one), probability[2:])


def test_bodies_of_two_markers_have_a_pose():
    take = record(markers=2)
    truth = take.truth.marker_body
    members = {
        f"b{k}": [take.labels[i] for i in np.flatnonzero(truth == k)]
        for k in set(truth)
    }
    bodies = segment(take, template={"bodies": members})
    assert not bodies.determined.any()
    assert np.isfinite(bodies.T_world_body).all()
    positions = geometry.apply(
        bodies.T_world_body[:, bodies.marker_body], bodies.marker_offset
    )
    assert np.abs(positions - take.points).max() < 1e-5


def test_wrong_labels_are_reported_and_not_used(rng):
    take = synth.human(seed=1).record(
        "chicken_walk", markers="sparse41", seconds=8.0, rate=50.0, noise=5e-4
    )
    order = rng.permutation(len(take.labels))
    shuffled = replace(take, labels=tuple(take.labels[i] for i in order))
    bodies = segment(shuffled)
    assert "labels-contradicted" in [finding.code for finding in bodies.findings]
    assert bodies.parents == {}


# --- bad input ------------------------------------------------------------------------


def unlabelled(points):
    labels = tuple(f"m{i}" for i in range(points.shape[1]))
    return marey.Take(rate=50.0, points=points, labels=labels)


def test_two_markers_are_too_few(rng):
    with pytest.raises(DataError, match="at least 3"):
        segment(unlabelled(rng.normal(size=(100, 2, 3))))


def test_one_rigid_body_is_one_body(rng):
    T = geometry.transform_exp(np.cumsum(0.02 * rng.normal(size=(200, 6)), axis=0))
    points = geometry.apply(T[:, None], rng.normal(size=(6, 3)))
    bodies = segment(unlabelled(points + 1e-4 * rng.normal(size=points.shape)))
    assert len(bodies.names) == 1


def linkage(rng, labels):
    """Two bodies of four markers on a hinge, and single points that come and go."""
    T = geometry.transform_exp(np.cumsum(0.02 * rng.normal(size=(300, 6)), axis=0))
    angle = np.sin(np.arange(300) / 20.0)[:, None] * [0.0, 0.0, 1.0]
    hinge = geometry.transform(geometry.rotation_exp(angle), np.zeros(3))
    one = geometry.apply(T[:, None], 0.1 * rng.normal(size=(4, 3)) + [0.0, 0.3, 0.0])
    other = 0.1 * rng.normal(size=(4, 3)) - [0.0, 0.3, 0.0]
    points = [one, geometry.apply((T @ hinge)[:, None], other)]
    ghosts = np.cumsum(0.05 * rng.normal(size=(300, len(labels) - 8, 3)), axis=0)
    ghosts[rng.random(ghosts.shape[:2]) < 0.3] = np.nan
    points = np.concatenate([*points, ghosts], axis=1)
    points += 2e-4 * rng.normal(size=points.shape)
    return marey.Take(rate=100.0, points=points, labels=tuple(labels))


PLATES = [f"{plate}{i}" for plate in ("mF", "mT") for i in range(1, 5)]


def test_reflections_beside_named_plates_are_no_bodies(rng):
    bodies = segment(linkage(rng, [*PLATES, "*12", "*13", "*14"]))
    assert bodies.names == ("body1", "body2")
    assert bodies.marker_body[8:].tolist() == [-1, -1, -1]
    assert set(bodies.marker_body[:8]) == {0, 1}
    (found,) = [f for f in bodies.findings if f.code == "markers-unnamed"]
    assert found.value == 3.0


@pytest.mark.parametrize(
    "labels",
    [[*PLATES, "toe", "heel", "tip"], [f"*{i}" for i in range(11)]],
    ids=["named", "all unnamed"],
)
def test_single_markers_stay_if_they_have_names_or_none_has(labels, rng):
    bodies = segment(linkage(rng, labels))
    assert (bodies.marker_body >= 0).all()
    assert "markers-unnamed" not in [f.code for f in bodies.findings]


def test_markers_on_a_line_are_a_finding(rng):
    T = geometry.transform_exp(np.cumsum(0.02 * rng.normal(size=(200, 6)), axis=0))
    line = np.linspace(0, 1, 5)[:, None] * [1.0, 0.0, 0.0]
    bodies = segment(unlabelled(geometry.apply(T[:, None], line)))
    assert [finding.code for finding in bodies.findings] == ["markers-on-a-line"]
    assert np.isfinite(bodies.T_world_body).all()


def test_rarely_seen_and_duplicate_markers_are_left_out_and_reported(dancer):
    points = np.concatenate([dancer.points, dancer.points[:, :1]], axis=1)
    points[5:, 1] = np.nan
    take = marey.Take(rate=50.0, points=points, labels=(*dancer.labels, "again"))
    bodies = segment(take, method="overlap")
    codes = {finding.code: finding.message for finding in bodies.findings}
    assert dancer.labels[1] in codes["markers-hardly-seen"]
    assert "again" in codes["markers-repeated"]
    assert bodies.marker_body[1] == bodies.marker_body[-1] == -1


def test_of_two_points_in_one_position_the_named_one_is_kept(dancer):
    """The ghost stands first in the file, or is seen in more frames."""
    points = np.concatenate([dancer.points[:, :1], dancer.points], axis=1)
    points[:20, 1] = np.nan
    take = marey.Take(rate=50.0, points=points, labels=("*12", *dancer.labels))
    bodies = segment(take, method="overlap")
    assert bodies.marker_body[0] == -1
    assert bodies.marker_body[1] >= 0


def test_frames_without_markers_have_no_pose(dancer):
    points = dancer.points.copy()
    points[100:150] = np.nan
    bodies = segment(replace(dancer, points=points), method="overlap")
    assert np.isnan(bodies.T_world_body[100:150]).all()
    assert np.isfinite(bodies.T_world_body[:100]).all()


@pytest.mark.parametrize("tied", [0, 20])
def test_computed_points_are_left_out(rng, tied):
    """A cloud of exactly rigid points on every bone, among markers on moving skin.

    Some points of another kind keep their distance to one marker each, as joint centres
    do that a program computes; the markers are still measured.
    """
    take = record(markers="set53", noise=1e-3, soft_tissue=0.005)
    n_markers = len(take.labels)
    joint = take.truth.motions[0].T_world_joint()[:, take.truth.figures[0].bodies]
    cloud = geometry.apply(joint[:, :, None], 0.05 * rng.normal(size=(6, 3)))
    cloud = cloud.reshape(len(cloud), -1, 3)
    inward = cloud[:, :tied] - take.points[:, :tied]
    inward /= np.linalg.norm(inward, axis=-1, keepdims=True)
    centers = take.points[:, :tied] + 0.05 * inward
    points = np.concatenate([take.points, centers, cloud], axis=1)
    bodies = segment(unlabelled(points), method="overlap")
    assert "points-computed" in [finding.code for finding in bodies.findings]
    assert (bodies.marker_body[:n_markers] >= 0).all()
    assert (bodies.marker_body[n_markers + tied :] == -1).all()


def test_computed_points_change_neither_noise_nor_joints(rng):
    """Markers in no body show neither the noise nor the spacing of those in bodies."""
    take = record(markers="set53", noise=1e-3, soft_tissue=0.005)
    n_markers = len(take.labels)
    joint = take.truth.motions[0].T_world_joint()[:, take.truth.figures[0].bodies]
    cloud = geometry.apply(joint[:, :, None], 0.01 * rng.normal(size=(12, 3)))
    points = np.concatenate([take.points, cloud.reshape(len(cloud), -1, 3)], axis=1)
    plain, cloudy = (
        segment(unlabelled(p), method="overlap") for p in (take.points, points)
    )
    assert (cloudy.marker_body[:n_markers] == plain.marker_body).all()
    np.testing.assert_allclose(cloudy.marker_noise[:n_markers], plain.marker_noise)
    np.testing.assert_allclose(cloudy.T_world_body, plain.T_world_body)
    fits = [marey.fit_joints(bodies) for bodies in (plain, cloudy)]
    for name in ("residual", "noise", "looseness", "marker_spacing"):
        alone, beside = (getattr(fit, name) for fit in fits)
        np.testing.assert_allclose(beside, alone, rtol=1e-6)


@pytest.mark.parametrize("n_frames", [1, 5])
def test_frames_too_few_to_know_any_distance_are_an_error(rng, n_frames):
    points = rng.normal(size=(n_frames, 14, 3))
    labels = tuple(f"m{k}" for k in range(14))
    take = marey.Take(rate=100.0, points=points, labels=labels)
    with pytest.raises(DataError, match=f"{n_frames} frames.*template"):
        marey.segment(take)
