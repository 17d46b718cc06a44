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
from jaxtyping import Float

from marey.anatomy import names as vrm
from marey.anatomy.landmarks import Landmarks
from marey.anatomy.names import SIDES
from marey.calibration.model import KinematicModel

Array = np.ndarray

LEFTWARD = dict(zip(SIDES, (1.0, -1.0), strict=True))
"""Sign of the lateral direction of each side along the axis to the left."""

HALF_WIDTH_M = {"knee": 0.050, "ankle": 0.038, "elbow": 0.038}
"""Distance of the joint centre from the marker on the lateral landmark, skin and marker
included, in metres. Chosen by hand."""

BOTH_LANDMARKS_SD_M = {"knee": 0.008, "ankle": 0.006, "elbow": 0.008}
"""Standard deviation of a joint between two landmarks, in metres. Lower trusts it more.
These and the following were chosen by hand, mostly on CMU 02 and 07, Uhlrich 2 and
Plug-in Gait."""

OUTER_LANDMARK_SD_M = {"knee": 0.012, "ankle": 0.010, "elbow": 0.018}
"""The same with the lateral landmark alone."""

HIP_SD_M, BELT_HIP_SD_M = 0.012, 0.020
"""Standard deviation of a hip from iliac spines, and from a belt, in metres."""

LUMBAR_SD_M, NECK_SD_M, CLAVICLE_SD_M = 0.030, 0.025, 0.015
SHOULDER_SD_M, WRIST_SD_M = 0.020, 0.010
"""Standard deviations of the other joints, in metres."""

USUAL_LEG_M = 0.92
"""Distance of anterior iliac spine and ankle of a person of usual stature, in metres.
Lower makes all offsets larger. Chosen by hand."""

MIN_BODY_SCALE, MAX_BODY_SCALE = 0.3, 1.3
"""Bounds of the size of a person relative to a usual one: a toddler, a giant. Chosen by
hand."""

LUMBAR_DEPTH, LUMBAR_UP_M = 0.35, 0.025
"""Lumbar joint: fraction of the line from the back of the pelvis to its front, and
metres above that point. This and the following offsets are those of a usual person,
and were chosen by hand."""

CHEST_DEPTH_M, NOTCH_BELOW_C7_M = 0.11, 0.045
"""Suprasternal notch: metres in front of C7, and below it."""

NECK_NEAR_C7, NECK_UP_M = 0.6, 0.040
"""Neck: fraction of the line from the notch to C7, and metres above that point."""

CLAVICLE_LATERAL_M, CLAVICLE_BACK_M = 0.025, 0.010
"""Inner end of the clavicle: metres lateral of the notch, and behind it."""

SHOULDER_LATERAL_M, SHOULDER_DOWN_M = 0.005, 0.050
"""Shoulder: metres lateral of the acromion, and below it."""

MIN_FLEXION, MIN_CLEAR_FLEXION = np.sin(np.radians(20.0)), np.sin(np.radians(45.0))
"""Sine of the flexion above which two bones determine the axis between them: averaged
over many frames, and in a single frame. Higher uses fewer frames. Chosen by hand."""

MIN_AXIS_AGREEMENT = 0.7
"""Cosine of the largest angle between the axis of a bent knee and the lateral direction
of the pelvis; a knee that bends about another axis is misread. Chosen by hand."""

MIN_BENT_FRAMES = 5
"""Fewest frames from which the axis of the elbow is averaged. Chosen by hand."""


class JointRegression(NamedTuple):
    """A joint position by regression."""

    position: Float[Array, " 3"]
    """In the world, in metres."""

    markers: list[int]
    """The landmarks it was regressed from."""

    sd: float
    """Its standard deviation along each axis, in metres."""


def regress_joints(
    model: KinematicModel,
    landmarks: Landmarks,
    points: Float[Array, "frame marker 3"],
    frame: int,
) -> "ReferencePose":
    """Return the joints that landmarks determine; NaN where landmarks coincide.

    Args:
        model: Segments and markers.
        landmarks: The landmarks among the markers.
        points: All frames; the reference frame without occlusions.
        frame: The reference frame.
    """
    pose = ReferencePose(model, landmarks, points, frame)
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
    frame: int
    joints: dict[str, JointRegression] = field(default_factory=dict)
    """The joint at the origin of each segment, by name of the segment."""

    axes: dict[str, Float[Array, "3 3"]] = field(default_factory=dict)
    """Anterior (x), left (y) and up (z) of each segment, as columns."""

    def _mean(self, markers: list[int]) -> Float[Array, " 3"]:
        """Return the mean of markers in the reference frame."""
        return np.asarray(self.points[self.frame][markers].mean(axis=0))

    def _means(self, markers: list[int]) -> Float[Array, "frame 3"]:
        """Return the mean of markers in all frames."""
        return np.asarray(self.points[:, markers].mean(axis=1))

    @cached_property
    def scale(self) -> float:
        """Size relative to a usual person, by the longest leg ever seen."""
        longest = []
        for side in SIDES:
            hip = self.landmarks(side, "asis", "waist_front")
            if ankle := self.landmarks(side, "ankle_outer"):
                length = np.linalg.norm(self._means(hip) - self._means(ankle), axis=1)
                length = length[np.isfinite(length)]
                longest += [np.quantile(length, 0.9)] if len(length) else []
        scale = max(longest, default=USUAL_LEG_M) / USUAL_LEG_M
        return float(np.clip(scale, MIN_BODY_SCALE, MAX_BODY_SCALE))

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
        axes = _axes_from_up_and_left(np.cross(forward, leftward), leftward)
        self.axes[vrm.HIPS] = axes
        center = 0.5 * (middle + sacrum)
        self.joints[vrm.HIPS] = JointRegression(center, markers, 0.0)
        sd = HIP_SD_M if marks(SIDES[0], "asis") else BELT_HIP_SD_M
        for side, sign in LEFTWARD.items():
            # Harrington et al. 2007; the constant terms scale with the person.
            offset = np.array(
                [
                    -0.24 * depth - 0.0099 * self.scale,
                    sign * (0.33 * width + 0.0073 * self.scale),
                    -0.30 * width - 0.0109 * self.scale,
                ]
            )
            hip = JointRegression(middle + axes @ offset, markers, sd)
            self.joints[side + vrm.UPPER_LEG] = hip
        lumbar = sacrum + LUMBAR_DEPTH * forward + LUMBAR_UP_M * self.scale * axes[:, 2]
        self.joints[vrm.CHEST] = JointRegression(lumbar, markers, LUMBAR_SD_M)

    def add_leg(self, side: str) -> None:
        """Add knee and ankle."""
        hip = self.joints[side + vrm.UPPER_LEG].position
        has_ankle = bool(self.landmarks(side, "ankle_outer"))
        if not self.landmarks(side, "knee_outer"):
            return
        lateral = LEFTWARD[side] * self.axes[vrm.HIPS][:, 1]
        if has_ankle:
            lateral = self._knee_axis(side, hip, lateral)
        knee, lateral = self._between(side, "knee", lateral)
        left = LEFTWARD[side] * lateral
        self.joints[side + vrm.LOWER_LEG] = knee
        thigh = _axes_from_up_and_left(hip - knee.position, left)
        self.axes[side + vrm.UPPER_LEG] = thigh
        if has_ankle:
            ankle, _ = self._between(side, "ankle", lateral)
            self.joints[side + vrm.FOOT] = ankle
            shank = _axes_from_up_and_left(knee.position - ankle.position, left)
            self.axes[side + vrm.LOWER_LEG] = self.axes[side + vrm.FOOT] = shank

    def _between(
        self, side: str, joint: str, lateral: Float[Array, " 3"]
    ) -> tuple[JointRegression, Float[Array, " 3"]]:
        """Return a joint, and the lateral direction at it.

        The joint is midway between its landmarks, or medial of the lateral one.
        """
        outer = self.landmarks(side, f"{joint}_outer")
        inner = self.landmarks(side, f"{joint}_inner")
        if inner:
            lateral = self._mean(outer) - self._mean(inner)
            middle = 0.5 * (self._mean(outer) + self._mean(inner))
            sd = BOTH_LANDMARKS_SD_M[joint]
            return JointRegression(middle, [*outer, *inner], sd), lateral
        offset = HALF_WIDTH_M[joint] * self.scale * lateral / np.linalg.norm(lateral)
        sd = OUTER_LANDMARK_SD_M[joint]
        return JointRegression(self._mean(outer) - offset, outer, sd), lateral

    def _knee_axis(
        self, side: str, hip: Float[Array, " 3"], lateral: Float[Array, " 3"]
    ) -> Float[Array, " 3"]:
        """Return the lateral direction at the knee.

        It is normal to thigh and shank if the knee is clearly bent in the reference
        frame. Otherwise it is that of the pelvis, made perpendicular to the thigh.
        """
        knee = self._mean(self.landmarks(side, "knee_outer"))
        up, down = hip - knee, self._mean(self.landmarks(side, "ankle_outer")) - knee
        normal = np.cross(up, down)
        size = np.linalg.norm(normal)
        bent = size > MIN_CLEAR_FLEXION * np.linalg.norm(up) * np.linalg.norm(down)
        agreement = abs(normal @ lateral)
        if bent and agreement > MIN_AXIS_AGREEMENT * size * np.linalg.norm(lateral):
            return np.asarray(normal * np.sign(normal @ lateral) / size)
        bone = up / np.linalg.norm(up)
        return np.asarray(lateral - (lateral @ bone) * bone)

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
        neck = NECK_NEAR_C7 * c7 + (1.0 - NECK_NEAR_C7) * notch
        neck = neck + NECK_UP_M * self.scale * axes[:, 2]
        self.joints[vrm.HEAD] = JointRegression(neck, [*back, *front], NECK_SD_M)
        for side in SIDES:
            if acromia[side]:
                self._add_arm(side, notch)

    def _add_arm(self, side: str, notch: Float[Array, " 3"]) -> None:
        """Add clavicle, shoulder, elbow and wrist."""
        marks, chest = self.landmarks, self.axes[vrm.CHEST]
        acromion = marks(side, "acromion")
        forward, lateral = chest[:, 0], LEFTWARD[side] * chest[:, 1]
        offset = CLAVICLE_LATERAL_M * lateral - CLAVICLE_BACK_M * forward
        clavicle = notch + self.scale * offset
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
        elbow, lateral = self._between(side, "elbow", self._elbow_axis(side))
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
        elbow = self._means(outer)
        up = _unit(self._means(self.landmarks(side, "acromion")) - elbow)
        normal = left * np.cross(up, _unit(self._means(wrist) - elbow))
        z = _unit(np.cross(up, self._means(third) - elbow))
        triangle = np.stack([up, np.cross(z, up), z], axis=-1)
        flexion = np.linalg.norm(normal, axis=1)
        seen = np.isfinite(flexion) & np.isfinite(triangle).all(axis=(1, 2))
        here = triangle[self.frame]
        if seen.sum() < MIN_BENT_FRAMES or not np.isfinite(here).all():
            return fallback
        bent = seen & (flexion > MIN_FLEXION)
        if bent.sum() <= MIN_BENT_FRAMES:
            bent = seen & (flexion >= np.quantile(flexion[seen], 0.9))
        mean = np.einsum("fji,fj->i", triangle[bent], normal[bent])
        size = np.linalg.norm(mean)
        return fallback if size == 0.0 else np.asarray(here @ mean / size)


def _unit(vectors: Float[Array, "frame 3"]) -> Float[Array, "frame 3"]:
    """Return unit vectors; NaN for vectors of no length."""
    size = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit = np.full_like(vectors, np.nan)
    np.divide(vectors, size, out=unit, where=size > 1e-9)
    return unit


def _axes_from_up_and_left(
    up: Float[Array, " 3"], left: Float[Array, " 3"]
) -> Float[Array, "3 3"]:
    """Return axes as columns: z along `up`, y towards `left`, perpendicular to z."""
    z = up / np.linalg.norm(up)
    y = left - (left @ z) * z
    y = y / np.linalg.norm(y)
    return np.stack([np.cross(y, z), y, z], axis=1)
