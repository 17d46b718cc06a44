# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["opensim==4.6", "numpy"]
# ///
"""OpenSim: its tool for inverse kinematics, on the model and the TRC that marey writes.

As in "How to Use the IK Tool": a model, a TRC and a range of time, all markers with the
weight 1 and the accuracy 1e-5 that it has by default.
"""

from collections.abc import Iterator

import numpy as np
import opensim
from peer import Answer, Problem, read_locations, serve

FEW = 10


def solve_ik(problem: Problem) -> Iterator[Answer]:
    """Yield the answer of the IK tool."""
    opensim.Logger.setLevelString("Off")
    opensim.Logger.removeFileSink()
    folder, rate = problem.folder, float(problem["rate"])
    model = opensim.Model(str(folder / "figure.osim"))

    def run(count: int, *, report: bool = False) -> None:
        tool = opensim.InverseKinematicsTool()
        tool.setModel(model)
        tool.setMarkerDataFileName(str(folder / "take.trc"))
        tool.setStartTime(0.0)
        tool.setEndTime((count - 1) / rate)
        tool.setResultsDir(str(folder))
        tool.setOutputMotionFileName(str(folder / "opensim.mot"))
        tool.set_report_errors(False)
        tool.set_report_marker_locations(report)
        tool.run()

    def markers(count: int) -> np.ndarray:
        run(count, report=True)
        locations = folder / "_ik_model_marker_locations.sto"
        return read_locations(locations, problem["labels"])

    version = opensim.GetVersion().partition("-")[0]
    case = f"OpenSim {version}, IK tool"
    yield problem.answer(case, run, markers, problem.count(210, 60), FEW)


if __name__ == "__main__":
    serve(ik=solve_ik)
