# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["pose2sim==0.10.49"]
# ///
"""Pose2Sim: its inverse kinematics, `perform_IK`, which runs OpenSim with its set-up.

Its own steps before that make a scaled model with the key points of videos; here the
model is the .osim that marey writes, and its set-up file has the markers of the figure
with the weight 1.
"""

import logging
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import opensim
from peer import Answer, Problem, read_locations, serve
from Pose2Sim.kinematics import get_opensim_setup_dir, perform_IK

FEW, POSE_MODEL = 5, "Body25"


def solve_ik(problem: Problem) -> Iterator[Answer]:
    """Yield the answer of its inverse kinematics."""
    logging.disable(logging.INFO)
    opensim.Logger.setLevelString("Off")
    opensim.Logger.removeFileSink()
    folder, labels = problem.folder, [str(label) for label in problem["labels"]]
    setup, report = (
        write_setup(folder, labels, report=report) for report in (False, True)
    )

    def run(count: int, setup: Path = setup) -> None:
        trc = cut_take(folder, count)
        model = folder / f"{trc.stem}.osim"
        model.write_bytes((folder / "figure.osim").read_bytes())
        perform_IK(trc, folder, setup, POSE_MODEL)

    def markers(count: int) -> np.ndarray:
        run(count, report)
        return read_locations(folder / "_ik_model_marker_locations.sto", labels)

    case = f"Pose2Sim {version('pose2sim')}, perform_IK"
    yield problem.answer(case, run, markers, problem.count(210, 40), FEW)


def write_setup(folder: Path, labels: "list[str]", *, report: bool) -> Path:
    """Write its set-up file with our markers, and return the folder of it."""
    name = f"IK_Setup_Pose2Sim_{POSE_MODEL}.xml"
    text = (Path(get_opensim_setup_dir()) / name).read_text(encoding="utf-8")
    head, _, rest = text.partition("<objects>")
    tasks = "".join(
        f'<IKMarkerTask name="{label}"><apply>true</apply><weight>1</weight>'
        "</IKMarkerTask>"
        for label in labels
    )
    locations = f"<report_marker_locations>{str(report).lower()}"
    head = head.replace(
        "<report_errors>",
        f"{locations}</report_marker_locations>\n<report_errors>",
    ).replace("<results_directory>./<", f"<results_directory>{folder}<")
    inside = folder / f"setup_{report}"
    inside.mkdir()
    _, _, tail = rest.partition("</objects>")
    setup = f"{head}<objects>{tasks}</objects>{tail}"
    (inside / name).write_text(setup, encoding="utf-8")
    return inside


def cut_take(folder: Path, count: int) -> Path:
    """Write the first frames of the take, and return the path."""
    path = folder / f"first_{count}.trc"
    if not path.exists():
        lines = (folder / "take.trc").read_text().splitlines(keepends=True)
        cells = lines[2].split("\t")
        cells[2] = str(count)
        cells[7] = f"{count}\n"
        lines[2] = "\t".join(cells)
        path.write_text("".join(lines[: 6 + count]))
    return path


if __name__ == "__main__":
    serve(ik=solve_ik)
