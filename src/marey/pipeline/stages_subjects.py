"""Stages 8 to 10: bodies, joints and tree to skeletons, calibrated, then posed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool

from marey.calibration import CalibrateOptions, calibrate
from marey.errors import OptionError
from marey.motion import GroundPlane
from marey.pipeline.compare_subjects import session_findings, skeleton_findings
from marey.pipeline.options import SolveOptions, performer_known, session_numbers
from marey.pipeline.reroot import reroot_skeleton
from marey.pipeline.several_takes import concatenate_takes
from marey.pipeline.stages_bodies import BodyFit
from marey.pose import fit_pose
from marey.report import Finding
from marey.rig import build_skeletons
from marey.skeleton import Skeleton
from marey.solution import Subject
from marey.take import Take
from marey.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class SubjectFit:
    """One performer, animal or prop before its motion is known."""

    name: str
    skeleton: Skeleton
    take_skeletons: tuple[Skeleton, ...]
    """The same bones in each take, with the markers where they are attached in it."""

    pose_method: str
    findings: tuple[Finding, ...] = ()
    landmark_joints: tuple[str, ...] = ()
    """Joints that calibration began at landmarks, whatever their joint fits are."""

    def change_skeletons(
        self, change: Callable[..., Skeleton], *values: object
    ) -> "SubjectFit":
        """Return the subject with a change of its skeleton and of that of each take."""
        first, *others = (
            change(one, *values) for one in (self.skeleton, *self.take_skeletons)
        )
        return replace(self, skeleton=first, take_skeletons=tuple(others))


def build_subjects(fit: BodyFit, options: SolveOptions) -> tuple[SubjectFit, ...]:
    """Return a skeleton for every tree; a known performer is the only subject."""
    performer = options.skeleton
    if isinstance(performer, Skeleton) and performer_known(options):
        name = options.subject or performer.names[0]
        return (_subject(name, performer, fit, options),)
    bodies, tree = concatenate_takes(fit.bodies), fit.tree
    skeletons = build_skeletons(bodies, fit.joints, tree)
    sensor = dict(zip(bodies.names, fit.candidates.names, strict=True))
    skeletons = tuple(
        replace(one, sensor_names=tuple(sensor[name] for name in one.sensor_names))
        for one in skeletons
    )
    largest = max(skeletons, key=lambda skeleton: len(skeleton.names))
    subjects: list[SubjectFit] = []
    for root, skeleton in zip(tree.roots, skeletons, strict=True):
        owner, _, root_name = bodies.names[int(root)].rpartition(":")
        given = options.subject if skeleton is largest else ""
        name = given or owner or _subject_in_labels(skeleton) or root_name
        if name in {subject.name for subject in subjects} and not (given or owner):
            name = root_name
        subjects.append(_subject(name, skeleton, fit, options))
    return tuple(subjects)


def _subject(
    name: str, skeleton: Skeleton, fit: BodyFit, options: SolveOptions
) -> SubjectFit:
    automatic = "gauss_newton" if skeleton.marker_labels else "playback"
    method = automatic if options.pose == "auto" else options.pose
    return SubjectFit(name, skeleton, (skeleton,) * len(fit.takes), method)


def _subject_in_labels(skeleton: Skeleton) -> str:
    """Return the subject that all marker labels name; "" if they differ."""
    named = {label.rpartition(":")[0] for label in skeleton.marker_labels}
    return named.pop() if len(named) == 1 else ""


def calibrate_subjects(
    subjects: Sequence[SubjectFit], fit: BodyFit, options: SolveOptions
) -> tuple[SubjectFit, ...]:
    """Return the subjects with bones that fit all takes, and markers that fit each.

    Joints of 6-DoF sensors and keypoints need no calibration.
    """
    if not options.calibrate or fit.bodies[0].keypoints:
        return tuple(subjects)
    chosen = CalibrateOptions(
        keep_bones=performer_known(options), sessions=session_numbers(options)
    )
    calibrated = []
    for subject in subjects:
        if subject.skeleton.marker_labels:
            found = calibrate(subject.skeleton, fit.takes, options=chosen)
            subject = replace(
                subject,
                skeleton=found.skeleton,
                take_skeletons=found.skeletons,
                findings=(*found.findings, *_doubts(subject.skeleton, fit, options)),
                landmark_joints=found.landmark_joints,
            )
        calibrated.append(subject)
    return tuple(calibrated)


def _doubts(
    skeleton: Skeleton, fit: BodyFit, options: SolveOptions
) -> Iterator[Finding]:
    """Return whether takes and a given skeleton cannot be of one subject."""
    if performer_known(options):
        return skeleton_findings(skeleton, fit.takes)
    sessions = session_numbers(options) or range(len(fit.takes))
    return session_findings(skeleton, fit.takes, sessions)


def pose_subjects(
    subjects: Sequence[SubjectFit],
    takes: Sequence[Take],
    options: SolveOptions,
    floor: GroundPlane | None = None,
) -> tuple[tuple[Subject, ...], tuple[Finding, ...]]:
    """Return the motion of every subject in every take, and findings about it.

    Args:
        subjects: Skeletons, calibrated for each take.
        takes: The recordings.
        options: How to solve.
        floor: Plane that feet stand on; estimated when left out.
    """
    posed, findings = [], []
    for subject in subjects:
        fits = [
            fit_pose(
                skeleton,
                take,
                method=subject.pose_method,
                contacts=options.contacts,
                floor=floor,
            )
            for skeleton, take in zip(subject.take_skeletons, takes, strict=True)
        ]
        motions = tuple(motion for motion, _ in fits)
        posed.append(Subject(subject.name, subject.skeleton, motions))
        findings += [*subject.findings, *(f for _, found in fits for f in found)]
    return tuple(posed), tuple(findings)


# --- root -----------------------------------------------------------------------------


def set_root(
    subjects: tuple[SubjectFit, ...], fit: BodyFit, options: SolveOptions
) -> tuple[tuple[SubjectFit, ...], BodyFit]:
    """Return subjects and tree with the root that the options ask for, if any.

    The root changes after calibration, so that all numbers are those of any other root.

    Raises:
        OptionError: If no body, or more than one, has this name.
    """
    if not options.root:
        return subjects, fit
    names = fit.bodies[0].names
    bodies = bodies_named(options.root, fit.candidates.names, names)
    if len(bodies) != 1:
        count = f"{len(bodies)} bodies" if bodies else "no body"
        found = f"{options.root}, the name of {count}"
        raise OptionError("root", found=found, needed=f"one of {', '.join(names)}")
    body = bodies[0]
    number = subject_of_each_body(fit, options)[body]
    changed = list(subjects)
    changed[number] = reroot_subject(subjects[number], names[body])
    return tuple(changed), replace(fit, tree=fit.tree.reroot(body))


def bodies_named(
    name: str, found_names: Sequence[str], names: Sequence[str]
) -> list[int]:
    """Return the bodies of a name.

    Args:
        name: A body's name, with the subject's name in front or without.
        found_names: Names that segmentation gave, which have precedence.
        names: Names after anatomy.
    """
    bare = [other.rpartition(":")[2] for other in names]
    for every in (found_names, names, bare):
        found = [body for body, other in enumerate(every) if other == name]
        if found:
            return found
    return []


def reroot_subject(subject: SubjectFit, body: str) -> SubjectFit:
    """Return a subject with a body, given by name, as the root of its skeletons."""

    def reroot(skeleton: Skeleton) -> Skeleton:
        return reroot_skeleton(skeleton, skeleton.index(skeleton.joint_of(body)))

    return subject.change_skeletons(reroot)


def subject_of_each_body(fit: BodyFit, options: SolveOptions) -> list[int]:
    """Return the index of the subject that each body belongs to."""
    tree = fit.tree
    if performer_known(options):
        return [0] * len(tree.parent)
    roots = tree.roots.tolist()
    return [roots.index(root_of(tree, body)) for body in range(len(tree.parent))]


def used_joint_fits(
    subjects: Sequence[SubjectFit], fit: BodyFit, options: SolveOptions
) -> Bool[np.ndarray, " pair"]:
    """Return the joint fits of the tree that the skeletons depend on.

    A known performer needs none, and a person whose labels are those of a known marker
    set is calibrated from landmarks.
    """
    is_used = np.zeros(len(fit.joints.pair), dtype=bool)
    if performer_known(options):
        return is_used
    numbers, names = subject_of_each_body(fit, options), fit.bodies[0].names
    for body in np.flatnonzero(fit.tree.edge >= 0).tolist():
        subject = subjects[numbers[body]]
        joint = subject.skeleton.joint_of(names[body])
        is_used[fit.tree.edge[body]] = joint not in subject.landmark_joints
    return is_used


def root_of(tree: Tree, body: int) -> int:
    """Return the root of a body's tree."""
    while tree.parent[body] >= 0:
        body = int(tree.parent[body])
    return body
