"""The commands of the command line, one per module.

A new command is one module with one function, and one line in `COMMANDS`. Commands
import NumPy and the rest of marey inside their function, so that `marey --help` is
quick.
"""

from marey.cli.commands import (
    batch,
    compile,
    completion,
    convert,
    demo,
    doctor,
    info,
    live,
    papers,
    solve,
    view,
)

COMMANDS = (
    info.info,
    convert.convert,
    solve.solve,
    view.view,
    live.live,
    batch.batch,
    batch.verify,
    demo.demo,
    compile.compile_,
    doctor.doctor,
    completion.completion,
    papers.papers,
)
