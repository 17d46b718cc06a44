"""Recordings of a stream that begin and end on demand."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Lock

from marey.errors import OptionError
from marey.live.address import Address
from marey.live.frame import Frame
from marey.live.recording.recorder import Recorder, check_recording
from marey.live.statistics import StreamStatistics

WAIT = "wait"


class RecordingSwitch:
    """Records every frame between a start and a stop.

    The first recording has the path of the address, later ones a number: "walk.c3d",
    "walk-2.c3d".

    Args:
        addresses: `record:walk.c3d`; with the option `wait` nothing is recorded before
            `start`.
        source: Address of the stream.
        rate: Frames per second; NaN if it is not known.
        overwrite: Replace files that exist.

    Raises:
        OptionError: If a file exists.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        *,
        source: str,
        rate: float,
        overwrite: bool,
    ) -> None:
        for address in addresses:
            address.check_options(WAIT)
            check_recording(Path(address.target), overwrite=overwrite)
        self._addresses, self._source = addresses, source
        self._rate, self._overwrite = rate, overwrite
        self._count, self._time = 0, 0.0
        self._recorders: list[Recorder] = []
        self._lock = Lock()
        if any(WAIT not in address.options for address in addresses):
            self.start()

    @property
    def is_recording(self) -> bool:
        """Whether frames are being recorded."""
        return bool(self._recorders)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are being recorded."""
        return tuple(recorder.path for recorder in self._recorders)

    def start(self, path: str | Path | None = None) -> None:
        """Begin to record; nothing happens while a recording runs.

        Args:
            path: File to record to, in place of those of the addresses.

        Raises:
            OptionError: If there is no path, or the file exists.
        """
        with self._lock:
            if self._recorders:
                return
            self._count += 1
            paths = [Path(path)] if path else list(map(self._path, self._addresses))
            if not paths:
                needed = "a path, or a stream with to=record:session.marey-live"
                raise OptionError("record", found="no path", needed=needed)
            self._recorders = self._open(paths)

    def _open(self, paths: Sequence[Path]) -> list[Recorder]:
        """Return recorders to all paths, or leave nothing behind."""
        recorders: list[Recorder] = []
        with ExitStack() as opened:
            for path in paths:
                recorder = Recorder(
                    path,
                    source=self._source,
                    rate=self._rate,
                    overwrite=self._overwrite,
                )
                opened.callback(recorder.discard)
                recorders.append(recorder)
            opened.pop_all()
        return recorders

    def _path(self, address: Address) -> Path:
        path = Path(address.target)
        if self._count == 1:
            return path
        return path.with_stem(f"{path.stem}-{self._count}")

    def stop(self, statistics: StreamStatistics | None = None) -> None:
        """End the recordings; they are complete then.

        Raises:
            OutputError: If the disk is full. Other recordings end all the same.
        """
        with self._lock, ExitStack() as ended:
            while self._recorders:
                ended.callback(self._recorders.pop().close, statistics)

    def mark(self, label: str) -> None:
        """Append an event at the time of the newest frame to the recordings."""
        with self._lock:
            for recorder in self._recorders:
                recorder.mark(label, self._time)

    def write(self, frame: Frame) -> None:
        """Record a frame, if a recording runs.

        Raises:
            OutputError: If the disk is full.
        """
        with self._lock:
            if frame.time == frame.time:
                self._time = frame.time
            for recorder in self._recorders:
                recorder.write(frame)
