"""Errors of results against the truth, after both are matched.

score = marey.metrics.compare(marey.solve(take), take)
print(score)
"""

from collections.abc import Sequence
from typing import overload

import numpy as np

from marey.bodies import Bodies
from marey.errors import DataError, OptionError
from marey.joint_fits import JointFits
from marey.metrics.match import adjusted_rand_index as adjusted_rand_index
from marey.metrics.match import match_bodies as match_bodies
from marey.metrics.match import match_joints, match_paths, match_poses
from marey.metrics.scores import BodiesScore as BodiesScore
from marey.metrics.scores import JointsScore as JointsScore
from marey.metrics.scores import MotionScore as MotionScore
from marey.metrics.scores import Score as Score
from marey.metrics.scores import SkeletonScore as SkeletonScore
from marey.metrics.scores import SolutionScore as SolutionScore
from marey.metrics.scores import TreeScore as TreeScore
from marey.metrics.stages import compare_bodies as compare_bodies
from marey.metrics.stages import compare_joints as compare_joints
from marey.metrics.stages import compare_lengths, joint_distances
from marey.metrics.stages import compare_motion as compare_motion
from marey.metrics.stages import compare_tree as compare_tree
from marey.metrics.stages import joint_errors as joint_errors
from marey.motion import Motion
from marey.skeleton import Skeleton, marker_columns
from marey.solution import Solution
from marey.synth.figures.figure import Figure
from marey.synth.truth import Recording, Truth
from marey.tree import Tree

TruthSource = Recording | Truth | Figure | Skeleton | Motion
Result = Bodies | JointFits | Tree | Skeleton | Motion | Solution


@overload
def compare(
    result: Bodies, truth: TruthSource, *, bodies: None = ...
) -> BodiesScore: ...
@overload
def compare(
    result: JointFits, truth: TruthSource, *, bodies: Bodies
) -> JointsScore: ...
@overload
def compare(result: Tree, truth: TruthSource, *, bodies: Bodies) -> TreeScore: ...
@overload
def compare(
    result: Skeleton, truth: TruthSource, *, bodies: Bodies | None = ...
) -> SkeletonScore: ...
@overload
def compare(
    result: Motion, truth: TruthSource, *, bodies: None = ...
) -> MotionScore: ...
@overload
def compare(
    result: Solution, truth: TruthSource, *, bodies: None = ...
) -> SolutionScore: ...


def compare(
    result: Result, truth: TruthSource, *, bodies: Bodies | None = None
) -> Score:
    """Return the errors of a result against the truth.

    Args:
        result: Result of a stage: bodies, joints, tree, skeleton, motion, or the whole
            solution.
        truth: The recording behind the result, or its `truth`. A figure is enough for
            a skeleton with its joint names and for the solution of a recording.
        bodies: The bodies that joints or a tree refer to.

    Raises:
        DataError: If the truth lacks what this result needs.
        OptionError: If joints or a tree are given without their bodies.
    """
    if isinstance(result, Skeleton):
        return compare_skeleton(result, truth)
    if isinstance(result, Motion):
        return compare_motion(result, _motion_of(truth))
    if isinstance(result, Solution):
        return compare_solution(result, truth)
    known = _truth_of(truth)
    if isinstance(result, Bodies):
        return compare_bodies(result, known)
    if bodies is None:
        raise OptionError("bodies", found=None, needed="the bodies of this result")
    if isinstance(result, JointFits):
        return compare_joints(result, bodies, known)
    return compare_tree(result, bodies, known)


def _truth_of(known: TruthSource) -> Truth:
    if isinstance(known, Recording):
        return known.truth
    if isinstance(known, Truth):
        return known
    raise DataError(
        "truth", found=type(known).__name__, needed="the recording or its truth"
    )


def _motion_of(known: TruthSource) -> Motion:
    return known if isinstance(known, Motion) else _truth_of(known).motion


def _skeleton_of(known: TruthSource) -> Skeleton:
    if isinstance(known, Skeleton):
        return known
    if isinstance(known, Figure | Motion):
        return known.skeleton
    return _truth_of(known).skeleton


def compare_skeleton(skeleton: Skeleton, truth: TruthSource) -> SkeletonScore:
    """Return the errors of the bone lengths of a skeleton.

    Joints are matched by the markers they carry when the truth is a recording and the
    skeleton has markers, else by name.

    Raises:
        DataError: If neither markers nor names are in common.
    """
    true = _skeleton_of(truth)
    index = {name: joint for joint, name in enumerate(true.names)}
    body = np.array([index.get(name, -1) for name in skeleton.names], dtype=np.int64)
    if isinstance(truth, Recording) and len(skeleton.marker_labels):
        columns = marker_columns(skeleton, truth)
        body = match_joints(skeleton, truth.truth, 0, columns)
    if (body < 0).all():
        raise DataError(
            "skeleton",
            found="no joint name and no marker of the true one",
            needed="the recording as truth and a skeleton with its markers",
        )
    return _compare_lengths(skeleton, body, true)


def _compare_lengths(
    skeleton: Skeleton, body: np.ndarray, true: Skeleton
) -> SkeletonScore:
    """Return the length errors of a skeleton, given the true joint of each joint."""
    true_lengths = joint_distances(true, np.arange(true.n_joints))
    return compare_lengths(joint_distances(skeleton, body), true_lengths)


def compare_solution(solution: Solution, truth: TruthSource) -> SolutionScore:
    """Return the errors of every stage of a solution.

    A take that is a recording has its own truth. Otherwise there must be one take.
    """
    truths = _truths(solution, truth)
    bodies = tuple(
        compare_bodies(found, known)
        for found, known in zip(solution.bodies, truths, strict=True)
    )
    pairs = _match_subjects(solution, truths[0])
    motions, skeletons = [], []
    for found, true in pairs:
        subject = solution.subjects[found]
        skeletons.append(_subject_lengths(solution, found, truths[0], true))
        for take, known in enumerate(truths):
            motions.append(compare_motion(subject.motions[take], known.motions[true]))
    return SolutionScore(
        bodies=bodies,
        joints=compare_joints(solution.joints, solution.bodies[0], truths[0]),
        tree=compare_tree(solution.tree, solution.bodies[0], truths[0]),
        skeletons=tuple(skeletons),
        motions=tuple(motions),
        subjects_found=len(solution.subjects),
        subjects_true=len(truths[0].figures),
    )


def _truths(solution: Solution, truth: TruthSource) -> Sequence[Truth]:
    """Return the truth of every take: the given one, or that which the takes carry."""
    if isinstance(truth, Recording | Truth) and len(solution.takes) == 1:
        return (_truth_of(truth),)
    truths = [take.truth for take in solution.takes if isinstance(take, Recording)]
    if len(truths) != len(solution.takes):
        raise DataError(
            "truth",
            found=f"{type(truth).__name__} for {len(solution.takes)} takes",
            needed="takes made by marey.synth, or the recording of a single take",
        )
    return truths


def _match_subjects(solution: Solution, truth: Truth) -> list[tuple[int, int]]:
    """Return pairs of found and true subjects whose roots are nearest to each other."""
    found = [subject.motions[0].T_world_root[:, :3, 3] for subject in solution.subjects]
    true = [motion.T_world_root[:, :3, 3] for motion in truth.motions]
    if not found:
        return []
    rows, columns = match_paths(np.stack(found, axis=1), np.stack(true, axis=1))
    return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True)]


def _subject_lengths(
    solution: Solution, found: int, truth: Truth, true: int
) -> SkeletonScore:
    """Return the length errors of a subject.

    Joints are matched by their markers, or by their motion if there are no markers.
    """
    motion, known = solution.subjects[found].motions[0], truth.motions[true]
    skeleton = motion.skeleton
    if len(skeleton.marker_labels):
        columns = marker_columns(skeleton, solution.takes[0])
        body = match_joints(skeleton, truth, true, columns)
    else:
        bodies = truth.figures[true].bodies
        match = match_poses(motion.T_world_joint(), known.T_world_joint()[:, bodies])
        body = np.where(match >= 0, bodies[match], -1)
    return _compare_lengths(skeleton, body, known.skeleton)
