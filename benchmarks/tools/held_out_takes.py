"""Takes that had no part in the fit of their subject's skeleton, against their own fit.

    python -m benchmarks.tools.held_out_takes LIBRARY [--subject-from REGEX]

Each take of a subject is left out once: the skeleton is fitted to the others as
`marey batch` chooses them, and the take is solved with it and by itself. `place` is the
place of the take in the choice of all takes: the one in the last place is the take that
a fit of one take fewer leaves out. The ratio of the residuals is 1 for a skeleton that
serves the take as well as bones of its own.
"""

import argparse
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import marey
from marey.errors import MareyError
from marey.library.jobs.describe import is_labelled, measure_spread
from marey.library.jobs.facts import residual_mm
from marey.library.jobs.fit import solve_common
from marey.library.jobs.take import solve_with_skeletons
from marey.library.subject_work import choose_fit_takes

FIT_TAKES = 6


@dataclass(frozen=True)
class HeldOut:
    """A take that was left out, and its residuals."""

    subject: str
    take: str
    place: int
    count: int
    alone_mm: float
    shared_mm: float
    """Residual with the skeleton of the others; for a take that is solved by itself as
    one of another subject, what the skeleton gave."""

    codes: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Residual with the skeleton of the others, in that of the take alone."""
        return self.shared_mm / self.alone_mm


def leave_each_out(
    subject: str, takes: Mapping[str, marey.Take], fit_takes: int
) -> Iterator[HeldOut]:
    """Yield every take of a subject, solved with a skeleton of the others."""
    described = {name: describe(take) for name, take in takes.items()}
    order = choose_fit_takes(described, len(takes))
    order += sorted(set(takes) - set(order))
    for place, name in enumerate(order, start=1):
        others = {other: facts for other, facts in described.items() if other != name}
        chosen = sorted(choose_fit_takes(others, fit_takes))
        try:
            alone = rms_mm(solve_common([takes[name]], subject, {}))
            fit = solve_common([takes[other] for other in chosen], subject, {})
            skeletons = [one.skeleton for one in fit.subjects]
            solved = solve_with_skeletons(takes[name], subject, {}, skeletons)
        except MareyError as error:
            print(f"{subject} {name}: {error}", flush=True)
            continue
        codes = {f.code: f.value for f in solved.report.findings if f.stage == "attach"}
        shared = rms_mm(solved)
        if math.isfinite(codes.get("other-subject") or math.nan):
            shared = alone * float(codes["other-subject"] or math.nan)
        if not alone > 0.0:  # Sensors have no residual of markers.
            continue
        yield HeldOut(
            subject, name, place, len(takes), alone, shared, tuple(sorted(codes))
        )


def describe(take: marey.Take) -> dict[str, Any]:
    """Return what `describe_take` finds of a file with this take."""
    return {
        "positions": int(take.seen.sum()) + int(take.sensor_seen.sum()),
        "labelled": is_labelled(take),
        "spread": measure_spread(take),
    }


def rms_mm(solution: marey.Solution) -> float:
    rms, _ = residual_mm(solution.report.tables.get("residuals"))
    return math.nan if rms is None else rms


def read_subjects(
    library: Path, pattern: str
) -> Iterator[tuple[str, dict[str, marey.Take]]]:
    """Yield the subjects of a library with two readable takes or more."""
    of_subject: dict[str, dict[str, marey.Take]] = {}
    for found in marey.plan_batch(library, subject_from=pattern):
        try:
            take = marey.read(library / found.name)
        except MareyError:
            continue
        of_subject.setdefault(found.subject, {})[found.name] = take
    yield from ((who, takes) for who, takes in of_subject.items() if len(takes) > 1)


def print_summary(name: str, rows: list[HeldOut]) -> None:
    ratios = np.array([row.ratio for row in rows])
    if not len(ratios):
        return
    print(
        f"{name}: {len(rows)} takes, ratio median {np.median(ratios):.2f}, "
        f"90 % {np.quantile(ratios, 0.9):.2f}, at most 1.05 in {(ratios <= 1.05).sum()}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("--subject-from", default="")
    parser.add_argument("--fit-takes", type=int, default=FIT_TAKES)
    given = parser.parse_args()
    rows: list[HeldOut] = []
    for subject, takes in read_subjects(given.library, given.subject_from):
        for row in leave_each_out(subject, takes, given.fit_takes):
            rows.append(row)
            print(
                f"{row.subject:20} {row.take:55} {row.place}/{row.count}  alone "
                f"{row.alone_mm:6.2f} mm  shared {row.shared_mm:6.2f} mm  "
                f"{row.ratio:5.2f}  {' '.join(row.codes)}",
                flush=True,
            )
    print_summary("each take left out", rows)
    print_summary(
        "left out by the choice", [row for row in rows if row.place == row.count]
    )


if __name__ == "__main__":
    main()
