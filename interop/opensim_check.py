"""What OpenSim makes of our models: joints at all frames, its own IK on our markers.

    python interop/opensim_check.py [recording ...]

Without a recording a synthetic walk is solved. Both sides minimise the squares of all
markers (`outlier=0`), because OpenSim has no robust loss. OpenSim lives in an
environment of its own, interop/.opensim, which is made on the first run. This file
writes with marey and then runs itself there, where only OpenSim and NumPy are imported.
"""

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
ENVIRONMENT = HERE / ".opensim"
MAX_JOINT_ERROR_MM = 0.01
MAX_IK_DIFFERENCE = 0.02
MAX_FRAMES = 300
LEG_ANGLES = {
    "hip_flexion": "hip_flexion",
    "knee_angle": "knee_flexion",
    "ankle_angle": "ankle_dorsiflexion",
}
"""Coordinates of OpenSim without their side, and our clinical angles."""
TO_Z_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""OpenSim's world has Y up."""


def main() -> int:
    """Write solved takes, let OpenSim read them, and return how many do not agree."""
    recordings = sys.argv[1:] or ["a synthetic walk"]
    return sum(not check(recording) for recording in recordings)


def check(recording: str) -> bool:
    """Return whether OpenSim agrees on one recording."""
    print(f"== {Path(recording).name}")
    with tempfile.TemporaryDirectory() as folder:
        write_sample(Path(folder), recording)
        command = [opensim_python(), __file__, "--read", folder]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures = json.loads(done.stdout.strip().split("\n")[-1])
    for name, value in figures.items():
        print(f"{name:<40} {value:.6g}")
    ours, theirs = figures["marker rms, marey (mm)"], figures["marker rms, IK (mm)"]
    good = figures["joints from .mot (mm)"] < MAX_JOINT_ERROR_MM
    good &= figures["markers from .mot (mm)"] < MAX_JOINT_ERROR_MM
    good &= abs(theirs / ours - 1.0) < MAX_IK_DIFFERENCE
    print("OpenSim agrees" if good else "OpenSim does not agree")
    return bool(good)


def opensim_python() -> str:
    """Return the interpreter of the environment with OpenSim."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        venv.create(ENVIRONMENT, with_pip=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", "opensim==4.6"], check=True
        )
    return str(python)


# --- marey's side --------------------------------------------------------------------


def write_sample(folder: Path, recording: str) -> None:
    """Write a solved take, and where its joints and markers are."""
    import marey
    from marey.skeleton import marker_columns

    if Path(recording).exists():
        take = marey.read(recording, drop=["*JC"])
        take = take.cut(0, min(take.n_frames, MAX_FRAMES))
    else:
        person = marey.synth.human(seed=0)
        take = person.record(motion="walk", seconds=2.0, rate=60.0, noise=0.001)
    solution, robust = marey.solve(take, outlier=0.0), marey.solve(take)
    marey.write(solution, folder / "walk.osim")
    motion = solution.motion
    columns = marker_columns(motion.skeleton, solution.take)
    angles = marey.angles(motion)
    sides = {"l": "left", "r": "right"}
    names = {
        f"{coordinate}_{letter}": f"{side}_{angle}"
        for coordinate, angle in LEG_ANGLES.items()
        for letter, side in sides.items()
    }
    np.savez(
        folder / "angles.npz",
        **{name: angles[ours] for name, ours in names.items() if ours in angles.names},
    )
    np.savez(
        folder / "expected.npz",
        joints=motion.T_world_joint()[..., :3, 3],
        joint_names=motion.skeleton.names,
        markers=motion.marker_points(),
        marker_names=motion.skeleton.marker_labels,
        recorded=solution.take.points[:, columns],
        robust=robust.motion.marker_points()
        - robust.take.points[:, marker_columns(robust.motion.skeleton, robust.take)],
    )


# --- OpenSim's side ------------------------------------------------------------------


def read_sample(folder: Path) -> None:
    """Print the errors of the files in a folder as JSON."""
    import opensim

    opensim.Logger.setLevelString("Error")
    opensim.Logger.removeFileSink()
    expected = np.load(folder / "expected.npz")
    model = opensim.Model(str(folder / "walk.osim"))
    state = model.initSystem()
    table = opensim.TimeSeriesTable(str(folder / "walk.mot"))
    names = [str(name) for name in expected["joint_names"]]
    labels = [str(label) for label in expected["marker_names"]]
    frames = [find_frame(model, name) for name in names]
    joints, markers = play(model, state, table, frames, labels)
    figures = {
        "joints from .mot (mm)": 1e3 * np.abs(joints - expected["joints"]).max(),
        "markers from .mot (mm)": 1e3 * np.abs(markers - expected["markers"]).max(),
        "marker rms, marey (mm)": 1e3 * rms(expected["markers"] - expected["recorded"]),
        "marker rms, marey with its robust loss": 1e3 * rms(expected["robust"]),
    }
    solved = run_inverse_kinematics(opensim, model, folder)
    _, markers = play(model, state, solved, frames, labels)
    figures["marker rms, IK (mm)"] = 1e3 * rms(markers - expected["recorded"])
    figures |= compare_angles(solved, np.load(folder / "angles.npz"))
    print(json.dumps({name: float(value) for name, value in figures.items()}))


def compare_angles(solved: Any, ours: Any) -> dict[str, float]:
    """Return rms difference and correlation of our angles and OpenSim's coordinates."""
    figures = {}
    labels = list(solved.getColumnLabels())
    values = solved.getMatrix().to_numpy()
    for name in (name for name in ours.files if name in labels):
        theirs = values[:, labels.index(name)]
        known = np.isfinite(ours[name])
        difference = ours[name][known] - theirs[known]
        figures[f"{name}: rms (deg)"] = np.sqrt(np.mean(difference**2))
        figures[f"{name}: correlation"] = np.corrcoef(ours[name][known], theirs[known])[
            0, 1
        ]
    return figures


def find_frame(model: Any, name: str) -> Any:
    """Return the body of a joint, or the frame of a fixed one."""
    bodies = model.getBodySet()
    if bodies.contains(name):
        return bodies.get(name)
    for body in (bodies.get(i) for i in range(bodies.getSize())):
        if body.hasComponent(name):
            return type_of_frame(body.getComponent(name))
    raise KeyError(name)


def type_of_frame(component: Any) -> Any:
    """Return a component as the frame that it is."""
    import opensim

    return opensim.PhysicalOffsetFrame.safeDownCast(component)


def play(
    model: Any, state: Any, table: Any, frames: list[Any], labels: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of joints and markers at all rows of a table, with Z up."""
    columns = [str(name) for name in table.getColumnLabels()]
    values = table.getMatrix().to_numpy()
    in_degrees = table.getTableMetaDataString("inDegrees") == "yes"
    coordinates = [model.getCoordinateSet().get(name) for name in columns]
    is_angle = [c.getMotionType() == 1 for c in coordinates]
    scale = np.where(np.array(is_angle) & in_degrees, np.pi / 180.0, 1.0)
    markers = [model.getMarkerSet().get(label) for label in labels]
    at = {"joint": [], "marker": []}
    for row in scale * values:
        for coordinate, value in zip(coordinates, row, strict=True):
            coordinate.setValue(state, float(value), False)
        model.realizePosition(state)
        at["joint"].append([f.getPositionInGround(state).to_numpy() for f in frames])
        at["marker"].append([m.getLocationInGround(state).to_numpy() for m in markers])
    joints, points = (
        np.array(positions).reshape(len(values), -1, 3) @ TO_Z_UP.T
        for positions in at.values()
    )
    return joints, points


def run_inverse_kinematics(opensim: Any, model: Any, folder: Path) -> Any:
    """Return the coordinates that OpenSim finds for the markers of the TRC."""
    tool = opensim.InverseKinematicsTool()
    tool.setModel(model)
    tool.setMarkerDataFileName(str(folder / "walk.trc"))
    tool.setOutputMotionFileName(str(folder / "ik.mot"))
    tool.setResultsDir(str(folder))
    tool.set_report_errors(False)
    tool.set_accuracy(1e-7)
    markers = model.getMarkerSet()
    for i in range(markers.getSize()):
        task = opensim.IKMarkerTask()
        task.setName(markers.get(i).getName())
        task.setApply(True)
        task.setWeight(1.0)
        tool.getIKTaskSet().cloneAndAppend(task)
    times = opensim.TimeSeriesTableVec3(str(folder / "walk.trc")).getIndependentColumn()
    tool.setStartTime(times[0])
    tool.setEndTime(times[-1])
    tool.run()
    return opensim.TimeSeriesTable(str(folder / "ik.mot"))


def rms(difference: np.ndarray) -> float:
    """Return the root mean square distance of markers."""
    return float(np.sqrt(np.nanmean(np.sum(difference**2, axis=-1))))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read_sample(Path(sys.argv[2]))
    else:
        sys.exit(main())
