"""Bones aimed at the joint of another limb, with or without a hint of their twist."""

import numpy as np

from marey.anatomy.limb_roll import MIN_BEND_SINE
from marey.numerics import Array, Float, geometry
from marey.numerics.procrustes import shortest_rotations
from marey.skeleton import Skeleton
from marey.virtual.limbs import VirtualLimb, bend_axis

Vector = Float[Array, " 3"]
Matrix = Float[Array, "3 3"]


def unit(v: Vector) -> Vector:
    """Return the direction of a vector; NaN for the zero vector."""
    length = float(np.sqrt(v @ v))
    return v / length if length > 0.0 else np.full(3, np.nan)


def swing_to(R: Matrix, bone: Vector, direction: Vector) -> Matrix:
    """Return R after the shortest rotation that points a bone along a direction."""
    swing = shortest_rotations(unit(R @ bone), direction)
    swung = geometry.matrix_from_quat(swing) @ R
    # A Newton step to the nearest rotation: rounding would add up over frames.
    return np.asarray(swung + 0.5 * (swung - swung @ swung.T @ swung))


def twist_to_up_vector(
    R: Matrix, direction: Vector, side: Vector, up: Vector, size: float
) -> Matrix:
    """Return R after a rotation about a direction that points a side to an up point.

    The up vector constraint of Bodenheimer1997, Sec. 2.1.2. Near the line of the limb
    the up point determines the twist poorly: its share is then the squared sine of the
    angle between them (`MIN_BEND_SINE`), and the rest of the twist stays.

    Args:
        R: The limb's expected rotation, its bone along `direction`.
        direction: Direction of the bone, a unit vector.
        side: The side, in the limb's frame, perpendicular to the bone.
        up: From the end of the limb to its up point, in metres.
        size: Length that `up` has at rest, in metres.
    """
    across = up - (up @ direction) * direction
    sine = float(np.sqrt(across @ across)) / size
    facing = R @ side
    angle = np.arctan2(across @ np.cross(direction, facing), facing @ across)
    share = min(1.0, (sine / MIN_BEND_SINE) ** 2)
    return np.asarray(geometry.rotation_exp(share * angle * direction) @ R)


class AimedBone:
    """A limb that points from its joint to that of another limb."""

    def __init__(self, skeleton: Skeleton, joint: int, limb: VirtualLimb) -> None:
        rest = skeleton.rest()[:, :3, 3]
        self.joint = joint
        self.aim_joint = skeleton.index(limb.aim_joint)
        self.anchored_at_end = limb.anchored_at_end
        self.offset = rest[self.aim_joint] - rest[joint]
        self.bone = unit(self.offset)
        self.length = float(np.linalg.norm(self.offset))
        self.side = unit(-np.cross(bend_axis(skeleton, self.aim_joint), self.bone))
        self.up = limb.up_offset * self.side - _bone_direction(skeleton, self.aim_joint)
        self.up_length = float(np.linalg.norm(self.up))
        # The aimed limb may have no bend axis, or no bone of its own.
        self.has_up_vector = bool(np.isfinite([self.side, self.up]).all())

    def pose(
        self, R: Matrix, start: Vector, measured: dict[int, Array]
    ) -> tuple[Matrix, Vector]:
        """Return rotation and position of the limb.

        Args:
            R: Its rotation if it keeps that in its parent.
            start: Position of its joint by its parent.
            measured: Poses of joints by their sensors, of those that are seen.
        """
        T, T_aim = measured.get(self.joint), measured.get(self.aim_joint)
        if T is not None:
            R = T[:3, :3]
        if T_aim is not None:
            end = T_aim[:3, 3]
        elif T is not None:
            end = T[:3, :3] @ self.offset + T[:3, 3]
        else:
            return R, start
        direction = unit(end - start)
        if np.isnan(direction[0]) or np.isnan(self.bone[0]):
            return R, start
        R = swing_to(R, self.bone, direction)
        if T is None and T_aim is not None and self.has_up_vector:
            up = T_aim[:3, :3] @ self.up
            R = twist_to_up_vector(R, direction, self.side, up, self.up_length)
        return R, end - self.length * direction if self.anchored_at_end else start


def _bone_direction(skeleton: Skeleton, joint: int) -> Vector:
    """Return the direction of a joint's bone at rest: to its farthest child."""
    offset = skeleton.offset[skeleton.parent == joint]
    if not len(offset):
        return np.full(3, np.nan)
    return unit(offset[np.linalg.norm(offset, axis=1).argmax()])
