"""Poses from markers and sensors: inverse kinematics by Gauss-Newton on the tree."""

from typing import Any

from marey.motion import Motion
from marey.options import options_from
from marey.pose.findings import pose_findings
from marey.pose.gauss_newton.driver import GaussNewtonSolver, PoseTrace, TargetNames
from marey.pose.options import GaussNewtonOptions as GaussNewtonOptions
from marey.pose.reference_prior import as_c_float64, make_motion, reference_rotations
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take


def solve(
    skeleton: Skeleton, take: Take, **options: Any
) -> tuple[Motion, tuple[Finding, ...]]:
    r"""Return the motion whose markers and sensors lie nearest to the recorded ones.

    Levenberg-Marquardt on the rotations of all joints and the pose of the root, frame
    by frame, each started from the last. With residuals r of markers and sensors and
    weights w (one over variances) a frame minimises

    .. math:: \sum_k \frac{w_k r_k^2}{1 + s_k r_k^2} + \sum_b \pi_b |e_b|^2.

    The first sum is the energy of Bodenheimer1997, Sec. 3.2, and of the rest poses of
    Zordan2003, with the Geman-McClure loss (iteratively reweighted least squares). The
    second is a prior towards the pose that constant velocity predicts.

    Departures from the papers: rotations are quaternions, not Euler angles, so there
    is no gimbal lock; steps are those of Gauss-Newton, not BFGS; outliers lose their
    weight in the fit itself, instead of being removed before; swing-twist limits bind
    exactly by an active set, where the papers have a penalty; and no spring draws
    joints to a rest pose, which would bias them.

    The markers of a body enter a step only as sums, and the sums of a joint's subtree
    make its rows of the normal equations, so a step costs the same for any number of
    markers (`marey.articulated.kinematics_kernel`). The LTL factor of the equations
    has the sparsity of the tree (Featherstone; `marey.articulated.factor_kernel`).

    The prior counts only for joints on which the markers give less information than
    the prediction does; well-seen joints are free of it, so exact data give the exact
    pose. A frame without any target keeps the predicted pose. In the last quarter of a
    second of an occlusion a joint is blended to where it reappears. The first frame is
    solved from scratch, and outliers may mislead it: the first frames are tracked
    backwards as well. With `smooth`, the past and the future of the whole take count.
    With a `reference`, all frames are solved a second time, started from the reference
    and drawn to it.

    Args:
        skeleton: A skeleton with markers or sensors.
        take: The recording; markers and sensors are matched by label.
        **options: Fields of `GaussNewtonOptions`.

    Returns:
        The motion, and the findings about it.

    Raises:
        DataError: If none of the skeleton's markers and sensors is in the take, or
            ever seen.
        OptionError: If an option is not known or out of range.
    """
    chosen = options_from(GaussNewtonOptions, options)
    fit = GaussNewtonSolver(skeleton, TargetNames.of(take), take.rate, chosen)
    points, sensors = as_c_float64(take.points), as_c_float64(take.T_world_sensor)
    trace = fit.solve_take(points, sensors)
    if chosen.reference is not None:
        motion = make_motion(skeleton, take, fit.nodes, trace.root, trace.q)
        q, prior = reference_rotations(motion, fit.nodes, chosen)
        trace = fit.refine_with_reference(points, sensors, trace, q, prior)
    if chosen.smooth > 0.0:
        trace = fit.smooth(points, sensors, trace)
    else:
        trace = blend_before_reappearance(fit, trace)
    motion = make_motion(skeleton, take, fit.nodes, trace.root, trace.q)
    return motion, pose_findings(skeleton, take, fit, trace)


def blend_before_reappearance(fit: GaussNewtonSolver, trace: PoseTrace) -> PoseTrace:
    """Return the trace whose occluded joints move to where they reappear."""
    # numba is slow to import
    from marey.pose.gauss_newton.reacquire_kernel import blend_offsets_before

    blended = trace.copy()
    unseen = trace.information < fit.settings.prior
    blend_offsets_before(
        fit.nodes.tree, fit.work, unseen, fit.rate, blended.root, blended.q
    )
    return PoseTrace(blended.q, blended.root, trace.info)
