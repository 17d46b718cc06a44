"""Skeletons of a known tree, estimated from root to leaf (Knight2007)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey.errors import DataError, OptionError
from marey.joints.axes_from_points import construct_poses, poses_without_twist
from marey.joints.hierarchy.estimate import estimate_hierarchy
from marey.numerics import geometry
from marey.segmentation import segment

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
quick = settings(deadline=None, max_examples=12)


def parents_of(figure):
    names, body = figure.skeleton.names, figure.body_of
    return {names[b]: names[body[figure.skeleton.parent[b]]] for b in figure.bodies[1:]}


def record_bodies(figure, *, n_markers=4, **options):
    """A recording and its bodies, with `n_markers` on each body but the root."""
    take = figure.record(
        **{"rate": 30.0, "seconds": 8.0, "markers": 4, "motion": "exercise"} | options
    )
    template = {}
    for body in figure.bodies:
        count = 4 if body == figure.bodies[0] else n_markers
        markers = np.flatnonzero(take.truth.marker_joint == body)[:count]
        template[figure.skeleton.names[body]] = [take.labels[i] for i in markers]
    return take, segment(take, method="template", template=template)


def joint_errors(take, motion):
    """Distance of every joint but the root from the true one, in metres."""
    truth = take.truth.skeleton
    joints = [truth.index(name) for name in motion.skeleton.names]
    error = motion.T_world_joint() - take.truth.motion.T_world_joint()[:, joints]
    return np.linalg.norm(error[:, 1:, :3, 3], axis=-1)


def estimate_skeleton(bodies, parent, **options):
    """Skeleton and motion of one take."""
    hierarchy = estimate_hierarchy((bodies,), parent, **options)
    return hierarchy.skeleton, hierarchy.pose(bodies)


def resegment(take, bodies, points):
    """The same bodies in a recording with other marker positions."""
    template = {name: [] for name in bodies.names}
    for label, body in zip(take.labels, bodies.marker_body, strict=True):
        template[bodies.names[body]].append(label)
    take = marey.Take(rate=30.0, points=points, labels=take.labels)
    return segment(take, method="template", template=template)


@pytest.mark.parametrize("axes", ["weighted", "constructed"])
@pytest.mark.parametrize("n_markers", [4, 3, 2])
def test_exact_markers_give_the_exact_skeleton_of_a_person(axes, n_markers):
    figure = marey.synth.human(seed=0)
    take, bodies = record_bodies(figure, n_markers=n_markers)
    skeleton, motion = estimate_skeleton(bodies, parents_of(figure), axes=axes)
    assert joint_errors(take, motion).max() < 1e-8
    labels = [take.labels.index(label) for label in skeleton.marker_labels]
    np.testing.assert_allclose(
        motion.marker_points(), take.truth.points[:, labels], atol=1e-8
    )
    for child, parent in parents_of(figure).items():
        if parent == "Hips":
            continue
        true = take.truth.motion.T_world_joint()[0, :, :3, 3]
        ends = [take.truth.skeleton.index(name) for name in (child, parent)]
        true_length = np.linalg.norm(true[ends[0]] - true[ends[1]])
        length = skeleton.lengths[skeleton.index(child)]
        assert length == pytest.approx(true_length, abs=1e-8)


@pytest.mark.parametrize("axes", ["weighted", "constructed"])
def test_one_marker_on_a_hinge_is_enough(axes):
    figure = marey.synth.pendulum()
    take, bodies = record_bodies(figure, n_markers=1, motion="swing")
    skeleton, motion = estimate_skeleton(bodies, parents_of(figure), axes=axes)
    assert skeleton.kind == ("root", "hinge", "hinge", "hinge")
    np.testing.assert_allclose(np.abs(skeleton.axes[1:, 0, 1]), 1.0, atol=1e-9)
    error = motion.T_world_joint()[:, 1:, :3, 3]
    error = error - take.truth.motion.T_world_joint()[:, 1:4, :3, 3]
    # Along its axis, y, every point of a hinge is a centre.
    np.testing.assert_allclose(error[..., [0, 2]], 0.0, atol=1e-8)
    labels = [take.labels.index(label) for label in skeleton.marker_labels]
    np.testing.assert_allclose(
        motion.marker_points(), take.truth.points[:, labels], atol=1e-8
    )


@pytest.mark.parametrize(("n_markers", "noise"), [(1, 1e-4), (2, 1e-3), (4, 3e-3)])
def test_hinges_are_classified_as_hinges_with_noise_along_the_chain(n_markers, noise):
    figure = marey.synth.pendulum()
    _, bodies = record_bodies(figure, n_markers=n_markers, motion="swing", noise=noise)
    skeleton, _ = estimate_skeleton(bodies, parents_of(figure))
    assert skeleton.kind == ("root", "hinge", "hinge", "hinge")
    np.testing.assert_allclose(skeleton.lengths[2:], 0.52, atol=6.0 * noise)


def test_one_marker_on_a_ball_joint_gives_a_pose_without_twist():
    figure = marey.synth.linkage()
    take, bodies = record_bodies(figure, n_markers=1)
    hierarchy = estimate_hierarchy((bodies,), {"Head": "Torso"} | parents_of(figure))
    assert {f.code for f in hierarchy.findings} >= {"body-twist-unknown"}
    motion = hierarchy.pose(bodies)
    head = list(motion.skeleton.names).index("Head")
    assert joint_errors(take, motion)[:, head - 1].max() < 1e-8
    label = motion.skeleton.marker_labels.index("Head01")
    true = take.truth.points[:, take.labels.index("Head01")]
    np.testing.assert_allclose(motion.marker_points()[:, label], true, atol=1e-8)


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_a_body_without_relative_motion_is_fixed_to_its_parent(rng, noise):
    R = geometry.rotation_exp(rng.normal(size=(50, 3)))
    points = np.einsum("fij,mj->fmi", R, rng.normal(size=(6, 3)))
    points += noise * rng.normal(size=points.shape)
    take = marey.Take(rate=30.0, points=points, labels=tuple("abcdef"))
    names = {"box": ["a", "b", "c", "d"], "lid": ["e", "f"]}
    bodies = segment(take, method="template", template=names)
    hierarchy = estimate_hierarchy((bodies,), {"lid": "box"})
    assert [f.code for f in hierarchy.findings] == ["body-fixed"]
    assert hierarchy.skeleton.kind == ("root", "fixed")
    motion = hierarchy.pose(bodies)
    error = np.abs(motion.marker_points() - points)
    assert error.max() < 1e-9 + 10.0 * noise


def test_sensors_need_no_markers():
    figure = marey.synth.linkage()
    take = figure.record(rate=30.0, markers="none", sensors=True)
    bodies = segment(take)
    skeleton, motion = estimate_skeleton(bodies, parents_of(figure))
    assert joint_errors(take, motion).max() < 1e-8
    assert skeleton.marker_labels == ()


def test_constants_learnt_once_serve_any_take():
    figure = marey.synth.human(seed=0)
    _, exercise = record_bodies(figure, seed=1, n_markers=2)
    take, bodies = record_bodies(
        figure, seed=1, n_markers=2, motion="walk", seconds=2.0
    )
    hierarchy = estimate_hierarchy((exercise,), parents_of(figure))
    assert joint_errors(take, hierarchy.pose(bodies)).max() < 1e-8
    both = estimate_hierarchy((exercise, bodies), parents_of(figure))
    assert joint_errors(take, both.pose(bodies)).max() < 1e-8


def test_weighted_points_beat_constructed_axes_under_noise():
    figure = marey.synth.human(seed=0)
    take, bodies = record_bodies(figure, noise=1e-3)
    errors = {
        axes: joint_errors(
            take, estimate_skeleton(bodies, parents_of(figure), axes=axes)[1]
        )
        for axes in ("weighted", "constructed")
    }
    rms = {axes: np.sqrt(np.mean(e**2)) for axes, e in errors.items()}
    assert rms["weighted"] < 0.5 * rms["constructed"]
    assert rms["weighted"] < 6e-3


def test_bone_lengths_have_standard_deviations():
    figure = marey.synth.linkage()
    _, bodies = record_bodies(figure, noise=1e-3)
    skeleton, _ = estimate_skeleton(bodies, parents_of(figure))
    assert np.isnan(skeleton.length_sd[0])
    assert ((skeleton.length_sd[1:] > 1e-5) & (skeleton.length_sd[1:] < 5e-3)).all()
    true = [marey.synth.linkage().skeleton.index(n) for n in skeleton.names]
    length = np.linalg.norm(figure.skeleton.offset[true], axis=-1)
    arms = [i for i, name in enumerate(skeleton.names) if "LowerArm" in name]
    error_sigmas = (skeleton.lengths[arms] - length[arms]) / skeleton.length_sd[arms]
    assert np.abs(error_sigmas).max() < 4.0


def test_an_occlusion_affects_the_body_and_its_child_only():
    figure = marey.synth.linkage()
    take, bodies = record_bodies(figure)
    points = take.points.copy()
    arm = bodies.names.index("LeftUpperArm")
    points[10, bodies.marker_body == arm] = np.nan
    _, motion = estimate_skeleton(resegment(take, bodies, points), parents_of(figure))
    known = np.isfinite(motion.wxyz).all(axis=-1)
    joints = motion.skeleton.names
    # The rotation of the forearm is relative to the upper arm, which is not seen.
    lost = {joints.index("LeftUpperArm"), joints.index("LeftLowerArm")}
    assert {(int(f), int(j)) for f, j in np.argwhere(~known)} == {
        (10, joint) for joint in lost
    }


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"Head": "Torso"}, "need exactly one root"),
        ({"Haed": "Torso"}, "found \\['Haed'\\]"),
        ({"Head": "Neck"}, "found \\['Neck'\\]"),
    ],
)
def test_parents_that_are_no_tree_are_refused(parents, message):
    _, bodies = record_bodies(marey.synth.linkage(), seconds=1.0)
    with pytest.raises(DataError, match=message):
        estimate_skeleton(bodies, parents)


def test_a_cycle_of_parents_is_refused():
    _, bodies = record_bodies(marey.synth.linkage(), seconds=1.0)
    parents = parents_of(marey.synth.linkage()) | {"LeftUpperArm": "LeftLowerArm"}
    with pytest.raises(DataError, match="a cycle of"):
        estimate_skeleton(bodies, parents)


def test_the_root_needs_three_markers():
    figure = marey.synth.hinge_pair()
    take = figure.record(rate=30.0, seconds=1.0, markers=2)
    names = {n: [s for s in take.labels if s.startswith(n)] for n in ("Base", "Arm")}
    bodies = segment(take, method="template", template=names)
    with pytest.raises(DataError, match="root Base: found 2 markers"):
        estimate_skeleton(bodies, {"Arm": "Base"})


def test_bodies_never_seen_with_their_parent_are_reported():
    figure = marey.synth.linkage()
    take, bodies = record_bodies(figure, seconds=4.0)
    points = take.points.copy()
    points[:, bodies.marker_body == bodies.names.index("LeftUpperArm")] = np.nan
    hidden = resegment(take, bodies, points)
    hierarchy = estimate_hierarchy((hidden,), parents_of(figure))
    unseen = {f.subject for f in hierarchy.findings if f.code == "body-unseen"}
    assert unseen == {"LeftUpperArm", "LeftLowerArm"}
    assert np.isfinite(hierarchy.pose(hidden).T_world_root).all()


def test_a_root_that_is_never_seen_is_refused():
    figure = marey.synth.linkage()
    take, bodies = record_bodies(figure, seconds=1.0)
    points = np.full_like(take.points, np.nan)
    hidden = resegment(take, bodies, points)
    with pytest.raises(DataError, match="root Torso"):
        estimate_hierarchy((hidden,), parents_of(figure))


def test_other_bodies_and_options_are_refused(unchecked):
    figure = marey.synth.linkage()
    _, bodies = record_bodies(figure, seconds=4.0)
    hierarchy = estimate_hierarchy((bodies,), parents_of(figure))
    _, other = record_bodies(marey.synth.hinge_pair(), seconds=1.0)
    with pytest.raises(DataError, match="bodies: found"):
        hierarchy.pose(other)
    with pytest.raises(OptionError, match="axes: found 'best'"):
        estimate_skeleton(bodies, parents_of(figure), axes="best")


# --- the paper's three constructions --------------------------------------------------


@given(rng=seeds, count=st.integers(1, 5))
@quick
def test_constructed_axes_go_with_the_body(rng, count):
    """Constructed axes are equivariant to rigid motions of the points."""
    shape = rng.normal(size=(count, 3))
    joint, axis = rng.normal(size=(2, 3))
    R = geometry.rotation_exp(rng.normal(size=(20, 3)))
    T = geometry.transform(R, rng.normal(size=(20, 3)))
    reference = construct_poses(shape[None], joint[None], axis[None])
    moving = construct_poses(
        geometry.apply(T[:, None], shape), geometry.apply(T, joint), R @ axis
    )
    np.testing.assert_allclose(moving, T @ reference, atol=1e-9)
    np.testing.assert_allclose(np.linalg.det(moving[:, :3, :3]), 1.0, atol=1e-12)


@given(rng=seeds)
@quick
def test_poses_without_twist_swing_to_the_direction(rng):
    R = geometry.rotation_exp(rng.normal(size=(20, 3)))
    parent = geometry.transform(R, rng.normal(size=(20, 3)))
    rest, direction = rng.normal(size=3), rng.normal(size=(20, 3))
    rest /= np.linalg.norm(rest)
    T = poses_without_twist(parent, direction, rest, np.zeros((20, 3)))
    unit = direction / np.linalg.norm(direction, axis=-1, keepdims=True)
    np.testing.assert_allclose(T[:, :3, :3] @ rest, unit, atol=1e-9)
    rotvec = geometry.rotation_log(np.swapaxes(R, 1, 2) @ T[:, :3, :3])
    np.testing.assert_allclose(rotvec @ rest, 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("motion", "seed"), [("exercise", 0), ("walk", 1), ("kick_punch", 1)]
)
def test_one_marker_per_segment_is_no_worse_than_published(motion, seed):
    """Null vectors and the closed form of the paper, which its text gives."""
    figure = marey.synth.human(seed=seed)
    take, bodies = record_bodies(
        figure, n_markers=1, motion=motion, rate=60.0, noise=1e-3, seed=seed
    )
    tree = parents_of(figure)
    _, as_printed = estimate_skeleton(
        bodies, tree, axes="constructed", estimator="kasa"
    )
    published = joint_errors(take, as_printed)
    ours = joint_errors(take, estimate_skeleton(bodies, tree)[1])
    assert np.sqrt(np.mean(ours**2)) < np.sqrt(np.mean(published**2))
    per_joint = [np.sqrt(np.mean(e**2, axis=0)) for e in (ours, published)]
    assert np.median(per_joint[0]) < np.median(per_joint[1])
