"""Editing sessions: the effect of each edit, and that nothing is lost."""

from dataclasses import replace
from typing import Any

import numpy as np
import posed
import pytest

import marey
from marey import synth
from marey.cli import main
from marey.editing import EditSession
from marey.editing.kinds.tree_edges import EditableTree
from marey.edits import REQUIRED_FIELDS, Edit, read_edits, write_edits
from marey.numerics import geometry
from marey.pipeline.stages.reroot import reroot_skeleton
from marey.topology import edge_costs
from marey.tree import Tree

KNEE = "LeftLowerLeg"
ANKLE = ("LeftLowerLeg", "LeftFoot")
RECORDED = {"seconds": 2.0, "rate": 50.0, "noise": 1e-3}


@pytest.fixture(scope="module")
def take():
    return synth.human(seed=1).record("walk", markers="set53", **RECORDED)


@pytest.fixture(scope="module")
def session(take):
    """A session of a walking person; tests that keep an edit undo it."""
    return EditSession(take)


@pytest.fixture(scope="module")
def linkage():
    """Six bars: 1 is the parent of 2, 3 and 5; 3 that of 4, and 5 that of 6."""
    return synth.linkage().record(markers=4, seconds=3.0, rate=50.0, noise=1e-4)


BARS = (
    "Torso",
    "Head",
    "LeftUpperArm",
    "LeftLowerArm",
    "RightUpperArm",
    "RightLowerArm",
)
MAP: dict[str, Any] = {
    "template": {f"bar{i + 1}": [f"{name}*"] for i, name in enumerate(BARS)}
}


def open_linkage(take, **more):
    """A session of the linkage, its bars named by a marker map."""
    return EditSession(take, options=marey.SolveOptions(**MAP), **more)


@pytest.fixture(scope="module")
def linkage_session(linkage):
    return open_linkage(linkage)


@pytest.fixture(scope="module")
def sensors():
    take = synth.human().record(
        "exercise", seed=1, markers="none", sensors=True, rate=50.0, seconds=5.0
    )
    return take, EditSession(take)


def every_edit(solution):
    """One edit of every kind, for the linkage."""
    skeleton, bodies = solution.skeleton, solution.bodies[0]
    limb = skeleton.offset[skeleton.index("bar4")] + [0.02, 0.0, 0.0]
    first = [bodies.take.labels[i] for i in np.flatnonzero(bodies.marker_body == 0)]
    label = skeleton.marker_labels[5]
    place = skeleton.marker_offset[5] + [0.0, 0.01, 0.0]
    return {
        "reroot": Edit(do="reroot", body="bar4"),
        "move": Edit(do="move-marker", marker=first[0], to="bar4"),
        "take off": Edit(do="move-marker", marker=first[0], to=""),
        "merge": Edit(do="merge", bodies=("bar4", "bar3"), name="arm"),
        "split": Edit(do="split", body="bar1", markers=tuple(first[:2])),
        "cut": Edit(do="cut", bodies=("bar3", "bar4")),
        "join": Edit(do="join", bodies=("bar4", "bar6")),
        "ball": Edit(do="kind", joint="bar4", kind="ball"),
        "universal": Edit(do="kind", joint="bar4", kind="universal"),
        "hinge": Edit(do="kind", joint="bar3", kind="hinge"),
        "fixed": Edit(do="kind", joint="bar4", kind="fixed"),
        "axis": Edit(do="axis", joint="bar3", axis=(0.0, 0.6, 0.8)),
        "rename": Edit(do="rename", name="bar1", to="frame"),
        "place joint": Edit(do="place-joint", joint="bar4", offset=tuple(limb)),
        "place marker": Edit(do="place-marker", marker=label, offset=tuple(place)),
        "bad": Edit(do="bad", first=10, last=30, markers=tuple(first[:2])),
        "ground": Edit(do="ground", normal=(0.0, 0.0, 1.0), height=0.02),
    }


EACH = (
    *("reroot", "move", "take off", "merge", "split", "cut", "join", "ball"),
    *("universal", "hinge", "fixed", "axis", "rename", "place joint", "place marker"),
    *("bad", "ground"),
)


def solve(take, *edits, **options):
    return marey.solve(take, options=marey.SolveOptions(edits=edits, **options))


def solve_linkage(take, *edits):
    return solve(take, *edits, **MAP)


def arrays_of(solution):
    """Every array of a solution, by name."""
    found = {"center_a": solution.joints.center_a, "parent": solution.tree.parent}
    for i, bodies in enumerate(solution.bodies):
        found[f"T_world_body {i}"] = bodies.T_world_body
        found[f"shared {i}"] = bodies.shared
    for subject in solution.subjects:
        skeleton = subject.skeleton
        found[f"offset {subject.name}"] = skeleton.offset
        found[f"marker_offset {subject.name}"] = skeleton.marker_offset
        found[f"axes {subject.name}"] = skeleton.axes
        for i, motion in enumerate(subject.motions):
            found[f"wxyz {subject.name} {i}"] = motion.wxyz
            found[f"T_world_root {subject.name} {i}"] = motion.T_world_root
    return found


def assert_equal(one, other, *, atol=0.0):
    assert one.bodies[0].names == other.bodies[0].names
    arrays, others = arrays_of(one), arrays_of(other)
    assert arrays.keys() == others.keys()
    for name in arrays:
        np.testing.assert_allclose(
            arrays[name], others[name], rtol=0.0, atol=atol, err_msg=name
        )


def marker_points(solution):
    """Positions of the markers on the skeletons, by label."""
    return {
        label: points
        for subject in solution.subjects
        for label, points in zip(
            subject.skeleton.marker_labels,
            subject.motions[0].marker_points().swapaxes(0, 1),
            strict=True,
        )
    }


# --- laws -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", EACH)
def test_a_session_equals_a_solve_with_the_same_edit(linkage_session, linkage, name):
    edit = every_edit(linkage_session.solution)[name]
    before = linkage_session.solution
    trial = linkage_session.attempt(edit)
    assert_equal(trial.solution, solve_linkage(linkage, edit))
    assert linkage_session.solution is before
    assert linkage_session.edits == ()


def test_every_kind_of_edit_is_tested(linkage_session):
    edits = every_edit(linkage_session.solution)
    assert tuple(edits) == EACH
    of_sensors = {"move-sensor", "place-sensor", "null-model"}
    kinds = {edit.do for edit in edits.values()}
    assert kinds | of_sensors == set(REQUIRED_FIELDS)


def test_edits_from_a_file_give_the_same_solution(linkage, tmp_path):
    session = open_linkage(linkage)
    label = session.solution.skeleton.marker_labels[0]
    for edit in (
        Edit(do="ground", normal=(0.0, 0.0, 1.0), height=0.02),
        Edit(do="rename", name="bar1", to="frame"),
        Edit(do="kind", joint="bar4", kind="hinge"),
        Edit(do="merge", bodies=("bar5", "bar6"), name="arm"),
        Edit(do="cut", bodies=("bar2", "frame")),
        Edit(do="reroot", body="bar3"),
        Edit(do="place-joint", joint="frame", offset=(0.0, 0.0, -0.3)),
        Edit(do="place-marker", marker=label, offset=(0.1, 0.1, 0.1)),
    ):
        session.keep(session.attempt(edit))
    path = tmp_path / "linkage.edits.toml"
    write_edits(session.edits, path)
    again = solve_linkage(linkage, *read_edits(path))
    assert_equal(session.solution, again)
    assert again.options["edits"] == tuple(edit.record() for edit in session.edits)
    messages = {str(finding) for finding in again.report.findings}
    assert messages == {str(finding) for finding in session.solution.report.findings}


def test_undo_and_redo_return_the_same_solutions(linkage):
    session = open_linkage(linkage)
    first = session.solution
    assert (session.can_undo, session.can_redo) == (False, False)
    trial = session.attempt({"do": "rename", "name": "bar1", "to": "frame"})
    kept = session.keep(trial)
    assert kept is trial.solution is session.solution
    assert (session.can_undo, session.can_redo) == (True, False)
    assert session.undo() is first
    assert (session.can_undo, session.can_redo) == (False, True)
    assert session.redo() is kept
    assert session.edits == (trial.edit,)
    session.undo()
    session.keep(session.attempt(Edit(do="kind", joint="bar4", kind="hinge")))
    assert not session.can_redo


def test_undo_includes_edits_given_to_the_session(linkage):
    rename = Edit(do="rename", name="bar1", to="frame")
    session = open_linkage(linkage, edits=[rename.record()])
    assert session.solution.skeleton.names[0] == "frame"
    assert session.undo().skeleton.names[0] == "bar1"
    assert not session.can_undo
    with pytest.raises(marey.OptionError, match="no edits"):
        session.undo()
    session.redo()
    with pytest.raises(marey.OptionError, match="nothing undone"):
        session.redo()


def test_a_trial_is_kept_only_on_the_solution_it_was_tried_on(linkage):
    session = open_linkage(linkage)
    old = session.attempt(Edit(do="rename", name="bar1", to="frame"))
    session.keep(session.attempt(Edit(do="rename", name="bar2", to="crank")))
    with pytest.raises(marey.OptionError, match="tried again"):
        session.keep(old)
    assert len(session.edits) == 1


def test_a_saved_solution_is_edited_like_a_new_one(linkage_session, tmp_path):
    marey.write(linkage_session.solution, tmp_path / "link.marey")
    loaded = marey.load(tmp_path / "link.marey")
    again = EditSession(loaded)
    assert again.solution is loaded
    edits = every_edit(linkage_session.solution)
    for name in ("merge", "cut", "hinge", "bad"):
        assert_equal(
            again.attempt(edits[name]).solution,
            linkage_session.attempt(edits[name]).solution,
        )
    again.keep(again.attempt(edits["merge"]))
    marey.write(again.solution, tmp_path / "merged.marey")
    third = EditSession(marey.load(tmp_path / "merged.marey"))
    assert third.edits == again.edits
    assert_equal(third.undo(), loaded)


def test_options_are_restored_from_a_saved_solution(session, take, tmp_path):
    performer = session.solution.skeleton
    first = marey.solve(take, options=marey.SolveOptions(skeleton=performer))
    marey.write(first, tmp_path / "known.marey")
    again = EditSession(marey.load(tmp_path / "known.marey"))
    trial = again.attempt(Edit(do="kind", joint=KNEE, kind="fixed"))
    assert trial.solution.skeleton.kind[performer.index(KNEE)] == "fixed"
    with pytest.raises(marey.OptionError, match="performer that is known"):
        again.attempt(Edit(do="merge", bodies=ANKLE))
    with pytest.raises(marey.OptionError, match="performer that is known"):
        again.attempt(Edit(do="cut", bodies=ANKLE))


@pytest.mark.parametrize(
    ("edit", "inverse"),
    [
        (
            Edit(do="merge", bodies=ANKLE),
            Edit(
                do="split",
                body=KNEE,
                markers=("LHEE", "LTOE", "LMT5", "LMT1"),
                name="LeftFoot",
            ),
        ),
        (Edit(do="cut", bodies=ANKLE), Edit(do="join", bodies=ANKLE)),
        (
            Edit(do="rename", name="Hips", to="pelvis"),
            Edit(do="rename", name="pelvis", to="Hips"),
        ),
        (
            Edit(do="move-marker", marker="LKNE", to="Hips"),
            Edit(do="move-marker", marker="LKNE", to="LeftUpperLeg"),
        ),
    ],
    ids=["merge and split", "cut and join", "rename", "move-marker"],
)
def test_an_edit_and_its_inverse_change_nothing(session, edit, inverse):
    before = session.solution
    session.keep(session.attempt(edit))
    trial = session.attempt(inverse)
    session.undo()
    assert_equal(trial.solution, before)


# --- what each edit does --------------------------------------------------------------


def test_another_root_moves_no_marker(session):
    trial = session.attempt(Edit(do="reroot", body="Chest"))
    skeleton = trial.solution.skeleton
    assert skeleton.names[0] == "Chest"
    assert skeleton.names[skeleton.parent[skeleton.index("Hips")]] == "Chest"
    assert trial.solution.tree.parent[1] == -1
    before, after = marker_points(session.solution), marker_points(trial.solution)
    for label, points in before.items():
        np.testing.assert_allclose(after[label], points, atol=2e-5)
    assert trial.after.marker_rms == pytest.approx(trial.before.marker_rms, rel=1e-3)


def test_a_rerooted_skeleton_has_the_same_poses(rng):
    skeleton = posed.skeleton_of_every_kind(rng)
    place, wxyz = posed.random_pose(skeleton, rng)
    T_root = geometry.transform(geometry.matrix_from_quat(wxyz[0]), place)
    T = skeleton.forward(T_root[None], wxyz[None])[0]
    new = reroot_skeleton(skeleton, skeleton.index("leaf"))
    order = [skeleton.index(name) for name in new.names]
    R = T[order, :3, :3]
    local = R.copy()
    local[1:] = R[new.parent[1:]].swapaxes(-1, -2) @ R[1:]
    at = geometry.apply(T[order[0]], new.rest()[0, :3, 3] - rest(skeleton)[order[0]])
    T_new = new.forward(
        geometry.transform(R[0], at)[None], geometry.quat_from_matrix(local)[None]
    )[0]
    np.testing.assert_allclose(T_new[:, :3, :3], R, atol=1e-12)
    for k, joint in enumerate(new.marker_joint):
        there = geometry.apply(T_new[joint], new.marker_offset[k])
        old = geometry.apply(T[skeleton.marker_joint[k]], skeleton.marker_offset[k])
        np.testing.assert_allclose(there, old, atol=1e-12)
    for k, joint in enumerate(new.sensor_joint):
        there = T_new[joint] @ new.T_joint_sensor[k]
        old = T[skeleton.sensor_joint[k]] @ skeleton.T_joint_sensor[k]
        np.testing.assert_allclose(there, old, atol=1e-12)


def test_a_rerooted_joint_keeps_its_axes_and_limits(rng):
    """What a hinge or universal joint allowed from one side it allows from both."""
    skeleton = posed.skeleton_of_every_kind(rng)
    limits = np.full((7, 3, 2), np.nan)
    limits[3, :2] = [[-0.1, 0.2], [-0.3, 0.4]]
    skeleton = replace(skeleton, limits=limits)
    new = reroot_skeleton(skeleton, skeleton.index("leaf"))
    # The universal joint of "universal" on "hinge" is now that of "hinge" on it.
    joint = new.index("hinge")
    assert new.kind[joint] == "universal"
    np.testing.assert_array_equal(new.axes[joint], skeleton.axes[3, ::-1])
    expected = [[-0.4, 0.3], [-0.2, 0.1]]
    np.testing.assert_array_equal(new.limits[joint, :2], expected)
    back = reroot_skeleton(new, new.index("root"))
    order = [back.index(name) for name in skeleton.names]
    np.testing.assert_allclose(back.rest()[order[1:], :3, 3], rest(skeleton)[1:])
    np.testing.assert_array_equal(back.limits[order[3]], skeleton.limits[3])


def rest(skeleton):
    return skeleton.rest()[:, :3, 3]


def test_a_moved_marker_is_on_its_new_body_only(session):
    answer = session.attempt(Edit(do="move-marker", marker="LKNE", to="Hips")).solution
    bodies, skeleton = answer.bodies[0], answer.skeleton
    marker = bodies.take.labels.index("LKNE")
    assert bodies.marker_body[marker] == bodies.names.index("Hips")
    assert bodies.shared[marker].sum() == 1
    assert bodies.marker_confidence[marker] == 1.0
    place = skeleton.marker_labels.index("LKNE")
    assert skeleton.names[skeleton.marker_joint[place]] == "Hips"


def test_a_marker_on_no_body_is_on_no_skeleton(session):
    answer = session.attempt(Edit(do="move-marker", marker="LTHI", to="")).solution
    assert "LTHI" not in answer.skeleton.marker_labels
    assert "LTHI" in answer.take.labels


def test_merged_bodies_are_one_under_the_name_given(session):
    trial = session.attempt(Edit(do="merge", bodies=ANKLE, name="Shank"))
    assert (trial.after.bodies, trial.before.bodies) == (14, 15)
    names = trial.solution.bodies[0].names
    assert "Shank" in names
    assert not set(ANKLE) & set(names)
    lost = [c.what for c in trial.changes if c.after is None]
    assert "LeftFoot length" in lost


def test_only_bones_at_a_cut_vanish(session):
    """The others stay the same bones, though the cut makes two subjects of one."""
    trial = session.attempt(Edit(do="cut", bodies=("Chest", "RightUpperArm")))
    assert len(trial.solution.subjects) == 2
    gone = {c.what for c in trial.changes if c.after is None}
    assert gone == {"RightUpperArm length", "RightLowerArm length"}
    new = {c.what for c in trial.changes if c.before is None}
    assert new == {"RightUpperArm to RightLowerArm length"}


def test_bones_that_another_root_turns_round_are_the_same(session):
    trial = session.attempt(Edit(do="reroot", body="LeftFoot"))
    gone = {c.what for c in trial.changes if c.after is None}
    new = {c.what for c in trial.changes if c.before is None}
    assert not {f"{KNEE} length", "LeftFoot length"} & (gone | new)
    assert {c for c in gone if "Right" in c} == {"Hips to RightUpperLeg length"}


def test_a_split_body_is_attached_to_a_neighbour(session):
    edit = Edit(do="split", body=KNEE, markers=("LSHN",), name="Guard")
    answer = session.attempt(edit).solution
    tree, names = answer.tree, answer.bodies[0].names
    assert names[tree.parent[names.index("Guard")]] in (KNEE, *ANKLE, "LeftUpperLeg")
    assert len(tree.roots) == 1


def test_a_cut_makes_a_subject_and_changes_no_other_parent(session):
    before = session.solution.tree
    trial = session.attempt(Edit(do="cut", bodies=("Chest", "Head")))
    after, names = trial.solution.tree, session.solution.bodies[0].names
    changed = np.flatnonzero(before.parent != after.parent).tolist()
    assert changed == [names.index("Head")]
    assert [s.name for s in trial.solution.subjects] == ["Hips", "Head"]
    assert trial.after.joints == trial.before.joints - 1


def test_a_join_replaces_the_costliest_joint_of_the_cycle(linkage_session):
    """A bar that is joined at both ends loses the joint of higher cost."""
    trial = linkage_session.attempt(Edit(do="join", bodies=("bar4", "bar6")))
    before, after = linkage_session.solution.tree, trial.solution.tree
    assert len(after.roots) == len(before.roots) == 1
    pair = linkage_session.solution.joints.pair.tolist()
    gone, come = set(before.edge) - set(after.edge), set(after.edge) - set(before.edge)
    assert [pair[row] for row in come] == [[3, 5]]
    around = {(0, 2), (2, 3), (0, 4), (4, 5)}
    cost = edge_costs(linkage_session.solution.joints)
    worst = max(around, key=lambda two: cost[pair.index(list(two))])
    assert [pair[row] for row in gone] == [list(worst)]
    assert after.margin[[e in come for e in after.edge]].tolist() == [np.inf]


def test_a_joint_added_by_hand_is_never_replaced():
    pair = np.array([[0, 1], [0, 2], [1, 2]])
    alone = Tree(parent=np.full(3, -1), edge=np.full(3, -1), margin=np.full(3, np.inf))
    edited = EditableTree(alone, pair, np.ones(3), np.ones(3, dtype=bool), [0])
    assert edited.join(0, 1)
    assert edited.join(1, 2)
    assert not edited.join(0, 2)
    assert edited.tree().parent.tolist() == [-1, 0, 1]


@pytest.mark.parametrize("kind", ["hinge", "universal", "fixed", "ball"])
def test_a_joint_rotates_only_as_its_kind_allows(session, kind):
    trial = session.attempt(Edit(do="kind", joint=KNEE, kind=kind))
    skeleton = trial.solution.skeleton
    joint = skeleton.index(KNEE)
    assert skeleton.kind[joint] == kind
    R = geometry.matrix_from_quat(trial.solution.motion.wxyz[:, joint])
    first, second = skeleton.axes[joint]
    if kind == "hinge":
        np.testing.assert_allclose(R @ first, np.tile(first, (len(R), 1)), atol=1e-9)
        assert abs(first[1]) > 0.98  # a knee rotates about the mediolateral axis
        assert trial.after.marker_rms < 1.1 * trial.before.marker_rms
    if kind == "universal":
        np.testing.assert_allclose(first @ second, 0.0, atol=1e-9)
        np.testing.assert_allclose(R @ second @ first, 0.0, atol=1e-9)
    if kind == "fixed":
        np.testing.assert_allclose(R, np.broadcast_to(np.eye(3), R.shape), atol=1e-9)
        assert trial.after.marker_rms > 2.0 * trial.before.marker_rms
    # Rotations and their frames change; no bone does.
    np.testing.assert_allclose(
        skeleton.lengths, session.solution.skeleton.lengths, atol=1e-12
    )


def test_other_names_change_no_number(session):
    trial = session.attempt(Edit(do="rename", name="LeftFoot", to="Fuß"))
    assert trial.changes == ()
    assert trial.before == trial.after
    answer = trial.solution
    assert {"Fuß", "Fuß_end"} <= set(answer.skeleton.names)
    renamed = [n.replace("LeftFoot", "Fuß") for n in session.solution.bodies[0].names]
    assert list(answer.bodies[0].names) == renamed
    texts = [str(f) for f in answer.report.findings]
    assert not any("LeftFoot" in text for text in texts)
    rows = answer.report.tables["joints"].rows
    assert "Fuß" in [row[0] for row in rows]


def test_a_joint_that_is_no_body_can_be_renamed_and_placed(take):
    end = Edit(do="rename", name="Head_end", to="Crown")
    up = Edit(do="place-joint", joint="Crown", offset=(0.0, 0.0, 0.3))
    skeleton = solve(take, end, up).skeleton
    np.testing.assert_array_equal(
        skeleton.offset[skeleton.index("Crown")], [0.0, 0.0, 0.3]
    )


def test_the_end_of_a_renamed_bone_has_the_new_name(take):
    foot = Edit(do="rename", name="LeftFoot", to="Fuß")
    end = Edit(do="rename", name="Fuß_end", to="Zehe")
    down = Edit(do="place-joint", joint="Fuß_end", offset=(0.0, 0.0, -0.1))
    skeleton = solve(take, foot, down, end).skeleton
    assert {"Fuß", "Zehe"} <= set(skeleton.names)
    assert not {"LeftFoot_end", "Fuß_end"} & set(skeleton.names)
    np.testing.assert_array_equal(
        skeleton.offset[skeleton.index("Zehe")], [0.0, 0.0, -0.1]
    )
    with pytest.raises(marey.OptionError, match="Fuß_end, the name of nothing"):
        solve(take, foot, end, Edit(do="rename", name="Fuß_end", to="Ballen"))


def test_the_end_of_one_of_two_subjects_is_renamed():
    scene = synth.scene("handover", seconds=4.0, rate=25.0, markers="set53")
    first = marey.solve(scene)
    name = next(n for n in first.bodies[0].names if n.endswith("LeftFoot"))
    foot = Edit(do="rename", name=name, to="Fuß")
    end = Edit(do="rename", name="Fuß_end", to="Zehe")
    solved = marey.solve(scene, edits=(foot, end))
    has_toe = ["Zehe" in one.skeleton.names for one in solved.subjects]
    has_foot = ["LeftFoot_end" in one.skeleton.names for one in solved.subjects]
    assert sum(has_toe) == sum(has_foot) == 1


def test_a_placed_joint_moves_alone(session):
    old = session.solution.skeleton
    joint = old.index(KNEE)
    offset = tuple(old.offset[joint] + [0.01, 0.02, 0.03])
    trial = session.attempt(Edit(do="place-joint", joint=KNEE, offset=offset))
    new = trial.solution.skeleton
    np.testing.assert_allclose(new.offset[joint], offset)
    others = (np.arange(old.n_joints) != joint) & old.observed
    np.testing.assert_allclose(rest(new)[others], rest(old)[others], atol=1e-12)
    after, before = (rest(s)[s.marker_joint] + s.marker_offset for s in (new, old))
    np.testing.assert_allclose(after, before, atol=1e-12)
    changed = {change.what for change in trial.changes}
    assert changed == {f"{KNEE} length", "LeftFoot length"}
    assert trial.after.marker_rms > trial.before.marker_rms


def test_a_placed_marker_is_where_it_was_put(session):
    edit = Edit(do="place-marker", marker="LTHI", offset=(0.0, 0.1, -0.2))
    trial = session.attempt(edit)
    for skeleton in (trial.solution.skeleton, trial.solution.motion.skeleton):
        place = skeleton.marker_offset[skeleton.marker_labels.index("LTHI")]
        assert place.tolist() == [0.0, 0.1, -0.2]


def test_masked_frames_equal_unseen_frames(linkage):
    take = linkage
    points = take.points.copy()
    points[10:31] = np.nan
    edit = Edit(do="bad", first=10, last=30)
    answer = solve_linkage(take, edit)
    assert_equal(answer, solve_linkage(replace(take, points=points)))
    assert not answer.take.seen[10:31].any()
    assert "frames 10 to 30 marked as bad" in answer.take.history
    assert "marked-bad" in [finding.code for finding in answer.report.findings]


def test_the_ground_set_by_hand_is_reported(session):
    edit = Edit(do="ground", normal=(0.0, 0.0, 2.0), height=0.05)
    answer = session.attempt(edit).solution
    (finding,) = [f for f in answer.report.findings if f.code == "ground"]
    assert finding.value == pytest.approx(0.025)
    assert "by hand" in finding.message


def test_feet_stand_on_the_ground_that_was_set(take):
    session = EditSession(take, options=marey.SolveOptions(contacts=True))
    low = min(contact.anchor[2] for contact in session.solution.motion.contacts)
    height = float(low) + 0.01
    edit = Edit(do="ground", normal=(0.0, 0.0, 1.0), height=height)
    stands = [c.anchor[2] for c in session.attempt(edit).solution.motion.contacts]
    assert len(stands) == len(session.solution.motion.contacts)
    assert min(stands) == pytest.approx(height, abs=1e-6)


def test_an_offset_set_before_bodies_change_is_a_warning(linkage):
    place = Edit(do="place-joint", joint="bar2", offset=(0.0, 0.0, 0.3))
    merge = Edit(do="merge", bodies=("bar3", "bar4"))
    codes = [f.code for f in solve_linkage(linkage, place, merge).report.findings]
    assert "placed-early" in codes
    codes = [f.code for f in solve_linkage(linkage, merge, place).report.findings]
    assert "placed-early" not in codes


# --- sensors --------------------------------------------------------------------------


def test_trees_and_joints_of_sensors_are_edited(sensors):
    take, session = sensors
    for edit in (
        Edit(do="reroot", body="LeftFoot"),
        Edit(do="cut", bodies=ANKLE),
        Edit(do="bad", first=0, last=10, markers=("Hips",)),
    ):
        assert_equal(session.attempt(edit).solution, solve(take, edit))
    knee = session.attempt(Edit(do="kind", joint=KNEE, kind="hinge")).solution.skeleton
    assert knee.kind[knee.index(KNEE)] == "hinge"
    first = session.solution
    session.keep(session.attempt(Edit(do="cut", bodies=ANKLE)))
    trial = session.attempt(Edit(do="join", bodies=ANKLE))
    session.undo()
    assert_equal(trial.solution, first)


def test_bodies_of_takes_of_two_kinds_are_kept(sensors, take):
    sensed, _ = sensors
    session = EditSession([take, sensed])
    with pytest.raises(marey.OptionError, match="takes of markers and takes of sens"):
        session.attempt(Edit(do="merge", bodies=ANKLE))


# --- several takes, several subjects --------------------------------------------------


def test_edits_apply_to_all_takes_of_a_subject():
    figure = synth.linkage()
    takes = [
        figure.record(markers=4, seconds=2.0, rate=50.0, noise=1e-4, seed=0)
        for _ in range(2)
    ]
    takes[1] = takes[1].cut(20, 100)
    answer = solve(
        takes,
        Edit(do="merge", bodies=("LeftUpperArm", "LeftLowerArm")),
        Edit(do="bad", first=5, last=9, take=1),
    )
    assert all("LeftLowerArm" not in bodies.names for bodies in answer.bodies)
    assert answer.takes[0].seen[5:10].all()
    assert not answer.takes[1].seen[5:10].any()
    with pytest.raises(marey.OptionError, match="need 0 to 1"):
        solve(takes, Edit(do="bad", first=0, last=1, take=2))


# --- refusals -------------------------------------------------------------------------


def test_a_former_name_is_unknown(linkage):
    rename = Edit(do="rename", name="bar2", to="bob")
    for late in (
        Edit(do="rename", name="bar2", to="lever"),
        Edit(do="kind", joint="bar2", kind="hinge"),
        Edit(do="reroot", body="bar2"),
    ):
        with pytest.raises(marey.OptionError, match=r"edit 2: .*name of no body.*bob"):
            solve_linkage(linkage, rename, late)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (Edit(do="reroot", body="Tail"), "Tail, the name of no body"),
        (Edit(do="cut", bodies=("Hips", "Head")), "not joined"),
        (Edit(do="join", bodies=ANKLE), "joined already"),
        (Edit(do="merge", bodies=("Hips", "Tail")), "no body"),
        (Edit(do="move-marker", marker="XYZ", to="Hips"), "no marker"),
        (Edit(do="move-marker", marker="LTHI", to="Tail"), "no body"),
        (Edit(do="move-marker", marker="LTHI", to="LeftUpperLeg"), "already"),
        (
            Edit(do="split", body="Hips", markers=("LFWT", "RFWT", "LBWT", "RBWT")),
            "all its markers",
        ),
        (Edit(do="split", body="Hips", markers=("LTHI",)), "on another body"),
        (Edit(do="split", body="Hips", markers=("LFWT",), name="Head"), "another has"),
        (Edit(do="kind", joint="Hips", kind="hinge"), "the root of its tree"),
        (Edit(do="kind", joint="Tail", kind="hinge"), "no figure has"),
        (Edit(do="place-joint", joint="Hips", offset=(0.0, 0.0, 0.0)), "its tree"),
        (Edit(do="rename", name="Hips", to="Head"), "another has"),
        (Edit(do="rename", name="Tail", to="tail"), "the name of nothing"),
        (Edit(do="rename", name="Hips", to="Head_end"), "another joint has"),
        (Edit(do="bad", first=0, last=100), "need 0 to 99"),
        (Edit(do="bad", first=0, last=1, take=1), "need 0 to 0"),
        (Edit(do="bad", first=0, last=1, markers=("XYZ",)), "XYZ"),
    ],
    ids=str,
)
def test_an_impossible_edit_is_refused_and_changes_nothing(session, edit, words):
    before = session.solution, session.edits, session.score
    with pytest.raises(marey.OptionError, match=words) as error:
        session.attempt(edit)
    assert str(error.value).startswith("edit")
    assert (session.solution, session.edits, session.score) == before


def test_masking_all_frames_is_refused(session):
    before = session.solution
    with pytest.raises(marey.DataError, match="need"):
        session.attempt(Edit(do="bad", first=0, last=99))
    assert session.solution is before


def test_a_joint_without_rotation_has_no_axis(session, take):
    still = replace(take, points=np.repeat(take.points[:1], len(take.points), axis=0))
    performer = session.solution.skeleton
    session = EditSession(still, options=marey.SolveOptions(skeleton=performer))
    with pytest.raises(marey.DataError, match="motion that shows its axes"):
        session.attempt(Edit(do="kind", joint=KNEE, kind="hinge"))


def test_the_last_two_bodies_and_the_last_marker_are_kept(linkage_session, linkage):
    merges = [Edit(do="merge", bodies=("bar1", f"bar{i}")) for i in (2, 3, 4, 5)]
    last = Edit(do="merge", bodies=("bar1", "bar6"))
    with pytest.raises(marey.OptionError, match=r"edit 5: .*one body more"):
        solve_linkage(linkage, *merges, last)
    bodies = linkage_session.solution.bodies[0]
    labels = [bodies.take.labels[i] for i in np.flatnonzero(bodies.marker_body == 0)]
    moves = [Edit(do="move-marker", marker=label, to="") for label in labels]
    with pytest.raises(marey.OptionError, match=r"edit 4: .*the last marker"):
        solve_linkage(linkage, *moves)


def test_the_offset_of_a_joint_with_another_parent_is_refused(linkage):
    edits = (
        Edit(do="place-joint", joint="bar4", offset=(0.0, 0.0, 0.3)),
        Edit(do="cut", bodies=("bar4", "bar3")),
        Edit(do="join", bodies=("bar4", "bar6")),
    )
    with pytest.raises(marey.OptionError, match=r"edit 1: .*placed again"):
        solve_linkage(linkage, *edits)


# --- examples -------------------------------------------------------------------------


def test_two_markers_on_wrong_bodies_are_corrected(session, take):
    """A thigh marker taken for the shank's and a hip's for the chest's."""
    bodies = session.solution.bodies[0]
    markers = {
        name: [
            label
            for label, owner in zip(bodies.take.labels, bodies.marker_body, strict=True)
            if bodies.names[owner] == name
        ]
        for name in bodies.names
    }
    right = {
        name: {"markers": labels, "parent": bodies.parents.get(name, "")}
        for name, labels in markers.items()
    }
    wrong = {
        name: {**body, "markers": [*body["markers"]]} for name, body in right.items()
    }
    for label, home, away in (
        ("LTHI", "LeftUpperLeg", KNEE),
        ("LBWT", "Hips", "Chest"),
    ):
        wrong[home]["markers"].remove(label)
        wrong[away]["markers"].append(label)
    best = marey.solve(take, options=marey.SolveOptions(template=right))
    session = EditSession(take, options=marey.SolveOptions(template=wrong))
    first = session.score.marker_rms
    for label, home in (("LTHI", "LeftUpperLeg"), ("LBWT", "Hips")):
        trial = session.attempt(Edit(do="move-marker", marker=label, to=home))
        assert trial.after.marker_rms < trial.before.marker_rms
        assert "marker error" in trial.text
        session.keep(trial)
    assert first > 3.0 * session.score.marker_rms
    np.testing.assert_allclose(
        session.solution.skeleton.lengths, best.skeleton.lengths, atol=1e-9
    )


def test_a_leg_segmented_as_one_body_gets_its_knee_and_names():
    """Anonymous bodies: thigh and shank in one body, and wrong names by anatomy."""
    take = synth.human(seed=1).record(
        "chicken_walk", markers="dense110", seconds=3.0, rate=50.0, noise=5e-4
    )
    joint = take.truth.marker_joint
    bones = [take.truth.skeleton.names[j] for j in joint]
    groups = {bone: [] for bone in bones}
    for label, bone in zip(take.labels, bones, strict=True):
        groups[bone].append(label)
    thigh = groups.pop("LeftUpperLeg")
    shank = groups["LeftLowerLeg"]
    groups["LeftLowerLeg"] = [*shank, *thigh]
    found = {f"body{i + 1}": labels for i, labels in enumerate(groups.values())}
    session = EditSession(
        take, options=marey.SolveOptions(segment="template", template=found)
    )
    wrong = session.solution.bodies[0].names[list(groups).index("LeftLowerLeg")]
    trial = session.attempt(Edit(do="split", body=wrong, markers=tuple(thigh)))
    assert trial.after.marker_rms < 0.1 * trial.before.marker_rms
    session.keep(trial)
    answer = session.solution
    assert answer.skeleton.names[0] == "Hips"
    knee = dict(zip(answer.bodies[0].names, range(99), strict=False))
    new = answer.bodies[0].names[-1]
    assert new == "LeftUpperLeg"
    assert answer.bodies[0].names[answer.tree.parent[knee[KNEE]]] == new
    # Later edits use the names by anatomy after the split.
    session.keep(session.attempt(Edit(do="rename", name="LeftUpperLeg", to="thigh")))
    session.keep(session.attempt(Edit(do="cut", bodies=("thigh", KNEE))))
    again = marey.solve(
        take,
        options=marey.SolveOptions(
            segment="template", template=found, edits=session.edits
        ),
    )
    assert_equal(again, session.solution)


def test_the_command_line_applies_edits(take, tmp_path, capsys):
    marey.write(take, tmp_path / "walk.c3d")
    edits = (
        Edit(do="rename", name="Hips", to="pelvis"),
        Edit(do="merge", bodies=ANKLE),
    )
    write_edits(edits, tmp_path / "walk.edits.toml")
    walk, out = tmp_path / "walk.c3d", tmp_path / "walk.bvh"
    edited = ("--edits", tmp_path / "walk.edits.toml", "--no-whole")
    done = run("solve", walk, *edited, "-o", out)
    assert done == 0
    skeleton = marey.read_skeleton(out)
    assert skeleton.names[0] == "pelvis"
    assert "LeftFoot" not in skeleton.names
    write_edits([Edit(do="reroot", body="Tail")], tmp_path / "odd.edits.toml")
    assert run("solve", walk, "--edits", tmp_path / "odd.edits.toml") == 2
    printed = " ".join(capsys.readouterr().err.split())
    assert "edit 1: reroot, body: found 'Tail, the name of no body'" in printed


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code


# --- frames masked before the session ------------------------------------------------


BAD = Edit(do="bad", first=10, last=30)
RENAME = Edit(do="rename", name="bar1", to="frame")


def save_and_load(session, path):
    """The solution of a session, read from a file."""
    marey.write(session.solution, path, overwrite=True)
    return marey.load(path)


def count_masks(solution):
    """Number of masks: in the findings, and in the history."""
    found = sum(f.code == "marked-bad" for f in solution.report.findings)
    return found, sum("marked as bad" in line for line in solution.takes[0].history)


def test_frames_masked_in_a_saved_solution_stay_masked(linkage, tmp_path):
    first = open_linkage(linkage, edits=[BAD])
    loaded = save_and_load(first, tmp_path / "bad.marey")
    session = EditSession(loaded)
    assert session.solution is loaded
    assert session.edits == (BAD,)
    assert not session.can_undo
    with pytest.raises(marey.OptionError, match="only edits made before"):
        session.undo()
    trial = session.attempt(RENAME)
    assert count_masks(loaded) == count_masks(trial.solution) == (1, 1)
    assert_equal(trial.solution, solve_linkage(linkage, BAD, RENAME), atol=1e-12)
    session.keep(trial)
    assert session.edits == (BAD, RENAME)
    assert_equal(session.undo(), loaded)
    assert not session.can_undo


def test_a_mask_of_this_session_can_be_undone(linkage, tmp_path):
    """Even if the same frames were masked before."""
    loaded = save_and_load(open_linkage(linkage, edits=[BAD]), tmp_path / "bad.marey")
    session = EditSession(loaded)
    other = Edit(do="bad", first=40, last=50)
    for edit in (other, BAD):
        kept = session.keep(session.attempt(edit))
        assert count_masks(kept) == (2, 2)
        assert session.undo() is loaded
        session.redo()
        session.undo()


def test_undo_skips_masks_of_the_saved_solution(linkage, tmp_path):
    first = open_linkage(linkage, edits=[RENAME, BAD])
    session = EditSession(save_and_load(first, tmp_path / "bad.marey"))
    assert session.can_undo
    back = session.undo()
    assert session.edits == (BAD,)
    assert back.skeleton.names[0] == "bar1"
    assert count_masks(back) == (1, 1)
    assert not session.can_undo
    again = session.redo()
    assert session.edits == (RENAME, BAD)
    assert again.skeleton.names[0] == "frame"


def test_edits_given_with_a_solution_do_not_mask_twice(linkage, tmp_path):
    """Nor do they drop the masks of the solution."""
    loaded = save_and_load(open_linkage(linkage, edits=[BAD]), tmp_path / "bad.marey")
    for edits in ([RENAME], [BAD, RENAME]):
        session = EditSession(loaded, edits=edits)
        assert session.edits == (BAD, RENAME)
        assert count_masks(session.solution) == (1, 1)
    session = EditSession(loaded, edits=[RENAME, BAD])
    assert session.edits == (RENAME, BAD)
    assert count_masks(session.solution) == (1, 1)


def test_a_trial_of_a_new_name_reports_no_changes(sensors):
    _, session = sensors
    trial = session.attempt(Edit(do="rename", name="LeftFoot", to="JOE:Shoe"))
    assert "Shoe" in trial.solution.skeleton.names
    assert (trial.changes, trial.findings) == ((), ())
