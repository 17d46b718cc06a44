"""What still needs to move: how far each joint is determined, and what would help."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.joint_names import joint_name_and_exercise
from marey.anatomy.name_schemes import recognise_joints
from marey.anatomy.whole_person import observed_part
from marey.calibration.findings import MAX_JOINT_SD_M
from marey.numerics import Array, Float
from marey.skeleton import Skeleton

JointState = Literal["unknown", "hinge seen", "ready"]

NEXT_OUTWARD = dict(pairwise(vrm.ARM[1:])) | dict(pairwise(vrm.LEG[:3]))
"""The next part outward along a person's limbs."""


@dataclass(frozen=True, slots=True)
class JointReadiness:
    """How far a joint is determined."""

    joint: str
    """Name of the joint in the skeleton; that of the missing part if it is not there
    yet."""

    state: JointState
    """"unknown"; "hinge seen": its centre is known except along one axis;
    "ready": its centre is known, to `MAX_JOINT_SD_M` along every axis."""

    fraction: float
    """Share of the information that it needs, 0 to 1."""

    advice: str
    """What to do, in plain words; "" if nothing."""


def assess_joints(skeleton: Skeleton) -> tuple[JointReadiness, ...]:
    r"""Return how far each moving joint of a skeleton is determined.

    The standard deviations :math:`\sigma_k` of a centre along the three axes of its
    covariance are compared with :math:`s`, `MAX_JOINT_SD_M`, beyond which calibration
    reports a joint: soft tissue keeps those of people from getting much smaller. The
    centre of a hinge is arbitrary along its axis. Parts of a person whose joint never
    moved are not in the skeleton; they are named by anatomy.

    .. math:: f = \frac{1}{3} \sum_k \min(1, s^2 / \sigma_k^2)

    Args:
        skeleton: With the covariance of its offsets.
    """
    observed = observed_part(skeleton)
    return (*_joints_there(observed), *_joints_missing(observed))


def assess_fit(
    joints: tuple[JointReadiness, ...],
    skeleton: Skeleton,
    residual_scale_m: Float[Array, " joint"],
) -> tuple[JointReadiness, ...]:
    """Return the states of joints with those that do not fit now as "unknown".

    A joint does not fit while the residual of the markers next beyond it is larger
    than the standard deviation of a centre that is "ready". Its covariance knows only
    the frames it was estimated from, in which the part may not have moved.

    Args:
        joints: States by covariance.
        skeleton: The skeleton they belong to.
        residual_scale_m: Usual residual of the markers on each joint's bone, along one
            axis, in metres.
    """
    misfit = _misfit_beyond(skeleton, residual_scale_m)
    does_fit = dict(zip(skeleton.names, misfit <= MAX_JOINT_SD_M, strict=True))
    parent_of = {
        name: skeleton.names[parent]
        for name, parent in zip(skeleton.names, skeleton.parent, strict=True)
    }
    return tuple(
        joint
        if does_fit.get(joint.joint, True)
        else replace(
            joint,
            state="unknown",
            fraction=0.0,
            advice=_advice(joint.joint, parent_of[joint.joint], "unknown"),
        )
        for joint in joints
    )


def _misfit_beyond(
    skeleton: Skeleton, residual_scale_m: Float[Array, " joint"]
) -> Float[Array, " joint"]:
    """Return the residual of the nearest markers on a joint's bone or beyond, in m."""
    misfit = np.array(residual_scale_m, dtype=float)
    is_bare = ~np.isin(np.arange(skeleton.n_joints), skeleton.marker_joint)
    misfit[is_bare] = 0.0
    for joint in range(skeleton.n_joints - 1, 0, -1):
        parent = skeleton.parent[joint]
        if is_bare[parent]:
            misfit[parent] = max(misfit[parent], misfit[joint])
    return misfit


def _joints_there(skeleton: Skeleton) -> Iterator[JointReadiness]:
    anatomical = recognise_joints(skeleton.names)
    for joint, kind in enumerate(skeleton.kind):
        if kind in ("root", "fixed"):
            continue
        sd = _center_sds(skeleton.covariance[joint])
        if kind == "hinge":
            sd[-1] = np.inf
        known = np.minimum(1.0, (MAX_JOINT_SD_M / np.maximum(sd, 1e-12)) ** 2)
        n_known = int((known >= 1.0).sum())
        state: JointState = ("unknown", "unknown", "hinge seen", "ready")[n_known]
        name, parent = skeleton.names[joint], int(skeleton.parent[joint])
        parent_name = anatomical.get(parent, skeleton.names[parent])
        advice = _advice(anatomical.get(joint, name), parent_name, state)
        yield JointReadiness(name, state, float(known.mean()), advice)


def _center_sds(covariance: Float[Array, "3 3"]) -> Float[Array, " 3"]:
    """Return the standard deviations of a centre, ascending; infinite if not known."""
    if not np.isfinite(covariance).all():
        return np.full(3, np.inf)
    return np.asarray(np.sqrt(np.maximum(np.linalg.eigvalsh(covariance), 0.0)))


def _advice(name: str, parent: str, state: JointState) -> str:
    if state == "ready":
        return ""
    known = joint_name_and_exercise(parent, name)
    if known is None:
        if state == "unknown":
            return f"move {name} against {parent}"
        return f"turn {name} about another axis, if it can"
    if state == "unknown":
        return f"{known[0]}: {known[1]}"
    return f"{known[0]}: turn the {_everyday(name)} about itself too"


def _everyday(name: str) -> str:
    """Return the name of a person's part in words: "left lower arm"."""
    bare = vrm.without_subject(name)
    part = vrm.without_side(bare)
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in part)
    return f"{vrm.side_of(bare).lower()}{words}".strip()


def _joints_missing(skeleton: Skeleton) -> Iterator[JointReadiness]:
    leaves = set(range(skeleton.n_joints)) - set(skeleton.parent[~skeleton.is_end])
    for joint in sorted(leaves - set(np.flatnonzero(skeleton.is_end).tolist())):
        missing = missing_part(skeleton.names[joint])
        if missing is not None:
            part, name, exercise = missing
            yield JointReadiness(part, "unknown", 0.0, f"{name}: {exercise}")


def missing_part(last: str) -> tuple[str, str, str] | None:
    """Return the next part of a limb that ends early, its joint and an exercise.

    Args:
        last: Name of the last part of a limb; None if a limb may end there.
    """
    bare = vrm.without_subject(last)
    part = vrm.side_of(bare) + NEXT_OUTWARD.get(vrm.without_side(bare), "")
    joint = joint_name_and_exercise(bare, part)
    return None if joint is None else (part, *joint)
