"""What a page is told: every number of the answer, to half a step, and no more."""

from dataclasses import replace

import numpy as np
import pytest
import samples
import scenes
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import marey
from marey.editing import EditSession
from marey.io.formats.html.arrays import SceneArrays
from marey.io.formats.html.scene import SceneOptions, encode_scene
from marey.io.formats.html.subjects import marker_states

HALF = 0.5000001e-5


@pytest.fixture(scope="module")
def recorded():
    figure = marey.synth.human(height=1.8, seed=0)
    return figure.record("walk", seconds=1.5, markers="set53", noise=1e-3, gaps=0.05)


@pytest.fixture(scope="module")
def solution(recorded):
    return marey.solve(recorded)


@pytest.fixture(scope="module")
def scene(solution, recorded):
    return scenes.unpacked(
        encode_scene(
            solution,
            SceneOptions(truth=recorded.truth.motions, measured={"LeftFoot": 0.41}),
        )
    )


def packed(values, **options):
    arrays = SceneArrays()
    key = arrays.track("x", values, **options)
    return scenes.unpacked(arrays.encode({"key": key}))[1]["x"]


@settings(max_examples=60, deadline=None)
@given(
    npst.arrays(
        float,
        npst.array_shapes(min_dims=1, max_dims=3, max_side=6),
        elements=st.floats(-2e4, 2e4),
    )
)
def test_a_track_comes_back_to_half_a_step(values):
    np.testing.assert_allclose(packed(values), values, rtol=0.0, atol=HALF)


@settings(max_examples=60, deadline=None)
@given(
    npst.arrays(
        float,
        (7, 2),
        elements=st.one_of(
            st.just(np.nan), st.just(np.inf), st.just(1e30), st.floats(-9.0, 9.0)
        ),
    )
)
def test_what_is_not_known_stands_at_the_value_before(values):
    expected = np.zeros_like(values)
    for item in range(2):
        last = 0.0
        for frame in range(7):
            if abs(values[frame, item]) < 1e4:
                last = values[frame, item]
            expected[frame, item] = last
    np.testing.assert_allclose(packed(values), expected, rtol=0.0, atol=HALF)


def test_arrays_of_every_coding_come_back_and_empty_ones_have_no_key():
    arrays = SceneArrays()
    small = np.array([[0, 255, 7]])
    fine = np.array([1.5, np.nan, -1e-30], dtype=np.float32)
    assert arrays.small("u", small) == "u"
    assert arrays.floats("f", fine.astype(float)) == "f"
    assert arrays.track("e", np.zeros((5, 0, 3))) == ""
    header, found = scenes.unpacked(arrays.encode({"nan": np.nan, "deep": [(np.inf,)]}))
    assert set(found) == {"u", "f"}
    assert found["u"].tolist() == small.tolist()
    np.testing.assert_array_equal(found["f"].astype(np.float32), fine)
    assert (header["nan"], header["deep"]) == (None, [[None]])


def test_markers_come_back_with_what_they_are_in_each_frame(scene, solution):
    header, arrays = scene
    (take,), wanted = header["takes"], solution.take
    assert (take["frames"], take["recorded"], take["stride"]) == (180, 180, 1)
    assert tuple(m["label"] for m in take["markers"]) == wanted.full_labels
    state = arrays[take["state"]]
    assert ((state > 0) == wanted.seen).all()
    points = arrays[take["points"]]
    np.testing.assert_allclose(
        points[state > 0], wanted.points[wanted.seen], rtol=0.0, atol=HALF
    )
    bodies = solution.bodies[0]
    assert [m["body"] for m in take["markers"]] == bodies.marker_body.tolist()
    assert [b["name"] for b in header["bodies"]] == list(bodies.names)


def posed(header, arrays, subject, motion):
    """Forward kinematics from the scene alone, joint by joint."""
    joints = subject["joints"]
    root, wxyz = arrays[motion["root"]], arrays[motion["wxyz"]]
    T = []
    for i, joint in enumerate(joints):
        R = marey.geometry.matrix_from_quat(
            wxyz[:, i] / np.linalg.norm(wxyz[:, i], axis=-1, keepdims=True)
        )
        if joint["parent"] < 0:
            T.append(marey.geometry.transform(R, root))
        else:
            local = marey.geometry.transform(R, np.array(joint["offset"]))
            T.append(T[joint["parent"]] @ local)
    return np.stack(T, axis=1)


def test_the_figure_moves_as_the_motion_does(scene, solution):
    header, arrays = scene
    (subject,), (take,) = header["subjects"], header["takes"]
    T = posed(header, arrays, subject, take["motions"][0])
    np.testing.assert_allclose(T, solution.motion.T_world_joint(), rtol=0.0, atol=1e-4)
    markers = take["motions"][0]["markers"]
    skeleton = solution.motion.skeleton
    assert [take["markers"][m["marker"]]["label"] for m in markers] == list(
        skeleton.marker_labels
    )
    assert arrays[take["motions"][0]["known"]].all()


def test_bones_tell_their_lengths_and_doubts(scene, solution):
    skeleton = solution.skeleton
    for i, joint in enumerate(scene[0]["subjects"][0]["joints"]):
        assert joint["name"] == skeleton.names[i]
        assert joint["length"] == skeleton.lengths[i]
        sd = skeleton.length_sd[i]
        assert joint["length_sd"] == (sd if np.isfinite(sd) else None)
        if joint["covariance"] is not None:
            assert joint["covariance"] == skeleton.covariance[i].tolist()
    assert scene[0]["measured"] == {"LeftFoot": 0.41}


def test_gaps_are_the_residuals_of_the_joints(scene, solution):
    header, arrays = scene
    motion = header["takes"][0]["motions"][0]
    gap, known = arrays[motion["gap"]], arrays[motion["gap_known"]]
    joints, bodies = header["subjects"][0]["joints"], solution.bodies[0]
    told = 0
    for i, joint in enumerate(joints):
        if joint["body"] < 0 or joint["parent"] < 0:
            assert not known[:, i].any()
            continue
        assert bodies.names[joint["body"]] == joint["name"]
        above = int(solution.tree.parent[joint["body"]])
        pair = (joint["body"], above)
        vectors = marey.joints.joint_residuals(bodies, solution.joints, pair)
        wanted = np.linalg.norm(vectors, axis=-1)
        seen = np.isfinite(wanted)
        assert (known[:, i] == seen).all()
        np.testing.assert_allclose(gap[seen, i], wanted[seen], rtol=0.0, atol=HALF)
        edge = int(solution.tree.edge[joint["body"]])
        assert joint["residual"] == solution.joints.residual[edge]
        told += 1
    assert told == (solution.tree.parent >= 0).sum()


def test_the_truth_is_a_ghost_with_bones_of_its_own(scene, recorded):
    header, arrays = scene
    (subject,) = header["truth"]["subjects"]
    (motion,) = header["truth"]["takes"][0]["motions"]
    T = posed(header, arrays, subject, motion)
    wanted = recorded.truth.motions[0].T_world_joint()
    np.testing.assert_allclose(T, wanted, rtol=0.0, atol=1e-4)


def test_truth_of_other_frames_is_refused(solution, recorded):
    short = recorded.truth.motions[0].cut(0, 100)
    with pytest.raises(marey.OptionError, match="100"):
        encode_scene(solution, SceneOptions(truth=[short]))


def test_findings_tables_and_seconds_are_told(scene, solution):
    header, _ = scene
    report = solution.report
    assert [f["message"] for f in header["findings"]] == [
        f.message for f in report.findings
    ]
    assert all(f["take"] == 0 for f in header["findings"])
    assert [c["message"] for c in header["causes"]] == [
        c.message for c in report.causes
    ]
    numbers = sorted(i for cause in header["causes"] for i in cause["findings"])
    assert numbers == list(range(len(report.findings)))
    assert header["tables"].keys() == report.tables.keys()
    assert header["seconds"] == report.seconds
    (ground,) = (f.value for f in report.findings if f.code == "ground")
    assert header["ground"] == {"normal": [0.0, 0.0, 1.0], "height": ground}


def test_a_marker_that_jumps_off_its_figure_is_an_outlier(solution):
    take = solution.take
    bad = np.flatnonzero(take.seen[:, 5])[40:50]
    points = take.points.copy()
    points[bad, 5] += [0.0, 0.1, 0.0]
    filled = take.filled.copy()
    filled[bad[:2], 5] = True
    wrong = replace(solution, takes=(replace(take, points=points, filled=filled),))
    header, arrays = scenes.unpacked(encode_scene(wrong))
    state = arrays[header["takes"][0]["state"]]
    assert (state[bad, 5] == [2, 2, *[3] * 8]).all()
    assert (state == 3).sum() - 8 < 0.005 * take.seen.sum()


def test_a_marker_within_five_millimetres_is_never_an_outlier():
    take = marey.Take(rate=9.0, points=np.zeros((50, 1, 3)), labels=("C7",))
    away = np.full((50, 1), 1e-5)
    away[7], away[9] = 4.9e-3, 5.1e-3
    assert np.flatnonzero(marker_states(take, away) == 3).tolist() == [9]


def test_a_take_alone_shows_its_markers_and_sensors_and_says_why():
    take = samples.take(6)
    header, arrays = scenes.unpacked(
        encode_scene(take, SceneOptions(unsolved="too short"))
    )
    (one,) = header["takes"]
    assert (header["unsolved"], header["subjects"], one["motions"]) == (
        "too short",
        [],
        [],
    )
    assert {m["body"] for m in one["markers"]} == {-1}
    seen = arrays[one["sensor_seen"]] > 0
    assert (seen == take.sensor_seen).all()
    np.testing.assert_allclose(
        arrays[one["sensor_place"]][seen],
        take.T_world_sensor[seen][:, :3, 3],
        atol=HALF,
    )
    R = marey.geometry.matrix_from_quat(arrays[one["sensor_wxyz"]][seen])
    np.testing.assert_allclose(R, take.T_world_sensor[seen][:, :3, :3], atol=1e-4)


def test_a_motion_alone_and_nothing_at_all_are_scenes_too():
    motion = samples.motion(6)
    header, arrays = scenes.unpacked(encode_scene(motion))
    T = posed(header, arrays, header["subjects"][0], header["takes"][0]["motions"][0])
    np.testing.assert_allclose(T, motion.T_world_joint(), rtol=0.0, atol=1e-4)
    axes = [joint["axes"] for joint in header["subjects"][0]["joints"]]
    assert axes[2] == [[1.0, 0.0, 0.0], None]
    empty, _ = scenes.unpacked(encode_scene(None, SceneOptions(title="a folder")))
    assert (empty["title"], empty["takes"], empty["subjects"]) == ("a folder", [], [])


def test_sensors_of_a_solution_know_their_bodies():
    figure = marey.synth.human(seed=0)
    take = figure.record("exercise", seconds=2.0, markers="none", sensors=True)
    solution = marey.solve(take)
    header, arrays = scenes.unpacked(encode_scene(solution))
    sensors = header["takes"][0]["sensors"]
    assert [header["bodies"][s["body"]]["name"] for s in sensors] == [
        s["name"] for s in sensors
    ]
    (motion,) = header["takes"][0]["motions"]
    assert arrays[motion["gap_known"]].any()


def test_frames_without_a_figure_are_told():
    motion = samples.motion(6)
    T, wxyz = motion.T_world_root.copy(), motion.wxyz.copy()
    T[:2], wxyz[:2] = np.nan, np.nan
    wxyz[4, 3] = np.nan
    header, arrays = scenes.unpacked(
        encode_scene(replace(motion, T_world_root=T, wxyz=wxyz))
    )
    one = header["takes"][0]["motions"][0]
    assert arrays[one["known"]].tolist() == [0, 0, 1, 1, 1, 1]
    turns = arrays[one["wxyz"]]
    assert (np.linalg.norm(turns, axis=-1) > 0.99).all()
    np.testing.assert_allclose(turns[4, 3], wxyz[3, 3], atol=HALF)


def test_frames_are_thinned_out_where_there_are_too_many_to_draw():
    points = np.zeros((3_600, 30, 3))
    points[:, 0, 0] = np.arange(3_600) / 1e3
    points[7, 3] = 1e30
    labels = tuple(f"M{i}" for i in range(30))
    take = marey.Take(rate=120.0, points=points, labels=labels)
    scene = encode_scene(take, SceneOptions(max_drawn_items=40_000))
    (one,) = scenes.header(scene)["takes"]
    assert (one["frames"], one["recorded"], one["stride"]) == (1_200, 3_600, 3)


def test_the_same_solution_gives_the_same_bytes(solution):
    assert encode_scene(solution) == encode_scene(solution)


def test_names_stay_what_they_are():
    name = '</script><script>alert("\x1b\x00")</script>'
    points = np.zeros((3, 1, 3))
    take = marey.Take(rate=10.0, points=points, labels=(name,))
    header, _ = scenes.unpacked(encode_scene(take, SceneOptions(title=name)))
    assert header["takes"][0]["markers"][0]["label"] == name
    assert header["title"] == name


def swing(seed, seconds=2.0):
    return marey.synth.pendulum().record(
        seconds=seconds, markers="none", sensors=True, noise=1e-3, seed=seed
    )


def test_several_takes_keep_their_frames_and_their_truth():
    takes = [swing(0), swing(1, seconds=1.5)]
    truth = [motion for take in takes for motion in take.truth.motions]
    solution = marey.solve(takes)
    header, arrays = scenes.unpacked(encode_scene(solution, SceneOptions(truth=truth)))
    assert header["title"] == "take and 1 more"
    assert [t["name"] for t in header["takes"]] == ["take 1", "take 2"]
    for i, (one, take) in enumerate(zip(header["takes"], takes, strict=True)):
        assert one["frames"] == take.n_frames
        T = posed(header, arrays, header["subjects"][0], one["motions"][0])
        wanted = solution.subjects[0].motions[i].T_world_joint()
        np.testing.assert_allclose(T, wanted, rtol=0.0, atol=1e-4)
        ghost = header["truth"]["takes"][i]["motions"][0]
        T = posed(header, arrays, header["truth"]["subjects"][0], ghost)
        np.testing.assert_allclose(T, truth[i].T_world_joint(), rtol=0.0, atol=1e-4)
    ground = {f["take"] for f in header["findings"] if f["code"] == "ground"}
    assert ground <= {0, 1}


def test_joints_of_several_subjects_have_their_own_bodies():
    one, other = swing(0), swing(1)
    T = other.T_world_sensor.copy()
    T[..., 0, 3] += 3.0
    names = [f"A:{n}" for n in one.sensor_names] + [f"B:{n}" for n in one.sensor_names]
    take = marey.Take(
        rate=one.rate,
        T_world_sensor=np.concatenate([one.T_world_sensor, T], axis=1),
        sensor_names=tuple(names),
    )
    solution = marey.solve(take)
    header, arrays = scenes.unpacked(encode_scene(solution))
    assert sorted(subject["name"] for subject in header["subjects"]) == ["A", "B"]
    for subject, motion in zip(
        header["subjects"], header["takes"][0]["motions"], strict=True
    ):
        bodies = [j for j in subject["joints"] if j["body"] >= 0]
        assert len(bodies) == 4
        for joint in bodies:
            name = header["bodies"][joint["body"]]["name"]
            assert name == f"{subject['name']}:{joint['name']}"
        assert arrays[motion["gap_known"]].any(axis=0).sum() == 3


def sensor_bodies(solution):
    """What the body of each sensor is called, take by take."""
    header = scenes.header(encode_scene(solution))
    names = [body["name"] for body in header["bodies"]]
    return [
        {s["name"]: names[s["body"]] for s in take["sensors"] if s["body"] >= 0}
        for take in header["takes"]
    ]


def test_a_sensor_is_its_body_whatever_that_is_called():
    take = swing(0)
    name = take.sensor_names[1]
    desk = EditSession(take)
    as_found = {n: n for n in take.sensor_names}
    assert sensor_bodies(desk.solution) == [as_found]
    trial = desk.attempt({"do": "rename", "name": name, "to": "Foo"})
    assert sensor_bodies(trial.solution) == [as_found | {name: "Foo"}]


def test_a_sensor_is_its_body_in_whatever_order_a_take_has_them():
    first, second = swing(0), swing(1)
    order = [2, 0, 3, 1]
    turned = replace(
        second,
        T_world_sensor=second.T_world_sensor[:, order],
        sensor_names=tuple(second.sensor_names[i] for i in order),
    )
    as_found = {n: n for n in first.sensor_names}
    assert sensor_bodies(marey.solve([first, turned])) == [as_found, as_found]


def test_sensors_beside_markers_are_on_the_bodies_that_they_share():
    take = marey.synth.pendulum().record(
        seconds=2.0, markers=4, sensors=True, noise=1e-3, seed=0
    )
    solution = marey.solve(take, options=marey.SolveOptions(segment="overlap"))
    assert solution.bodies[0].shared.any()
    bodies = solution.bodies[0]
    shared = [bodies.names[body] for body in bodies.sensor_body]
    assert sensor_bodies(solution) == [
        dict(zip(take.sensor_names, shared, strict=True))
    ]
