"""The body mesh: closed, mirrored, scaled with the figure, and whole when it bends."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import samples

import marey
from marey.anatomy import names as vrm
from marey.anatomy.renaming import find_scheme, rename_motions
from marey.io.scene import build_body_mesh, build_scene
from marey.io.scene.surfaces import ball_directions, hull_of_balls, split_long_edges

PERSON = marey.synth.human(seed=0).skeleton
FIGURES = {
    "person": PERSON,
    "dog": marey.synth.quadruped().skeleton,
    "robot": marey.synth.robot().skeleton,
    "plain": samples.skeleton(),
}
every_figure = pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
mesh_of = cache(build_body_mesh)


def pose(skeleton, rotvecs):
    """T_world_joint of one frame with rotations by joint name, in radians."""
    wxyz = np.zeros((1, skeleton.n_joints, 4))
    wxyz[..., 0] = 1.0
    for name, rotvec in rotvecs.items():
        wxyz[0, skeleton.index(name)] = marey.geometry.quat_exp(np.array(rotvec))
    return skeleton.forward(skeleton.rest()[:1], wxyz)


def edges(faces):
    return np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])


def volume(vertices, faces):
    a, b, c = np.moveaxis(vertices[faces], 1, 0)
    return np.einsum("fi,fi->", a, np.cross(b, c)) / 6.0


@every_figure
def test_the_mesh_is_closed_and_looks_outward(figure):
    mesh = mesh_of(figure)
    sides = edges(mesh.faces)
    there = {tuple(side) for side in sides.tolist()}
    assert len(there) == len(sides)
    assert {(b, a) for a, b in there} == there
    assert volume(mesh.vertices, mesh.faces) > 0.0
    out = mesh.vertices + 1e-4 * mesh.normals
    assert volume(out, mesh.faces) > volume(mesh.vertices, mesh.faces)
    np.testing.assert_allclose(np.linalg.norm(mesh.normals, axis=1), 1.0)


@every_figure
def test_weights_are_shares_of_at_most_four_joints_that_move(figure):
    mesh = mesh_of(figure)
    assert mesh.joint.shape == mesh.weight.shape == (len(mesh.vertices), 4)
    assert (mesh.weight >= 0.0).all()
    np.testing.assert_allclose(mesh.weight.sum(axis=1), 1.0, atol=1e-12)
    assert (np.diff(mesh.weight, axis=1) <= 0.0).all()
    assert not figure.is_end[mesh.joint[mesh.weight > 0.0]].any()
    assert (mesh.weight[:, 1] > 0.05).any()


@every_figure
def test_at_rest_the_mesh_is_itself_and_it_follows_the_root(figure):
    mesh, T = mesh_of(figure), np.eye(4)
    np.testing.assert_allclose(
        mesh.skin(figure, figure.rest()[None])[0], mesh.vertices, atol=1e-12
    )
    T[:3, :3] = marey.geometry.rotation_exp(np.array([0.3, -1.0, 2.0]))
    T[:3, 3] = [3.0, -2.0, 0.5]
    np.testing.assert_allclose(
        mesh.skin(figure, (T @ figure.rest())[None])[0],
        marey.geometry.apply(T, mesh.vertices),
        atol=1e-12,
    )


def test_left_and_right_are_mirrored():
    mesh = mesh_of(PERSON)

    def part(name):
        of = mesh.joint[:, 0] == PERSON.index(name)
        return mesh.vertices[of], mesh.normals[of], mesh.weight[of]

    for limb in (*vrm.ARM[1:], *vrm.LEG[:3]):
        left, right = (part(name) for name in vrm.both_sides(limb))
        for one, other in zip(left[:2], right[:2], strict=True):
            np.testing.assert_allclose(one * [1, -1, 1], other, atol=1e-9)
        np.testing.assert_allclose(left[2], right[2], atol=1e-9)


def test_unequal_bones_have_one_thickness_on_both_sides():
    offset = PERSON.offset.copy()
    offset[PERSON.index("LeftFoot")] *= 1.2
    mesh = build_body_mesh(replace(PERSON, offset=offset))
    radius = []
    for knee in vrm.both_sides(vrm.LOWER_LEG):
        joint = PERSON.index(knee)
        own = mesh.vertices[mesh.joint[:, 0] == joint]
        center = replace(PERSON, offset=offset).rest()[joint, :3, 3]
        radius.append(np.ptp(own[own[:, 2] > center[2]], axis=0)[:2])
    np.testing.assert_allclose(radius[0], radius[1], rtol=1e-9)


def test_a_figure_of_twice_the_size_has_the_same_mesh_twice_as_large():
    once = mesh_of(PERSON)
    twice = build_body_mesh(replace(PERSON, offset=2.0 * PERSON.offset))
    np.testing.assert_allclose(twice.vertices, 2.0 * once.vertices, atol=1e-9)
    np.testing.assert_array_equal(twice.faces, once.faces)


def test_names_of_another_scheme_give_the_same_body():
    scheme = find_scheme("cmu")
    renamed, _, _ = rename_motions(PERSON, (), replace(scheme, trunk=None, neck=None))
    assert renamed.names[0] == "root"
    order = np.lexsort(build_body_mesh(renamed).vertices.round(9).T)
    other = build_body_mesh(renamed).vertices[order]
    own = mesh_of(PERSON).vertices
    np.testing.assert_allclose(other, own[np.lexsort(own.round(9).T)], atol=1e-8)


@pytest.mark.parametrize(
    ("joint", "axis"),
    [
        ("LeftLowerLeg", [0, 1, 0]),
        ("RightUpperArm", [1, 0, 0]),
        ("LeftLowerArm", [0, 0, 1]),
    ],
)
@pytest.mark.parametrize("degrees", [45.0, 90.0, 140.0])
def test_knees_shoulders_and_elbows_bend_without_tearing(joint, axis, degrees):
    """No edge is torn, and the ball of the joint stays as thick as it was."""
    mesh = mesh_of(PERSON)
    T = pose(PERSON, {joint: np.deg2rad(degrees) * np.array(axis)})
    bent = mesh.skin(PERSON, T)[0]
    sides = edges(mesh.faces)
    before, after = (
        np.linalg.norm(v[sides[:, 0]] - v[sides[:, 1]], axis=1)
        for v in (mesh.vertices, bent)
    )
    assert (after - before).max() < 0.05
    number = PERSON.index(joint)
    center = PERSON.rest()[number, :3, 3]
    ball = (mesh.joint[:, 0] == number) & (mesh.weight[:, 0] == 1.0)
    rest_distance = np.linalg.norm(mesh.vertices[ball] - center, axis=1)
    bent_distance = np.linalg.norm(bent[ball] - T[0, number, :3, 3], axis=1)
    np.testing.assert_allclose(bent_distance, rest_distance, atol=1e-12)
    # The inner bone ends within the ball, so nothing is seen between the two.
    radius = np.ptp(mesh.vertices[ball], axis=0).min() / 2.0
    pair = [PERSON.parent[number], number]
    shared = (mesh.joint[:, :2] == pair).all(axis=1) & (mesh.weight[:, 1] > 0.499)
    gap = np.linalg.norm(bent[shared] - T[0, number, :3, 3], axis=1) - radius
    assert shared.any()
    assert gap.max() < 1e-3


@pytest.mark.parametrize("longest", [0.3, 0.1, 0.04])
def test_splitting_keeps_the_surface_and_bounds_its_edges(longest):
    balls = np.array([[0.0, 0.0, 0.0], [1.0, 0.2, 0.0]]), np.array([0.2, 0.1])
    coarse = hull_of_balls(*balls, ball_directions(3))
    fine, more = split_long_edges(coarse, longest)
    sides = edges(more)
    assert (
        np.linalg.norm(fine[sides[:, 0]] - fine[sides[:, 1]], axis=1).max() <= longest
    )
    assert len(fine) - len(sides) // 2 + len(more) == 2  # Euler
    assert volume(fine, more) == pytest.approx(volume(*coarse), rel=1e-12)


def test_odd_figures_have_a_body():
    lone = marey.Skeleton(
        names=("prop",), parent=np.array([-1]), offset=np.zeros((1, 3))
    )
    assert len(build_body_mesh(lone).faces) > 0
    marked = replace(
        lone,
        marker_labels=("A", "B"),
        marker_joint=np.zeros(2, dtype=np.int64),
        marker_offset=np.array([[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]]),
    )
    assert np.ptp(build_body_mesh(marked).vertices, axis=0)[0] > 1.0
    flat = replace(PERSON, offset=np.zeros_like(PERSON.offset))
    assert np.isfinite(build_body_mesh(flat).vertices).all()
    chain = marey.Skeleton(
        names=tuple(f"j{i}" for i in range(500)),
        parent=np.arange(500) - 1,
        offset=np.tile([0.0, 0.0, 0.1], (500, 1)),
    )
    assert len(build_body_mesh(chain).vertices) < 2**16


def test_a_scene_holds_the_last_pose_in_gaps_and_shows_markers_if_asked():
    motion = samples.motion()
    wxyz, T = motion.wxyz.copy(), motion.T_world_root.copy()
    wxyz[2, 1] = np.nan
    T[3] = np.nan
    scene = build_scene(replace(motion, wxyz=wxyz, T_world_root=T), markers=True)
    (figure,), (take,) = scene.figures, scene.takes
    (held,) = figure.motions
    np.testing.assert_array_equal(held.wxyz[2, 1], motion.wxyz[1, 1])
    np.testing.assert_allclose(held.T_world_root[3, :3, 3], T[2, :3, 3])
    assert (take.rate, take.n_frames, take.markers.labels) == (60.0, 6, ())
