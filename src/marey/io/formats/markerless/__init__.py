"""Segments of markerless trials as JSON, as Qualisys' web reports have them (Theia).

One file has all frames, `walk-3d-data.json`; positions are in millimetres:

    {"frameRate": 100, "labels": [{"name": ...}, ...], "segments": [{"name": ...}, ...],
     "frames": [{"markers": [[x, y, z], ...], "segmentPos": [[x, y, z], ...],
                 "segmentRot": [[a, b, c], ...]}, ...]}

The origin of a segment is its joint with the segment before, and gets the name of that
joint: RThigh is the point RHip. The convention of the
angles `segmentRot` is not public, so they are left out, with a finding. Trials with
markers have them in `markers`; the segments are computed from these.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from marey.io.contract import Format
from marey.io.file import Facts, File
from marey.io.text.encoding import normalize_text
from marey.io.text.json_content import load_json
from marey.io.text.names import unique_names
from marey.numerics import Float
from marey.take import Take

KEYS = (b'"frameRate"', b'"segments"')
"""What such a file has near its beginning."""

JOINT_OF_SEGMENT = {
    side + segment: side + joint
    for side in "LR"
    for segment, joint in (
        *(("Thigh", "Hip"), ("Leg", "Knee"), ("Foot", "Ankle")),
        *(("Arm", "Shoulder"), ("Forearm", "Elbow"), ("Hand", "Wrist")),
    )
}
"""The joint at the origin of each segment of a limb."""


def sniff(head: bytes) -> bool:
    """Whether a file begins like segments of a markerless trial."""
    text = normalize_text(head).lstrip()
    return text[:1] == b"{" and all(key in text for key in KEYS)


def read_take(file: File) -> Take:
    """Return the markers of a trial; of one without markers the origins of segments.

    With `computed`, a trial with markers also gives the origins of its segments.

    Raises:
        FormatError: If the file is no such JSON.
    """
    content = load_json(file, file.path)
    try:
        frames = content["frames"]
        markers = _positions(frames, "markers", content.get("labels", ()))
        segments = _positions(frames, "segmentPos", content["segments"])
        segments = {JOINT_OF_SEGMENT.get(k, k): xyz for k, xyz in segments.items()}
        rate = f"{float(content['frameRate']):g}"
        n_rotations = len(frames[0].get("segmentRot", ())) if frames else 0
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        found = f"{type(error).__name__}: {error}"
        file.fail("frames with segmentPos or markers", found, cause=error)
    file.note_count(
        "rotations-left-out",
        n_rotations,
        "the angles of {} segments are left out, as their convention is not public; "
        "export C3D with rotations to keep them",
    )
    if markers and not file.options.computed:
        file.note_count(
            "computed-left-out",
            len(segments),
            "left out the origins of {} segments; computed=True keeps them",
            severity="info",
        )
        segments = {}
    return _take(file, {**segments, **markers}, rate)


def _positions(
    frames: Sequence[Mapping[str, Any]], key: str, named: Sequence[Mapping[str, Any]]
) -> dict[str, Float[np.ndarray, "frame 3"]]:
    """Return positions by name; those that a frame does not have are NaN."""
    values = np.full((len(frames), len(named), 3), np.nan)
    for row, frame in zip(values, frames, strict=True):
        positions = frame.get(key) or ()
        if len(positions) not in (0, len(named)):
            raise ValueError(f"{len(positions)} {key} of {len(named)}")
        for place, position in enumerate(positions):
            row[place] = np.nan if position is None else position
    values[~np.isfinite(values).all(axis=-1)] = np.nan
    return {str(one["name"]): values[:, k] for k, one in enumerate(named)}


def _take(
    file: File, positions: Mapping[str, Float[np.ndarray, "frame 3"]], rate: str
) -> Take:
    if not positions:
        file.fail("segments or markers", "none")
    names = unique_names(file, list(positions), "marker")
    note = "none in the file"
    facts = Facts(
        file.decide_fact("unit", assumed="mm", note=note),
        file.decide_fact("up", assumed="z", note=note),
        file.decide_fact("rate", stated=rate, assumed="100", note="frameRate"),
    )
    points = np.stack(list(positions.values()), axis=1)
    return file.take(facts, points=points, markers=names)


FORMAT = Format(
    name="markerless",
    title="Segments of markerless trials (JSON of Qualisys' web reports, Theia)",
    suffixes=(".json",),
    sniff=sniff,
    read_take=read_take,
)
"""Segments and markers of a trial, all frames in one file."""
