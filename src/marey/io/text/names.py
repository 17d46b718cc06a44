"""Names of markers, sensors and joints: unique, printable, split by subject."""

from collections.abc import Sequence

from marey.io.contract import File


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
            value=float(len(changed)),
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


def fill_missing_names(file: File, names: Sequence[str], kind: str) -> list[str]:
    """Return names in which M1, M2, ... replace empty names; a finding counts them."""
    empty = sum(not name for name in names)
    if empty:
        file.note("labels-missing", f"{empty} {kind}s have no name: named M1, M2, ...")
    return [name or f"M{i + 1}" for i, name in enumerate(names)]


def split_subjects(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return labels and subjects: "JOE:RTHI" is the label RTHI of the subject JOE."""
    parts = [name.rpartition(":") for name in names]
    return tuple(label for *_, label in parts), tuple(subject for subject, *_ in parts)


def printable_name(name: str, forbidden: str = "") -> str:
    """Return a name that fits on one line; "_" replaces other characters.

    Args:
        name: Any text.
        forbidden: Printable characters that the format cannot hold.
    """
    text = "".join(c if c.isprintable() and c not in forbidden else "_" for c in name)
    return text.strip() or "_"
