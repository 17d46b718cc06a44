"""A skeleton that is given: read, compared with the takes, used where they agree."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.anatomy.names import without_subject
from marey.anatomy.toes import straighten_toes
from marey.attach import strip
from marey.errors import OptionError
from marey.io import read_skeleton
from marey.motion import Motion
from marey.numerics import geometry
from marey.numerics.thresholds import FEW, OUTLIER_SD, SKIN_MOTION_M
from marey.pipeline.options import SkeletonSource, SolveOptions
from marey.segmentation import labels_contradict_motion
from marey.skeleton import Skeleton, marker_columns
from marey.take import Take, match_labels
from marey.tree import ancestors_of


def prepare_skeleton(options: SolveOptions, takes: Sequence[Take]) -> SolveOptions:
    """Return options with the skeleton as it can be used with these takes.

    If all takes show its markers or sensors by name, these determine bodies and tree.
    Otherwise, if its bones may change, or if its sensors sit elsewhere than before, it
    comes back without them: the takes are solved freely, and what they show is put on
    it (`marey.attach`).

    Raises:
        FormatError: If the skeleton's file cannot be read.
        OptionError: If another root is asked for.
    """
    if options.skeleton is None:
        return options
    if options.root:
        raise OptionError(
            "root",
            found="a skeleton that is given",
            needed="no other root: change the skeleton that was given",
        )
    skeleton = straighten_toes(read_source(options.skeleton))
    if options.free_joints:
        skeleton = free_joints(skeleton)
    skeleton = _without_other_subject(skeleton, takes)
    if options.fit == "rigid" and _shows_markers(skeleton, takes):
        return replace(
            options, skeleton=skeleton, segment="template", template=skeleton, tree={}
        )
    if _has_sensors_by_name(skeleton, takes):
        options = replace(options, tree=_sensor_parents(skeleton))
        if options.fit == "rigid" and _sensors_stay(skeleton, takes):
            return replace(options, skeleton=skeleton)
    bare = strip(skeleton)
    if not _is_made_alike(skeleton, takes):
        unknown = np.full_like(skeleton.length_sd, np.nan)
        bare = replace(bare, length_sd=unknown)
    return replace(options, skeleton=bare)


def _is_made_alike(skeleton: Skeleton, takes: Sequence[Take]) -> bool:
    """Return whether the skeleton comes from markers as the takes, or from sensors."""
    from_sensors = all(take.sensor_names for take in takes)
    return bool(skeleton.sensor_names if from_sensors else skeleton.marker_labels)


def read_source(source: SkeletonSource) -> Skeleton:
    """Return a skeleton from itself, a motion of it or a file."""
    if isinstance(source, Skeleton):
        return source
    return source.skeleton if isinstance(source, Motion) else read_skeleton(source)


def free_joints(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton with balls in place of hinges, and without limits."""
    kinds = ("ball" if k in ("hinge", "universal") else k for k in skeleton.kind)
    return replace(
        skeleton, kind=tuple(kinds), limits=np.full_like(skeleton.limits, np.nan)
    )


def _without_other_subject(skeleton: Skeleton, takes: Sequence[Take]) -> Skeleton:
    """Return the skeleton without the subject in its labels, if no take has it.

    The same performer has another prefix on another day.
    """
    subject = skeleton.subject
    if not subject or any(subject in take.subjects for take in takes):
        return skeleton
    bare = tuple(map(without_subject, skeleton.marker_labels))
    return replace(skeleton, marker_labels=bare)


def _shows_markers(skeleton: Skeleton, takes: Sequence[Take]) -> bool:
    """Return whether the takes have markers of every bone, by labels that are right."""
    if not skeleton.marker_labels or any(take.sensor_names for take in takes):
        return False
    return all(_has_markers(skeleton, take) for take in takes)


def _has_markers(skeleton: Skeleton, take: Take) -> bool:
    column = marker_columns(skeleton, take)
    joint = skeleton.marker_joint[column >= 0]
    if not np.isin(skeleton.marker_joint, joint).all():
        return False
    bodies = joint == np.unique(joint)[:, None]
    return not labels_contradict_motion(take.points[:, column[column >= 0]], bodies)


def _has_sensors_by_name(skeleton: Skeleton, takes: Sequence[Take]) -> bool:
    """Return whether all takes have the sensors of the skeleton, and it has some."""
    return bool(skeleton.sensor_names) and all(
        (match_labels(skeleton.sensor_names, take.sensor_names) >= 0).all()
        for take in takes
    )


def _sensors_stay(skeleton: Skeleton, takes: Sequence[Take]) -> bool:
    """Return whether the sensors sit on the bones where the skeleton has them.

    The sensors of both bones of a joint show where it is. If half of the joints are
    always apart by more than skin moves, the sensors were attached again. A few frames
    are enough to stay: sensors may slip later in a take.
    """
    row_of = {joint: row for row, joint in enumerate(skeleton.sensor_joint.tolist())}
    gaps = []
    for take in takes:
        column = match_labels(skeleton.sensor_names, take.sensor_names)
        T_joint_sensor = skeleton.T_joint_sensor
        T = take.T_world_sensor[:, column] @ geometry.inverse(T_joint_sensor)
        for joint, row in row_of.items():
            above = row_of.get(int(skeleton.parent[joint]), -1)
            from_parent = geometry.apply(T[:, above], skeleton.offset[joint])
            gap = geometry.lengths(T[:, row, :3, 3] - from_parent)
            if above >= 0 and np.isfinite(gap).any():
                gaps.append(float(np.nanquantile(gap, FEW)))
    return not gaps or float(np.median(gaps)) < OUTLIER_SD * SKIN_MOTION_M


def _sensor_parents(skeleton: Skeleton) -> dict[str, str]:
    """Return the parent of each sensor: the next sensor towards the root."""
    sensor_of = dict(
        zip(skeleton.sensor_joint.tolist(), skeleton.sensor_names, strict=True)
    )
    parents = {}
    for joint, name in sensor_of.items():
        above = ancestors_of(skeleton.parent, joint)[1:]
        names = (sensor_of[one] for one in above if one in sensor_of)
        if parent := next(names, ""):
            parents[name] = parent
    return parents
