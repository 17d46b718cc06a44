"""Joint centres of a person by regression from bony landmarks in one frame.

Hips are those of Harrington et al. (2007). Knees, ankles, elbows and wrists are midway
between the landmarks on both sides, or a usual half width medial of the lateral one.
Other joints have offsets from their landmarks that were chosen by hand. The pose does
not matter: the frame need not be upright.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.landmarks import Landmarks
from marey.anatomy.limb_roll import MIN_BEND_SINE
from marey.anatomy.names import SIDES
from marey.calibration.model import KinematicModel
from marey.numerics import Array, Float, geometry
from marey.numerics.thresholds import MIN_SAMPLES, MOST, TINY_LENGTH_M

INNER_OUTER = ("inner", "outer")

LEFTWARD = dict(zip(SIDES, (1.0, -1.0), strict=True))
"""Sign of the lateral direction of each side along the axis to the left."""

BESIDE_OUTER_M = {
    "knee": (0.0, -0.058, 0.0),
    "ankle": (0.009, -0.040, 0.010),
    "elbow": (0.0, -0.038, 0.0),
}
"""Middle between the markers on both landmarks of a joint from the lateral one, with
skin and markers: forward, outward and up along the bone, in metres. Lower moves a joint
backward, inward and down. These and the following offsets are those of a usual person.
Knees and ankles are means of ten people of five laboratories (knees 51 to 63 mm inward,
ankles 36 to 43), which change by 1 mm at most without any one laboratory; elbows were
chosen by hand."""

BELOW_MALLEOLI_M = 0.016
"""Centre of the ankle below the middle of the markers on both malleoli along the shank,
in metres. Higher lengthens shanks. Mean of pair fits of shank and foot of nine people
of five laboratories (13 to 21 mm; 15 to 17 without any one laboratory). The axis passes
below the tips of both malleoli (Isman and Inman 1969)."""

BOTH_LANDMARKS_SD_M, LANDMARK_SD_M, ELBOW_SD_M, WRIST_SD_M = 0.008, 0.012, 0.018, 0.010
"""Standard deviations of a joint between two landmarks; of hip, knee and ankle, and of
the elbow, beside one; and of the wrist, in metres. Lower trusts them more. These and
the following were chosen by hand, mostly on CMU 02 and 07, Uhlrich 2 and Plug-in Gait.
"""

ALONG_LINE_SD_M = {
    "knee": 0.006,
    "ankle": LANDMARK_SD_M,
    "elbow": BOTH_LANDMARKS_SD_M,
}
"""Standard deviation of a joint midway between two landmarks along the line through
them, in metres: that of a knee is its centre by definition, but for skin that is
thicker on one side; where the centre of an ankle lies along its axis no motion shows.
Lower keeps joints nearer to the middle. Chosen on the computed walks of Arnold: a lower
one of knees is better in noise and worse without."""

ANKLE_FROM_HEEL_M = (0.070, 0.040)
"""Middle of both malleoli from the marker on the heel, along the line to the forefoot
and up from it towards the hip, in metres. Higher moves it forward and up. Means of 11
people of six laboratories with markers on both malleoli: forward 53 to 84 mm, up 32 to
49 mm; without any one laboratory they change by 4 mm at most."""

SHOULDER_SD_M, CLAVICLE_SD_M, NECK_SD_M, LUMBAR_SD_M = 0.020, 0.015, 0.025, 0.030
"""Standard deviations of the other joints in metres; that of the shoulder also serves
hips below a belt. Lower trusts them more. Chosen by hand, on the same recordings."""

HIP_PROPORTIONS, HIP_OFFSET_M = (-0.24, 0.33, -0.30), (-0.0099, 0.0073, -0.0109)
"""Left hip from the middle between the anterior iliac spines, forward, left and up:
shares of the depth, width and width of the pelvis, and metres. Harrington et al. 2007;
here the offset scales with the person."""

USUAL_LEG_M = 0.92
"""Distance of anterior iliac spine and ankle of a person of usual stature, in metres.
Lower makes all offsets larger. Chosen by hand."""

LUMBAR_DEPTH, LUMBAR_UP_M = 0.35, 0.025
"""Lumbar joint: fraction of the line from the back of the pelvis to its front, and
metres above that point. Higher moves it forward and up. Chosen by hand."""

CHEST_DEPTH_M, NOTCH_BELOW_C7_M = 0.11, 0.045
"""Suprasternal notch: metres in front of C7, and below it, where one of the two has no
marker. Higher moves the missing one away. Chosen by hand."""

NECK_NEAR_C7, NECK_UP_M = 0.6, 0.040
"""Neck: fraction of the line from the notch to C7, and metres above that point. Higher
moves it backward and up. Chosen by hand."""

CLAVICLE_LATERAL_M = 0.025
"""Inner end of the clavicle: metres lateral of the notch. Higher shortens clavicles.
Chosen by hand."""

SHOULDER_LATERAL_M, SHOULDER_DOWN_M = 0.005, 0.050
"""Shoulder: metres lateral of the acromion, and below it. Higher moves it outward and
down. Chosen by hand."""


class JointRegression(NamedTuple):
    """A joint position by regression."""

    position: Float[Array, " 3"]
    """In the world, in metres."""

    markers: list[int]
    """The landmarks it was regressed from."""

    sd: float
    """Its standard deviation along each axis, in metres."""

    along: Float[Array, " 3"] | None = None
    """The standard deviation along the line from one landmark to that on the other
    side, as a vector in the world, in metres; None if it is `sd` there, too."""


def regress_joints(
    model: KinematicModel,
    landmarks: Landmarks,
    points: Float[Array, "frame marker 3"],
    measured: Float[Array, "marker 3"],
) -> "ReferencePose":
    """Return the joints that landmarks determine; NaN where landmarks coincide.

    Args:
        model: Segments and markers.
        landmarks: The landmarks among the markers.
        points: All frames.
        measured: The reference frame, without occlusions.
    """
    pose = ReferencePose(model, landmarks, points, measured)
    with np.errstate(invalid="ignore", divide="ignore"):
        pose.add_pelvis()
        for side in SIDES:
            pose.add_leg(side)
        if model.index(vrm.CHEST) >= 0 and landmarks.either_side("c7", "sternum"):
            pose.add_trunk()
    return pose


@dataclass(eq=False)
class ReferencePose:
    """Joints of a person in one frame, added limb by limb from the pelvis."""

    model: KinematicModel
    landmarks: Landmarks
    points: Float[Array, "frame marker 3"]
    measured: Float[Array, "marker 3"]
    joints: dict[str, JointRegression] = field(default_factory=dict)
    """The joint at the origin of each segment, by name of the segment."""

    axes: dict[str, Float[Array, "3 3"]] = field(default_factory=dict)
    """Anterior (x), left (y) and up (z) of each segment, as columns."""

    def _mean(self, markers: list[int]) -> Float[Array, " 3"]:
        """Return the mean of markers in the reference frame."""
        return np.asarray(self.measured[markers].mean(axis=0))

    @cached_property
    def scale(self) -> float:
        """Size relative to a usual person, by the longest leg ever seen."""
        longest = []
        for side in SIDES:
            hip = self.landmarks(side, "asis", "waist_front")
            if ankle := self.landmarks(side, "ankle_outer"):
                top, bottom = (self.points[:, k].mean(axis=1) for k in (hip, ankle))
                length = np.linalg.norm(top - bottom, axis=1)
                length = length[np.isfinite(length)]
                longest += [np.quantile(length, MOST)] if len(length) else []
        return float(max(longest, default=USUAL_LEG_M)) / USUAL_LEG_M

    def add_pelvis(self) -> None:
        """Add the pelvis with both hips and the lumbar joint."""
        marks = self.landmarks
        front = [marks(side, "asis", "waist_front") for side in SIDES]
        back = [marks(side, "psis", "waist_back") for side in SIDES]
        behind = [*back[0], *back[1]] or marks("", "sacrum")
        markers = [*front[0], *front[1], *behind]
        left, right, sacrum = (self._mean(x) for x in (*front, behind))
        leftward, middle = left - right, 0.5 * (left + right)
        width = float(np.linalg.norm(leftward))
        if all(back):
            leftward = leftward + self._mean(back[0]) - self._mean(back[1])
        forward = middle - sacrum
        depth = float(np.linalg.norm(forward))
        axes = _axes_from_up_and_left(geometry.cross(forward, leftward), leftward)
        self.axes[vrm.HIPS] = axes
        center = 0.5 * (middle + sacrum)
        self.joints[vrm.HIPS] = JointRegression(center, markers, 0.0)
        sd = LANDMARK_SD_M if marks(SIDES[0], "asis") else SHOULDER_SD_M
        offset = np.multiply(HIP_PROPORTIONS, [depth, width, width])
        offset = offset + np.multiply(HIP_OFFSET_M, self.scale)
        for side, sign in LEFTWARD.items():
            mirrored = offset * [1.0, sign, 1.0]
            hip = JointRegression(middle + axes @ mirrored, markers, sd)
            self.joints[side + vrm.UPPER_LEG] = hip
        lumbar = sacrum + LUMBAR_DEPTH * forward + LUMBAR_UP_M * self.scale * axes[:, 2]
        self.joints[vrm.CHEST] = JointRegression(lumbar, markers, LUMBAR_SD_M)

    def add_leg(self, side: str) -> None:
        """Add knee and ankle."""
        hip = self.joints[side + vrm.UPPER_LEG].position
        has_ankle = bool(self.landmarks(side, "ankle_outer"))
        if not has_ankle:
            self._add_ankle_of_foot(side)
        if not self.landmarks(side, "knee_outer"):
            return
        lateral = LEFTWARD[side] * self.axes[vrm.HIPS][:, 1]
        knee, lateral = self._between(side, "knee", hip, lateral)
        left = LEFTWARD[side] * lateral
        self.joints[side + vrm.LOWER_LEG] = knee
        thigh = _axes_from_up_and_left(hip - knee.position, left)
        self.axes[side + vrm.UPPER_LEG] = thigh
        if has_ankle:
            between, _ = self._between(side, "ankle", knee.position, lateral)
            self.joints[side + vrm.FOOT] = between
        if side + vrm.FOOT in self.joints:
            ankle = self.joints[side + vrm.FOOT].position
            shank = _axes_from_up_and_left(knee.position - ankle, left)
            self.axes[side + vrm.LOWER_LEG] = self.axes[side + vrm.FOOT] = shank

    def _add_ankle_of_foot(self, side: str) -> None:
        """Add an ankle without malleoli, from heel and forefoot."""
        inner, outer = (self.landmarks(side, f"forefoot_{n}") for n in INNER_OUTER)
        heel = self.landmarks(side, "heel")
        front = self.landmarks(side, "toe") or (inner and outer and [*inner, *outer])
        if not heel or not front:
            return
        back = self._mean(heel)
        to_hip = self.joints[side + vrm.UPPER_LEG].position - back
        along = self._mean(front) - back
        along = along / np.linalg.norm(along)
        up = to_hip - (to_hip @ along) * along
        up = up / np.linalg.norm(up)
        forward, upward = np.multiply(ANKLE_FROM_HEEL_M, self.scale)
        upward -= self.scale * BELOW_MALLEOLI_M
        center = back + forward * along + upward * up
        self.joints[side + vrm.FOOT] = JointRegression(
            center, [*heel, *front], LANDMARK_SD_M
        )

    def _between(
        self,
        side: str,
        joint: str,
        above: Float[Array, " 3"],
        lateral: Float[Array, " 3"],
    ) -> tuple[JointRegression, Float[Array, " 3"]]:
        """Return a joint, and the lateral direction at it.

        The joint is midway between its landmarks, or medial of the lateral one; an
        ankle is below that.

        Args:
            side: "Left" or "Right".
            joint: "knee", "ankle" or "elbow".
            above: The joint at the other end of the bone.
            lateral: The direction, unless landmarks on both sides determine it.
        """
        outer = self.landmarks(side, f"{joint}_outer")
        inner = self.landmarks(side, f"{joint}_inner")
        beside, left = self._mean(outer), LEFTWARD[side]
        if inner:
            lateral = beside - self._mean(inner)
        axes = _axes_from_up_and_left(above - beside, left * lateral)
        below = (joint == "ankle") * self.scale * BELOW_MALLEOLI_M * axes[:, 2]
        if inner:
            middle = 0.5 * (beside + self._mean(inner))
            along = ALONG_LINE_SD_M[joint] * lateral / np.linalg.norm(lateral)
            markers, sd = [*outer, *inner], BOTH_LANDMARKS_SD_M
            return JointRegression(middle - below, markers, sd, along), lateral
        offset = np.multiply(BESIDE_OUTER_M[joint], [1.0, left, 1.0])
        center = beside + self.scale * axes @ offset - below
        sd = ELBOW_SD_M if joint == "elbow" else LANDMARK_SD_M
        return JointRegression(center, outer, sd), lateral

    def add_trunk(self) -> None:
        """Add chest, neck and arms."""
        marks, pelvis = self.landmarks, self.axes[vrm.HIPS]
        back, front = marks.either_side("c7"), marks.either_side("sternum")
        depth = CHEST_DEPTH_M * pelvis[:, 0]
        c7 = self._mean(back) if back else self._mean(front) - self.scale * depth
        below = depth - NOTCH_BELOW_C7_M * pelvis[:, 2]
        notch = self._mean(front) if front else c7 + self.scale * below
        up = 0.5 * (c7 + notch) - self.joints[vrm.CHEST].position
        acromia = {side: marks(side, "acromion") for side in SIDES}
        left = pelvis[:, 1]
        if all(acromia.values()):
            left = np.subtract(*map(self._mean, acromia.values()))
        axes = _axes_from_up_and_left(up, left)
        self.axes[vrm.CHEST] = self.axes[vrm.HEAD] = axes
        neck = notch + NECK_NEAR_C7 * (c7 - notch)
        neck = neck + NECK_UP_M * self.scale * axes[:, 2]
        self.joints[vrm.HEAD] = JointRegression(neck, [*back, *front], NECK_SD_M)
        for side in SIDES:
            if acromia[side]:
                self._add_arm(side, notch)

    def _add_arm(self, side: str, notch: Float[Array, " 3"]) -> None:
        """Add clavicle, shoulder, elbow and wrist."""
        marks, chest = self.landmarks, self.axes[vrm.CHEST]
        acromion = marks(side, "acromion")
        lateral = LEFTWARD[side] * chest[:, 1]
        clavicle = notch + CLAVICLE_LATERAL_M * self.scale * lateral
        self.joints[side + vrm.SHOULDER] = JointRegression(
            clavicle, marks.either_side("sternum", "c7"), CLAVICLE_SD_M
        )
        self.axes[side + vrm.SHOULDER] = chest
        offset = SHOULDER_LATERAL_M * lateral - SHOULDER_DOWN_M * chest[:, 2]
        shoulder = self._mean(acromion) + self.scale * offset
        self.joints[side + vrm.UPPER_ARM] = JointRegression(
            shoulder, acromion, SHOULDER_SD_M
        )
        if not marks(side, "elbow_outer"):
            return
        elbow, lateral = self._between(side, "elbow", shoulder, self._elbow_axis(side))
        self.joints[side + vrm.LOWER_ARM] = elbow
        left = LEFTWARD[side] * lateral
        axes = _axes_from_up_and_left(shoulder - elbow.position, left)
        self.axes[side + vrm.UPPER_ARM] = axes
        if wrist := marks(side, "wrist_outer", "wrist_inner"):
            hand = JointRegression(self._mean(wrist), wrist, WRIST_SD_M)
            self.joints[side + vrm.HAND] = hand
            axes = _axes_from_up_and_left(elbow.position - hand.position, left)
        self.axes[side + vrm.LOWER_ARM] = self.axes[side + vrm.HAND] = axes

    def _elbow_axis(self, side: str) -> Float[Array, " 3"]:
        """Return the lateral direction at the elbow from all frames in which it bends.

        The normal of upper arm and forearm is averaged in the frame of the triangle of
        shoulder, elbow and another marker of the arm.
        """
        left, outer = LEFTWARD[side], self.landmarks(side, "elbow_outer")
        wrist = self.landmarks(side, "wrist_outer", "wrist_inner")
        fallback = left * self.axes[vrm.CHEST][:, 1]
        arm = self.model.markers_of(self.model.index(side + vrm.UPPER_ARM))
        third = [k for k in arm if k not in outer][:1] or wrist[:1]
        if not wrist or not third:
            return fallback
        acromion = self.landmarks(side, "acromion")
        shoulder, elbow, hand, other = (
            np.append(self.points[:, k], self.measured[None, k], axis=0).mean(axis=1)
            for k in (acromion, outer, wrist, third)
        )
        up = _unit(shoulder - elbow)
        normal = left * geometry.cross(up, _unit(hand - elbow))
        z = _unit(geometry.cross(up, other - elbow))
        triangle = np.stack([up, geometry.cross(z, up), z], axis=-1)
        seen = np.isfinite(normal).all(axis=1) & np.isfinite(triangle).all(axis=(1, 2))
        if not seen[-1]:
            return fallback
        # Normals are as long as the sine of the flexion. Those of straight arms depend
        # on where the markers sit, so only bent frames count, or the most bent ones.
        flexion = np.where(seen, np.linalg.norm(normal, axis=1), 0.0)
        bent = flexion > MIN_BEND_SINE
        if bent.sum() < MIN_SAMPLES:
            bent = seen & (flexion >= np.quantile(flexion[seen], MOST))
        mean = np.einsum("fji,fj->i", triangle[bent], normal[bent])
        size = np.linalg.norm(mean)
        if size < TINY_LENGTH_M:
            return fallback
        return np.asarray(triangle[-1] @ mean / size)


def _unit(vectors: Float[Array, "frame 3"]) -> Float[Array, "frame 3"]:
    """Return unit vectors; NaN for vectors of no length."""
    size = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit = np.full_like(vectors, np.nan)
    np.divide(vectors, size, out=unit, where=size > TINY_LENGTH_M)
    return unit


def _axes_from_up_and_left(
    up: Float[Array, " 3"], left: Float[Array, " 3"]
) -> Float[Array, "3 3"]:
    """Return axes as columns: z along `up`, y towards `left`, perpendicular to z."""
    z = up / np.linalg.norm(up)
    y = left - (left @ z) * z
    y = y / np.linalg.norm(y)
    return np.stack([geometry.cross(y, z), y, z], axis=1)
