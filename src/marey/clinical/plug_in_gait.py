"""Axes of thighs and shanks as Plug-in Gait defines them.

Davis and others, Hum. Mov. Sci. 10 (1991) 575; Kadaba and others, J. Orthop. Res. 8
(1990) 383. The hip's centre follows from the iliac spines and the length of the legs.
The centre of a knee or ankle lies at a given distance from its marker, at a right angle
between marker and next centre, in the plane of these and the wand. So the wand on thigh
or shank decides where flexion is measured.

Departures: subject measurements are those of the skeleton (length of the legs, distance
of each marker from its joint), and there are no offsets of a static trial.
"""

from itertools import pairwise

import numpy as np

from marey.anatomy import names as vrm
from marey.clinical.anatomical_axes import SegmentAxes
from marey.clinical.person import Person
from marey.numerics import Array, Float, geometry

Points = Float[Array, "frame 3"]

THETA, BETA = 0.5, 0.314
"""Angles of the hip's centre in the pelvis, in radians: published, Davis 1991."""

LEG_SHARE, LEG_OFFSET_M = 0.115, -0.0153
"""Distance of the hip's centre from the iliac spine by the length of the leg, in
metres: published, Davis 1991."""

TROCHANTER_SHARE, TROCHANTER_OFFSET_M = 0.1288, -0.04856
"""Distance from the iliac spine to the trochanter, the same way: published."""

MARKER_RADIUS_M = 0.007
"""Radius of a marker in metres, as published for Plug-in Gait: 14 mm markers. Higher
moves the hip's centre back."""

WANDS = ("THI", "TIB")
"""Labels of the wands on thigh and shank, without their side."""


def leg_axes_of_wands(
    person: Person, pelvis: Float[Array, "3 3"]
) -> dict[str, SegmentAxes]:
    """Return the axes of thighs and shanks of a person with Plug-in Gait's markers.

    Args:
        person: Any.
        pelvis: Axes of the pelvis in the frame of its joint.

    Returns:
        The mean axes over all frames, by the name of the segment; none if one of the
        markers is missing.
    """
    places = person.motion.marker_points()
    axes: dict[str, SegmentAxes] = {}
    for side, sign in zip(vrm.SIDES, (1.0, -1.0), strict=True):
        segments = [side + part for part in vrm.LEG[:3]]
        markers = _leg_markers(person, side)
        if not markers or not set(segments) <= set(person.joint):
            return {}
        upper = _hip_center(person, pelvis, sign)
        for (segment, child), (mark, wand) in zip(
            pairwise(segments), markers, strict=True
        ):
            center = person.T_world[:, person.joint[child], :3, 3]
            apart = np.linalg.norm(places[:, mark] - center, axis=-1)
            apart = float(np.nanmean(apart))
            lower = center_beside(places[:, mark], upper, places[:, wand], apart)
            outward = sign * (places[:, mark] - lower)
            R = person.R_world[:, person.joint[segment]]
            local = np.swapaxes(R, -1, -2) @ _frame(upper - lower, outward)
            mean = geometry.nearest_rotation(np.nanmean(local, axis=0))
            axes[segment] = SegmentAxes(mean, "Plug-in Gait's centres and wands")
            upper = lower
    return axes


def _leg_markers(person: Person, side: str) -> list[tuple[int, int]]:
    """Return the markers of knee and ankle, each with its wand; none if one is missing.

    The pelvis must have both anterior spines, too.
    """
    marks = person.marks
    marker_labels = person.skeleton.marker_labels
    labels = [vrm.without_subject(label).upper() for label in marker_labels]
    pairs = []
    for joint, wand in zip(("knee_outer", "ankle_outer"), WANDS, strict=True):
        on_joint, label = marks(side, joint), side[0] + wand
        if len(on_joint) != 1 or labels.count(label) != 1:
            return []
        pairs.append((on_joint[0], labels.index(label)))
    return pairs if all(marks(one, "asis") for one in vrm.SIDES) else []


def _hip_center(person: Person, pelvis: Float[Array, "3 3"], sign: float) -> Points:
    """Return the centre of a hip by the regression of Davis 1991, in the world.

    Args:
        person: With markers on the anterior iliac spines.
        pelvis: Axes of the pelvis: forward, left and up.
        sign: 1 for the left hip, -1 for the right one.
    """
    skeleton, joint = person.skeleton, person.joint
    bones = [joint[side + part] for side in vrm.SIDES for part in vrm.LEG[1:3]]
    leg = float(skeleton.lengths[bones].sum()) / len(vrm.SIDES)
    c = LEG_SHARE * leg + LEG_OFFSET_M
    back = TROCHANTER_SHARE * leg + TROCHANTER_OFFSET_M + MARKER_RADIUS_M
    marks, place = person.marks, skeleton.marker_offset
    spines = [place[marks(side, "asis")].mean(axis=0) for side in vrm.SIDES]
    half = 0.5 * float(np.linalg.norm(spines[0] - spines[1]))
    forward = c * np.cos(THETA) * np.sin(BETA) - back * np.cos(BETA)
    up = -c * np.cos(THETA) * np.cos(BETA) - back * np.sin(BETA)
    in_pelvis = np.array([forward, sign * (half - c * np.sin(THETA)), up])
    center = 0.5 * (spines[0] + spines[1]) + pelvis @ in_pelvis
    return np.asarray(geometry.apply(person.T_world[:, joint[vrm.HIPS]], center))


def center_beside(mark: Points, upper: Points, wand: Points, apart: float) -> Points:
    """Return the centre of a joint beside its marker, on the side away from the wand.

    In metres. The "chord" of Kadaba 1990: as far from the marker as given, in the plane
    of marker, wand and upper centre, with a right angle between marker and upper
    centre.
    """
    distance = np.linalg.norm(upper - mark, axis=-1, keepdims=True)
    along, to_wand = geometry.unit_vectors(upper - mark), wand - mark
    out = geometry.unit_vectors(to_wand - np.sum(to_wand * along, -1)[:, None] * along)
    cosine = np.minimum(apart / distance, 1.0)
    return np.asarray(mark + apart * (cosine * along - np.sqrt(1.0 - cosine**2) * out))


def _frame(up: Points, left: Points) -> Float[Array, "frame 3 3"]:
    """Return axes as columns: z up, y as near as it can be to the left."""
    z = geometry.unit_vectors(up)
    x = geometry.unit_vectors(np.cross(left, z))
    return np.stack([x, np.cross(z, x), z], axis=-1)
