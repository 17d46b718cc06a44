"""Figures on their way from bodies to motion: skeletons, calibrated, then posed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from marey.calibration import CalibrateOptions, calibrate
from marey.edits import Edit
from marey.errors import OptionError
from marey.pipeline.concatenate import pooled
from marey.pipeline.options import SolveOptions
from marey.pipeline.stages import Fitted
from marey.pose import fit_pose
from marey.pose.contact.footing import Floor
from marey.report import Finding
from marey.rig import build_skeletons
from marey.skeleton import Skeleton
from marey.solution import Subject
from marey.take import Take


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """One performer, animal or prop."""

    name: str
    skeleton: Skeleton
    worn: tuple[Skeleton, ...]
    """The same bones with the markers as each take has them."""

    findings: tuple[Finding, ...] = ()
    kinds_by_hand: bool = False
    """Whether the user told kinds of its joints, which playback would not heed."""


def with_known(chosen: SolveOptions) -> SolveOptions:
    """Return options by which the bodies are those of a performer that is known."""
    skeleton = chosen.skeleton
    if skeleton is None:
        return chosen
    if skeleton.marker_labels:
        return replace(chosen, segment="template", template=skeleton)
    if skeleton.sensor_names:
        return replace(chosen, tree=_sensor_tree(skeleton))
    raise OptionError(
        "skeleton",
        found="no markers and no sensors on it",
        needed="a performer with markers, as `marey solve -o s01.skel.json` writes it",
    )


def _sensor_tree(skeleton: Skeleton) -> dict[str, str]:
    """Return the sensor above each sensor of a skeleton."""
    worn = dict(zip(skeleton.sensor_joint.tolist(), skeleton.sensor_names, strict=True))
    tree = {}
    for joint, name in worn.items():
        above = int(skeleton.parent[joint])
        while above >= 0 and above not in worn:
            above = int(skeleton.parent[above])
        if above >= 0:
            tree[name] = worn[above]
    return tree


def figures_of(fitted: Fitted, chosen: SolveOptions) -> list[Figure]:
    """Return every figure of the tree; a performer that is known is the only one."""
    count = len(fitted.takes)
    if chosen.skeleton is not None:
        name = chosen.subject or chosen.skeleton.names[0]
        return [Figure(name, chosen.skeleton, (chosen.skeleton,) * count)]
    bodies, tree = pooled(fitted.bodies), fitted.tree
    skeletons = build_skeletons(bodies, fitted.joints, tree)
    sensor = dict(zip(bodies.names, fitted.found.bodies[0].names, strict=True))
    skeletons = tuple(
        replace(one, sensor_names=tuple(sensor[name] for name in one.sensor_names))
        for one in skeletons
    )
    largest = max(skeletons, key=lambda skeleton: len(skeleton.names))
    figures = []
    for root, skeleton in zip(tree.roots, skeletons, strict=True):
        owner, _, own = bodies.names[int(root)].rpartition(":")
        given = chosen.subject if skeleton is largest else ""
        name = given or owner or _wearer(skeleton) or own
        figures.append(Figure(name, skeleton, (skeleton,) * count))
    return figures


def _wearer(skeleton: Skeleton) -> str:
    """Return the subject that all markers of a skeleton name; none if they differ."""
    named = {label.rpartition(":")[0] for label in skeleton.marker_labels}
    return named.pop() if len(named) == 1 else ""


def calibrated(
    figures: list[Figure], fitted: Fitted, chosen: SolveOptions
) -> list[Figure]:
    """Return the figures with bones, and markers take by take, that fit all takes.

    The joints of 6-DoF sensors, and points that are joints, are as good as they get.
    """
    if not chosen.calibrate or fitted.bodies[0].keypoints:
        return figures
    options = CalibrateOptions(keep_bones=chosen.skeleton is not None)
    done = []
    for figure in figures:
        if figure.skeleton.marker_labels:
            found = calibrate(figure.skeleton, fitted.takes, options=options)
            figure = replace(
                figure,
                skeleton=found.skeleton,
                worn=found.skeletons,
                findings=found.findings,
            )
        done.append(figure)
    return done


def posed(
    figures: Sequence[Figure],
    takes: Sequence[Take],
    chosen: SolveOptions,
    ground: Edit | None = None,
) -> tuple[tuple[Subject, ...], tuple[Finding, ...]]:
    """Return every figure with its motion in every take, and what was met.

    Args:
        figures: Skeletons, as worn in every take.
        takes: The recordings.
        chosen: How to solve.
        ground: What feet stand on, if the user said so.
    """
    subjects, findings = [], []
    floor = None if ground is None else _floor(ground)
    for figure in figures:
        method = pose_method(figure, chosen)
        found = [
            fit_pose(
                skeleton, take, method=method, contacts=chosen.contacts, floor=floor
            )
            for skeleton, take in zip(figure.worn, takes, strict=True)
        ]
        motions = tuple(motion for motion, _ in found)
        subjects.append(Subject(figure.name, figure.skeleton, motions))
        findings += [*figure.findings, *(f for _, met in found for f in met)]
    return tuple(subjects), tuple(findings)


def _floor(ground: Edit) -> Floor:
    """Return the plane of points x with normal . x = height."""
    x, y, z = ground.normal
    return Floor(height=ground.height / z, slope=(-x / z, -y / z))


def pose_method(figure: Figure, chosen: SolveOptions) -> str:
    """Return how the poses of a figure are found."""
    if chosen.pose != "auto":
        return chosen.pose
    fit = figure.skeleton.marker_labels or figure.kinds_by_hand
    return "gauss_newton" if fit else "playback"
