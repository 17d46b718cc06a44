"""The panel: 12 takes, generated and real, clean and damaged, and the figures of each.

    python -m benchmarks.tools.panel [--record]

The figures of an answer are errors against the truth, residuals, bone lengths, their
uncertainties, and counts of bodies, joints and findings; joints that nothing observes
are left out. Printed is what differs by 1 % or more from the figures on record
(`panel.json`, beside this file); `--record` replaces those.
The real takes need MAREY_DATA; without it the panel has the generated ones only.

A tuned number without effect on the panel is removed or derived (`sensitivity.py`), and
the test suite holds the panel to the record: a number with an effect cannot be changed
unnoticed.
"""

import argparse
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

Figures = Mapping[str, float]

NO_EFFECT = 0.01
"""Largest relative change of a figure that counts as none."""

SMALLEST = {"m": 1e-5, "": 1.0}
"""Differences are relative to no less than this: lengths in metres, and counts."""

UNLIKE = 10.0
"""Change of an answer that fails or lacks a figure."""

RECORD = Path(__file__).with_suffix(".json")


def panel() -> Iterator[tuple[str, Callable[[], Mapping[str, float]]]]:
    """Yield the 12 takes: a name, and a call that returns the figures of its answer."""
    import marey
    from marey import synth

    def generated(make: Callable[[], Any], **options: Any) -> Mapping[str, float]:
        recording = make()
        chosen = marey.SolveOptions(whole=False, **options)
        return figures(marey.solve(recording, options=chosen), recording)

    def real(*paths: str, frames: int = 800, **options: Any) -> Mapping[str, float]:
        takes = [marey.read(find(path)) for path in paths]
        takes = [take.cut(0, min(frames, take.n_frames)) for take in takes]
        chosen = marey.SolveOptions(whole=False, **options)
        return figures(marey.solve(takes, options=chosen))

    human = synth.human
    short: dict[str, Any] = {"seconds": 4.0, "rate": 100.0, "noise": 1e-3}
    brief: dict[str, Any] = {"seconds": 1.5}
    hard: dict[str, Any] = {"gaps": 0.1, "swaps": 2, "slips": 1, "gross": 0.002}
    sensors = {**short, "markers": "none", "sensors": True, "turn_noise": 2e-3}

    yield (
        "walk",
        lambda: generated(lambda: human(seed=1).record("walk", **short), contacts=True),
    )
    yield (
        "damaged",
        lambda: generated(
            lambda: human(seed=4).record(
                "walk", markers="set53", seconds=8.0, noise=1e-3, **hard
            ),
            max_gap=0.2,
        ),
    )
    yield (
        "unlabelled",
        lambda: generated(
            lambda: human(seed=6).record(
                "exercise",
                markers="set53",
                labels=False,
                seconds=12.0,
                noise=1e-3,
                soft_tissue=3e-3,
                gaps=0.05,
            )
        ),
    )
    yield (
        "dense",
        lambda: generated(
            lambda: human(seed=7).record(
                "chicken_walk", markers="dense110", labels=False, **short
            )
        ),
    )
    yield (
        "sensors",
        lambda: generated(
            lambda: human(seed=17).record(
                "exercise",
                slips=1,
                slip_turn=0.1,
                gross=0.005,
                sensor_gaps=0.05,
                field=3e-3,
                **sensors,
            ),
            field=True,
        ),
    )
    yield (
        "gdke",
        lambda: generated(
            lambda: human(seed=16).record("walk", coloured=1e-3, **sensors | brief),
            joints="gdke",
        ),
    )
    yield (
        "quadruped",
        lambda: generated(
            lambda: synth.quadruped().record("walk", labels=False, gaps=0.05, **short),
            pose="physics",
        ),
    )
    yield (
        "two people",
        lambda: generated(lambda: synth.scene("handover", swaps=2, **short)),
    )
    if os.environ.get("MAREY_DATA"):
        yield "boxer", lambda: real("cmu/02_05.c3d")
        yield (
            "session",
            lambda: real(
                "addbio_uhlrich_s4/static1.trc", "addbio_uhlrich_s4/walking1.trc"
            ),
        )
        yield (
            "unlabelled person",
            lambda: real("olafhaag_unlabelled/sample_recording.c3d"),
        )
        yield (
            "bfgs",
            lambda: real(
                "hdm05/HDM_dg_06-03_03_120.c3d",
                joints="distance",
                segment="overlap",
                pose="bfgs",
            ),
        )


def find(path: str) -> Path:
    """Return the first file of this path below the folders of MAREY_DATA."""
    folders = os.environ["MAREY_DATA"].split(os.pathsep)
    return next(Path(f) / path for f in folders if (Path(f) / path).exists())


def figures(solution: Any, recording: Any = None) -> Mapping[str, float]:
    """Return the figures of an answer; the unit stands behind a colon."""
    import numpy as np

    report, subjects = solution.report, solution.subjects
    lengths = np.concatenate([subject.skeleton.lengths for subject in subjects])
    sd = np.concatenate([subject.skeleton.length_sd for subject in subjects])
    edges = solution.tree.edge[solution.tree.edge >= 0]
    serious = [one for one in report.findings if one.severity != "info"]
    seen = sum(take.seen.sum() + take.sensor_seen.sum() for take in solution.takes)
    result = {
        "bodies:": len(solution.bodies[0].names),
        "subjects:": len(subjects),
        "joints:": len(edges),
        "findings:": len(report.findings),
        "serious findings:": len(serious),
        "values kept:": float(seen),
        "residual:m": rms(solution.joints.residual[edges]),
        "length:m": rms(lengths),
        "length sd:m": rms(sd),
        "marker error:m": rms(marker_errors(solution)),
        "contacts:": sum(len(m.contacts) for s in subjects for m in s.motions),
    }
    if recording is not None:
        result |= errors(solution, recording)
    return {name: float(value) for name, value in result.items() if value == value}


def marker_errors(solution: Any) -> Any:
    """Return the distances of all markers from where the motion has them."""
    import numpy as np

    from marey.skeleton import marker_columns

    distances = [np.zeros(0)]
    for subject in solution.subjects:
        for take, motion in zip(solution.takes, subject.motions, strict=True):
            columns = marker_columns(motion.skeleton, take)
            found = motion.marker_points()[:, columns >= 0]
            off = found - take.points[:, columns[columns >= 0]]
            distances.append(np.linalg.norm(off, axis=-1).ravel())
    return np.concatenate(distances)


def errors(solution: Any, recording: Any) -> Mapping[str, float]:
    """Return the errors against the truth of a generated take."""
    import marey

    score = marey.metrics.compare(solution, recording)
    skeleton, motion = score.skeletons[0], score.motions[0]
    return {
        "adjusted Rand index:": score.bodies[0].ari,
        "centre error:m": score.joints.center,
        "edges right:": score.tree.right,
        "length error:m": skeleton.rms,
        "position error:m": motion.position,
        "rotation error:": motion.rotation,
    }


def rms(values: Any) -> float:
    """Return the root mean square of the finite values; 0 without any."""
    import numpy as np

    known = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(known**2))) if len(known) else 0.0


def change_of(before: Figures, after: Mapping[str, Any]) -> tuple[float, str]:
    """Return the largest relative change of a figure, and which figure that is."""
    if "error" in after:
        return UNLIKE, str(after["error"])
    if after.keys() != before.keys():
        return UNLIKE, " ".join(sorted(after.keys() ^ before.keys()))
    changes = {
        figure: abs(after[figure] - value) / max(abs(value), SMALLEST[unit_of(figure)])
        for figure, value in before.items()
    }
    figure = max(changes, key=changes.__getitem__)
    return changes[figure], figure


def unit_of(figure: str) -> str:
    """Return the unit of a figure, which stands behind the colon of its name."""
    return figure.partition(":")[2]


def read_record() -> Mapping[str, Figures]:
    """Return the figures on record, by take."""
    record: Mapping[str, Figures] = json.loads(RECORD.read_text(encoding="utf-8"))
    return record


def main() -> None:
    """Solve the panel and compare it with the record, or replace the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--record", action="store_true", help="replace the record")
    arguments = parser.parse_args()
    answers = {name: dict(solve()) for name, solve in panel()}
    if arguments.record:
        RECORD.write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")
        return
    record = read_record()
    for name, answer in answers.items():
        change, figure = change_of(record[name], answer)
        if change >= NO_EFFECT:
            old, new = (f.get(figure, float("nan")) for f in (record[name], answer))
            print(f"{name}: {figure} {old:.6g} -> {new:.6g} ({change:.1%})")


if __name__ == "__main__":
    main()
