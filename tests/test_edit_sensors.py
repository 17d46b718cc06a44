"""Fine calibration by hand: what sits on which body, how, and since when."""

from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import Edit, EditSession, synth
from marey.cli import main
from marey.numerics import geometry

KNEE, FOOT, TWIN = "LeftLowerLeg", "LeftFoot", "Twin"
SLIPPED, REST = 110, slice(120, 131)
"""First frame after a slip, and frames in which the performer stands in rest pose."""

SLIP = geometry.transform(
    geometry.rotation_exp(np.array([0.2, -0.3, 0.5])), np.array([0.03, -0.02, 0.01])
)


def record(seed=1, **more):
    how = {"markers": "none", "sensors": True, "rate": 50.0, "seconds": 5.0} | more
    return synth.human().record("exercise", seed=seed, **how)


def solve(takes, edits=(), **more):
    """The solution of exact data, in which nothing is to be cleaned."""
    return marey.solve(takes, clean=False, edits=edits, **more)


def open_session(take):
    return EditSession(take, options=marey.SolveOptions(clean=False))


def add_twin(take):
    """The take with a second sensor that sits on the foot, turned and set apart."""
    twin = take.T_world_sensor[:, take.sensor_names.index(FOOT)] @ SLIP
    return replace(
        take,
        T_world_sensor=np.concatenate([take.T_world_sensor, twin[:, None]], axis=1),
        sensor_names=(*take.sensor_names, TWIN),
    )


@pytest.fixture(scope="module")
def take():
    """A performer with 15 exact sensors."""
    return record()


@pytest.fixture(scope="module")
def session(take):
    return open_session(take)


@pytest.fixture(scope="module")
def standing(session, take):
    """The take and motion of the same performer, who also stands in the rest pose."""
    motion = session.solution.motion
    wxyz, T_world_root = motion.wxyz.copy(), motion.T_world_root.copy()
    wxyz[REST] = [1.0, 0.0, 0.0, 0.0]
    heading = geometry.rotation_exp(np.array([0.0, 0.0, 0.7]))
    T_world_root[REST] = geometry.transform(heading, np.array([0.2, 0.1, 0.95]))
    wxyz[REST, 0] = geometry.quat_from_matrix(heading)
    motion = replace(motion, T_world_root=T_world_root, wxyz=wxyz)
    skeleton = motion.skeleton
    T = motion.T_world_joint()[:, skeleton.sensor_joint] @ skeleton.T_joint_sensor
    column = [skeleton.sensor_names.index(name) for name in take.sensor_names]
    return replace(take, T_world_sensor=T[:, column]), motion


@pytest.fixture(scope="module")
def mixed():
    """A session of a performer with markers and a sensor on each of two bodies."""
    take = record(markers="sparse41", seconds=2.0, noise=1e-3)
    kept = [take.sensor_names.index(name) for name in ("Hips", "RightLowerArm")]
    sensors = take.T_world_sensor[:, kept]
    names = tuple(take.sensor_names[k] for k in kept)
    return open_session(replace(take, T_world_sensor=sensors, sensor_names=names))


def slip(take, sensor=FOOT, first=SLIPPED):
    T = take.T_world_sensor.copy()
    T[first:, take.sensor_names.index(sensor)] @= SLIP
    return replace(take, T_world_sensor=T)


def null_model(solution, sensor=FOOT):
    skeleton = solution.skeleton
    return skeleton.T_joint_sensor[skeleton.sensor_names.index(sensor)]


def with_edits(session, *edits):
    """The solution with edits, of which the session keeps none."""
    for edit in edits:
        session.keep(session.attempt(edit))
    solution = session.solution
    for _ in edits:
        session.undo()
    return solution


def joints_of(motion, names):
    """Poses of joints by name."""
    return motion.T_world_joint()[:, [motion.skeleton.index(name) for name in names]]


def positions_of(motion):
    """Positions of the joints that the sensors determine: not those of bones' ends."""
    skeleton = motion.skeleton
    names = [
        n for n, seen in zip(skeleton.names, skeleton.observed, strict=True) if seen
    ]
    return joints_of(motion, sorted(n for n in names if "_end" not in n))[..., :3, 3]


def assert_same(one, other, atol=0.0):
    assert one.bodies[0].names == other.bodies[0].names
    for a, b in (
        (one.skeleton.offset, other.skeleton.offset),
        (one.skeleton.T_joint_sensor, other.skeleton.T_joint_sensor),
        (one.motion.wxyz, other.motion.wxyz),
        (one.motion.T_world_root, other.motion.T_world_root),
        (one.take.T_world_sensor, other.take.T_world_sensor),
        (one.bodies[0].T_world_body, other.bodies[0].T_world_body),
    ):
        np.testing.assert_allclose(a, b, rtol=0.0, atol=atol)


# --- which sensors make a body --------------------------------------------------------


def test_sensors_merged_and_split_again_change_nothing(session):
    merge = Edit(do="merge", bodies=(KNEE, FOOT))
    split = Edit(do="split", body=KNEE, sensors=(FOOT,), name=FOOT)
    merged = with_edits(session, merge)
    assert merged.bodies[0].names == tuple(
        name for name in session.solution.bodies[0].names if name != FOOT
    )
    assert_same(with_edits(session, merge, split), session.solution)


@pytest.mark.parametrize("cuts", [[(0, 250)], [(0, 150), (100, 250)]], ids=len)
def test_two_sensors_on_one_bone_are_exact_once_merged(take, session, cuts):
    takes = [add_twin(take).cut(*frames) for frames in cuts]
    solution = solve(takes, edits=(Edit(do="merge", bodies=(FOOT, TWIN)),))
    single = positions_of(session.solution.motion)
    for (first, last), motion in zip(cuts, solution.subjects[0].motions, strict=True):
        np.testing.assert_allclose(positions_of(motion), single[first:last], atol=1e-9)
    assert EditSession(solution).score.sensor_rms < 1e-9


def test_a_sensor_moves_between_bodies_of_markers_and_back(mixed):
    there = Edit(do="move-sensor", sensor="RightLowerArm", to="RightUpperArm")
    back = Edit(do="move-sensor", sensor="RightLowerArm", to="RightLowerArm")
    moved = with_edits(mixed, there)
    bodies = moved.bodies[0]
    names = [bodies.names[body] for body in bodies.sensor_body]
    assert names == ["Hips", "RightUpperArm"]
    assert_same(with_edits(mixed, there, back), mixed.solution)


def test_bodies_of_markers_and_sensors_are_merged_and_split(mixed):
    split = Edit(do="split", body="Hips", sensors=("Hips",), name="Box")
    bodies = mixed.attempt(split).solution.bodies[0]
    box = bodies.names.index("Box")
    assert not bodies.shared[:, box].any()
    np.testing.assert_array_equal(
        bodies.T_world_body[:, box], bodies.take.T_world_sensor[:, 0]
    )
    merge = Edit(do="merge", bodies=("Hips", "Box"))
    assert_same(with_edits(mixed, split, merge), mixed.solution)
    off = mixed.attempt(Edit(do="move-sensor", sensor="Hips", to="")).solution
    assert off.bodies[0].sensor_names == ("RightLowerArm",)
    assert off.skeleton.sensor_names == ("RightLowerArm",)


# --- how a sensor sits on its bone ----------------------------------------------------


def test_a_sensor_moved_on_its_bone_moves_the_whole_figure_by_its_share(session):
    """Playback takes rotations from the sensors, and the mean of their positions."""
    before, d = session.solution, np.array([0.02, -0.01, 0.03])
    place = Edit(
        do="place-sensor", sensor=FOOT, offset=tuple(null_model(before)[:3, 3] + d)
    )
    after = session.attempt(place).solution
    np.testing.assert_array_equal(after.take.T_world_sensor, before.take.T_world_sensor)
    measured = before.skeleton.rotates
    np.testing.assert_array_equal(
        after.motion.wxyz[:, measured], before.motion.wxyz[:, measured]
    )
    R = joints_of(before.motion, [FOOT])[:, 0, :3, :3]
    shift = after.motion.T_world_root[:, :3, 3] - before.motion.T_world_root[:, :3, 3]
    n_sensors = len(before.skeleton.sensor_names)
    np.testing.assert_allclose(shift, -(R @ d) / n_sensors, atol=1e-12)
    back = Edit(do="place-sensor", sensor=FOOT, offset=tuple(null_model(before)[:3, 3]))
    assert_same(with_edits(session, place, back), before)


def test_a_sensor_turned_on_its_bone_turns_the_bone_the_other_way(session):
    before = session.solution
    R_old, R_turn = null_model(before)[:3, :3], SLIP[:3, :3]
    turn = tuple(geometry.rotation_log(R_old @ R_turn))
    after = session.attempt(
        Edit(do="place-sensor", sensor=FOOT, rotation=turn)
    ).solution
    R_before, R_after = (
        joints_of(one.motion, [KNEE, FOOT])[..., :3, :3] for one in (before, after)
    )
    np.testing.assert_allclose(R_after[:, 0], R_before[:, 0], atol=1e-12)
    opposite = R_old @ R_turn.T @ R_old.T
    np.testing.assert_allclose(R_after[:, 1], R_before[:, 1] @ opposite, atol=1e-12)


def test_a_place_by_hand_holds_from_its_frame_on(take, session):
    known = marey.SolveOptions(clean=False, skeleton=session.solution.skeleton)
    session = EditSession(take, options=known)
    before = session.solution
    offset = tuple(null_model(before)[:3, 3] + [0.02, 0.0, 0.0])
    edit = {"do": "place-sensor", "sensor": FOOT, "offset": offset}
    always, later = (
        positions_of(session.attempt(edit | more).solution.motion)
        for more in ({}, {"since": SLIPPED})
    )
    first = positions_of(before.motion)
    np.testing.assert_allclose(later[:SLIPPED], first[:SLIPPED], atol=1e-9)
    np.testing.assert_allclose(later[SLIPPED:], always[SLIPPED:], atol=1e-9)
    assert np.abs(later[SLIPPED:] - first[SLIPPED:]).max() > 1e-3


# --- null models ----------------------------------------------------------------------


RETAKE = Edit(
    do="null-model",
    first=REST.start,
    last=REST.stop - 1,
    since=SLIPPED,
    sensors=(FOOT,),
)


def test_a_null_model_taken_in_mid_take_undoes_a_slip(standing):
    clean, truth = standing
    take, skeleton = slip(clean), truth.skeleton
    solution = solve(take, edits=(RETAKE,), skeleton=skeleton)
    names = [KNEE, FOOT]
    T = joints_of(truth, names)
    np.testing.assert_allclose(joints_of(solution.motion, names), T, atol=1e-6)
    repaired = solution.take.T_world_sensor
    np.testing.assert_allclose(repaired, clean.T_world_sensor, atol=1e-6)
    late = solve(take, edits=(replace(RETAKE, since=-1),), skeleton=skeleton)
    between, after = slice(SLIPPED, REST.start), slice(REST.start, None)
    error = np.abs(joints_of(late.motion, names) - T).max(axis=(1, 2, 3))
    assert error[between].min() > 0.01
    assert error[after].max() < 1e-6


def test_a_null_model_of_a_later_take_leaves_the_takes_before_alone(standing):
    """The sensor slipped between two takes, and a third follows."""
    clean, truth = standing
    cuts = ((0, SLIPPED), (SLIPPED, 180), (180, 250))
    takes = [slip(clean).cut(*frames) for frames in cuts]
    first = REST.start - SLIPPED
    retake = replace(RETAKE, first=first, last=first + 10, since=0, take=1)
    solution = solve(takes, edits=(retake,), skeleton=truth.skeleton)
    for frames, take in zip(cuts, solution.takes, strict=True):
        true = clean.T_world_sensor[slice(*frames)]
        np.testing.assert_allclose(take.T_world_sensor, true, atol=1e-6)
    np.testing.assert_array_equal(
        solution.takes[0].T_world_sensor, takes[0].T_world_sensor
    )


def test_a_slip_is_undone_on_a_skeleton_that_is_found(standing):
    """The rest pose of a limb is found with it, within a degree here."""
    clean, _ = standing
    solution = solve(slip(clean), edits=(RETAKE,))
    foot = clean.sensor_names.index(FOOT)
    T_slip = (
        geometry.inverse(clean.T_world_sensor[SLIPPED:, foot])
        @ solution.take.T_world_sensor[SLIPPED:, foot]
    )
    turn = np.linalg.norm(geometry.rotation_log(T_slip[:, :3, :3]), axis=1)
    assert turn.max() < np.radians(1.0)
    assert np.abs(T_slip[:, :3, 3]).max() < 2e-3


@pytest.mark.parametrize("sensors", [(), (FOOT, "Hips"), (KNEE, FOOT)], ids=str)
def test_a_null_model_of_the_true_rest_pose_changes_nothing(standing, sensors):
    take, truth = standing
    plain = solve(take, skeleton=truth.skeleton)
    retake = replace(RETAKE, since=0, sensors=sensors)
    retaken = solve(take, edits=(retake,), skeleton=truth.skeleton)
    assert_same(retaken, plain, atol=1e-6)


def test_all_null_models_are_those_of_a_zero_pose(standing):
    """Sensors that were all put on anew after a break turn as the rest pose asks."""
    clean, truth = standing
    T = clean.T_world_sensor.copy()
    T[SLIPPED:, :, :3, :3] = T[SLIPPED:, :, :3, :3] @ SLIP[:3, :3]
    take = replace(clean, T_world_sensor=T)
    retake = replace(RETAKE, sensors=())
    solution = solve(take, edits=(retake,), skeleton=truth.skeleton)
    np.testing.assert_allclose(
        solution.take.T_world_sensor, clean.T_world_sensor, atol=1e-6
    )


# --- place and axis of a joint --------------------------------------------------------


def test_a_joint_at_its_true_place_leaves_no_residual(session):
    skeleton = session.solution.skeleton
    true = skeleton.offset[skeleton.index(KNEE)]
    wrong = Edit(
        do="place-joint", joint=KNEE, offset=tuple(true + np.array([0.03, 0.0, 0.0]))
    )
    right = Edit(do="place-joint", joint=KNEE, offset=tuple(true))
    session.keep(session.attempt(wrong))
    assert session.score.sensor_rms > 1e-3
    assert session.attempt(right).after.sensor_rms < 1e-12
    session.undo()


def test_a_hinge_about_the_axis_of_the_motion_is_the_hinge_of_the_motion(session):
    hinge = session.attempt(Edit(do="kind", joint=KNEE, kind="hinge")).solution
    joint = hinge.skeleton.index(KNEE)
    axis = hinge.skeleton.axes[joint, 0]
    for sign in (1.0, -2.0):
        edit = Edit(do="axis", joint=KNEE, axis=tuple(sign * axis))
        by_hand = session.attempt(edit).solution
        np.testing.assert_allclose(
            by_hand.skeleton.axes[joint, 0], np.sign(sign) * axis, atol=1e-12
        )
        assert by_hand.skeleton.kind[joint] == "hinge"
        np.testing.assert_allclose(
            by_hand.motion.T_world_joint()[..., :3, 3],
            hinge.motion.T_world_joint()[..., :3, 3],
            atol=1e-6,
        )


def test_a_hinge_rotates_about_the_axis_that_was_set(session):
    axis = np.array([0.6, 0.8, 0.0])
    edit = Edit(do="axis", joint=KNEE, axis=tuple(2.0 * axis))
    solution = session.attempt(edit).solution
    turns = solution.motion.wxyz[:, solution.skeleton.index(KNEE), 1:]
    np.testing.assert_allclose(np.cross(turns, axis), 0.0, atol=1e-9)


# --- sessions, files, the command line ------------------------------------------------


def every_edit(solution):
    offset = tuple(null_model(solution)[:3, 3] + [0.01, 0.0, 0.0])
    return (
        Edit(do="merge", bodies=(KNEE, FOOT)),
        Edit(do="axis", joint=KNEE, axis=(0.0, 1.0, 0.0)),
        Edit(do="place-sensor", sensor=FOOT, offset=offset, rotation=(0.0, 0.1, 0.0)),
        Edit(do="place-sensor", sensor=FOOT, offset=offset, since=SLIPPED),
        Edit(do="null-model", first=100, last=104, sensors=(FOOT,)),
        Edit(do="null-model", first=100, last=104, since=0),
    )


def test_a_session_equals_a_solve_with_the_same_edits(session, take, tmp_path):
    path = tmp_path / "take.edits.toml"
    edits = every_edit(session.solution)
    merge = edits[:1]
    assert_same(session.attempt(*merge).solution, solve(take, edits=merge))
    marey.write_edits(edits[1:], path)
    solution = solve(take, edits=marey.read_edits(path))
    assert_same(solution, with_edits(session, *edits[1:]))


def test_the_command_line_places_a_sensor(take, session, tmp_path):
    marey.write(take, tmp_path / "take.npz")
    edit = Edit(do="place-sensor", sensor=FOOT, offset=(0.0, 0.0, 0.2), since=SLIPPED)
    marey.write_edits([edit], tmp_path / "take.edits.toml")
    arguments = ("take.npz", "-o", "out.marey", "--edits", "take.edits.toml")
    paths = [a if a.startswith("-") else str(tmp_path / a) for a in arguments]
    with pytest.raises(SystemExit) as stop:
        main(["solve", *paths, "--no-clean"])
    assert stop.value.code == 0
    solution = marey.load(tmp_path / "out.marey")
    assert_same(solution, session.attempt(edit).solution, atol=1e-9)


def test_a_saved_solution_keeps_what_its_takes_contain(standing):
    clean, _ = standing
    solution = solve(slip(clean), edits=(RETAKE,))
    reopened = EditSession(solution)
    assert not reopened.can_undo
    with pytest.raises(marey.OptionError, match="contain already"):
        reopened.undo()
    rename = reopened.attempt(Edit(do="rename", name="Hips", to="Pelvis")).solution
    np.testing.assert_allclose(
        rename.motion.T_world_joint()[..., :3, 3],
        solution.motion.T_world_joint()[..., :3, 3],
        atol=1e-6,
    )


def test_a_trial_tells_the_error_of_sensors(session):
    edit = Edit(do="place-sensor", sensor=FOOT, offset=(0.0, 0.0, 0.2))
    trial = session.attempt(edit)
    assert trial.text.startswith(f"{edit}: sensor error 0.00 -> ")
    assert np.isnan(trial.after.marker_rms)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (Edit(do="place-sensor", sensor="Nose", offset=(0.0, 0.0, 0.0)), "no sensor"),
        (Edit(do="move-sensor", sensor=FOOT, to=KNEE), "the last sensor of LeftFoot"),
        (Edit(do="move-sensor", sensor=FOOT, to="Nose"), "the name of no body"),
        (Edit(do="move-sensor", sensor=FOOT, to=FOOT), "already"),
        (Edit(do="split", body=FOOT, sensors=(FOOT,)), "all its sensors"),
        (Edit(do="split", body=FOOT, sensors=(KNEE,)), "on another body"),
        (Edit(do="null-model", first=0, last=250), "need 0 to 249"),
        (Edit(do="null-model", first=0, last=5, take=1), "need 0 to 0"),
        (Edit(do="null-model", first=5, last=9, since=6), "at or before"),
        (Edit(do="null-model", first=5, last=9, sensors=("Nose",)), "no sensor"),
        (
            Edit(do="place-sensor", sensor=FOOT, rotation=(0.0, 0.0, 1.0), since=250),
            "need 0 to 249",
        ),
        (Edit(do="axis", joint="Hips", axis=(0.0, 0.0, 1.0)), "the root"),
        (Edit(do="axis", joint="Nose", axis=(0.0, 0.0, 1.0)), "no figure has"),
    ],
    ids=str,
)
def test_an_impossible_edit_is_refused(session, edit, words):
    with pytest.raises(marey.OptionError, match=words):
        session.attempt(edit)
    assert session.edits == ()


def test_a_sensor_that_was_not_seen_before_or_in_rest_is_refused(take):
    hidden = take.T_world_sensor.copy()
    hidden[:60, take.sensor_names.index(FOOT)] = np.nan
    session = open_session(replace(take, T_world_sensor=hidden))
    place = Edit(do="place-sensor", sensor=FOOT, rotation=(0.0, 0.0, 0.1), since=60)
    with pytest.raises(marey.DataError, match="LeftFoot is seen"):
        session.attempt(place)
    rest = Edit(do="null-model", first=0, last=9, sensors=(FOOT,))
    with pytest.raises(marey.OptionError, match="not seen in these frames"):
        session.attempt(rest)
