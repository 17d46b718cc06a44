"""Subjects of a scene: their bones, how they move, and how far to trust them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.person_joints import recognise_person
from marey.bodies import Bodies
from marey.clinical import JointAngles
from marey.clinical import angles as joint_angles
from marey.errors import DataError
from marey.io.formats.html.arrays import MAX_TRACK_VALUE, SceneArrays
from marey.joint_fits import JointFits
from marey.motion import Motion
from marey.numerics import Array, Bool, Float, UInt8, geometry
from marey.numerics.robust import median_and_scale
from marey.skeleton import Skeleton, marker_columns
from marey.solution import Solution
from marey.take import Take, match_labels

UNSEEN, SEEN, FILLED, OUTLIER = range(4)
"""State of a marker in a frame."""

ANGLE_STEP_DEG = 0.01
"""Rounding of clinical angles, in degrees."""

OUTLIER_SCALES = 4.0
"""Robust standard deviations above the median beyond which a residual is an outlier.

Higher marks fewer outliers. Chosen by hand.
"""

MIN_OUTLIER_DISTANCE_M = 5e-3
"""Least residual of an outlier, in metres.

Higher marks fewer outliers. Chosen by hand.
"""


@dataclass(frozen=True, slots=True, eq=False)
class SceneSubject:
    """One subject, and which body and which fitted joint each of its joints has."""

    name: str
    skeleton: Skeleton
    motions: tuple[Motion, ...]
    """One per take."""

    body: tuple[int, ...]
    """Index of each joint's body; -1 = none."""

    edge: tuple[int, ...]
    """Index of each joint among the joint fits; -1 = none."""


def scene_subjects(solution: Solution) -> list[SceneSubject]:
    """Return the subjects of a solution with their bodies and fitted joints."""
    tree, names = solution.tree, solution.bodies[0].names if solution.bodies else ()
    of_root = len(tree.roots) == len(solution.subjects)
    subjects = []
    for number, subject in enumerate(solution.subjects):
        subject_bodies = list(range(len(names)))
        if of_root:
            root = int(tree.roots[number])
            subject_bodies = [body for body in subject_bodies if tree.path(body, root)]
        body_of_joint = {
            subject.skeleton.joint_of(names[body]): body for body in subject_bodies
        }
        body = tuple(body_of_joint.get(name, -1) for name in subject.skeleton.names)
        edge = tuple(int(tree.edge[b]) if b >= 0 else -1 for b in body)
        subjects.append(
            SceneSubject(subject.name, subject.skeleton, subject.motions, body, edge)
        )
    return subjects


def subject_of_motion(motion: Motion) -> SceneSubject:
    """Return the subject of a motion without bodies and fitted joints."""
    none = (-1,) * motion.skeleton.n_joints
    return SceneSubject(
        motion.skeleton.names[0], motion.skeleton, (motion,), none, none
    )


def encode_subject(
    subject: SceneSubject, residual: Float[Array, " pair"] | None = None
) -> dict[str, Any]:
    """Return a subject for the header.

    Args:
        subject: The subject.
        residual: Root mean square gap of every fitted joint, in metres.
    """
    skeleton = subject.skeleton
    known = {} if residual is None else dict(enumerate(residual))
    part = recognise_person(skeleton)
    side = joint_sides(skeleton, part)
    joints = [
        {
            "name": name,
            "parent": int(skeleton.parent[i]),
            "kind": skeleton.kind[i],
            "offset": skeleton.offset[i],
            "axes": [_whole_or_none(axis) for axis in skeleton.axes[i]],
            "limits": skeleton.limits[i],
            "length": skeleton.lengths[i],
            "length_sd": skeleton.length_sd[i],
            "observed": bool(skeleton.observed[i]),
            "covariance": _whole_or_none(skeleton.covariance[i]),
            "residual": known.get(subject.edge[i]),
            "body": subject.body[i],
            "side": side[i],
            "part": vrm.without_side(part.get(i, "")),
        }
        for i, name in enumerate(skeleton.names)
    ]
    return {"name": subject.name, "joints": joints}


def joint_sides(skeleton: Skeleton, part: Mapping[int, str]) -> list[str]:
    """Return the side of each joint: "Left", "Right", or "" in the middle.

    A joint whose name states no side is on the side of its parent.

    Args:
        skeleton: Any skeleton.
        part: Anatomical names of joints, by index.
    """
    sides: list[str] = []
    for joint, name in enumerate(skeleton.names):
        own = vrm.side_of(part.get(joint, vrm.without_subject(name)))
        above = int(skeleton.parent[joint])
        sides.append(own or (sides[above] if above >= 0 else ""))
    return sides


def _whole_or_none(values: Array) -> Array | None:
    """Return the values if all are finite."""
    return values if np.isfinite(values).all() else None


def encode_motion(
    arrays: SceneArrays,
    key: str,
    motion: Motion,
    stride: int,
    take: Take | None = None,
    gaps: Float[Array, "frame joint"] | None = None,
) -> dict[str, Any]:
    """Return a motion for the header, every `stride` frames.

    Args:
        arrays: Where the values go.
        key: What their keys begin with.
        motion: The motion.
        stride: Step between drawn frames.
        take: The recording, to find the subject's markers in it.
        gaps: Gap of each joint in the drawn frames in metres, if known.
    """
    if gaps is None:
        gaps = np.zeros((0, 0))
    skeleton = motion.skeleton
    root = motion.T_world_root[::stride, :3, 3]
    wxyz = motion.wxyz[::stride]
    known = np.isfinite(root).all(axis=-1) & np.isfinite(wxyz).all(axis=-1).any(axis=1)
    column = marker_columns(skeleton, take) if take else ()
    return {
        "root": arrays.track(f"{key}.root", root),
        "wxyz": arrays.track(f"{key}.wxyz", _start_rotations(wxyz)),
        "known": arrays.small(f"{key}.known", known),
        "gap": arrays.track(f"{key}.gap", gaps),
        "gap_known": arrays.small(f"{key}.gap_known", np.isfinite(gaps)),
        "markers": [
            {
                "marker": int(marker),
                "joint": int(skeleton.marker_joint[i]),
                "offset": skeleton.marker_offset[i],
            }
            for i, marker in enumerate(column)
            if marker >= 0
        ],
        "sensors": _encode_null_models(skeleton, take.sensor_names if take else ()),
        "contacts": [asdict(contact) for contact in motion.contacts],
    }


def clinical_angles(motion: Motion) -> JointAngles | None:
    """Return the joint angles of a person by the ISB; None of any other figure."""
    try:
        return joint_angles(motion)
    except DataError:
        return None


def encode_angles(
    arrays: SceneArrays, key: str, motion: Motion, stride: int
) -> dict[str, Any] | None:
    """Return the clinical angles of a motion for the header, every `stride` frames.

    Each angle has its name in words and the index of its joint; the values are in
    degrees. None if the motion is not a person's.
    """
    found = clinical_angles(motion)
    if found is None:
        return None
    degrees = found.degrees[::stride]
    return {
        "names": [name.replace("_", " ").capitalize() for name in found.names],
        "joints": [motion.skeleton.index(name) for name in found.joints],
        "degrees": arrays.track(f"{key}.angles", degrees, ANGLE_STEP_DEG),
        "known": arrays.small(f"{key}.angles_known", np.isfinite(degrees)),
    }


def _encode_null_models(
    skeleton: Skeleton, sensors: Sequence[str]
) -> list[dict[str, Any]]:
    """Return how sensors of a take sit on a skeleton: place in m, rotation vector."""
    T, column = skeleton.T_joint_sensor, match_labels(skeleton.sensor_names, sensors)
    return [
        {
            "sensor": int(sensor),
            "joint": int(skeleton.sensor_joint[i]),
            "offset": T[i, :3, 3],
            "rotation": geometry.rotation_log(T[i, :3, :3]),
        }
        for i, sensor in enumerate(column)
        if sensor >= 0
    ]


def _start_rotations(
    wxyz: Float[Array, "frame joint 4"],
) -> Float[Array, "frame joint 4"]:
    """Return rotations whose first frame is the identity where it is unknown."""
    first = wxyz[:1].copy()
    first[~np.isfinite(first).all(axis=-1)] = [1.0, 0.0, 0.0, 0.0]
    return np.concatenate([first, wxyz[1:]])


def joint_gaps(
    subject: SceneSubject, bodies: Bodies, fits: JointFits, stride: int = 1
) -> Float[Array, "frame joint"]:
    """Return the gap of each joint in each frame, in metres.

    The distance between the joint's centre as seen from the parent's body and from its
    body: the length of the residual vectors of OBrien2000, Figs. 6-8. NaN where a
    body was not seen, and for joints that were not fitted.
    """
    T = bodies.T_world_body[::stride]
    gaps = np.full((len(T), len(subject.edge)), np.nan)
    for joint, edge in enumerate(subject.edge):
        if edge >= 0:
            a, b = (int(i) for i in fits.pair[edge])
            one = geometry.apply(T[:, a], fits.center_a[edge])
            other = geometry.apply(T[:, b], fits.center_b[edge])
            gaps[:, joint] = np.linalg.norm(one - other, axis=-1)
    return gaps


def marker_residuals(
    take: Take, motions: Sequence[Motion], stride: int = 1
) -> Float[Array, "frame marker"]:
    """Return the distance of each marker from its position on the skeleton, in metres.

    NaN where it was not seen, or no skeleton has the marker.
    """
    points = take.points[::stride]
    residual = np.full(points.shape[:2], np.nan)
    for motion in motions:
        skeleton = motion.skeleton
        columns = marker_columns(skeleton, take)
        if (columns < 0).all() or motion.n_frames != take.n_frames:
            continue
        T = skeleton.forward(motion.T_world_root[::stride], motion.wxyz[::stride])
        seen, joint = columns >= 0, skeleton.marker_joint
        offset, column = skeleton.marker_offset[seen], columns[seen]
        modelled = geometry.apply_selected(T, joint[seen], offset)
        residual[:, column] = geometry.lengths(points[:, column] - modelled)
    return residual


def marker_states(
    take: Take, residual: Float[Array, "frame marker"], stride: int = 1
) -> UInt8[Array, "frame marker"]:
    """Return the state of each marker in each drawn frame.

    A marker is an outlier where it is where its residual exceeds the median
    plus `OUTLIER_SCALES` robust standard deviations and `MIN_OUTLIER_DISTANCE_M`. A
    marker too far away to be drawn counts as unseen.

    Args:
        take: The recording.
        residual: The answer of `marker_residuals` for the same frames.
        stride: Step between drawn frames.
    """
    seen = (np.abs(take.points[::stride]) <= MAX_TRACK_VALUE).all(axis=-1)
    state = np.where(seen, SEEN, UNSEEN).astype(np.uint8)
    state[_find_outliers(residual) & seen] = OUTLIER
    state[take.filled[::stride] & seen] = FILLED
    return state


def _find_outliers(
    residual: Float[Array, "frame marker"],
) -> Bool[Array, "frame marker"]:
    limit = np.full(residual.shape[1], np.inf)
    for marker, distance in enumerate(residual.T):
        known = distance[np.isfinite(distance)]
        if len(known):
            middle, scale = median_and_scale(known)
            limit[marker] = max(middle + OUTLIER_SCALES * scale, MIN_OUTLIER_DISTANCE_M)
    with np.errstate(invalid="ignore"):
        return np.asarray(residual > limit)
