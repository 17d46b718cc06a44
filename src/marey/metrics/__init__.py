"""Errors against the truth, with found things matched to true ones first.

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
from marey.metrics.motion import compare_motion as compare_motion
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
from marey.metrics.stages import compare_tree as compare_tree
from marey.motion import Motion
from marey.skeleton import Skeleton, marker_columns
from marey.solution import Solution
from marey.synth.figures.figure import Figure
from marey.synth.truth import Recording, Truth
from marey.tree import Tree

Known = Recording | Truth | Figure | Skeleton | Motion
Result = Bodies | JointFits | Tree | Skeleton | Motion | Solution


@overload
def compare(result: Bodies, truth: Known, *, bodies: None = ...) -> BodiesScore: ...
@overload
def compare(result: JointFits, truth: Known, *, bodies: Bodies) -> JointsScore: ...
@overload
def compare(result: Tree, truth: Known, *, bodies: Bodies) -> TreeScore: ...
@overload
def compare(
    result: Skeleton, truth: Known, *, bodies: Bodies | None = ...
) -> SkeletonScore: ...
@overload
def compare(result: Motion, truth: Known, *, bodies: None = ...) -> MotionScore: ...
@overload
def compare(result: Solution, truth: Known, *, bodies: None = ...) -> SolutionScore: ...


def compare(result: Result, truth: Known, *, bodies: Bodies | None = None) -> Score:
    """Return how far a result is from the truth.

    Args:
        result: What a stage found: bodies, joints, tree, skeleton, motion, or the whole
            solution.
        truth: The recording the result came from, or its `truth`. A figure is enough
            for a skeleton with the figure's names and for the solution of a recording.
        bodies: The bodies that joints or a tree refer to.

    Raises:
        DataError: If the truth given says too little for this result.
        OptionError: If joints or a tree come without their bodies.
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


def _truth_of(known: Known) -> Truth:
    if isinstance(known, Recording):
        return known.truth
    if isinstance(known, Truth):
        return known
    raise DataError(
        "truth", found=type(known).__name__, needed="the recording or its truth"
    )


def _motion_of(known: Known) -> Motion:
    return known if isinstance(known, Motion) else _truth_of(known).motion


def _skeleton_of(known: Known) -> Skeleton:
    if isinstance(known, Skeleton):
        return known
    if isinstance(known, Figure | Motion):
        return known.skeleton
    return _truth_of(known).skeleton


def compare_skeleton(skeleton: Skeleton, truth: Known) -> SkeletonScore:
    """Return the errors of the lengths.

    Joints are matched by the markers they carry when the truth is a recording and the
    skeleton has markers, else by name.

    Raises:
        DataError: If neither markers nor names are in common.
    """
    true = _skeleton_of(truth)
    body = np.array([_index(true, name) for name in skeleton.names], dtype=np.int64)
    if isinstance(truth, Recording) and len(skeleton.marker_labels):
        columns = marker_columns(skeleton, truth)
        body = match_joints(skeleton, truth.truth, 0, columns)
    if (body < 0).all():
        raise DataError(
            "skeleton",
            found="no joint name and no marker of the true one",
            needed="the recording as truth and a skeleton with its markers",
        )
    own = np.arange(true.n_joints)
    return compare_lengths(joint_distances(skeleton, body), joint_distances(true, own))


def _index(skeleton: Skeleton, name: str) -> int:
    return skeleton.names.index(name) if name in skeleton.names else -1


def compare_solution(solution: Solution, truth: Known) -> SolutionScore:
    """Return how far every stage of a solution is from the truth.

    Takes that are recordings bring their own truth; else there must be one take.
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
        skeletons.append(_lengths_of(solution, found, truths[0], true))
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


def _truths(solution: Solution, truth: Known) -> Sequence[Truth]:
    if isinstance(truth, Recording | Truth) and len(solution.takes) == 1:
        return (_truth_of(truth),)
    own = [take.truth for take in solution.takes if isinstance(take, Recording)]
    if len(own) != len(solution.takes):
        raise DataError(
            "truth",
            found=f"{type(truth).__name__} for {len(solution.takes)} takes",
            needed="takes made by marey.synth, or the recording of a single take",
        )
    return own


def _match_subjects(solution: Solution, truth: Truth) -> list[tuple[int, int]]:
    """Return pairs of found and true subjects, those nearest to each other."""
    found = [subject.motions[0].T_world_root[:, :3, 3] for subject in solution.subjects]
    true = [motion.T_world_root[:, :3, 3] for motion in truth.motions]
    if not found:
        return []
    rows, columns = match_paths(np.stack(found, axis=1), np.stack(true, axis=1))
    return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True)]


def _lengths_of(
    solution: Solution, found: int, truth: Truth, true: int
) -> SkeletonScore:
    """Return the length errors of a subject.

    Its joints are matched by their markers, without any by how their bodies move.
    """
    motion, known = solution.subjects[found].motions[0], truth.motions[true]
    skeleton = motion.skeleton
    own = np.arange(known.skeleton.n_joints)
    if len(skeleton.marker_labels):
        columns = marker_columns(skeleton, solution.takes[0])
        body = match_joints(skeleton, truth, true, columns)
    else:
        bodies = truth.figures[true].bodies
        near = match_poses(motion.T_world_joint(), known.T_world_joint()[:, bodies])
        body = np.where(near >= 0, bodies[near], -1)
    return compare_lengths(
        joint_distances(skeleton, body), joint_distances(known.skeleton, own)
    )
