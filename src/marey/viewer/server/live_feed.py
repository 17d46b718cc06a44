"""A stream for pages: its figure as a scene, its poses and its state as messages."""

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from marey.anatomy.names import split_subjects
from marey.bodies import Bodies
from marey.errors import MareyError
from marey.io.formats.html import SceneOptions, encode_scene, to_json
from marey.live import LivePose, Stream
from marey.live.live_stream import STALE_S
from marey.live.posing.tracking import SubjectPose, assess_subjects
from marey.motion import Motion
from marey.numerics import geometry
from marey.pipeline.reporting.readiness import JointReadiness, assess_joints
from marey.pipeline.stages.bodies import NO_JOINTS
from marey.skeleton import Skeleton, marker_columns
from marey.solution import Solution, Subject
from marey.take import Take, match_labels
from marey.tree import Tree

DIGITS = 4
"""Decimals of metres in messages: a tenth of a millimetre."""

NOWHERE = np.full((1, 3), np.nan)
"""Place of a subject that has left."""

Layout = tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...]]


class LiveFeed:
    """Reads a stream in a thread, and keeps the newest scene and pose for pages.

    Args:
        stream: The stream, which the feed closes at its end.
        title: Title of the page.
    """

    def __init__(self, stream: Stream, title: str) -> None:
        self.stream, self._title = stream, title
        self.scene = encode_scene(None, SceneOptions(title=title, live=True))
        """The figure and the markers as they are now, without their motion."""
        self.version = 0
        """Number of scenes so far."""
        self.count = 0
        """Number of poses so far."""
        self.message = ""
        """The newest pose, as JSON."""
        self.trouble = ""
        """Why the stream ended; "" while it runs."""
        self._layout: Layout | None = None
        self._last_seen: dict[str, float] = {}
        self._readiness: tuple[tuple[str, tuple[JointReadiness, ...]], ...] = ()
        self._subjects: tuple[SubjectPose, ...] = ()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="marey live feed")
        self._thread.daemon = True
        self._thread.start()

    def _run(self) -> None:
        try:
            for pose in self.stream:
                self._show(pose)
                if self._stop.is_set():
                    return
            self.trouble = "the stream has ended"
        except Exception as error:
            self.trouble = str(error)
            if not isinstance(error, MareyError):
                raise

    def _show(self, pose: LivePose) -> None:
        frame = pose.frame
        skeletons = tuple(id(subject.skeleton) for subject in pose.subjects)
        layout = (frame.labels, frame.sensor_names, skeletons)
        if layout != self._layout:
            self._layout = layout
            if not self.stream.is_virtual:  # there, nothing is estimated
                self._readiness = tuple(
                    (one.name, assess_joints(one.skeleton)) for one in pose.subjects
                )
            options = SceneOptions(title=self._title, live=True)
            self.scene = encode_scene(_still(pose), options)
            self.version += 1
        self._subjects = pose.subjects
        present = self._find_present(pose)
        self.message = json.dumps(_pose_message(pose, present, self.version))
        self.count += 1

    def _find_present(self, pose: LivePose) -> list[bool]:
        """Return which subjects were seen lately; the pose of others is a guess."""
        now = pose.frame.arrival
        self._last_seen |= {one.name: now for one in pose.subjects if one.n_seen}
        last_seen = [self._last_seen.get(one.name, -np.inf) for one in pose.subjects]
        return [now - last < STALE_S for last in last_seen]

    def state(self) -> dict[str, Any]:
        """Return connection, recording and what still needs to move, for pages."""
        found = self.stream.statistics
        facts: dict[str, Any] = to_json(
            {
                "type": "live",
                "version": self.version,
                "is_live": self.stream.is_live and not self.trouble,
                "trouble": self.trouble,
                "recording": self.stream.is_recording,
                "received": found.received,
                "lost": found.lost,
                "rate": found.rate,
                "learning": self.stream.is_learning,
                "virtual": self.stream.is_virtual,
                "joints": [
                    {"subject": name} | asdict(joint)
                    for name, joints in assess_subjects(self._readiness, self._subjects)
                    for joint in joints
                ],
            }
        )
        return facts

    def close(self) -> None:
        """End the stream and its thread."""
        self._stop.set()
        self.stream.close()
        self._thread.join(5.0)


def _pose_message(
    pose: LivePose, present: Sequence[bool], version: int
) -> dict[str, Any]:
    """Return markers, sensors and joints of a pose, in metres; None where unseen.

    Args:
        pose: The pose.
        present: Which of its subjects are there; the joints of others are None.
        version: Number of the scene that it belongs to.
    """
    T = pose.frame.T_world_sensor
    return {
        "type": "pose",
        "version": version,
        "number": pose.frame.number,
        "points": _numbers(pose.frame.points),
        "sensors": _numbers(T[:, :3, 3]),
        "turns": _numbers(geometry.quat_from_matrix(T[:, :3, :3])),
        "subjects": [
            {
                "place": _numbers(one.T_world_joint[:, :3, 3] if there else NOWHERE),
                "wxyz": _numbers(
                    geometry.quat_from_matrix(one.T_world_joint[:, :3, :3])
                ),
                "apart": [] if one.separation is None else _numbers(one.separation),
            }
            for one, there in zip(pose.subjects, present, strict=True)
        ],
    }


def _numbers(values: np.ndarray) -> list[float | None]:
    flat = np.round(values.ravel(), DIGITS).tolist()
    return [x if x == x else None for x in flat]


def _still(pose: LivePose) -> Solution | Take:
    """Return one frame as what a scene is made of."""
    frame = pose.frame
    labels, subjects_of_labels = split_subjects(frame.labels)
    take = Take(
        rate=1.0,
        points=frame.points[None],
        labels=labels,
        subjects=subjects_of_labels,
        T_world_sensor=frame.T_world_sensor[None],
        sensor_names=frame.sensor_names,
    )
    if not pose.subjects:
        return take
    subjects = tuple(
        Subject(one.name, one.skeleton, (_motion(one.skeleton, one.T_world_joint),))
        for one in pose.subjects
    )
    n = sum(one.skeleton.n_joints for one in pose.subjects)
    return Solution(
        takes=(take,),
        bodies=(_bodies(pose, take),),
        joints=NO_JOINTS,
        tree=Tree(
            parent=_parents(pose), edge=np.full(n, -1), margin=np.full(n, np.nan)
        ),
        subjects=subjects,
    )


def _motion(skeleton: Skeleton, T: np.ndarray) -> Motion:
    """Return a motion of one frame; joints that separate are drawn by messages."""
    local = T.copy()
    below = skeleton.parent >= 0
    local[below] = geometry.inverse(T[skeleton.parent[below]]) @ T[below]
    wxyz = geometry.quat_from_matrix(local[:, :3, :3])
    return Motion(skeleton=skeleton, T_world_root=T[None, 0], wxyz=wxyz[None], rate=1.0)


def _parents(pose: LivePose) -> np.ndarray:
    """Return the parent of every joint, those of all skeletons one after the other."""
    parents: list[int] = []
    for one in pose.subjects:
        start = len(parents)
        parents += [p + start if p >= 0 else -1 for p in one.skeleton.parent.tolist()]
    return np.array(parents)


def _bodies(pose: LivePose, take: Take) -> Bodies:
    """Return every joint as a body, with the markers on its bone."""
    body = np.full(len(take.labels), -1)
    sensor_body = np.full(len(take.sensor_names), -1)
    names: list[str] = []
    for one in pose.subjects:
        skeleton, start = one.skeleton, len(names)
        column = marker_columns(skeleton, take)
        body[column[column >= 0]] = start + skeleton.marker_joint[column >= 0]
        column = match_labels(skeleton.sensor_names, take.sensor_names)
        sensor_body[column[column >= 0]] = start + skeleton.sensor_joint[column >= 0]
        owner = f"{one.name}:" if len(pose.subjects) > 1 else ""
        names += [f"{owner}{name}" for name in skeleton.names]
    T = np.concatenate([one.T_world_joint for one in pose.subjects])
    n = len(names)
    return Bodies(
        take=take,
        names=tuple(names),
        T_world_body=T[None],
        determined=np.ones(n, dtype=bool),
        marker_body=body,
        shared=body[:, None] == np.arange(n),
        marker_confidence=np.full(len(body), np.nan),
        body_confidence=np.full(n, np.nan),
        marker_offset=np.full((len(body), 3), np.nan),
        rms=np.full(n, np.nan),
        sensor_names=take.sensor_names,
        sensor_body=sensor_body,
        T_body_sensor=np.tile(np.eye(4), (len(sensor_body), 1, 1)),
    )
