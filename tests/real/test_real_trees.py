"""Trees of real 6-DoF recordings, compared with reference trees.

A reference tree comes from the file itself where it states one (the joints of an MVNX,
the parents of Motive's bones), else from anatomy, as the names of the bodies give it.
"""

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest
from real import loaders

import marey
from marey.joints import fit_joints
from marey.numerics import geometry
from marey.segmentation import segment
from marey.topology import infer_tree, tree_from_parents


def edges(text):
    return {frozenset(edge.split()) for edge in text.split(", ")}


def both_sides(text):
    return ", ".join(text.format(side=side) for side in "lr")


ART = edges(
    "PELV LLSP, LLSP ULSP, ULSP LTSP, LTSP UTSP, UTSP NECK, NECK HEAD, "
    "UTSP LSHO, LSHO LUAR, LUAR LLAR, LLAR LHAN, "
    "UTSP RSHO, RSHO RUAR, RUAR RLAR, RLAR RHAN, "
    "PELV LULE, LULE LLLE, LLLE LFOO, PELV RULE, RULE RLLE, RLLE RFOO"
)
THEIA = edges(
    "pelvis torso, torso neck, neck head, "
    + both_sides(
        "pelvis {side}_thigh, {side}_thigh {side}_shank, {side}_shank {side}_foot, "
        "{side}_foot {side}_toes, torso {side}_clavicle, {side}_clavicle {side}_uarm, "
        "{side}_uarm {side}_larm, {side}_larm {side}_hand"
    )
)
PENDULUM = edges("static upper, upper middle, middle lower")


def read_motive(folder):
    take = marey.read(folder / "sixdof_motive_csv" / "gaga_skeleton_bones_v1.25.csv")
    stated = take.source.parents
    return segment(take), {frozenset(pair) for pair in stated.items()}


def read_xsens(folder):
    path = folder / "sixdof_xsens_mvnx" / "test_mocap.mvnx"
    take, figure = marey.read(path), marey.read_motion(path).skeleton
    names = figure.names
    stated = {
        frozenset((names[i], names[p])) for i, p in enumerate(figure.parent) if p >= 0
    }
    return segment(take), {e for e in stated if e <= set(take.sensor_names)}


def read_art(folder):
    path = folder / "sixdof_art_human" / "ART-Human_real.c3d"
    return segment(marey.read(path)), ART


def read_theia(folder):
    path = folder / "sixdof_theia_rotations" / "C3DRotationExample.c3d"
    return segment(marey.read(path)), THEIA


def read_pendulum(trial):
    def read(folder):
        take = marey.read(folder / "mech_pendulum" / f"pendulum_{trial}.trc")
        bodies = ("static", "upper", "middle", "lower")
        return segment(take, template={b: [f"{b}*"] for b in bodies}), PENDULUM

    return read


def read_polhemus(name):
    def read(folder):
        take = marey.read(folder / "sixdof_polhemus_hinge" / name, unit="cm")
        return segment(take), {frozenset(take.sensor_names)}

    return read


def read_hinge(folder):
    bodies = segment(loaders.load_hinge(folder / "mech_hinge"))
    return bodies, {frozenset(bodies.names)}


@dataclass(frozen=True)
class Case:
    """A recording and the expected result."""

    read: object
    bodies: int
    edges: int
    """Number of edges in the reference tree."""

    right: int
    wrong: int = 0
    unattached: tuple[str, ...] = ()
    """Bodies without any joint."""

    bones: dict = field(default_factory=dict)
    """Distance in metres between the joints with parent and child, by (body, parent,
    child)."""

    one_axis: bool = False
    """Whether every joint of the rig is known to be a hinge."""

    reason: str = ""
    """Why the motion does not determine the whole tree."""


CASES = {
    "polhemus X": Case(
        read_polhemus("Polhemus_90degXclean_2data.csv"), 2, 1, 1, one_axis=True
    ),
    "polhemus Z": Case(
        read_polhemus("Polhemus_90degZ_1data.csv"), 2, 1, 1, one_axis=True
    ),
    "hinge": Case(read_hinge, 2, 1, 1, one_axis=True),
    "pendulum 01": Case(
        read_pendulum("01"),
        *(4, 3, 3),
        bones={
            ("upper", "static", "middle"): 0.519,
            ("middle", "upper", "lower"): 0.519,
        },
        one_axis=True,
    ),
    "pendulum 03": Case(
        read_pendulum("03"),
        *(4, 3, 3),
        bones={
            ("upper", "static", "middle"): 0.519,
            ("middle", "upper", "lower"): 0.519,
        },
        one_axis=True,
    ),
    "ART": Case(
        read_art,
        *(21, 20, 20),
        bones={
            ("LULE", "PELV", "LLLE"): 0.376,
            ("RULE", "PELV", "RLLE"): 0.376,
            ("LLLE", "LULE", "LFOO"): 0.418,
            ("RUAR", "RSHO", "RLAR"): 0.281,
        },
    ),
    "Motive": Case(
        read_motive,
        *(51, 50, 50),
        bones={
            ("LThigh", "763", "LShin"): 0.459,
            ("RThigh", "763", "RShin"): 0.459,
            ("LUArm", "LShoulder", "LFArm"): 0.267,
        },
    ),
    "Theia": Case(
        read_theia,
        *(21, 19, 16, 3),
        unattached=("worldbody",),
        bones={
            ("l_thigh", "pelvis", "l_shank"): 0.418,
            ("r_thigh", "pelvis", "r_shank"): 0.420,
            ("r_uarm", "r_clavicle", "r_larm"): 0.293,
        },
        reason="torso, neck and both clavicles rotate about one common point, so any "
        "of them may be the one that the others, and the pelvis, are joined to",
    ),
    "Xsens": Case(
        read_xsens,
        *(23, 22, 18, 4),
        bones={
            ("LeftUpperArm", "LeftShoulder", "LeftForeArm"): 0.264,
            ("LeftForeArm", "LeftUpperArm", "LeftHand"): 0.218,
        },
        reason="the legs move as one stiff piece in these two seconds; the shoulders "
        "are no fixed points of T8 in this solution",
    ),
}


@cache
def fit_tree(name, folder):
    """Bodies, reference, joints and tree of a recording."""
    bodies, reference = CASES[name].read(folder)
    joints = fit_joints(bodies)
    return bodies, reference, joints, infer_tree(joints)


def found_edges(bodies, tree):
    """The edges of a tree by the names of their bodies, with their margins."""
    return {
        frozenset((bodies.names[i], bodies.names[p])): tree.margin[i]
        for i, p in enumerate(tree.parent)
        if p >= 0
    }


def row_of(joints, one, other):
    return int(np.flatnonzero((joints.pair == sorted((one, other))).all(axis=1))[0])


def center_in_body(joints, body, other):
    row = row_of(joints, body, other)
    is_first = joints.pair[row, 0] == body
    return joints.center_a[row] if is_first else joints.center_b[row]


@pytest.mark.parametrize("name", CASES)
def test_the_tree_is_the_reference_as_far_as_the_motion_determines_it(name, recordings):
    case = CASES[name]
    bodies, reference, _, tree = fit_tree(name, recordings)
    assert (len(bodies.names), len(reference)) == (case.bodies, case.edges)
    found = found_edges(bodies, tree)
    right, wrong = set(found) & reference, set(found) - reference
    assert (len(right), len(wrong)) == (case.right, case.wrong), case.reason
    unattached = [n for n in bodies.names if not any(n in edge for edge in found)]
    assert tuple(unattached) == case.unattached
    assert len(tree.roots) == 1 + len(case.unattached)
    # Solved skeletons have no closed loops.
    assert tree.loops == ()


@pytest.mark.parametrize("name", CASES)
def test_wrong_edges_have_small_margins(name, recordings):
    bodies, reference, _, tree = fit_tree(name, recordings)
    wrong = [
        margin
        for edge, margin in found_edges(bodies, tree).items()
        if edge not in reference
    ]
    assert max(wrong, default=0.0) < 0.6


def test_edges_with_large_margins_are_right(recordings):
    """Over all recordings; too few margins are between 0.3 and 1 to test these."""
    margins, is_true = [], []
    for name in CASES:
        bodies, reference, _, tree = fit_tree(name, recordings)
        for edge, margin in found_edges(bodies, tree).items():
            margins.append(margin)
            is_true.append(edge in reference)
    margins, is_true = np.array(margins), np.array(is_true)
    assert is_true[margins > 1.0].all()
    assert is_true[margins > 0.3].mean() > 0.95
    assert (margins > 1.0).mean() > 0.3


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.bones])
def test_bone_lengths_are_those_of_the_rig(name, recordings):
    bodies, _, joints, _ = fit_tree(name, recordings)
    for (body, *ends), length in CASES[name].bones.items():
        i, parent, child = (bodies.names.index(n) for n in (body, *ends))
        ends = center_in_body(joints, i, parent), center_in_body(joints, i, child)
        found = np.linalg.norm(ends[0] - ends[1])
        assert found == pytest.approx(length, abs=1e-3), body


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.one_axis])
def test_hinges_leave_one_direction_without_motion(name, recordings):
    """The motion excites two directions equally, and not the axis."""
    _, _, joints, tree = fit_tree(name, recordings)
    edges = tree.edge[tree.edge >= 0]
    assert {joints.kind[edge] for edge in edges} == {"hinge"}
    least, second, third = joints.spread[edges, :3].T
    assert (least < 0.1 * second).all()
    assert (third < 1.02 * second).all()


def test_the_tree_of_theia_is_right_up_to_the_bodies_that_meet_in_one_point(
    recordings,
):
    bodies, reference, _, tree = fit_tree("Theia", recordings)
    meeting = {"torso", "neck", "l_clavicle", "r_clavicle"}

    def merged(pairs):
        return {frozenset("torso" if n in meeting else n for n in p) for p in pairs}

    found = found_edges(bodies, tree)
    assert merged(found) == merged(reference)
    assert sum(edge <= meeting for edge in found) == 3
    assert all(abs(m) < 0.1 for edge, m in found.items() if edge <= meeting)


def test_the_axis_of_the_hinge_rig_is_the_measured_one(recordings):
    _, _, joints, _ = fit_tree("hinge", recordings)
    axis, point = loaders.hinge_axis(recordings / "mech_hinge")
    axis = axis / np.linalg.norm(axis)
    offset = joints.center_a[0] - point
    assert np.linalg.norm(offset - (offset @ axis) * axis) < 1e-3
    assert joints.residual[0] < 0.5e-3


def test_joints_of_solved_skeletons_lie_in_the_origins_of_their_children(recordings):
    """ART's software puts the origin of a segment into the joint with its parent."""
    bodies, _, joints, tree = fit_tree("ART", recordings)
    for body in np.flatnonzero(tree.edge >= 0):
        parent = int(tree.parent[body])
        links = ((body, parent), (parent, body))
        centers = [center_in_body(joints, *link) for link in links]
        assert min(np.linalg.norm(center) for center in centers) < 1e-4
    T = bodies.T_world_body
    thigh, shank = (T[:, bodies.names.index(n)] for n in ("LULE", "LLLE"))
    length = np.linalg.norm(
        geometry.apply(thigh, np.zeros(3)) - shank[:, :3, 3], axis=1
    )
    assert length.mean() == pytest.approx(0.376, abs=5e-4)


@pytest.mark.parametrize("name", ["ART", "Theia", "Xsens"])
def test_names_of_segments_give_the_reference_tree(name, recordings):
    """Where names determine the tree, the motion need not."""
    bodies, reference, joints, _ = fit_tree(name, recordings)
    tree = tree_from_parents(bodies.parents, bodies.names, joints)
    assert set(found_edges(bodies, tree)) == reference
