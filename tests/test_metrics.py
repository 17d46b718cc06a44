from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey import metrics, synth
from marey.metrics.stages import joint_distances
from marey.numerics import geometry
from marey.solution import Solution, Subject

EXACT = 1e-9


def record(figure, **options):
    defaults = {"seconds": 3.0, "rate": 30.0}
    return figure.record(**(defaults | options))


@pytest.fixture(scope="module")
def take():
    return record(synth.human(), motion="chicken_walk")


def perfect_bodies(take, rng):
    """The true bodies in a random order, each in a random frame."""
    truth = take.truth
    order = rng.permutation(len(truth.bodies))
    R_true_found = geometry.rotation_exp(rng.normal(size=(len(order), 3)))
    T_true_found = geometry.transform(
        R_true_found, 0.1 * rng.normal(size=(len(order), 3))
    )
    T = truth.T_world_body()[:, order] @ T_true_found
    found_of = np.argsort(order)
    marker_body = np.where(truth.marker_body >= 0, found_of[truth.marker_body], -1)
    n = len(order)
    shared = np.zeros((len(marker_body), n), dtype=bool)
    shared[np.flatnonzero(marker_body >= 0), marker_body[marker_body >= 0]] = True
    return marey.Bodies(
        take=take,
        names=tuple(f"body{i}" for i in range(n)),
        T_world_body=T,
        determined=np.ones(n, dtype=bool),
        marker_body=marker_body,
        shared=shared,
        marker_confidence=np.ones(len(marker_body)),
        body_confidence=np.ones(n),
        marker_offset=np.zeros((len(marker_body), 3)),
        rms=np.zeros(n),
    ), found_of


def perfect_joints(bodies, found_of, truth):
    """The true joints, and for all other pairs a fit that means nothing."""
    n = len(bodies.names)
    a, b = np.triu_indices(n, k=1)
    row = {(int(i), int(j)): k for k, (i, j) in enumerate(zip(a, b, strict=True))}
    m = len(a)
    center_a, center_b = np.ones((2, m, 3))
    axis_a, axis_b = np.full((2, m, 3), np.nan)
    kind = ["fixed"] * m
    parent, edge = np.full((2, n), -1)
    for up, down, joint in truth.edges:
        subject = truth.bodies[down, 0]
        motion = truth.motions[subject]
        T = motion.T_world_joint()[0, joint]
        i, j = sorted((int(found_of[up]), int(found_of[down])))
        k = row[i, j]
        T_a, T_b = (geometry.inverse(bodies.T_world_body[0, x]) for x in (i, j))
        center_a[k] = geometry.apply(T_a, T[:3, 3])
        center_b[k] = geometry.apply(T_b, T[:3, 3])
        kind[k] = motion.skeleton.kind[joint]
        if kind[k] == "hinge":
            axis = T[:3, :3] @ motion.skeleton.axes[joint, 0]
            axis_a[k], axis_b[k] = -T_a[:3, :3] @ axis, -T_b[:3, :3] @ axis
        parent[found_of[down]], edge[found_of[down]] = found_of[up], k
    fits = marey.JointFits(
        pair=np.stack([a, b], axis=-1),
        center_a=center_a,
        center_b=center_b,
        axis_a=axis_a,
        axis_b=axis_b,
        residual=np.zeros(m),
        noise=np.zeros(m),
        distance=np.zeros(m),
        mediated=np.ones(m),
        spread=np.ones((m, 6)),
        covariance=np.zeros((m, 6, 6)),
        kind=tuple(kind),
    )
    tree = marey.Tree(parent=parent, edge=edge, margin=np.zeros(n))
    return fits, tree


def perfect(take, seed=0):
    bodies, found_of = perfect_bodies(take, np.random.default_rng(seed))
    return bodies, *perfect_joints(bodies, found_of, take.truth)


def perfect_solution(take):
    bodies, joints, tree = perfect(take)
    subjects = tuple(
        Subject(f"subject{i}", motion.skeleton, (motion,))
        for i, motion in enumerate(take.truth.motions)
    )
    return Solution(
        takes=(take,), bodies=(bodies,), joints=joints, tree=tree, subjects=subjects
    )


RECORDINGS = {
    "human": lambda: record(synth.human(), motion="walk"),
    "sensors": lambda: record(
        synth.human(), motion="chicken_walk", markers="none", sensors=True
    ),
    "robot": lambda: record(synth.robot()),
    "pendulum": lambda: record(synth.pendulum(), labels=False),
    "phantoms": lambda: record(synth.snowman(), phantoms=2, labels=False),
    "scene": lambda: synth.scene("handover", seconds=4.0, rate=30.0),
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_truth_itself_has_no_error(name):
    take = RECORDINGS[name]()
    score = metrics.compare(perfect_solution(take), take)
    (bodies,) = score.bodies
    n_bodies, n_edges = len(take.truth.bodies), len(take.truth.edges)
    assert bodies.found == bodies.true == bodies.matched == n_bodies
    if len(take.labels):
        assert bodies.ari == bodies.ari_shared == bodies.markers_right == 1.0
    assert score.joints.found == score.joints.true == n_edges
    assert score.joints.kinds_right == n_edges
    assert n_edges == 0 or score.joints.center_max < EXACT
    assert n_edges == 0 or score.joints.off_axis < EXACT
    assert not score.joints.axis > 1e-7
    assert (score.tree.right, score.tree.complete) == (n_edges, True)
    assert score.subjects_found == score.subjects_true == len(take.truth.figures)
    for lengths in score.skeletons:
        assert lengths.compared == lengths.true
        assert not lengths.max > EXACT
    for motion in score.motions:
        assert motion.matched == motion.true
        assert not motion.position_max > EXACT
        assert not motion.rotation > 1e-7
        assert motion.root < EXACT


def test_the_solution_of_a_recording_needs_only_the_figure(take):
    assert metrics.compare(perfect_solution(take), take.truth.figures[0]).tree.complete


@given(seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_the_adjusted_rand_index_is_symmetric_and_ignores_group_numbers(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-1, 5, (2, 40))
    score = metrics.adjusted_rand_index(a, b)
    assert metrics.adjusted_rand_index(b, a) == pytest.approx(score, abs=1e-12)
    renamed = np.where(a >= 0, rng.permutation(5)[a], -1)
    assert metrics.adjusted_rand_index(renamed, b) == pytest.approx(score, abs=1e-12)
    assert metrics.adjusted_rand_index(a, a) == 1.0
    assert score == pytest.approx(naive_rand(a, b), abs=1e-9)


def naive_rand(a, b):
    """Count pairs one by one; -1 is never with anyone."""
    both = one = other = 0
    n = len(a)
    for i in range(n):
        for j in range(i):
            with_a = a[i] == a[j] >= 0
            with_b = b[i] == b[j] >= 0
            both, one, other = both + (with_a and with_b), one + with_a, other + with_b
    chance = one * other / (n * (n - 1) / 2)
    return (both - chance) / (0.5 * (one + other) - chance)


def test_merged_bodies_are_counted_and_contracted_in_the_tree(take):
    """Hand and forearm found as one: 14 bodies, 13 edges, none wrong."""
    bodies, _, tree = perfect(take)
    truth = take.truth
    names = [truth.figures[0].skeleton.names[j] for _, j in truth.bodies]
    match = metrics.match_bodies(bodies, truth)
    hand, forearm = (
        int(np.flatnonzero(match == names.index(name))[0])
        for name in ("LeftHand", "LeftLowerArm")
    )
    keep = np.array([i for i in range(15) if i != hand])
    new = np.full(15, -1)
    new[keep] = np.arange(14)
    new[hand] = new[forearm]
    merged = replace(
        bodies,
        names=tuple(bodies.names[i] for i in keep),
        T_world_body=bodies.T_world_body[:, keep],
        determined=bodies.determined[keep],
        marker_body=new[bodies.marker_body],
        shared=np.eye(14, dtype=bool)[new[bodies.marker_body]],
        body_confidence=np.ones(14),
        rms=np.zeros(14),
    )
    score = metrics.compare(merged, take)
    assert (score.found, score.true, score.matched) == (14, 15, 14)
    hand_markers = int(np.sum(truth.marker_body == names.index("LeftHand")))
    assert score.markers_right == 1.0 - hand_markers / 41
    assert 0.8 < score.ari < 1.0
    parent = np.where(tree.parent[keep] >= 0, new[tree.parent[keep]], -1)
    found = replace(tree, parent=parent, edge=tree.edge[keep], margin=np.zeros(14))
    result = metrics.compare(found, take, bodies=merged)
    assert (result.right, result.wrong, result.missing) == (13, 0, 0)


def test_a_shared_marker_counts_for_its_true_body(take):
    bodies, _, _ = perfect(take)
    elsewhere = bodies.marker_body.copy()
    elsewhere[0] = (elsewhere[0] + 1) % 15
    shared = bodies.shared.copy()
    shared[0, elsewhere[0]] = True
    score = metrics.compare(replace(bodies, marker_body=elsewhere, shared=shared), take)
    assert score.ari < 1.0 == score.ari_shared


def test_a_wrong_edge_is_one_wrong_and_one_missing(take):
    bodies, _, tree = perfect(take)
    leaf = next(b for b in range(15) if b not in tree.parent)
    far = next(b for b in range(15) if b not in (leaf, tree.parent[leaf]))
    parent = tree.parent.copy()
    parent[leaf] = far
    score = metrics.compare(replace(tree, parent=parent), take, bodies=bodies)
    assert (score.right, score.wrong, score.missing) == (13, 1, 1)


@given(size=st.floats(1e-4, 0.1))
@settings(deadline=None, max_examples=10)
def test_a_joint_off_by_a_distance_scores_that_distance(take, size):
    bodies, joints, _ = perfect(take)
    T = bodies.T_world_body[0]
    a, b = joints.pair.T
    moved = replace(
        joints,
        center_a=joints.center_a + size * np.swapaxes(T[a, :3, :3], -1, -2)[:, :, 0],
        center_b=joints.center_b + size * np.swapaxes(T[b, :3, :3], -1, -2)[:, :, 0],
    )
    still = replace(
        bodies, T_world_body=np.broadcast_to(T, bodies.T_world_body.shape).copy()
    )
    frozen = replace(
        take.truth,
        motions=tuple(
            replace(
                m,
                T_world_root=np.repeat(m.T_world_root[:1], m.n_frames, axis=0),
                wxyz=np.repeat(m.wxyz[:1], m.n_frames, axis=0),
            )
            for m in take.truth.motions
        ),
    )
    score = metrics.compare(moved, frozen, bodies=still)
    assert score.center == pytest.approx(size, rel=1e-9)
    assert score.center_max == pytest.approx(size, rel=1e-9)


def test_a_hinge_centre_displaced_along_its_axis_has_no_off_axis_error():
    take = record(synth.hinge_pair(seed=2))
    bodies, joints, _ = perfect(take)
    slid = replace(
        joints,
        center_a=joints.center_a + 0.05 * joints.axis_a,
        center_b=joints.center_b + 0.05 * joints.axis_b,
    )
    score = metrics.compare(slid, take, bodies=bodies)
    assert score.center == pytest.approx(0.05, rel=1e-9)
    assert score.off_axis < 1e-8
    assert score.axis < 1e-7


@given(factor=st.floats(0.8, 1.2))
@settings(deadline=None, max_examples=10)
def test_a_scaled_skeleton_scores_its_scale(factor):
    figure = synth.human()
    true = figure.skeleton
    score = metrics.compare(replace(true, offset=factor * true.offset), figure)
    hip_to_knee = true.lengths[true.index("LeftLowerLeg")]
    assert score.compared == score.true
    assert score.max >= abs(factor - 1.0) * hip_to_knee - 1e-12
    assert abs(score.mean) == pytest.approx(
        abs(factor - 1.0) * mean_length(true), abs=1e-12
    )


def mean_length(skeleton):
    return np.mean(
        list(joint_distances(skeleton, np.arange(skeleton.n_joints)).values())
    )


def test_lengths_do_not_depend_on_the_root():
    """The linkage rooted in its left forearm, names and all."""
    figure = synth.linkage()
    true = figure.skeleton
    rest = true.rest()[:, :3, 3]
    chain = ("LeftLowerArm", "LeftUpperArm", "Torso", "Head", "RightUpperArm")
    names = (*chain, "RightLowerArm")
    joint_at = {
        "LeftLowerArm": "LeftLowerArm",
        "LeftUpperArm": "LeftLowerArm",
        "Torso": "LeftUpperArm",
        "Head": "Head",
        "RightUpperArm": "RightUpperArm",
        "RightLowerArm": "RightLowerArm",
    }
    position = np.array([rest[true.index(joint_at[name])] for name in names])
    parent = np.array([-1, 0, 1, 2, 2, 4])
    offset = np.where(parent[:, None] >= 0, position - position[parent], position)
    turned = marey.Skeleton(names=names, parent=parent, offset=offset)
    score = metrics.compare(turned, figure)
    assert (score.compared, score.true) == (5, 5)
    assert score.max < EXACT


def test_a_skeleton_without_names_is_matched_by_its_markers():
    take = record(synth.human(), motion="walk", labels=False)
    true = take.truth.skeleton
    named = replace(
        true,
        names=tuple(f"joint{i}" for i in range(true.n_joints)),
        marker_labels=take.labels,
        marker_joint=take.truth.marker_joint,
        marker_offset=take.truth.marker_offset,
    )
    score = metrics.compare(named, take)
    assert score.compared == score.true
    assert score.max < EXACT
    with pytest.raises(marey.DataError, match="need the recording"):
        metrics.compare(named, take.truth.figures[0])


def test_a_motion_off_by_a_distance_scores_that_distance(take):
    true = take.truth.motion
    T = true.T_world_root.copy()
    T[:, 2, 3] += 0.03
    score = metrics.compare(replace(true, T_world_root=T), take)
    assert score.position == pytest.approx(0.03, rel=1e-9)
    assert score.rotation < 1e-7
    assert score.root == pytest.approx(0.0, abs=0.01)


def test_a_constant_rotation_of_a_joint_frame_is_no_error():
    """Every joint frame turned by a constant: positions and scores stay."""
    take = record(synth.linkage())
    true = take.truth.motion
    n = true.skeleton.n_joints
    rotation = geometry.quat_exp(np.random.default_rng(0).normal(size=(n, 3)))
    parent = np.maximum(true.skeleton.parent, 0)
    inverse = geometry.quat_conjugate(rotation)
    wxyz = geometry.quat_multiply(
        geometry.quat_multiply(inverse[parent], true.wxyz), rotation
    )
    skeleton = replace(
        true.skeleton,
        offset=geometry.quat_rotate(inverse[parent], true.skeleton.offset),
    )
    R = geometry.matrix_from_quat(rotation[0])
    T = true.T_world_root @ geometry.transform(R, np.zeros(3))
    found = replace(true, skeleton=skeleton, T_world_root=T, wxyz=wxyz)
    score = metrics.compare(found, take)
    assert score.position_max < EXACT
    assert score.rotation < 1e-7
    assert score.root < EXACT


def test_another_rate_is_compared_at_the_same_times(take):
    figure = take.truth.figures[0]
    fast = figure.perform("walk", seconds=2.0, rate=240.0)
    slow = figure.perform("walk", seconds=2.0, rate=60.0)
    assert metrics.compare(slow, fast).position < 1e-6


def test_subjects_are_matched_whatever_their_order():
    take = synth.scene("together", seconds=4.0, rate=30.0)
    solution = perfect_solution(take)
    swapped = replace(solution, subjects=solution.subjects[::-1])
    score = metrics.compare(swapped, take)
    assert max(motion.position_max for motion in score.motions) < EXACT


def test_missing_input_is_an_error_that_names_it(take):
    bodies, joints, tree = perfect(take)
    with pytest.raises(marey.OptionError, match="bodies"):
        metrics.compare(joints, take)
    with pytest.raises(marey.OptionError, match="bodies"):
        metrics.compare(tree, take)
    with pytest.raises(marey.DataError, match="found Figure, need the recording"):
        metrics.compare(bodies, take.truth.figures[0])


def test_every_score_prints_its_numbers_with_units(take):
    text = str(metrics.compare(perfect_solution(take), take))
    starts = ["subjects", "bodies", "joints", "tree", "skeleton", "motion"]
    assert [line.split(":")[0] for line in text.splitlines()] == starts
    assert "adjusted Rand index 1.000" in text
    assert "14 edges right, 0 wrong, 0 missing" in text
