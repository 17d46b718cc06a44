"""Skeletons from a known tree: joints from root to leaf, then every frame directly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey.errors import DataError, OptionError
from marey.joints.axes_from_points import constructed, swung
from marey.joints.hierarchy.estimate import estimate_hierarchy, estimate_skeleton
from marey.numerics import geometry
from marey.segmentation import segment

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
quick = settings(deadline=None, max_examples=12)


def tree_of(figure):
    names, body = figure.skeleton.names, figure.body_of
    return {names[b]: names[body[figure.skeleton.parent[b]]] for b in figure.bodies[1:]}


def recorded(figure, *, keep=4, **options):
    """A recording and its bodies, `keep` markers on all of them but the root."""
    take = figure.record(
        **{"rate": 30.0, "seconds": 8.0, "markers": 4, "motion": "exercise"} | options
    )
    template = {}
    for body in figure.bodies:
        count = 4 if body == figure.bodies[0] else keep
        mine = np.flatnonzero(take.truth.marker_joint == body)[:count]
        template[figure.skeleton.names[body]] = [take.labels[i] for i in mine]
    return take, segment(take, method="template", template=template)


def joint_errors(take, motion):
    """Distance of every joint but the root from the true one, in metres."""
    truth = take.truth.skeleton
    joints = [truth.index(name) for name in motion.skeleton.names]
    true = take.truth.motion.T_world_joint()[:, joints]
    off = motion.T_world_joint() - true
    return np.linalg.norm(off[:, 1:, :3, 3], axis=-1)


@pytest.mark.parametrize("axes", ["weighted", "constructed"])
@pytest.mark.parametrize("keep", [4, 3, 2])
def test_exact_markers_give_the_exact_skeleton_of_a_person(axes, keep):
    figure = marey.synth.human(seed=0)
    take, bodies = recorded(figure, keep=keep)
    skeleton, motion = estimate_skeleton(bodies, tree_of(figure), axes=axes)
    assert joint_errors(take, motion).max() < 1e-8
    labels = [take.labels.index(label) for label in skeleton.marker_labels]
    np.testing.assert_allclose(
        motion.marker_points(), take.truth.points[:, labels], atol=1e-8
    )
    above = [names for names in tree_of(figure).items() if names[1] != "Hips"]
    for child, parent in above:
        true = take.truth.motion.T_world_joint()[0, :, :3, 3]
        ends = [take.truth.skeleton.index(name) for name in (child, parent)]
        length = np.linalg.norm(true[ends[0]] - true[ends[1]])
        found = skeleton.lengths[skeleton.index(child)]
        assert found == pytest.approx(length, abs=1e-8)


@pytest.mark.parametrize("axes", ["weighted", "constructed"])
def test_one_marker_on_a_hinge_is_enough(axes):
    figure = marey.synth.pendulum()
    take, bodies = recorded(figure, keep=1, motion="swing")
    skeleton, motion = estimate_skeleton(bodies, tree_of(figure), axes=axes)
    assert skeleton.kind == ("root", "hinge", "hinge", "hinge")
    np.testing.assert_allclose(np.abs(skeleton.axes[1:, 0, 1]), 1.0, atol=1e-9)
    off = motion.T_world_joint()[:, 1:, :3, 3]
    off = off - take.truth.motion.T_world_joint()[:, 1:4, :3, 3]
    # Along the axis, y, one point of a hinge is as good as another.
    np.testing.assert_allclose(off[..., [0, 2]], 0.0, atol=1e-8)
    labels = [take.labels.index(label) for label in skeleton.marker_labels]
    np.testing.assert_allclose(
        motion.marker_points(), take.truth.points[:, labels], atol=1e-8
    )


@pytest.mark.parametrize(("keep", "noise"), [(1, 1e-4), (2, 1e-3), (4, 3e-3)])
def test_hinges_stay_hinges_though_noise_adds_up_along_the_chain(keep, noise):
    figure = marey.synth.pendulum()
    _, bodies = recorded(figure, keep=keep, motion="swing", noise=noise)
    skeleton, _ = estimate_skeleton(bodies, tree_of(figure))
    assert skeleton.kind == ("root", "hinge", "hinge", "hinge")
    np.testing.assert_allclose(skeleton.lengths[2:], 0.52, atol=6.0 * noise)


def test_one_marker_on_a_ball_joint_swings_without_twist():
    figure = marey.synth.linkage()
    take, bodies = recorded(figure, keep=1)
    hierarchy = estimate_hierarchy((bodies,), {"Head": "Torso"} | tree_of(figure))
    assert {f.code for f in hierarchy.findings} >= {"body-swung"}
    motion = hierarchy.pose(bodies)
    head = list(motion.skeleton.names).index("Head")
    off = joint_errors(take, motion)[:, head - 1]
    assert off.max() < 1e-8
    label = motion.skeleton.marker_labels.index("Head01")
    true = take.truth.points[:, take.labels.index("Head01")]
    np.testing.assert_allclose(motion.marker_points()[:, label], true, atol=1e-8)


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_a_body_that_does_not_move_is_carried(rng, noise):
    R = geometry.rotation_exp(rng.normal(size=(50, 3)))
    points = np.einsum("fij,mj->fmi", R, rng.normal(size=(6, 3)))
    points += noise * rng.normal(size=points.shape)
    take = marey.Take(rate=30.0, points=points, labels=tuple("abcdef"))
    names = {"box": ["a", "b", "c", "d"], "lid": ["e", "f"]}
    bodies = segment(take, method="template", template=names)
    hierarchy = estimate_hierarchy((bodies,), {"lid": "box"})
    assert [f.code for f in hierarchy.findings] == ["body-carried"]
    assert hierarchy.skeleton.kind == ("root", "fixed")
    motion = hierarchy.pose(bodies)
    off = np.abs(motion.marker_points() - points)
    assert off.max() < 1e-9 + 10.0 * noise


def test_sensors_need_no_markers():
    figure = marey.synth.linkage()
    take = figure.record(rate=30.0, markers="none", sensors=True)
    bodies = segment(take)
    skeleton, motion = estimate_skeleton(bodies, tree_of(figure))
    assert joint_errors(take, motion).max() < 1e-8
    assert skeleton.marker_labels == ()


def test_constants_learnt_once_serve_any_take():
    figure = marey.synth.human(seed=0)
    _, learnt = recorded(figure, seed=1, keep=2)
    take, bodies = recorded(figure, seed=1, keep=2, motion="walk", seconds=2.0)
    hierarchy = estimate_hierarchy((learnt,), tree_of(figure))
    assert joint_errors(take, hierarchy.pose(bodies)).max() < 1e-8
    both = estimate_hierarchy((learnt, bodies), tree_of(figure))
    assert joint_errors(take, both.pose(bodies)).max() < 1e-8


def test_weights_beat_construction_under_noise():
    figure = marey.synth.human(seed=0)
    take, bodies = recorded(figure, noise=1e-3)
    errors = {
        axes: joint_errors(
            take, estimate_skeleton(bodies, tree_of(figure), axes=axes)[1]
        )
        for axes in ("weighted", "constructed")
    }
    rms = {axes: np.sqrt(np.mean(e**2)) for axes, e in errors.items()}
    assert rms["weighted"] < 0.5 * rms["constructed"]
    assert rms["weighted"] < 6e-3


def test_uncertainty_travels_with_the_skeleton():
    figure = marey.synth.linkage()
    _, bodies = recorded(figure, noise=1e-3)
    skeleton, _ = estimate_skeleton(bodies, tree_of(figure))
    assert np.isnan(skeleton.length_sd[0])
    assert ((skeleton.length_sd[1:] > 1e-5) & (skeleton.length_sd[1:] < 5e-3)).all()
    true = [marey.synth.linkage().skeleton.index(n) for n in skeleton.names]
    length = np.linalg.norm(figure.skeleton.offset[true], axis=-1)
    arms = [i for i, name in enumerate(skeleton.names) if "LowerArm" in name]
    off = (skeleton.lengths[arms] - length[arms]) / skeleton.length_sd[arms]
    assert np.abs(off).max() < 4.0


def test_a_gap_is_a_gap_below_the_joint_only():
    figure = marey.synth.linkage()
    take, bodies = recorded(figure)
    points = take.points.copy()
    arm = bodies.names.index("LeftUpperArm")
    points[10, bodies.marker_body == arm] = np.nan
    gone = marey.Take(rate=30.0, points=points, labels=take.labels)
    names = {n: [] for n in bodies.names}
    for label, body in zip(take.labels, bodies.marker_body, strict=True):
        names[bodies.names[body]].append(label)
    gapped = segment(gone, method="template", template=names)
    _, motion = estimate_skeleton(gapped, tree_of(figure))
    known = np.isfinite(motion.wxyz).all(axis=-1)
    joints = motion.skeleton.names
    # The forearm's turn is against an upper arm that is not seen.
    lost = {joints.index("LeftUpperArm"), joints.index("LeftLowerArm")}
    assert {(int(f), int(j)) for f, j in np.argwhere(~known)} == {
        (10, joint) for joint in lost
    }


@pytest.mark.parametrize(
    ("parent", "words"),
    [
        ({"Head": "Torso"}, "need exactly one root"),
        ({"Haed": "Torso"}, "found \\['Haed'\\]"),
        ({"Head": "Neck"}, "found \\['Neck'\\]"),
    ],
)
def test_a_tree_that_does_not_fit_is_refused(parent, words):
    _, bodies = recorded(marey.synth.linkage(), seconds=1.0)
    with pytest.raises(DataError, match=words):
        estimate_skeleton(bodies, parent)


def test_a_circle_is_no_tree():
    _, bodies = recorded(marey.synth.linkage(), seconds=1.0)
    tree = tree_of(marey.synth.linkage())
    tree |= {"LeftUpperArm": "LeftLowerArm"}
    with pytest.raises(DataError, match="a circle of"):
        estimate_skeleton(bodies, tree)


def test_the_root_needs_three_markers():
    figure = marey.synth.hinge_pair()
    take = figure.record(rate=30.0, seconds=1.0, markers=2)
    names = {n: [s for s in take.labels if s.startswith(n)] for n in ("Base", "Arm")}
    bodies = segment(take, method="template", template=names)
    with pytest.raises(DataError, match="root Base: found 2 markers"):
        estimate_skeleton(bodies, {"Arm": "Base"})


def test_a_parent_never_seen_is_named():
    figure = marey.synth.linkage()
    take, bodies = recorded(figure, seconds=4.0)
    points = take.points.copy()
    points[:, bodies.marker_body == bodies.names.index("LeftUpperArm")] = np.nan
    names = {n: [] for n in bodies.names}
    for label, body in zip(take.labels, bodies.marker_body, strict=True):
        names[bodies.names[body]].append(label)
    gone = marey.Take(rate=30.0, points=points, labels=take.labels)
    hidden = segment(gone, method="template", template=names)
    hierarchy = estimate_hierarchy((hidden,), tree_of(figure))
    unseen = {f.subject for f in hierarchy.findings if f.code == "body-unseen"}
    assert unseen == {"LeftUpperArm", "LeftLowerArm"}
    assert np.isfinite(hierarchy.pose(hidden).T_world_root).all()


def test_a_root_never_seen_is_refused():
    figure = marey.synth.linkage()
    take, bodies = recorded(figure, seconds=1.0)
    points = np.full_like(take.points, np.nan)
    names = {n: [] for n in bodies.names}
    for label, body in zip(take.labels, bodies.marker_body, strict=True):
        names[bodies.names[body]].append(label)
    gone = marey.Take(rate=30.0, points=points, labels=take.labels)
    hidden = segment(gone, method="template", template=names)
    with pytest.raises(DataError, match="root Torso"):
        estimate_hierarchy((hidden,), tree_of(figure))


def test_other_bodies_and_options_are_refused(unchecked):
    figure = marey.synth.linkage()
    _, bodies = recorded(figure, seconds=4.0)
    hierarchy = estimate_hierarchy((bodies,), tree_of(figure))
    _, other = recorded(marey.synth.hinge_pair(), seconds=1.0)
    with pytest.raises(DataError, match="bodies: found"):
        hierarchy.pose(other)
    with pytest.raises(OptionError, match="axes: found 'best'"):
        estimate_skeleton(bodies, tree_of(figure), axes="best")


# --- the paper's three constructions --------------------------------------------------


@given(rng=seeds, count=st.integers(1, 5))
@quick
def test_constructed_axes_go_with_the_body(rng, count):
    """Whatever rigid motion carries the points carries the axes."""
    places, joint, axis = rng.normal(size=(count, 3)), *rng.normal(size=(2, 3))
    R = geometry.rotation_exp(rng.normal(size=(20, 3)))
    T = geometry.transform(R, rng.normal(size=(20, 3)))
    still = constructed(places[None], joint[None], axis[None])
    moving = constructed(
        geometry.apply(T[:, None], places), geometry.apply(T, joint), R @ axis
    )
    np.testing.assert_allclose(moving, T @ still, atol=1e-9)
    np.testing.assert_allclose(np.linalg.det(moving[:, :3, :3]), 1.0, atol=1e-12)


@given(rng=seeds)
@quick
def test_a_swing_points_the_right_way_and_does_not_twist(rng):
    R = geometry.rotation_exp(rng.normal(size=(20, 3)))
    parent = geometry.transform(R, rng.normal(size=(20, 3)))
    rest, way = rng.normal(size=3), rng.normal(size=(20, 3))
    rest /= np.linalg.norm(rest)
    T = swung(parent, way, rest, np.zeros((20, 3)))
    unit = way / np.linalg.norm(way, axis=-1, keepdims=True)
    np.testing.assert_allclose(T[:, :3, :3] @ rest, unit, atol=1e-9)
    turn = geometry.rotation_log(np.swapaxes(R, 1, 2) @ T[:, :3, :3])
    np.testing.assert_allclose(turn @ rest, 0.0, atol=1e-9)
