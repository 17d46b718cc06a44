"""How much memory a call takes at its peak."""

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Peak:
    """Bytes above those before the block; known when the block has ended."""

    size = 0


def _process_sizes() -> dict[str, int]:
    """Return the sizes that Linux keeps of this process, in bytes."""
    lines = (line.split() for line in STATUS.read_text().splitlines())
    return {words[0]: 1024 * int(words[1]) for words in lines if words[-1] == "kB"}


def _can_reset() -> bool:
    try:
        RESET.write_text("5")
    except OSError:
        return False
    return STATUS.exists()


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measure the block by the pages of the process, where the system counts them.

    Tracing every allocation makes reading ten times slower. Memory that is asked for
    and never touched has no pages: it counts where it is more than ever before.
    """
    peak = Peak()
    gc.collect()
    if not _can_reset():
        tracemalloc.start()
        yield peak
        peak.size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return
    before = _process_sizes()
    yield peak
    after = _process_sizes()
    peak.size = max(
        after["VmHWM:"] - before["VmRSS:"], after["VmPeak:"] - before["VmPeak:"]
    )
