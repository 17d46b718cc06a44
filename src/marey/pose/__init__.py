"""The motion of a known skeleton in a recording.

Every method takes the same skeleton and take and returns a `Motion` and what was found
about it. A new method is one file in this folder with a function `solve`, and one line
below.
"""

from importlib import import_module
from typing import Any

from marey.errors import OptionError
from marey.motion import Motion
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take

REGISTRY = {
    "gauss_newton": "marey.pose.gauss_newton",
    "playback": "marey.pose.playback",
}


def solve_pose(
    skeleton: Skeleton, take: Take, *, method: str = "playback", **options: Any
) -> Motion:
    """Return the motion of a skeleton that a recording shows.

    Args:
        skeleton: A skeleton that knows where the recording's markers or sensors sit on
            it.
        take: The recording.
        method: "gauss_newton": the motion that brings all markers and sensors nearest
            to where they were seen, within the joints' limits; "playback" (OBrien2000,
            Sec. 3.4): the sensors' rotations, played through the skeleton.
        **options: Fields of the method's options.

    Raises:
        OptionError: If the method or an option is not known.
        DataError: If the recording holds none of the skeleton's markers or sensors.
    """
    return fit_pose(skeleton, take, method=method, **options)[0]


def fit_pose(
    skeleton: Skeleton, take: Take, *, method: str = "playback", **options: Any
) -> tuple[Motion, tuple[Finding, ...]]:
    """Return the motion as `solve_pose` does, and what was found about it.

    Findings name frames in which nothing was seen, joints out of sight, and markers
    that do not keep their place.
    """
    if method not in REGISTRY:
        raise OptionError(
            "method", found=method, needed=f"one of {', '.join(REGISTRY)}"
        )
    found: tuple[Motion, tuple[Finding, ...]] = import_module(REGISTRY[method]).solve(
        skeleton, take, **options
    )
    return found
