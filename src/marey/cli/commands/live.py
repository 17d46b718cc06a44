"""`marey live`."""

import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from marey.cli.application import (
    EXIT_OK,
    err,
    out,
    print_json,
    property_grid,
    render_finding,
    show_progress,
)
from marey.errors import printable

if TYPE_CHECKING:
    from marey.live import LivePose, Stream

STATUS_S = 0.5
"""Seconds between two states shown in the terminal. Higher shows fewer."""

MAX_LATENCIES = 100_000
"""Newest latencies of which the median and 99 % are printed. Higher takes more
memory."""


def live(
    source: str,
    /,
    *,
    to: Annotated[tuple[str, ...], Parameter(consume_multiple=False)] = (),
    skeleton: Path | None = None,
    seconds: float = float("inf"),
    timeout: float = 5.0,
    retry: bool = False,
    overwrite: bool = False,
    json_: bool = False,
    quiet: bool = False,
) -> int:
    """Receive a stream, track a known skeleton in it, record and send it.

    Ctrl-C ends the stream; recordings are complete.

    Args:
        source: natnet://HOST, qtm://HOST, lsl://NAME, mxtp://, vmc://, ws://HOST:PORT,
            file:walk.c3d?speed=1&loop, or a file.
        to: record:session.marey-live (every frame), vmc://HOST:PORT, mxtp://HOST:PORT,
            ws://127.0.0.1:PORT or lsl://NAME; again for more.
        skeleton: A file with a skeleton and its markers or sensors.
        seconds: End after so many seconds.
        timeout: Seconds without a frame after which the stream is silent.
        retry: Wait on when the stream is silent, and connect again.
        overwrite: Replace recordings that exist.
        json_: Print JSON at the end.
        quiet: Print errors only.
    """
    import marey

    poses = marey.stream(
        source,
        skeleton,
        to=to,
        timeout=timeout,
        retry=retry,
        overwrite=overwrite,
    )
    latencies: deque[float] = deque(maxlen=MAX_LATENCIES)
    try:
        with show_progress(printable(source), quiet or json_) as show:
            end, shown = time.monotonic() + seconds, 0.0
            for pose in poses:
                latencies.append(pose.latency)
                now = time.monotonic()
                if show and now - shown > STATUS_S:
                    shown = now
                    show(_state(poses, pose))
                if now > end:
                    break
    except KeyboardInterrupt:
        pass
    finally:
        poses.close()
    _report(poses, latencies, as_json=json_, quiet=quiet)
    return EXIT_OK


def _state(poses: "Stream", pose: "LivePose") -> str:
    """Return what a stream does now, on one line."""
    found = poses.statistics
    targets = "" if pose.skeleton is None else f", {pose.n_seen} targets seen"
    return f"{found.received} frames, {found.rate:.1f} Hz, {found.lost} lost{targets}"


def _report(
    poses: "Stream", latencies: Sequence[float], *, as_json: bool, quiet: bool
) -> None:
    """Print what came, and findings about it."""
    from dataclasses import asdict

    import numpy as np

    found = poses.statistics
    p50, p99 = np.quantile(latencies or [np.nan], [0.5, 0.99]).tolist()
    if as_json:
        facts = {"latency_p50": p50, "latency_p99": p99, "poses": len(latencies)}
        print_json(asdict(found) | facts)
    elif not quiet:
        grid = property_grid()
        grid.add_row("frames", f"{found.received} received, {found.lost} lost")
        grid.add_row("rate", f"{found.rate:.2f} Hz, jitter {1e3 * found.jitter:.2f} ms")
        if poses.skeleton is not None:
            text = f"median {1e3 * p50:.2f} ms, 99 % {1e3 * p99:.2f} ms"
            grid.add_row("packet to pose", text)
        out.print(grid)
        for finding in poses.findings():
            err.print(render_finding(finding))
