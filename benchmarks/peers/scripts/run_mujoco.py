# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["mujoco==4.0.0", "numpy"]
# ///
"""MuJoCo: Gauss-Newton on its Jacobians of sites, from Python and from C.

The model is the MJCF that marey writes. The C loop (`mujoco_loop.c`) does the same in
one call; it is compiled here, where there is a compiler.
"""

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
from peer import Answer, Problem, serve

FEW, STEPS, FIRST_STEPS, DAMPING = 10, 2, 60, 1e-9


def solve_ik(problem: Problem) -> Iterator[Answer]:
    """Yield the answers of Python and of C."""
    model = mujoco.MjModel.from_xml_path(str(problem.folder / "figure.mjcf"))
    sites = np.array([model.site(str(label)).id for label in problem["labels"]])
    start = mujoco.MjData(model).qpos.copy()
    start[:3] = problem["offset"][0]
    version = f"MuJoCo {mujoco.__version__}"
    yield solve_in_python(problem, model, sites, start, version)
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler:
        yield solve_in_c(problem, model, sites, start, version, compiler)


def solve_in_python(
    problem: Problem,
    model: mujoco.MjModel,
    sites: np.ndarray,
    start: np.ndarray,
    version: str,
) -> Answer:
    """Return the answer of a loop in Python."""
    data, n = mujoco.MjData(model), len(sites)
    J, r = np.empty((3 * n, model.nv)), np.empty(3 * n)
    rows = [J[3 * k : 3 * k + 3] for k in range(n)]
    diagonal = np.diag_indices(model.nv)

    def step(target: np.ndarray) -> None:
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        for k, site in enumerate(sites):
            mujoco.mj_jacSite(model, data, rows[k], None, site)
        r[:] = (target - data.site_xpos[sites]).ravel()
        H = J.T @ J
        H[diagonal] += DAMPING
        change = np.linalg.solve(H, J.T @ r)
        mujoco.mj_integratePos(model, data.qpos, change, 1.0)

    def run(count: int, found: np.ndarray | None = None) -> None:
        data.qpos[:] = start
        for f in range(count):
            for _ in range(FIRST_STEPS if f == 0 else STEPS):
                step(problem.points[f])
            if found is not None:
                mujoco.mj_kinematics(model, data)
                found[f] = data.site_xpos[sites]

    def markers(count: int) -> np.ndarray:
        found = np.empty((count, n, 3))
        run(count, found)
        return found

    case = f"{version} from Python, {STEPS} steps"
    return problem.answer(case, run, markers, problem.count(500, 200), FEW)


def solve_in_c(
    problem: Problem,
    model: mujoco.MjModel,
    sites: np.ndarray,
    start: np.ndarray,
    version: str,
    compiler: str,
) -> Answer:
    """Return the answer of the same loop in C."""
    package = Path(mujoco.__file__).parent
    library = next(package.glob("libmujoco.*"))
    shared = problem.folder / "mujoco_loop.so"
    source = Path(__file__).with_name("mujoco_loop.c")
    flags = ["-O3", "-march=native", "-shared", "-fPIC", f"-I{package / 'include'}"]
    subprocess.run(
        [compiler, *flags, str(source), str(library), "-o", str(shared)], check=True
    )
    mujoco.mj_saveModel(model, str(problem.folder / "figure.mjb"))
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    loop = ctypes.CDLL(str(shared))
    doubles = np.ctypeslib.ndpointer(dtype=float, flags="C")
    ints = np.ctypeslib.ndpointer(dtype=np.int32, flags="C")
    loop.load.argtypes = [ctypes.c_char_p]
    loop.track.argtypes = [doubles, doubles, ints, *[ctypes.c_int] * 4, doubles]
    loop.load(str(problem.folder / "figure.mjb").encode())
    places, n = sites.astype(np.int32), len(sites)
    points = np.ascontiguousarray(problem.points)

    def markers(count: int) -> np.ndarray:
        found = np.empty((count, n, 3))
        loop.track(points, start, places, n, count, STEPS, FIRST_STEPS, found)
        return found

    case = f"{version} from C, {STEPS} steps"
    return problem.answer(case, markers, markers, problem.count(4000, 1000), FEW)


if __name__ == "__main__":
    serve(ik=solve_ik)
