"""Description of a file for `marey info`, as JSON data and for the terminal."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from marey.cli.application import property_grid, render_finding
from marey.errors import FormatError, printable
from marey.io import read, read_motion, read_skeleton, recognise
from marey.report import Finding
from marey.skeleton import Skeleton
from marey.take import Source, Take

COVERAGE_SHADES = " ░▒▓█"
"""Characters for 0, 25, 50, 75 and 100 % of seen frames."""

COVERAGE_BINS = 60
"""Number of time bins of a marker's gap chart, one character each. Chosen by hand."""

MAX_GAP_ROWS = 8
"""Largest number of markers whose gap chart is printed. Chosen by hand."""

MAX_NAMES = 24
"""Largest number of names in one row, and length of each. Chosen by hand."""

MAX_EVENTS = 6
"""Largest number of events that is printed. Chosen by hand."""


def describe_file(path: Path, **overrides: Any) -> dict[str, Any]:
    """Return a description of a file's content, ready for JSON.

    Args:
        path: The file.
        **overrides: `unit`, `up`, `rate` and `columns` of `marey.read`.

    Raises:
        FormatError: If the file cannot be read.
    """
    file_format = recognise(path)
    about = {
        "path": str(path),
        "bytes": path.stat().st_size,
        "format": file_format.name,
        "title": file_format.title,
    }
    if file_format.read_take is None and file_format.read_motion is None:
        return about | {"findings": [], **_about_skeleton(read_skeleton(path))}
    take = read(path, **overrides)
    about |= _about_take(take) | _about_source(take.source)
    if file_format.read_motion is not None:
        about |= _about_motion(path)
    return about


def _about_skeleton(skeleton: Skeleton) -> dict[str, Any]:
    ends = skeleton.is_end
    return {
        "joints": [n for n, end in zip(skeleton.names, ends, strict=True) if not end],
        "bone_length_total": float(skeleton.lengths.sum()),
    }


def _about_motion(path: Path) -> dict[str, Any]:
    try:
        return _about_skeleton(read_motion(path).skeleton)
    except FormatError:
        return {}


def _about_source(source: Source) -> dict[str, Any]:
    return {
        "sha256": source.sha256,
        "unit": asdict(source.unit),
        "up": asdict(source.up),
        "rate_fact": asdict(source.rate),
        "findings": [asdict(finding) for finding in source.findings],
    }


def _about_take(take: Take) -> dict[str, Any]:
    seen, sensor_seen = take.seen, take.sensor_seen
    names = [*take.full_labels, *take.sensor_names]
    all_seen = np.concatenate([seen, sensor_seen], axis=1)
    return {
        "frames": take.n_frames,
        "rate": take.rate,
        "start": take.start,
        "duration": take.duration,
        "markers": list(take.full_labels),
        "sensors": list(take.sensor_names),
        "subjects": sorted({s for s in take.subjects if s}),
        "seen": float(all_seen.mean()) if all_seen.size else 0.0,
        "gaps": {
            name: _coverage(all_seen[:, i])
            for i, name in enumerate(names)
            if not all_seen[:, i].all()
        },
        "size": _extent(take),
        "events": [asdict(e) for e in sorted(take.events, key=lambda e: e.time)],
    }


def _coverage(seen: np.ndarray) -> list[float]:
    """Return the share of seen frames in each of at most `COVERAGE_BINS` time bins."""
    bins = np.array_split(seen, min(COVERAGE_BINS, len(seen)))
    return [round(float(part.mean()), 3) for part in bins]


def _extent(take: Take) -> list[float]:
    """Return the extent of the recording along x, y and z, in metres."""
    points = take.positions
    if not np.isfinite(points).any():
        return [0.0, 0.0, 0.0]
    flat = points[np.isfinite(points).all(axis=-1)]
    return [round(float(v), 4) for v in np.ptp(flat, axis=0)]


def render(about: dict[str, Any]) -> RenderableType:
    """Return a description as a table for the terminal."""
    title = Text.assemble(
        (printable(about["path"]), "bold"),
        f"  {about['title']}, {_bytes(about['bytes'])}",
    )
    table = property_grid()
    for name, value in _rows(about):
        table.add_row(name, value)
    findings = [render_finding(Finding(**finding)) for finding in about["findings"]]
    return Group(title, table, *findings, "")


def _rows(about: dict[str, Any]) -> list[tuple[str, RenderableType]]:
    rows: list[tuple[str, RenderableType]] = []
    if "frames" in about:
        seconds = f"{about['duration']:.2f} s"
        rows.append(("frames", f"{about['frames']} at {about['rate']:g} Hz, {seconds}"))
    for kind in ("markers", "joints", "sensors", "subjects"):
        if about.get(kind) and not (kind == "sensors" and about.get("joints")):
            rows.append((kind, _names(about[kind])))
    for name, key in (("unit", "unit"), ("up", "up"), ("rate", "rate_fact")):
        if key in about:
            rows.append((name, _fact(about[key])))
    if about.get("events"):
        rows.append(("events", _events(about["events"])))
    return rows + (_seen_rows(about) if "seen" in about else [])


def _seen_rows(about: dict[str, Any]) -> list[tuple[str, RenderableType]]:
    if not (about["markers"] or about["sensors"]):
        return [("markers", "none, and no sensors")]
    x, y, z = about["size"]
    gaps = about["gaps"]
    never = [name for name in gaps if not any(gaps[name])]
    worst = sorted(
        (n for n in gaps if any(gaps[n])), key=lambda n: float(np.mean(gaps[n]))
    )
    more = len(worst) - MAX_GAP_ROWS
    return [
        ("extent", f"{x:.3g} × {y:.3g} × {z:.3g} m (z up)"),
        ("seen", f"{about['seen']:.1%}"),
        *([("never seen", _names(never))] if never else []),
        *(
            (escape(printable(n, 16)), _gap_chart(gaps[n]))
            for n in worst[:MAX_GAP_ROWS]
        ),
        *([("", f"… and {more} more with gaps")] if more > 0 else []),
    ]


def _names(names: list[str]) -> str:
    shown = " ".join(printable(name, MAX_NAMES) for name in names[:MAX_NAMES])
    more = f" … and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return escape(f"{len(names)}: {shown}{more}")


def _fact(fact: dict[str, str]) -> Text:
    note = f": {printable(fact['note'])}" if fact["note"] else ""
    style = "yellow" if fact["how"] == "assumed" else "dim"
    return Text.assemble(printable(fact["value"]), (f"  {fact['how']}{note}", style))


def _events(events: list[dict[str, Any]]) -> str:
    shown = [
        f"{e['context']} {e['label']} {e['time']:.2f} s".strip()
        for e in events[:MAX_EVENTS]
    ]
    more = f", and {len(events) - MAX_EVENTS} more" if len(events) > MAX_EVENTS else ""
    return escape(printable(", ".join(shown)) + more)


def _gap_chart(coverage: list[float]) -> Text:
    blocks = "".join(
        COVERAGE_SHADES[int(np.ceil(share * 4.0 - 1e-9))] for share in coverage
    )
    return Text.assemble(
        ("▕", "dim"), (blocks, "green"), ("▏", "dim"), f" {np.mean(coverage):.0%}"
    )


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000.0:
            return f"{size:.3g} {unit}"
        size /= 1000.0
    return f"{size:.3g} GB"
