"""What `marey doctor` says: the machine, the packages, the extras."""

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from marey import __version__

EXTRA = re.compile(r"([A-Za-z0-9_.\-]+)[^;]*;\s*extra == ['\"]([a-z]+)['\"]")
NAME = re.compile(r"[A-Za-z0-9_.\-]+")
HIDDEN = {"all", "dev"}


def examine() -> dict[str, Any]:
    """Return versions of everything marey stands on, ready for JSON."""
    base, extras = _requirements()
    return {
        "marey": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": os.cpu_count() or 1,
        "packages": {name: _version(name) for name in base},
        "extras": {
            extra: {name: _version(name) for name in names}
            for extra, names in extras.items()
        },
    }


def _requirements() -> tuple[list[str], dict[str, list[str]]]:
    base: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in requires("marey") or []:
        match = EXTRA.match(line)
        if match and match[2] not in HIDDEN:
            extras.setdefault(match[2], []).append(match[1])
        elif not match and (name := NAME.match(line)):
            base.append(name[0])
    return base, extras


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def render(found: dict[str, Any]) -> RenderableType:
    """Return an examination as a small page for the terminal."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan", justify="right")
    table.add_column()
    table.add_row("marey", found["marey"])
    table.add_row(
        "python", f"{found['python']} on {found['system']}, {found['cores']} cores"
    )
    for name, number in found["packages"].items():
        table.add_row(name, number or Text("missing", style="red"))
    for extra, packages in found["extras"].items():
        table.add_row(f"[{extra}]".replace("[", r"\["), _extra(extra, packages))
    return Group(table)


def _extra(extra: str, packages: dict[str, str | None]) -> Text:
    if all(packages.values()):
        return Text(", ".join(f"{name} {number}" for name, number in packages.items()))
    return Text(f'not installed: pip install "marey[{extra}]"', style="yellow")
