"""The scene: figures in motion, one clock per take, and the markers that were seen."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from marey.io.scene.body_mesh import BodyMesh, build_body_mesh
from marey.io.text.names import make_unique, printable_name
from marey.io.text.rotations import hold_last_pose
from marey.io.text.timing import check_even_rate
from marey.motion import Motion
from marey.numerics import Array, Float, geometry
from marey.skeleton import Skeleton
from marey.solution import Solution, Subject
from marey.take import Take

COLORS = (
    (0.80, 0.62, 0.47),
    (0.45, 0.62, 0.80),
    (0.58, 0.74, 0.46),
    (0.78, 0.52, 0.72),
)
"""Linear red, green and blue of the figures of a scene. Chosen by hand."""

MARKER_COLOR = (0.9, 0.9, 0.9)
MARKER_RADIUS_M = 7e-3
"""Radius of a drawn marker, in metres: a usual one has 14 mm. Higher draws larger
balls."""


@dataclass(frozen=True, slots=True, eq=False)
class MarkerTracks:
    """Markers over the frames of one take."""

    labels: tuple[str, ...]
    """One label per marker, with its subject, unique."""

    points: Float[Array, "frame marker 3"]
    """Positions in the world, in metres; NaN where a marker was not seen."""


@dataclass(frozen=True, slots=True, eq=False)
class SceneTake:
    """One take: a name, a clock, and its markers if they were asked for."""

    name: str
    """The name of its file without folder and suffix, unique in the scene."""

    rate: float
    """Frames per second."""

    n_frames: int
    markers: MarkerTracks


@dataclass(frozen=True, slots=True, eq=False)
class SceneFigure:
    """One performer, animal or prop: its body, and how it moves in every take."""

    name: str
    """Unique in the scene, printable, and not the name of one of its joints."""

    skeleton: Skeleton
    mesh: BodyMesh
    motions: tuple[Motion, ...]
    """One per take, without gaps: these hold the last known pose."""

    color: tuple[float, float, float] = COLORS[0]
    """Linear red, green and blue, from 0 to 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Figures and takes, in metres and +Z up; without takes the figures are at rest."""

    figures: tuple[SceneFigure, ...]
    takes: tuple[SceneTake, ...]


def build_scene(thing: Skeleton | Motion | Solution, *, markers: bool = False) -> Scene:
    """Return the scene of a skeleton at rest, a motion, or all subjects and takes.

    Args:
        thing: What to show.
        markers: Also return markers: those that were seen, of a solution; those on the
            bones, of a motion.

    Raises:
        DataError: If the frames of a motion are not evenly spaced.
    """
    if isinstance(thing, Skeleton):
        return Scene((_figure("figure", thing, ()),), ())
    if isinstance(thing, Motion):
        seen = (thing.skeleton.marker_labels, thing.marker_points())
        tracks = MarkerTracks(*seen) if markers else _no_markers(thing.n_frames)
        take = SceneTake(_stem(thing.source.path), check_even_rate(thing), *_of(tracks))
        figure = _figure("figure", thing.skeleton, (thing,))
        return Scene((figure,), (take,))
    names = _unique_names([_subject_name(s) for s in thing.subjects])
    figures = [
        _figure(name, subject.skeleton, subject.motions, number)
        for number, (name, subject) in enumerate(
            zip(names, thing.subjects, strict=True)
        )
    ]
    stems = _unique_names([_stem(take.source.path) for take in thing.takes])
    takes = [
        SceneTake(stem, take.rate, *_of(_seen_markers(take, markers)))
        for stem, take in zip(stems, thing.takes, strict=True)
    ]
    return Scene(tuple(figures), tuple(takes))


def _figure(
    name: str, skeleton: Skeleton, motions: Sequence[Motion], number: int = 0
) -> SceneFigure:
    held = tuple(map(_without_gaps, motions))
    color = COLORS[number % len(COLORS)]
    return SceneFigure(name, skeleton, build_body_mesh(skeleton), held, color)


def _without_gaps(motion: Motion) -> Motion:
    """Return the motion with gaps that hold the last known pose."""
    position, wxyz = hold_last_pose(motion)
    T = geometry.transform(geometry.matrix_from_quat(wxyz[:, 0]), position)
    return replace(motion, T_world_root=T, wxyz=wxyz)


def _subject_name(subject: Subject) -> str:
    """Return the name of a figure: that of its subject, if no joint has it too."""
    is_joint = subject.name in subject.skeleton.names
    return f"{subject.name} figure" if is_joint else subject.name or "figure"


def _unique_names(names: Sequence[str]) -> tuple[str, ...]:
    return make_unique([printable_name(name) for name in names])


def _stem(path: str) -> str:
    return printable_name(PurePath(path).stem or "take")


def _seen_markers(take: Take, wanted: bool) -> MarkerTracks:
    if not wanted:
        return _no_markers(take.n_frames)
    return MarkerTracks(_unique_names(take.full_labels), take.points)


def _no_markers(n_frames: int) -> MarkerTracks:
    return MarkerTracks((), np.zeros((n_frames, 0, 3)))


def _of(tracks: MarkerTracks) -> tuple[int, MarkerTracks]:
    return len(tracks.points), tracks
