"""Exact values of one marker or joint at every recorded frame."""

import numpy as np

from marey.errors import OptionError
from marey.io.formats.html import Arrays, figures_of, gaps_of, strays
from marey.motion import Motion
from marey.numerics import geometry
from marey.solution import Solution
from marey.take import Take


def series_of(
    thing: Solution | Motion | Take,
    *,
    take: int,
    marker: int | None = None,
    subject: int | None = None,
    joint: int | None = None,
) -> bytes:
    """Return a blob of a marker's or a joint's values, in single precision.

    Of a marker: `points` in metres and `residual`, its distance from its place on the
    figure. Of a joint: `points`, its centre; `angles` in degrees, ZXY and unwrapped;
    and `gap`, how far its two bodies have it apart. NaN where a value is not known.

    Args:
        thing: What is shown.
        take: Number of the take.
        marker: Number of a marker in it.
        subject: Number of a subject, with `joint`.
        joint: Number of one of its joints.

    Raises:
        OptionError: If there is no such take, marker or joint.
    """
    takes = thing.takes if isinstance(thing, Solution) else (thing,)
    arrays = Arrays()
    one = takes[_number("take", take, len(takes))]
    if marker is not None and isinstance(one, Take):
        column = _number("marker", marker, len(one.labels))
        motions: list[Motion] = []
        if isinstance(thing, Solution):
            motions = [subject.motions[take] for subject in thing.subjects]
        arrays.floats("points", one.points[:, column])
        arrays.floats("residual", strays(one, motions)[:, column])
    else:
        _joint(arrays, thing, take, subject, joint)
    return arrays.blob({"take": take, "first": 0})


def _joint(
    arrays: Arrays,
    thing: Solution | Motion | Take,
    take: int,
    subject: int | None,
    joint: int | None,
) -> None:
    motions: tuple[Motion, ...] = ()
    if isinstance(thing, Solution):
        motions = tuple(one.motions[take] for one in thing.subjects)
    elif isinstance(thing, Motion):
        motions = (thing,)
    who = _number("subject", subject, len(motions))
    motion = motions[who]
    which = _number("joint", joint, motion.skeleton.n_joints)
    arrays.floats("points", motion.T_world_joint()[:, which, :3, 3])
    turns = geometry.euler_continuous(motion.wxyz[:, which : which + 1], "ZXY")
    arrays.floats("angles", np.degrees(turns[:, 0]))
    if isinstance(thing, Solution):
        gaps = gaps_of(figures_of(thing)[who], thing.bodies[take], thing.joints)
        arrays.floats("gap", gaps[:, which])


def _number(name: str, value: int | None, count: int) -> int:
    if value is None or not 0 <= value < count:
        raise OptionError(name, found=value, needed=f"a number from 0 to {count - 1}")
    return value
