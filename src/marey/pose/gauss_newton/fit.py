"""Poses from markers and sensors: inverse kinematics on the whole tree at once."""

from typing import Any

from marey.motion import Motion
from marey.pose.findings import doubts
from marey.pose.gauss_newton.driver import Follower, Names, Trace
from marey.pose.options import GaussNewtonOptions as GaussNewtonOptions
from marey.pose.options import options_of
from marey.pose.reference_prior import lead, motion_of, plain
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take


def solve(
    skeleton: Skeleton, take: Take, **options: Any
) -> tuple[Motion, tuple[Finding, ...]]:
    """Return the motion that brings the skeleton's markers nearest to the recorded.

    Levenberg-Marquardt on the rotations of all joints and the pose of the root, frame
    after frame, each begun from the last. The energy is that of Bodenheimer1997, Sec.
    3.2, and of the rest poses of Zordan2003, weighted by variances. Departures:
    rotations are quaternions, not Euler angles, so there is no gimbal lock; steps are
    those of Gauss-Newton, not BFGS; outliers lose their weight in the fit itself,
    instead of being cut beforehand; limits bind exactly (an active set), where the
    papers have a penalty; and no spring draws joints to a rest pose, which would bias
    them.

    The markers of a body enter a step only as sums (Sum w, w m, w m m^T, w y, w m y^T),
    and the sums of all bodies that a joint carries make its rows of the normal
    equations, so a step costs the same for any number of markers. The equations keep
    the shape of the tree: their factor has no fill.

    A joint whose markers know less of it than its own past joins the two: it is drawn
    to where its fading speed would have brought it. Joints that are seen well are free
    of this, so exact data give the exact pose. A frame in which nothing is seen keeps
    the expected pose. In the last quarter of a second out of sight, a joint is led to
    where it is seen again. The first frames are found from nowhere, and outliers may
    lead them astray: they are followed backwards as well. With `smooth`, the past and
    the future of the whole take count. With a `reference`, frames are fitted a second
    time, each from the reference and drawn to it a little.

    Args:
        skeleton: A skeleton with markers or sensors.
        take: The recording; markers and sensors are matched by label.
        **options: Fields of `GaussNewtonOptions`.

    Returns:
        The motion, and what was found about it.

    Raises:
        DataError: If the take has, or ever sees, none of the skeleton's markers and
            sensors.
        OptionError: If an option is not known or out of range.
    """
    chosen = options_of(GaussNewtonOptions, options)
    fit = Follower(skeleton, Names.of(take), take.rate, chosen)
    points, sensors = plain(take.points), plain(take.T_world_sensor)
    trace = fit.through(points, sensors)
    if chosen.reference is not None:
        motion = motion_of(skeleton, take, fit.nodes, trace.root, trace.q)
        trace = fit.led(points, sensors, trace, *lead(motion, fit.nodes, chosen))
    if chosen.smooth > 0.0:
        trace = fit.smooth(points, sensors, trace)
    else:
        trace = led_back(fit, trace)
    motion = motion_of(skeleton, take, fit.nodes, trace.root, trace.q)
    return motion, doubts(skeleton, take, fit, trace)


def led_back(fit: Follower, trace: Trace) -> Trace:
    """Return the trace with joints on their way back before they are seen again."""
    from marey.pose.gauss_newton.reacquire_kernel import (
        lead_back,  # numba is slow to import
    )

    q, root = trace.q.copy(), trace.root.copy()
    unseen = trace.known < fit.habits.prior
    lead_back(fit.nodes.tree, fit.work, unseen, fit.rate, root, q)
    return Trace(q, root, trace.info)
