"""`marey view`."""

import warnings
from pathlib import Path

from rich.markup import escape

from marey.cli.application import (
    DEFAULT_MESSAGES,
    EXIT_OK,
    MessageArguments,
    Switch,
    err,
    out,
)
from marey.cli.commands.live import PAGE
from marey.cli.commands.live import live as show_stream


def view(
    source: str = ".",
    /,
    *,
    live: bool = False,
    port: int = 0,
    host: str = "127.0.0.1",
    browser: Switch = True,
    edits: Path | None = None,
    unit: str | None = None,
    up: str | None = None,
    rate: float | None = None,
    messages: MessageArguments = DEFAULT_MESSAGES,
) -> int:
    """Show a recording and its skeleton in the browser, where it can be edited.

    Args:
        source: A recording, a solution (.marey), a motion or a folder; by default the
            folder you are in. With --live a stream, such as lsl://NAME.
        live: Show a stream as `marey live --to page` does.
        port: Port to listen on; 0 = any free port.
        host: Address to listen on; by default this machine only.
        browser: Open the browser.
        edits: Edits file, instead of the one beside the recording.
        unit: Length unit of the input: mm, cm, m, in, ft.
        up: Axis of the input that points up: x y z -x -y -z.
        rate: Frames per second of the input.
        messages: How much to print.
    """
    import marey

    messages.apply()
    if live:
        return show_stream(
            source, to=(PAGE,), port=port, browser=browser, quiet=messages.quiet
        )
    path = Path(source)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        viewer = marey.view(
            path,
            port=port,
            host=host,
            browser=browser,
            edits=edits,
            block=False,
            unit=unit,
            up=up,
            rate=rate,
        )
    for warning in caught:
        err.print(f"[yellow]warning:[/] {escape(str(warning.message))}")
    if not messages.quiet:
        name = path.absolute().name or str(path)
        out.print(f"{escape(name)} is served here; Ctrl-C stops the server")
    out.print(escape(viewer.url), soft_wrap=True)
    try:
        viewer.wait()
    except KeyboardInterrupt:
        err.print("ended")
    return EXIT_OK
