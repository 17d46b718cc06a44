"""3-D keypoints as JSON: sequences of OpenPose, and the same in one file.

OpenPose writes one file per frame, `walk_000000000012_keypoints.json`:

    {"people": [{"person_id": [0], "pose_keypoints_3d": [x, y, z, confidence, ...]}]}

Any file of a sequence stands for all of it. Programs that write OpenPose's way also put
all frames in one file: a list of such frames, or `{"fps": ..., "frames": [...]}`.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from marey.io.contract import Format
from marey.io.file import Facts, File
from marey.io.text.encoding import normalize_text
from marey.io.text.json_content import load_json
from marey.io.text.names import unique_names
from marey.numerics import Int
from marey.take import Take

NUMBERED = re.compile(r"(?P<before>.*?)(?P<number>\d+)(?P<after>(_keypoints)?\.json)")
"""Name of a file that is one frame of a sequence."""

KEYS = re.compile(r"(?P<part>\w+)_keypoints_3d")
"""Key of a person's 3-D keypoints, such as "pose_keypoints_3d"."""

COMPONENTS = 4
"""Numbers of one keypoint: x, y, z and its confidence."""

MAX_GAP_RATIO = 10
"""Frames from the first to the last number of a sequence for each of its files, beyond
which the numbers count no frames. Guards memory."""

COCO_18 = """Nose Neck RShoulder RElbow RWrist LShoulder LElbow LWrist RHip RKnee RAnkle
LHip LKnee LAnkle REye LEye REar LEar"""
BODY_25 = """Nose Neck RShoulder RElbow RWrist LShoulder LElbow LWrist MidHip RHip RKnee
RAnkle LHip LKnee LAnkle REye LEye REar LEar LBigToe LSmallToe LHeel RBigToe RSmallToe
RHeel"""
MPI_15 = """Head Neck RShoulder RElbow RWrist LShoulder LElbow LWrist RHip RKnee RAnkle
LHip LKnee LAnkle Chest"""
BODIES = {len(names.split()): names.split() for names in (BODY_25, COCO_18, MPI_15)}
"""Names of the keypoints of OpenPose's models of the body, by their number."""

UNSEEN = (np.nan, np.nan, np.nan, 0.0)
"""A keypoint that was not found: no position, confidence 0."""

Keypoint = tuple[str, str, int]
"""Person, part ("pose", "hand_left") and number of a keypoint."""


def sniff(head: bytes) -> bool:
    """Whether a file begins like keypoints of OpenPose."""
    return normalize_text(head).lstrip()[:1] in (b"{", b"[") and b'"people"' in head


def read_take(file: File) -> Take:
    """Return the keypoints of a sequence as markers, with their confidences.

    Raises:
        FormatError: If a file is no such JSON, or its keypoints have no third
            coordinate.
    """
    content = load_json(file, file.path)
    rate = content.get("fps") if isinstance(content, dict) else None
    frames = content.get("frames") if isinstance(content, dict) else content
    if isinstance(frames, list):
        numbers = np.arange(len(frames))
    else:
        numbers, frames = _read_sequence(file, content)
    try:
        keypoints = [_keypoints(frame) for frame in frames]
        stated = f"{float(rate):g}" if rate is not None else None
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        found = f"{type(error).__name__}: {error}"
        file.fail("frames with people and their keypoints", found, cause=error)
    return _take(file, numbers, keypoints, stated)


def _read_sequence(
    file: File, content: Any
) -> tuple[Int[np.ndarray, " file"], list[Any]]:
    """Return the frames of the sequence that a file belongs to, and their numbers."""
    own = NUMBERED.fullmatch(file.path.name)
    if own is None:
        return np.arange(1), [content]
    paths = {}
    for path in file.path.parent.glob("*.json"):
        match = NUMBERED.fullmatch(path.name)
        if (
            match
            and match["before"] == own["before"]
            and match["after"] == own["after"]
        ):
            paths[int(match["number"])] = path
    order = sorted(paths)
    numbers = np.array([number - order[0] for number in order], dtype=np.int64)
    numbers //= max(np.gcd.reduce(numbers), 1)
    if numbers[-1] >= MAX_GAP_RATIO * len(numbers):
        file.fail(
            "files numbered by their frames",
            f"{len(order)} files with numbers from {order[0]} to {order[-1]}",
        )
    file.note(
        "sequence-read",
        f"{len(order)} files of the sequence {file.path.name} were read",
        severity="info",
        value=len(order),
    )
    return numbers, [load_json(file, paths[number]) for number in order]


def _keypoints(frame: Any) -> dict[Keypoint, Sequence[float]]:
    """Return the 3-D keypoints of a frame, by person, part and number.

    OpenPose gives those that it did not find no confidence, and the position 0.
    """
    found: dict[Keypoint, Sequence[float]] = {}
    for place, person in enumerate(frame["people"]):
        number = np.ravel(person.get("person_id", -1))
        name = str(int(number[0]) if len(number) and number[0] >= 0 else place)
        parts = {k: v for k in person if (v := KEYS.fullmatch(k)) is not None}
        for key, part in parts.items():
            values = np.array(person[key], dtype=float).reshape(-1, COMPONENTS)
            for i, value in enumerate(values.tolist()):
                if value[-1] > 0.0:
                    found[name, part["part"], i] = value
                else:
                    found.setdefault((name, part["part"], i), UNSEEN)
    return found


def _take(
    file: File,
    numbers: Int[np.ndarray, " file"],
    frames: Sequence[dict[Keypoint, Sequence[float]]],
    rate: str | None,
) -> Take:
    """Return the take of keypoints by frame; frames without a file are gaps."""
    keypoints = sorted({keypoint for frame in frames for keypoint in frame})
    if not keypoints:
        file.fail("keypoints with x, y and z", "two coordinates, or no people")
    at = {keypoint: i for i, keypoint in enumerate(keypoints)}
    values = np.full((int(numbers[-1]) + 1, len(keypoints), COMPONENTS), np.nan)
    for number, frame in zip(numbers.tolist(), frames, strict=True):
        for keypoint, value in frame.items():
            values[number, at[keypoint]] = value
    values[~np.isfinite(values[..., :3]).all(axis=-1), :3] = np.nan
    note = "none in keypoints of OpenPose"
    facts = Facts(
        file.decide_fact("unit", assumed="m", note=note),
        file.decide_fact("up", assumed="-y", note="the first camera looks ahead"),
        file.decide_fact("rate", stated=rate, assumed="30", note=note),
    )
    return file.take(
        facts,
        points=values[..., :3],
        markers=unique_names(file, _names(keypoints), "marker"),
        confidence=values[..., 3],
    )


def _names(keypoints: Sequence[Keypoint]) -> list[str]:
    """Return a name for each keypoint, with the person if there are several."""
    people = sorted({person for person, _, _ in keypoints})
    n_body = 1 + max((i for _, part, i in keypoints if part == "pose"), default=0)
    body = BODIES.get(n_body, [])
    names = []
    for person, part, i in keypoints:
        name = body[i] if part == "pose" and body else f"{part}_{i}"
        names.append(f"person{person}:{name}" if len(people) > 1 else name)
    return names


FORMAT = Format(
    name="openpose",
    title="3-D keypoints as OpenPose writes them (JSON)",
    suffixes=(".json",),
    sniff=sniff,
    read_take=read_take,
    sequence=NUMBERED,
)
"""3-D keypoints of OpenPose, one file per frame or all frames in one."""
