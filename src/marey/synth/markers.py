"""Where markers and sensors sit on a figure's skin."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from marey.errors import OptionError
from marey.numerics import geometry
from marey.synth.figures.figure import Figure
from marey.synth.figures.surfaces import Shape

# The centre of a marker is this far off the skin, in metres.
MARKER_RADIUS = 0.007

# How far a marker lands from where it was meant to go: share of the shape, degrees.
PLACEMENT_SD, PLACEMENT_SD_DEGREES = 0.012, 4.0

# Fewest markers that "dense110" gives a body.
FEWEST = 4


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Markers on a figure: labels, carrying joints and places in those joints."""

    labels: tuple[str, ...]
    joint: Int[np.ndarray, " marker"]
    offset: Float[np.ndarray, "marker 3"]


def place_markers(
    figure: Figure, markers: str | int | None, rng: np.random.Generator
) -> Placed:
    """Return a marker set on the skin, put on a little carelessly, as people do.

    Args:
        figure: Who wears it.
        markers: "sparse41" or "set53" (people), "dense110", "mesh" (every vertex of
            the shapes, exactly on the skin), a number of markers per body, or "none".
            Left out: "sparse41" on a person, 6 per body on others.
        rng: Draws the small misplacements.

    Raises:
        OptionError: If the figure has no such marker set.
    """
    if markers is None:
        markers = "sparse41" if "sparse41" in figure.marker_sets else 6
    if isinstance(markers, int):
        if markers < 1:
            raise OptionError("markers", found=markers, needed="1 or more per body")
        return _spread(figure, _per_body(figure, markers), rng)
    if markers == "dense110":
        return _spread(figure, _by_area(figure, 110), rng)
    if markers == "mesh":
        return _mesh(figure)
    if markers == "none":
        return Placed((), np.zeros(0, dtype=np.int64), np.zeros((0, 3)))
    if markers not in figure.marker_sets:
        known = (*figure.marker_sets, "dense110", "mesh", "none", "or a number")
        raise OptionError("markers", found=markers, needed=", ".join(known))
    return _named(figure, markers, rng)


def _named(figure: Figure, name: str, rng: np.random.Generator) -> Placed:
    shapes = {shape.name: shape for shape in figure.shapes}
    labels, joints, places = [], [], []
    for label, shape_name, u, degrees in figure.marker_sets[name]:
        shape = shapes[shape_name]
        along = np.clip(u + PLACEMENT_SD * rng.normal(), 0.01, 0.99)
        angle = np.radians(degrees + PLACEMENT_SD_DEGREES * rng.normal())
        labels.append(label)
        joints.append(shape.joint)
        places.append(_off_skin(shape, np.array([along]), np.array([angle]))[0])
    return _on_bodies(figure, labels, joints, np.array(places))


def _off_skin(shape: Shape, u: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Return places one marker radius outside the skin."""
    skin = shape.skin(u, angle)
    out = skin - (shape.start + u[:, None] * (shape.end - shape.start))
    out = out / np.linalg.norm(out, axis=-1, keepdims=True)
    return np.asarray(skin + MARKER_RADIUS * out)


def _spread(figure: Figure, counts: list[int], rng: np.random.Generator) -> Placed:
    labels, joints, places = [], [], []
    used: dict[str, int] = {}
    for shape, count in zip(figure.shapes, counts, strict=True):
        name = figure.skeleton.names[figure.body_of[shape.joint]]
        turn = rng.uniform(0.0, 2.0 * np.pi)
        for place in shape.spread(count, turn=turn):
            used[name] = used.get(name, 0) + 1
            labels.append(f"{name}{used[name]:02d}")
            joints.append(shape.joint)
            places.append(place)
    return _on_bodies(figure, labels, joints, np.array(places).reshape(-1, 3))


def _per_body(figure: Figure, count: int) -> list[int]:
    """Return how many markers each shape gets when every body has the same number."""
    return _shared_out(figure, dict.fromkeys(figure.bodies.tolist(), count))


def _by_area(figure: Figure, total: int) -> list[int]:
    """Return how many markers each shape gets, by area, bodies having four or more."""
    body = figure.body_of
    area = {int(b): 0.0 for b in figure.bodies}
    for shape in figure.shapes:
        area[int(body[shape.joint])] += shape.area
    spare = total - FEWEST * len(area)
    if spare < 0:
        raise OptionError(
            "markers", found=total, needed=f"{FEWEST * len(area)} or more here"
        )
    share = np.array(list(area.values())) / sum(area.values())
    whole = np.diff(np.round(np.concatenate([[0.0], np.cumsum(spare * share)])))
    counts = {b: FEWEST + int(n) for b, n in zip(area, whole, strict=True)}
    return _shared_out(figure, counts)


def _shared_out(figure: Figure, count: dict[int, int]) -> list[int]:
    """Return each shape's part of its body's markers, by area."""
    body = figure.body_of
    counts = [0] * len(figure.shapes)
    for b, n in count.items():
        mine = [i for i, shape in enumerate(figure.shapes) if body[shape.joint] == b]
        share = np.array([figure.shapes[i].area for i in mine])
        edges = np.concatenate([[0.0], np.cumsum(n * share / share.sum())])
        for i, part in zip(mine, np.diff(np.round(edges)), strict=True):
            counts[i] = int(part)
    return counts


def _mesh(figure: Figure) -> Placed:
    labels, joints, places = [], [], []
    for shape in figure.shapes:
        points, _ = shape.mesh(rings=5, spokes=8)
        labels += [f"{shape.name}.{i:02d}" for i in range(len(points))]
        joints += [shape.joint] * len(points)
        places.append(points)
    return _on_bodies(figure, labels, joints, np.concatenate(places))


def _on_bodies(
    figure: Figure, labels: list[str], joints: list[int], places: np.ndarray
) -> Placed:
    """Carry places from the joints of the shapes to the bodies that move them."""
    rest = figure.skeleton.rest()[:, :3, 3]
    joint = np.array(joints, dtype=np.int64)
    body = figure.body_of[joint]
    return Placed(tuple(labels), body, places + rest[joint] - rest[body])


def place_sensors(
    figure: Figure,
    sensors: bool | str | tuple[str, ...],
    rng: np.random.Generator,
) -> tuple[Int[np.ndarray, " sensor"], Float[np.ndarray, "sensor 4 4"]]:
    """Return the bodies that wear a 6-DoF sensor, and T_body_sensor of each.

    Each is strapped on somewhere on the skin, turned at random.

    Args:
        figure: Who wears them.
        sensors: False for none, True or "all" for one per body, or the names of the
            joints to be covered.
        rng: Draws the places.
    """
    if isinstance(sensors, str) and sensors != "all":
        raise OptionError("sensors", found=sensors, needed='False, True or "all"')
    if not sensors:
        return np.zeros(0, dtype=np.int64), np.zeros((0, 4, 4))
    bodies = figure.bodies
    if isinstance(sensors, tuple):
        chosen = [figure.skeleton.index(name) for name in sensors]
        bodies = np.unique(figure.body_of[chosen])
    biggest = {int(b): _biggest(figure, int(b)) for b in bodies}
    u = rng.uniform(0.25, 0.75, len(bodies))
    angle = rng.uniform(0.0, 2.0 * np.pi, len(bodies))
    skin = [
        _off_skin(biggest[int(b)], u[i : i + 1], angle[i : i + 1])[0]
        for i, b in enumerate(bodies)
    ]
    carried = _on_bodies(
        figure,
        [""] * len(bodies),
        [biggest[int(b)].joint for b in bodies],
        np.array(skin),
    )
    turn = geometry.rotation_exp(rng.normal(size=(len(bodies), 3)))
    return np.asarray(bodies), geometry.transform(turn, carried.offset)


def _biggest(figure: Figure, body: int) -> Shape:
    mine = [shape for shape in figure.shapes if figure.body_of[shape.joint] == body]
    return max(mine, key=lambda shape: shape.area)
