"""Everything a page shows of a take, a motion or a solution, as one blob."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

import numpy as np
from jaxtyping import Float

from marey.bodies import Bodies
from marey.errors import OptionError
from marey.io.formats.html.arrays import Arrays
from marey.io.formats.html.subjects import (
    Figure,
    described,
    figures_of,
    gaps_of,
    lone_figure,
    moving,
    states,
    strays,
)
from marey.motion import Motion
from marey.numerics import geometry
from marey.report import Finding, Report
from marey.solution import Solution
from marey.take import Take

FORMAT_VERSION = 1

MOST_DRAWN = 4_000_000
"""Frames times markers, sensors and joints that are drawn; of longer takes only every
second, third, ... frame is."""


LEVEL = {"normal": [0.0, 0.0, 1.0], "height": 0.0}
NOTHING_FOUND: Mapping[str, Any] = {
    "bodies": [],
    "links": [],
    "ground": LEVEL,
    "options": {},
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Beside:
    """What a page shows beside the thing itself."""

    title: str = ""
    """What it is called; the file's name when empty."""

    unsolved: str = ""
    """Why there is no solution, in plain words."""

    truth: Sequence[Motion] = ()
    """True motions, drawn as ghosts: those of the first take, then of the next."""

    measured: Mapping[str, float] = field(default_factory=dict)
    """Bone lengths by tape measure, in metres by joint."""

    editable: bool = False
    edits: Sequence[Mapping[str, Any]] = ()
    """The edits that are in the solution already."""

    drawn: int = MOST_DRAWN
    """Frames times markers, sensors and joints that are drawn at most."""


def scene_of(
    thing: Solution | Motion | Take | None, beside: Beside | None = None
) -> bytes:
    """Return the scene of a thing, ready for the page; of nothing, an empty one.

    Places are kept to 5 µm. Frames × items beyond four million are thinned out: of a
    300-marker take of 36,000 frames every third frame is drawn.

    Raises:
        OptionError: If a true motion has not the frames of its take.
    """
    beside = beside or Beside()
    takes, figures, solution = _parts(thing)
    stride = _stride(takes, figures, beside.drawn)
    drawn = _Drawn(Arrays(), stride, figures, solution)
    header = {
        "format": FORMAT_VERSION,
        "marey": version("marey"),
        "title": beside.title or _title(takes),
        "editable": beside.editable,
        "unsolved": beside.unsolved,
        "subjects": drawn.subjects(),
        "takes": [drawn.take(i, take) for i, take in enumerate(takes)],
        "truth": drawn.truth(beside.truth, takes) if beside.truth else None,
        "measured": {name: float(x) for name, x in beside.measured.items()},
        "edits": list(beside.edits) or _edits(solution),
        **_told(solution.report if solution else _read_report(takes), takes),
        **(_found(solution) if solution else NOTHING_FOUND),
    }
    return drawn.arrays.blob(header)


def title_of(thing: Solution | Motion | Take) -> str:
    """Return what a thing is called: its file's name, if it has one."""
    return _title(_parts(thing)[0])


def _title(takes: Sequence[Take]) -> str:
    more = f" and {len(takes) - 1} more" if len(takes) > 1 else ""
    return _name(takes[0], "take") + more if takes else ""


def _parts(
    thing: Solution | Motion | Take | None,
) -> tuple[tuple[Take, ...], list[Figure], Solution | None]:
    if thing is None:
        return (), [], None
    if isinstance(thing, Solution):
        return thing.takes, figures_of(thing), thing
    if isinstance(thing, Take):
        return (thing,), [], None
    rate = thing.rate if np.isfinite(thing.rate) else 1.0
    nothing = np.zeros((thing.n_frames, 0, 3))
    take = Take(rate=rate, points=nothing, start=thing.start, source=thing.source)
    return (take,), [lone_figure(thing)], None


def _stride(takes: Sequence[Take], figures: Sequence[Figure], most: int) -> int:
    joints = sum(figure.skeleton.n_joints for figure in figures)
    drawn = sum(
        take.n_frames * (len(take.labels) + len(take.sensor_names) + joints)
        for take in takes
    )
    return max(-(-drawn // most), 1)


def _name(take: Take, otherwise: str) -> str:
    return PurePath(take.source.path).name or otherwise


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """What is drawn, and where its values go."""

    arrays: Arrays
    stride: int
    """Frames from one that is drawn to the next."""

    figures: list[Figure]
    solution: Solution | None

    def subjects(self) -> list[dict[str, Any]]:
        residual = self.solution.joints.residual if self.solution else None
        return [described(figure, residual) for figure in self.figures]

    def take(self, number: int, take: Take) -> dict[str, Any]:
        key, stride = str(number), self.stride
        bodies = self.solution.bodies[number] if self.solution else None
        points = take.points[::stride]
        motions = [figure.motions[number] for figure in self.figures]
        state = states(take, strays(take, motions, stride), stride)
        return {
            "name": _name(take, f"take {number + 1}"),
            "rate": take.rate,
            "start": take.start,
            "frames": len(points),
            "recorded": take.n_frames,
            "stride": stride,
            "markers": _markers(take, bodies),
            "points": self.arrays.track(f"{key}.points", points),
            "state": self.arrays.small(f"{key}.state", state),
            **self.sensors(key, take),
            "motions": [
                moving(
                    self.arrays,
                    f"{key}.{i}",
                    figure.motions[number],
                    stride,
                    take,
                    self.gaps(figure, bodies),
                )
                for i, figure in enumerate(self.figures)
            ],
        }

    def gaps(
        self, figure: Figure, bodies: Bodies | None
    ) -> Float[np.ndarray, "frame joint"] | None:
        if self.solution is None or bodies is None or max(figure.edge) < 0:
            return None
        return gaps_of(figure, bodies, self.solution.joints, self.stride)

    def sensors(self, key: str, take: Take) -> dict[str, Any]:
        T = take.T_world_sensor[:: self.stride]
        body = _sensor_bodies(self.solution) if self.solution else {}
        wxyz = geometry.quat_continuous(geometry.quat_from_matrix(T[..., :3, :3]))
        seen = take.sensor_seen[:: self.stride]
        return {
            "sensors": [
                {"name": name, "body": body.get(name, -1)} for name in take.sensor_names
            ],
            "sensor_place": self.arrays.track(f"{key}.sensor_place", T[..., :3, 3]),
            "sensor_wxyz": self.arrays.track(f"{key}.sensor_wxyz", wxyz),
            "sensor_seen": self.arrays.small(f"{key}.sensor_seen", seen),
        }

    def truth(self, truth: Sequence[Motion], takes: Sequence[Take]) -> dict[str, Any]:
        """Return true motions for the header, take by take."""
        each = len(truth) // max(len(takes), 1)
        frames = [take.n_frames for take in takes for _ in range(each)]
        if frames != [motion.n_frames for motion in truth]:
            raise OptionError(
                "truth",
                found=f"motions of {[motion.n_frames for motion in truth]} frames",
                needed=f"as many in each take, of {[t.n_frames for t in takes]} frames",
            )
        groups = [truth[i * each : (i + 1) * each] for i in range(len(takes))]
        return {
            "subjects": [described(lone_figure(motion)) for motion in groups[0]],
            "takes": [
                {
                    "motions": [
                        moving(self.arrays, f"truth.{i}.{j}", motion, self.stride)
                        for j, motion in enumerate(group)
                    ]
                }
                for i, group in enumerate(groups)
            ],
        }


def _markers(take: Take, bodies: Bodies | None) -> list[dict[str, Any]]:
    n = len(take.labels)
    body = bodies.marker_body if bodies else np.full(n, -1)
    sure = bodies.marker_confidence if bodies else np.full(n, np.nan)
    return [
        {"label": label, "body": int(body[i]), "confidence": sure[i]}
        for i, label in enumerate(take.full_labels)
    ]


def _sensor_bodies(solution: Solution) -> dict[str, int]:
    """Return which body each sensor is; nothing where bodies are made of markers.

    Such bodies are in the order in which the takes first show their sensors. They may
    be called otherwise by now.
    """
    several = solution.bodies
    if any(bodies.shared.any() for bodies in several):
        return {}
    sensors = dict.fromkeys(name for one in several for name in one.take.sensor_names)
    whole = all(len(bodies.names) == len(sensors) for bodies in several)
    return {name: i for i, name in enumerate(sensors)} if whole else {}


def _read_report(takes: Sequence[Take]) -> Report:
    return Report(tuple(f for take in takes for f in take.source.findings))


def _told(report: Report, takes: Sequence[Take]) -> dict[str, Any]:
    """Return findings, tables and seconds for the header."""
    return {
        "findings": [_finding(finding, takes) for finding in report.findings],
        "tables": {
            name: {"columns": table.columns, "rows": table.rows}
            for name, table in report.tables.items()
        },
        "seconds": dict(report.seconds),
    }


def _finding(finding: Finding, takes: Sequence[Take]) -> dict[str, Any]:
    here = [i for i, take in enumerate(takes) if finding in take.source.findings]
    here += [i for i in range(len(takes)) if finding.subject == f"take {i + 1}"]
    return {
        "code": finding.code,
        "stage": finding.stage,
        "severity": finding.severity,
        "message": finding.message,
        "subject": finding.subject,
        "take": 0 if len(takes) == 1 else next(iter(here), -1),
        "frames": finding.frames,
        "value": finding.value,
    }


def _found(solution: Solution) -> dict[str, Any]:
    """Return bodies, links, ground and options for the header."""
    bodies, pair = solution.bodies[0], solution.joints.pair
    return {
        "bodies": [
            {
                "name": name,
                "rms": bodies.rms[i],
                "confidence": bodies.body_confidence[i],
                "determined": bool(bodies.determined[i]),
            }
            for i, name in enumerate(bodies.names)
        ],
        "links": [
            {
                "bodies": pair[loop.pair],
                "kind": loop.kind or solution.joints.kind[loop.pair],
                "first": loop.first,
                "last": loop.last,
            }
            for loop in solution.tree.loops
        ],
        "ground": _ground(solution),
        "options": solution.options,
    }


def _edits(solution: Solution | None) -> Sequence[Mapping[str, Any]]:
    """Return the edits that a solution was made with."""
    return solution.options.get("edits", ()) if solution else ()


def _ground(solution: Solution) -> dict[str, Any]:
    """Return the ground for the header: as it was set by hand, else as it was found."""
    for edit in reversed([e for e in _edits(solution) if e["do"] == "ground"]):
        size = float(np.linalg.norm(edit["normal"]))
        normal = [x / size for x in edit["normal"]]
        return {"normal": normal, "height": edit["height"] / size}
    found = [f.value for f in solution.report.findings if f.code == "ground"]
    return LEVEL | {"height": found[0] if found else 0.0}
