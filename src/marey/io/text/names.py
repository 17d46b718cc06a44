"""Names of markers, sensors and joints: unique, printable, split by subject."""

from collections.abc import Callable, Sequence

from marey.io.file import File
from marey.io.options import WriteOptions


def unique_names(file: File, names: Sequence[str], kind: str) -> tuple[str, ...]:
    """Return unique names, with a finding that says how many were renamed.

    Args:
        file: Collects the finding.
        names: Names as the file has them; the first of several equal names stays.
        kind: What the names belong to: "marker", "sensor" or "joint".
    """
    unique = make_unique(names)
    changed = [new for old, new in zip(names, unique, strict=True) if old != new]
    if changed:
        file.note(
            "labels-repeated",
            f"{len(changed)} {kind}s share a name with another: "
            f"renamed, such as {changed[0]!r}",
            value=len(changed),
        )
    return unique


def make_unique(names: Sequence[str]) -> tuple[str, ...]:
    """Return unique names: "A", "A" becomes "A", "A_2"."""
    given = set(names)
    used: set[str] = set()
    copies: dict[str, int] = {}
    out = []
    for name in names:
        choice = name
        while choice in used or (choice != name and choice in given):
            copies[name] = copies.get(name, 1) + 1
            choice = f"{name}_{copies[name]}"
        used.add(choice)
        out.append(choice)
    return tuple(out)


def name_all(
    file: File, names: Sequence[str], count: int, kind: str
) -> tuple[str, ...]:
    """Return so many unique names; M1, M2, ... (sensors S1, ...) replace missing ones.

    Args:
        file: Collects findings.
        names: Names as the file has them, "JOE:" a subject without a label.
        count: How many there should be.
        kind: What the names belong to: "marker", "sensor" or "item".
    """
    padded = [*names, *[""] * count][:count]
    missing = {i for i, name in enumerate(padded) if not name.rpartition(":")[2]}
    letter = "S" if kind == "sensor" else "M"
    if missing:
        text = f"{len(missing)} {kind}s have no name: named {letter}1, {letter}2, ..."
        file.note("labels-missing", text)
    named = [f"{n}{letter}{i + 1}" if i in missing else n for i, n in enumerate(padded)]
    return unique_names(file, named, kind)


def printable_name(name: str, forbidden: str = "") -> str:
    """Return a name that fits on one line; "_" replaces other characters.

    Args:
        name: Any text.
        forbidden: Printable characters that the format cannot hold.
    """
    text = "".join(c if c.isprintable() and c not in forbidden else "_" for c in name)
    return text.strip() or "_"


def spell_names(
    names: Sequence[str], spell: Callable[[str], str], options: WriteOptions
) -> tuple[str, ...]:
    """Return unique names that a format can spell; changed ones are reported.

    Args:
        names: Names of joints or markers.
        spell: What a name becomes in the format.
        options: Collects the finding.
    """
    written = make_unique([spell(name) for name in names])
    note_changed_names(names, written, options)
    return written


def note_changed_names(
    names: Sequence[str], written: Sequence[str], options: WriteOptions
) -> None:
    """Add a finding if names had to be written in another way."""
    changed = [
        f"{old!r} as {new!r}"
        for old, new in zip(names, written, strict=True)
        if old != new
    ]
    if changed:
        options.note(
            "names-changed",
            f"{len(changed)} names are repeated or cannot be spelled in this format: "
            f"wrote {changed[0]}",
            value=len(changed),
        )
