"""Inverse kinematics beside OpenSim's and MuJoCo's: speed and accuracy on one model.

One figure for all: 16 segments, 44 degrees of freedom, 53 markers, 100 Hz, 2 mm noise.
The time is CPU time of one thread from the pose of the first frame to that of the
last. Building models, reading files, the first frame (solved from scratch) and
compiling do not count: each tool runs twice, through a few frames and through many, and
the difference is taken.
Run: OMP_NUM_THREADS=1 python benchmarks/peers.py (pip install 'marey[bench]').
"""

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from benchmarks.peers.figure import RATE, make_skeleton, record

import marey
from marey.articulated.targets import TargetNames
from marey.numerics import geometry
from marey.pose.gauss_newton.fit import GaussNewtonSolver
from marey.pose.options import GaussNewtonOptions
from marey.skeleton import Skeleton
from marey.take import Take

FEW, REPEATS, SECONDS = 10, 3, 4.0  # of each tool at least so often and so long
PLAIN = {"outlier": 0.0, "limits": False}


def seconds_per_frame(run: Callable[[int], Any], frames: int) -> float:
    """Return the median time of a frame, without that of the first frames."""
    run(FEW)
    spent: list[float] = []
    begin = time.process_time()
    while len(spent) < REPEATS or time.process_time() - begin < SECONDS:
        marks = [time.process_time()]
        for count in (FEW, frames):
            run(count)
            marks.append(time.process_time())
        few, many = np.diff(marks)
        spent.append((many - few) / (frames - FEW))
    return float(np.median(spent))


def marey_solver(
    skeleton: Skeleton, take: Take, **options: Any
) -> tuple[Callable[[int], Any], Callable[[int], np.ndarray]]:
    """Return functions that run the solver and give its marker residuals."""
    fit = GaussNewtonSolver(
        skeleton, TargetNames.of(take), RATE, GaussNewtonOptions(**options)
    )

    def run(count: int) -> Any:
        fit.reset()
        none = np.zeros((count, 0, 4, 4))
        return fit.track((take.points[:count], none), np.arange(count))

    return run, lambda count: fit.marker_residuals(take.points[:count], run(count))


# --- MuJoCo ---------------------------------------------------------------------------


def mujoco(
    skeleton: Skeleton, take: Take, steps: int = 2
) -> tuple[Callable[[int], Any], Callable[[int], np.ndarray]]:
    """Return functions that run Gauss-Newton on MuJoCo's Jacobians of sites."""
    import mujoco as mj

    model = mj.MjModel.from_xml_string(mjcf(skeleton, 0))
    data = mj.MjData(model)
    sites = len(skeleton.marker_labels)
    J, r = np.empty((3 * sites, model.nv)), np.empty(3 * sites)
    rows = [J[3 * s : 3 * s + 3] for s in range(sites)]
    diagonal, start = np.diag_indices(model.nv), data.qpos.copy()
    start[:3] = skeleton.offset[0]

    def step(y: np.ndarray) -> None:
        mj.mj_kinematics(model, data)
        mj.mj_comPos(model, data)
        for s in range(sites):
            mj.mj_jacSite(model, data, rows[s], None, s)
        r[:] = (y - data.site_xpos).ravel()
        H = J.T @ J
        H[diagonal] += 1e-9
        mj.mj_integratePos(model, data.qpos, np.linalg.solve(H, J.T @ r), 1.0)

    def run(count: int, residual: np.ndarray | None = None) -> None:
        data.qpos[:] = start
        for f in range(count):
            for _ in range(60 if f == 0 else steps):
                step(take.points[f])
            if residual is not None:
                mj.mj_kinematics(model, data)
                residual[f] = np.linalg.norm(take.points[f] - data.site_xpos, axis=-1)

    def distances(count: int) -> np.ndarray:
        residual = np.empty((count, sites))
        run(count, residual)
        return residual

    return run, distances


def mjcf(skeleton: Skeleton, i: int, /) -> str:
    """Return a body of the model with all it carries, the whole model for the root."""
    kind = skeleton.kind[i]
    joints = {"root": "<freejoint/>", "ball": '<joint type="ball"/>'}
    hinges = "".join(
        '<joint type="hinge" axis="{} {} {}"/>'.format(*axis)
        for axis in skeleton.axes[i, : 1 if kind == "hinge" else 2]
    )
    text = '<body pos="{} {} {}">'.format(*skeleton.offset[i])
    text += joints.get(kind, hinges) + '<geom size="0.03" mass="1"/>'
    for k in np.flatnonzero(skeleton.marker_joint == i):
        text += '<site pos="{} {} {}"/>'.format(*skeleton.marker_offset[k])
    children = np.flatnonzero(skeleton.parent == i)
    text += "".join(mjcf(skeleton, int(j)) for j in children) + "</body>"
    if i > 0:
        return text
    return f'<mujoco><option gravity="0 0 0"/><worldbody>{text}</worldbody></mujoco>'


# --- OpenSim --------------------------------------------------------------------------


def opensim(
    skeleton: Skeleton, take: Take, folder: Path, *, custom: bool
) -> tuple[Callable[[int], Any], Callable[[int], np.ndarray]]:
    """Return functions that run OpenSim's tool on a model and a TRC written here.

    Args:
        skeleton: The model.
        take: The recording.
        folder: Where files go.
        custom: Whether joints are of the kind that OpenSim's models of people have,
            with an axis and a function per coordinate, rather than its plain ones.
    """
    import opensim as osim

    osim.Logger.setLevelString("Off")
    osim.Logger.removeFileSink()
    path = folder / f"figure-{'custom' if custom else 'plain'}.osim"
    write_osim(osim, skeleton, path, custom=custom)
    trc = folder / "take.trc"
    marey.write(take, trc, overwrite=True)
    model = osim.Model(str(path))

    def run(count: int, *, report: bool = False) -> None:
        tool = osim.InverseKinematicsTool()
        tool.setModel(model)
        tool.setMarkerDataFileName(str(trc))
        tool.setStartTime(0.0)
        tool.setEndTime((count - 1) / RATE)
        tool.setResultsDir(str(folder))
        tool.setOutputMotionFileName(str(folder / "figure.mot"))
        tool.set_report_errors(False)
        tool.set_report_marker_locations(report)
        with quiet():
            tool.run()

    def distances(count: int) -> np.ndarray:
        run(count, report=True)
        table = np.loadtxt(folder / "_ik_model_marker_locations.sto", skiprows=7)
        x, y, z = np.moveaxis(table[:, 1:].reshape(count, -1, 3), -1, 0)
        # The TRC is Y up, the take Z up.
        found = np.stack([x, -z, y], axis=-1)
        return np.asarray(np.linalg.norm(take.points[:count] - found, axis=-1))

    return run, distances


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what a library writes past Python's own output off the screen."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def write_osim(osim: Any, skeleton: Skeleton, path: Path, *, custom: bool) -> None:
    """Write the model in OpenSim's format."""
    model, bodies, zero = osim.Model(), [], osim.Vec3(0)
    for i, name in enumerate(skeleton.names):
        body = osim.Body(name, 1.0, zero, osim.Inertia(0.1, 0.1, 0.1, 0, 0, 0))
        model.addBody(body)
        above = bodies[skeleton.parent[i]] if i else model.getGround()
        position = osim.Vec3(*map(float, skeleton.offset[i])) if i else zero
        kind = skeleton.kind[i] if i == 0 or not custom else "custom"
        make = {
            "root": osim.FreeJoint,
            "ball": osim.BallJoint,
            "universal": osim.UniversalJoint,
            "hinge": osim.PinJoint,
            "custom": osim.CustomJoint,
        }[kind]
        rotation = joint_frame(osim, skeleton, i) if kind != "custom" else zero
        more = (spatial(osim, skeleton, i),) if kind == "custom" else ()
        model.addJoint(
            make(
                f"{name}_joint", above, position, rotation, body, zero, rotation, *more
            )
        )
        bodies.append(body)
    for k, label in enumerate(skeleton.marker_labels):
        at = osim.Vec3(*map(float, skeleton.marker_offset[k]))
        model.addMarker(osim.Marker(label, bodies[skeleton.marker_joint[k]], at))
    model.finalizeConnections()
    model.printToXML(str(path))


def joint_frame(osim: Any, skeleton: Skeleton, i: int) -> Any:
    """Return the XYZ angles of the frame in which OpenSim has a joint's axes.

    Its pins rotation about z, its universal joints about x, then y.
    """
    if skeleton.kind[i] not in ("hinge", "universal"):
        return osim.Vec3(0)
    x, y = skeleton.axes[i]
    if skeleton.kind[i] == "hinge":
        x, y = y, np.cross(x, y)
    R = np.stack([x, y, np.cross(x, y)], axis=-1)
    angles = geometry.euler_from_quat(geometry.quat_from_matrix(R), "XYZ")
    return osim.Vec3(*map(float, angles))


def spatial(osim: Any, skeleton: Skeleton, i: int) -> Any:
    """Return the axes and coordinates of a custom joint."""
    free = {"ball": 3, "universal": 2, "hinge": 1}[skeleton.kind[i]]
    x, y = skeleton.axes[i]
    transform = osim.SpatialTransform()
    for k, axis in enumerate((x, y, np.cross(x, y))):
        rotation = getattr(transform, f"upd_rotation{k + 1}")()
        rotation.setAxis(osim.Vec3(*map(float, axis)))
        if k < free:
            names = osim.ArrayStr()
            names.append(f"{skeleton.names[i]}_{k}")
            rotation.setCoordinateNames(names)
            rotation.set_function(osim.LinearFunction(1.0, 0.0))
        else:
            rotation.set_function(osim.Constant(0.0))
    return transform


# --- side by side ---------------------------------------------------------------------


def main() -> int:
    skeleton = make_skeleton()
    take = record(skeleton, 4000)
    rows: dict[str, tuple[float, float, float]] = {}

    def measure(
        name: str, pair: tuple[Any, Any], frames: int, best: np.ndarray
    ) -> None:
        run, distances = pair
        speed = 1.0 / seconds_per_frame(run, frames)
        rms, least = (
            1e3 * np.sqrt(np.mean(residual[:frames] ** 2))
            for residual in (distances(frames), best)
        )
        rows[name] = (speed, rms, rms / least - 1.0)
        print(f"{name:<44} {speed:>9.0f} fps  rms {rms:.4f} mm, {rows[name][2]:+.3%}")

    print("16 segments, 44 degrees of freedom, 53 markers, one core")
    print("frames per second; marker error; how far above the least possible")
    best = marey_solver(skeleton, take, tolerance=1e-13, **PLAIN)[1](take.n_frames)
    robust = marey_solver(skeleton, take, tolerance=1e-13)[1](take.n_frames)
    measure("marey, least squares", marey_solver(skeleton, take, **PLAIN), 4000, best)
    measure("marey, limits and outliers", marey_solver(skeleton, take), 4000, best)
    converged = 1e3 * np.sqrt(np.mean(robust**2))
    print(f"{'':<44} of these converged: {converged:.4f} mm,", end="")
    print(f" {rows['marey, limits and outliers'][1] / converged - 1.0:+.3%}")
    try:
        measure("MuJoCo from Python, 2 steps", mujoco(skeleton, take), 500, best)
    except ImportError:
        print("MuJoCo: SKIPPED, it is not installed (pip install mujoco)")
    try:
        with tempfile.TemporaryDirectory() as name:
            for custom, words in ((True, "joints as in its people"), (False, "pins")):
                pair = opensim(skeleton, take, Path(name), custom=custom)
                measure(f"OpenSim's IK tool, {words}", pair, 210, best)
    except ImportError:
        print("OpenSim: SKIPPED, it is not installed (pip install opensim)")
    for name, (speed, *_) in list(rows.items())[2:]:
        both = [rows[ours][0] / speed for ours in list(rows)[:2]]
        print(f"marey / {name:<36} {both[1]:>9.1f} x, plain {both[0]:.1f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
