"""`marey view`."""

import signal
import warnings
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape

from marey.cli.application import GOOD, app, err, out


@app.command
def view(
    thing: Annotated[
        Path, Parameter(help="A recording, a solution (.marey), a motion or a folder.")
    ],
    /,
    *,
    port: Annotated[int, Parameter(help="Port to listen on; 0 is any.")] = 0,
    host: Annotated[
        str, Parameter(help="Where to listen; this machine only, if left out.")
    ] = "127.0.0.1",
    browser: Annotated[bool, Parameter(help="Open the browser.")] = True,
    edits: Annotated[
        Path | None, Parameter(help="File of edits, instead of the one beside it.")
    ] = None,
) -> int:
    """Look at a recording and its skeleton in the browser, and put it right."""
    import marey

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        viewer = marey.view(
            thing, port=port, host=host, browser=browser, edits=edits, block=False
        )
    for warning in told:
        err.print(f"[yellow]warning:[/] {escape(str(warning.message))}")
    out.print(f"{escape(thing.name or str(thing))} is shown here; Ctrl-C ends it")
    out.print(escape(viewer.url), soft_wrap=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        viewer.wait()
    except KeyboardInterrupt:
        err.print("ended")
    return GOOD
