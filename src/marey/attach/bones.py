"""Bones of a given skeleton: compared with those of a recording, and scaled."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from marey.anatomy import names as vrm
from marey.attach.match import JointMatch, path_between
from marey.numerics import Array, Bool, Float
from marey.numerics.robust import chi_squared_survival
from marey.numerics.thresholds import FEW, MOST, OUTLIER_SD, SKIN_MOTION_M
from marey.skeleton import Skeleton

LENGTH_TOLERANCE = 0.01
"""Usual difference between two skeletons of one subject, of a bone and of all together,
as a share of the length: joints are not points. Higher accepts skeletons of other
sizes. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class BoneComparison:
    """Lengths of corresponding bones of a given skeleton and of a recording."""

    names: tuple[str, ...]
    """Names of both ends of each bone in the given skeleton, "lfemur-ltibia"."""

    given_m: Float[Array, " bone"]
    """Length in the given skeleton, in metres."""

    found_m: Float[Array, " bone"]
    """Length that the recording shows, in metres."""

    sd_m: Float[Array, " bone"]
    """Standard deviation of the difference, in metres."""

    alike: Bool[Array, " bone"]
    """Whether both lengths were estimated alike, as their standard deviations show: the
    difference of this single bone counts. A person who stands still has the bones of
    the priors, and a difference from those that motion shows is no evidence."""

    parts: tuple[str, ...]
    """What each bone is, of people the same for left and right: priors make the same
    error on both sides."""

    paths: tuple[tuple[int, ...], ...]
    """Joints of the given skeleton whose offsets make up each bone."""

    def select(self, kept: Bool[Array, " bone"]) -> "BoneComparison":
        """Return some of the bones."""
        rows = np.flatnonzero(kept).tolist()
        return BoneComparison(
            names=tuple(self.names[bone] for bone in rows),
            given_m=self.given_m[rows],
            found_m=self.found_m[rows],
            sd_m=self.sd_m[rows],
            alike=self.alike[rows],
            parts=tuple(self.parts[bone] for bone in rows),
            paths=tuple(self.paths[bone] for bone in rows),
        )

    @property
    def scale(self) -> float:
        r"""Scale of the given skeleton that fits the recording best.

        .. math:: s = \frac{\sum l_g\, l_f / \sigma^2}{\sum l_g^2 / \sigma^2}
        """
        weight = self.given_m / self.sd_m**2
        total = float(weight @ self.given_m)
        return float(weight @ self.found_m) / total if total else 1.0

    @property
    def scale_sd(self) -> float:
        """Standard deviation of the scale; infinite if there are no bones."""
        information = float(np.sum((self.given_m / self.sd_m) ** 2))
        return information**-0.5 if information else np.inf

    @property
    def is_other_size(self) -> bool:
        """Whether the size differs by more than the lengths are uncertain."""
        sd = np.hypot(self.scale_sd, LENGTH_TOLERANCE)
        return bool(abs(self.scale - 1.0) > OUTLIER_SD * sd)

    @property
    def is_other_subject(self) -> bool:
        r"""Whether the bones cannot be those of one subject.

        The size differs, or, of two skeletons that were estimated alike, the sum of
        squared deviations is an outlier of its chi-squared distribution.
        """
        if self.is_other_size or not self.alike.any():
            return self.is_other_size
        deviations = (self.found_m - self.given_m) / self.sd_m
        of_part: dict[str, list[float]] = {}
        for bone in np.flatnonzero(self.alike).tolist():
            of_part.setdefault(self.parts[bone], []).append(deviations[bone])
        deviation = np.array([np.mean(both) for both in of_part.values()])
        square = float(deviation @ deviation)
        chance = chi_squared_survival(square, len(deviation))
        return chance < math.erfc(OUTLIER_SD / math.sqrt(2.0))


def compare_bones(
    given: Skeleton, free: Skeleton, matches: Sequence[JointMatch]
) -> BoneComparison:
    """Return the lengths of the bones between joints whose places correspond.

    These are the long bones of arms and legs of a person, and all bones of other
    subjects. Standard deviations are those of both skeletons, where they are known.
    """
    matched = {match.free: match for match in matches if match.weight == 1.0}
    bones = tuple(_bones(free, matched))
    starts, ends = ([bone[k] for bone in bones] for k in (0, 1))
    rest_given, rest_free = (s.rest()[:, :3, 3] for s in (given, free))
    given_m, found_m = (
        np.linalg.norm(rest[list(b)] - rest[list(a)], axis=-1)
        for rest, a, b in (
            (rest_given, [m.joint for m in starts], [m.joint for m in ends]),
            (rest_free, [m.free for m in starts], [m.free for m in ends]),
        )
    )
    paths = tuple(
        tuple(path_between(given, start.joint, end.joint)[1:]) for start, end in bones
    )
    given_variance = np.array([np.nansum(given.length_sd[list(p)] ** 2) for p in paths])
    found_sd = free.length_sd[[end.free for end in ends]]
    found_variance = np.nan_to_num(found_sd) ** 2
    smaller = np.minimum(given_variance, found_variance)
    alike, common, parts = smaller > 0.0, 0.0, [free.names[end.free] for end in ends]
    if vrm.is_person(free.names):
        alike &= smaller >= FEW * np.maximum(given_variance, found_variance)
        common, parts = MOST, [vrm.without_side(part) for part in parts]
    # The same priors make the same errors, most of what is least certain in both.
    variance = given_variance + found_variance - 2.0 * common * smaller
    variance = np.where(variance > 0.0, variance, SKIN_MOTION_M**2)
    return BoneComparison(
        names=tuple(
            f"{given.names[start.joint]}-{given.names[end.joint]}"
            for start, end in bones
        ),
        given_m=given_m,
        found_m=found_m,
        sd_m=np.sqrt(variance + (LENGTH_TOLERANCE * given_m) ** 2),
        alike=alike,
        parts=tuple(parts),
        paths=paths,
    )


def _bones(
    free: Skeleton, matched: Mapping[int, JointMatch]
) -> Iterator[tuple[JointMatch, JointMatch]]:
    """Yield the matches of both ends of each bone."""
    for joint, match in matched.items():
        above = int(free.parent[joint])
        while above >= 0 and above not in matched and free.kind[above] == "fixed":
            above = int(free.parent[above])
        if above in matched:
            yield matched[above], match


def scale_skeleton(skeleton: Skeleton, scale: float) -> Skeleton:
    """Return a skeleton with bones `scale` times as long, without its markers."""
    return replace(strip(skeleton), offset=scale * skeleton.offset)


def strip(skeleton: Skeleton) -> Skeleton:
    """Return the joints of a skeleton without the markers and sensors on it."""
    return replace(
        skeleton,
        marker_labels=(),
        marker_joint=skeleton.marker_joint[:0],
        marker_offset=skeleton.marker_offset[:0],
        sensor_names=(),
        sensor_joint=skeleton.sensor_joint[:0],
        T_joint_sensor=skeleton.T_joint_sensor[:0],
    )
