"""DeAguiar2006, Sec. 6 and Fig. 5: a walking robot and a jumping snowman."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from marey import synth
from marey.bodies import Bodies
from marey.joints import JointFits, fit_joints
from marey.joints.distance.fit import joint_costs
from marey.metrics import compare
from marey.papers.deaguiar2006.pictures import figure_5
from marey.papers.deaguiar2006.stick import Errors, joint_errors, stick_of
from marey.papers.experiment import Drawing, Effort, Experiment
from marey.report import Table
from marey.segmentation import segment
from marey.synth import Figure, Recording
from marey.topology import infer_tree
from marey.topology.spanning_forest import (
    adjacency_list,
    edge_margins,
    minimum_spanning_forest,
    root_forest,
)
from marey.tree import Tree

RATE, SECONDS, RUNS = 15.0, 20.0, 3
SKINS = (0.0, 10.0)

PER_BODY, FEWEST = 8, 5
"""Vertices taken as markers: on average, and of each body at least."""

MOTIONS = {
    "robot": {"walk": "walk", "exercise": "rich"},
    "snowman": {"jump": "jump", "exercise": "rich"},
}
FRAMES = {"robot": 20, "snowman": 15}
"""The frame that is drawn."""

PUBLISHED = {("robot", "walk"), ("snowman", "jump")}


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """One recording by one way of working."""

    bodies: Bodies
    fits: JointFits
    found: int
    ari: float
    """Agreement with the true bodies; a vertex in a joint is right in either."""

    wrong: int
    """Connections that are wrong or missing."""

    errors: Errors


def random_vertices(take: Recording, rng: np.random.Generator) -> Recording:
    """Return a recording with some vertices of the mesh for markers, as in Sec. 6."""
    body = take.truth.marker_body
    order = rng.permutation(len(body))
    first = [m for b in np.unique(body) for m in order[body[order] == b][:FEWEST]]
    rest = order[~np.isin(order, first)]
    count = PER_BODY * len(np.unique(body)) - len(first)
    return take.select(np.sort(np.concatenate([first, rest[:count]])).astype(int))


def record_figure(figure: Figure, motion: str, skin: float, seed: int) -> Recording:
    """Return a figure of random mesh vertices, its skin sliding by millimetres."""
    take = figure.record(
        motion,
        seconds=SECONDS,
        rate=RATE,
        markers="mesh",
        labels=False,
        seed=seed,
        soft_tissue=1e-3 * skin,
    )
    return random_vertices(take, np.random.default_rng([seed, 2006]))


def true_bodies(take: Recording) -> Bodies:
    """Return the bodies with every marker where it belongs."""
    truth = take.truth
    names = truth.skeleton.names
    worn = np.unique(truth.marker_joint)
    template = {
        names[joint]: [
            take.labels[m] for m in np.flatnonzero(truth.marker_joint == joint)
        ]
        for joint in worn.tolist()
    }
    return segment(take, method="template", template=template)


def as_published(take: Recording) -> Outcome:
    """Return what the paper's way gives: clusters by their spectrum, Eqs. 2-4."""
    bodies = segment(take, method="spectral")
    fits = fit_joints(bodies, method="distance", printed=True)
    return _outcome(take, bodies, fits, published_tree(bodies, fits))


def ours(take: Recording) -> Outcome:
    """Return what marey gives."""
    bodies = segment(take)
    fits = fit_joints(bodies)
    return _outcome(take, bodies, fits, infer_tree(fits))


def ours_with_bodies(take: Recording) -> Outcome:
    """Return what marey gives where the bodies are known."""
    bodies = true_bodies(take)
    fits = fit_joints(bodies)
    return _outcome(take, bodies, fits, infer_tree(fits))


def published_tree(bodies: Bodies, fits: JointFits) -> Tree:
    """Return the minimum spanning tree of the costs of Eq. 2, as in Sec. 4."""
    cost, n_bodies = joint_costs((bodies,), fits), len(bodies.names)
    edges = minimum_spanning_forest(fits.pair, cost, n_bodies)
    parent, edge = root_forest(adjacency_list(fits.pair, edges, n_bodies), None)
    return Tree(parent=parent, edge=edge, margin=edge_margins(fits.pair, cost, edge))


def _outcome(take: Recording, bodies: Bodies, fits: JointFits, tree: Tree) -> Outcome:
    score = compare(bodies, take)
    connections = compare(tree, take, bodies=bodies)
    errors = joint_errors(bodies, fits, take)
    wrong = connections.wrong + connections.missing
    return Outcome(bodies, fits, score.found, score.ari_shared, wrong, errors)


WAYS = {"paper": as_published, "ours": ours, "known": ours_with_bodies}

NOTE = (
    "Markers are random vertices of the mesh, eight a body, without names. As paper: "
    "self-tuning spectral clusters, Eqs. 2-4 with the penalty as printed, and the tree "
    "of least cost by Eq. 2; its meshes and motions are not published, ours are of the "
    "same kind. Ours: `segment`, `fit_joints` and `infer_tree` as they come; known: "
    "the same with the true bodies. Where on its axis a hinge sits no motion can tell: "
    "across leaves that out. Skin that slides in proportion to the angles of a joint "
    "is, to first order, a joint elsewhere, the more so the less it moves: a walk is "
    "worse than rich motion, and no method gets below that."
)


def figures(effort: Effort) -> Experiment:
    """Joints of a robot and a snowman, in shares of their height."""
    errors: list[tuple[str | float, ...]] = []
    counts: list[tuple[str | float, ...]] = []
    drawn = {}
    for figure, motion, skin in _settings(effort):
        name = MOTIONS[figure.name][motion]
        effort.say(f"figures: {figure.name}, {name}, skin {skin:g} mm")
        outcomes = _outcomes(figure, motion, skin, effort)
        published = (figure.name, motion) in PUBLISHED and skin == 0.0
        theirs = ("3", "7") if published else ("", "")
        setting = (figure.name, name, f"{skin:g}")
        errors.append((*setting, *theirs, *_percents(outcomes)))
        counts.append((*setting, len(figure.bodies), *_counts(outcomes)))
        if published:
            drawn[figure.name] = _drawing(figure, motion, outcomes["ours"][0], effort)
    first = ("figure", "motion", "skin mm")
    runs = effort.runs(RUNS)
    return Experiment(
        title="Robot and snowman (Sec. 6, Fig. 5)",
        tables={
            f"Joints off by, % of the height, mean over joints, runs: {runs}": Table(
                (
                    *first,
                    "paper",
                    "Kirk",
                    "as paper",
                    "ours",
                    "across",
                    "known",
                    "across",
                ),
                tuple(errors),
            ),
            "Bodies found, and wrong or missing connections, run by run": Table(
                (*first, "bodies", "as paper", "ours", "wrong, as paper", "ours"),
                tuple(counts),
            ),
        },
        note=NOTE,
        figures={f"figure-5-{name}": drawing for name, drawing in drawn.items()},
    )


def _settings(effort: Effort) -> Iterator[tuple[Figure, str, float]]:
    """Return every recording; in a hurry, those that the paper has."""
    for figure in (synth.robot(), synth.snowman()):
        for motion in MOTIONS[figure.name]:
            for skin in SKINS:
                published = (figure.name, motion) in PUBLISHED and skin == 0.0
                if published or not effort.quick:
                    yield figure, motion, skin


def _outcomes(
    figure: Figure, motion: str, skin: float, effort: Effort
) -> Mapping[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {name: [] for name in WAYS}
    for run in range(effort.runs(RUNS)):
        take = record_figure(figure, motion, skin, effort.seed + run)
        for name, way in WAYS.items():
            found[name].append(way(take))
    return found


def _percents(outcomes: Mapping[str, list[Outcome]]) -> Iterator[float]:
    for way, name in (
        ("paper", "mean"),
        ("ours", "mean"),
        ("ours", "across"),
        ("known", "mean"),
        ("known", "across"),
    ):
        shares = [getattr(outcome.errors, name) for outcome in outcomes[way]]
        yield round(100.0 * float(np.nanmean(shares)), 2)


def _counts(outcomes: Mapping[str, list[Outcome]]) -> Iterator[str]:
    for name in ("found", "wrong"):
        for way in ("paper", "ours"):
            yield " ".join(str(getattr(outcome, name)) for outcome in outcomes[way])


def _drawing(figure: Figure, motion: str, outcome: Outcome, effort: Effort) -> Drawing:
    """Return the figure beside its skeleton, as in Fig. 5."""
    take = record_figure(figure, motion, 0.0, effort.seed)
    tree = infer_tree(outcome.fits)
    stick = stick_of(outcome.bodies, outcome.fits, tree).with_constant_lengths()
    return figure_5(take, outcome.bodies, stick, frame=FRAMES[figure.name])
