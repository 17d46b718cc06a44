"""`marey doctor`."""

import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from marey import __version__
from marey.cli.application import EXIT_OK, out, print_json, property_grid

EXTRA_REQUIREMENT = re.compile(
    r"([A-Za-z0-9_.\-]+)[^;]*;\s*extra == ['\"]([a-z]+)['\"]"
)
PACKAGE_NAME = re.compile(r"[A-Za-z0-9_.\-]+")
HIDDEN_EXTRAS = {"all", "dev"}
NO_BYTECODE = (
    "not kept, since PYTHONDONTWRITEBYTECODE is set: every start compiles marey's "
    "modules again, for 0.7 s"
)


def doctor(*, json_: bool = False) -> int:
    """Print versions of this installation, its extras and what is missing.

    Args:
        json_: Print JSON.
    """
    versions = installed_versions()
    if json_:
        print_json(versions)
    else:
        out.print(render(versions))
    return EXIT_OK


def installed_versions() -> dict[str, Any]:
    """Return versions of marey, Python and all required packages, ready for JSON."""
    required, extras = _requirements()
    return {
        "marey": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": os.cpu_count() or 1,
        "bytecode": _keeps_bytecode(),
        "kernels": _kernels(),
        "packages": {name: _version(name) for name in required},
        "extras": {
            extra: {name: _version(name) for name in names}
            for extra, names in extras.items()
        },
    }


def _keeps_bytecode() -> bool:
    """Return whether Python finds or keeps the bytecode of marey."""
    return not sys.dont_write_bytecode or Path(cache_from_source(__file__)).exists()


def _kernels() -> dict[str, Any]:
    """Return what the kernels were compiled for, and why they are not up to date."""
    from marey.kernels.precompiled import find_outdated, read_manifest

    built = read_manifest().get("compiled for", {})
    return {"compiled for": built, "outdated": find_outdated(rare=False)}


def _requirements() -> tuple[list[str], dict[str, list[str]]]:
    """Return the required packages, and the packages of each extra."""
    required: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in requires("marey") or []:
        match = EXTRA_REQUIREMENT.match(line)
        if match and match[2] not in HIDDEN_EXTRAS:
            extras.setdefault(match[2], []).append(match[1])
        elif not match and (name := PACKAGE_NAME.match(line)):
            required.append(name[0])
    return required, extras


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def render(versions: dict[str, Any]) -> Table:
    """Return the versions as a table for the terminal."""
    table = property_grid()
    table.add_row("marey", versions["marey"])
    table.add_row(
        "python",
        f"{versions['python']} on {versions['system']}, {versions['cores']} cores",
    )
    if not versions["bytecode"]:
        table.add_row("bytecode", Text(NO_BYTECODE, style="yellow"))
    table.add_row("kernels", _kernel_state(**versions["kernels"]))
    for name, number in versions["packages"].items():
        table.add_row(name, number or Text("missing", style="red"))
    for extra, packages in versions["extras"].items():
        table.add_row(f"[{extra}]".replace("[", r"\["), _extra(extra, packages))
    return table


def _kernel_state(**kernels: Any) -> Text:
    """Return whether the kernels are compiled, and for what."""
    if kernels["outdated"]:
        return Text(f"{kernels['outdated']}: marey compile", style="yellow")
    built = (f"{what} {value}" for what, value in kernels["compiled for"].items())
    return Text(f"compiled for {', '.join(built)}")


def _extra(extra: str, packages: dict[str, str | None]) -> Text:
    if all(packages.values()):
        return Text(", ".join(f"{name} {number}" for name, number in packages.items()))
    return Text(f'not installed: pip install "marey[{extra}]"', style="yellow")
