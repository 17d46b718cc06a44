"""Calibration on recordings: bones of one person take by take, and against references.

Lengths are in mm. Rows:

- alone: every moving take of a person is solved alone. Standard deviation over the
  takes of thigh, shank, upper arm, forearm (both sides) and of the distance of the hips
  (rms of all), and the same over the stated standard deviation (z).
- static: joints of a moving take against its reference, solved alone and together with
  a standing take of the day, rms. A fitted reference is no truth; only the increase
  counts.
- exact: walks with computed markers, whose joints are known: with labels, without, and
  with 1 mm of noise; the error of thigh and shank over its standard deviation (z).
- hips: hips against those that the laboratory found in a functional trial, rms.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

import marey
from benchmarks.harness.task import Row, Setting
from marey.io.units_axes import points_from_file
from marey.skeleton import Skeleton

SUBJECTS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "CMU 02": ("cmu", ("02_01.c3d", "02_05.c3d"), ""),
    "CMU 07": ("cmu", ("07_01.c3d", "07_12.c3d"), ""),
    "Uhlrich 2": (
        "addbio_uhlrich_s2",
        ("squats1.trc", "walking1.trc", "DJ1.trc"),
        "static1.trc",
    ),
    "Uhlrich 4": (
        "addbio_uhlrich_s4",
        ("squats1.trc", "walking1.trc", "DJ1.trc"),
        "static1.trc",
    ),
    "Uhlrich 6": (
        "addbio_uhlrich_s6",
        ("squats1.trc", "walking1.trc", "walking2.trc", "DJ1.trc"),
        "static1.trc",
    ),
    "Uhlrich 11": (
        "addbio_uhlrich_s11",
        ("squats1.trc", "walking2.trc", "DJ5.trc"),
        "static1.trc",
    ),
    "Hamner 1": ("addbio_hamner_s01", ("run500.trc",), "Static_FJC.trc"),
    "Hamner 2": ("addbio_hamner_s02", ("run300.trc", "run500.trc"), "Static_FJC.trc"),
    "Hamner 20": ("addbio_hamner_s20", ("run300.trc", "run500.trc"), "Static_FJC.trc"),
    "sprinter": (
        "nimble_sprinter",
        ("run0350cms.trc", "run0700cms.trc", "run0900cms.trc"),
        "static.trc",
    ),
    "KU Leuven": (
        "nimble_kuleuven_weirdtrc",
        ("markers_Gait7.trc", "markers_Squat2.trc", "markers_StairUp3.trc"),
        "",
    ),
    "hybrid": (
        "c3dorg_qualisys_hybrid",
        ("Walking_Hybrid_1_1.c3d", "Walking_Hybrid_1_2.c3d"),
        "Standing_Hybrid_1.c3d",
    ),
    "sparse": ("c3dorg_qualisys_sparse", ("Capture0003.c3d", "Capture0004.c3d"), ""),
    "plates": ("nimble_complexknee_dem", ("2022_01_0401.c3d", "2022_01_0403.c3d"), ""),
    "functional": ("biobuddy_functional", ("right_hip.c3d", "right_knee.c3d"), ""),
    "Plug-in Gait": (
        "btk_plugingait",
        ("PiG_Motion-FlatFoot-Full.c3d", "PiG_Calibration-FlatFoot-Full.c3d"),
        "",
    ),
}
"""Folder, moving takes and standing take of each person."""

EXACT = {
    "Arnold 1": "addbio_arnold_s01_synthetic",
    "Arnold 2": "addbio_arnold_s02_synthetic",
}
BONES = ("LowerLeg", "Foot", "LowerArm", "Hand")
REFERENCE = {"UpperLeg": "hip", "LowerLeg": "knee", "Foot": "ankle"}
SIDES = ("Left", "Right")
HEADLINE = "spread [mm]"
KEY_CASES = ("rms of *",)
LIMIT_S = 7200.0
NOISE_M, DRAWS = 1e-3, 4
MM = 1e3

Figures = dict[str, float]


def find(*parts: str) -> Path:
    """Return the recording below one of the folders of MAREY_DATA."""
    for folder in os.environ["MAREY_DATA"].split(os.pathsep):
        if (path := Path(folder, *parts)).is_file():
            return path
    raise FileNotFoundError(os.path.join(*parts))


def rms(values: Sequence[float] | np.ndarray) -> float:
    """Return the root mean square of the finite values."""
    finite = np.asarray(values)[np.isfinite(values)]
    return float(np.sqrt(np.mean(finite**2))) if len(finite) else float("nan")


def solve(paths: Sequence[Path]) -> marey.Solution:
    """Return the solution of takes of one person."""
    return marey.solve([*paths], options=marey.SolveOptions(whole=False))


# --- takes alone ----------------------------------------------------------------------


def bones(skeleton: Skeleton) -> np.ndarray:
    """Return length and standard deviation of the bones, (bone, 2) in mm, or NaN."""
    found = []
    for name in (side + bone for bone in BONES for side in SIDES):
        known = name in skeleton.names
        j = skeleton.index(name) if known else 0
        pair = skeleton.lengths[j], skeleton.length_sd[j]
        found.append(pair if known else (np.nan, np.nan))
    hips = [f"{side}UpperLeg" for side in SIDES]
    width, sd = np.nan, np.nan
    if all(hip in skeleton.names for hip in hips):
        left, right = (skeleton.index(hip) for hip in hips)
        apart = skeleton.offset[left] - skeleton.offset[right]
        width = float(np.linalg.norm(apart))
        # The root lies midway between the hips: twice the covariance of one.
        unit = apart / width
        sd = 2.0 * float(np.sqrt(unit @ skeleton.covariance[left] @ unit))
    return MM * np.array([*found, (width, sd)])


def row_alone(subject: str) -> Figures:
    """Return the spread of the bones of a person whose takes are solved alone."""
    folder, takes, _ = SUBJECTS[subject]
    found = np.array([bones(solve([find(folder, t)]).skeleton) for t in takes])
    spread = np.std(found[..., 0], axis=0, ddof=1)
    stated = np.sqrt(np.mean(found[..., 1] ** 2, axis=0))
    return {
        "spread [mm]": rms(spread),
        "z": rms(spread / stated),
    }


# --- against references ---------------------------------------------------------------


def joint_errors(solution: marey.Solution, take: int, path: Path) -> Figures:
    """Return the rms distance of hips, knees and ankles from the reference, in mm."""
    motion = solution.subjects[0].motions[take]
    with np.load(path) as data:
        names = [name.removeprefix("walker_") for name in data["joint"]]
        true = data["pos_mm"] / MM
        true = points_from_file(true, "m", "y")
        start = solution.takes[take].start
        frames = np.rint((data["time"] - start) * motion.rate).astype(int)
    position = motion.T_world_joint()[frames, :, :3, 3]
    row: Figures = {}
    for name, joint in REFERENCE.items():
        distance = []
        for side in SIDES:
            at = f"{joint}_{side[0].lower()}"
            if side + name not in motion.skeleton.names or at not in names:
                continue
            off = position[:, motion.skeleton.index(side + name)]
            off = off - true[:, names.index(at)]
            distance.append(np.linalg.norm(off, axis=1))
        row[joint] = MM * rms(np.ravel(distance))
    return row


def row_static(subject: str, take: str) -> Figures:
    """Return the errors of a take, alone and with the standing take of the day."""
    folder, _, static = SUBJECTS[subject]
    reference = find(folder, take.replace(".trc", "_ref_joints.npz"))
    moving, standing = find(folder, take), find(folder, static)
    alone = joint_errors(solve([moving]), 0, reference)
    both = joint_errors(solve([moving, standing]), 0, reference)
    return {
        **{f"{joint} alone": x for joint, x in alone.items()},
        **{f"{joint} with": x for joint, x in both.items()},
    }


def row_exact(folder: str, kind: str, draw: int) -> Figures:
    """Return the errors of a walk with computed markers, and z of thigh and shank."""
    take = marey.read(find(folder, "walk2.trc"))
    if kind == "noise":
        rng = np.random.default_rng(draw)
        points = take.points + rng.normal(scale=NOISE_M, size=take.points.shape)
        take = replace(take, points=points)
    if kind == "unlabelled":
        labels = tuple(f"M{n:03}" for n in range(len(take.labels)))
        take = replace(take, labels=labels)
    solution = marey.solve(take, options=marey.SolveOptions(whole=False))
    path = find(folder, "walk2_ref_joints.npz")
    row = joint_errors(solution, 0, path)
    with np.load(path) as data:
        names = [name.removeprefix("walker_") for name in data["joint"]]
        true = data["pos_mm"]
    z = []
    for k, side in product((0, 2), SIDES):
        upper, lower = ("hip", "knee") if k == 0 else ("knee", "ankle")
        ends = [true[:, names.index(f"{j}_{side[0].lower()}")] for j in (upper, lower)]
        length = float(np.linalg.norm(ends[0] - ends[1], axis=1).mean())
        found, sd = bones(solution.skeleton)[k + SIDES.index(side)]
        z.append((found - length) / sd)
    return {**row, "z": rms(np.array(z))}


def row_hips(subject: str, take: str) -> Figures:
    """Return the rms distance of the hips from those of the laboratory, in mm."""
    path = find(SUBJECTS[subject][0], take)
    solution, measured = solve([path]), marey.read(path)
    motion = solution.subjects[0].motions[0]
    row: Figures = {}
    for side in SIDES:
        hip = motion.skeleton.index(f"{side}UpperLeg")
        found = motion.T_world_joint()[:, hip, :3, 3]
        true = measured.points[:, measured.labels.index(f"{side[0]}_HJC")]
        row[side] = MM * rms(np.linalg.norm(found - true, axis=1))
    return row


# --- rows -----------------------------------------------------------------------------


def rows() -> Iterator[tuple[str, Callable[[], Figures]]]:
    """Yield the name of each row and the call that measures it."""
    for subject, (folder, takes, static) in SUBJECTS.items():
        if len(takes) > 1:
            yield f"alone, {subject}", partial(row_alone, subject)
        for take in takes if static.endswith("trc") else ():
            yield f"static, {subject} {take}", partial(row_static, subject, take)
        for take in takes if "uhlrich" in folder else ():
            yield f"hips, {subject} {take}", partial(row_hips, subject, take)
    yield from exact_rows()


def exact_rows() -> Iterator[tuple[str, Callable[[], Figures]]]:
    """Yield name and call of the rows of computed markers."""
    for subject, folder in EXACT.items():
        for kind, draws in (("labels", 1), ("unlabelled", 1), ("noise", DRAWS)):
            for draw in range(draws):
                name = f"exact, {subject} {kind} {draw}"
                yield name, partial(row_exact, folder, kind, draw)


def measure(setting: Setting) -> Iterator[Row]:
    if not os.environ.get("MAREY_DATA"):
        yield Row("persons", skipped="no recordings: MAREY_DATA names no folder")
        return
    found: dict[str, list[Figures]] = {}
    wanted = [(name, call) for name, call in rows() if setting.wants(name)]
    for name, call in wanted[: setting.choose(len(wanted), 2)]:
        figures = call()
        found.setdefault(name.partition(",")[0], []).append(figures)
        yield Row(name, figures)
    for kind, each in found.items():
        together = {name: rms([one[name] for one in each]) for name in each[0]}
        yield Row(f"rms of {kind}", together)
