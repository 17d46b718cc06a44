"""Placement of markers and sensors on the surfaces of a figure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from marey.errors import OptionError
from marey.numerics import Float, Int, geometry
from marey.synth.figures.figure import Figure
from marey.synth.figures.surfaces import Surface

MARKER_RADIUS_M = 0.007
"""Distance of a marker's centre from the surface, in metres. Chosen by hand."""

PLACEMENT_SD, PLACEMENT_SD_DEGREES = 0.012, 4.0
"""Standard deviation of the placement error of a marker: along the surface, as a share
of its length, and around it, in degrees. Larger values place markers less exactly.
Chosen by hand."""

MIN_MARKERS_PER_BODY = 4
"""Least number of markers on a body in "dense110". A larger value leaves fewer markers
to distribute by area. Chosen by hand."""


@dataclass(frozen=True, slots=True, eq=False)
class MarkerPlacement:
    """Markers on a figure: labels, joints that carry them, offsets in metres."""

    labels: tuple[str, ...]
    joint: Int[np.ndarray, " marker"]
    offset: Float[np.ndarray, "marker 3"]


def place_markers(
    figure: Figure, markers: str | int | None, rng: np.random.Generator
) -> MarkerPlacement:
    """Return a marker set on the surfaces of a figure, with small placement errors.

    Args:
        figure: The figure that wears the markers.
        markers: "sparse41" or "set53" (people), "dense110", "mesh" (every vertex of
            the surfaces, without an offset), a number of markers per body, or "none".
            Default: "sparse41" on a person, 6 per body on other figures.
        rng: Random stream of the placement errors.

    Raises:
        OptionError: If the figure has no such marker set.
    """
    if markers is None:
        markers = "sparse41" if "sparse41" in figure.marker_sets else 6
    if isinstance(markers, int):
        if markers < 1:
            raise OptionError("markers", found=markers, needed="1 or more per body")
        counts = dict.fromkeys(figure.bodies.tolist(), markers)
        return _on_bodies(figure, _spread_evenly(figure, counts, rng))
    if markers == "dense110":
        return _on_bodies(figure, _spread_evenly(figure, _counts(figure, 110), rng))
    if markers == "mesh":
        return _on_bodies(figure, _vertices(figure))
    if markers == "none":
        return _on_bodies(figure, ())
    if markers not in figure.marker_sets:
        known = (*figure.marker_sets, "dense110", "mesh", "none", "or a number")
        raise OptionError("markers", found=markers, needed=", ".join(known))
    return _on_bodies(figure, _named_set(figure, markers, rng))


MarkerRow = tuple[str, int, np.ndarray]
"""Label, joint of the surface and offset in its frame, of one marker."""


def _named_set(
    figure: Figure, name: str, rng: np.random.Generator
) -> Iterator[MarkerRow]:
    surfaces = {surface.name: surface for surface in figure.surfaces}
    for label, name_of_surface, u, degrees in figure.marker_sets[name]:
        surface = surfaces[name_of_surface]
        along = np.clip(u + PLACEMENT_SD * rng.normal(), 0.01, 0.99)
        angle = np.radians(degrees + PLACEMENT_SD_DEGREES * rng.normal())
        (offset,) = _marker_centers(surface, np.array([along]), np.array([angle]))
        yield label, surface.joint, offset


def _marker_centers(surface: Surface, u: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Return points one marker radius outside the surface."""
    points = surface.points_at(u, angle)
    middle = surface.start + u[:, None] * (surface.end - surface.start)
    outward = geometry.unit_vectors(points - middle)
    return np.asarray(points + MARKER_RADIUS_M * outward)


def _spread_evenly(
    figure: Figure, count: Mapping[int, int], rng: np.random.Generator
) -> Iterator[MarkerRow]:
    """Yield markers, given their number on each body.

    The markers of a body are distributed by the areas of its surfaces.
    """
    body = figure.body_of[[surface.joint for surface in figure.surfaces]]
    area = np.array([surface.area for surface in figure.surfaces])
    counts = np.zeros(len(area), dtype=np.int64)
    for b, n in count.items():
        share = area[body == b]
        edges = np.concatenate([[0.0], np.cumsum(n * share / share.sum())])
        counts[body == b] = np.diff(np.round(edges))
    used = dict.fromkeys(count, 0)
    numbers = body.tolist(), counts.tolist()
    for surface, b, n in zip(figure.surfaces, *numbers, strict=True):
        start_angle = rng.uniform(0.0, 2.0 * np.pi)
        for offset in surface.spiral_points(n, start_angle=start_angle):
            used[b] += 1
            label = f"{figure.skeleton.names[b]}{used[b]:02d}"
            yield label, surface.joint, offset


def _counts(figure: Figure, total: int) -> dict[int, int]:
    """Return the number of markers on each body: a minimum, more by area."""
    area = {int(b): 0.0 for b in figure.bodies}
    for surface in figure.surfaces:
        area[int(figure.body_of[surface.joint])] += surface.area
    spare = total - MIN_MARKERS_PER_BODY * len(area)
    if spare < 0:
        needed = f"{MIN_MARKERS_PER_BODY * len(area)} or more for this figure"
        raise OptionError("markers", found=total, needed=needed)
    share = np.array(list(area.values())) / sum(area.values())
    whole = np.diff(np.round(np.concatenate([[0.0], np.cumsum(spare * share)])))
    return {b: MIN_MARKERS_PER_BODY + int(n) for b, n in zip(area, whole, strict=True)}


def _vertices(figure: Figure) -> Iterator[MarkerRow]:
    for surface in figure.surfaces:
        for i, point in enumerate(surface.mesh(rings=5, spokes=8)[0]):
            yield f"{surface.name}.{i:02d}", surface.joint, point


def _on_bodies(figure: Figure, rows: Iterable[MarkerRow]) -> MarkerPlacement:
    """Return the markers with offsets in the frames of the bodies that carry them."""
    every = list(rows)
    joint = np.array([joint for _, joint, _ in every], dtype=np.int64)
    offsets = np.array([offset for _, _, offset in every]).reshape(-1, 3)
    rest = figure.skeleton.rest()[:, :3, 3]
    body = figure.body_of[joint]
    labels = tuple(label for label, _, _ in every)
    return MarkerPlacement(labels, body, offsets + rest[joint] - rest[body])


def place_sensors(
    figure: Figure, sensors: bool | str | tuple[str, ...], rng: np.random.Generator
) -> tuple[Int[np.ndarray, " sensor"], Float[np.ndarray, "sensor 4 4"]]:
    """Return the bodies that wear a 6-DoF sensor, and T_body_sensor of each.

    Each sensor has a random position on the largest surface and a random rotation.

    Args:
        figure: The figure that wears the sensors.
        sensors: False for none, True or "all" for one per body, or the names of
            joints whose bodies get one.
        rng: Random stream of positions and rotations.
    """
    if isinstance(sensors, str) and sensors != "all":
        raise OptionError("sensors", found=sensors, needed='False, True or "all"')
    if not sensors:
        return np.zeros(0, dtype=np.int64), np.zeros((0, 4, 4))
    bodies = figure.bodies
    if isinstance(sensors, tuple):
        chosen = [figure.skeleton.index(name) for name in sensors]
        bodies = np.unique(figure.body_of[chosen])
    surface = [_largest_surface(figure, int(b)) for b in bodies]
    u = rng.uniform(0.25, 0.75, len(bodies))
    angle = rng.uniform(0.0, 2.0 * np.pi, len(bodies))
    rows = [
        ("", one.joint, _marker_centers(one, u[i : i + 1], angle[i : i + 1])[0])
        for i, one in enumerate(surface)
    ]
    R_body_sensor = geometry.rotation_exp(rng.normal(size=(len(bodies), 3)))
    offset = _on_bodies(figure, rows).offset
    return np.asarray(bodies), geometry.transform(R_body_sensor, offset)


def _largest_surface(figure: Figure, body: int) -> Surface:
    on_body = [s for s in figure.surfaces if figure.body_of[s.joint] == body]
    return max(on_body, key=lambda surface: surface.area)
