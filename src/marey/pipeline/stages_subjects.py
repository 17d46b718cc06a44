"""Stages 8 to 10: bodies, joints and tree to skeletons, calibrated, then posed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool

from marey.anatomy import names as vrm
from marey.calibration import CalibrateOptions, calibrate
from marey.errors import OptionError
from marey.motion import GroundPlane
from marey.pipeline.options import SolveOptions
from marey.pipeline.reroot import reroot_skeleton
from marey.pipeline.several_takes import concatenate_takes
from marey.pipeline.stages_bodies import BodyFit
from marey.pose import fit_pose, mark_contacts
from marey.report import Finding
from marey.rig import build_skeletons
from marey.segmentation.methods.sensors import recognise_program
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

    is_calibrated: bool = False
    """Whether calibration has fitted the joints to all takes."""

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
    if options.skeleton is not None:
        name = options.subject or options.skeleton.names[0]
        return (_subject(name, options.skeleton, fit, options),)
    bodies, tree = concatenate_takes(fit.bodies), fit.tree
    skeletons = build_skeletons(bodies, fit.joints, tree)
    sensor = dict(zip(bodies.names, fit.candidates.names, strict=True))
    skeletons = tuple(
        replace(one, sensor_names=tuple(sensor[name] for name in one.sensor_names))
        for one in skeletons
    )
    largest = max(skeletons, key=lambda skeleton: len(skeleton.names))
    subjects = []
    for root, skeleton in zip(tree.roots, skeletons, strict=True):
        owner, _, root_name = bodies.names[int(root)].rpartition(":")
        given = options.subject if skeleton is largest else ""
        name = given or owner or _subject_in_labels(skeleton) or root_name
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
    kept_bones = CalibrateOptions(keep_bones=options.skeleton is not None)
    calibrated = []
    for subject in subjects:
        if subject.skeleton.marker_labels:
            found = calibrate(subject.skeleton, fit.takes, options=kept_bones)
            subject = replace(
                subject,
                skeleton=found.skeleton,
                take_skeletons=found.skeletons,
                findings=found.findings,
                is_calibrated=all(f.code != "not-calibrated" for f in found.findings),
                landmark_joints=found.landmark_joints,
            )
        calibrated.append(subject)
    return tuple(calibrated)


def pose_subjects(
    subjects: Sequence[SubjectFit],
    takes: Sequence[Take],
    options: SolveOptions,
    floor: GroundPlane | None = None,
) -> tuple[tuple[Subject, ...], tuple[Finding, ...]]:
    """Return the motion of every subject in every take, and findings about it.

    The foot plants of people are found always, and held only if the options say so.

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
        if not options.contacts and _is_person(subject.skeleton):
            motions = tuple(map(mark_contacts, motions, takes))
        posed.append(Subject(subject.name, subject.skeleton, motions))
        findings += [*subject.findings, *(f for _, found in fits for f in found)]
    return tuple(posed), tuple(findings)


def _is_person(skeleton: Skeleton) -> bool:
    """Return whether joints or sensors have the names of a person's parts."""
    bare = [vrm.without_subject(name) for name in skeleton.names]
    return vrm.is_person(bare) or bool(recognise_program(skeleton.sensor_names)[0])


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
    if options.skeleton is not None:
        return [0] * len(tree.parent)
    roots = tree.roots.tolist()
    return [roots.index(root_of(tree, body)) for body in range(len(tree.parent))]


def final_joint_fits(
    subjects: Sequence[SubjectFit], fit: BodyFit, options: SolveOptions
) -> Bool[np.ndarray, " pair"]:
    """Return the joint fits of the tree that the skeletons have as they are.

    Calibration fits all joints of a subject again.
    """
    is_final = used_joint_fits(subjects, fit, options)
    numbers = subject_of_each_body(fit, options)
    for body in np.flatnonzero(fit.tree.edge >= 0).tolist():
        if subjects[numbers[body]].is_calibrated:
            is_final[fit.tree.edge[body]] = False
    return is_final


def used_joint_fits(
    subjects: Sequence[SubjectFit], fit: BodyFit, options: SolveOptions
) -> Bool[np.ndarray, " pair"]:
    """Return the joint fits of the tree that the skeletons depend on.

    A known performer needs none, and a person whose labels are those of a known marker
    set is calibrated from landmarks.
    """
    is_used = np.zeros(len(fit.joints.pair), dtype=bool)
    if options.skeleton is not None:
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
