"""Joint centres of a person by regression from bony landmarks in one frame.

Hips are those of Harrington et al. (2007). Knees, ankles, elbows and wrists are midway
between the landmarks on both sides, or a usual half width medial of the lateral one.
Other joints have offsets from their landmarks that were chosen by hand. The pose does
not matter: the frame need not be upright.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.anatomy.landmarks import SIDES, Landmarks
from marey.calibration.model import KinematicModel

Array = np.ndarray

LEFTWARD = {"Left": 1.0, "Right": -1.0}
"""Sign of the lateral direction of each side along the axis to the left."""

HALF_KNEE_M, HALF_ANKLE_M, HALF_ELBOW_M = 0.050, 0.038, 0.038
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


@dataclass(frozen=True, slots=True, eq=False)
class JointRegression:
    """A joint position by regression."""

    position: Float[Array, " 3"]
    """In the world, in metres."""

    markers: list[int]
    """The landmarks it was regressed from."""

    sd: float
    """Its standard deviation along each axis, in metres."""


@dataclass(frozen=True, slots=True, eq=False)
class ReferencePose:
    """Joints and axes of segments in one frame, by name of the segment."""

    joints: dict[str, JointRegression]
    axes: dict[str, Float[Array, "3 3"]]
    """Anterior (x), left (y) and up (z) of each segment, as columns."""


def regress_joints(
    model: KinematicModel,
    landmarks: Landmarks,
    points: Float[Array, "frame marker 3"],
    frame: int,
) -> ReferencePose:
    """Return the joints that landmarks determine; NaN where landmarks coincide.

    Args:
        model: Segments and markers.
        landmarks: The landmarks among the markers.
        points: All frames; the reference frame without occlusions.
        frame: The reference frame.
    """
    regression = _Regression(model, landmarks, points, frame)
    with np.errstate(invalid="ignore", divide="ignore"):
        regression.add_pelvis()
        for side in SIDES:
            regression.add_leg(side)
        if model.index("Chest") >= 0 and landmarks.either_side("c7", "sternum"):
            regression.add_trunk()
            for side in SIDES:
                if landmarks(side, "acromion"):
                    regression.add_arm(side)
    return ReferencePose(regression.joints, regression.axes)


class _Regression:
    """Joints of a person in one frame, added limb by limb from the pelvis."""

    def __init__(
        self,
        model: KinematicModel,
        landmarks: Landmarks,
        points: Float[Array, "frame marker 3"],
        frame: int,
    ) -> None:
        self.model, self.landmarks = model, landmarks
        self.points, self.frame = points, frame
        self.scale = self._body_scale()
        self.joints: dict[str, JointRegression] = {}
        self.axes: dict[str, Array] = {}

    def _mean(self, markers: list[int]) -> Float[Array, " 3"]:
        """Return the mean of markers in the reference frame."""
        return np.asarray(self.points[self.frame][markers].mean(axis=0))

    def _means(self, markers: list[int]) -> Float[Array, "frame 3"]:
        """Return the mean of markers in all frames."""
        return np.asarray(self.points[:, markers].mean(axis=1))

    def _body_scale(self) -> float:
        """Return the size relative to a usual person, by the longest leg ever seen."""
        longest = 0.0
        for side in SIDES:
            hip = self.landmarks(side, "asis", "waist_front")
            ankle = self.landmarks(side, "ankle_outer")
            if ankle:
                length = np.linalg.norm(self._means(hip) - self._means(ankle), axis=1)
                seen = length[np.isfinite(length)]
                if len(seen):
                    longest = max(longest, float(np.quantile(seen, 0.9)))
        if not longest:
            return 1.0
        scale = longest / USUAL_LEG_M
        return float(np.clip(scale, MIN_BODY_SCALE, MAX_BODY_SCALE))

    def add_pelvis(self) -> None:
        """Add the pelvis with both hips and the lumbar joint."""
        marks = self.landmarks
        front = {side: marks(side, "asis", "waist_front") for side in SIDES}
        back = {side: marks(side, "psis", "waist_back") for side in SIDES}
        leftward = self._mean(front["Left"]) - self._mean(front["Right"])
        width = float(np.linalg.norm(leftward))
        if all(back.values()):
            leftward = leftward + self._mean(back["Left"]) - self._mean(back["Right"])
        behind = back["Left"] + back["Right"] or marks("", "sacrum")
        middle = 0.5 * (self._mean(front["Left"]) + self._mean(front["Right"]))
        forward = middle - self._mean(behind)
        depth = float(np.linalg.norm(forward))
        axes = _axes_from_up_and_left(np.cross(forward, leftward), leftward)
        markers = [*front["Left"], *front["Right"], *behind]
        center = 0.5 * (middle + self._mean(behind))
        self.axes["Hips"] = axes
        self.joints["Hips"] = JointRegression(center, markers, 0.0)
        sd = HIP_SD_M if marks("Left", "asis") else BELT_HIP_SD_M
        for side, left in LEFTWARD.items():
            # Harrington et al. 2007; the constant terms scale with the person.
            offset = np.array(
                [
                    -0.24 * depth - 0.0099 * self.scale,
                    left * (0.33 * width + 0.0073 * self.scale),
                    -0.30 * width - 0.0109 * self.scale,
                ]
            )
            hip = JointRegression(middle + axes @ offset, markers, sd)
            self.joints[f"{side}UpperLeg"] = hip
        lumbar = self._mean(behind) + LUMBAR_DEPTH * forward
        lumbar = lumbar + LUMBAR_UP_M * self.scale * axes[:, 2]
        self.joints["Chest"] = JointRegression(lumbar, markers, LUMBAR_SD_M)

    def add_leg(self, side: str) -> None:
        """Add knee and ankle."""
        marks = self.landmarks
        hip = self.joints[f"{side}UpperLeg"].position
        lateral = LEFTWARD[side] * self.axes["Hips"][:, 1]
        outer, inner = marks(side, "knee_outer"), marks(side, "knee_inner")
        ankle_outer, ankle_inner = (
            marks(side, "ankle_outer"),
            marks(side, "ankle_inner"),
        )
        if not outer:
            return
        if inner:
            lateral = self._mean(outer) - self._mean(inner)
        elif ankle_outer:
            lateral = self._knee_axis(hip, outer, ankle_outer, lateral)
        knee = self._between("knee", outer, inner, lateral, HALF_KNEE_M)
        self.joints[f"{side}LowerLeg"] = knee
        left = LEFTWARD[side] * lateral
        self.axes[f"{side}UpperLeg"] = _axes_from_up_and_left(hip - knee.position, left)
        if not ankle_outer:
            return
        if ankle_inner:
            lateral = self._mean(ankle_outer) - self._mean(ankle_inner)
        ankle = self._between("ankle", ankle_outer, ankle_inner, lateral, HALF_ANKLE_M)
        self.joints[f"{side}Foot"] = ankle
        shank = _axes_from_up_and_left(knee.position - ankle.position, left)
        self.axes[f"{side}LowerLeg"] = self.axes[f"{side}Foot"] = shank

    def _between(
        self,
        joint: str,
        outer: list[int],
        inner: list[int],
        lateral: Float[Array, " 3"],
        half_width: float,
    ) -> JointRegression:
        """Return a joint midway between its landmarks, or medial of the lateral one."""
        if inner:
            middle = 0.5 * (self._mean(outer) + self._mean(inner))
            sd = BOTH_LANDMARKS_SD_M[joint]
            return JointRegression(middle, [*outer, *inner], sd)
        offset = half_width * self.scale * lateral / np.linalg.norm(lateral)
        sd = OUTER_LANDMARK_SD_M[joint]
        return JointRegression(self._mean(outer) - offset, outer, sd)

    def _knee_axis(
        self,
        hip: Float[Array, " 3"],
        knee: list[int],
        ankle: list[int],
        lateral: Float[Array, " 3"],
    ) -> Float[Array, " 3"]:
        """Return the lateral direction at the knee.

        It is normal to thigh and shank if the knee is clearly bent in the reference
        frame. Otherwise it is that of the pelvis, made perpendicular to the thigh.
        """
        up, down = hip - self._mean(knee), self._mean(ankle) - self._mean(knee)
        normal = np.cross(up, down)
        size = np.linalg.norm(normal)
        bent = size > MIN_CLEAR_FLEXION * np.linalg.norm(up) * np.linalg.norm(down)
        agreement = abs(normal @ lateral)
        if bent and agreement > MIN_AXIS_AGREEMENT * size * np.linalg.norm(lateral):
            return np.asarray(normal * np.sign(normal @ lateral) / size)
        bone = up / np.linalg.norm(up)
        return np.asarray(lateral - (lateral @ bone) * bone)

    def add_trunk(self) -> None:
        """Add chest and neck; the suprasternal notch is kept for the clavicles."""
        marks = self.landmarks
        pelvis = self.axes["Hips"]
        back, front = marks.either_side("c7"), marks.either_side("sternum")
        forward = pelvis[:, 0]
        if back:
            c7 = self._mean(back)
        else:
            c7 = self._mean(front) - CHEST_DEPTH_M * self.scale * forward
        notch = CHEST_DEPTH_M * forward - NOTCH_BELOW_C7_M * pelvis[:, 2]
        self.notch = self._mean(front) if front else c7 + self.scale * notch
        up = 0.5 * (c7 + self.notch) - self.joints["Chest"].position
        acromia = [marks(side, "acromion") for side in SIDES]
        left = pelvis[:, 1]
        if all(acromia):
            left = self._mean(acromia[0]) - self._mean(acromia[1])
        axes = _axes_from_up_and_left(up, left)
        self.axes["Chest"] = self.axes["Head"] = axes
        neck = NECK_NEAR_C7 * c7 + (1.0 - NECK_NEAR_C7) * self.notch
        neck = neck + NECK_UP_M * self.scale * axes[:, 2]
        self.joints["Head"] = JointRegression(neck, [*back, *front], NECK_SD_M)

    def add_arm(self, side: str) -> None:
        """Add clavicle, shoulder, elbow and wrist."""
        marks, chest = self.landmarks, self.axes["Chest"]
        acromion = marks(side, "acromion")
        forward, lateral = chest[:, 0], LEFTWARD[side] * chest[:, 1]
        offset = CLAVICLE_LATERAL_M * lateral - CLAVICLE_BACK_M * forward
        self.joints[f"{side}Shoulder"] = JointRegression(
            self.notch + self.scale * offset,
            marks.either_side("sternum", "c7"),
            CLAVICLE_SD_M,
        )
        self.axes[f"{side}Shoulder"] = chest
        offset = SHOULDER_LATERAL_M * lateral - SHOULDER_DOWN_M * chest[:, 2]
        shoulder = JointRegression(
            self._mean(acromion) + self.scale * offset, acromion, SHOULDER_SD_M
        )
        self.joints[f"{side}UpperArm"] = shoulder
        if marks(side, "elbow_outer"):
            self._add_forearm(side, shoulder.position)

    def _add_forearm(self, side: str, shoulder: Float[Array, " 3"]) -> None:
        marks = self.landmarks
        outer, inner = marks(side, "elbow_outer"), marks(side, "elbow_inner")
        wrist = marks(side, "wrist_outer", "wrist_inner")
        if inner:
            lateral = self._mean(outer) - self._mean(inner)
        else:
            lateral = self._elbow_axis(side, outer, wrist)
        elbow = self._between("elbow", outer, inner, lateral, HALF_ELBOW_M)
        self.joints[f"{side}LowerArm"] = elbow
        left = LEFTWARD[side] * lateral
        axes = _axes_from_up_and_left(shoulder - elbow.position, left)
        self.axes[f"{side}UpperArm"] = axes
        if wrist:
            position = self._mean(wrist)
            self.joints[f"{side}Hand"] = JointRegression(position, wrist, WRIST_SD_M)
            axes = _axes_from_up_and_left(elbow.position - position, left)
        self.axes[f"{side}LowerArm"] = self.axes[f"{side}Hand"] = axes

    def _elbow_axis(
        self, side: str, outer: list[int], wrist: list[int]
    ) -> Float[Array, " 3"]:
        """Return the lateral direction at the elbow from all frames in which it bends.

        The normal of upper arm and forearm is averaged in the frame of the triangle of
        shoulder, elbow and another marker of the arm.
        """
        left = LEFTWARD[side]
        fallback = left * self.axes["Chest"][:, 1]
        arm = self.model.markers_of(self.model.index(f"{side}UpperArm"))
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
