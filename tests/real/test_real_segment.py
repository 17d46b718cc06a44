"""Bodies and trees of real markers, without their labels."""

from dataclasses import replace

import numpy as np
import pytest
from naive import adjusted_rand
from real import expected_names, optical

import marey
from marey import fit_joints, infer_tree
from marey.anatomy.names import without_subject
from marey.pipeline.options import SolveOptions
from marey.pipeline.person.prior import prefer_nameable_tree, stated_subjects
from marey.pipeline.stages.bodies import fit_bodies
from marey.rig import name_bodies
from marey.segmentation import segment
from marey.segmentation.body_poses import make_bodies
from marey.segmentation.methods.overlap import default_names

FULL_BODY = [
    name
    for name in optical.SETS
    if not name.startswith(("pendulum", "scapula", "glove", "racing"))
]

# Tolerant agreement, and bodies found, of each recording when its labels are not used.
# A joint-line marker may go with either neighbour. What is missing are mostly hands
# that never moved against their forearms, and walks with two markers on a segment.
LEAST = {
    "cmu 01_01": 0.95,
    "cmu 02_01": 0.90,
    "cmu 02_05": 0.90,
    "cmu 07_01": 0.88,
    "cmu 07_12": 0.87,
    "cmu 16_07": 0.90,
    "cmu 02 pooled": 0.90,
    "cmu 07 pooled": 0.88,
    "hdm05 dg": 0.90,
    "plug-in gait": 0.75,
    "gatech": 0.90,
    "opencap squat": 0.98,
    "opencap walk": 0.95,
    "opencap jump": 0.98,
    "opencap pooled": 0.98,
    "hamner run": 0.94,
    "arnold walk": 1.00,
    "pendulum 01": 1.00,
    "pendulum 03": 1.00,
    "biobuddy": 0.85,
    "tennis": 0.85,
    "racing": 0.80,
    "hockey": 0.70,
    "scapula": 0.65,
    "glove": 0.65,
}


@pytest.fixture(scope="module")
def solved(recordings):
    """Every set with the bodies and the tree found in it."""
    return {name: SolvedSet(make(recordings)) for name, make in optical.SETS.items()}


class SolvedSet:
    def __init__(self, known):
        self.known = known
        found = segment(known.takes, method="overlap")
        self.bodies = found[0]
        owner = self.bodies.marker_body
        self.labels = np.where(owner >= 0, owner, owner.max() + 1)
        self.strict = adjusted_rand(known.strict, self.labels)
        self.tolerant, self.truth = optical.tolerant_score(known, self.labels)
        self.match = optical.match_bodies(self.labels.tolist(), self.truth)
        self.possible = optical.contract_edges(known.edges, set(self.match.values()))
        joints = fit_joints(found)
        subjects = stated_subjects(self.bodies.names)
        tree = infer_tree(joints, subjects=subjects)
        self.tree = prefer_nameable_tree(self.bodies, joints, tree)
        self.right = self.edges(self.tree) & self.possible
        named, _ = name_bodies(self.bodies, joints, self.tree)
        self.names = [without_subject(name) for name in named.names]

    def edges(self, tree):
        """The tree's edges between bodies that are a true body each."""
        pairs = ((i, int(p)) for i, p in enumerate(tree.parent) if p >= 0)
        return {
            frozenset((self.match[a], self.match[b]))
            for a, b in pairs
            if a in self.match and b in self.match
        }

    def contracted_edges(self):
        """The tree's edges when pieces that are no true body join a neighbour.

        A separate collar bone, or half of a pelvis, does not make the joints beside it
        wrong. A piece joins the neighbour that its markers may belong to.
        """
        anatomy = {body for edge in self.known.edges for body in edge}
        edges = {
            frozenset((i, int(p))) for i, p in enumerate(self.tree.parent) if p >= 0
        }
        pieces = {b for edge in edges for b in edge if self.match.get(b) not in anatomy}
        for piece in sorted(pieces):
            neighbours = sorted(
                {b for edge in edges if piece in edge for b in edge} - {piece}
            )
            markers = np.flatnonzero(self.labels == piece)
            allowed = {body for m in markers for body in self.known.allowed[m]}
            target = next(
                (b for b in neighbours if self.match.get(b) in allowed),
                min(neighbours, default=-1),
            )
            edges = {edge for edge in edges if piece not in edge}
            edges |= {frozenset((target, b)) for b in neighbours if b != target}
        return {frozenset(self.match[b] for b in edge) for edge in edges}

    def merged_pairs(self):
        """Pairs of true bodies that one found body holds most of both of."""
        truth = np.array(self.truth)
        pairs = set()
        for body in range(len(self.bodies.names)):
            inside = truth[self.labels == body]
            names = [
                name
                for name in sorted(set(inside))
                if 2 * np.sum(inside == name) > np.sum(truth == name)
            ]
            pairs |= {frozenset((a, b)) for a in names for b in names if a < b}
        return pairs


@pytest.mark.parametrize("name", LEAST)
def test_bodies(solved, name):
    assert solved[name].tolerant >= LEAST[name]


def test_bodies_of_all_recordings(solved):
    assert np.mean([one.tolerant for one in solved.values()]) >= 0.90


def test_bodies_that_are_no_neighbours_are_not_merged(solved):
    """Collar bones and toes, which no tree of these recordings has, are pieces."""
    wrong = [
        (name, sorted(pair))
        for name in FULL_BODY
        for pair in solved[name].merged_pairs() - solved[name].known.edges
        if pair <= {body for edge in solved[name].known.edges for body in edge}
    ]
    assert wrong == []


def test_trees_of_the_bodies_found(solved):
    right = sum(len(one.right) for one in solved.values())
    possible = sum(len(one.possible) for one in solved.values())
    assert right / possible >= 0.91, f"{right} of {possible}"


def test_trees_of_the_bodies_found_when_pieces_join_their_neighbours(solved):
    right, possible = 0, 0
    for one in solved.values():
        right += len(one.contracted_edges() & one.possible)
        possible += len(one.possible)
    assert right / possible >= 0.95, f"{right} of {possible}"


def test_names_of_the_bodies_found(solved):
    """A wrong name is worse than none."""
    rows = {
        name: expected_names.count_names(
            solved[name].known,
            solved[name].names,
            solved[name].bodies.marker_body,
            solved[name].match,
        )
        for name in expected_names.PEOPLE
    }
    total = expected_names.total(rows)
    assert total["right"] >= 0.85 * sum(total.values()), rows
    assert total["wrong"] <= 0.02 * sum(total.values()), rows


def test_trees_and_names_of_the_true_bodies(solved):
    n_right, n_edges, rows = 0, 0, {}
    for name, one in solved.items():
        known = one.known
        names = sorted(set(known.strict))
        owner = np.array([names.index(name) for name in known.strict])
        members = np.arange(len(names))[:, None] == owner
        bodies = [make_bodies(take, names, members, owner) for take in known.takes]
        joints = fit_joints(bodies)
        nameless = replace(bodies[0], names=default_names(len(names)))
        tree = prefer_nameable_tree(nameless, joints, infer_tree(joints))
        given = name_bodies(nameless, joints, tree)[0].names
        if name in expected_names.PEOPLE:
            rows[name] = expected_names.count_names(
                known, given, owner, dict(enumerate(names))
            )
        edges = {
            frozenset((names[i], names[p])) for i, p in enumerate(tree.parent) if p >= 0
        }
        n_right += len(edges & known.edges)
        n_edges += len(known.edges)
    assert n_right / n_edges >= 0.97, f"{n_right} of {n_edges}"
    total = expected_names.total(rows)
    assert total["right"] >= 0.96 * sum(total.values()), rows
    assert total["wrong"] == 0, rows


def test_edges_of_large_margin_are_right(solved):
    """Edges between bodies that were found right, by the margin of their choice."""
    good, unsure = [], []
    for one in solved.values():
        for body in np.flatnonzero(one.tree.parent >= 0):
            pair = (int(body), int(one.tree.parent[body]))
            if not all(b in one.match for b in pair):
                continue
            right = frozenset(one.match[b] for b in pair) in one.possible
            margin = one.tree.margin[body]
            (good if margin > 1.0 else unsure if margin < 0.3 else []).append(right)
    assert np.mean(good) >= 0.9, f"{np.mean(good):.2f} of {len(good)}"
    assert np.mean(unsure) < np.mean(good)


@pytest.mark.parametrize("person", ["s01", "s02"])
def test_many_markers_in_noise_are_no_joints(recordings, person):
    """Of 64 markers on a walker three tenths keep their distance to two segments."""
    take = marey.read(recordings / f"addbio_arnold_{person}_synthetic" / "walk2.trc")
    labels = tuple(f"M{i:03}" for i in range(len(take.labels)))
    for seed in range(3):
        noise = np.random.default_rng(seed).standard_normal(take.points.shape)
        noisy = replace(take, points=take.points + 1e-3 * noise, labels=labels)
        assert not segment(noisy).keypoints


@pytest.mark.parametrize("person", ["s01", "s02"])
def test_condyles_and_a_computed_centre_are_no_body(recordings, person):
    """The walker has 12 bodies; markers on the axis of a knee are not a body more."""
    take = marey.read(recordings / f"addbio_arnold_{person}_synthetic" / "walk2.trc")
    labels = tuple(f"M{i:03}" for i in range(len(take.labels)))
    found = segment(replace(take, labels=labels), method="overlap")
    assert len(found.names) == 12


@pytest.mark.parametrize(
    ("file", "thigh", "shank"),
    [
        ("nimble_stepwidth_vsj/step_width.trc", "{}TH", "{}SK"),
        ("c3dorg_qualisys_sparse/Capture0003.c3d", "{}_suppat", "{}_tubtib"),
    ],
)
def test_a_knee_beside_which_markers_hardly_move_is_found(
    recordings, file, thigh, shank
):
    """Clusterings have the thigh and the shank of these walkers as one body."""
    take = marey.read(recordings / file)
    hidden = replace(take, labels=tuple(f"M{i:03}" for i in range(len(take.labels))))
    fit = fit_bodies((hidden,), SolveOptions(segment="overlap"))
    owner = fit.bodies[0].marker_body
    for side in "LR" if thigh == "{}TH" else "lr":
        upper, lower = (
            int(owner[take.labels.index(name.format(side))]) for name in (thigh, shank)
        )
        assert upper != lower
        assert fit.tree.parent[lower] == upper or fit.tree.parent[upper] == lower
