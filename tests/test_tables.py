"""The tables of a report: they say what the final skeletons and motions say."""

import json
from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import synth
from marey.cli import main
from marey.pipeline.reporting.tables import add_tables
from marey.pose import find_ground_contacts
from marey.pose.contact.ground_contacts import planted_spans


@pytest.fixture(scope="module")
def take():
    return synth.human(seed=3).record(
        "walk", seconds=3.0, rate=60.0, markers="sparse41", noise=1e-3
    )


@pytest.fixture(scope="module")
def solution(take):
    return marey.solve(take)


def rows_of(solution, name):
    """The rows of a table, each by its column titles."""
    table = solution.report.tables[name]
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_bones_and_joints_are_those_of_the_final_skeleton(solution):
    skeleton = solution.skeleton
    bones = {row["bone to"]: row for row in rows_of(solution, "bones")}
    assert list(bones) == list(skeleton.names[1:])
    for name, row in bones.items():
        joint = skeleton.index(name)
        assert row["from"] == skeleton.names[skeleton.parent[joint]]
        assert row["length mm"] == pytest.approx(
            1e3 * skeleton.lengths[joint], abs=0.01
        )
        sd = skeleton.length_sd[joint]
        assert row["± mm"] == (float(f"{1e3 * sd:.2g}") if sd == sd else "")
    joints = {row["joint"]: row["kind"] for row in rows_of(solution, "joints")}
    moving = np.flatnonzero(skeleton.rotates)
    assert joints == {skeleton.names[k]: skeleton.kind[k] for k in moving}


def test_standard_deviations_are_shown_from_a_hundredth_of_a_millimetre(solution):
    (subject,) = solution.subjects
    sd = np.full(subject.skeleton.n_joints, 1.5e-5)
    sd[1:4] = 9e-6, 0.99, 1.0
    skeleton = replace(subject.skeleton, length_sd=sd)
    changed = replace(solution, subjects=(replace(subject, skeleton=skeleton),))
    shown = [row["± mm"] for row in rows_of(add_tables(changed), "bones")]
    assert shown == ["<0.01", 990.0, "unsure", *[0.015] * (len(shown) - 3)]


def test_every_marker_has_its_residual_and_the_worst_come_first(solution):
    rows = rows_of(solution, "residuals")
    assert {row["marker"] for row in rows} == set(solution.skeleton.marker_labels)
    rms = [row["rms mm"] for row in rows]
    assert rms == sorted(rms, reverse=True)
    motion, skeleton = solution.motion, solution.skeleton
    column = [
        solution.take.full_labels.index(label) for label in skeleton.marker_labels
    ]
    away = np.linalg.norm(
        motion.marker_points() - solution.take.points[:, column], axis=-1
    )
    for row in rows:
        one = away[:, skeleton.marker_labels.index(row["marker"])]
        assert row["at frame"] == int(np.argmax(one))
        assert row["rms mm"] == pytest.approx(1e3 * np.sqrt(np.mean(one**2)), abs=0.01)


def test_sensors_have_residuals_too():
    take = synth.human().record(
        "exercise", seconds=4.0, rate=50.0, markers="none", sensors=True, noise=1e-3
    )
    solution = marey.solve(take)
    motion, skeleton = solution.motion, solution.skeleton
    T = motion.T_world_joint()[:, skeleton.sensor_joint] @ skeleton.T_joint_sensor
    for row in rows_of(solution, "residuals"):
        k = skeleton.sensor_names.index(row["marker"])
        seen = solution.take.T_world_sensor[:, take.sensor_names.index(row["marker"])]
        away = np.linalg.norm(T[:, k, :3, 3] - seen[:, :3, 3], axis=-1)
        assert row["bone"] == skeleton.names[skeleton.sensor_joint[k]]
        assert row["worst mm"] == pytest.approx(1e3 * np.nanmax(away), abs=0.01)


def test_plants_of_people_are_reported_and_not_held(take, solution):
    motion = solution.motion
    held = marey.solve(take, contacts=True).motion
    assert motion.contacts
    contacts = find_ground_contacts(motion, solution.take)
    assert contacts.skate(motion) > 10.0 * contacts.skate(held)
    rows = rows_of(solution, "plants")
    plants = {row["foot"]: row["plants"] for row in rows}
    spans = planted_spans(motion.contacts)
    assert plants == {joint: len(of_joint) for joint, of_joint in spans.items()}
    duration = motion.n_frames / motion.rate
    assert all(0.0 < row["planted s"] <= duration for row in rows)


def test_things_have_no_plants():
    take = synth.hinge_pair().record(seconds=2.0, markers="none", sensors=True)
    solution = marey.solve(take)
    assert "plants" not in solution.report.tables
    assert solution.motion.contacts == ()


def test_the_terminal_shows_the_worst_markers_and_json_all(take, tmp_path, capsys):
    marey.write(take, tmp_path / "walk.c3d")
    with pytest.raises(SystemExit):
        main(["solve", str(tmp_path / "walk.c3d")])
    printed = capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["solve", str(tmp_path / "walk.c3d"), "--json"])
    report = json.loads(capsys.readouterr().out)
    labels = [row[0] for row in report["tables"]["residuals"]["rows"]]
    assert len(labels) == len(take.labels)
    shown = printed[printed.index("residuals") : printed.index("plants")]
    assert all(label in shown for label in labels[:10])
    assert f"{len(labels) - 10} more with --json" in shown
    assert "subject" not in printed
    for cause in report["causes"]:
        assert cause["message"] in printed
    assert sum(c["count"] for c in report["causes"]) == len(report["findings"])
