"""The whole pipeline, from a file of 6-DoF sensors to a skeleton and its motion."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numba import njit

import marey
from marey import metrics, pipeline, synth
from marey.cli import main
from marey.errors import DataError
from marey.numerics import geometry
from marey.pipeline.progress import COMPILING_NOTE, Clock
from marey.pipeline.reporting.findings import loop_findings
from marey.tree import Loop

OPTIONS = {"markers": "none", "sensors": True, "rate": 60.0, "seconds": 12.0}


@pytest.fixture(scope="module")
def recording():
    return synth.human().record("exercise", seed=1, **OPTIONS)


def test_exact_data_give_the_exact_skeleton(recording):
    solution = marey.solve(recording)
    score = metrics.compare(solution, recording)
    assert (score.tree.wrong, score.tree.missing) == (0, 0)
    assert score.skeletons[0].max < 1e-9
    assert score.motions[0].position_max < 1e-9
    assert list(solution.report.seconds) == [
        "read",
        "clean",
        "segment",
        "joints",
        "tree",
        "repair",
        "name",
        "skeleton",
        "calibrate",
        "pose",
    ]


def test_noise_costs_millimetres():
    take = synth.human().record(
        "exercise", seed=2, noise=3e-3, turn_noise=5e-3, **OPTIONS
    )
    score = metrics.compare(marey.solve(take), take)
    assert (score.tree.wrong, score.tree.missing) == (0, 0)
    assert score.skeletons[0].rms < 3e-3


def test_several_takes_are_one_skeleton():
    figure = synth.human()
    takes = [
        figure.record("exercise", seed=3, noise=3e-3, **OPTIONS),
        figure.record("chicken_walk", seed=3, noise=3e-3, **OPTIONS),
    ]
    solution = marey.solve(takes)
    (subject,) = solution.subjects
    assert [m.n_frames for m in subject.motions] == [t.n_frames for t in takes]
    assert metrics.compare(solution.skeleton, takes[0]).rms < 3e-3


def test_a_given_tree_and_root_are_kept(recording):
    free = marey.solve(recording)
    names = free.bodies[0].names
    parents = {names[i]: names[p] for i, p in enumerate(free.tree.parent) if p >= 0}
    known = marey.solve(recording, options=marey.SolveOptions(tree=parents))
    assert known.tree.parent.tolist() == free.tree.parent.tolist()
    rerooted = marey.solve(recording, options=marey.SolveOptions(root="LeftHand"))
    assert rerooted.skeleton.names[0] == "LeftHand"
    both = marey.SolveOptions(tree=parents, root="LeftHand")
    assert marey.solve(recording, options=both).skeleton.names[0] == "LeftHand"
    with pytest.raises(marey.OptionError, match="root: found 'Tail"):
        marey.solve(recording, options=marey.SolveOptions(root="Tail"))
    with pytest.raises(marey.OptionError, match=r"tree: found.*Tail"):
        marey.solve(recording, options=marey.SolveOptions(tree={"Tail": "LeftHand"}))


def test_a_saved_solution_loads_unchanged(recording, tmp_path):
    solution = marey.solve(recording)
    marey.write(solution, tmp_path / "s.marey")
    again = marey.load(tmp_path / "s.marey")
    np.testing.assert_array_equal(again.motion.wxyz, solution.motion.wxyz)
    assert again.skeleton.names == solution.skeleton.names


def test_the_pipeline_alone_refuses_edits(recording):
    options = marey.SolveOptions(edits=(marey.Edit(do="reroot", body="LeftHand"),))
    with pytest.raises(marey.OptionError, match="which applies them"):
        pipeline.solve_takes((recording,), options, Clock(None))
    assert marey.solve(recording, options=options).skeleton.names[0] == "LeftHand"


@pytest.mark.parametrize(
    ("recordings", "complaint"),
    [([], "no recordings"), ("gone.csv", "nothing at this path")],
)
def test_nothing_to_solve_is_an_error(recordings, complaint):
    with pytest.raises(marey.MareyError, match=complaint):
        marey.solve(recordings)


# --- unusual input -------------------------------------------------------------------


@pytest.fixture(scope="module")
def noisy():
    return synth.linkage().record("swing", noise=1e-3, turn_noise=2e-3, **OPTIONS)


def with_poses(take, change):
    T = take.T_world_sensor.copy()
    changed = change(T)
    return replace(take, T_world_sensor=T if changed is None else changed)


def codes(solution):
    return {finding.code for finding in solution.report.findings}


def test_one_body_is_a_root_and_reported():
    take = marey.Take(
        rate=60.0, T_world_sensor=np.tile(np.eye(4), (9, 1, 1, 1)), sensor_names=("a",)
    )
    solution = marey.solve(take)
    assert solution.skeleton.names[0] == "a"
    assert "one-body" in [finding.code for finding in solution.report.findings]


def test_two_frames_are_solved_with_a_warning(noisy):
    solution = marey.solve(noisy.cut(0, 2))
    assert solution.report.worst in ("warning", "error")
    assert sum(m.n_frames for s in solution.subjects for m in s.motions) >= 2


def test_bodies_never_seen_together_are_separate_and_reported(noisy):
    def hide(T):
        T[::2, 0] = np.nan
        T[1::2, 1:] = np.nan

    solution = marey.solve(with_poses(noisy, hide))
    assert "pair-unseen" in codes(solution)
    assert "Torso" in [subject.skeleton.names[0] for subject in solution.subjects]
    named = {f.subject for f in solution.report.findings if f.code == "pair-unseen"}
    assert all("Torso" in name for name in named)


def test_missing_frames_cost_no_accuracy(noisy):
    def lose(T):
        T[100:140] = np.nan
        T[300:320, 2] = np.nan

    solution = marey.solve(with_poses(noisy, lose))
    score = metrics.compare(solution, noisy)
    assert (score.tree.wrong, score.tree.missing) == (0, 0)
    assert score.skeletons[0].rms < 2e-3


def test_orientations_without_positions_are_an_error(noisy):
    def forget(T):
        T[..., :3, 3] = np.nan

    with pytest.raises(DataError, match="sensors without positions"):
        marey.solve(with_poses(noisy, forget))


def test_a_sensor_that_never_moves_is_reported(noisy):
    def hold(T):
        T[:, 5] = T[0, 5]

    solution = marey.solve(with_poses(noisy, hold))
    (finding,) = (f for f in solution.report.findings if f.code == "body-still")
    assert finding.subject == noisy.sensor_names[5]


def test_two_sensors_on_one_body_are_reported(noisy):
    def follow(T):
        T[:, 1] = T[:, 0]
        T[:, 1, :3, 3] += 0.1 * T[:, 0, :3, 2]

    solution = marey.solve(with_poses(noisy, follow))
    assert "joint-still" in codes(solution)


@pytest.mark.parametrize(
    ("R", "code"),
    [(2.0 * np.eye(3), "body-bent"), (np.diag([1.0, 1.0, -1.0]), "body-mirrored")],
    ids=["scaled", "mirrored"],
)
def test_orientations_that_are_no_rotations_are_reported(noisy, R, code):
    def bend(T):
        T[:, 3, :3, :3] = T[:, 3, :3, :3] @ R

    solution = marey.solve(with_poses(noisy, bend))
    named = [f.subject for f in solution.report.findings if f.code == code]
    assert named == [noisy.sensor_names[3]]


def test_quaternions_in_the_wrong_order_are_reported(noisy):
    def roll(T):
        wxyz = geometry.quat_from_matrix(T[..., :3, :3])
        T[..., :3, :3] = geometry.matrix_from_quat(np.roll(wxyz, 1, axis=-1))

    solution = marey.solve(with_poses(noisy, roll))
    (finding,) = (
        f for f in solution.report.findings if f.code == "orientations-inconsistent"
    )
    assert finding.severity == "error"
    assert "quaternions" in finding.message


def test_lengths_do_not_depend_on_the_origin(noisy):
    def translate(T):
        T[..., :3, 3] += [10.0, -10.0, 10.0]

    here, there = marey.solve(noisy), marey.solve(with_poses(noisy, translate))
    np.testing.assert_allclose(
        there.skeleton.lengths[1:], here.skeleton.lengths[1:], atol=1e-6
    )


def test_only_joints_of_the_tree_are_reported(noisy):
    solution = marey.solve(noisy)
    names, tree = solution.bodies[0].names, solution.tree
    joined = {frozenset((names[i], names[p])) for i, p in enumerate(tree.parent)}
    closed = {
        frozenset(names[k] for k in solution.joints.pair[loop.pair])
        for loop in tree.loops
    }
    for finding in solution.report.findings:
        if finding.code.startswith("joint-"):
            assert frozenset(finding.subject.split("-")) in joined | closed


def test_a_loop_is_reported_with_its_distance(noisy):
    solution = marey.solve(noisy)
    row = int(np.setdiff1d(np.arange(15), solution.tree.edge)[0])
    tree = replace(solution.tree, loops=(Loop(pair=row),))
    (finding,) = loop_findings(solution.joints, tree, solution.bodies)
    a, b = (solution.bodies[0].names[k] for k in solution.joints.pair[row])
    assert (finding.code, finding.subject) == ("loop", f"{a}-{b}")
    distance = 1e3 * np.linalg.norm(solution.joints.center_a[row])
    assert f"{distance:.0f} mm from {a} and" in finding.message


# --- scale ----------------------------------------------------------------------------


def test_two_sensors_on_a_stick_set_the_scale(noisy):
    small = marey.rescale(noisy, 0.94)
    stick = np.zeros((noisy.n_frames, 2, 4, 4)) + small.T_world_sensor[:, :1]
    stick[:, 1, :3, 3] += 0.94 * 0.565 * stick[:, 1, :3, 0]
    take = replace(
        small,
        T_world_sensor=np.concatenate([small.T_world_sensor, stick], axis=1),
        sensor_names=(*small.sensor_names, "near", "far"),
    )
    options = marey.SolveOptions(rigid_pair=("near", "far", 0.565))
    position = marey.solve(take, options=options).take.T_world_sensor[..., :3, 3]
    np.testing.assert_allclose(
        position[:, :6], noisy.T_world_sensor[..., :3, 3], atol=1e-9
    )
    wrong = marey.SolveOptions(rigid_pair=("near", "Tail", 0.565))
    with pytest.raises(marey.OptionError, match="Tail"):
        marey.solve(take, options=wrong)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    return stop.value.code, capsys.readouterr()


def test_the_command_line_solves_prints_and_writes(recording, tmp_path, capsys):
    marey.write(recording, tmp_path / "s01.csv")
    (tmp_path / "known.toml").write_text("[lengths]\nLeftLowerLeg = 0.44\n")
    code, printed = run(
        capsys,
        "solve",
        tmp_path / "s01.csv",
        "-o",
        tmp_path / "s01.bvh",
        "--measured",
        tmp_path / "known.toml",
    )
    assert code == 0
    assert "LeftLowerLeg" in printed.out
    assert "calculated cm" in printed.out
    assert marey.read_motion(tmp_path / "s01.bvh").n_frames == recording.n_frames


def test_the_command_line_scales_by_a_rigid_pair(noisy, tmp_path, capsys):
    marey.write(noisy, tmp_path / "s01.csv")
    names = noisy.sensor_names[:2]
    arguments = ("solve", tmp_path / "s01.csv", "--rigid-pair", *names, "0.5", "--json")
    code, printed = run(capsys, *arguments)
    assert code == 0
    found = json.loads(printed.out)["findings"]
    assert "take-scaled" in [finding["code"] for finding in found]


def test_the_command_line_prints_json_and_never_overwrites(recording, tmp_path, capsys):
    marey.write(recording, tmp_path / "s01.csv")
    code, printed = run(capsys, "solve", tmp_path / "s01.csv", "--json")
    report = json.loads(printed.out)
    assert code == 0
    assert len(report["tables"]["joints"]["rows"]) == 15
    existing = tmp_path / "existing.bvh"
    existing.write_text("kept")
    assert run(capsys, "solve", tmp_path / "s01.csv", "-o", existing)[0] == 2
    assert existing.read_text() == "kept"


def test_compilation_of_a_stage_is_reported_once():
    messages = []
    clock, kernel = Clock(messages.append), njit(lambda x: x + 1)
    for _ in range(2):
        with clock.stage("pose"):
            kernel(1)
    assert messages == ["pose", f"pose, {COMPILING_NOTE}", "pose"]
    assert list(clock.seconds) == ["pose"]
