"""`marey live`."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from threading import TIMEOUT_MAX, Timer
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.markup import escape

from marey.cli.application import (
    EXIT_OK,
    Switch,
    err,
    out,
    print_json,
    property_grid,
    render_finding,
    show_progress,
)
from marey.cli.live_keys import HELP, ZERO_HELP, read_keys
from marey.errors import printable

if TYPE_CHECKING:
    from marey.live import LivePose, Stream
    from marey.live.statistics import StreamStatistics
    from marey.pipeline.reporting.readiness import JointReadiness

PAGE = "page"
STATUS_S = 0.5
"""Seconds between two states shown in the terminal. Higher shows fewer."""

MAX_ADVICE = 3
"""Joints for which the end of a stream says what to do. Higher prints more lines."""

WAIT_S = 0.1
"""Seconds between two looks if the stream has ended. Higher ends later."""


def live(
    source: str,
    /,
    *,
    to: Annotated[tuple[str, ...], Parameter(consume_multiple=False)] = (),
    skeleton: Annotated[tuple[Path, ...], Parameter(consume_multiple=False)] = (),
    learnt: Path | None = None,
    virtual: bool = False,
    triggers: str = "",
    port: int = 0,
    browser: Switch = True,
    seconds: float = float("inf"),
    timeout: float = 5.0,
    retry: bool = False,
    overwrite: bool = False,
    json_: bool = False,
    quiet: bool = False,
) -> int:
    """Receive a stream, track or learn skeletons in it, record, send and show it.

    Ctrl-C ends the stream; recordings are complete, and a skeleton to be written is
    that of all frames, unless Ctrl-C comes again. In a terminal, the key r starts and
    stops recording, m marks the moment, z sets the zero pose of a virtual skeleton.

    Args:
        source: natnet://HOST, qtm://HOST, lsl://NAME, mxtp://, vmc://, ws://HOST:PORT,
            file:walk.c3d?speed=1&loop, or a file.
        to: record:session.marey-live (every frame), vmc://HOST:PORT, mxtp://HOST:PORT,
            ws://127.0.0.1:PORT, lsl://NAME or page, which shows it in the browser;
            again for more.
        skeleton: A file with a skeleton and its markers or sensors; again for more
            subjects. Without one, skeletons are learnt from the stream.
        learnt: Write the first skeleton that was learnt to this file at the end.
        virtual: Let skeletons follow their sensors directly, without optimisation.
        triggers: Listen for OSC messages that start and stop recordings, such as
            osc://127.0.0.1:9000.
        port: Port of the page; 0 = any free port.
        browser: Open the browser for the page.
        seconds: End after so many seconds.
        timeout: Seconds without a frame after which the stream is silent.
        retry: Wait on when the stream is silent, and connect again.
        overwrite: Replace recordings that exist.
        json_: Print JSON at the end.
        quiet: Print errors only.
    """
    import marey
    from marey.io.atomic import check_target

    if learnt is not None:
        check_target(learnt, overwrite=overwrite)
    shows_page = PAGE in to
    poses = marey.stream(
        source,
        skeleton,
        to=[one for one in to if one != PAGE],
        virtual=virtual,
        triggers=triggers,
        timeout=timeout,
        retry=retry or shows_page,
        overwrite=overwrite,
    )
    is_wanted = learnt is not None
    if not quiet:
        _report_sinks(poses)
    with (
        suppress(KeyboardInterrupt),
        closing(poses),
        read_keys(poses, _say) as has_keys,
    ):
        if has_keys and not quiet:
            err.print(f"{HELP}, {ZERO_HELP}" if virtual else HELP)
        if shows_page:
            _serve(poses, port, browser, seconds, is_wanted)
        else:
            _follow(poses, seconds, quiet or json_, is_wanted)
    report_stream(poses, as_json=json_, quiet=quiet)
    if learnt is not None:
        _write_learnt(poses, learnt, overwrite)
    return EXIT_OK


def _report_sinks(poses: "Stream") -> None:
    """Print the findings about sinks; those about the stream follow at its end."""
    for finding in poses.findings():
        if finding.stage == "write":
            err.print(render_finding(finding))


def _write_learnt(poses: "Stream", path: Path, overwrite: bool) -> None:
    """Write the first skeleton.

    Raises:
        DataError: If none was learnt.
    """
    import marey

    if not poses.skeletons:
        needed = f"parts that move, to write one to {path}"
        raise marey.DataError("stream", found="no skeleton", needed=needed)
    marey.write(poses.skeletons[0], path, overwrite=overwrite)


def _say(text: str) -> None:
    err.print(escape(text), soft_wrap=True)


def _serve(
    poses: "Stream", port: int, browser: bool, seconds: float, learn: bool
) -> None:
    """Show the stream in the browser until Ctrl-C, or for some seconds."""
    import marey

    with marey.view(poses, port=port, browser=browser, block=False) as viewer:
        out.print(escape(viewer.url), soft_wrap=True)
        end = time.monotonic() + seconds
        with suppress(KeyboardInterrupt):
            while time.monotonic() < end:
                time.sleep(min(STATUS_S, max(end - time.monotonic(), 0.0)))
        poses.stop(learn=learn)
        while learn and not poses.has_ended:
            time.sleep(WAIT_S)


def _follow(poses: "Stream", seconds: float, quiet: bool, learn: bool) -> None:
    """Take poses as they come, and show what the stream does in the terminal."""
    timer = Timer(min(seconds, TIMEOUT_MAX), poses.stop, kwargs={"learn": learn})
    timer.daemon = True
    timer.start()
    with show_progress(printable(poses.source), quiet) as show:
        try:
            _show_poses(poses, show)
        except KeyboardInterrupt:
            poses.stop(learn=learn)
            _show_poses(poses, show)
        finally:
            timer.cancel()


def _show_poses(poses: "Stream", show: Callable[[str], None] | None) -> None:
    shown = 0.0
    for pose in poses:
        now = time.monotonic()
        if show and now - shown > STATUS_S:
            shown = now
            show(_state(poses, pose))


def _state(poses: "Stream", pose: "LivePose") -> str:
    """Return what a stream does now, on one line."""
    from marey.live.posing.tracking import assess_subjects

    found = poses.statistics
    targets = "" if pose.skeleton is None else f", {pose.n_seen} targets seen"
    text = f"{found.received} frames, {found.rate:.1f} Hz, {found.lost} lost{targets}"
    learnt = poses.learnt
    if learnt is None:
        return text + (", learning" if poses.is_learning else "")
    states = zip(learnt.names, learnt.readiness, strict=True)
    now = assess_subjects(states, pose.subjects)
    joints = [joint for _, one in now for joint in one]
    needs = [joint for joint in joints if joint.state != "ready"]
    advice = f"; {needs[0].advice}" if needs else ""
    return f"{text}, {len(joints) - len(needs)} of {len(joints)} joints ready{advice}"


def report_stream(poses: "Stream", *, as_json: bool, quiet: bool) -> None:
    """Print what came, and findings about it."""
    from dataclasses import asdict

    import numpy as np

    found, latencies, learnt = poses.statistics, poses.latencies, poses.learnt
    p50, p99 = np.quantile(latencies or [np.nan], [0.5, 0.99]).tolist()
    states = dict(zip(learnt.names, learnt.readiness, strict=True)) if learnt else {}
    if as_json:
        facts = {
            "latency_p50": p50,
            "latency_p99": p99,
            "poses": len(latencies),
            "learnt": {n: [asdict(one) for one in own] for n, own in states.items()},
            "findings": [asdict(finding) for finding in poses.findings()],
        }
        print_json(asdict(found) | facts)
    elif not quiet:
        grid = property_grid()
        grid.add_row("frames", _count_frames(found))
        if np.isfinite(found.rate):
            jitter = f"jitter {1e3 * found.jitter:.2f} ms"
            grid.add_row("rate", f"{found.rate:.2f} Hz, {jitter}")
        if latencies:
            text = f"median {1e3 * p50:.2f} ms, 99 % {1e3 * p99:.2f} ms"
            grid.add_row("packet to pose", text)
        for name, joints in states.items():
            grid.add_row("learnt", escape(printable(_say_what_is_ready(name, joints))))
        out.print(grid)
        for finding in poses.findings():
            err.print(render_finding(finding))


def _say_what_is_ready(name: str, joints: "Sequence[JointReadiness]") -> str:
    """Return how many joints of a subject are ready, and what the others need."""
    needs = [joint for joint in joints if joint.state != "ready"]
    said = [f"{name}: {len(joints) - len(needs)} of {len(joints)} joints ready"]
    said += [joint.advice for joint in needs[:MAX_ADVICE]]
    if len(needs) > MAX_ADVICE:
        said.append(f"{len(needs) - MAX_ADVICE} more")
    return "; ".join(said)


def _count_frames(found: "StreamStatistics") -> str:
    """Return how many frames came, or what to look at if none did."""
    if not found.received:
        return "none received: does the sender stream, and to this machine?"
    return f"{found.received} received, {found.lost} lost"
