"""Long axes of legs, and rotations of feet, from the markers on them.

A thigh runs from the hip's centre to the middle of the femoral epicondyles, a shank
from there to the middle of the malleoli (Wu 2002). A joint centre that motion alone
determines may lie a few centimetres before or behind the axis of flexion; a landmark
decides between front and back.
"""

import numpy as np

from marey.anatomy import names as vrm
from marey.clinical.person import Person
from marey.numerics import Array, Float, geometry
from marey.numerics.thresholds import MIN_POSE_POINTS
from marey.skeleton import Skeleton
from marey.tree import children_of


def bone_of(skeleton: Skeleton, joint: int) -> Float[Array, " 3"]:
    """Return the offset of the farthest child, in metres; zero without children."""
    children = children_of(skeleton.parent, joint)
    if not children:
        return np.zeros(3)
    return np.asarray(skeleton.offset[children[skeleton.lengths[children].argmax()]])


def long_axes_of_legs(person: Person) -> dict[str, Float[Array, " 3"]]:
    """Return the long axes of thighs and shanks that have markers on landmarks.

    Downward, in the frame of the segment's joint and in metres, by its name.
    """
    T_world, joint = person.T_world, person.joint
    axes: dict[str, Float[Array, " 3"]] = {}
    for side in vrm.SIDES:
        thigh, shank, foot = (
            joint.get(side + part) for part in (vrm.UPPER_LEG, vrm.LOWER_LEG, vrm.FOOT)
        )
        if thigh is None or shank is None or not person.marks(side, "knee_outer"):
            continue
        knee = _center_by_landmarks(person, side, "knee", shank)
        axes[side + vrm.UPPER_LEG] = knee
        if foot is not None:
            start = _mean_in_child(T_world[:, thigh], T_world[:, shank], knee)
            ankle = _center_by_landmarks(person, side, "ankle", foot)
            axes[side + vrm.LOWER_LEG] = ankle - start
    return axes


def _center_by_landmarks(
    person: Person, side: str, name: str, joint: int
) -> Float[Array, " 3"]:
    """Return the centre of a knee or ankle in the frame of its parent, in metres.

    The middle between the landmarks of both sides. With one on the outer side alone,
    the fitted centre, moved to the front or back until it is beside the landmark.
    """
    place, center = person.skeleton.marker_offset, person.skeleton.offset[joint]
    outer, inner = (person.marks(side, f"{name}_{way}") for way in ("outer", "inner"))
    if not outer:
        return np.asarray(center)
    mark = place[outer].mean(axis=0)
    if inner:
        return np.asarray(0.5 * (mark + place[inner].mean(axis=0)))
    forward = person.R_rest[:, 0]
    return np.asarray(center + forward * ((mark - center) @ forward))


def _mean_in_child(
    T_parent: Float[Array, "frame 4 4"],
    T_child: Float[Array, "frame 4 4"],
    point: Float[Array, " 3"],
) -> Float[Array, " 3"]:
    """Return where a point of the parent is in the child on average, in metres."""
    points = geometry.apply(geometry.inverse(T_child) @ T_parent, point)
    known = np.isfinite(points).all(axis=1)
    return np.asarray(points[known].mean(axis=0) if known.any() else np.zeros(3))


def roll_feet_with_shanks(person: Person) -> Float[Array, "frame joint 3 3"]:
    """Return rotations in which feet that few markers determine roll with the shanks.

    Two markers, heel and toe, determine a line and not the roll about it. The line then
    keeps its direction, and the axis across the foot is that across the shank, made
    perpendicular to the line; this is the foot of Plug-in Gait.
    """
    skeleton, R_world, joint = person.skeleton, person.R_world, person.joint
    across = person.R_rest[:, 1]
    R_new = R_world.copy()
    for side in vrm.SIDES:
        foot, shank = (joint.get(side + part) for part in (vrm.FOOT, vrm.LOWER_LEG))
        if foot is None or shank is None or not _is_line(skeleton, foot):
            continue
        line = _foot_line(skeleton, foot)
        at_rest = _line_frame(line, across)
        moved = _line_frame(R_world[:, foot] @ line, R_world[:, shank] @ across)
        R_new[:, foot] = moved @ at_rest.T
    return R_new


def _is_line(skeleton: Skeleton, foot: int) -> bool:
    """Return whether a foot has markers, but too few for its rotation."""
    markers = int((skeleton.marker_joint == foot).sum())
    return 0 < markers < MIN_POSE_POINTS and foot not in skeleton.sensor_joint


def _foot_line(skeleton: Skeleton, foot: int) -> Float[Array, " 3"]:
    """Return the vector from heel to toe, in metres: between markers, else the bone."""
    markers = skeleton.marker_offset[skeleton.marker_joint == foot]
    bone = bone_of(skeleton, foot)
    if len(markers) < MIN_POSE_POINTS - 1:
        return bone
    line = markers[1] - markers[0]
    return np.asarray(line if line @ bone >= 0.0 else -line)


def _line_frame(
    line: Float[Array, "*frame 3"], across: Float[Array, "*frame 3"]
) -> Float[Array, "*frame 3 3"]:
    """Return axes: x along a line, y as near as it can be to the direction across."""
    x = geometry.unit_vectors(line)
    z = geometry.unit_vectors(np.cross(x, across))
    return np.stack([x, np.cross(z, x), z], axis=-1)
