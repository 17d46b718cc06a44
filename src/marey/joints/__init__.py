"""Joint centres and axes between pairs of rigid bodies.

Every method takes the same bodies and returns the same `JointFits`. A new method is one
module with a function `fit(takes, **options)` and one line in `REGISTRY`.
"""

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from marey.anatomy.joint_names import joint_name_and_exercise as joint_name_and_exercise
from marey.bodies import Bodies
from marey.errors import DataError, check_choice
from marey.joint_fits import JointFits as JointFits
from marey.joints.distance import joint_costs as joint_costs
from marey.joints.findings import find_differing_takes as find_differing_takes
from marey.joints.findings import joint_findings as joint_findings
from marey.joints.hierarchy.estimate import estimate_hierarchy as estimate_hierarchy
from marey.joints.keypoint_joints import set_keypoint_joints
from marey.joints.marker_looseness import measure_looseness
from marey.joints.residuals import Homogeneity as Homogeneity
from marey.joints.residuals import RigidPair as RigidPair
from marey.joints.residuals import homogeneity as homogeneity
from marey.joints.residuals import joint_residuals as joint_residuals
from marey.joints.residuals import rigid_pair as rigid_pair
from marey.joints.sphere.fit import SphereAccumulator as SphereAccumulator
from marey.joints.sphere.fit import SphereEstimator as SphereEstimator
from marey.joints.sphere.fit import SphereKind as SphereKind
from marey.joints.sphere.fit import fit_sphere as fit_sphere
from marey.joints.stacked_takes import with_common_markers as with_common_markers
from marey.joints.temporary import find_temporary_joints as find_temporary_joints
from marey.joints.underdetermined import (
    pose_underdetermined_bodies as pose_underdetermined_bodies,
)
from marey.kernels import one_blas_thread

REGISTRY = {
    "ball": "marey.joints.ball.fit",
    "gdke": "marey.joints.sphere.gdke",
    "distance": "marey.joints.distance",
}
"""Module of each method by its name."""


@one_blas_thread()
def fit_joints(
    bodies: Bodies | Sequence[Bodies], *, method: str = "ball", **options: Any
) -> JointFits:
    """Return a candidate joint for every pair of bodies.

    Args:
        bodies: The moving bodies; several takes of the same bodies are one fit.
        method: "ball" (OBrien2000, made robust and unbiased), "gdke" (Knight2007) or
            "distance" (DeAguiar2006).
        **options: Fields of the method's options.

    Raises:
        DataError: If there are fewer than two bodies, or takes of different bodies.
        OptionError: If the method or an option is not known.
    """
    takes = (bodies,) if isinstance(bodies, Bodies) else tuple(bodies)
    check_choice("method", method, REGISTRY)
    count = len(takes[0].names) if takes else 0
    if count < 2:
        raise DataError("joints", found=f"{count} bodies", needed="at least 2")
    for take in takes:
        if take.names != takes[0].names:
            needed = f"bodies {takes[0].names}"
            raise DataError("joints", found=take.names, needed=needed)
    takes = with_common_markers(takes)
    fits: JointFits = import_module(REGISTRY[method]).fit(takes, **options)
    if not takes[0].shared.any():
        return fits
    if takes[0].keypoints:
        fits = set_keypoint_joints(takes, fits)
    looseness, spacing = measure_looseness(takes, fits.pair)
    return replace(fits, looseness=looseness, marker_spacing=spacing)
