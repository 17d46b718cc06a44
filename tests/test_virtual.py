"""The virtual skeleton: exact limbs, inferred ones, separations, and zero poses."""

from dataclasses import replace

import numpy as np
import posed
import pytest

import marey
from marey import synth, virtual
from marey.numerics import geometry
from marey.rig.lengths import bone_lengths, with_bone_lengths
from marey.skeleton import Skeleton
from marey.take import Take
from marey.virtual import (
    VirtualLimb,
    VirtualSkeleton,
    calibrate_sensors,
    compute_motion,
    with_joint_sensors,
)

MEASURED = ("Hips", "LeftLowerArm", "RightLowerArm", "LeftLowerLeg", "RightLowerLeg")


def recorded(motion="walk", seconds=2.0, **options):
    figure = synth.human(seed=1)
    options = {"markers": "none", "sensors": True, "rate": 30.0, **options}
    return posed.record(figure, motion, seconds=seconds, **options)


def errors(seen, take):
    """Errors of the joints' positions, in metres, and rotations, in degrees."""
    T = take.truth.motion.T_world_joint()
    off = np.linalg.norm((seen.T_world_joint - T)[..., :3, 3], axis=-1)
    R = np.swapaxes(T[..., :3, :3], -1, -2) @ seen.T_world_joint[..., :3, :3]
    return off, np.degrees(np.linalg.norm(geometry.rotation_log(R), axis=-1))


# --- laws -----------------------------------------------------------------------------


@pytest.mark.parametrize("motion", ["walk", "exercise", "kick_punch"])
def test_exact_sensors_on_every_body_give_the_exact_figure(motion):
    skeleton, take = recorded(motion)
    seen = compute_motion(skeleton, take, layout="18")
    position, rotation = errors(seen, take)
    assert position.max() < 1e-9
    assert rotation.max() < 1e-5
    assert np.nanmax(seen.separation) < 1e-9


@pytest.mark.parametrize("motion", ["walk", "exercise", "kick_punch"])
def test_thirteen_sensors_give_the_exact_places(motion):
    """And the exact rotations, but for the twist of upper arms and thighs."""
    skeleton, take = recorded(motion)
    position, rotation = errors(compute_motion(skeleton, take, layout="13"), take)
    assert position.max() < 1e-9
    inferred = [j for j, name in enumerate(skeleton.names) if "Upper" in name]
    assert np.delete(rotation, inferred, axis=1).max() < 1e-5


def test_bent_knees_and_elbows_tell_the_twist():
    skeleton, take = recorded("kick_punch", 4.0)
    seen = compute_motion(skeleton, take, layout="13")
    _, rotation = errors(seen, take)
    T = take.truth.motion.T_world_joint()
    for side in ("Left", "Right"):
        for upper, lower, end in (
            ("UpperArm", "LowerArm", "Hand"),
            ("UpperLeg", "LowerLeg", "Foot"),
        ):
            a, b, c = (
                T[:, skeleton.index(side + n), :3, 3] for n in (upper, lower, end)
            )
            cosine = np.sum((b - a) * (c - b), axis=1)
            cosine /= np.linalg.norm(b - a, axis=1) * np.linalg.norm(c - b, axis=1)
            bent = cosine < np.cos(np.radians(25.0))
            if bent.any():
                assert rotation[bent, skeleton.index(side + upper)].max() < 1e-4


def test_the_motion_is_equivariant_to_the_world_frame(rng):
    skeleton, take = recorded(noise=3e-3, turn_noise=0.01)
    T = geometry.transform(geometry.rotation_exp(rng.normal(size=3)), np.ones(3))
    one = compute_motion(skeleton, take, layout="13")
    two = compute_motion(skeleton, posed.move_world(take, T), layout="13")
    np.testing.assert_allclose(two.T_world_joint, T @ one.T_world_joint, atol=1e-9)
    np.testing.assert_allclose(two.separation, one.separation, atol=1e-9)


def test_frame_by_frame_is_what_the_take_gives():
    skeleton, take = recorded(noise=3e-3)
    order = np.random.default_rng(0).permutation(len(take.sensor_names))
    names = tuple(take.sensor_names[k] for k in order)
    live = VirtualSkeleton(skeleton, names, layout="13")
    seen = compute_motion(skeleton, take, layout="13")
    for frame, T in enumerate(take.T_world_sensor[:20]):
        pose = live.update(T[order])
        np.testing.assert_array_equal(pose.T_world_joint, seen.T_world_joint[frame])
    live.reset()
    again = live.update(take.T_world_sensor[0][order])
    np.testing.assert_array_equal(again.T_world_joint, seen.T_world_joint[0])


def any_figure(rng):
    """A skeleton of any shape, with sensors on its root and on any other bones."""
    n = int(rng.integers(2, 7))
    parent = np.array([-1, *(rng.integers(0, k) for k in range(1, n))])
    offset = rng.normal(scale=0.3, size=(n, 3))
    offset[rng.random(n) < 0.15] = 0.0
    axes = rng.normal(size=(n, 2, 3))
    axes /= np.linalg.norm(axes, axis=-1, keepdims=True)
    kinds = rng.choice(["ball", "hinge", "universal", "fixed"], n - 1).tolist()
    axes[[kind in ("root", "ball", "fixed") for kind in ("root", *kinds)]] = np.nan
    sensor_joint = np.flatnonzero(
        np.arange(n) * (rng.random(n) < 0.5) + (np.arange(n) == 0)
    )
    return Skeleton(
        names=tuple(f"B{k}" for k in range(n)),
        parent=parent,
        offset=offset,
        kind=("root", *kinds),
        axes=axes,
        sensor_names=tuple(f"S{k}" for k in sensor_joint),
        sensor_joint=sensor_joint,
        T_joint_sensor=geometry.transform_exp(rng.normal(size=(len(sensor_joint), 6))),
    )


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_seen_every_limb_has_a_proper_pose(seed):
    """Limbs that end without a bone, that have no length, sensors lost in part."""
    rng = np.random.default_rng(seed)
    skeleton = any_figure(rng)
    T = geometry.transform_exp(rng.normal(size=(8, len(skeleton.sensor_names), 6)))
    T[3:5, rng.random(T.shape[1]) < 0.5] = np.nan
    T[6, -1, 2, 3] = np.nan
    live = VirtualSkeleton(skeleton)
    for frame in T:
        pose = live.update(frame).T_world_joint
        R = pose[..., :3, :3]
        assert np.isfinite(pose).all()
        np.testing.assert_allclose(R @ R.mT - np.eye(3), 0.0, atol=1e-9)
        np.testing.assert_allclose(np.linalg.det(R), 1.0, atol=1e-9)


def test_a_bone_points_to_a_limb_without_children():
    """Root - Mid - Tip, a hinge with a sensor: Mid points there, its twist is kept."""
    axes = np.full((3, 2, 3), np.nan)
    axes[2, 0] = [0.0, 1.0, 0.0]
    skeleton = Skeleton(
        names=("Root", "Mid", "Tip"),
        parent=np.array([-1, 0, 1]),
        offset=np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -0.3], [0.0, 0.0, -0.3]]),
        kind=("root", "ball", "hinge"),
        axes=axes,
        sensor_names=("a", "b"),
        sensor_joint=np.array([0, 2]),
        T_joint_sensor=np.tile(np.eye(4), (2, 1, 1)),
    )
    T = np.tile(np.eye(4), (2, 1, 1))
    T[:, :3, 3] = [[0.0, 0.0, 1.0], [0.3, 0.0, 0.7]]
    live = VirtualSkeleton(skeleton)
    pose = live.update(T).T_world_joint
    R = pose[1, :3, :3]
    np.testing.assert_allclose(R @ [0.0, 0.0, -1.0], [1.0, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(R @ [0.0, 1.0, 0.0], [0.0, 1.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(pose[2], T[1])
    T[1, :3, 3] = pose[1, :3, 3]  # nowhere to point to
    np.testing.assert_allclose(live.update(T).T_world_joint[1], pose[1], atol=1e-15)


def test_a_take_without_frames_gives_none():
    skeleton, take = recorded(seconds=0.1)
    none, names = take.T_world_sensor[:0], take.sensor_names
    seen = compute_motion(
        skeleton, Take(rate=30.0, T_world_sensor=none, sensor_names=names)
    )
    assert seen.T_world_joint.shape == (0, skeleton.n_joints, 4, 4)
    assert seen.outlier_joints().shape == (0, skeleton.n_joints)
    assert seen.findings() == ()


# --- errors stay where they are made --------------------------------------------------


def test_an_error_of_one_sensor_stays_in_its_limb():
    """No chain: the other limbs do not notice, and the gap shows at the knee."""
    skeleton, take = recorded()
    T = take.T_world_sensor.copy()
    T[30:, take.sensor_names.index("LeftLowerLeg"), :3, 3] += [0.0, 0.0, 0.08]
    one = compute_motion(skeleton, take, layout="13")
    two = compute_motion(skeleton, replace(take, T_world_sensor=T), layout="13")
    moved = np.abs(two.T_world_joint - one.T_world_joint).max(axis=(0, 2, 3)) > 1e-9
    touched = {skeleton.names[j] for j in np.flatnonzero(moved)}
    leg = {f"Left{n}" for n in ("UpperLeg", "LowerLeg", "Foot", "Heel", "Toes")}
    assert touched == leg
    knee = two.separation[:, skeleton.index("LeftLowerLeg")]
    assert knee[:30].max() < 1e-9
    assert knee[30:].mean() > 0.06
    (finding,) = two.findings()
    assert (finding.code, finding.subject) == ("joint-separating", "LeftLowerLeg")
    assert one.findings() == ()


def test_a_shoulder_keeps_the_humerus_its_length():
    """Directions from the elbow are trusted, distances are not: the gap opens."""
    skeleton, take = recorded()
    T = take.T_world_sensor.copy()
    T[:, take.sensor_names.index("LeftLowerArm"), :3, 3] += [0.05, 0.0, 0.0]
    seen = compute_motion(skeleton, replace(take, T_world_sensor=T), layout="13")
    upper, lower = (skeleton.index(f"Left{n}Arm") for n in ("Upper", "Lower"))
    length = np.linalg.norm(seen.positions[:, lower] - seen.positions[:, upper], axis=1)
    np.testing.assert_allclose(length, skeleton.lengths[lower], atol=1e-12)
    assert np.nanmax(seen.separation[:, upper]) > 0.005


def test_outlier_sensors_are_tagged_with_all_joints_they_drive():
    skeleton, take = recorded(seconds=5.0, noise=2e-3, turn_noise=5e-3)
    T, wrong = take.T_world_sensor.copy(), {}
    for frame, name in ((30, "LeftLowerArm"), (60, "Hips"), (90, "RightLowerLeg")):
        T[frame, take.sensor_names.index(name), :3, 3] += [0.4, 0.3, 0.5]
        wrong[frame] = name
    seen = compute_motion(skeleton, replace(take, T_world_sensor=T), layout="13")
    tags = seen.outlier_joints()
    clean = compute_motion(skeleton, take, layout="13")
    apart = np.linalg.norm(seen.positions - clean.positions, axis=-1) > 0.05
    assert tags[apart].all()
    for frame, name in wrong.items():
        assert tags[frame, skeleton.index(name)]
    assert not tags[30, skeleton.index("RightLowerArm")]
    rest = np.delete(tags, list(wrong), axis=0)
    assert rest.mean() < 0.01


def test_the_twist_of_a_straight_arm_does_not_jump(monkeypatch):
    """A little beyond straight the up point changes sides; the arm does not.

    By the up vector alone it would: half a turn from one frame to the next.
    """
    skeleton, take = recorded("still", 4.0)
    truth = take.truth.motion
    wxyz = truth.wxyz.copy()
    wave = np.cos(np.linspace(0.0, 4.0 * np.pi, truth.n_frames))
    bend = np.radians(11.0 + 14.0 * wave)
    wxyz[:, skeleton.index("LeftLowerArm")] = geometry.quat_exp(
        bend[:, None] * [0.0, 0.0, -1.0]
    )
    wxyz[:, skeleton.index("LeftUpperArm")] = [1.0, 0.0, 0.0, 0.0]
    moved = replace(truth, skeleton=skeleton, wxyz=wxyz)
    T = moved.T_world_joint()[:, skeleton.sensor_joint] @ skeleton.T_joint_sensor
    still = replace(take, T_world_sensor=T)

    def jump():
        seen = compute_motion(skeleton, still, layout="13")
        R = seen.T_world_joint[:, skeleton.index("LeftUpperArm"), :3, :3]
        step = np.swapaxes(R[:-1], -1, -2) @ R[1:]
        return np.degrees(np.linalg.norm(geometry.rotation_log(step), axis=-1)).max()

    assert jump() < 10.0
    monkeypatch.setattr("marey.virtual.aim.MIN_BEND_SINE", 1e-9)
    assert jump() > 150.0


# --- gaps, layouts, rules -------------------------------------------------------------


def test_unseen_limbs_keep_their_rotation_and_have_no_gap():
    skeleton, take = recorded()
    T = take.T_world_sensor.copy()
    for name in ("LeftLowerLeg", "Spine", "RightHand"):
        T[50:55, take.sensor_names.index(name)] = np.nan
    seen = compute_motion(skeleton, replace(take, T_world_sensor=T), layout="13")
    assert np.isfinite(seen.T_world_joint).all()
    assert np.isnan(seen.separation[50:55, skeleton.index("LeftLowerLeg")]).all()
    position, _ = errors(seen, take)
    assert np.delete(position, np.s_[50:55], axis=0).max() < 1e-9
    R = seen.T_world_joint[..., :3, :3]
    for name in ("LeftLowerLeg", "RightHand"):
        joint = skeleton.index(name)
        kept = np.swapaxes(R[:, skeleton.parent[joint]], -1, -2) @ R[:, joint]
        np.testing.assert_allclose(kept[50:55] - kept[49], 0.0, atol=1e-12)
        assert np.abs(kept[55] - kept[54]).max() > 1e-3
    T[:] = np.nan
    nothing = compute_motion(skeleton, replace(take, T_world_sensor=T))
    np.testing.assert_allclose(
        nothing.T_world_joint,
        np.broadcast_to(skeleton.rest(), seen.T_world_joint.shape),
    )


def test_the_layouts_are_those_of_the_paper():
    assert {name: len(bones) for name, bones in virtual.LAYOUTS.items()} == {
        "13": 13,
        "18": 18,
    }
    skeleton, _ = recorded(seconds=0.1)
    limbs = {limb.joint: limb for limb in VirtualSkeleton(skeleton, layout="13").limbs}
    assert {limbs[name].constraint for name in MEASURED} == {"measured"}
    assert {
        limbs[f"{s}{n}"].constraint for s in ("Left", "Right") for n in ("Hand", "Foot")
    } == {"oriented"}
    assert limbs["LeftUpperArm"] == VirtualLimb(
        joint="LeftUpperArm",
        constraint="aimed",
        aim_joint="LeftLowerArm",
        anchored_at_end=True,
    )
    assert (limbs["LeftUpperLeg"].aim_joint, limbs["LeftUpperLeg"].sensor) == (
        "LeftLowerLeg",
        "",
    )
    assert limbs["Spine"].sensor == "Spine"


def test_any_layout_and_any_rules():
    skeleton, take = recorded()
    few = compute_motion(skeleton, take, layout=("Hips", "LeftLowerLeg", "LeftFoot"))
    rules = {limb.joint: limb.constraint for limb in few.limbs}
    assert (rules["LeftUpperLeg"], rules["RightLowerLeg"]) == ("aimed", "rigid")
    own = [replace(limb, constraint="rigid", aim_joint="") for limb in few.limbs[1:]]
    stiff = compute_motion(skeleton, take, limbs=[few.limbs[0], *own])
    T = geometry.inverse(stiff.T_world_joint[:, :1]) @ stiff.T_world_joint
    np.testing.assert_allclose(T - T[0], 0.0, atol=1e-12)


def test_what_cannot_be_is_refused():
    skeleton, take = recorded()
    with pytest.raises(marey.OptionError, match="13, 18"):
        compute_motion(skeleton, take, layout="14")
    with pytest.raises(marey.DataError, match="one on Hips"):
        compute_motion(skeleton, take, layout=("LeftHand",))
    with pytest.raises(marey.DataError, match="6-DoF"):
        compute_motion(skeleton, posed.record()[1])
    with pytest.raises(marey.DataError, match="15"):
        VirtualSkeleton(skeleton).update(np.zeros((3, 4, 4)))


def test_unknown_names_are_refused_and_known_ones_listed():
    skeleton, take = recorded(seconds=0.1)
    with pytest.raises(marey.OptionError, match=r"'LeftHnad', .* LeftHand"):
        compute_motion(skeleton, take, layout=("Hips", "LeftHnad"))
    hips = VirtualLimb(joint="Hips", constraint="measured", sensor="Hips")
    for wrong, message in (
        (replace(hips, joint="Hip"), "joint of limb Hip: found 'Hip'.* Hips"),
        (replace(hips, sensor="zz"), "sensor of limb Hips: found 'zz'.* Hips"),
        (
            replace(hips, constraint="aimed", aim_joint="Cheast"),
            "aim_joint of limb Hips.* Chest",
        ),
        (replace(hips, constraint="aimed"), "aim_joint of limb Hips: found ''"),
    ):
        with pytest.raises(marey.OptionError, match=message):
            VirtualSkeleton(skeleton, limbs=(wrong,))
    lost = [name for name in take.sensor_names if name != "Hips"]
    with pytest.raises(marey.OptionError, match="sensor of limb Hips: found 'Hips'"):
        VirtualSkeleton(skeleton, lost, limbs=(hips,))


# --- zero poses -----------------------------------------------------------------------


def standing(skeleton, heading, rng=None, size=0.0, frames=1):
    """Sensors of a performer in the rest pose, elsewhere, facing anywhere."""
    turn = geometry.rotation_exp(np.array([0.0, 0.0, heading]))
    T = geometry.transform(turn, np.array([2.0, -1.0, 0.0])) @ skeleton.rest()
    T = np.tile(T[skeleton.sensor_joint] @ skeleton.T_joint_sensor, (frames, 1, 1, 1))
    if rng is None:
        return T
    return T @ geometry.transform_exp(size * rng.normal(size=(*T.shape[:2], 6)))


@pytest.mark.parametrize("heading", [0.0, 2.5, -1.0])
def test_a_zero_pose_sets_the_rotations_wherever_one_stands(heading, rng):
    skeleton, _ = recorded(seconds=0.1)
    arbitrary = geometry.transform(
        geometry.rotation_exp(rng.normal(size=(15, 3))),
        skeleton.T_joint_sensor[:, :3, 3],
    )
    wrong = replace(skeleton, T_joint_sensor=arbitrary)
    T = standing(skeleton, heading)
    for found in (
        calibrate_sensors(wrong, T),
        calibrate_sensors(wrong, T, heading=heading),
    ):
        np.testing.assert_allclose(
            found.T_joint_sensor, skeleton.T_joint_sensor, atol=1e-9
        )


def test_many_frames_of_a_zero_pose_are_averaged(rng):
    skeleton, _ = recorded()
    off = []
    for frames in (1, 100):
        found = calibrate_sensors(skeleton, standing(skeleton, 1.0, rng, 0.02, frames))
        R = np.swapaxes(found.T_joint_sensor, -1, -2) @ skeleton.T_joint_sensor
        turn = geometry.rotation_log(R[:, :3, :3])
        off.append(np.sqrt(np.mean(turn**2)))
    assert off[1] < 0.25 * off[0]


def test_positions_can_come_from_the_zero_pose_too():
    """As if sensors lay all around: off by their common shift, and no more."""
    skeleton, _ = recorded()
    bare = replace(skeleton, T_joint_sensor=np.tile(np.eye(4), (15, 1, 1)))
    found = calibrate_sensors(
        bare, standing(skeleton, 0.7), heading=0.7, measured=False
    )
    away = found.T_joint_sensor[:, :3, 3] - skeleton.T_joint_sensor[:, :3, 3]
    shift = skeleton.T_joint_sensor[:, :3, 3].mean(axis=0) * [1.0, 1.0, 0.0]
    np.testing.assert_allclose(away, np.tile(-shift, (15, 1)), atol=1e-9)


def test_a_zero_pose_needs_its_sensors():
    skeleton, _ = recorded()
    T = standing(skeleton, 0.0)
    T[:, 3] = np.nan
    with pytest.raises(marey.DataError, match=f"unseen {skeleton.sensor_names[3]}"):
        calibrate_sensors(skeleton, T)
    with pytest.raises(marey.DataError, match="15"):
        calibrate_sensors(skeleton, T[:, :3])
    pole = replace(
        synth.snowman().skeleton,
        sensor_names=("Base", "Head"),
        sensor_joint=np.array([0, 2]),
        T_joint_sensor=np.tile(np.eye(4), (2, 1, 1)),
    )
    with pytest.raises(marey.DataError, match="heading"):
        calibrate_sensors(pole, standing(pole, 0.0))


# --- the whole process ----------------------------------------------------------------


def test_sensors_to_poses_by_way_of_the_virtual_skeleton():
    """Bodenheimer1997 from end to end: measured lengths wrong, a few gross errors."""
    skeleton, take = recorded(seconds=3.0, noise=2e-3, turn_noise=5e-3, gross=0.01)
    measured = with_bone_lengths(
        skeleton, np.round(skeleton.lengths / 0.00635) * 0.00635
    )
    seen = compute_motion(measured, take, layout="13")
    lengths = bone_lengths(seen.positions, skeleton.parent, "tukey")
    fitted = with_bone_lengths(with_joint_sensors(measured), lengths)
    poses = {
        name: marey.solve_pose(fitted, seen.as_take(), method="bfgs", ignore=ignore)
        for name, ignore in (("all", None), ("tagged", seen.outlier_joints()))
    }
    rms = {
        n: np.sqrt(np.mean(posed.joint_errors(m, take) ** 2)) for n, m in poses.items()
    }
    assert rms["tagged"] < 0.02
    assert rms["tagged"] < 0.5 * rms["all"]
