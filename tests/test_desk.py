"""A desk to put answers right at: what each edit does, and that nothing is lost."""

from dataclasses import replace

import numpy as np
import posed
import pytest

import marey
from marey import synth
from marey.cli import main
from marey.editing.reroot import rerooted
from marey.editing.tree import Hanging, Start
from marey.edits import NEEDED, Edit, read_edits, write_edits
from marey.numerics import geometry
from marey.pipeline import EditSession
from marey.topology import edge_costs
from marey.tree import Tree

KNEE = "LeftLowerLeg"
ANKLE = ("LeftLowerLeg", "LeftFoot")
RECORDED = {"seconds": 2.0, "rate": 50.0, "noise": 1e-3}


@pytest.fixture(scope="module")
def take():
    return synth.human(seed=1).record("walk", markers="set53", **RECORDED)


@pytest.fixture(scope="module")
def desk(take):
    """A desk on which nothing is kept for long."""
    return EditSession(take)


@pytest.fixture(scope="module")
def linkage():
    """Six bars: 2, 3 and 5 hang from 1, 4 from 3 and 6 from 5."""
    return synth.linkage().record(markers=4, seconds=3.0, rate=50.0, noise=1e-4)


BARS = (
    "Torso",
    "Head",
    "LeftUpperArm",
    "LeftLowerArm",
    "RightUpperArm",
    "RightLowerArm",
)
MAP = {"template": {f"bar{i + 1}": [f"{name}*"] for i, name in enumerate(BARS)}}


def laid(take, **more):
    """A desk with the linkage on it."""
    return EditSession(take, options=marey.SolveOptions(**MAP), **more)


@pytest.fixture(scope="module")
def bench(linkage):
    return laid(linkage)


@pytest.fixture(scope="module")
def sensors():
    take = synth.human().record(
        "exercise", seed=1, markers="none", sensors=True, rate=50.0, seconds=5.0
    )
    return take, EditSession(take)


def one_of_each(solution):
    """Every edit that the linkage allows."""
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
        "rename": Edit(do="rename", name="bar1", to="frame"),
        "place joint": Edit(do="place-joint", joint="bar4", offset=tuple(limb)),
        "place marker": Edit(do="place-marker", marker=label, offset=tuple(place)),
        "bad": Edit(do="bad", first=10, last=30, markers=tuple(first[:2])),
        "ground": Edit(do="ground", normal=(0.0, 0.0, 1.0), height=0.02),
    }


EACH = (
    *("reroot", "move", "take off", "merge", "split", "cut", "join", "ball"),
    *("universal", "hinge", "fixed", "rename", "place joint", "place marker"),
    *("bad", "ground"),
)


def solved(take, *edits, **options):
    return marey.solve(take, options=marey.SolveOptions(edits=edits, **options))


def linked(take, *edits):
    return solved(take, *edits, **MAP)


def numbers(solution):
    """Every array that an answer holds, by where it stands."""
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


def assert_same(one, other, *, atol=0.0):
    assert one.bodies[0].names == other.bodies[0].names
    mine, theirs = numbers(one), numbers(other)
    assert mine.keys() == theirs.keys()
    for name in mine:
        np.testing.assert_allclose(
            mine[name], theirs[name], rtol=0.0, atol=atol, err_msg=name
        )


def marker_points(solution):
    """Where the figures have their markers, by label."""
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
def test_the_desk_gives_what_a_solve_with_the_edit_gives(bench, linkage, name):
    edit = one_of_each(bench.solution)[name]
    before = bench.solution
    trial = bench.attempt(edit)
    assert_same(trial.solution, linked(linkage, edit))
    assert bench.solution is before
    assert bench.edits == ()


def test_each_kind_of_edit_is_among_them(bench):
    edits = one_of_each(bench.solution)
    assert tuple(edits) == EACH
    assert {edit.do for edit in edits.values()} == set(NEEDED)


def test_many_edits_are_replayed_from_their_file(take, tmp_path):
    desk = EditSession(take)
    for edit in (
        Edit(do="ground", normal=(0.0, 0.0, 1.0), height=0.02),
        Edit(do="rename", name="Hips", to="pelvis"),
        Edit(do="kind", joint=KNEE, kind="hinge"),
        Edit(do="merge", bodies=("LeftUpperArm", "LeftLowerArm"), name="arm"),
        Edit(do="cut", bodies=("Head", "Chest")),
        Edit(do="reroot", body="Chest"),
        Edit(do="place-joint", joint="pelvis", offset=(0.0, 0.0, -0.3)),
        Edit(do="place-marker", marker="LUPA", offset=(0.1, 0.1, 0.1)),
    ):
        desk.keep(desk.attempt(edit))
    path = tmp_path / "walk.edits.toml"
    write_edits(desk.edits, path)
    again = solved(take, *read_edits(path))
    assert_same(desk.solution, again)
    assert again.options["edits"] == tuple(edit.record() for edit in desk.edits)
    told = {str(finding) for finding in again.report.findings}
    assert told == {str(finding) for finding in desk.solution.report.findings}


def test_undo_gives_back_the_very_answer_and_redo_the_other(linkage):
    desk = laid(linkage)
    first = desk.solution
    assert (desk.can_undo, desk.can_redo) == (False, False)
    trial = desk.attempt({"do": "rename", "name": "bar1", "to": "frame"})
    kept = desk.keep(trial)
    assert kept is trial.solution is desk.solution
    assert (desk.can_undo, desk.can_redo) == (True, False)
    assert desk.undo() is first
    assert (desk.can_undo, desk.can_redo) == (False, True)
    assert desk.redo() is kept
    assert desk.edits == (trial.edit,)
    desk.undo()
    desk.keep(desk.attempt(Edit(do="kind", joint="bar4", kind="hinge")))
    assert not desk.can_redo


def test_undo_reaches_back_before_the_desk(linkage):
    rename = Edit(do="rename", name="bar1", to="frame")
    desk = laid(linkage, edits=[rename.record()])
    assert desk.solution.skeleton.names[0] == "frame"
    assert desk.undo().skeleton.names[0] == "bar1"
    assert not desk.can_undo
    with pytest.raises(marey.OptionError, match="no edits"):
        desk.undo()
    desk.redo()
    with pytest.raises(marey.OptionError, match="nothing undone"):
        desk.redo()


def test_a_trial_is_kept_only_where_it_was_tried(linkage):
    desk = laid(linkage)
    old = desk.attempt(Edit(do="rename", name="bar1", to="frame"))
    desk.keep(desk.attempt(Edit(do="rename", name="bar2", to="crank")))
    with pytest.raises(marey.OptionError, match="tried again"):
        desk.keep(old)
    assert len(desk.edits) == 1


def test_a_saved_answer_is_edited_as_if_it_were_solved_here(bench, tmp_path):
    marey.write(bench.solution, tmp_path / "link.marey")
    loaded = marey.load(tmp_path / "link.marey")
    again = EditSession(loaded)
    assert again.solution is loaded
    edits = one_of_each(bench.solution)
    for name in ("merge", "cut", "hinge", "bad"):
        assert_same(
            again.attempt(edits[name]).solution, bench.attempt(edits[name]).solution
        )
    again.keep(again.attempt(edits["merge"]))
    marey.write(again.solution, tmp_path / "merged.marey")
    third = EditSession(marey.load(tmp_path / "merged.marey"))
    assert third.edits == again.edits
    assert_same(third.undo(), loaded)


def test_options_come_back_with_a_saved_answer(desk, take, tmp_path):
    performer = desk.solution.skeleton
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
    ("there", "back"),
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
def test_there_and_back_is_where_it_was(desk, there, back):
    before = desk.solution
    desk.keep(desk.attempt(there))
    trial = desk.attempt(back)
    desk.undo()
    assert_same(trial.solution, before)


# --- what each edit does --------------------------------------------------------------


def test_another_root_moves_nothing(desk):
    trial = desk.attempt(Edit(do="reroot", body="Chest"))
    skeleton = trial.solution.skeleton
    assert skeleton.names[0] == "Chest"
    assert skeleton.names[skeleton.parent[skeleton.index("Hips")]] == "Chest"
    assert trial.solution.tree.parent[1] == -1
    before, after = marker_points(desk.solution), marker_points(trial.solution)
    for label, points in before.items():
        np.testing.assert_allclose(after[label], points, atol=2e-5)
    assert trial.after.marker_rms == pytest.approx(trial.before.marker_rms, rel=1e-3)


def test_a_rerooted_skeleton_stands_and_moves_as_before(rng):
    skeleton = posed.every_kind(rng)
    place, wxyz = posed.any_pose(skeleton, rng)
    T_root = geometry.transform(geometry.matrix_from_quat(wxyz[0]), place)
    T = skeleton.forward(T_root[None], wxyz[None])[0]
    new = rerooted(skeleton, skeleton.index("leaf"))
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


def test_a_rerooted_joint_turns_about_the_same_axes(rng):
    """What a hinge or universal joint allowed from one side it allows from both."""
    skeleton = posed.every_kind(rng)
    limits = np.full((7, 3, 2), np.nan)
    limits[3, :2] = [[-0.1, 0.2], [-0.3, 0.4]]
    skeleton = replace(skeleton, limits=limits)
    new = rerooted(skeleton, skeleton.index("leaf"))
    # The universal joint of "universal" on "hinge" is now that of "hinge" on it.
    joint = new.index("hinge")
    assert new.kind[joint] == "universal"
    np.testing.assert_array_equal(new.axes[joint], skeleton.axes[3, ::-1])
    expected = [[-0.4, 0.3], [-0.2, 0.1]]
    np.testing.assert_array_equal(new.limits[joint, :2], expected)
    back = rerooted(new, new.index("root"))
    order = [back.index(name) for name in skeleton.names]
    np.testing.assert_allclose(back.rest()[order[1:], :3, 3], rest(skeleton)[1:])
    np.testing.assert_array_equal(back.limits[order[3]], skeleton.limits[3])


def rest(skeleton):
    return skeleton.rest()[:, :3, 3]


def test_a_moved_marker_is_on_its_new_body_only(desk):
    answer = desk.attempt(Edit(do="move-marker", marker="LKNE", to="Hips")).solution
    bodies, skeleton = answer.bodies[0], answer.skeleton
    marker = bodies.take.labels.index("LKNE")
    assert bodies.marker_body[marker] == bodies.names.index("Hips")
    assert bodies.shared[marker].sum() == 1
    assert bodies.marker_confidence[marker] == 1.0
    place = skeleton.marker_labels.index("LKNE")
    assert skeleton.names[skeleton.marker_joint[place]] == "Hips"


def test_a_marker_on_no_body_is_on_no_figure(desk):
    answer = desk.attempt(Edit(do="move-marker", marker="LTHI", to="")).solution
    assert "LTHI" not in answer.skeleton.marker_labels
    assert "LTHI" in answer.take.labels


def test_merged_bodies_are_one_under_the_name_given(desk):
    trial = desk.attempt(Edit(do="merge", bodies=ANKLE, name="Shank"))
    assert (trial.after.bodies, trial.before.bodies) == (14, 15)
    names = trial.solution.bodies[0].names
    assert "Shank" in names
    assert not set(ANKLE) & set(names)
    lost = [c.what for c in trial.changes if c.after is None]
    assert "LeftFoot length" in lost


def test_a_split_body_hangs_where_it_fits(desk):
    edit = Edit(do="split", body=KNEE, markers=("LSHN",), name="Guard")
    answer = desk.attempt(edit).solution
    tree, names = answer.tree, answer.bodies[0].names
    assert names[tree.parent[names.index("Guard")]] in (KNEE, *ANKLE, "LeftUpperLeg")
    assert len(tree.roots) == 1


def test_a_cut_makes_a_subject_and_leaves_the_rest_alone(desk):
    before = desk.solution.tree
    trial = desk.attempt(Edit(do="cut", bodies=("Chest", "Head")))
    after, names = trial.solution.tree, desk.solution.bodies[0].names
    changed = np.flatnonzero(before.parent != after.parent).tolist()
    assert changed == [names.index("Head")]
    assert [s.name for s in trial.solution.subjects] == ["Hips", "Head"]
    assert trial.after.joints == trial.before.joints - 1


def test_a_join_replaces_the_joint_that_fits_worst(bench):
    """A bar that is held at both ends lets go at the end that fits worse."""
    trial = bench.attempt(Edit(do="join", bodies=("bar4", "bar6")))
    before, after = bench.solution.tree, trial.solution.tree
    assert len(after.roots) == len(before.roots) == 1
    pair = bench.solution.joints.pair.tolist()
    gone, come = set(before.edge) - set(after.edge), set(after.edge) - set(before.edge)
    assert [pair[row] for row in come] == [[3, 5]]
    around = {(0, 2), (2, 3), (0, 4), (4, 5)}
    cost = edge_costs(bench.solution.joints)
    worst = max(around, key=lambda two: cost[pair.index(list(two))])
    assert [pair[row] for row in gone] == [list(worst)]
    assert after.margin[[e in come for e in after.edge]].tolist() == [np.inf]


def test_what_was_joined_by_hand_never_gives_way():
    pair = np.array([[0, 1], [0, 2], [1, 2]])
    alone = Tree(parent=np.full(3, -1), edge=np.full(3, -1), margin=np.full(3, np.inf))
    start = Start(alone, pair, np.ones(3), np.ones(3, dtype=bool))
    hanging = Hanging(start, [0])
    assert hanging.join(0, 1)
    assert hanging.join(1, 2)
    assert not hanging.join(0, 2)
    assert hanging.tree().parent.tolist() == [-1, 0, 1]


@pytest.mark.parametrize("kind", ["hinge", "universal", "fixed", "ball"])
def test_a_joint_of_a_kind_turns_as_its_kind_allows(desk, kind):
    trial = desk.attempt(Edit(do="kind", joint=KNEE, kind=kind))
    skeleton = trial.solution.skeleton
    joint = skeleton.index(KNEE)
    assert skeleton.kind[joint] == kind
    R = geometry.matrix_from_quat(trial.solution.motion.wxyz[:, joint])
    first, second = skeleton.axes[joint]
    if kind == "hinge":
        np.testing.assert_allclose(R @ first, np.tile(first, (len(R), 1)), atol=1e-9)
        assert abs(first[1]) > 0.98  # a knee turns about the line from side to side
        assert trial.after.marker_rms < 1.1 * trial.before.marker_rms
    if kind == "universal":
        np.testing.assert_allclose(first @ second, 0.0, atol=1e-9)
        np.testing.assert_allclose(R @ second @ first, 0.0, atol=1e-9)
    if kind == "fixed":
        np.testing.assert_allclose(R, np.broadcast_to(np.eye(3), R.shape), atol=1e-9)
        assert trial.after.marker_rms > 2.0 * trial.before.marker_rms
    # Only turns change, and the frames they are told in: no bone does.
    np.testing.assert_allclose(
        skeleton.lengths, desk.solution.skeleton.lengths, atol=1e-12
    )


def test_other_names_change_no_number(desk):
    trial = desk.attempt(Edit(do="rename", name="LeftFoot", to="Fuß"))
    assert trial.changes == ()
    assert trial.before == trial.after
    answer = trial.solution
    assert {"Fuß", "Fuß_end"} <= set(answer.skeleton.names)
    renamed = [n.replace("LeftFoot", "Fuß") for n in desk.solution.bodies[0].names]
    assert list(answer.bodies[0].names) == renamed
    texts = [str(f) for f in answer.report.findings]
    assert not any("LeftFoot" in text for text in texts)
    rows = answer.report.tables["joints"].rows
    assert "Fuß" in [row[0] for row in rows]


def test_a_joint_that_is_no_body_can_be_renamed_and_placed(take):
    end = Edit(do="rename", name="Head_end", to="Crown")
    up = Edit(do="place-joint", joint="Crown", offset=(0.0, 0.0, 0.3))
    skeleton = solved(take, end, up).skeleton
    np.testing.assert_array_equal(
        skeleton.offset[skeleton.index("Crown")], [0.0, 0.0, 0.3]
    )


def test_a_placed_joint_moves_alone(desk):
    old = desk.solution.skeleton
    joint = old.index(KNEE)
    offset = tuple(old.offset[joint] + [0.01, 0.02, 0.03])
    trial = desk.attempt(Edit(do="place-joint", joint=KNEE, offset=offset))
    new = trial.solution.skeleton
    np.testing.assert_allclose(new.offset[joint], offset)
    others = np.arange(old.n_joints) != joint
    np.testing.assert_allclose(rest(new)[others], rest(old)[others], atol=1e-12)
    places = [rest(s)[s.marker_joint] + s.marker_offset for s in (new, old)]
    np.testing.assert_allclose(*places, atol=1e-12)
    changed = {change.what for change in trial.changes}
    assert changed == {f"{KNEE} length", "LeftFoot length"}
    assert trial.after.marker_rms > trial.before.marker_rms


def test_a_placed_marker_is_where_it_was_put(desk):
    edit = Edit(do="place-marker", marker="LTHI", offset=(0.0, 0.1, -0.2))
    trial = desk.attempt(edit)
    for skeleton in (trial.solution.skeleton, trial.solution.motion.skeleton):
        place = skeleton.marker_offset[skeleton.marker_labels.index("LTHI")]
        assert place.tolist() == [0.0, 0.1, -0.2]


def test_bad_frames_are_as_if_they_had_not_been_seen(linkage):
    take = linkage
    points = take.points.copy()
    points[10:31] = np.nan
    edit = Edit(do="bad", first=10, last=30)
    answer = linked(take, edit)
    assert_same(answer, linked(replace(take, points=points)))
    assert not answer.take.seen[10:31].any()
    assert "frames 10 to 30 marked as bad" in answer.take.history
    assert "marked-bad" in [finding.code for finding in answer.report.findings]


def test_the_ground_is_told_as_it_was_set(desk):
    edit = Edit(do="ground", normal=(0.0, 0.0, 2.0), height=0.05)
    answer = desk.attempt(edit).solution
    (told,) = [f for f in answer.report.findings if f.code == "ground"]
    assert told.value == pytest.approx(0.025)
    assert "by hand" in told.message


def test_feet_stand_on_the_ground_that_was_set(take):
    desk = EditSession(take, options=marey.SolveOptions(contacts=True))
    low = min(contact.anchor[2] for contact in desk.solution.motion.contacts)
    height = float(low) + 0.01
    edit = Edit(do="ground", normal=(0.0, 0.0, 1.0), height=height)
    stands = [c.anchor[2] for c in desk.attempt(edit).solution.motion.contacts]
    assert len(stands) == len(desk.solution.motion.contacts)
    assert min(stands) == pytest.approx(height, abs=1e-6)


def test_a_place_told_before_bodies_change_is_worth_a_look(linkage):
    place = Edit(do="place-joint", joint="bar2", offset=(0.0, 0.0, 0.3))
    merge = Edit(do="merge", bodies=("bar3", "bar4"))
    codes = [f.code for f in linked(linkage, place, merge).report.findings]
    assert "placed-early" in codes
    codes = [f.code for f in linked(linkage, merge, place).report.findings]
    assert "placed-early" not in codes


# --- sensors --------------------------------------------------------------------------


def test_sensors_are_hung_cut_joined_and_bound(sensors):
    take, desk = sensors
    for edit in (
        Edit(do="reroot", body="LeftFoot"),
        Edit(do="cut", bodies=ANKLE),
        Edit(do="bad", first=0, last=10, markers=("Hips",)),
    ):
        assert_same(desk.attempt(edit).solution, solved(take, edit))
    knee = desk.attempt(Edit(do="kind", joint=KNEE, kind="hinge")).solution.skeleton
    assert knee.kind[knee.index(KNEE)] == "hinge"
    first = desk.solution
    desk.keep(desk.attempt(Edit(do="cut", bodies=ANKLE)))
    trial = desk.attempt(Edit(do="join", bodies=ANKLE))
    desk.undo()
    assert_same(trial.solution, first)


def test_a_sensor_is_one_body(sensors):
    _, desk = sensors
    with pytest.raises(marey.OptionError, match="bodies that are sensors"):
        desk.attempt(Edit(do="merge", bodies=ANKLE))


# --- several takes, several subjects --------------------------------------------------


def test_edits_hold_for_all_takes_of_a_subject():
    figure = synth.linkage()
    takes = [
        figure.record(markers=4, seconds=2.0, rate=50.0, noise=1e-4, seed=0)
        for _ in range(2)
    ]
    takes[1] = takes[1].cut(20, 100)
    answer = solved(
        takes,
        Edit(do="merge", bodies=("body3", "body4")),
        Edit(do="bad", first=5, last=9, take=1),
    )
    assert all("body4" not in bodies.names for bodies in answer.bodies)
    assert answer.takes[0].seen[5:10].all()
    assert not answer.takes[1].seen[5:10].any()
    with pytest.raises(marey.OptionError, match="need 0 to 1"):
        solved(takes, Edit(do="bad", first=0, last=1, take=2))


# --- refusals -------------------------------------------------------------------------


def test_a_name_that_was_given_up_names_nothing(linkage):
    rename = Edit(do="rename", name="bar2", to="bob")
    for late in (
        Edit(do="rename", name="bar2", to="lever"),
        Edit(do="kind", joint="bar2", kind="hinge"),
        Edit(do="reroot", body="bar2"),
    ):
        with pytest.raises(marey.OptionError, match=r"edit 2: .*name of no body.*bob"):
            linked(linkage, rename, late)


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
        (Edit(do="kind", joint="Hips", kind="hinge"), "from which the tree hangs"),
        (Edit(do="kind", joint="Tail", kind="hinge"), "no figure has"),
        (Edit(do="place-joint", joint="Hips", offset=(0.0, 0.0, 0.0)), "the tree"),
        (Edit(do="rename", name="Hips", to="Head"), "another has"),
        (Edit(do="rename", name="Tail", to="tail"), "the name of nothing"),
        (Edit(do="rename", name="Hips", to="Head_end"), "another joint has"),
        (Edit(do="bad", first=0, last=100), "need 0 to 99"),
        (Edit(do="bad", first=0, last=1, take=1), "need 0 to 0"),
        (Edit(do="bad", first=0, last=1, markers=("XYZ",)), "XYZ"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_in_words_and_nothing_is_lost(desk, edit, words):
    before = desk.solution, desk.edits, desk.score
    with pytest.raises(marey.OptionError, match=words) as told:
        desk.attempt(edit)
    assert str(told.value).startswith("edit")
    assert (desk.solution, desk.edits, desk.score) == before


def test_what_leaves_nothing_to_solve_is_refused_with_the_reason(desk):
    before = desk.solution
    with pytest.raises(marey.DataError, match="need"):
        desk.attempt(Edit(do="bad", first=0, last=99))
    assert desk.solution is before


def test_a_joint_that_never_turned_has_no_axis(desk, take):
    still = replace(take, points=np.repeat(take.points[:1], len(take.points), axis=0))
    performer = desk.solution.skeleton
    desk = EditSession(still, options=marey.SolveOptions(skeleton=performer))
    with pytest.raises(marey.DataError, match="motion that shows its axes"):
        desk.attempt(Edit(do="kind", joint=KNEE, kind="hinge"))


def test_the_last_two_bodies_stay_two_and_the_last_marker_stays(bench, linkage):
    merges = [Edit(do="merge", bodies=("bar1", f"bar{i}")) for i in (2, 3, 4, 5)]
    last = Edit(do="merge", bodies=("bar1", "bar6"))
    with pytest.raises(marey.OptionError, match=r"edit 5: .*one body more"):
        linked(linkage, *merges, last)
    bodies = bench.solution.bodies[0]
    mine = [bodies.take.labels[i] for i in np.flatnonzero(bodies.marker_body == 0)]
    moves = [Edit(do="move-marker", marker=label, to="") for label in mine]
    with pytest.raises(marey.OptionError, match=r"edit 4: .*the last marker"):
        linked(linkage, *moves)


def test_a_placed_joint_that_hangs_elsewhere_is_asked_for_anew(linkage):
    edits = (
        Edit(do="place-joint", joint="bar4", offset=(0.0, 0.0, 0.3)),
        Edit(do="cut", bodies=("bar4", "bar3")),
        Edit(do="join", bodies=("bar4", "bar6")),
    )
    with pytest.raises(marey.OptionError, match=r"edit 1: .*placed anew"):
        linked(linkage, *edits)


# --- pictures -------------------------------------------------------------------------


def test_two_markers_on_wrong_bodies_are_put_right(desk, take):
    """A thigh marker taken for the shank's and a hip's for the chest's."""
    bodies = desk.solution.bodies[0]
    markers = {
        name: [
            label
            for label, owner in zip(bodies.take.labels, bodies.marker_body, strict=True)
            if bodies.names[owner] == name
        ]
        for name in bodies.names
    }
    right = {
        name: {"markers": mine, "parent": bodies.parents.get(name, "")}
        for name, mine in markers.items()
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
    desk = EditSession(take, options=marey.SolveOptions(template=wrong))
    first = desk.score.marker_rms
    for label, home in (("LTHI", "LeftUpperLeg"), ("LBWT", "Hips")):
        trial = desk.attempt(Edit(do="move-marker", marker=label, to=home))
        assert trial.after.marker_rms < trial.before.marker_rms
        assert "marker error" in trial.text
        desk.keep(trial)
    assert first > 3.0 * desk.score.marker_rms
    np.testing.assert_allclose(
        desk.solution.skeleton.lengths, best.skeleton.lengths, atol=1e-9
    )


def test_a_leg_found_in_one_piece_gets_its_knee_and_its_name():
    """Bodies without names: a thigh and a shank in one, and names gone astray."""
    take = synth.human(seed=1).record(
        "chicken_walk", markers="dense110", seconds=6.0, rate=50.0, noise=5e-4
    )
    joint = take.truth.marker_joint
    bones = [take.truth.skeleton.names[j] for j in joint]
    groups = {bone: [] for bone in bones}
    for label, bone in zip(take.labels, bones, strict=True):
        groups[bone].append(label)
    thigh = groups.pop("LeftUpperLeg")
    shank = groups["LeftLowerLeg"]
    groups["LeftLowerLeg"] = [*shank, *thigh]
    found = {f"body{i + 1}": mine for i, mine in enumerate(groups.values())}
    desk = EditSession(
        take, options=marey.SolveOptions(segment="template", template=found)
    )
    wrong = desk.solution.bodies[0].names[list(groups).index("LeftLowerLeg")]
    trial = desk.attempt(Edit(do="split", body=wrong, markers=tuple(thigh)))
    assert trial.after.marker_rms < 0.1 * trial.before.marker_rms
    desk.keep(trial)
    answer = desk.solution
    assert answer.skeleton.names[0] == "Hips"
    knee = dict(zip(answer.bodies[0].names, range(99), strict=False))
    new = answer.bodies[0].names[-1]
    assert new == "LeftUpperLeg"
    assert answer.bodies[0].names[answer.tree.parent[knee[KNEE]]] == new
    # Edits after it speak of the names that stand now.
    desk.keep(desk.attempt(Edit(do="rename", name="LeftUpperLeg", to="thigh")))
    desk.keep(desk.attempt(Edit(do="cut", bodies=("thigh", KNEE))))
    again = marey.solve(
        take,
        options=marey.SolveOptions(
            segment="template", template=found, edits=desk.edits
        ),
    )
    assert_same(again, desk.solution)


def test_the_command_line_replays_edits(take, tmp_path, capsys):
    marey.write(take, tmp_path / "walk.c3d")
    edits = (
        Edit(do="rename", name="Hips", to="pelvis"),
        Edit(do="merge", bodies=ANKLE),
    )
    write_edits(edits, tmp_path / "walk.edits.toml")
    walk, out = tmp_path / "walk.c3d", tmp_path / "walk.bvh"
    done = run("solve", walk, "--edits", tmp_path / "walk.edits.toml", "-o", out)
    assert done == 0
    skeleton = marey.read_skeleton(out)
    assert skeleton.names[0] == "pelvis"
    assert "LeftFoot" not in skeleton.names
    write_edits([Edit(do="reroot", body="Tail")], tmp_path / "odd.edits.toml")
    assert run("solve", walk, "--edits", tmp_path / "odd.edits.toml") == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "edit 1: reroot, body: found 'Tail, the name of no body'" in told


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code


# --- what was marked as bad before the desk -------------------------------------------


BAD = Edit(do="bad", first=10, last=30)
RENAME = Edit(do="rename", name="bar1", to="frame")


def saved(desk, path):
    """The answer of a desk, from a file."""
    marey.write(desk.solution, path, overwrite=True)
    return marey.load(path)


def marks(solution):
    """How often frames are told to be bad: as findings, and in the history."""
    found = sum(f.code == "marked-bad" for f in solution.report.findings)
    return found, sum("marked as bad" in line for line in solution.takes[0].history)


def test_frames_marked_as_bad_before_a_file_was_written_stay_so(linkage, tmp_path):
    first = laid(linkage, edits=[BAD])
    loaded = saved(first, tmp_path / "bad.marey")
    desk = EditSession(loaded)
    assert desk.solution is loaded
    assert desk.edits == (BAD,)
    assert not desk.can_undo
    with pytest.raises(marey.OptionError, match="only frames marked as bad before"):
        desk.undo()
    trial = desk.attempt(RENAME)
    assert marks(loaded) == marks(trial.solution) == (1, 1)
    assert_same(trial.solution, linked(linkage, BAD, RENAME), atol=1e-12)
    desk.keep(trial)
    assert desk.edits == (BAD, RENAME)
    assert_same(desk.undo(), loaded)
    assert not desk.can_undo


def test_what_is_marked_as_bad_on_the_desk_can_be_undone(linkage, tmp_path):
    """Even if the very same had been marked before."""
    loaded = saved(laid(linkage, edits=[BAD]), tmp_path / "bad.marey")
    desk = EditSession(loaded)
    other = Edit(do="bad", first=40, last=50)
    for edit in (other, BAD):
        kept = desk.keep(desk.attempt(edit))
        assert marks(kept) == (2, 2)
        assert desk.undo() is loaded
        desk.redo()
        desk.undo()


def test_undo_passes_over_what_cannot_be_undone(linkage, tmp_path):
    first = laid(linkage, edits=[RENAME, BAD])
    desk = EditSession(saved(first, tmp_path / "bad.marey"))
    assert desk.can_undo
    back = desk.undo()
    assert desk.edits == (BAD,)
    assert back.skeleton.names[0] == "bar1"
    assert marks(back) == (1, 1)
    assert not desk.can_undo
    again = desk.redo()
    assert desk.edits == (RENAME, BAD)
    assert again.skeleton.names[0] == "frame"


def test_edits_given_with_an_answer_do_not_mark_it_twice(linkage, tmp_path):
    """Nor do they leave out what was marked before."""
    loaded = saved(laid(linkage, edits=[BAD]), tmp_path / "bad.marey")
    for edits in ([RENAME], [BAD, RENAME]):
        desk = EditSession(loaded, edits=edits)
        assert desk.edits == (BAD, RENAME)
        assert marks(desk.solution) == (1, 1)
    desk = EditSession(loaded, edits=[RENAME, BAD])
    assert desk.edits == (RENAME, BAD)
    assert marks(desk.solution) == (1, 1)


def test_a_trial_of_another_name_tells_nothing_new(sensors):
    _, desk = sensors
    trial = desk.attempt(Edit(do="rename", name="LeftFoot", to="JOE:Shoe"))
    assert "Shoe" in trial.solution.skeleton.names
    assert (trial.changes, trial.findings) == ((), ())
