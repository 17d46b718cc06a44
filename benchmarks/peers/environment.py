"""Environments of other programs: made on first use, one for each script.

A script says what it needs at its head, as PEP 723 has it. The folder is ignored by git
and can be removed at any time.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness.limits import Limits, last_line, run_limited
from benchmarks.harness.task import ROOT

SCRIPTS = ROOT / "peers" / "scripts"
ENVIRONMENTS = ROOT / ".peers"
METADATA = re.compile(r"^# /// script\n((?:#.*\n)+?)# ///$", re.MULTILINE)
ALONE = {"PYTHONPATH": ""}
"""What is installed elsewhere does not count as installed."""

INSTALLING = Limits(seconds=1800.0, mebibytes=64_000)


class PeerMissing(Exception):
    """A peer that cannot be installed here; the message says why."""


def read_needs(script: Path) -> tuple[list[str], tuple[int, int]]:
    """Return the packages that a script needs, and the least minor versions of Python.

    The second version is the first that is too new.
    """
    block = METADATA.search(script.read_text(encoding="utf-8"))
    if block is None:
        raise PeerMissing(f"{script.name} does not say what it needs")
    text = re.sub(r"^# ?", "", block.group(1), flags=re.MULTILINE)
    needs = tomllib.loads(text)
    oldest, newest = re.findall(r"3\.(\d+)", needs["requires-python"])
    return needs["dependencies"], (int(oldest), int(newest))


def peer_python(script: Path, root: Path = ENVIRONMENTS) -> Path:
    """Return the interpreter of a script's environment, which is made if need be.

    Raises:
        PeerMissing: If there is no such Python, or its packages do not install.
    """
    packages, versions = read_needs(script)
    folder = root / script.stem.removeprefix("run_")
    python, stamp = folder / "bin" / "python", folder / "packages.txt"
    wanted = "\n".join(packages)
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    print(f"installing {', '.join(packages)}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    base = find_python(*versions)
    for command in (
        [base, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", *packages],
    ):
        outcome = run_limited(command, INSTALLING, environment=ALONE)
        if outcome.reason:
            raise PeerMissing(f"{packages[0]} does not install: {outcome.reason}")
    stamp.write_text(wanted)
    return python


def find_python(oldest: int, newest: int) -> str:
    """Return an interpreter of Python 3, `oldest` up to but without `newest`."""
    for python in interpreters():
        try:
            code = "import sys; print(sys.version_info[1])"
            done = subprocess.run([python, "-c", code], capture_output=True, text=True)
        except OSError:
            continue
        if done.returncode == 0 and oldest <= int(last_line(done.stdout)) < newest:
            return python
    raise PeerMissing(f"no Python from 3.{oldest} to below 3.{newest} on this machine")


def interpreters() -> Iterator[str]:
    """Yield this interpreter, then others that usually are there."""
    yield sys.executable
    for minor in range(20, 8, -1):
        found = shutil.which(f"python3.{minor}")
        if found:
            yield found
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob("versions/3.*/bin/python"), reverse=True))
