"""Calibration of people: landmarks, shoulders, and the errors of bones."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import build_skeleton, fit_joints, segment, synth
from marey.anatomy.landmarks import find_landmarks
from marey.calibration import CalibrateOptions, calibrate
from marey.calibration.init.generic import SHOULDER_GIRDLE
from marey.calibration.init.joint_regression import BELOW_MALLEOLI_M, regress_joints
from marey.calibration.problem import build_problem
from marey.numerics import geometry
from marey.papers.measures import joint_errors
from marey.take import Take
from marey.topology import tree_from_parents

BONES = ("LowerLeg", "Foot", "LowerArm", "Hand")
MILLIMETRE = 1e-3


def initial_skeleton(take):
    """The skeleton of the stages before the calibration."""
    bodies = segment(take)
    joints = fit_joints(bodies)
    return build_skeleton(
        bodies, joints, tree_from_parents(bodies.parents, bodies.names, joints)
    )


def errors(found, true, names=BONES):
    """Errors of bone lengths and of the distance of the hips, in metres."""
    sides = [side + name for name in names for side in ("Left", "Right")]
    bones = [found.lengths[found.index(n)] - true.lengths[true.index(n)] for n in sides]
    return np.array([*bones, hip_distance(found) - hip_distance(true)])


def hip_distance(skeleton):
    position = skeleton.rest()[:, :3, 3]
    left, right = (skeleton.index(f"{side}UpperLeg") for side in ("Left", "Right"))
    return np.linalg.norm(position[left] - position[right])


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


def walking_person(seed):
    """A person walking, with white noise only: figure, take and initial skeleton."""
    figure = synth.human(1.8, seed=seed)
    take = figure.record(
        "walk", seconds=4.0, rate=60.0, markers="sparse41", noise=5e-4, seed=seed
    )
    return figure, take, initial_skeleton(take)


@pytest.fixture(scope="module")
def walker():
    return walking_person(3)


@pytest.fixture(scope="module")
def soft_walker():
    """A person walking, with soft-tissue artefact of a centimetre."""
    figure = synth.human(1.7, seed=4)
    take = figure.record(
        "walk",
        seconds=4.0,
        rate=60.0,
        markers="sparse41",
        noise=5e-4,
        soft_tissue=0.010,
        seed=4,
    )
    start = initial_skeleton(take)
    return figure, take, start, calibrate(start, take)


def test_bones_are_exact_to_millimetres_without_soft_tissue(walker):
    figure, take, start = walker
    found = calibrate(start, take)
    assert rms(errors(found.skeleton, figure.skeleton)) < 3.0 * MILLIMETRE
    assert found.white_share == 1.0


def move_knees(take, motion):
    """The take with knees whose centres move with sine and cosine of the flexion.

    Returns it with the mean squared motion along the bone above, by side.
    """
    truth = take.truth
    skeleton, R = truth.skeleton, truth.motion.T_world_joint()[..., :3, :3]
    points, along = take.points.copy(), []
    for side in ("Left", "Right"):
        knee, foot = (skeleton.index(side + name) for name in ("LowerLeg", "Foot"))
        flexion = np.linalg.norm(geometry.quat_log(truth.motion.wxyz[:, knee]), axis=1)
        angle = np.stack([np.sin(flexion), np.cos(flexion)], axis=1)
        moved = (angle - angle.mean(axis=0)) @ motion
        below = np.isin(truth.marker_joint, [knee, foot])
        world = np.einsum("fij,fj->fi", R[:, skeleton.parent[knee]], moved)
        points[:, below] += world[:, None]
        bone = skeleton.offset[knee] / skeleton.lengths[knee]
        along.append(np.mean((moved @ bone) ** 2))
    return replace(take, points=points), np.array(along)


def test_knees_whose_centres_move_are_found_at_their_mean():
    """Bones that end there are no more certain than the motion of the centre."""
    motion, error = np.array([[6.0, 0.0, 4.0], [3.0, 2.0, -6.0]]) * MILLIMETRE, []
    for seed in range(3, 7):
        figure, take, start = walking_person(seed)
        moving, square = move_knees(take, motion)
        found = calibrate(start, moving).skeleton
        for side, along in zip(("Left", "Right"), square, strict=True):
            for name in (side + "LowerLeg", side + "Foot"):
                joint, true = found.index(name), figure.skeleton.index(name)
                error.append(found.lengths[joint] - figure.skeleton.lengths[true])
                assert found.length_sd[joint] > np.sqrt(along)
    assert rms(error) < 2.0 * MILLIMETRE


def test_calibration_halves_the_errors_of_bones_with_soft_tissue(soft_walker):
    figure, _, start, found = soft_walker
    before = rms(errors(start, figure.skeleton))
    after = rms(errors(found.skeleton, figure.skeleton))
    assert after < 0.5 * before
    assert found.white_share < 0.3


def test_leg_lengths_are_within_three_standard_deviations(soft_walker):
    figure, found = soft_walker[0], soft_walker[-1].skeleton
    for name in ("LeftLowerLeg", "RightLowerLeg", "LeftFoot", "RightFoot"):
        error = found.lengths[found.index(name)]
        error -= figure.skeleton.lengths[figure.skeleton.index(name)]
        assert abs(error) < 3.0 * found.length_sd[found.index(name)]


def test_a_person_rests_in_a_t_pose_on_the_ground(soft_walker):
    found = soft_walker[-1].skeleton
    position = found.rest()[:, :3, 3]

    def direction(name):
        return found.offset[found.index(name)] / found.lengths[found.index(name)]

    assert direction("LeftLowerArm") == pytest.approx([0, 1, 0], abs=1e-9)
    assert direction("RightHand") == pytest.approx([0, -1, 0], abs=1e-9)
    assert direction("LeftFoot") == pytest.approx([0, 0, -1], abs=1e-9)
    markers = position[found.marker_joint] + found.marker_offset
    assert min(position[:, 2].min(), markers[:, 2].min()) == pytest.approx(
        0.0, abs=1e-9
    )
    assert found.offset[0, :2] == pytest.approx([0.0, 0.0], abs=1e-12)
    children = found.offset[found.parent == 0]
    assert children.mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-9)


@pytest.mark.parametrize(
    "rotation", [[0, 0, 2.0], [1.5707963, 0, 0], [0, 3.14159265, 0]]
)
def test_the_vertical_direction_does_not_matter(soft_walker, rotation):
    _, take, start, found = soft_walker
    R = geometry.rotation_exp(np.array(rotation, dtype=float))
    T = geometry.transform(R, np.array([3.0, -2.0, 1.0]))
    moved = replace(take, points=geometry.apply(T, take.points))
    one, two = found.skeleton, calibrate(start, moved).skeleton
    assert two.lengths == pytest.approx(one.lengths, abs=1e-4)


def test_feet_are_level_at_rest_whatever_their_pose_in_single_frames(soft_walker):
    _, take, _, found = soft_walker
    true = take.true_skeleton
    for side in "LR":
        slopes = []
        for one in (found.skeleton, true):
            heel, toe = (one.marker_labels.index(side + m) for m in ("HEE", "TOE"))
            x, y, z = one.marker_offset[toe] - one.marker_offset[heel]
            slopes.append(np.degrees(np.arctan2(z, np.hypot(x, y))))
        assert slopes[0] == pytest.approx(slopes[1], abs=3.0)


def test_the_initial_skeleton_hardly_matters(soft_walker):
    _, take, start, found = soft_walker
    rng = np.random.default_rng(1)
    perturbed = replace(
        start,
        offset=start.offset + 0.05 * rng.normal(size=start.offset.shape),
        marker_offset=start.marker_offset
        + 0.02 * rng.normal(size=start.marker_offset.shape),
    )
    one, two = found.skeleton, calibrate(perturbed, take).skeleton
    assert rms(errors(two, one)) < 0.5 * MILLIMETRE


def test_shoulders_follow_the_option(soft_walker):
    _, take, start, _ = soft_walker
    moving = calibrate(start, take, options=CalibrateOptions(shoulders="move"))
    fixed = calibrate(start, take, options=CalibrateOptions(shoulders="fixed"))
    found = moving.skeleton
    assert found.names[found.parent[found.index("LeftUpperArm")]] == "LeftShoulder"
    assert found.names[found.parent[found.index("LeftShoulder")]] == "Chest"
    label = found.marker_labels.index("LSHO")
    assert found.names[found.marker_joint[label]] == "LeftShoulder"
    assert "LeftShoulder" not in fixed.skeleton.names
    assert "shoulders-move" in [finding.code for finding in moving.findings]
    assert (found.parent < np.arange(found.n_joints)).all()


def test_shoulders_that_shrug_are_detected():
    figure = synth.human(1.75, seed=5)
    take = figure.record(
        "kick_punch", seconds=4.0, rate=60.0, markers="sparse41", noise=5e-4, seed=5
    )
    start = initial_skeleton(take)
    shrug = 0.03 * np.sin(np.linspace(0.0, 12.0, take.n_frames))
    up = np.zeros_like(take.points)
    arms = ("SHO", "UPA", "ELB", "FRM", "WRA", "WRB", "FIN")
    for k, label in enumerate(take.labels):
        if label[1:] in arms:
            up[:, k, 2] = shrug * (1.0 if label[0] == "L" else -1.0)
    shrugged = calibrate(start, replace(take, points=take.points + up)).skeleton
    plain = calibrate(start, take).skeleton
    assert "LeftShoulder" in shrugged.names
    assert "LeftShoulder" not in plain.names


@pytest.mark.parametrize(("lasts", "moves"), [(True, True), (False, False)])
def test_shoulders_move_where_acromia_do_and_not_by_noise(lasts, moves):
    """Both displace acromia by 3 mm; noise differs in the next frame."""
    figure = synth.human(1.75, seed=8)
    take = figure.record("walk", seconds=3.0, rate=60.0, markers="sparse41", seed=8)
    start, rng = initial_skeleton(take), np.random.default_rng(8)
    white = rng.normal(size=(take.n_frames, 2, 3))
    phase = np.linspace(0.0, 12.0, take.n_frames)[:, None, None] + white[:1]
    points = take.points.copy()
    acromia = [take.labels.index(label) for label in ("LSHO", "RSHO")]
    points[:, acromia] += 3.0 * MILLIMETRE * (np.sin(phase) if lasts else white)
    found = calibrate(start, replace(take, points=points)).skeleton
    assert ("LeftShoulder" in found.names) == moves


def test_an_ankle_without_malleoli_is_found_from_heel_and_toe(walker):
    figure, take, _ = walker
    keep = [k for k, label in enumerate(take.labels) if label[1:] != "ANK"]
    found = calibrate(initial_skeleton(take.select(keep)), take.select(keep))
    assert {"LeftFoot", "RightFoot"} <= {*found.landmark_joints}
    assert rms(errors(found.skeleton, figure.skeleton, names=("Foot",))) < 0.015


def test_an_ankle_begins_ahead_of_the_heel_marker_and_above_it(walker):
    """By as much as in 11 people of six laboratories: 53 to 84, and 32 to 49 mm.

    That is the middle of both malleoli, and the centre is as far below it as theirs.
    """
    _, take, _ = walker
    keep = [k for k, label in enumerate(take.labels) if label[1:] != "ANK"]
    problem = build_problem(
        initial_skeleton(take.select(keep)), [take.select(keep)], [0]
    )
    model, points = problem.model, problem.every_position(1)
    landmarks = find_landmarks(model.labels, model.marker_segment_names)
    frame = np.flatnonzero(np.isfinite(points).all(axis=(1, 2)))[0]
    pose = regress_joints(model, landmarks, points, points[frame])
    for side in "LR":
        heel, toe = (
            points[frame, model.labels.index(f"{side}{name}")]
            for name in ("HEE", "TOE")
        )
        forward = (toe - heel) / np.linalg.norm(toe - heel)
        foot = {"L": "Left", "R": "Right"}[side] + "Foot"
        offset = pose.joints[foot].position - heel
        ahead = offset @ forward
        assert 0.053 < ahead < 0.084
        above = np.linalg.norm(offset - ahead * forward) + BELOW_MALLEOLI_M
        assert 0.032 < above < 0.049


def test_a_lower_body_alone_is_calibrated(walker):
    figure, take, _ = walker
    legs = ("FWT", "BWT", "THI", "KNE", "SHN", "ANK", "HEE", "TOE", "MT5")
    keep = [k for k, label in enumerate(take.labels) if label[1:] in legs]
    take = take.select(keep)
    found = calibrate(initial_skeleton(take), take).skeleton
    error = errors(found, figure.skeleton, names=("LowerLeg", "Foot"))
    assert rms(error) < 3.0 * MILLIMETRE
    assert "Chest" not in found.names


def test_a_person_without_an_upright_frame_is_calibrated():
    figure = synth.human(1.8, seed=6)
    take = figure.record(
        "exercise", seconds=4.0, rate=60.0, markers="sparse41", noise=5e-4, seed=6
    )
    start = initial_skeleton(take)
    # Only frames with a bent knee are left.
    hip, knee, ankle = (
        take.points[:, take.labels.index(label)] for label in ("LFWT", "LKNE", "LANK")
    )
    up, down = hip - knee, ankle - knee
    bent = np.sum(up * down, axis=1) / np.linalg.norm(up, axis=1)
    angle = np.arccos(bent / np.linalg.norm(down, axis=1))
    keep = np.flatnonzero(angle < np.quantile(angle, 0.5))
    crouched = Take(rate=take.rate, points=take.points[keep], labels=take.labels)
    found = calibrate(start, crouched).skeleton
    assert rms(errors(found, figure.skeleton)) < 8.0 * MILLIMETRE


def test_a_person_with_unknown_labels_is_calibrated(walker):
    figure, take, start = walker
    names = {label: f"x{k}" for k, label in enumerate(start.marker_labels)}
    start = replace(start, marker_labels=tuple(names.values()))
    take = replace(take, labels=tuple(names.get(x, x) for x in take.full_labels))
    found = calibrate(start, take)
    assert np.isfinite(found.skeleton.offset).all()
    error = errors(found.skeleton, figure.skeleton, names=("LowerLeg",))
    assert rms(error) < 30.0 * MILLIMETRE


def test_exact_markers_without_labels_do_not_determine_knees_that_move():
    """A centre that moves by millimetres feigns another place of the knee."""
    figure = synth.human(1.8, seed=3)
    take = figure.record("walk", seconds=4.0, rate=60.0, markers="sparse41", seed=3)
    motion = np.array([[6.0, 0.0, 4.0], [3.0, 2.0, -6.0]]) * MILLIMETRE
    moving, _ = move_knees(take, motion)
    start = initial_skeleton(take)
    names = {label: f"x{k}" for k, label in enumerate(start.marker_labels)}
    start = replace(start, marker_labels=tuple(names.values()))
    moving = replace(moving, labels=tuple(names.get(x, x) for x in take.full_labels))
    found = calibrate(start, moving).skeleton
    z = [
        (found.lengths[found.index(name)] - true) / found.length_sd[found.index(name)]
        for name, true in zip(
            figure.skeleton.names, figure.skeleton.lengths, strict=True
        )
        if name.endswith(("LowerLeg", "Foot"))
    ]
    assert rms(z) < 2.0


def test_known_bones_are_kept_in_another_session(soft_walker):
    _, take, _, found = soft_walker
    displacement = 0.01 * np.random.default_rng(7).normal(
        size=found.skeleton.marker_offset.shape
    )
    moved = replace(
        found.skeleton, marker_offset=found.skeleton.marker_offset + displacement
    )
    kept = calibrate(moved, take, options=CalibrateOptions(keep_bones=True))
    is_bone = ~np.isin(found.skeleton.names, SHOULDER_GIRDLE)
    assert (kept.skeleton.offset == found.skeleton.offset)[is_bone].all()
    assert kept.rms < 1.01 * found.rms


@pytest.mark.parametrize("seed", [20, 21])
def test_markers_attached_again_bring_joints_nearer_the_truth(seed):
    """A short take does not determine how hands lie between their markers."""
    figure = synth.human(seed=seed)
    day = {"rate": 30.0, "markers": "set53"}
    before = figure.record("still", seconds=0.1, seed=seed, **day)
    after = figure.record("exercise", seconds=5.0, seed=seed + 9, noise=1e-3, **day)
    known = before.true_skeleton
    kept = calibrate(known, after, options=CalibrateOptions(keep_bones=True)).skeleton
    error = [
        rms(joint_errors(marey.solve_pose(skeleton, after), after))
        for skeleton in (known, kept)
    ]
    assert error[1] < error[0]


def test_coincident_landmarks_give_a_finite_skeleton(walker):
    _, take, start = walker
    points = take.points.copy()
    for label in ("LFWT", "RFWT", "LBWT", "RBWT"):
        points[:, take.labels.index(label)] = points[:, take.labels.index("LFWT")]
    found = calibrate(start, replace(take, points=points))
    assert np.isfinite(found.skeleton.offset).all()


def test_an_animal_is_not_calibrated_as_a_person():
    figure = synth.quadruped()
    take = figure.record(seconds=3.0, rate=60.0, markers=6, noise=2e-4)
    start = take.true_skeleton
    found = calibrate(start, take).skeleton
    assert found.kind == start.kind
    inner = start.parent > 0
    assert rms(found.lengths[inner] - start.lengths[inner]) < 3.0 * MILLIMETRE


def test_what_is_never_seen_stays_on_its_joint_when_clavicles_are_inserted(walker):
    _, take, start = walker
    foot = start.index("RightFoot")
    unseen = replace(
        start,
        marker_labels=(*start.marker_labels, "lost"),
        marker_joint=np.append(start.marker_joint, foot),
        marker_offset=np.concatenate([start.marker_offset, np.ones((1, 3))]),
        sensor_names=("inertial",),
        sensor_joint=np.array([foot]),
        T_joint_sensor=np.eye(4)[None],
    )
    found = calibrate(unseen, take, options=CalibrateOptions(shoulders="move")).skeleton
    assert "LeftShoulder" in found.names
    assert found.names[found.sensor_joint[0]] == "RightFoot"
    assert found.names[found.marker_joint[-1]] == "RightFoot"
    assert found.T_joint_sensor[0] == pytest.approx(np.eye(4))


# --- knees without landmarks ----------------------------------------------------------


def test_knees_of_plates_are_between_hips_and_ankles(rng):
    """Plates on thighs and shanks show the axis of a knee, and no place along it."""
    take = synth.human(1.75, seed=2).record(
        "kick_punch", seconds=3.0, rate=60.0, markers="set53", noise=5e-4, seed=2
    )
    truth, T = take.truth, take.truth.motion.T_world_joint()
    on_legs = ("KNE", "KNI", "THI", "SHN", "ANK")
    kept = [k for k, x in enumerate(take.labels) if not x[1:].startswith(on_legs)]
    points, labels = [take.points[:, kept]], [take.labels[k] for k in kept]
    for side in ("Left", "Right"):
        for bone, below, name in (
            ("UpperLeg", "LowerLeg", "TH"),
            ("LowerLeg", "Foot", "SH"),
        ):
            skeleton = truth.skeleton
            middle = 0.5 * skeleton.offset[skeleton.index(side + below)]
            plate = middle + rng.normal(size=(4, 3)) * 0.04
            plate[:, 1] += 0.07 if side == "Left" else -0.07
            moved = geometry.apply(T[:, [skeleton.index(side + bone)] * 4], plate)
            points.append(moved + rng.normal(size=moved.shape) * 5e-4)
            labels += [f"{side[0]}{name}{n}" for n in range(1, 5)]
    plates = Take(
        rate=take.rate, points=np.concatenate(points, axis=1), labels=tuple(labels)
    )
    found = calibrate(initial_skeleton(plates), plates)
    assert "LeftLowerLeg" not in found.landmark_joints
    motion = marey.solve_pose(found.skeleton, plates, method="gauss_newton")
    for side in ("Left", "Right"):
        knee, wanted = (
            one.T_world_joint()[:, one.skeleton.index(f"{side}LowerLeg"), :3, 3]
            for one in (motion, truth.motion)
        )
        assert rms(geometry.lengths(knee - wanted)) < 20.0 * MILLIMETRE
