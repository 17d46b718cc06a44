"""Poses at rest between springs, by minimisation and by simulation."""

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import posed
import pytest

import marey
from marey import synth
from marey.anatomy.limits import with_human_limits
from marey.anatomy.masses import (
    SEGMENT_MASS_FRACTIONS,
    capsule_radius,
    estimate_bones,
    estimate_masses,
)
from marey.articulated.tables import make_nodes
from marey.errors import DataError, MissingExtraError, OptionError
from marey.numerics import geometry
from marey.pose import fit_pose
from marey.pose.physics import Hold, PhysicsOptions, contacts_as_holds, fit_physics
from marey.pose.physics.springs import build_spring_system

K = PhysicsOptions().stiffness
PAIRED = ("UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot")


@pytest.fixture(scope="module")
def walk():
    return posed.record(motion="walk", seconds=2.0, noise=2e-3)


@pytest.fixture(scope="module")
def kick():
    return posed.record(motion="kick_punch", seconds=0.5, noise=2e-3)


def marker_positions(motion):
    """Positions of all markers on the body."""
    skeleton = motion.skeleton
    T = motion.T_world_joint()[:, skeleton.marker_joint]
    return (T[..., :3, :3] @ skeleton.marker_offset[:, :, None])[..., 0] + T[..., :3, 3]


def joint_distance(one, two):
    """The largest distance of any joint between two motions, in metres."""
    off = (one.T_world_joint() - two.T_world_joint())[..., :3, 3]
    return np.linalg.norm(off, axis=-1).max()


def fit_both(skeleton, take, **options):
    return [
        fit_physics(skeleton, take, settle=settle, **options)
        for settle in ("direct", "simulation")
    ]


def rotate_joint(motion, joint, vector):
    """The motion with a joint rotated, in its parent's frame."""
    wxyz, T = motion.wxyz.copy(), motion.T_world_root.copy()
    turn = np.broadcast_to(geometry.quat_exp(np.asarray(vector)), (len(wxyz), 4))
    wxyz[:, joint] = geometry.quat_multiply(turn, wxyz[:, joint])
    T[:, :3, :3] = geometry.matrix_from_quat(wxyz[:, 0])
    return replace(motion, wxyz=wxyz, T_world_root=T)


def energy(motion, take, neutral, stiff):
    """The energy of every frame, term by term as it is written."""
    springs = (
        0.5 * K * np.nansum((marker_positions(motion) - take.points) ** 2, axis=(1, 2))
    )
    back = geometry.quat_conjugate(motion.wxyz)
    angle = np.linalg.norm(
        geometry.quat_log(geometry.quat_multiply(back, neutral)), axis=-1
    )
    return springs + 0.5 * np.sum(stiff * angle**2, axis=-1)


# --- rest is where forces balance ---


def test_no_small_turn_of_any_joint_lowers_the_energy(kick):
    skeleton, take = kick
    options = PhysicsOptions(pull="all", limits=False)
    system = build_spring_system(skeleton, take, options)
    found = fit_physics(skeleton, take, pull="all", limits=False)
    stiff = np.zeros(skeleton.n_joints)
    turning = system.nodes.moving_joints[1:]
    stiff[turning] = (
        options.torque
        * system.masses.subtree_inertia[system.nodes.node_of_joint[turning]]
    )
    neutral = system.nodes.joint_rotations(system.neutral)
    least = energy(found.motion, take, neutral, stiff)
    np.testing.assert_allclose(
        found.spring_energy + found.neutral_energy, least, rtol=1e-9
    )
    for joint in system.nodes.moving_joints:
        for axis in np.eye(3):
            up, down = (
                energy(
                    rotate_joint(found.motion, joint, s * axis), take, neutral, stiff
                )
                for s in (1e-4, -1e-4)
            )
            assert (np.minimum(up, down) > least).all()
            # A Newton step: the distance to the least energy, in radians.
            assert np.abs((up - down) / (up + down - 2 * least) * 5e-5).max() < 1e-7


def test_simulation_and_energy_agree_on_200_frames(walk):
    skeleton, take = walk
    direct, simulated = fit_both(skeleton, take)
    assert take.n_frames == 200
    assert joint_distance(direct.motion, simulated.motion) < 5e-5
    far = marker_positions(direct.motion) - marker_positions(simulated.motion)
    assert np.linalg.norm(far, axis=-1).max() < 5e-5
    assert not simulated.not_converged.any()


def test_one_set_of_gains_serves_kicks_as_well(kick):
    direct, simulated = fit_both(*kick)
    assert joint_distance(direct.motion, simulated.motion) < 5e-5
    assert not simulated.not_converged.any()
    assert not direct.not_converged.any()


def test_without_torques_markers_are_met_as_well_as_by_least_squares(walk):
    skeleton, take = walk
    take = take.cut(0, 60)
    plain = marey.solve_pose(skeleton, take, method="gauss_newton", outlier=0.0)
    least = np.sqrt(np.mean((marker_positions(plain) - take.points) ** 2))
    for found in fit_both(skeleton, take, torque=0.0):
        rms = np.sqrt(np.mean((marker_positions(found.motion) - take.points) ** 2))
        assert rms < (1.0 + 1e-4) * least


def test_joints_of_every_kind_and_sensors(rng):
    skeleton = posed.skeleton_of_every_kind(rng)
    root, wxyz = posed.random_pose(skeleton, rng, 0.4)
    motion = marey.Motion(
        skeleton=skeleton,
        T_world_root=np.repeat(
            geometry.transform(geometry.matrix_from_quat(wxyz[:1]), root[None]), 5, 0
        ),
        wxyz=np.repeat(wxyz[None], 5, 0),
        rate=100.0,
    )
    points = marker_positions(motion)
    T = motion.T_world_joint()
    sensors = T[:, skeleton.sensor_joint] @ skeleton.T_joint_sensor
    take = marey.Take(
        points=points + rng.normal(scale=3e-3, size=points.shape),
        labels=skeleton.marker_labels,
        T_world_sensor=sensors
        @ geometry.transform_exp(rng.normal(scale=3e-3, size=(5, 2, 6))),
        sensor_names=skeleton.sensor_names,
        rate=100.0,
    )
    direct, simulated = fit_both(skeleton, take, pull="all")
    assert joint_distance(direct.motion, simulated.motion) < 5e-5
    one, two = (
        found.spring_energy + found.neutral_energy for found in (direct, simulated)
    )
    np.testing.assert_allclose(one, two, rtol=1e-7)


def test_the_simulator_has_the_degrees_of_freedom_of_the_skeleton(rng):
    mujoco = pytest.importorskip("mujoco")
    from marey.pose.physics.mujoco_model import write_mjcf

    skeleton = posed.skeleton_of_every_kind(rng)
    nodes = make_nodes(skeleton, limits=True)
    masses = estimate_masses(skeleton, nodes)
    model = mujoco.MjModel.from_xml_string(write_mjcf(nodes, masses))
    assert model.nv == 6 + 3 + 1 + 2 + 3 + 1
    assert model.body_mass.sum() == pytest.approx(masses.mass.sum())


def test_stiffer_torques_lead_nearer_to_the_neutral_posture(kick):
    skeleton, take = kick
    bent, off = [], []
    for torque in (1e-3, 1.0, 10.0, 100.0):
        found = fit_physics(skeleton, take, pull="all", torque=torque)
        bent.append(np.mean(found.neutral_energy) / torque)
        off.append(np.nanmean(found.residual_m**2))
    assert (np.diff(bent) < 0.0).all()
    assert (np.diff(off) > 0.0).all()


def test_open_joints_alone_are_pulled(walk):
    """So the neutral posture has no energy where markers determine all joints."""
    skeleton, take = walk
    take = take.cut(0, 30)
    seen = fit_physics(skeleton, take)
    assert seen.neutral_energy.max() == 0.0
    printed = fit_physics(skeleton, take, pull="all")
    better = [
        np.sqrt(np.mean(joint_error(f.motion, take) ** 2)) for f in (seen, printed)
    ]
    assert better[0] < 0.6 * better[1]


def joint_error(motion, take):
    """Distance of every joint from the truth, of the first frames of a take."""
    true = take.truth.motion.T_world_joint()[: motion.n_frames]
    return np.linalg.norm((motion.T_world_joint() - true)[..., :3, 3], axis=-1)


# --- gravity and holds ---


def test_springs_bear_the_whole_weight(walk):
    skeleton, take = walk
    take = take.cut(0, 10)
    direct, simulated = fit_both(skeleton, take, gravity=9.81)
    assert joint_distance(direct.motion, simulated.motion) < 5e-5
    nodes = make_nodes(skeleton, limits=True)
    weight = 9.81 * estimate_masses(skeleton, nodes).mass.sum()
    force = K * (take.points - marker_positions(direct.motion)).sum(axis=1)
    np.testing.assert_allclose(force[:, 2], weight, rtol=1e-6)
    np.testing.assert_allclose(force[:, :2], 0.0, atol=1e-4 * weight)


def test_a_person_weighs_what_people_of_that_height_do():
    skeleton = synth.human(height=1.8).skeleton
    masses = estimate_masses(skeleton, make_nodes(skeleton, limits=True))
    height = np.ptp(skeleton.rest()[:, 2, 3])
    assert masses.mass.sum() == pytest.approx(22.5 * height**2)
    assert (np.linalg.eigvalsh(masses.inertia) > 0.0).all()
    assert sum(SEGMENT_MASS_FRACTIONS.values()) + sum(
        SEGMENT_MASS_FRACTIONS[n] for n in PAIRED
    ) == pytest.approx(1.0)
    assert SEGMENT_MASS_FRACTIONS["Hips"] + SEGMENT_MASS_FRACTIONS[
        "Spine"
    ] + SEGMENT_MASS_FRACTIONS["Chest"] == pytest.approx(0.4346)
    thigh = masses.mass[make_nodes(skeleton, limits=True).node_of_joint[11]]
    assert thigh / masses.mass.sum() == pytest.approx(0.1416, abs=0.003)


def test_a_thigh_turns_about_its_hip_as_it_does_in_people():
    """Radius of gyration 0.525 of its length: centre at 0.41, and 0.33 about it."""
    skeleton = synth.human(height=1.8).skeleton
    masses = estimate_masses(skeleton, make_nodes(skeleton, limits=True))
    hip, knee = (skeleton.index(f"Left{name}Leg") for name in ("Upper", "Lower"))
    node = make_nodes(skeleton, limits=True).node_of_joint[hip]
    bone = skeleton.offset[knee]
    centre = bone / np.linalg.norm(bone) @ masses.centre[node]
    length = np.linalg.norm(bone)
    assert centre / length == pytest.approx(0.4095)
    aside = np.cross(bone, [1.0, 0.0, 0.0])
    aside /= np.linalg.norm(aside)
    inertia = aside @ masses.inertia[node] @ aside / masses.mass[node]
    assert np.sqrt(inertia + centre**2) / length == pytest.approx(0.525, abs=1e-3)


def test_a_capsule_is_as_hard_to_turn_as_its_points(rng):
    from marey.anatomy.masses import axial_inertia, capsules

    ends, radius = rng.normal(size=(2, 3)), 0.3
    box = rng.uniform(-2.5, 2.5, size=(400_000, 3)) + ends.mean(axis=0)
    bone = ends[1] - ends[0]
    share = np.clip((box - ends[0]) @ bone / (bone @ bone), 0.0, 1.0)
    inside = np.linalg.norm(box - ends[0] - share[:, None] * bone, axis=1) < radius
    x = box[inside] - ends.mean(axis=0)
    points = np.mean(np.sum(x**2, axis=1)) * np.eye(3) - x.T @ x / len(x)
    length = np.linalg.norm(bone)
    capsule = capsules(np.array([length]), np.ones(1), np.array([radius]))
    (inertia,) = axial_inertia(bone[None], capsule.along, capsule.across)
    np.testing.assert_allclose(inertia, points, atol=0.02)


def test_a_hand_held_to_the_world_stays_there(walk):
    skeleton, take = walk
    take = take.cut(0, 40)
    hand = skeleton.index("LeftHand")
    there = take.truth.motion.T_world_joint()[20, hand, :3, 3] + [0.02, 0.0, 0.03]
    off = []
    for strength in (10.0, 1000.0):
        hold = Hold(
            joint="LeftHand", target=there, start=0.1, end=0.3, strength=strength
        )
        found = fit_physics(skeleton, take, holds=(hold,))
        place = found.motion.T_world_joint()[:, hand, :3, 3]
        off.append(np.linalg.norm(place[10:31] - there, axis=1).max())
    free = fit_physics(skeleton, take).motion.T_world_joint()[:, hand, :3, 3]
    assert off[1] < 2e-3
    assert off[1] < 0.05 * off[0]
    np.testing.assert_allclose(place[:10], free[:10], atol=1e-9)
    np.testing.assert_allclose(place[31:], free[31:], atol=1e-9)


def test_a_hand_held_to_the_hip_moves_with_it(walk):
    """Both solvers agree, and the gap falls with the strength of the hold."""
    skeleton, take = walk
    take = take.cut(0, 6)
    hand = skeleton.index("LeftHand")
    T = take.truth.motion.T_world_joint()
    there = geometry.apply(np.linalg.inv(T[3, 0]), T[3, hand, :3, 3])
    there += [0.03, -0.03, 0.03]
    gaps = []
    for strength in (1.0, 10.0, 100.0):
        hold = Hold(
            joint="LeftHand", target=there, target_joint="Hips", strength=strength
        )
        direct, simulated = fit_both(skeleton, take, holds=(hold,))
        assert joint_distance(direct.motion, simulated.motion) < 5e-5
        np.testing.assert_allclose(
            simulated.spring_energy, direct.spring_energy, rtol=1e-4
        )
        T = direct.motion.T_world_joint()
        gap = T[:, hand, :3, 3] - geometry.apply(T[:, 0], there)
        gaps.append(np.linalg.norm(gap, axis=1).max())
    assert gaps[1] < 0.5 * gaps[0]
    assert gaps[2] < 0.2 * gaps[1]


def test_a_hold_between_bones_is_as_firm_as_one_likes(walk):
    """And converges as fast as others: the gap falls with the strength of the hold."""
    skeleton, take = walk
    take = take.cut(0, 6)
    hand = skeleton.index("LeftHand")
    T = take.truth.motion.T_world_joint()
    there = geometry.apply(np.linalg.inv(T[3, 0]), T[3, hand, :3, 3]) + 0.03
    gaps = []
    for strength in (1e3, 1e6):
        hold = Hold(
            joint="LeftHand", target=there, target_joint="Hips", strength=strength
        )
        found = fit_physics(skeleton, take, holds=(hold,))
        assert found.steps.max() < 30
        T = found.motion.T_world_joint()
        gap = T[:, hand, :3, 3] - geometry.apply(T[:, 0], there)
        gaps.append(np.linalg.norm(gap, axis=1).max())
    assert gaps[0] < 3e-4
    assert gaps[1] == pytest.approx(1e-3 * gaps[0], rel=0.05)


def test_contacts_become_holds(walk):
    """Feet that are planted slide less than a third as fast."""
    skeleton, take = walk
    contacts = take.truth.motion.contacts
    assert contacts
    free = marey.solve_pose(skeleton, take, method="physics")
    holds = contacts_as_holds(replace(free, contacts=contacts), strength=30.0)
    assert len(holds) == len(contacts)
    slide = []
    for motion in (free, fit_physics(skeleton, take, holds=holds).motion):
        T, speeds = motion.T_world_joint(), []
        for hold in holds:
            on = (take.times >= hold.start) & (take.times <= hold.end)
            spot = geometry.apply(T[on, skeleton.index(hold.joint)], hold.point)
            speeds.append(np.linalg.norm(np.diff(spot, axis=0), axis=1) * take.rate)
        slide.append(np.concatenate(speeds).mean())
    assert slide[1] < 0.3 * slide[0]


def test_a_marker_at_a_joint_may_pull_both_bodies(walk):
    """At the joint itself it has one position in both, and nothing else changes."""
    skeleton, take = walk
    take = take.cut(0, 5)
    knee = skeleton.index("LeftLowerLeg")
    at = take.truth.motion.T_world_joint()[:5, knee, None, :3, 3]
    exact = marker_positions(replace(take.truth.motion, skeleton=skeleton))[:5]
    extra = replace(
        skeleton,
        marker_labels=(*skeleton.marker_labels, "KNEE"),
        marker_joint=np.append(skeleton.marker_joint, knee),
        marker_offset=np.concatenate([skeleton.marker_offset, np.zeros((1, 3))]),
    )
    take = replace(
        take,
        points=np.concatenate([exact, at], axis=1),
        filled=np.zeros((5, 54), dtype=bool),
        labels=(*take.labels, "KNEE"),
        subjects=(*take.subjects, ""),
    )
    system = build_spring_system(extra, take, PhysicsOptions(shared_within=0.01))
    assert len(system.targets.column) == 55
    found = fit_physics(extra, take, shared_within=0.01)
    assert joint_error(found.motion, take).max() < 1e-7


# --- what can go wrong ---


@pytest.mark.parametrize("motion", ["walk", "kick_punch"])
@pytest.mark.parametrize("seed", [0, 1])
def test_outliers_turn_their_springs_off(motion, seed):
    skeleton, take = posed.record(motion=motion, seconds=2.0, noise=2e-3)
    rng = np.random.default_rng(seed)
    points = take.points.copy()
    hit = rng.random(points.shape[:2]) < 0.05
    error = rng.normal(size=(hit.sum(), 3))
    error /= np.linalg.norm(error, axis=1)[:, None]
    points[hit] += rng.uniform(0.5, 3.0, (len(error), 1)) * error
    clean = fit_physics(skeleton, take)
    spoilt = fit_physics(skeleton, replace(take, points=points))
    assert spoilt.is_cut_off.mean() == pytest.approx(hit.mean(), abs=2e-4)
    worst = [posed.joint_errors(f.motion, take).max() for f in (clean, spoilt)]
    assert worst[1] <= 2.0 * worst[0]


def test_an_unseen_arm_goes_to_the_neutral_posture_without_a_jump(walk):
    skeleton, take = walk
    gone = posed.markers_on(take, skeleton, "LeftLowerArm", "LeftHand")
    take = posed.hide_markers(take, slice(20, 180), gone)
    motion, findings = fit_pose(skeleton, take, method="physics")
    elbow = skeleton.index("LeftLowerArm")
    assert "joint-unseen" in {f.code for f in findings if f.subject == "LeftLowerArm"}
    bent = 2.0 * np.arccos(np.abs(motion.wxyz[100, elbow, 0]))
    assert bent < 0.2
    assert posed.rotation_steps(motion)[:, elbow].max() < 0.2


def test_both_solvers_agree_where_an_arm_is_unseen(walk):
    skeleton, take = walk
    take = take.cut(0, 12)
    gone = posed.markers_on(take, skeleton, "LeftLowerArm", "LeftHand")
    direct, simulated = fit_both(skeleton, posed.hide_markers(take, slice(4, 8), gone))
    assert joint_distance(direct.motion, simulated.motion) < 5e-5


def test_limits_stop_both_ways_alike(kick):
    """Knees that may bend by 10 degrees at most."""
    skeleton, take = kick
    take = take.cut(0, 25)
    skeleton = with_human_limits(skeleton)
    limits = skeleton.limits.copy()
    knee = skeleton.index("RightLowerLeg")
    limits[knee] = np.radians([[-10, 10], [-10, 10], [-10, 10]])
    tight = replace(skeleton, limits=limits)
    direct, simulated = fit_both(tight, take, pull="all", torque=1.0)
    angle = geometry.quat_log(direct.motion.wxyz[:, knee])
    assert np.linalg.norm(angle, axis=1).max() > np.radians(9.9)
    assert np.abs(angle).max() < np.radians(16.0)
    assert joint_distance(direct.motion, simulated.motion) < 5e-5


@pytest.mark.parametrize(
    "options",
    [{}, {"shared_within": 0.06}, {"weights": {"LeftHand": 50.0}}, {"pull": "all"}],
)
def test_many_limits_at_once_do_not_oscillate(options):
    """Exercises rotate arms and hands to their limits, and noise beyond them."""
    skeleton, take = posed.record(motion="exercise", seconds=0.3, noise=2e-3)
    direct, simulated = fit_both(skeleton, take, **options)
    assert joint_distance(direct.motion, simulated.motion) < 5e-5
    assert not simulated.not_converged.any()


def test_any_figure_converges_with_steps_of_a_hundredth_of_a_second():
    """Paws and tails have almost no mass."""
    figure = synth.quadruped()
    skeleton, take = posed.record(
        figure, markers=5, sensors=True, seconds=0.2, noise=2e-3, turn_noise=5e-3
    )
    direct, simulated = fit_both(skeleton, take)
    assert joint_distance(direct.motion, simulated.motion) < 5e-5
    assert simulated.steps.max() < 300


def test_a_skeleton_of_another_size_is_reported_and_stays_finite(walk):
    skeleton, take = walk
    take = take.cut(0, 30)
    small = replace(
        skeleton,
        offset=0.8 * skeleton.offset,
        marker_offset=0.8 * skeleton.marker_offset,
    )
    motion, findings = fit_pose(small, take, method="physics")
    assert np.isfinite(motion.wxyz).all()
    assert {f.code for f in findings} & {"pose-lost", "marker-outliers"}
    hips = np.linalg.norm(motion.T_world_root[:, :2, 3] - take.points[:, :, :2].mean(1))
    assert hips / np.sqrt(30) < 0.15


def test_what_does_not_come_to_rest_is_told(walk):
    skeleton, take = walk
    take = take.cut(0, 3)
    for settle, steps in (("direct", 1), ("simulation", 5)):
        _, findings = fit_pose(
            skeleton, take, method="physics", settle=settle, steps=steps
        )
        (found,) = (f for f in findings if f.code == "pose-not-at-rest")
        assert found.frames == (0, 2)


def test_divergence_is_reported_and_leaves_no_file(walk, tmp_path, monkeypatch):
    """Damping too strong for steps of a hundredth of a second."""
    pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    skeleton, take = walk
    motion, findings = fit_pose(
        skeleton, take.cut(0, 3), method="physics", settle="simulation", damping=1e4
    )
    (found,) = (f for f in findings if f.code == "pose-not-at-rest")
    assert found.frames == (0, 2)
    assert joint_error(motion, take).max() < 0.1
    assert not list(tmp_path.iterdir())


def test_frames_without_markers_keep_the_pose_finite(walk):
    skeleton, take = walk
    take = posed.hide_markers(take.cut(0, 30), slice(10, 14), slice(None))
    for settle in ("direct", "simulation"):
        motion, findings = fit_pose(skeleton, take, method="physics", settle=settle)
        assert np.isfinite(motion.T_world_root).all()
        (found,) = (f for f in findings if f.code == "pose-unseen")
        assert found.frames == (10, 13)
        assert joint_error(motion, take).max() < 0.1


def test_minimisation_needs_no_mujoco(walk, monkeypatch):
    skeleton, take = walk
    take = take.cut(0, 3)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtraError, match=r'pip install "marey\[physics\]"'):
        fit_physics(skeleton, take, settle="simulation")
    assert not fit_physics(skeleton, take).not_converged.any()


@pytest.mark.parametrize(
    "option",
    [
        {"settle": "magic"},
        {"pull": "some"},
        {"cutoff": 0.0},
        {"stiffness": 0.0},
        {"damping": -1.0},
        {"rest_speed": np.nan},
        {"steps": 0},
    ],
)
def test_options_out_of_range_are_refused(walk, option):
    (name,) = option
    with pytest.raises(OptionError, match=name):
        fit_physics(*walk, **option)


def test_holds_are_checked(walk):
    with pytest.raises(OptionError, match="strength"):
        Hold(joint="LeftHand", target=np.zeros(3), strength=0.0)
    with pytest.raises(OptionError, match="LeftHand"):
        Hold(joint="LeftHand", target=np.array([np.nan, 0.0, 0.0]))
    with pytest.raises(DataError, match="Tail"):
        fit_physics(*walk, holds=(Hold(joint="Tail", target=np.zeros(3)),))


def test_the_table_states_the_residuals_of_markers(walk):
    found = fit_physics(*walk)
    stated: dict[Any, Any] = dict(found.table().rows)  # type: ignore[arg-type]
    assert stated["residual of markers, mean mm"] == pytest.approx(
        1e3 * found.residual_m.mean(), abs=1e-3
    )
    assert stated["frames not at rest"] == 0


def test_with_sensors_alone_no_spring_of_a_marker_is_cut_off():
    """Without markers their residual is unknown, and nothing warns."""
    skeleton, take = posed.record(markers="none", sensors=True, seconds=0.2)
    rows = fit_physics(skeleton, take).table().rows
    stated: dict[Any, Any] = dict(rows)  # type: ignore[arg-type]
    assert stated["springs cut off, share"] == 0.0
    assert np.isnan(stated["residual of markers, mean mm"])
    assert np.isfinite(stated["energy of springs, mean mJ"])


def test_a_capsule_has_the_volume_of_its_mass(rng):
    volume, length = 10.0 ** rng.uniform(-9, 0, 200), 10.0 ** rng.uniform(-4, 1, 200)
    radius = capsule_radius(volume, length)
    found = np.pi * radius**2 * (length + 4.0 / 3.0 * radius)
    np.testing.assert_allclose(found, volume, rtol=1e-12)


def test_the_chest_of_a_whole_person_is_no_barrel():
    """A short bone with the mass of the chest was a sphere of 56 cm."""
    skeleton = marey.synth.human(height=1.8, seed=0).skeleton
    chest = skeleton.offset.copy()
    chest[[skeleton.index(f"{side}UpperArm") for side in ("Left", "Right")]] *= 0.3
    skeleton = replace(skeleton, offset=chest)
    assert estimate_bones(skeleton).radius.max() < 0.2
