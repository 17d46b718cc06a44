"""The scene of a page: a take, a motion or a solution, encoded as one blob."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

import numpy as np

from marey.bodies import Bodies
from marey.errors import OptionError
from marey.io.content import usual_content
from marey.io.formats.html import subjects
from marey.io.formats.html.arrays import SceneArrays
from marey.io.formats.html.subjects import SceneSubject
from marey.io.registry import formats_for
from marey.motion import Motion
from marey.numerics import Float, geometry
from marey.report import Cause, Finding, Report
from marey.solution import Solution
from marey.take import Take

FORMAT_VERSION = 1


MAX_DRAWN_ITEMS = 4_000_000
"""Frames times markers, sensors and joints that are drawn; of longer takes only every
second, third, ... frame is."""


LEVEL_GROUND = {"normal": [0.0, 0.0, 1.0], "height": 0.0}


NO_SOLUTION: Mapping[str, Any] = {
    "bodies": [],
    "links": [],
    "ground": LEVEL_GROUND,
    "options": {},
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SceneOptions:
    """What a page shows in addition to a take, motion or solution."""

    title: str = ""
    """Title of the page; the file's name when empty."""

    unsolved: str = ""
    """Why there is no solution, in plain words."""

    truth: Sequence[Motion] = ()
    """True motions, drawn as ghosts: those of the first take, then of the next."""

    measured: Mapping[str, float] = field(default_factory=dict)
    """Bone lengths by tape measure, in metres by joint."""

    live: bool = False
    """Whether poses follow by messages."""

    editable: bool = False
    edits: Sequence[Mapping[str, Any]] = ()
    """The edits that are in the solution already."""

    max_drawn_items: int = MAX_DRAWN_ITEMS
    """Frames times markers, sensors and joints that are drawn at most."""


def encode_scene(
    thing: Solution | Motion | Take | None, options: SceneOptions | None = None
) -> bytes:
    """Return the encoded scene of a take, motion or solution; of None, an empty one.

    Positions are rounded to 5 µm. If a take has more than `max_drawn_items`
    frames times items, only every second, third, ... frame is drawn.

    Raises:
        OptionError: If a true motion has not the frames of its take.
    """
    options = options or SceneOptions()
    takes, shown, solution = _takes_and_subjects(thing)
    stride = _stride(takes, shown, options.max_drawn_items)
    encoder = _SceneEncoder(SceneArrays(), stride, shown, solution)
    header = {
        "format": FORMAT_VERSION,
        "marey": version("marey"),
        "title": options.title or _title(takes),
        "editable": options.editable,
        "live": options.live,
        "unsolved": options.unsolved,
        "subjects": encoder.encode_subjects(),
        "takes": [encoder.encode_take(i, take) for i, take in enumerate(takes)],
        "truth": encoder.encode_truth(options.truth, takes) if options.truth else None,
        "measured": {name: float(x) for name, x in options.measured.items()},
        "edits": list(options.edits) or _edits(solution),
        "exports": list_exports(thing) if thing is not None else [],
        **_encode_report(solution.report if solution else _read_report(takes), takes),
        **(_encode_solution(solution) if solution else NO_SOLUTION),
    }
    return encoder.arrays.encode(header)


def scene_title(thing: Solution | Motion | Take) -> str:
    """Return the title of a scene: the name of its file, if there is one."""
    return _title(_takes_and_subjects(thing)[0])


def _title(takes: Sequence[Take]) -> str:
    more = f" and {len(takes) - 1} more" if len(takes) > 1 else ""
    return _name(takes[0], "take") + more if takes else ""


def _takes_and_subjects(
    thing: Solution | Motion | Take | None,
) -> tuple[tuple[Take, ...], list[SceneSubject], Solution | None]:
    if thing is None:
        return (), [], None
    if isinstance(thing, Solution):
        return thing.takes, subjects.scene_subjects(thing), thing
    if isinstance(thing, Take):
        return (thing,), [], None
    rate = thing.rate if np.isfinite(thing.rate) else 1.0
    nothing = np.zeros((thing.n_frames, 0, 3))
    take = Take(rate=rate, points=nothing, start=thing.start, source=thing.source)
    return (take,), [subjects.subject_of_motion(thing)], None


def _stride(takes: Sequence[Take], shown: Sequence[SceneSubject], most: int) -> int:
    joints = sum(subject.skeleton.n_joints for subject in shown)
    n_items = sum(
        take.n_frames * (len(take.labels) + len(take.sensor_names) + joints)
        for take in takes
    )
    return max(-(-n_items // most), 1)


def _name(take: Take, otherwise: str) -> str:
    return PurePath(take.source.path).name or otherwise


@dataclass(frozen=True, slots=True, eq=False)
class _SceneEncoder:
    """Encoder of the parts of a scene; `arrays` collects their values."""

    arrays: SceneArrays
    stride: int
    """Step between drawn frames."""

    subjects: list[SceneSubject]
    solution: Solution | None

    def encode_subjects(self) -> list[dict[str, Any]]:
        residual = self.solution.joints.residual if self.solution else None
        return [subjects.encode_subject(s, residual) for s in self.subjects]

    def encode_take(self, number: int, take: Take) -> dict[str, Any]:
        key, stride = str(number), self.stride
        bodies = self.solution.bodies[number] if self.solution else None
        points = take.points[::stride]
        motions = [subject.motions[number] for subject in self.subjects]
        residual = subjects.marker_residuals(take, motions, stride)
        state = subjects.marker_states(take, residual, stride)
        all_gaps = [self.joint_gaps(subject, bodies) for subject in self.subjects]
        return {
            "name": _name(take, f"take {number + 1}"),
            "rate": take.rate,
            "start": take.start,
            "frames": len(points),
            "recorded": take.n_frames,
            "stride": stride,
            "markers": _encode_markers(take, bodies),
            "points": self.arrays.track(f"{key}.points", points),
            "state": self.arrays.small(f"{key}.state", state),
            **self.encode_sensors(key, take, bodies),
            "motions": [
                self.encode_motion(f"{key}.{i}", take, motion, gaps)
                for i, (motion, gaps) in enumerate(zip(motions, all_gaps, strict=True))
            ],
        }

    def encode_motion(
        self,
        key: str,
        take: Take,
        motion: Motion,
        gaps: Float[np.ndarray, "frame joint"] | None,
    ) -> dict[str, Any]:
        """Return a motion for the header, with its clinical angles if it has any."""
        angles = subjects.encode_angles(self.arrays, key, motion, self.stride)
        return {
            **subjects.encode_motion(self.arrays, key, motion, self.stride, take, gaps),
            "angles": angles,
        }

    def joint_gaps(
        self, subject: SceneSubject, bodies: Bodies | None
    ) -> Float[np.ndarray, "frame joint"] | None:
        if self.solution is None or bodies is None or max(subject.edge) < 0:
            return None
        fits = self.solution.joints
        return subjects.joint_gaps(subject, bodies, fits, self.stride)

    def encode_sensors(
        self, key: str, take: Take, bodies: Bodies | None
    ) -> dict[str, Any]:
        T = take.T_world_sensor[:: self.stride]
        body: dict[str, int] = {}
        if bodies is not None:
            body = dict(zip(bodies.sensor_names, bodies.sensor_body, strict=True))
        wxyz = geometry.quat_continuous(geometry.quat_from_matrix(T[..., :3, :3]))
        seen = take.sensor_seen[:: self.stride]
        names = take.sensor_names
        return {
            "sensors": [{"name": n, "body": int(body.get(n, -1))} for n in names],
            "sensor_place": self.arrays.track(f"{key}.sensor_place", T[..., :3, 3]),
            "sensor_wxyz": self.arrays.track(f"{key}.sensor_wxyz", wxyz),
            "sensor_seen": self.arrays.small(f"{key}.sensor_seen", seen),
        }

    def encode_truth(
        self, truth: Sequence[Motion], takes: Sequence[Take]
    ) -> dict[str, Any]:
        """Return true motions for the header, take by take."""
        each = len(truth) // max(len(takes), 1)
        frames = [take.n_frames for take in takes for _ in range(each)]
        given = [motion.n_frames for motion in truth]
        if frames != given:
            raise OptionError(
                "truth",
                found=f"motions of {given} frames",
                needed=f"as many in each take, of {[t.n_frames for t in takes]} frames",
            )
        motions = [
            subjects.encode_motion(
                self.arrays, f"truth.{i // each}.{i % each}", motion, self.stride
            )
            for i, motion in enumerate(truth)
        ]
        shown = [subjects.subject_of_motion(motion) for motion in truth[:each]]
        return {
            "subjects": [subjects.encode_subject(subject) for subject in shown],
            "takes": [
                {"motions": motions[i * each : (i + 1) * each]}
                for i in range(len(takes))
            ],
        }


def _pick(thing: object, *names: str) -> dict[str, Any]:
    """Return some fields of a thing by name."""
    return {name: getattr(thing, name) for name in names}


def _encode_markers(take: Take, bodies: Bodies | None) -> list[dict[str, Any]]:
    n = len(take.labels)
    body = bodies.marker_body if bodies else np.full(n, -1)
    confidence = bodies.marker_confidence if bodies else np.full(n, np.nan)
    return [
        {"label": label, "body": int(body[i]), "confidence": confidence[i]}
        for i, label in enumerate(take.full_labels)
    ]


def _read_report(takes: Sequence[Take]) -> Report:
    return Report(tuple(f for take in takes for f in take.source.findings))


def _encode_report(report: Report, takes: Sequence[Take]) -> dict[str, Any]:
    """Return findings, alone and by cause, tables and seconds for the header."""
    tables = report.tables.items()
    return {
        "findings": [_encode_finding(finding, takes) for finding in report.findings],
        "causes": [_encode_cause(cause, report) for cause in report.causes],
        "tables": {name: _pick(table, "columns", "rows") for name, table in tables},
        "seconds": dict(report.seconds),
    }


def _encode_cause(cause: Cause, report: Report) -> dict[str, Any]:
    """Return a cause for the header: its sentence, and the numbers of its findings."""
    members = set(map(id, cause.findings))
    numbers = [i for i, one in enumerate(report.findings) if id(one) in members]
    return {**_pick(cause, "stage", "severity", "message"), "findings": numbers}


def _encode_finding(finding: Finding, takes: Sequence[Take]) -> dict[str, Any]:
    here = [i for i, take in enumerate(takes) if finding in take.source.findings]
    here += [i for i in range(len(takes)) if finding.subject == f"take {i + 1}"]
    return {
        **_pick(finding, "code", "stage", "severity", "message", "subject"),
        "take": 0 if len(takes) == 1 else next(iter(here), -1),
        **_pick(finding, "frames", "value"),
    }


def _encode_solution(solution: Solution) -> dict[str, Any]:
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
        "ground": _encode_ground(solution),
        "options": solution.options,
    }


def _edits(solution: Solution | None) -> Sequence[Mapping[str, Any]]:
    """Return the edits that a solution was made with."""
    return solution.options.get("edits", ()) if solution else ()


def _encode_ground(solution: Solution) -> dict[str, Any]:
    """Return the ground for the header: as it was set by hand, else as it was found."""
    for edit in reversed([e for e in _edits(solution) if e["do"] == "ground"]):
        size = float(np.linalg.norm(edit["normal"]))
        normal = [x / size for x in edit["normal"]]
        return {"normal": normal, "height": edit["height"] / size}
    found = [f.value for f in solution.report.findings if f.code == "ground"]
    return LEVEL_GROUND | {"height": found[0] if found else 0.0}


def list_exports(thing: Solution | Motion | Take) -> list[dict[str, Any]]:
    """Return title, suffixes and contents of the formats of a thing, for the header.

    A format of tables has one suffix, and the contents that `write` accepts of this
    thing; any other format has no contents to choose from.
    """
    contents = _table_contents(thing)
    exports = []
    for format in formats_for(thing):
        is_table = format.write_table is not None and bool(contents)
        exports.append(
            {
                "title": format.title,
                "suffixes": format.suffixes[:1] if is_table else format.suffixes,
                "contents": contents if is_table else [],
            }
        )
    return exports


def _table_contents(thing: Solution | Motion | Take) -> list[str]:
    """Return what tables of a thing can hold; [] if there is nothing to choose."""
    if isinstance(thing, Take) or (isinstance(thing, Solution) and not thing.subjects):
        return []
    motion = thing if isinstance(thing, Motion) else thing.subjects[0].motions[0]
    skeleton = motion.skeleton
    usual = usual_content(skeleton)
    markers = ["markers"] if len(skeleton.marker_labels) else []
    return [usual, *(["joints"] if usual != "joints" else []), *markers]
