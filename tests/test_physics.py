"""Figures on springs: where they come to rest, by energy and by simulation."""

import sys
from dataclasses import replace

import numpy as np
import posed
import pytest

import marey
from marey import synth
from marey.anatomy.limits import with_human_limits
from marey.anatomy.masses import SHARES, masses_of
from marey.articulated.tables import nodes_of
from marey.errors import DataError, MissingExtraError, OptionError
from marey.numerics import geometry
from marey.pose import fit_pose
from marey.pose.physics import fit
from marey.pose.physics.fit import Hold
from marey.pose.physics.options import PhysicsOptions
from marey.pose.physics.scene import scene_of

K = PhysicsOptions().stiffness
PAIRED = ("UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot")


@pytest.fixture(scope="module")
def walk():
    return posed.recorded(motion="walk", seconds=2.0, noise=2e-3)


@pytest.fixture(scope="module")
def kick():
    return posed.recorded(motion="kick_punch", seconds=0.5, noise=2e-3)


def sites(motion):
    """Places of all markers on the body."""
    skeleton = motion.skeleton
    T = motion.T_world_joint()[:, skeleton.marker_joint]
    return (T[..., :3, :3] @ skeleton.marker_offset[:, :, None])[..., 0] + T[..., :3, 3]


def apart(one, two):
    """The largest distance of any joint between two motions, in metres."""
    off = (one.T_world_joint() - two.T_world_joint())[..., :3, 3]
    return np.linalg.norm(off, axis=-1).max()


def both(skeleton, take, **options):
    return [
        fit.fit(skeleton, take, settle=settle, **options)
        for settle in ("direct", "simulation")
    ]


def turned(motion, joint, vector):
    """The motion with a joint turned, in its parent's frame."""
    wxyz, T = motion.wxyz.copy(), motion.T_world_root.copy()
    turn = np.broadcast_to(geometry.quat_exp(np.asarray(vector)), (len(wxyz), 4))
    wxyz[:, joint] = geometry.quat_multiply(turn, wxyz[:, joint])
    T[:, :3, :3] = geometry.matrix_from_quat(wxyz[:, 0])
    return replace(motion, wxyz=wxyz, T_world_root=T)


def energy(motion, take, neutral, stiff):
    """The energy of every frame, term by term as it is written."""
    springs = 0.5 * K * np.nansum((sites(motion) - take.points) ** 2, axis=(1, 2))
    back = geometry.quat_conjugate(motion.wxyz)
    angle = np.linalg.norm(
        geometry.quat_log(geometry.quat_multiply(back, neutral)), axis=-1
    )
    return springs + 0.5 * np.sum(stiff * angle**2, axis=-1)


# --- rest is where forces balance ---


def test_no_small_turn_of_any_joint_lowers_the_energy(kick):
    skeleton, take = kick
    options = PhysicsOptions(pull="all", limits=False)
    scene = scene_of(skeleton, take, options)
    found = fit.fit(skeleton, take, pull="all", limits=False)
    stiff = np.zeros(skeleton.n_joints)
    turning = scene.nodes.turning[1:]
    stiff[turning] = (
        options.torque * scene.masses.carried[scene.nodes.of_joint[turning]]
    )
    neutral = scene.nodes.rotations(scene.neutral)
    least = energy(found.motion, take, neutral, stiff)
    np.testing.assert_allclose(found.springs + found.neutral, least, rtol=1e-9)
    for joint in scene.nodes.turning:
        for axis in np.eye(3):
            up, down = (
                energy(turned(found.motion, joint, s * axis), take, neutral, stiff)
                for s in (1e-4, -1e-4)
            )
            assert (np.minimum(up, down) > least).all()
            # Slope over curve: how far the least energy still is, in radians.
            assert np.abs((up - down) / (up + down - 2 * least) * 5e-5).max() < 1e-7


def test_simulation_and_energy_agree_on_200_frames(walk):
    skeleton, take = walk
    direct, simulated = both(skeleton, take)
    assert take.n_frames == 200
    assert apart(direct.motion, simulated.motion) < 5e-5
    far = sites(direct.motion) - sites(simulated.motion)
    assert np.linalg.norm(far, axis=-1).max() < 5e-5
    assert not simulated.restless.any()


def test_one_set_of_gains_serves_kicks_as_well(kick):
    direct, simulated = both(*kick)
    assert apart(direct.motion, simulated.motion) < 5e-5
    assert not simulated.restless.any()
    assert not direct.restless.any()


def test_without_torques_markers_are_met_as_well_as_by_least_squares(walk):
    skeleton, take = walk
    take = take.cut(0, 60)
    plain = marey.solve_pose(skeleton, take, method="gauss_newton", outlier=0.0)
    least = np.sqrt(np.mean((sites(plain) - take.points) ** 2))
    for found in both(skeleton, take, torque=0.0):
        rms = np.sqrt(np.mean((sites(found.motion) - take.points) ** 2))
        assert rms < (1.0 + 1e-4) * least


def test_joints_of_every_kind_and_sensors(rng):
    skeleton = posed.every_kind(rng)
    root, wxyz = posed.any_pose(skeleton, rng, 0.4)
    motion = marey.Motion(
        skeleton=skeleton,
        T_world_root=np.repeat(
            geometry.transform(geometry.matrix_from_quat(wxyz[:1]), root[None]), 5, 0
        ),
        wxyz=np.repeat(wxyz[None], 5, 0),
        rate=100.0,
    )
    points = sites(motion)
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
    direct, simulated = both(skeleton, take, pull="all")
    assert apart(direct.motion, simulated.motion) < 5e-5
    total = [found.springs + found.neutral for found in (direct, simulated)]
    np.testing.assert_allclose(*total, rtol=1e-7)


def test_the_simulator_stands_as_the_skeleton_does(rng):
    mujoco = pytest.importorskip("mujoco")
    from marey.pose.physics.model import mjcf

    skeleton = posed.every_kind(rng)
    nodes = nodes_of(skeleton, limits=True)
    masses = masses_of(skeleton, nodes)
    model = mujoco.MjModel.from_xml_string(mjcf(nodes, masses))
    assert model.nv == 6 + 3 + 1 + 2 + 3 + 1
    assert model.body_mass.sum() == pytest.approx(masses.mass.sum())


def test_stiffer_torques_lead_nearer_to_the_neutral_posture(kick):
    skeleton, take = kick
    bent, off = [], []
    for torque in (1e-3, 1.0, 10.0, 100.0):
        found = fit.fit(skeleton, take, pull="all", torque=torque)
        bent.append(np.mean(found.neutral) / torque)
        off.append(np.nanmean(found.away**2))
    assert (np.diff(bent) < 0.0).all()
    assert (np.diff(off) > 0.0).all()


def test_open_joints_alone_are_pulled(walk):
    """So the neutral posture costs nothing where markers know."""
    skeleton, take = walk
    take = take.cut(0, 30)
    seen = fit.fit(skeleton, take)
    assert seen.neutral.max() == 0.0
    printed = fit.fit(skeleton, take, pull="all")
    better = [np.sqrt(np.mean(off_truth(f.motion, take) ** 2)) for f in (seen, printed)]
    assert better[0] < 0.6 * better[1]


def off_truth(motion, take):
    """Distance of every joint from the truth, of the first frames of a take."""
    true = take.truth.motion.T_world_joint()[: motion.n_frames]
    return np.linalg.norm((motion.T_world_joint() - true)[..., :3, 3], axis=-1)


# --- what weighs and what holds ---


def test_springs_bear_the_whole_weight(walk):
    skeleton, take = walk
    take = take.cut(0, 10)
    direct, simulated = both(skeleton, take, gravity=9.81)
    assert apart(direct.motion, simulated.motion) < 5e-5
    nodes = nodes_of(skeleton, limits=True)
    weight = 9.81 * masses_of(skeleton, nodes).mass.sum()
    force = K * (take.points - sites(direct.motion)).sum(axis=1)
    np.testing.assert_allclose(force[:, 2], weight, rtol=1e-6)
    np.testing.assert_allclose(force[:, :2], 0.0, atol=1e-4 * weight)


def test_a_person_weighs_what_people_of_that_height_do():
    skeleton = synth.human(height=1.8).skeleton
    masses = masses_of(skeleton, nodes_of(skeleton, limits=True))
    height = np.ptp(skeleton.rest()[:, 2, 3])
    assert masses.mass.sum() == pytest.approx(22.5 * height**2)
    assert (np.linalg.eigvalsh(masses.inertia) > 0.0).all()
    assert sum(SHARES.values()) + sum(SHARES[n] for n in PAIRED) == pytest.approx(1.0)
    assert SHARES["Hips"] + SHARES["Spine"] + SHARES["Chest"] == pytest.approx(0.4346)
    thigh = masses.mass[nodes_of(skeleton, limits=True).of_joint[11]]
    assert thigh / masses.mass.sum() == pytest.approx(0.1416, abs=0.003)


def test_a_thigh_turns_about_its_hip_as_it_does_in_people():
    """With 0.525 of its length: its centre at 0.41, and 0.33 about that."""
    skeleton = synth.human(height=1.8).skeleton
    masses = masses_of(skeleton, nodes_of(skeleton, limits=True))
    hip, knee = (skeleton.index(f"Left{name}Leg") for name in ("Upper", "Lower"))
    node = nodes_of(skeleton, limits=True).of_joint[hip]
    bone = skeleton.offset[knee]
    centre = bone / np.linalg.norm(bone) @ masses.centre[node]
    length = np.linalg.norm(bone)
    assert centre / length == pytest.approx(0.4095)
    aside = np.cross(bone, [1.0, 0.0, 0.0])
    aside /= np.linalg.norm(aside)
    own = aside @ masses.inertia[node] @ aside / masses.mass[node]
    assert np.sqrt(own + centre**2) / length == pytest.approx(0.525, abs=1e-3)


def test_a_capsule_is_as_hard_to_turn_as_its_points(rng):
    from marey.anatomy.masses import _capsule

    ends, radius = rng.normal(size=(2, 3)), 0.3
    box = rng.uniform(-2.5, 2.5, size=(400_000, 3)) + ends.mean(axis=0)
    way = ends[1] - ends[0]
    share = np.clip((box - ends[0]) @ way / (way @ way), 0.0, 1.0)
    inside = np.linalg.norm(box - ends[0] - share[:, None] * way, axis=1) < radius
    x = box[inside] - ends.mean(axis=0)
    points = np.mean(np.sum(x**2, axis=1)) * np.eye(3) - x.T @ x / len(x)
    np.testing.assert_allclose(
        _capsule(0, ends, 1.0, radius).inertia, points, atol=0.02
    )


def test_a_hand_held_to_the_world_stays_there(walk):
    skeleton, take = walk
    take = take.cut(0, 40)
    hand = skeleton.index("LeftHand")
    there = take.truth.motion.T_world_joint()[20, hand, :3, 3] + [0.02, 0.0, 0.03]
    off = []
    for strength in (10.0, 1000.0):
        hold = Hold(joint="LeftHand", to=there, start=0.1, end=0.3, strength=strength)
        found = fit.fit(skeleton, take, holds=(hold,))
        place = found.motion.T_world_joint()[:, hand, :3, 3]
        off.append(np.linalg.norm(place[10:31] - there, axis=1).max())
    free = fit.fit(skeleton, take).motion.T_world_joint()[:, hand, :3, 3]
    assert off[1] < 2e-3
    assert off[1] < 0.05 * off[0]
    np.testing.assert_allclose(place[:10], free[:10], atol=1e-9)
    np.testing.assert_allclose(place[31:], free[31:], atol=1e-9)


def test_a_hand_held_to_the_hip_moves_with_it(walk):
    """Alike by both ways, and nearer the stronger the hold is."""
    skeleton, take = walk
    take = take.cut(0, 6)
    hand = skeleton.index("LeftHand")
    T = take.truth.motion.T_world_joint()
    there = geometry.apply(np.linalg.inv(T[3, 0]), T[3, hand, :3, 3])
    there += [0.03, -0.03, 0.03]
    gaps = []
    for strength in (1.0, 10.0, 100.0):
        hold = Hold(joint="LeftHand", to=there, other="Hips", strength=strength)
        direct, simulated = both(skeleton, take, holds=(hold,))
        assert apart(direct.motion, simulated.motion) < 5e-5
        np.testing.assert_allclose(simulated.springs, direct.springs, rtol=1e-4)
        T = direct.motion.T_world_joint()
        gap = T[:, hand, :3, 3] - geometry.apply(T[:, 0], there)
        gaps.append(np.linalg.norm(gap, axis=1).max())
    assert gaps[1] < 0.5 * gaps[0]
    assert gaps[2] < 0.2 * gaps[1]


def test_a_hold_between_bones_is_as_firm_as_one_likes(walk):
    """And rests as soon as others do: the gap falls as the hold gets stronger."""
    skeleton, take = walk
    take = take.cut(0, 6)
    hand = skeleton.index("LeftHand")
    T = take.truth.motion.T_world_joint()
    there = geometry.apply(np.linalg.inv(T[3, 0]), T[3, hand, :3, 3]) + 0.03
    gaps = []
    for strength in (1e3, 1e6):
        hold = Hold(joint="LeftHand", to=there, other="Hips", strength=strength)
        found = fit.fit(skeleton, take, holds=(hold,))
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
    holds = fit.holds_of(replace(free, contacts=contacts), strength=30.0)
    assert len(holds) == len(contacts)
    slide = []
    for motion in (free, fit.fit(skeleton, take, holds=holds).motion):
        T, speeds = motion.T_world_joint(), []
        for hold in holds:
            on = (take.times >= hold.start) & (take.times <= hold.end)
            spot = geometry.apply(T[on, skeleton.index(hold.joint)], hold.point)
            speeds.append(np.linalg.norm(np.diff(spot, axis=0), axis=1) * take.rate)
        slide.append(np.concatenate(speeds).mean())
    assert slide[1] < 0.3 * slide[0]


def test_a_marker_at_a_joint_may_pull_both_bodies(walk):
    """At the joint itself it is at one place in both, and nothing else changes."""
    skeleton, take = walk
    take = take.cut(0, 5)
    knee = skeleton.index("LeftLowerLeg")
    at = take.truth.motion.T_world_joint()[:5, knee, None, :3, 3]
    exact = sites(replace(take.truth.motion, skeleton=skeleton))[:5]
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
    scene = scene_of(extra, take, PhysicsOptions(shared_within=0.01))
    assert len(scene.targets.column) == 55
    found = fit.fit(extra, take, shared_within=0.01)
    assert off_truth(found.motion, take).max() < 1e-7


# --- what can go wrong ---


@pytest.mark.parametrize("motion", ["walk", "kick_punch"])
@pytest.mark.parametrize("seed", [0, 1])
def test_outliers_turn_their_springs_off(motion, seed):
    skeleton, take = posed.recorded(motion=motion, seconds=2.0, noise=2e-3)
    rng = np.random.default_rng(seed)
    points = take.points.copy()
    hit = rng.random(points.shape[:2]) < 0.05
    way = rng.normal(size=(hit.sum(), 3))
    way *= rng.uniform(0.5, 3.0, (len(way), 1)) / np.linalg.norm(way, axis=1)[:, None]
    points[hit] += way
    clean = fit.fit(skeleton, take)
    spoilt = fit.fit(skeleton, replace(take, points=points))
    assert spoilt.off.mean() == pytest.approx(hit.mean(), abs=2e-4)
    worst = [posed.off(f.motion, take).max() for f in (clean, spoilt)]
    assert worst[1] <= 2.0 * worst[0]


def test_an_arm_out_of_sight_hangs_down_and_does_not_jump(walk):
    skeleton, take = walk
    gone = posed.on(take, skeleton, "LeftLowerArm", "LeftHand")
    take = posed.without(take, slice(20, 180), gone)
    motion, findings = fit_pose(skeleton, take, method="physics")
    elbow = skeleton.index("LeftLowerArm")
    assert "joint-unseen" in {f.code for f in findings if f.subject == "LeftLowerArm"}
    bent = 2.0 * np.arccos(np.abs(motion.wxyz[100, elbow, 0]))
    assert bent < 0.2
    assert posed.turns(motion)[:, elbow].max() < 0.2


def test_both_ways_agree_where_an_arm_is_out_of_sight(walk):
    skeleton, take = walk
    take = take.cut(0, 12)
    gone = posed.on(take, skeleton, "LeftLowerArm", "LeftHand")
    direct, simulated = both(skeleton, posed.without(take, slice(4, 8), gone))
    assert apart(direct.motion, simulated.motion) < 5e-5


def test_limits_stop_both_ways_alike(kick):
    """Knees that may bend by 10 degrees at most."""
    skeleton, take = kick
    take = take.cut(0, 25)
    skeleton = with_human_limits(skeleton)
    limits = skeleton.limits.copy()
    knee = skeleton.index("RightLowerLeg")
    limits[knee] = np.radians([[-10, 10], [-10, 10], [-10, 10]])
    tight = replace(skeleton, limits=limits)
    direct, simulated = both(tight, take, pull="all", torque=1.0)
    angle = geometry.quat_log(direct.motion.wxyz[:, knee])
    assert np.linalg.norm(angle, axis=1).max() > np.radians(9.9)
    assert np.abs(angle).max() < np.radians(16.0)
    assert apart(direct.motion, simulated.motion) < 5e-5


@pytest.mark.parametrize(
    "options",
    [{}, {"shared_within": 0.06}, {"weights": {"LeftHand": 50.0}}, {"pull": "all"}],
)
def test_many_stops_at_once_do_not_swing(options):
    """Exercises turn arms and hands as far as they go, and noise pushes beyond."""
    skeleton, take = posed.recorded(motion="exercise", seconds=0.3, noise=2e-3)
    direct, simulated = both(skeleton, take, **options)
    assert apart(direct.motion, simulated.motion) < 5e-5
    assert not simulated.restless.any()


def test_any_figure_settles_in_steps_of_a_hundredth_of_a_second():
    """Paws and tails weigh next to nothing."""
    figure = synth.quadruped()
    skeleton, take = posed.recorded(
        figure, markers=5, sensors=True, seconds=0.2, noise=2e-3, turn_noise=5e-3
    )
    direct, simulated = both(skeleton, take)
    assert apart(direct.motion, simulated.motion) < 5e-5
    assert simulated.steps.max() < 300


def test_a_skeleton_of_another_size_is_told_and_stays_whole(walk):
    skeleton, take = walk
    take = take.cut(0, 30)
    small = replace(
        skeleton,
        offset=0.8 * skeleton.offset,
        marker_offset=0.8 * skeleton.marker_offset,
    )
    motion, findings = fit_pose(small, take, method="physics")
    assert np.isfinite(motion.wxyz).all()
    assert {f.code for f in findings} & {"pose-lost", "marker-stray"}
    hips = np.linalg.norm(motion.T_world_root[:, :2, 3] - take.points[:, :, :2].mean(1))
    assert hips / np.sqrt(30) < 0.15


def test_what_does_not_come_to_rest_is_told(walk):
    skeleton, take = walk
    take = take.cut(0, 3)
    for settle, steps in (("direct", 1), ("simulation", 5)):
        _, findings = fit_pose(
            skeleton, take, method="physics", settle=settle, steps=steps
        )
        (found,) = (f for f in findings if f.code == "pose-restless")
        assert found.frames == (0, 2)


def test_a_figure_thrown_apart_is_told_and_leaves_no_file(walk, tmp_path, monkeypatch):
    """Damping too strong for steps of a hundredth of a second."""
    pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    skeleton, take = walk
    motion, findings = fit_pose(
        skeleton, take.cut(0, 3), method="physics", settle="simulation", damping=1e4
    )
    (found,) = (f for f in findings if f.code == "pose-restless")
    assert found.frames == (0, 2)
    assert off_truth(motion, take).max() < 0.1
    assert not list(tmp_path.iterdir())


def test_frames_without_anything_keep_the_figure_whole(walk):
    skeleton, take = walk
    take = posed.without(take.cut(0, 30), slice(10, 14), slice(None))
    for settle in ("direct", "simulation"):
        motion, findings = fit_pose(skeleton, take, method="physics", settle=settle)
        assert np.isfinite(motion.T_world_root).all()
        (found,) = (f for f in findings if f.code == "pose-unseen")
        assert found.frames == (10, 13)
        assert off_truth(motion, take).max() < 0.1


def test_without_mujoco_the_energy_still_does(walk, monkeypatch):
    skeleton, take = walk
    take = take.cut(0, 3)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtraError, match=r'pip install "marey\[physics\]"'):
        fit.fit(skeleton, take, settle="simulation")
    assert not fit.fit(skeleton, take).restless.any()


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
        fit.fit(*walk, **option)


def test_holds_are_checked(walk):
    with pytest.raises(OptionError, match="strength"):
        Hold(joint="LeftHand", to=np.zeros(3), strength=0.0)
    with pytest.raises(OptionError, match="LeftHand"):
        Hold(joint="LeftHand", to=np.array([np.nan, 0.0, 0.0]))
    with pytest.raises(DataError, match="Tail"):
        fit.fit(*walk, holds=(Hold(joint="Tail", to=np.zeros(3)),))


def test_the_table_says_how_markers_are_met(walk):
    found = fit.fit(*walk)
    said = dict(found.table().rows)
    assert said["markers off their places, mean mm"] == pytest.approx(
        1e3 * found.away.mean(), abs=1e-3
    )
    assert said["frames not at rest"] == 0


def test_of_sensors_alone_no_spring_of_a_marker_is_off():
    """There is none: what markers do is unknown, and nothing warns."""
    skeleton, take = posed.recorded(markers="none", sensors=True, seconds=0.2)
    said = dict(fit.fit(skeleton, take).table().rows)
    assert said["springs off, share"] == 0.0
    assert np.isnan(said["markers off their places, mean mm"])
    assert np.isfinite(said["energy of springs, mean mJ"])
