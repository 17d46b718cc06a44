"""The motion of a known skeleton in a recording.

Every method takes the same skeleton and take and returns a `Motion`. A new method is
one file in this folder with a function `solve`, and one line below.
"""

from importlib import import_module
from typing import Any

from marey.errors import OptionError
from marey.motion import Motion
from marey.skeleton import Skeleton
from marey.take import Take

REGISTRY = {"playback": "marey.pose.playback"}


def solve_pose(
    skeleton: Skeleton, take: Take, *, method: str = "playback", **options: Any
) -> Motion:
    """Return the motion of a skeleton that a recording shows.

    Args:
        skeleton: A skeleton that knows where the recording's sensors sit on it.
        take: The recording.
        method: "playback" (OBrien2000, Sec. 3.4): the sensors' rotations, played
            through the skeleton.
        **options: Fields of the method's options.

    Raises:
        OptionError: If the method or an option is not known.
        DataError: If the recording holds none of the skeleton's sensors.
    """
    if method not in REGISTRY:
        raise OptionError(
            "method", found=method, needed=f"one of {', '.join(REGISTRY)}"
        )
    motion: Motion = import_module(REGISTRY[method]).solve(skeleton, take, **options)
    return motion
