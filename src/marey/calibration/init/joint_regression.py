"""Where the joints of a person are, by landmarks in one frame.

Hips after Harrington et al. (2007); knees, ankles, elbows and wrists midway between the
landmarks on either side, or a usual half width inward of the outer one; the others by
rules of thumb. Nothing is asked of the pose, the frame need not be upright.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from marey.calibration.landmarks import SIDES, Landmarks
from marey.calibration.unknowns import Figure

Array = np.ndarray

LEFTWARD = {"Left": 1.0, "Right": -1.0}

HALF_KNEE, HALF_ANKLE, HALF_ELBOW = 0.050, 0.038, 0.038
"""From the outer landmark, skin and marker included, to the joint, in metres."""

USUAL_LEG = 0.92
"""From the front of the pelvis to the ankle of a person of usual stature."""

FLEXED, WELL_FLEXED = np.sin(np.radians(20.0)), np.sin(np.radians(45.0))
"""Bent by more than this, two bones show the axis between them: over many frames, and
in a single one."""


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """A joint's place by landmarks, and how well they know it."""

    place: Float[Array, " 3"]
    markers: list[int]
    """The landmarks it is told from."""

    sd: float


@dataclass(frozen=True, slots=True, eq=False)
class Stance:
    """Joints and axes of all segments in one frame."""

    joints: dict[str, Guess]
    axes: dict[str, Float[Array, "3 3"]]
    """x ahead, y left and z up of each segment, as columns."""


class Reader:
    """Reads the joints of a person off one frame, limb after limb."""

    def __init__(
        self,
        figure: Figure,
        marks: Landmarks,
        points: Float[Array, "frame marker 3"],
        frame: int,
    ) -> None:
        self.figure, self.marks = figure, marks
        self.points, self.here = points, points[frame]
        self.size = self._size()
        self.joints: dict[str, Guess] = {}
        self.axes: dict[str, Array] = {}

    def read(self) -> Stance:
        """Return what the landmarks tell; NaN where they stand in one place."""
        with np.errstate(invalid="ignore", divide="ignore"):
            self._read()
        return Stance(self.joints, self.axes)

    def _read(self) -> None:
        self._pelvis()
        for side in SIDES:
            self._leg(side)
        if self.figure.index("Chest") >= 0 and self.marks.middle("c7", "sternum"):
            self._trunk()
            for side in SIDES:
                if self.marks(side, "acromion"):
                    self._arm(side)

    def _at(self, markers: list[int]) -> Array:
        return np.asarray(self.here[markers].mean(axis=0))

    def _size(self) -> float:
        """Return how large the person is, of the usual one, by the longest leg seen."""
        longest = 0.0
        for side in SIDES:
            top = self.marks(side, "asis", "waist_front")
            end = self.marks(side, "ankle_outer")
            if not end:
                continue
            way = self.points[:, top].mean(axis=1) - self.points[:, end].mean(axis=1)
            length = np.linalg.norm(way, axis=1)
            seen = length[np.isfinite(length)]
            if len(seen):
                longest = max(longest, float(np.quantile(seen, 0.9)))
        return float(np.clip(longest / USUAL_LEG, 0.3, 1.3)) if longest else 1.0

    def _pelvis(self) -> None:
        front = {s: self.marks(s, "asis", "waist_front") for s in SIDES}
        back = {s: self.marks(s, "psis", "waist_back") for s in SIDES}
        across = self._at(front["Left"]) - self._at(front["Right"])
        wide = float(np.linalg.norm(across))
        if all(back.values()):
            across = across + self._at(back["Left"]) - self._at(back["Right"])
        behind = back["Left"] + back["Right"] or self.marks("", "sacrum")
        middle = 0.5 * (self._at(front["Left"]) + self._at(front["Right"]))
        deep_way = middle - self._at(behind)
        axes = _frame(np.cross(deep_way, across), across)
        deep = float(np.linalg.norm(deep_way))
        belt = not self.marks("Left", "asis")
        marks = [*front["Left"], *front["Right"], *behind]
        self.axes["Hips"] = axes
        self.joints["Hips"] = Guess(0.5 * (middle + self._at(behind)), marks, 0.0)
        for side, left in LEFTWARD.items():
            way = np.array(
                [
                    -0.24 * deep - 0.0099 * self.size,
                    left * (0.33 * wide + 0.0073 * self.size),
                    -0.30 * wide - 0.0109 * self.size,
                ]
            )
            self.joints[f"{side}UpperLeg"] = Guess(
                middle + axes @ way, marks, 0.020 if belt else 0.012
            )
        low = self._at(behind) + 0.35 * deep_way + 0.025 * self.size * axes[:, 2]
        self.joints["Chest"] = Guess(low, marks, 0.030)

    def _leg(self, side: str) -> None:
        hip = self.joints[f"{side}UpperLeg"].place
        out = LEFTWARD[side] * self.axes["Hips"][:, 1]
        outer, inner = self.marks(side, "knee_outer"), self.marks(side, "knee_inner")
        end = self.marks(side, "ankle_outer")
        if not outer:
            return
        if inner:
            out = self._at(outer) - self._at(inner)
        elif end:
            out = self._bent(hip, outer, end, out)
        knee = self._between(outer, inner, out, HALF_KNEE, (0.008, 0.012))
        self.joints[f"{side}LowerLeg"] = knee
        left = LEFTWARD[side] * out
        self.axes[f"{side}UpperLeg"] = _frame(hip - knee.place, left)
        if not end:
            return
        inner = self.marks(side, "ankle_inner")
        ankle_out = self._at(end) - self._at(inner) if inner else out
        ankle = self._between(end, inner, ankle_out, HALF_ANKLE, (0.006, 0.010))
        self.joints[f"{side}Foot"] = ankle
        self.axes[f"{side}LowerLeg"] = _frame(knee.place - ankle.place, left)
        self.axes[f"{side}Foot"] = self.axes[f"{side}LowerLeg"]

    def _between(
        self,
        outer: list[int],
        inner: list[int],
        out: Array,
        half: float,
        sds: tuple[float, float],
    ) -> Guess:
        """Return a joint midway between its landmarks, or inward of the outer one."""
        if inner:
            middle = 0.5 * (self._at(outer) + self._at(inner))
            return Guess(middle, [*outer, *inner], sds[0])
        way = half * self.size * out / np.linalg.norm(out)
        return Guess(self._at(outer) - way, outer, sds[1])

    def _bent(self, top: Array, outer: list[int], end: list[int], out: Array) -> Array:
        """Return which way is outward at a joint, square to a bone as bent as can be.

        Only where the two bones make an angle in this very frame; else as it was.
        """
        up, down = top - self._at(outer), self._at(end) - self._at(outer)
        normal = np.cross(up, down)
        size = np.linalg.norm(normal)
        flexed = size > WELL_FLEXED * np.linalg.norm(up) * np.linalg.norm(down)
        if flexed and abs(normal @ out) > 0.7 * size * np.linalg.norm(out):
            return np.asarray(normal * np.sign(normal @ out) / size)
        bone = up / np.linalg.norm(up)
        return np.asarray(out - (out @ bone) * bone)

    def _trunk(self) -> None:
        marks = self.marks
        pelvis = self.axes["Hips"]
        back, front = marks.middle("c7"), marks.middle("sternum")
        ahead = pelvis[:, 0]
        top = self._at(back) if back else self._at(front) - 0.11 * self.size * ahead
        below = self.size * (0.11 * ahead - 0.045 * pelvis[:, 2])
        throat = self._at(front) if front else top + below
        self.throat = throat
        up = 0.5 * (top + throat) - self.joints["Chest"].place
        sides = [marks(side, "acromion") for side in SIDES]
        left = pelvis[:, 1]
        if all(sides):
            left = self._at(sides[0]) - self._at(sides[1])
        axes = _frame(up, left)
        self.axes["Chest"] = axes
        neck = 0.6 * top + 0.4 * throat + 0.040 * self.size * axes[:, 2]
        self.joints["Head"] = Guess(neck, [*back, *front], 0.025)
        self.axes["Head"] = axes

    def _arm(self, side: str) -> None:
        chest, left = self.axes["Chest"], LEFTWARD[side]
        tip, throat = self.marks(side, "acromion"), self.marks.middle("sternum", "c7")
        ahead, across = chest[:, 0], left * chest[:, 1]
        inward = self.throat + self.size * (0.025 * across - 0.010 * ahead)
        self.joints[f"{side}Shoulder"] = Guess(inward, throat, 0.015)
        self.axes[f"{side}Shoulder"] = chest
        drop = self.size * (0.005 * across - 0.050 * chest[:, 2])
        shoulder = Guess(self._at(tip) + drop, tip, 0.020)
        self.joints[f"{side}UpperArm"] = shoulder
        outer, inner = self.marks(side, "elbow_outer"), self.marks(side, "elbow_inner")
        wrist = self.marks(side, "wrist_outer", "wrist_inner")
        if not outer:
            return
        if inner:
            out = self._at(outer) - self._at(inner)
        else:
            out = self._elbow_axis(side, tip, outer, wrist)
        elbow = self._between(outer, inner, out, HALF_ELBOW, (0.008, 0.018))
        self.joints[f"{side}LowerArm"] = elbow
        axes = _frame(shoulder.place - elbow.place, left * out)
        self.axes[f"{side}UpperArm"] = axes
        if wrist:
            self.joints[f"{side}Hand"] = Guess(self._at(wrist), wrist, 0.010)
            axes = _frame(elbow.place - self._at(wrist), left * out)
        self.axes[f"{side}LowerArm"] = self.axes[f"{side}Hand"] = axes

    def _elbow_axis(
        self, side: str, tip: list[int], outer: list[int], wrist: list[int]
    ) -> Array:
        """Return which way is outward at the elbow, by all frames in which it bends.

        The axis square to both bones, carried in the triangle of shoulder, elbow and
        another marker of the arm.
        """
        left = LEFTWARD[side]
        fallback = left * self.axes["Chest"][:, 1]
        arm = self.figure.markers_of(self.figure.index(f"{side}UpperArm"))
        third = [k for k in arm if k not in outer][:1] or wrist[:1]
        if not wrist or not third:
            return fallback
        top, bend = self.points[:, tip].mean(axis=1), self.points[:, outer].mean(axis=1)
        far = self.points[:, wrist].mean(axis=1)
        up, down = _units(top - bend), _units(far - bend)
        normal = left * np.cross(up, down)
        x, beside = up, self.points[:, third].mean(axis=1) - bend
        z = _units(np.cross(x, beside))
        triangle = np.stack([x, np.cross(z, x), z], axis=-1)
        size = np.linalg.norm(normal, axis=1)
        known = np.isfinite(size) & np.isfinite(triangle).all(axis=(1, 2))
        here = _frame_here(self.here, tip, outer, third)
        if known.sum() < 5 or here is None:
            return fallback
        bent = known & (size > FLEXED)
        if bent.sum() <= 5:
            bent = known & (size >= np.quantile(size[known], 0.9))
        mean = np.einsum("fji,fj->i", triangle[bent], normal[bent])
        if np.linalg.norm(mean) == 0.0:
            return fallback
        return np.asarray(here @ mean / np.linalg.norm(mean))


def _frame_here(
    here: Array, tip: list[int], outer: list[int], third: list[int]
) -> Array | None:
    top, bend, beside = (here[k].mean(axis=0) for k in (tip, outer, third))
    x = _units(top - bend)
    z = _units(np.cross(x, beside - bend))
    axes = np.stack([x, np.cross(z, x), z], axis=-1)
    return axes if np.isfinite(axes).all() else None


def _units(v: Array) -> Array:
    size = np.linalg.norm(v, axis=-1, keepdims=True)
    out = np.full_like(v, np.nan)
    np.divide(v, size, out=out, where=size > 1e-9)
    return out


def _frame(up: Array, left: Array) -> Float[Array, "3 3"]:
    """Return axes with z along a bone and y to the left, as columns."""
    z = up / np.linalg.norm(up)
    y = left - (left @ z) * z
    y = y / np.linalg.norm(y)
    return np.stack([np.cross(y, z), y, z], axis=1)
