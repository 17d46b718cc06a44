"""One skeleton per subject: bones, markers and poses fitted together over all takes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from marey.calibration.covariance import doubt_of
from marey.calibration.findings import failed, verdicts
from marey.calibration.hinges import most_telling_first, with_hinges
from marey.calibration.init.generic import kept_start, plain_start
from marey.calibration.init.landmarks import Start
from marey.calibration.init.poses import chosen_frames
from marey.calibration.init.select import person_fit
from marey.calibration.landmarks import landmarks_of
from marey.calibration.options import CalibrateOptions as CalibrateOptions
from marey.calibration.problem import FEWEST_FRAMES, Problem, problem_of
from marey.calibration.solver.loop import ROUNDS, Fit, fitted
from marey.calibration.to_skeleton import dressed, reseated
from marey.errors import OptionError
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Take

WORSE = 2.0
"""Times the distances of markers before that no calibration may leave: positions that
lose their weight with distance can let go of a whole limb."""

PERSON = {"Hips", "LeftUpperLeg", "RightUpperLeg"}
"""Names by which a person is known."""


KEPT_ROUNDS = 30
"""Most turns of steps and noise where markers may be far from where they were."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Calibration:
    """What `calibrate` returns."""

    skeleton: Skeleton
    """The subject's bones, with the covariance of offsets and the doubt of lengths;
    markers where they sit on average."""

    skeletons: tuple[Skeleton, ...]
    """One per take: the same bones, with that session's markers."""

    rms: float
    """Root mean square distance of markers from their places in the frames used, in
    metres."""

    marker_noise: Float[np.ndarray, "session marker"]
    """How far each of the skeleton's markers strays along each axis, in metres; NaN
    where it was not seen."""

    white_share: float
    """Share of that which is new in every frame, 0 to 1; the rest moves with the pose,
    as skin does."""

    temper: float
    """How many times what is known beforehand counts against a single frame."""

    findings: tuple[Finding, ...] = ()


def calibrate(
    skeleton: Skeleton,
    takes: Take | Sequence[Take],
    *,
    options: CalibrateOptions | None = None,
) -> Calibration:
    """Return the subject's skeleton, refined over all its takes at once.

    Joint offsets, hinge axes, marker offsets and the poses of some frames are fitted
    together: Levenberg-Marquardt, with the poses eliminated frame by frame, and
    positions that lie far off losing their weight (Student's t). Bones belong to the
    subject, marker offsets to each session.

    The order of the takes does not matter: the markers of the session that tells most
    of the joints carry the axes of the segments.

    Skin moves with the pose, and the same way in every step of a walk: more frames of
    the same do not make joints better known. How much of the markers' straying is new
    in every frame tells noise from skin, and what is known beforehand is weighed by it.

    Of a person with the labels of a known marker set this is where the landmarks put
    the joints, that left and right are alike, and the usual proportions; whether the
    shoulders move against the chest is decided by which predicts hidden markers better.
    Of other figures next to nothing is known, and a joint that turned about one axis
    only becomes a hinge.

    Args:
        skeleton: A skeleton with markers or sensors, as `build_skeleton` returns it.
        takes: All takes of the subject; markers and sensors are matched by label.
        options: How to calibrate.

    Raises:
        DataError: If there are no takes, or none shows the skeleton's markers.
        OptionError: If `sessions` does not name one session per take.
    """
    chosen = options or CalibrateOptions()
    several = (takes,) if isinstance(takes, Take) else tuple(takes)
    several = tuple(take.measured for take in several)
    sessions = chosen.sessions or tuple(range(len(several)))
    if len(sessions) != len(several):
        raise OptionError(
            "sessions", found=chosen.sessions, needed=f"{len(several)} numbers"
        )
    problem = problem_of(skeleton, several, sessions)
    if not problem.sessions:
        return _as_it_was(problem, f"fewer than {FEWEST_FRAMES} frames show it")
    if len(problem.figure.names) < 2:
        return _as_it_was(problem, "it has no joints")
    order = most_telling_first(problem.figure, problem.shape, _some(problem, chosen))
    problem = _in_order(problem, order)
    try:
        fit = _calibrated(problem, chosen)
    except np.linalg.LinAlgError:
        fit = None
    if fit is None or not np.isfinite(fit.shape.o).all():
        return _as_it_was(problem, "too few frames show it, or nothing of it moves")
    if fit.rms() > WORSE * fit.rms_before:
        return _as_it_was(problem, "it would fit the markers worse than before")
    person = _is_person(skeleton.names)
    if chosen.keep_bones:
        worn = reseated(problem, fit)
    else:
        worn = dressed(problem, fit, doubt_of(fit), person=person)
    return Calibration(
        skeleton=worn.skeleton,
        skeletons=worn.skeletons,
        rms=fit.rms(),
        marker_noise=_noise(problem, fit)[np.argsort(order)],
        white_share=fit.white,
        temper=fit.temper,
        findings=tuple(verdicts(worn.skeleton, fit, person=person)),
    )


def _is_person(names: tuple[str, ...]) -> bool:
    """Return whether a figure has the names of a person; animals have a tail."""
    tail = any(name.startswith("Tail") for name in names)
    return set(names) >= PERSON and not tail


def _calibrated(problem: Problem, chosen: CalibrateOptions) -> Fit | None:
    """Return the calibrated figure; None if there is nothing to fit."""
    figure, shape = problem.figure, problem.shape
    if chosen.keep_bones:
        start = kept_start(figure, shape)
        return _fitted(start, problem, chosen, rounds=KEPT_ROUNDS)
    person = _is_person(figure.names)
    if person:
        figure = replace(figure, axes=())
        shape = replace(shape, a=np.zeros((0, 3)), b=np.zeros((0, 3)))
        marks = landmarks_of(figure)
        if marks.has_hips:
            fit = person_fit(figure, shape, marks, problem.sessions, options=chosen)
            if fit is not None:
                return fit
        return _fitted(plain_start(figure, shape, person=True), problem, chosen)
    figure, shape, still = with_hinges(figure, shape, _some(problem, chosen))
    start = plain_start(figure, shape, person=False, still=still)
    return _fitted(start, problem, chosen)


def _in_order(problem: Problem, order: Int[np.ndarray, " session"]) -> Problem:
    """Return the problem with its sessions, which begin all alike, in this order."""
    place = [*np.argsort(order).tolist(), -1]
    return replace(
        problem,
        sessions=tuple(problem.sessions[k] for k in order),
        session_of=tuple(place[k] for k in problem.session_of),
    )


def _some(
    problem: Problem, chosen: CalibrateOptions
) -> list[Float[np.ndarray, "_ marker 3"]]:
    """Return the frames of every session that are looked at."""
    most = chosen.per_session(len(problem.sessions))
    return [points[chosen_frames(points, most)] for points in problem.sessions]


def _fitted(
    start: Start, problem: Problem, chosen: CalibrateOptions, rounds: int = ROUNDS
) -> Fit:
    return fitted(
        start,
        problem.sessions,
        most=chosen.per_session(len(problem.sessions)),
        independent=chosen.independent,
        rounds=rounds,
    )


def _noise(problem: Problem, fit: Fit) -> Float[np.ndarray, "session marker"]:
    """Return each marker's scale in the order of the skeleton."""
    out = np.full((len(fit.poses), len(problem.skeleton.marker_labels)), np.nan)
    for k, at in enumerate(fit.order):
        what, number = problem.source[int(at)]
        if what == "marker":
            out[:, number] = fit.shape.noise[:, k]
    return out


def _as_it_was(problem: Problem, why: str) -> Calibration:
    skeleton = problem.skeleton
    count = len(problem.sessions)
    return Calibration(
        skeleton=skeleton,
        skeletons=(skeleton,) * len(problem.session_of),
        rms=float("nan"),
        marker_noise=np.full((count, len(skeleton.marker_labels)), np.nan),
        white_share=float("nan"),
        temper=1.0,
        findings=(failed(why),),
    )
