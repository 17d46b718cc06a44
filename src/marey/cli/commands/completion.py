"""`marey completion`."""

from typing import Literal

from marey.cli.application import EXIT_OK, app, out


def completion(shell: Literal["bash", "zsh", "fish"], /) -> int:
    """Print the script that lets a shell complete commands and options.

    For bash: `marey completion bash > ~/.local/share/bash-completion/completions/marey`

    Args:
        shell: The shell.
    """
    script = app.generate_completion(prog_name="marey", shell=shell)
    out.print(script, markup=False, soft_wrap=True)
    return EXIT_OK
