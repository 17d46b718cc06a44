"""What other programs expect of a motion: rest pose, place, frame rate, frames.

All of it is done before a thing is written, in marey's world and for every format
alike; unit and up axis belong to the formats. Placed on the ground, the lowest joint is
at height 0 and the first frame at the origin.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from marey.errors import OptionError, check_choice
from marey.io.conventions.rest import REST_POSES, change_rest_pose, rest_rotations
from marey.motion import Motion
from marey.numerics import Array, Float, geometry
from marey.numerics.procrustes import points_seen
from marey.numerics.resampling import frames_at_rate
from marey.numerics.robust import mean_where
from marey.options import Options, number
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.solution import Solution, Subject
from marey.take import Take

Thing = Take | Motion | Skeleton | Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class Conventions(Options):
    """How a thing is changed before it is written; the defaults change nothing."""

    frames: tuple[int | None, int | None] | None = None
    """Frames start up to but not including stop; None is the end."""

    rate: float | None = number(None, above=0.0)
    """Frames per second."""

    rest: str | None = None
    """Rest pose of people: "t", "a", "n", or "first" for the first known frame."""

    root_on_ground: bool = False
    """Whether the lowest joint is at height 0, and the first frame at the origin."""

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        if self.rest is not None:
            check_choice("rest", self.rest, REST_POSES)


def apply_conventions(
    thing: Thing, conventions: Conventions
) -> tuple[Thing, tuple[Finding, ...]]:
    """Return a thing as the conventions have it, and what could not be kept.

    Raises:
        OptionError: If it is a skeleton, and they concern time or place.
        DataError: If the frames lie outside, or the rest pose is not known.
    """
    if conventions == Conventions():
        return thing, ()
    if isinstance(thing, Skeleton):
        return _rest_of_skeleton(thing, conventions)
    takes = thing.takes if isinstance(thing, Solution) else ()
    takes = (thing,) if isinstance(thing, Take) else takes
    subjects = thing.subjects if isinstance(thing, Solution) else ()
    if isinstance(thing, Motion):
        subjects = (Subject("", thing.skeleton, (thing,)),)
    takes = tuple(_time_take(take, conventions) for take in takes)
    subjects = tuple(_time_subject(subject, conventions) for subject in subjects)
    if conventions.root_on_ground:
        takes, subjects = _put_on_ground(takes, subjects)
    findings: list[Finding] = []
    if conventions.rest is not None:
        changed = [_rest_of_subject(s, conventions.rest) for s in subjects]
        subjects = tuple(subject for subject, _ in changed)
        findings = [finding for _, some in changed for finding in some]
    if isinstance(thing, Solution):
        return replace(thing, takes=takes, subjects=subjects), tuple(findings)
    return (takes[0] if takes else subjects[0].motions[0]), tuple(findings)


def _time_take(take: Take, conventions: Conventions) -> Take:
    if conventions.frames is not None:
        take = take.cut(*_bounds(conventions.frames, take.n_frames))
    return take if conventions.rate is None else resample_take(take, conventions.rate)


def _time_subject(subject: Subject, conventions: Conventions) -> Subject:
    """Return the subject with the frames and at the rate asked for."""
    motions = subject.motions
    if conventions.frames is not None:
        motions = tuple(
            motion.cut(*_bounds(conventions.frames, motion.n_frames))
            for motion in motions
        )
    if conventions.rate is not None:
        motions = tuple(motion.resample(conventions.rate) for motion in motions)
    return replace(subject, motions=motions)


def _bounds(frames: tuple[int | None, int | None], n_frames: int) -> tuple[int, int]:
    start, stop = frames
    return start or 0, n_frames if stop is None else stop


def _put_on_ground(
    takes: tuple[Take, ...], subjects: tuple[Subject, ...]
) -> tuple[tuple[Take, ...], tuple[Subject, ...]]:
    """Return takes and subjects, moved by one translation in each take."""
    count = len(subjects[0].motions) if subjects else len(takes)
    translations: list[Float[np.ndarray, " 3"]] = [
        find_ground_translation([s.motions[k] for s in subjects], takes[k : k + 1])
        for k in range(count)
    ]
    moved = tuple(
        replace(
            subject,
            motions=tuple(map(translate_motion, subject.motions, translations)),
        )
        for subject in subjects
    )
    return tuple(map(translate_take, takes, translations)), moved


def _rest_of_subject(subject: Subject, rest: str) -> tuple[Subject, Sequence[Finding]]:
    R_rest = rest_rotations(subject.skeleton, subject.motions, rest)
    skeleton, motions, findings = change_rest_pose(
        subject.skeleton, subject.motions, R_rest
    )
    return Subject(subject.name, skeleton, motions), findings


def _rest_of_skeleton(
    skeleton: Skeleton, conventions: Conventions
) -> tuple[Skeleton, tuple[Finding, ...]]:
    """Return the skeleton in another rest pose, the only convention that it has."""
    if replace(conventions, rest=None) != Conventions() or conventions.rest is None:
        raise OptionError(
            "frames, rate, root_on_ground",
            found="a skeleton",
            needed="a motion, recording or solution",
        )
    R_rest = rest_rotations(skeleton, (), conventions.rest)
    skeleton, _, findings = change_rest_pose(skeleton, (), R_rest)
    return skeleton, findings


def resample_take(take: Take, rate: float) -> Take:
    """Return a recording at another frame rate, over the same time.

    Positions are linear between frames, orientations follow the shortest rotation
    (slerp); between a known and a missing frame nothing is known. Frames that fall on
    a recorded frame are that frame.
    """
    position = frames_at_rate(take.n_frames, take.rate / rate)[: take.n_frames and None]
    first = position.astype(np.int64)
    second = np.ceil(position).astype(np.int64)
    share = position - first

    def between(
        values: Float[Array, "recorded item 3"],
    ) -> Float[Array, "frame item 3"]:
        return np.asarray(
            values[first] + share[:, None, None] * (values[second] - values[first])
        )

    computed, T = take.computed.values, take.T_world_sensor
    wxyz = geometry.quat_from_matrix(T[..., :3, :3])
    changed = geometry.quat_slerp(wxyz[first], wxyz[second], share[:, None])
    R = geometry.matrix_from_quat(changed)
    return replace(
        take,
        rate=rate,
        points=between(take.points),
        computed=replace(
            take.computed, values=between(computed) if len(computed) else computed
        ),
        confidence=np.minimum(take.confidence[first], take.confidence[second]),
        filled=take.filled[first] | take.filled[second],
        T_world_sensor=geometry.transform(R, between(T[..., :3, 3])),
        history=(*take.history, f"resampled to {rate:g} Hz"),
    )


def find_ground_translation(
    motions: Sequence[Motion], takes: Sequence[Take] = ()
) -> Float[Array, " 3"]:
    """Return the translation to the ground and the origin, in metres.

    The lowest joint of all frames is put at height 0, and the root of the first motion,
    in its first known frame, above the origin. Without motions, markers and sensors
    stand in for joints, and the middle of the first frame for the root.
    """
    if motions:
        points = [motion.T_world_joint()[..., :3, 3] for motion in motions]
        start = points[0][:, 0]
    else:
        points = [p for t in takes for p in (t.points, t.T_world_sensor[..., :3, 3])]
        together = np.concatenate(points, axis=1) if points else np.zeros((0, 0, 3))
        start = mean_where(together, points_seen(together)[..., None], axis=1)
    heights = np.concatenate([p[..., 2].ravel() for p in points])
    start = start[np.isfinite(start).all(axis=1)]
    if not len(start):
        return np.zeros(3)
    return -np.array([*start[0, :2], np.nanmin(heights)])


def translate_motion(motion: Motion, translation: Float[Array, " 3"]) -> Motion:
    """Return a motion that is moved in the world by metres, with its contacts."""
    T = motion.T_world_root.copy()
    T[:, :3, 3] += translation
    contacts = tuple(replace(c, anchor=c.anchor + translation) for c in motion.contacts)
    return replace(motion, T_world_root=T, contacts=contacts)


def translate_take(take: Take, translation: Float[Array, " 3"]) -> Take:
    """Return a recording that is moved in the world by metres."""
    T = take.T_world_sensor.copy()
    T[..., :3, 3] += translation
    return replace(take, points=take.points + translation, T_world_sensor=T)
