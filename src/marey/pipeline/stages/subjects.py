"""Stages 8 to 10: bodies, joints and tree to skeletons, calibrated, then posed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.toes import bend_toes, hinge_toes
from marey.anatomy.whole_person import complete_motion, complete_person
from marey.bodies import Bodies
from marey.calibration import CalibrateOptions, calibrate
from marey.errors import OptionError
from marey.joint_fits import JointFits
from marey.motion import GroundPlane
from marey.numerics import Bool, geometry
from marey.numerics.thresholds import MIN_SAMPLES
from marey.pipeline.options import SolveOptions, performer_known, session_numbers
from marey.pipeline.posing.holds import check_held_joints, choose_holds, read_holds
from marey.pipeline.posing.limits import check_named_joints, limit_skeletons
from marey.pipeline.posing.settings import (
    choose_method,
    known_ground,
    pose_settings,
)
from marey.pipeline.posing.where_seen import pose_where_seen
from marey.pipeline.reporting.compare_subjects import (
    session_findings,
    skeleton_findings,
)
from marey.pipeline.stages.bodies import BodyFit
from marey.pipeline.stages.reroot import reroot_skeleton
from marey.pipeline.stages.several_takes import concatenate_takes
from marey.pose import mark_contacts
from marey.pose.contact.holds import Hold
from marey.report import Finding, mark_name
from marey.rig import build_skeletons, unknown_rolls
from marey.segmentation.methods.sensors import known_parents, recognise_program
from marey.skeleton import Skeleton
from marey.solution import Subject
from marey.take import Take
from marey.tree import Tree, ancestors_of


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

    unknown_rolls: tuple[str, ...] = ()
    """Joints of a person whose roll about their bones at rest is a guess."""

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
    performer = options.skeleton
    if isinstance(performer, Skeleton) and performer_known(options):
        name = options.subject or performer.names[0]
        return (_subject(name, performer, fit, options),)
    bodies, tree = concatenate_takes(fit.bodies), fit.tree
    joints = _place_still_joints(bodies, fit.joints, tree)
    skeletons = build_skeletons(bodies, joints, tree)
    rolls = unknown_rolls(bodies, joints, tree)
    largest = max(skeletons, key=lambda skeleton: len(skeleton.names))
    subjects: list[SubjectFit] = []
    for root, skeleton, guessed in zip(tree.roots, skeletons, rolls, strict=True):
        owner, _, root_name = bodies.names[int(root)].rpartition(":")
        given = options.subject if skeleton is largest else ""
        name = given or owner or skeleton.subject or root_name
        if name in {one.name for one in subjects} and not (given or owner):
            name = root_name
        subject = _subject(name, skeleton, fit, options)
        subjects.append(replace(subject, unknown_rolls=guessed))
    return tuple(subjects)


def _place_still_joints(bodies: Bodies, joints: JointFits, tree: Tree) -> JointFits:
    """Return the joints with those that never moved where file or program have them.

    Their segments begin in the joints with their parents. How uncertain the centres are
    stays as it was.
    """
    parents = known_parents(bodies.take)
    centers = np.stack([joints.center_a, joints.center_b], axis=1)
    for body, row in enumerate(tree.edge.tolist()):
        above = int(tree.parent[body])
        is_known = row >= 0 and parents.get(bodies.names[body]) == bodies.names[above]
        if is_known and joints.kind[row] == "fixed":
            T_world_parent = bodies.T_world_body[:, above]
            origin = bodies.T_world_body[:, body, :3, 3]
            in_parent = geometry.apply(geometry.inverse(T_world_parent), origin)
            is_body = joints.pair[row] == body
            centers[row, is_body] = 0.0
            centers[row, ~is_body] = np.nanmedian(in_parent, axis=0)
    return replace(joints, center_a=centers[:, 0], center_b=centers[:, 1])


def _subject(
    name: str, skeleton: Skeleton, fit: BodyFit, options: SolveOptions
) -> SubjectFit:
    """Return a subject with the same bones and markers in all takes."""
    method = choose_method(options, has_markers=bool(skeleton.marker_labels))
    if method == "playback" and skeleton.marker_labels and skeleton.sensor_names:
        raise OptionError(
            "pose",
            found=f"playback, which takes rotations of sensors, for {name} with "
            f"{len(skeleton.marker_labels)} markers",
            needed="gauss_newton, bfgs or physics; or segment=sensors, without markers",
        )
    return SubjectFit(name, skeleton, (skeleton,) * len(fit.takes), method)


def calibrate_subjects(
    subjects: Sequence[SubjectFit], fit: BodyFit, options: SolveOptions
) -> tuple[SubjectFit, ...]:
    """Return the subjects with bones that fit all takes, and markers that fit each.

    Joints of 6-DoF sensors and of keypoints, and single bodies, need no calibration.
    """
    if not options.calibrate or fit.bodies[0].keypoints:
        return tuple(subjects)
    known = performer_known(options)
    chosen = CalibrateOptions(
        keep_bones=known, keep_markers=known, sessions=session_numbers(options)
    )
    calibrated = []
    for subject in subjects:
        has_joints = np.count_nonzero(~subject.skeleton.is_end) > 1
        if subject.skeleton.marker_labels and has_joints:
            found = calibrate(subject.skeleton, fit.takes, options=chosen)
            subject = replace(
                subject,
                skeleton=found.skeleton,
                take_skeletons=found.skeletons,
                findings=(
                    *found.findings,
                    *_mismatch_findings(subject.skeleton, fit, options),
                ),
                is_calibrated=all(f.code != "not-calibrated" for f in found.findings),
                landmark_joints=found.landmark_joints,
                unknown_rolls=found.unknown_rolls,
            )
        calibrated.append(subject)
    return tuple(calibrated)


def limit_subjects(
    subjects: Sequence[SubjectFit], options: SolveOptions
) -> tuple[SubjectFit, ...]:
    """Return the subjects with the limits that the options ask for.

    A skeleton that is given has its own, unless its joints are freed.

    Raises:
        OptionError: If limits by hand name a joint that no subject has.
    """
    names = [name for subject in subjects for name in subject.skeleton.names]
    check_named_joints(options.limits, names)
    if options.limits == "safe" and options.skeleton and not options.free_joints:
        return tuple(subjects)
    limited = []
    for subject in subjects:
        skeletons = (subject.skeleton, *subject.take_skeletons)
        rolls = subject.unknown_rolls
        (first, *others), found = limit_skeletons(skeletons, options.limits, rolls)
        limited.append(
            replace(
                subject,
                skeleton=first,
                take_skeletons=tuple(others),
                findings=(*subject.findings, *found),
            )
        )
    return tuple(limited)


def _mismatch_findings(
    skeleton: Skeleton, fit: BodyFit, options: SolveOptions
) -> Iterator[Finding]:
    """Return findings if takes and a given skeleton cannot be of one subject."""
    if performer_known(options):
        return skeleton_findings(skeleton, fit.takes, fit.bodies)
    sessions = session_numbers(options) or range(len(fit.takes))
    return session_findings(skeleton, fit.takes, fit.bodies, fit.tree, sessions)


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
        floor: Plane that feet stand on; that of the options when left out.

    Raises:
        OptionError: If a hold names a joint that no subject has.
    """
    floor = floor or known_ground(options)
    holds, found = _find_all_holds(subjects, takes, options)
    posed, findings = [], list(found)
    for subject, of_takes in zip(subjects, holds, strict=True):
        fits = [
            pose_where_seen(
                subject.name,
                skeleton,
                take,
                method=subject.pose_method,
                contacts=options.contacts,
                floor=floor,
                **pose_settings(options, subject.pose_method, floor, held),
            )
            for skeleton, take, held in zip(
                subject.take_skeletons, takes, of_takes, strict=True
            )
        ]
        motions = tuple(motion for motion, _ in fits)
        if options.skeleton is None and sum(t.n_frames for t in takes) < MIN_SAMPLES:
            # The markers were placed in these frames, whose residuals show no noise.
            motions = tuple(
                replace(m, angle_sd=np.full_like(m.angle_sd, np.nan)) for m in motions
            )
        if not options.contacts and _is_person(subject.skeleton):
            motions = tuple(map(mark_contacts, motions, takes))
        posed.append(Subject(subject.name, subject.skeleton, motions))
        findings += [*subject.findings, *(f for _, found in fits for f in found)]
    return tuple(posed), tuple(findings)


def _find_all_holds(
    subjects: Sequence[SubjectFit], takes: Sequence[Take], options: SolveOptions
) -> tuple[list[list[tuple[Hold, ...]]], list[Finding]]:
    """Return the holds of every subject in every take, and findings about them.

    They are found in motions without holds, in which the other subjects are props.
    """
    source = read_holds(options.hold)
    check_held_joints(source, [subject.skeleton.names for subject in subjects])
    if source == "none":
        return [[()] * len(takes) for _ in subjects], []
    free = [
        [
            pose_where_seen(subject.name, skeleton, take, method="gauss_newton")[0]
            for skeleton, take in zip(subject.take_skeletons, takes, strict=True)
        ]
        for subject in subjects
    ]
    holds: list[list[tuple[Hold, ...]]] = []
    findings: list[Finding] = []
    for i, motions in enumerate(free):
        holds.append([])
        for take, motion in enumerate(motions):
            others = [(s.name, free[k][take]) for k, s in enumerate(subjects) if k != i]
            held, found = choose_holds(source, motion, dict(others))
            holds[i].append(held)
            findings += found
    return holds, findings


def complete_subjects(
    subjects: Sequence[Subject], options: SolveOptions
) -> tuple[tuple[Subject, ...], tuple[Finding, ...]]:
    """Return people with the joints that the recording does not observe.

    Nothing is added to a skeleton that was given; toes that were added to it bend.
    """
    if options.skeleton is not None:
        return tuple(map(_bend_toes, subjects)), ()
    if not options.whole:
        return tuple(subjects), ()
    completed, findings = [], []
    for subject in subjects:
        skeleton = complete_person(subject.skeleton)
        # Markers may be elsewhere in another session; bones are the same.
        motions = tuple(
            complete_motion(
                motion,
                replace(complete_person(motion.skeleton), offset=skeleton.offset),
            )
            for motion in subject.motions
        )
        hinged = hinge_toes(skeleton)
        completed.append(replace(subject, skeleton=hinged, motions=motions))
        added = [n for n in skeleton.names if n not in subject.skeleton.names]
        if added:
            findings.append(_report_added(subject.name, added))
    return tuple(completed), tuple(findings)


def _bend_toes(subject: Subject) -> Subject:
    """Return a subject whose added toes stay on the ground when a foot pushes off."""
    return replace(
        subject,
        skeleton=hinge_toes(subject.skeleton),
        motions=tuple(map(bend_toes, subject.motions)),
    )


def _report_added(subject: str, added: Sequence[str]) -> Finding:
    """Return the finding that lists the joints added by anatomy."""
    shown = ", ".join(mark_name(n) for n in added if not n.endswith("_end"))
    message = (
        f"no markers determine {shown}: they are placed by anatomy and move with the "
        "bones they sit on"
    )
    return Finding(
        "joints-added",
        "skeleton",
        "info",
        message,
        subject=subject,
        value=float(len(added)),
    )


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
    bare = [*map(vrm.without_subject, names)]
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
    return [
        roots.index(ancestors_of(tree.parent, body)[-1])
        for body in range(len(tree.parent))
    ]


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
    if performer_known(options):
        return is_used
    numbers, names = subject_of_each_body(fit, options), fit.bodies[0].names
    for body in np.flatnonzero(fit.tree.edge >= 0).tolist():
        subject = subjects[numbers[body]]
        joint = subject.skeleton.joint_of(names[body])
        is_used[fit.tree.edge[body]] = joint not in subject.landmark_joints
    return is_used
