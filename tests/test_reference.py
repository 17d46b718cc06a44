"""Reference motions: matched in time, used as a prior, compared by joint use."""

from dataclasses import replace
from typing import Any

import numpy as np
import posed
import pytest

import marey
from marey import synth
from marey.numerics import geometry
from marey.pose.reference import compare_joint_use, match_times, warp_time
from marey.pose.retarget import retarget

ARM = ("LeftUpperArm", "RightUpperArm")
FITTERS = ("gauss_newton", "bfgs")


@pytest.fixture(scope="module")
def walk():
    return synth.human(seed=1).perform("kick_punch", seconds=4.0, rate=30.0)


def slowed(motion, keys):
    """The motion with other timing: between keys it runs evenly."""
    old, new = np.array(keys).T
    times = np.arange(0.0, new[-1] + 1e-9, 1.0 / motion.rate)
    return replace(motion.at(np.interp(times, new, old)), rate=motion.rate, start=0.0)


KEYS = ((0.0, 0.0), (1.0, 2.0), (2.5, 3.0), (3.9, 5.0))


# --- time -----------------------------------------------------------------------------


def test_a_motion_matches_itself_frame_for_frame(walk):
    np.testing.assert_allclose(match_times(walk, walk), walk.times, atol=1e-12)


def test_key_times_are_met_and_time_runs_evenly_between(walk):
    other = replace(slowed(walk, KEYS), start=7.0)
    keys = [(a, b + 7.0) for a, b in KEYS]
    times = match_times(walk, other, keys)
    np.testing.assert_allclose(times, np.interp(other.times, *np.array(keys).T[::-1]))
    same = warp_time(walk, other, keys)
    assert (same.n_frames, same.rate, same.start) == (other.n_frames, 30.0, 7.0)
    np.testing.assert_allclose(same.wxyz, other.wxyz, atol=1e-3)


def test_without_keys_time_is_found_by_the_poses(walk):
    """Slowed down and hurried: found to a frame or so where anything moves."""
    other = slowed(walk, KEYS)
    found = warp_time(walk, other)
    blind = warp_time(walk, other, [KEYS[0], KEYS[-1]])

    def off(motion):
        return np.linalg.norm(
            (motion.T_world_joint() - other.T_world_joint())[:, 1:, :3, 3]
            - (motion.T_world_joint() - other.T_world_joint())[:, :1, :3, 3],
            axis=-1,
        )

    assert np.sqrt(np.mean(off(found) ** 2)) < 0.02
    assert np.sqrt(np.mean(off(found) ** 2)) < 0.2 * np.sqrt(np.mean(off(blind) ** 2))


def test_where_the_figure_stands_and_how_large_it_is_does_not_matter(walk):
    other = slowed(walk, KEYS)
    T = geometry.transform(geometry.rotation_exp(np.array([0.0, 0.0, 2.0])), np.ones(3))
    moved = replace(other, T_world_root=T @ other.T_world_root)
    np.testing.assert_allclose(
        match_times(walk, moved), match_times(walk, other), atol=1e-9
    )
    large = replace(walk.skeleton, offset=2.0 * walk.skeleton.offset)
    np.testing.assert_allclose(
        match_times(replace(walk, skeleton=large), other),
        match_times(walk, other),
        atol=1e-9,
    )


@pytest.mark.parametrize(
    "keys",
    [((0.0, 0.0), (2.0, 1.0), (1.0, 2.0)), ((0.0, 0.0), (9.0, 1.0)), ((1.0, -5.0),)],
)
def test_keys_that_cannot_be_are_refused(keys, walk):
    with pytest.raises(marey.OptionError, match="keys"):
        match_times(walk, walk, keys)


def test_motions_without_common_joints_are_refused(walk):
    other = synth.pendulum().perform(seconds=1.0, rate=30.0)
    with pytest.raises(marey.DataError, match="joint"):
        compare_joint_use(walk, other)
    with pytest.raises(marey.DataError, match="same joints"):
        match_times(walk, other)


# --- joint use ------------------------------------------------------------------------


def test_the_same_motion_has_the_same_joint_use(walk):
    use = compare_joint_use(slowed(walk, KEYS), walk, KEYS)
    assert np.degrees(use.rotation_rms).max() < 1.0
    assert set(ARM) <= set(use.names)


def test_joint_use_is_the_angle_between_rotations(walk):
    arm = walk.skeleton.index(ARM[0])
    wxyz = walk.wxyz.copy()
    turn = geometry.quat_exp(np.array([0.3, 0.0, 0.0]))
    wxyz[:, arm] = geometry.quat_multiply(wxyz[:, arm], turn)
    ends = [(t, t) for t in (walk.times[0], walk.times[-1])]
    use = compare_joint_use(replace(walk, wxyz=wxyz), walk, ends)
    expected = np.where(np.array(use.names) == ARM[0], 0.3, 0.0)
    np.testing.assert_allclose(use.rotation_rms, expected, atol=1e-9)


# --- other skeletons ---------------------------------------------------------------


def in_rest_pose(motion, arms=0.0, axes=(0.0, 0.0, 0.0), names=None):
    """The same motion on a skeleton with lowered arms, other axes and other names."""
    skeleton = motion.skeleton
    P = np.tile(geometry.rotation_exp(np.array(axes)), (skeleton.n_joints, 1, 1))
    for side, sign in (("Left", -1.0), ("Right", 1.0)):
        arm = skeleton.index(f"{side}UpperArm")
        P[arm] = P[arm] @ geometry.rotation_exp(np.array([sign * arms, 0.0, 0.0]))
        for joint in range(arm + 1, skeleton.n_joints):
            if skeleton.parent[joint] >= arm and skeleton.names[joint].startswith(side):
                P[joint] = P[skeleton.parent[joint]]
    offset = np.einsum("jik,jk->ji", P[np.maximum(skeleton.parent, 0)], skeleton.offset)
    other = replace(skeleton, offset=offset, names=names or skeleton.names)
    R = motion.T_world_joint()[..., :3, :3] @ np.swapaxes(P, -1, -2)
    local = np.swapaxes(R[:, np.maximum(skeleton.parent, 0)], -1, -2) @ R
    root = geometry.transform(R[:, 0], motion.T_world_root[:, :3, 3])
    wxyz = geometry.quat_from_matrix(local)
    return replace(motion, skeleton=other, T_world_root=root, wxyz=wxyz)


def mixamo(skeleton):
    """Names of another program, where it has some."""
    words = {"UpperArm": "Arm", "LowerArm": "ForeArm", "UpperLeg": "UpLeg"}
    words |= {"LowerLeg": "Leg"}
    names = []
    for name in skeleton.names:
        side = next((s for s in ("Left", "Right") if name.startswith(s)), "")
        part = name.removeprefix(side)
        names.append(f"mixamorig:{side}{words.get(part, part)}")
    return tuple(names)


REST_POSES = {
    "t": {},
    "a": {"arms": np.radians(45.0)},
    "n": {"arms": np.radians(90.0)},
    "axes": {"arms": 0.5, "axes": (1.0, -0.7, 0.4)},
}


@pytest.mark.parametrize("pose", REST_POSES)
@pytest.mark.parametrize("renamed", [False, True])
def test_the_rest_pose_of_a_reference_does_not_matter(walk, pose, renamed):
    """Bones of the reference have the same directions in the world, and so the same
    rotations, whatever its rest pose, axes and names are."""
    names = mixamo(walk.skeleton) if renamed else None
    other = in_rest_pose(walk, **REST_POSES[pose], names=names)
    positions = other.T_world_joint()[..., :3, 3]
    np.testing.assert_allclose(positions, walk.T_world_joint()[..., :3, 3], atol=1e-9)
    found, joints = retarget(other, walk.skeleton)
    rotating = [k not in ("root", "fixed") for k in walk.skeleton.kind]
    np.testing.assert_array_equal(np.sort(joints), np.flatnonzero(rotating))
    np.testing.assert_allclose(
        geometry.matrix_from_quat(found.wxyz[:, 1:]),
        geometry.matrix_from_quat(walk.wxyz[:, 1:]),
        atol=1e-6,
    )
    np.testing.assert_allclose(match_times(other, walk), walk.times, atol=1e-9)
    assert compare_joint_use(walk, other).rotation_rms.max() < 1e-5


def test_bones_of_other_lengths_keep_their_directions(walk):
    small = synth.human(height=1.5, seed=9).skeleton
    found, _ = retarget(walk, small)
    for start, end in (("UpperArm", "LowerArm"), ("LowerLeg", "Foot")):
        directions = []
        for motion in (walk, found):
            joints = [motion.skeleton.index("Left" + part) for part in (start, end)]
            bone = np.diff(motion.T_world_joint()[..., :3, 3][:, joints], axis=1)[:, 0]
            directions.append(bone / np.linalg.norm(bone, axis=-1, keepdims=True))
        np.testing.assert_allclose(directions[1], directions[0], atol=1e-9)


def test_a_reference_in_another_rest_pose_is_the_same_prior():
    reference, motion = straight(1.0), straight(0.8)
    skeleton, take = sparse(motion, noise=2e-3, turn_noise=5e-3)
    with_arms_down = in_rest_pose(reference, arms=np.radians(60.0))
    found, wanted = (
        marey.solve_pose(skeleton, take, method="gauss_newton", reference=one)
        for one in (with_arms_down, reference)
    )
    np.testing.assert_allclose(found.wxyz, wanted.wxyz, atol=1e-3)


# --- fitting --------------------------------------------------------------------------


def sparse(motion, seed=0, **options):
    """Upper arms without sensors, so that straight arms leave a twist open."""
    figure = synth.human(seed=1)
    take = synth.capture(
        (figure,),
        (motion,),
        names=("",),
        markers="none",
        sensors=tuple(
            figure.skeleton.names[j]
            for j in figure.bodies
            if figure.skeleton.names[j] not in ARM
        ),
        seed=seed,
        corruption=synth.Corruption(**options),
    )
    return take.true_skeleton, take


def straight(swing):
    """Arms that are straight and go forward by some angle and back, twisted."""
    figure = synth.human(seed=1)
    still = figure.perform("still", seconds=2.0, rate=30.0)
    wxyz, share = still.wxyz.copy(), np.sin(np.linspace(0.0, np.pi, 60))
    for side, sign in (("Left", 1.0), ("Right", -1.0)):
        arm, fore = (figure.skeleton.index(f"{side}{p}Arm") for p in ("Upper", "Lower"))
        first = geometry.quat_exp(swing * share[:, None] * [0.0, -1.0, 0.0])
        twist = geometry.quat_exp(0.6 * sign * share[:, None] * [0.0, 1.0, 0.0])
        wxyz[:, arm] = geometry.quat_multiply(
            geometry.quat_multiply(first, wxyz[:, arm]), twist
        )
        wxyz[:, fore] = [1.0, 0.0, 0.0, 0.0]
    return replace(still, wxyz=wxyz)


@pytest.mark.parametrize("method", FITTERS)
def test_what_the_data_leave_open_is_used_as_in_the_reference(method):
    """Bodenheimer1997, Figs. 7-9: alone another twist, with a reference the same."""
    reference, motion = straight(1.0), straight(0.8)
    skeleton, take = sparse(motion, noise=2e-3, turn_noise=5e-3)
    options = {"method": method}
    alone = marey.solve_pose(skeleton, take, **options)
    with_reference = marey.solve_pose(skeleton, take, reference=reference, **options)
    uses = [compare_joint_use(m, reference) for m in (alone, with_reference)]
    own = [uses[0].names.index(name) for name in ARM]
    assert np.degrees(uses[1].rotation_rms[own]).max() < 5.0
    assert np.degrees(uses[0].rotation_rms[own]).max() > 20.0
    # What the data determine stays as before.
    assert (
        np.abs(
            posed.joint_errors(with_reference, take) - posed.joint_errors(alone, take)
        ).max()
        < 5e-3
    )


@pytest.mark.parametrize("method", FITTERS)
def test_what_the_data_determine_is_not_bent_to_the_reference(method):
    figure = synth.human(seed=1)
    skeleton, take = posed.record(figure, "walk", sensors=True, seconds=1.0, rate=30.0)
    reference = figure.perform("kick_punch", seconds=1.0, rate=30.0)
    with_reference = marey.solve_pose(
        skeleton, take, method=method, reference=reference
    )
    assert posed.joint_errors(with_reference, take).max() < 1e-3
    start: dict[str, Any] = {"reference": reference, "reference_sd": np.inf}
    begun = marey.solve_pose(skeleton, take, method=method, **start)
    assert posed.joint_errors(begun, take).max() < (1e-6 if method == "bfgs" else 1e-4)


@pytest.mark.parametrize("method", FITTERS)
def test_a_reference_carries_a_limb_through_a_gap(method):
    """An arm out of sight for a second, the reference the same kick turned aside."""
    figure = synth.human(seed=1)
    skeleton, take = posed.record(
        figure, "kick_punch", markers="none", sensors=True, seconds=4.0, rate=30.0
    )
    truth = take.truth.motion
    arm = [skeleton.index(f"Right{part}") for part in ("UpperArm", "LowerArm", "Hand")]
    wxyz = truth.wxyz.copy()
    aside = geometry.quat_exp(np.array([0.0, 0.0, 0.25]))
    wxyz[:, arm[0]] = geometry.quat_multiply(aside, wxyz[:, arm[0]])
    reference = replace(truth, wxyz=wxyz)
    ignore = np.zeros((take.n_frames, skeleton.n_joints), dtype=bool)
    gap = slice(45, 75)
    ignore[gap, arm] = True
    options = {"method": method, "ignore": ignore}
    alone = marey.solve_pose(skeleton, take, **options)
    with_reference = marey.solve_pose(skeleton, take, reference=reference, **options)
    off = [
        posed.joint_errors(motion, take)[gap][:, arm].max()
        for motion in (alone, with_reference)
    ]
    assert off[1] < 0.03
    assert off[1] < 0.2 * off[0]
    steps = posed.rotation_steps(with_reference)[44:75, arm]
    assert steps.max() < 1.5 * posed.rotation_steps(truth)[:, arm].max()


def test_node_rotations_invert_joint_rotations(rng):
    """Node by node the rotations of the joints come back."""
    from marey.articulated.tables import make_nodes

    skeleton = posed.skeleton_of_every_kind(rng)
    wxyz = np.array([posed.random_pose(skeleton, rng)[1] for _ in range(5)])
    nodes = make_nodes(skeleton, limits=False)
    turned = nodes.joint_rotations(nodes.node_rotations(wxyz))
    fixed = np.array(skeleton.kind) == "fixed"
    np.testing.assert_allclose(
        geometry.matrix_from_quat(turned[:, ~fixed]),
        geometry.matrix_from_quat(wxyz[:, ~fixed]),
        atol=1e-12,
    )
