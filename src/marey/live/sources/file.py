"""A recording played as a stream, the way to try it without hardware."""

import time

import numpy as np

from marey.io import read
from marey.live.address import Address
from marey.live.frame import UNLABELLED, Frame
from marey.live.sources.contract import StreamSource


class FileSource(StreamSource):
    """Plays the frames of a file at their times.

    Options of the address: `speed` (1 is real time, 0 as fast as possible), `loop`, and
    `unlabelled`: the points that are seen come without labels, in another order each
    time, as raw clouds do.
    Numbers and times go on when the file begins again. It begins when it is first asked
    for a frame: what is prepared before does not miss any.
    """

    can_return = False

    def __init__(self, address: Address, timeout: float) -> None:
        super().__init__(address)
        address.check_options("speed", "loop", "unlabelled")
        self._speed = address.number("speed", 1.0)
        self._loop = address.options.get("loop", "0") != "0"
        self.take = read(address.target)
        self.rate = self.take.rate
        self._number = 0
        self._begin: float | None = None
        is_bare = address.options.get("unlabelled", "0") != "0"
        self._rng = np.random.default_rng(0) if is_bare else None

    def receive(self, timeout: float) -> Frame | None:
        """Return the next frame when its time has come."""
        take, number = self.take, self._number
        if number >= take.n_frames and not (self._loop and take.n_frames):
            self.has_ended = True
            return None
        if self._begin is None:
            self._begin = time.monotonic()
        if self._speed > 0.0:
            due = self._begin + number / (take.rate * self._speed)
            wait = due - time.monotonic()
            time.sleep(max(0.0, min(wait, timeout)))
            if wait > timeout:
                return None
        self._number += 1
        row = number % take.n_frames
        points, labels = take.points[row], take.full_labels
        if self._rng is not None:
            points = self._rng.permutation(points[take.seen[row]])
            labels = tuple(f"{UNLABELLED}{i + 1}" for i in range(len(points)))
        return Frame(
            number=number,
            time=take.start + number / take.rate,
            arrival=time.monotonic(),
            points=points,
            labels=labels,
            T_world_sensor=take.T_world_sensor[row],
            sensor_names=take.sensor_names,
        )
