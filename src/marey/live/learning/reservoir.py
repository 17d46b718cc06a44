"""Frames of a stream to learn a skeleton from, in memory that does not grow."""

from dataclasses import dataclass
from math import ceil
from threading import Lock

import numpy as np

from marey.anatomy.names import split_subjects
from marey.live.frame import MAX_NAMES, Frame
from marey.numerics import Array, Float, Int
from marey.numerics.robust import mean_where
from marey.numerics.thresholds import MOTION_TIME_S
from marey.take import Take

BLOCK_FRAMES = 64
"""Consecutive frames that are kept or forgotten together, so that errors in time still
show. Higher keeps longer pieces of fewer poses. Chosen by hand."""

MAX_BLOCKS = 128
"""Blocks that are kept: 8192 frames, a minute and more. Higher takes more memory and a
longer estimate. Chosen by hand."""

MAX_VALUES = 2**23
"""Numbers that are kept in all blocks, 64 MiB: of more than 340 markers or 64 sensors
fewer blocks are kept. Higher takes more memory when a sender makes up names."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some consecutive frames."""

    position: int
    """Position of the first frame in the stream, in frames."""

    points: Float[Array, "frame marker 3"]
    T_world_sensor: Float[Array, "frame sensor 4 4"]


class FrameReservoir:
    """Keeps the frames of a stream, and the most different ones when there are many.

    Up to `MAX_BLOCKS` blocks every frame is kept, so that an estimate from them is that
    of the whole recording. Then each new block competes: of the two blocks whose poses
    are most alike the newer one is forgotten. A pose is described by mean and standard
    deviation of distances between markers or sensors within the block, which do not
    depend on where the subject is. One thread may add while another takes.
    """

    def __init__(self) -> None:
        self.version = 0
        """Number of changes of what is kept; 0 = nothing is."""
        self._labels: dict[str, int] = {}
        self._sensors: dict[str, int] = {}
        self._blocks: list[Block] = []
        self._described = np.zeros((0, 0))
        self._distance = np.zeros((0, 0))
        self._open: list[Frame] = []
        self._position, self._number = 0, -1
        self._lock = Lock()

    @property
    def n_frames(self) -> int:
        """Number of frames that are kept."""
        return sum(len(block.points) for block in self._blocks) + len(self._open)

    def add(self, frame: Frame) -> None:
        """Keep a frame that is newer than those before, and forget others if needed."""
        with self._lock:
            for names, columns in (
                (frame.labels, self._labels),
                (frame.sensor_names, self._sensors),
            ):
                for name in names:
                    if name not in columns and len(columns) < MAX_NAMES:
                        columns[name] = len(columns)
            step = frame.number - self._number
            is_next = step == 1 or (not self._blocks and not self._open)
            if not is_next or len(self._open) == BLOCK_FRAMES:
                self._close_block()
            # A sender that counts from the start leaves a gap of unknown length.
            self._position += step if step > 0 else BLOCK_FRAMES
            self._number = frame.number
            self._open.append(frame)
            if len(self._blocks) < self._most_blocks():
                self.version += 1

    def take(self, rate: float) -> Take:
        """Return what is kept as one take; pieces are apart by unseen frames.

        Args:
            rate: Frames per second.
        """
        with self._lock:
            blocks = [*self._blocks, *([self._block()] if self._open else [])]
            labels, names = tuple(self._labels), tuple(self._sensors)
        pause = max(1, ceil(MOTION_TIME_S * rate))
        n_markers, n_sensors = len(labels), len(names)
        points: list[Array] = [np.zeros((0, n_markers, 3))]
        sensors: list[Array] = [np.zeros((0, n_sensors, 4, 4))]
        due = blocks[0].position if blocks else 0
        for block in blocks:
            missing = min(max(block.position - due, 0), pause)
            if missing:
                points.append(np.full((missing, n_markers, 3), np.nan))
                sensors.append(np.full((missing, n_sensors, 4, 4), np.nan))
            points.append(_widen(block.points, n_markers))
            sensors.append(_widen(block.T_world_sensor, n_sensors))
            due = block.position + len(block.points)
        bare, subjects = split_subjects(labels)
        return Take(
            rate=rate,
            points=np.concatenate(points),
            labels=bare,
            subjects=subjects,
            T_world_sensor=np.concatenate(sensors),
            sensor_names=names,
        )

    def _block(self) -> Block:
        """Return the frames that are not in a block yet as one."""
        frames = self._open
        points = np.full((len(frames), len(self._labels), 3), np.nan)
        sensors = np.full((len(frames), len(self._sensors), 4, 4), np.nan)
        for row, frame in enumerate(frames):
            _fill(points[row], frame.points, frame.labels, self._labels)
            _fill(sensors[row], frame.T_world_sensor, frame.sensor_names, self._sensors)
        return Block(self._position - len(frames) + 1, points, sensors)

    def _close_block(self) -> None:
        """Put the newest frames into a block; forget one if there are too many."""
        if not self._open:
            return
        self._blocks.append(self._block())
        self._open = []
        while len(self._blocks) > self._most_blocks():
            self._compare_blocks()
            closest = np.unravel_index(np.argmin(self._distance), self._distance.shape)
            newer = int(max(closest))
            self.version += newer < len(self._blocks) - 1
            del self._blocks[newer]
            self._described = np.delete(self._described, newer, 0)
            self._distance = np.delete(np.delete(self._distance, newer, 0), newer, 1)

    def _most_blocks(self) -> int:
        """Return how many blocks are kept of the markers and sensors that have come."""
        n_values = BLOCK_FRAMES * (3 * len(self._labels) + 4 * 4 * len(self._sensors))
        return max(1, min(MAX_BLOCKS, MAX_VALUES // max(n_values, 1)))

    def _compare_blocks(self) -> None:
        """Add the newest blocks to the distances between all blocks."""
        sizes = len(self._labels), len(self._sensors)
        n_features = 2 * len(_pairs(sum(sizes))[0])
        if self._described.shape[1] != n_features:  # Names came: compare all again.
            self._described, self._distance = (
                np.zeros((0, n_features)),
                np.zeros((0, 0)),
            )
        known, n = len(self._described), len(self._blocks)
        described = [_describe(block, sizes) for block in self._blocks[known:]]
        self._described = np.concatenate([self._described, described])
        distance = np.full((n, n), np.inf)
        distance[:known, :known] = self._distance
        for new in range(known, n):
            apart = np.abs(self._described[:new] - self._described[new])
            both = np.isfinite(apart)
            mean = np.where(both, apart, 0.0).sum(axis=1) / np.maximum(
                both.sum(axis=1), 1
            )
            distance[new, :new] = distance[:new, new] = mean
        self._distance = distance


def _fill(
    row: Array, values: Array, names: tuple[str, ...], columns: dict[str, int]
) -> None:
    """Write values into the columns of their names."""
    column = np.array([columns.get(name, -1) for name in names], dtype=np.int64)
    row[column[column >= 0]] = values[column >= 0]


def _widen(values: Array, count: int) -> Array:
    """Return values with columns of NaN for markers or sensors that came later."""
    missing = count - values.shape[1]
    shape = (len(values), missing, *values.shape[2:])
    return np.concatenate([values, np.full(shape, np.nan)], axis=1)


def _describe(block: Block, sizes: tuple[int, int]) -> Float[Array, " feature"]:
    """Return mean and standard deviation of distances of pairs; NaN where unseen."""
    points = _widen(block.points, sizes[0])
    positions = _widen(block.T_world_sensor, sizes[1])[..., :3, 3]
    everything = np.concatenate([points, positions], axis=1)
    a, b = _pairs(everything.shape[1])
    apart = np.linalg.norm(everything[:, a] - everything[:, b], axis=-1)
    seen = np.isfinite(apart)
    mean = mean_where(apart, seen)
    square = mean_where((apart - mean) ** 2, seen)
    return np.concatenate([mean, np.sqrt(square)])


def _pairs(count: int) -> tuple[Int[Array, " pair"], Int[Array, " pair"]]:
    r"""Return the pairs that describe a pose: those 1, 2, 4, 8 ... columns apart.

    They connect near and far parts, and grow as :math:`n \log n`, not :math:`n^2`.
    """
    steps = [2**k for k in range(max(count - 1, 0).bit_length())]
    first = [np.arange(count - step) for step in steps]
    second = [np.arange(step, count) for step in steps]
    none = np.arange(0)
    return np.concatenate([none, *first]), np.concatenate([none, *second])
