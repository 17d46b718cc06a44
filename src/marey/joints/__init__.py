"""Joint centres and axes between pairs of rigid bodies.

Every method takes the same bodies and returns the same `JointFits`. A new method is one
file in this folder with a function `fit`, and one line below.
"""

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from marey.anatomy.joint_names import spoken as spoken
from marey.bodies import Bodies
from marey.errors import DataError, OptionError
from marey.joint_fits import JointFits as JointFits
from marey.joints.common_markers import levelled as levelled
from marey.joints.findings import differing_takes as differing_takes
from marey.joints.findings import findings as findings
from marey.joints.keypoint_joints import pinned
from marey.joints.marker_looseness import slack_of
from marey.joints.residuals import Homogeneity as Homogeneity
from marey.joints.residuals import RigidPair as RigidPair
from marey.joints.residuals import homogeneity as homogeneity
from marey.joints.residuals import residuals as residuals
from marey.joints.residuals import rigid_pair as rigid_pair
from marey.joints.temporary.fit import find_links as find_links
from marey.joints.underdetermined import firmed as firmed

REGISTRY = {
    "ball": "marey.joints.ball.fit",
    "gdke": "marey.joints.sphere.gdke",
    "distance": "marey.joints.distance.fit",
}


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
    if method not in REGISTRY:
        raise OptionError(
            "method", found=method, needed=f"one of {', '.join(REGISTRY)}"
        )
    if not takes or len(takes[0].names) < 2:
        count = len(takes[0].names) if takes else 0
        raise DataError("joints", found=f"{count} bodies", needed="at least 2")
    odd = [take.names for take in takes if take.names != takes[0].names]
    if odd:
        raise DataError("joints", found=odd[0], needed=f"bodies {takes[0].names}")
    takes = levelled(takes)
    fits: JointFits = import_module(REGISTRY[method]).fit(takes, **options)
    if not takes[0].shared.any():
        return fits
    if takes[0].keypoints:
        fits = pinned(takes, fits)
    slack, gap = slack_of(takes, fits.pair)
    return replace(fits, looseness=slack, marker_spacing=gap)
