"""Recording a stream to a journal while it comes."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Lock

from marey.errors import OptionError, OutputError
from marey.io import format_for_suffix, read, write
from marey.io.atomic import check_target
from marey.io.formats.journal.blocks import (
    FRAME,
    LAYOUT,
    Layout,
    pack_block,
    pack_end,
    pack_event,
    pack_frame,
    pack_head,
    pack_layout,
)
from marey.live.codecs.message import to_record
from marey.live.frame import MAX_NAMES, Frame
from marey.live.statistics import StreamStatistics

SUFFIX = ".marey-live"
FLUSH_S = 0.25
"""Longest time that a frame is kept before the system gets it, in seconds; a killed
process loses no more. Higher writes less often. Chosen by hand."""


def check_recording(path: Path, *, overwrite: bool) -> Path:
    """Return the journal of a recording that may be begun.

    Raises:
        OptionError: If the file exists, or no format with its suffix holds recordings.
        OutputError: If its folder is not there.
    """
    is_journal = path.suffix == SUFFIX
    if not is_journal and format_for_suffix(path).write_take is None:
        needed = "a format that holds recordings, such as .marey-live or .c3d"
        raise OptionError("record", found=path.name, needed=needed)
    journal = path if is_journal else Path(f"{path}{SUFFIX}")
    for target in {path, journal}:
        check_target(target, overwrite=overwrite, inputs=())
    return journal


class Recorder:
    """Writes frames to a journal, which is readable at any time.

    Args:
        path: The journal; a path of another suffix gets a journal beside it, which
            becomes a file of that format at a clean end.
        source: Address of the stream.
        rate: Frames per second; NaN if it is not known.
        overwrite: Replace a file that exists.

    Raises:
        OptionError: If the file exists, or no format with its suffix holds recordings.
        OutputError: If it cannot be written.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        source: str = "",
        rate: float = float("nan"),
        overwrite: bool = False,
    ) -> None:
        self.path = Path(path)
        self.journal = check_recording(self.path, overwrite=overwrite)
        self.n_frames = 0
        """Frames written so far."""
        self._overwrite = overwrite
        self._layouts: dict[Layout, int] = {}  # the newest, as senders make up names
        self._n_layouts = 0
        self._lock = Lock()
        self._flushed = time.monotonic()
        with self._errors(), ExitStack() as opened:
            self._file = opened.enter_context(self.journal.open("wb"))
            self._file.write(pack_head(rate=rate, source=source))
            self._file.flush()
            opened.pop_all()

    def write(self, frame: Frame) -> None:
        """Append a frame.

        Raises:
            OutputError: If the disk is full.
        """
        layout = Layout(frame.labels, frame.sensor_names)
        with self._lock:
            number = self._layouts.get(layout)
            if number is None:
                number = self._add_layout(layout)
            self._put(pack_block(FRAME, pack_frame(to_record(frame, number))))
            self.n_frames += 1
            if time.monotonic() - self._flushed > FLUSH_S:
                self._flush()

    def mark(self, label: str, time: float, context: str = "") -> None:
        """Append an event at a time of the sender's clock, in seconds."""
        with self._lock:
            self._put(pack_event(label, context, time))

    def close(self, statistics: StreamStatistics | None = None) -> None:
        """End the journal, and convert it if its path has another suffix.

        Args:
            statistics: What was measured of the stream; the journal keeps it.

        Raises:
            OutputError: If the disk is full.
        """
        if self._file.closed:
            return
        facts = {} if statistics is None else asdict(statistics)
        known = {name: value for name, value in facts.items() if value == value}
        with self._lock:
            try:
                self._put(pack_end(self.n_frames, **known))
            finally:
                self._close_file()
        if self.journal != self.path and self.n_frames:
            write(read(self.journal), self.path, overwrite=self._overwrite)
            self.journal.unlink()

    def discard(self) -> None:
        """End the journal and remove it."""
        self._close_file()
        self.journal.unlink(missing_ok=True)

    def _add_layout(self, layout: Layout) -> int:
        if len(self._layouts) >= MAX_NAMES:
            self._layouts.clear()
        number, self._n_layouts = self._n_layouts, self._n_layouts + 1
        self._layouts[layout] = number
        content = number.to_bytes(4, "little") + pack_layout(layout)
        self._put(pack_block(LAYOUT, content))
        return number

    def _put(self, data: bytes) -> None:
        with self._errors():
            self._file.write(data)

    def _flush(self) -> None:
        with self._errors():
            self._file.flush()
        self._flushed = time.monotonic()

    def _close_file(self) -> None:
        with self._errors():
            self._file.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutputError(f"{self.journal}: not written, {error}") from error
