from functools import partial

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marey

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
sizes = st.integers(1, 9)
quick = settings(deadline=None, max_examples=25)
close = partial(np.testing.assert_allclose, rtol=0.0)


def skeleton(rng, n_joints=6, **changes):
    """A random tree."""
    parent = [-1, *(int(rng.integers(0, i)) for i in range(1, n_joints))]
    fields = {
        "names": tuple(f"joint{i}" for i in range(n_joints)),
        "parent": np.array(parent),
        "offset": rng.normal(size=(n_joints, 3)),
    }
    return marey.Skeleton(**{**fields, **changes})


def quats(rng, *shape):
    q = rng.normal(size=(*shape, 4))
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def roots(rng, n_frames):
    return marey.geometry.transform(
        marey.geometry.matrix_from_quat(quats(rng, n_frames)),
        rng.normal(size=(n_frames, 3)),
    )


# --- forward kinematics --------------------------------------------------------------


@given(rng=seeds, n_joints=sizes, n_frames=st.integers(0, 4))
@quick
def test_forward_kinematics_agrees_with_recursion(rng, n_joints, n_frames):
    figure = skeleton(rng, n_joints)
    T_world_root, wxyz = roots(rng, n_frames), quats(rng, n_frames, n_joints)
    T = figure.forward(T_world_root, wxyz)
    assert T.shape == (n_frames, n_joints, 4, 4)
    for frame in range(n_frames):
        wanted = naive.forward(
            figure.parent, figure.offset, T_world_root[frame], wxyz[frame]
        )
        close(T[frame], wanted, atol=1e-12)


@given(rng=seeds, n_joints=sizes)
@quick
def test_bones_never_change_their_length(rng, n_joints):
    figure = skeleton(rng, n_joints)
    place = figure.forward(roots(rng, 5), quats(rng, 5, n_joints))[..., :3, 3]
    bones = place[:, 1:] - place[:, figure.parent[1:]]
    lengths = np.linalg.norm(bones, axis=-1)
    close(lengths, np.tile(figure.lengths[1:], (5, 1)), atol=1e-13)
    close(figure.lengths[1:], np.linalg.norm(figure.offset[1:], axis=-1))
    assert figure.lengths[0] == 0.0


@given(rng=seeds, n_joints=sizes)
@quick
def test_the_offsets_draw_the_rest_pose_in_world_aligned_frames(rng, n_joints):
    figure = skeleton(rng, n_joints)
    rest = figure.rest()
    np.testing.assert_array_equal(rest[:, :3, :3], np.tile(np.eye(3), (n_joints, 1, 1)))
    np.testing.assert_array_equal(rest[0, :3, 3], figure.offset[0])
    for joint, parent in enumerate(figure.parent[1:], start=1):
        np.testing.assert_array_equal(
            rest[joint, :3, 3], rest[parent, :3, 3] + figure.offset[joint]
        )


@given(rng=seeds)
@quick
def test_an_unknown_joint_hides_what_hangs_on_it_and_nothing_else(rng):
    figure = skeleton(rng, 7)
    wxyz = quats(rng, 1, 7)
    lost = int(rng.integers(1, 7))
    known = figure.forward(roots(rng, 1), wxyz)[0]
    T_world_root = known[None, 0]
    wxyz[0, lost] = np.nan
    T = figure.forward(T_world_root, wxyz)[0]
    below = [lost]
    for joint, parent in enumerate(figure.parent):
        if parent in below:
            below.append(joint)
    others = np.setdiff1d(np.arange(7), below)
    assert np.isnan(T[below]).all()
    np.testing.assert_array_equal(T[others], known[others])


# --- invariants ----------------------------------------------------------------------


@given(rng=seeds, n_joints=sizes)
@quick
def test_what_is_left_out_is_unknown_and_all_joints_are_balls(rng, n_joints):
    figure = skeleton(rng, n_joints)
    assert figure.kind == ("root", *["ball"] * (n_joints - 1))
    assert figure.axes.shape == (n_joints, 2, 3)
    assert figure.limits.shape == (n_joints, 3, 2)
    assert figure.covariance.shape == (n_joints, 3, 3)
    assert figure.length_sd.shape == (n_joints,)
    for name in ("axes", "limits", "covariance", "length_sd"):
        assert np.isnan(getattr(figure, name)).all()
    assert not figure.is_end.any()


def test_ends_are_fixed_and_carry_nothing():
    figure = marey.Skeleton(
        names=("hips", "knee", "foot", "toe", "tail"),
        parent=np.array([-1, 0, 1, 2, 0]),
        offset=np.ones((5, 3)),
        kind=("root", "hinge", "fixed", "fixed", "ball"),
    )
    np.testing.assert_array_equal(figure.is_end, [False, False, False, True, False])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": ("a", "b", "b")}, "skeleton.names: found more than once b"),
        ({"names": ("a", "b")}, "skeleton.parent: found 3, need 2"),
        ({"offset": np.zeros((2, 3))}, "skeleton.offset: found 2, need 3"),
        ({"parent": np.array([-1, 0, 2])}, "skeleton.parent: found [-1, 0, 2], need"),
        ({"parent": np.array([-1, 2, 1])}, "skeleton.parent: found [-1, 2, 1], need"),
        ({"parent": np.array([-1, -1, 0])}, "skeleton.parent: found [-1, -1, 0], need"),
        ({"parent": np.array([-2, 0, 0])}, "skeleton.parent: found [-2, 0, 0], need"),
        ({"kind": ("root", "ball")}, "skeleton.kind: found 2, need 3"),
        (
            {"kind": ("ball", "ball", "ball")},
            "skeleton.kind: found ball, ball, ball, need root, then ball, univ",
        ),
        ({"kind": ("root", "root", "ball")}, "skeleton.kind: found root, root, ball"),
        ({"limits": np.zeros((2, 3, 2))}, "skeleton.limits: found 2, need 3"),
        ({"length_sd": np.zeros(2)}, "skeleton.length_sd: found 2, need 3"),
        ({"marker_labels": ("x",)}, "skeleton.marker_joint: found 0, need 1"),
        (
            {
                "marker_labels": ("x",),
                "marker_joint": np.array([-1]),
                "marker_offset": np.zeros((1, 3)),
            },
            "skeleton.marker_joint: found [-1], need joints from 0 to 2",
        ),
        (
            {
                "marker_labels": ("x",),
                "marker_joint": np.array([3]),
                "marker_offset": np.zeros((1, 3)),
            },
            "skeleton.marker_joint: found [3], need joints from 0 to 2",
        ),
        (
            {"marker_labels": ("x",), "marker_joint": np.array([0])},
            "skeleton.marker_offset: found 0, need 1",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(unchecked, rng, changes, message):
    with pytest.raises(marey.DataError) as error:
        skeleton(rng, 3, **changes)
    assert str(error.value).startswith(message)


def test_a_skeleton_without_joints_is_refused():
    with pytest.raises(marey.DataError, match=r"skeleton.names: found 0, need 1"):
        marey.Skeleton(names=(), parent=np.zeros(0, int), offset=np.zeros((0, 3)))


def test_a_wrong_shape_is_caught_where_it_enters(rng):
    with pytest.raises(TypeError):
        skeleton(rng, 3, axes=np.zeros((3, 3, 3)))
    with pytest.raises(TypeError):
        skeleton(rng, 3).forward(roots(rng, 2), quats(rng, 3, 3))


@pytest.mark.parametrize(
    ("labels", "subject"),
    [
        (("JOE:RTHI", "JOE:LTHI"), "JOE"),
        (("JOE:RTHI", "ANN:LTHI"), ""),
        (("RTHI", "LTHI"), ""),
        ((), ""),
    ],
)
def test_the_subject_is_the_one_that_all_labels_name(rng, labels, subject):
    n = len(labels)
    markers = {"marker_joint": np.zeros(n, int), "marker_offset": np.zeros((n, 3))}
    assert skeleton(rng, marker_labels=labels, **markers).subject == subject


def test_joints_are_found_by_name_and_an_unknown_name_lists_them(rng):
    figure = skeleton(rng, 3)
    assert [figure.index(name) for name in figure.names] == [0, 1, 2]
    with pytest.raises(
        marey.DataError, match="joint: found 'knee', need one of joint0, joint1, joint2"
    ):
        figure.index("knee")
