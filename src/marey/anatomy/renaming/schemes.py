"""Target schemes: the names that a program expects, from the table or a TOML file."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from marey.anatomy import names as vrm
from marey.errors import OptionError
from marey.options import read_toml

PARTS = (vrm.HIPS, vrm.HEAD, *vrm.ARM, *vrm.LEG)
CHAINS = ("Trunk", vrm.NECK)
KEYS = {"prefix", "sides", *CHAINS, *PARTS}


@dataclass(frozen=True, slots=True)
class TargetScheme:
    """Names of the joints of a person in another program."""

    names: Mapping[str, str]
    """New names by those of `marey.anatomy.names`; "" = no such joint."""

    trunk: tuple[str, ...] | None
    """New names of the joints between hips and arms, from the hips upward; None = as
    they are."""

    neck: tuple[str, ...] | None
    """New names of the joints between trunk and head; None = as they are."""

    optional: frozenset[str]
    """Those of the new names that a figure need not have."""

    def trunk_names(self, present: Sequence[str]) -> list[str]:
        """Return the names that a trunk of these joints gets."""
        return self._chain(self.trunk, present)

    def neck_names(self, present: Sequence[str]) -> list[str]:
        """Return the names that a neck of these joints gets."""
        return self._chain(self.neck, present)

    def _chain(
        self, names: tuple[str, ...] | None, present: Sequence[str]
    ) -> list[str]:
        if names is None:
            return list(present)
        required = [name for name in names if name not in self.optional]
        spare = max(len(present) - len(required), 0)
        extra = [name for name in names if name in self.optional][:spare]
        return [name for name in names if name in (*required, *extra)]


def find_scheme(name: str | PathLike[str]) -> TargetScheme:
    """Return the scheme of a name, or of a TOML file.

    Raises:
        OptionError: If there is no such scheme, or the file holds none.
    """
    known = _schemes()
    if name in known:
        return known[str(name)]
    path = Path(name)
    if path.suffix.lower() != ".toml":
        needed = f"one of {', '.join(known)}, or a TOML file"
        raise OptionError("names", found=str(name), needed=needed)
    return _parse(read_toml("names", path), str(path))


@cache
def _schemes() -> dict[str, TargetScheme]:
    table = files("marey.anatomy.renaming") / "target_schemes.toml"
    content = tomllib.loads(table.read_text(encoding="utf-8"))
    return {name: _parse(entry, name) for name, entry in content.items()}


def _parse(entry: Mapping[str, Any], source: str) -> TargetScheme:
    """Return the scheme that a table of names describes."""
    _check(entry, source)
    prefix = entry.get("prefix", "")
    spelled = dict(zip(vrm.SIDES, entry.get("sides", vrm.SIDES), strict=True))
    names: dict[str, str] = {}
    for part in PARTS:
        pattern = entry.get(part)
        if pattern is None:
            continue
        if part in (vrm.HIPS, vrm.HEAD):
            names[part] = prefix + pattern
        else:
            for side, spelling in spelled.items():
                spelled_part = prefix + pattern.replace("#", spelling)
                names[side + part] = spelled_part if pattern else ""
    chains = {key: [prefix + n for n in entry[key]] for key in CHAINS if key in entry}
    every = [*names.values(), *(name for chain in chains.values() for name in chain)]
    trunk, neck = (
        tuple(n.removesuffix("?") for n in chains[key]) if key in chains else None
        for key in CHAINS
    )
    return TargetScheme(
        names={part: name.removesuffix("?") for part, name in names.items()},
        trunk=trunk,
        neck=neck,
        optional=frozenset(name[:-1] for name in every if name.endswith("?")),
    )


def _check(entry: Mapping[str, Any], source: str) -> None:
    """Refuse a table that is no scheme.

    Raises:
        OptionError: If keys are unknown or missing, or values are no names.
    """
    unknown = sorted(set(entry) - KEYS)
    missing = [part for part in (vrm.HIPS, vrm.UPPER_LEG) if part not in entry]
    lists = [key for key in ("sides", *CHAINS) if key in entry]
    texts = [key for key in entry if key not in lists]
    good = all(isinstance(entry[key], str) for key in texts) and all(
        isinstance(entry[key], list) and all(isinstance(n, str) for n in entry[key])
        for key in lists
    )
    two_sides = len(entry.get("sides", vrm.SIDES)) == len(vrm.SIDES)
    if unknown or missing or not (good and two_sides):
        problem = f"{', '.join(unknown)} in it" if unknown else "something else"
        raise OptionError(
            "names",
            found=f"{source} with {problem}" + "".join(f", no {m}" for m in missing),
            needed='names such as Hips = "pelvis", UpperLeg = "thigh_#", sides = '
            f'["l", "r"], Trunk = ["spine_01"]; keys: {", ".join(sorted(KEYS))}',
        )
