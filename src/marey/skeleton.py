"""The figure: joints, their offsets, axes and limits, and where the markers sit."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from marey.errors import DataError, OptionError
from marey.numerics import Bool, Float, Int, empty_array, geometry
from marey.take import Take, match_labels

Kind = Literal["root", "ball", "universal", "hinge", "fixed"]

OPTIONAL = ("axes", "limits", "covariance", "length_sd")
PER_JOINT = ("names", "parent", "offset", "kind", "observed", *OPTIONAL)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Skeleton:
    """A tree of joints joined by rigid bones.

    At identity every joint frame is aligned with the world, so the offsets draw the
    rest pose. Fixed joints without children are the ends of bones.
    """

    names: tuple[str, ...]
    """One name per joint, unique; at least the root's."""

    parent: Int[np.ndarray, " joint"]
    """Parent joint, parent[i] < i; -1 for the root, which is joint 0."""

    offset: Float[np.ndarray, "joint 3"]
    """Position in the parent's frame, in metres; for the root, in the world at rest."""

    kind: tuple[Kind, ...] = ()
    """"root" for the first joint and for it alone; "ball", "universal", "hinge" or
    "fixed" for the others; balls when left out."""

    axes: Float[np.ndarray, "joint 2 3"] = empty_array(0, 2, 3)
    """Unit axes in the joint's frame: a hinge rotates about the first, a universal
    joint about the first and then the second; those of a ball are the swing axes x and
    y of `limits`. NaN where unused."""

    limits: Float[np.ndarray, "joint 3 2"] = empty_array(0, 3, 2)
    """Least and greatest swing about x, swing about y and twist about the bone, in
    radians; a hinge uses the first, a universal joint the first two. NaN = free."""

    marker_labels: tuple[str, ...] = ()
    """One label per marker that is attached to a bone."""

    marker_joint: Int[np.ndarray, " marker"] = empty_array(0, dtype=np.int64)
    """The joint whose bone each marker is attached to."""

    marker_offset: Float[np.ndarray, "marker 3"] = empty_array(0, 3)
    """Position of each marker in the frame of its joint, in metres."""

    sensor_names: tuple[str, ...] = ()
    sensor_joint: Int[np.ndarray, " sensor"] = empty_array(0, dtype=np.int64)
    """The joint whose bone each 6-DoF sensor is attached to."""

    T_joint_sensor: Float[np.ndarray, "sensor 4 4"] = empty_array(0, 4, 4)
    """Pose of each sensor in its joint's frame, in metres."""

    covariance: Float[np.ndarray, "joint 3 3"] = empty_array(0, 3, 3)
    """Covariance of each offset, in square metres; NaN where unknown."""

    length_sd: Float[np.ndarray, " joint"] = empty_array(0)
    """Standard deviation of each bone length, in metres; NaN where unknown."""

    observed: Bool[np.ndarray, " joint"] = empty_array(0, dtype=bool)
    """Whether the recording determines each joint; all when left out. The others stand
    where usual people have them, so that the figure is whole; no pose rotates them."""

    def __post_init__(self) -> None:
        n = len(self.names)
        if not self.kind and n:
            object.__setattr__(self, "kind", ("root", *["ball"] * (n - 1)))
        for name in OPTIONAL:
            value = getattr(self, name)
            if value.size == 0:
                object.__setattr__(self, name, np.full((n, *value.shape[1:]), np.nan))
        if self.observed.size == 0:
            object.__setattr__(self, "observed", np.ones(n, dtype=bool))
        self._check_sizes()
        self._check_joints()

    def _check_sizes(self) -> None:
        """Raise an error if arrays differ in their number of joints or markers."""
        joints, markers = max(len(self.names), 1), len(self.marker_labels)
        sensors = len(self.sensor_names)
        sizes = dict.fromkeys(PER_JOINT, joints)
        sizes |= {"marker_joint": markers, "marker_offset": markers}
        sizes |= {"sensor_joint": sensors, "T_joint_sensor": sensors}
        for name, needed in sizes.items():
            found = len(getattr(self, name))
            if found != needed:
                raise DataError(f"skeleton.{name}", found=found, needed=needed)

    def _check_joints(self) -> None:
        """Raise an error if names repeat, or kinds, parents or owners are no joints."""
        n = len(self.names)
        repeated = [name for name, times in Counter(self.names).items() if times > 1]
        if repeated:
            raise DataError(
                "skeleton.names",
                found=f"more than once {', '.join(repeated)}",
                needed="unique names",
            )
        roots = [i for i, kind in enumerate(self.kind) if kind == "root"]
        if not set(self.kind) <= set(get_args(Kind)) or roots != [0]:
            raise DataError(
                "skeleton.kind",
                found=", ".join(self.kind),
                needed="root, then " + ", ".join(get_args(Kind)[1:]),
            )
        has_parent = np.concatenate([self.parent[:1] == -1, self.parent[1:] >= 0])
        if not (has_parent & (self.parent < np.arange(n))).all():
            raise DataError(
                "skeleton.parent",
                found=self.parent.tolist(),
                needed="one root, first, and every parent before its children",
            )
        for name in ("marker_joint", "sensor_joint"):
            joint = getattr(self, name)
            if not ((joint >= 0) & (joint < n)).all():
                raise DataError(
                    f"skeleton.{name}",
                    found=joint.tolist(),
                    needed=f"joints from 0 to {n - 1}",
                )

    def __repr__(self) -> str:
        root, joints = self.names[0], int((~self.is_end).sum())
        counts = f"{len(self.marker_labels)} markers, {len(self.sensor_names)} sensors"
        return f"Skeleton({root}: {joints} joints, {counts})"

    def _repr_html_(self) -> str:
        """Return facts and tables for a notebook."""
        from marey.tables.notebooks import skeleton_to_html

        return skeleton_to_html(self)

    @property
    def n_joints(self) -> int:
        """Number of joints, bone ends included."""
        return len(self.names)

    @property
    def is_end(self) -> Bool[np.ndarray, " joint"]:
        """Which joints are only the ends of bones: fixed and without children."""
        leaf = np.ones(self.n_joints, dtype=bool)
        leaf[self.parent[1:]] = False
        fixed = np.array([kind == "fixed" for kind in self.kind], dtype=bool)
        return np.asarray(leaf & fixed)

    @property
    def rotates(self) -> Bool[np.ndarray, " joint"]:
        """Which joints a pose rotates: those that are observed and not fixed."""
        fixed = np.array([kind == "fixed" for kind in self.kind], dtype=bool)
        return np.asarray(self.observed & ~fixed)

    @property
    def lengths(self) -> Float[np.ndarray, " joint"]:
        """Length of the bone from each joint's parent to it, in metres; root: 0."""
        lengths = np.asarray(np.linalg.norm(self.offset, axis=-1))
        lengths[:1] = 0.0
        return lengths

    @property
    def subject(self) -> str:
        """Subject that all marker labels name; "" if they differ or name none."""
        named = {label.rpartition(":")[0] for label in self.marker_labels}
        return named.pop() if len(named) == 1 else ""

    def index(self, name: str) -> int:
        """Return the number of the joint of this name.

        Raises:
            DataError: If there is none.
        """
        if name not in self.names:
            raise DataError(
                "joint", found=repr(name), needed=f"one of {', '.join(self.names)}"
            )
        return self.names.index(name)

    def rename(self, names: Mapping[str, str], option: str = "names") -> "Skeleton":
        """Return the skeleton with other names of some joints.

        Args:
            names: New name of each renamed joint, by its old name.
            option: What gives the names, for the error.

        Raises:
            OptionError: If two joints would have one name.
        """
        renamed = tuple(names.get(name, name) for name in self.names)
        repeated = [name for name, count in Counter(renamed).items() if count > 1]
        if repeated:
            found = f"{repeated[0]}, which another joint has"
            raise OptionError(option, found=found, needed="a name of its own")
        return replace(self, names=renamed)

    def joint_of(self, body: str) -> str:
        """Return the name of the joint of a body.

        It is the name of the body, without the subject's name if joints have none.
        """
        return body if body in self.names else body.rpartition(":")[2]

    def rest(self) -> Float[np.ndarray, "joint 4 4"]:
        """Return T_world_joint of the rest pose."""
        identity = np.broadcast_to([1.0, 0.0, 0.0, 0.0], (1, self.n_joints, 4))
        T_world_root = geometry.transform(np.eye(3), self.offset[:1])
        return np.asarray(self.forward(T_world_root, identity)[0])

    def forward(
        self,
        T_world_root: Float[np.ndarray, "frame 4 4"],
        wxyz: Float[np.ndarray, "frame joint 4"],
    ) -> Float[np.ndarray, "frame joint 4 4"]:
        """Return T_world_joint by forward kinematics from root to leaves.

        The pose of each joint follows from that of its parent (OBrien2000, Eqs. 4-5).

        Args:
            T_world_root: Pose of the root joint, in metres.
            wxyz: R_parent_joint of every joint; the root's is not read.
        """
        from marey.numerics.vector3_kernel import place_joints  # numba is slow

        T = np.empty((*wxyz.shape[:2], 4, 4))
        place_joints(
            self.parent.astype(np.int64),
            np.ascontiguousarray(self.offset, float),
            np.ascontiguousarray(T_world_root, float),
            np.ascontiguousarray(wxyz, float),
            T,
        )
        return T


def rotating_joints(skeleton: Skeleton) -> Int[np.ndarray, " joint"]:
    """Return the joint that rotates each joint: itself, or a parent that rotates."""
    rotating = np.arange(skeleton.n_joints)
    for joint in np.flatnonzero(~skeleton.rotates).tolist():
        rotating[joint] = rotating[skeleton.parent[joint]]
    return rotating


def marker_columns(skeleton: Skeleton, take: Take) -> Int[np.ndarray, " marker"]:
    """Return the index of each of a skeleton's markers in a take, by its label.

    See `marey.take.match_labels`; -1 where the take has no such marker.

    Raises:
        DataError: If a label matches several markers, or several labels match one.
    """
    return match_labels(skeleton.marker_labels, take.full_labels, take.labels)


def bone_length_sd(
    offset: Float[np.ndarray, "joint 3"], covariance: Float[np.ndarray, "joint 3 3"]
) -> Float[np.ndarray, " joint"]:
    r"""Return the standard deviation of each bone's length, in metres; NaN without one.

    .. math:: \sigma = \sqrt{d^T C d} / |d|
    """
    length = np.linalg.norm(offset, axis=-1)
    variance = np.einsum("ji,jik,jk->j", offset, covariance, offset)
    return np.asarray(
        np.sqrt(np.maximum(variance, 0.0)) / np.where(length > 0.0, length, np.nan)
    )
