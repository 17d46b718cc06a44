"""What a motion needs before it is written as coordinates of rigid bodies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from marey.articulated.tables import make_nodes
from marey.io.multibody.coordinates import RotationSequence, has_axes
from marey.io.options import WriteOptions
from marey.io.text.numbers import format_csv
from marey.io.text.rotations import MAX_ANGLE_ERROR_RAD, hold_last_pose
from marey.io.text.timing import check_even_rate
from marey.motion import Motion
from marey.numerics import Array, Float, geometry
from marey.report import mark_name
from marey.skeleton import Kind, Skeleton


@dataclass(frozen=True, slots=True, eq=False)
class HeldMotion:
    """A motion without gaps, whose joints rotate as their kinds say."""

    skeleton: Skeleton
    root: Float[Array, "frame 3"]
    """Position of the root in metres."""

    wxyz: Float[Array, "frame joint 4"]
    """R_parent_joint; that of the root in the world."""

    times: Float[Array, " frame"]
    """In seconds."""

    def angles(
        self, sequence: RotationSequence, joint: int, options: WriteOptions
    ) -> tuple[Float[Array, "frame angle"], Float[Array, "angle 2"]]:
        """Return the angles of a joint about its axes, and their ranges, in radians.

        A range has the least and the greatest angle within the limits and in the
        motion; NaN = free. A program that keeps to the limits of a file could not play
        a motion that leaves them. Limits that are widened, or that no ranges of angles
        can hold, are reported.

        Args:
            sequence: The axes.
            joint: The joint.
            options: Collects the findings.
        """
        angles = sequence.angles(self.wxyz[:, joint])
        ranges = sequence.ranges(self.skeleton, joint)
        name, limits = self.skeleton.names[joint], self.skeleton.limits[joint]
        if np.isfinite(limits).any() and not np.isfinite(ranges).any():
            options.note(
                "limits-lost",
                f"no ranges of angles hold the limits of {mark_name(name)}: "
                "written free",
                severity="info",
                subject=name,
            )
        if not len(angles):
            return angles, ranges
        # A NaN, which is no limit, stays one.
        low = np.minimum(ranges[:, 0], angles.min(axis=0))
        high = np.maximum(ranges[:, 1], angles.max(axis=0))
        wide = np.stack([low, high], axis=-1)
        excess = np.max(np.abs(wide - ranges), initial=0.0, where=np.isfinite(wide))
        if excess > MAX_ANGLE_ERROR_RAD:
            options.note(
                "limits-widened",
                f"the motion leaves the limits of {mark_name(name)} by "
                f"{np.rad2deg(excess):.2g} degrees: the file has wider ones",
                subject=name,
                value=float(excess),
            )
        return angles, wide

    def format_csv(
        self, columns: Sequence[str], values: Float[Array, "frame column"]
    ) -> Iterator[bytes]:
        """Return a table of the times and of coordinates."""
        formats = ["%.9f", *["%.12g"] * len(columns)]
        rows = np.column_stack([self.times, values])
        return format_csv(["time", *columns], rows, formats)


def hold_motion(motion: Motion, options: WriteOptions) -> HeldMotion:
    """Return a motion in which gaps hold the last known pose.

    A joint whose rotations leave its kind becomes a ball joint; this is reported.

    Args:
        motion: The motion.
        options: Collects the finding.

    Raises:
        DataError: If the frames are not evenly spaced.
    """
    rate = check_even_rate(motion)
    root, wxyz = hold_last_pose(motion)
    skeleton = _as_written(motion.skeleton)
    nodes = make_nodes(skeleton, limits=False)
    kept = nodes.joint_rotations(nodes.node_rotations(wxyz))
    left = geometry.quat_multiply(geometry.quat_conjugate(kept), wxyz)
    error = 2.0 * np.abs(left[..., 1:]).max(axis=(0, 2), initial=0.0)
    free = error > MAX_ANGLE_ERROR_RAD
    kind: tuple[Kind, ...] = tuple(
        "ball" if is_free else k for k, is_free in zip(skeleton.kind, free, strict=True)
    )
    kind = ("root", *kind[1:])
    changed = [
        name
        for name, old, new in zip(
            skeleton.names, motion.skeleton.kind, kind, strict=True
        )
        if old != new
    ]
    if changed:
        options.note(
            "kinds-lost",
            f"{', '.join(changed)} rotate about other axes than their kind has: "
            "written as ball joints",
            value=len(changed),
        )
    times = motion.start + np.arange(motion.n_frames) / rate
    return HeldMotion(replace(skeleton, kind=kind), root, wxyz, times)


def hold_rest(skeleton: Skeleton) -> HeldMotion:
    """Return a skeleton as a motion without frames."""
    wxyz = np.zeros((0, skeleton.n_joints, 4))
    return HeldMotion(_as_written(skeleton), np.zeros((0, 3)), wxyz, np.zeros(0))


def _as_written(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton with balls in place of hinges that have no axes.

    Joints that nothing observes, as added toes, are bodies too if they may rotate.
    """
    kind: list[Kind] = [
        "ball" if kind in ("hinge", "universal") and not has_axes(skeleton, j) else kind
        for j, kind in enumerate(skeleton.kind)
    ]
    every = np.ones(skeleton.n_joints, dtype=bool)
    return replace(skeleton, kind=tuple(kind), observed=every)
