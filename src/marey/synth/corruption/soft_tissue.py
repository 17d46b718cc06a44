"""Corruption at the body: soft tissue, moving knee centres, slipping sensors."""

import numpy as np
from jaxtyping import Bool, Float, Int

from marey.errors import OptionError
from marey.numerics import geometry
from marey.synth.corruption.state import Work, directions
from marey.synth.performance.curves import rise

Array = np.ndarray

# How much the flesh slides on each body, against that of a thigh.
FLESH = {
    "Hips": 0.6,
    "Spine": 0.6,
    "Neck": 0.15,
    "UpperArm": 0.9,
    "LowerArm": 0.6,
    "Hand": 0.3,
    "UpperLeg": 1.0,
    "LowerLeg": 0.6,
    "Foot": 0.3,
}

# Travel of the knee's centre over two radians: forward, sideways, along (OBrien2000).
KNEE_TRAVEL = np.array([0.0143, 0.0056, 0.007])


def shift_knees(work: Work) -> None:
    """Move everything below each knee as the knee bends."""
    for subject, motion in enumerate(work.truth.motions):
        skeleton = motion.skeleton
        T = motion.T_world_joint()
        for knee, name in enumerate(skeleton.names):
            if not name.endswith("LowerLeg"):
                continue
            bend = np.linalg.norm(geometry.quat_log(motion.wxyz[:, knee]), axis=-1)
            way = work.options.knee_shift * rise(bend / 2.0)[:, None] * KNEE_TRAVEL
            R = T[:, skeleton.parent[knee], :3, :3]
            moved = np.einsum("fij,fj->fi", R, way)
            below = _descends(skeleton.parent, knee)
            _carry(work, subject, below, moved)
            work.note("knee_shift", size=np.abs(moved).max(), index=knee)


def _descends(parent: Int[Array, " joint"], top: int) -> Bool[Array, " joint"]:
    below = np.zeros(len(parent), dtype=bool)
    for joint, up in enumerate(parent):
        below[joint] = joint == top or (up >= 0 and below[up])
    return below


def _carry(work: Work, subject: int, joints: Array, way: Array) -> None:
    """Move the markers and sensors on some joints of a subject."""
    truth = work.truth
    mine = (truth.marker_subject == subject) & joints[truth.marker_joint]
    work.points[:, mine] += way[:, None]
    mine = (truth.sensor_subject == subject) & joints[truth.sensor_joint]
    place = work.T[..., :3, 3]
    place[:, mine] += way[:, None]


def soft_tissue(work: Work) -> None:
    """Slide skin in proportion to the angles of the neighbouring joints."""
    truth, rng = work.truth, work.rng("soft_tissue")
    _check_bodies(work)
    for subject, (figure, motion) in enumerate(
        zip(truth.figures, truth.motions, strict=True)
    ):
        T = motion.T_world_joint()
        for body in figure.bodies.tolist():
            drive = _drive(figure.body_of, motion.skeleton.parent, motion.wxyz, body)
            if drive.shape[1] == 0:
                continue
            amount = _amount(work, motion.skeleton.names[body])
            common = rng.normal(size=(2, 3, drive.shape[1]))
            _slide_markers(work, rng, subject, body, T, drive, common, amount)
            _slide_sensor(work, rng, subject, body, T, drive, common, amount)
    work.note("soft_tissue", size=work.options.soft_tissue)


def _check_bodies(work: Work) -> None:
    names = [f.skeleton.names[body] for f in work.truth.figures for body in f.bodies]
    for name in work.options.soft_tissue_on:
        if name not in names:
            needed = f"bodies among {', '.join(dict.fromkeys(names))}"
            raise OptionError("soft_tissue_on", found=name, needed=needed)


def _amount(work: Work, name: str) -> float:
    """Return how far a body's skin slides, against that of a thigh."""
    if work.options.soft_tissue_on:
        return 1.0 if name in work.options.soft_tissue_on else 0.0
    return next((v for k, v in FLESH.items() if name.endswith(k)), 1.0)


def _drive(
    body_of: Array, parent: Array, wxyz: Array, body: int
) -> Float[Array, "frame angle"]:
    """Return the angles of the joints next to a body, centred, of rms one together."""
    next_to = [j for j in range(1, len(parent)) if body_of[parent[j]] == body]
    if body > 0:
        next_to.append(int(body))
    angles = geometry.quat_log(wxyz[:, next_to]).reshape(len(wxyz), -1)
    angles = angles - angles.mean(axis=0)
    rms = np.sqrt(np.mean(np.sum(angles**2, axis=1)))
    return angles / rms if rms > 1e-9 else np.zeros((len(wxyz), 0))


def _slide_markers(
    work: Work,
    rng: np.random.Generator,
    subject: int,
    body: int,
    T: Array,
    drive: Array,
    common: Array,
    amount: float,
) -> None:
    truth = work.truth
    mine = (truth.marker_subject == subject) & (truth.marker_joint == body)
    own = rng.normal(size=(int(mine.sum()), *common.shape[1:]))
    if not mine.any() or work.options.soft_tissue == 0.0:
        return
    gain = np.sqrt(0.5) * (own + common[0])
    slide = np.einsum("mij,fj->fmi", gain, drive)
    rms = np.sqrt(np.mean(np.sum(slide**2, axis=-1)))
    slide = slide * (work.options.soft_tissue * amount / rms)
    work.points[:, mine] += np.einsum("fij,fmj->fmi", T[:, body, :3, :3], slide)


def _slide_sensor(
    work: Work,
    rng: np.random.Generator,
    subject: int,
    body: int,
    T: Array,
    drive: Array,
    common: Array,
    amount: float,
) -> None:
    truth = work.truth
    own = rng.normal(size=common.shape)
    mine = (truth.sensor_subject == subject) & (truth.sensor_joint == body)
    for sensor in np.flatnonzero(mine):
        slide, turn = np.einsum("kij,fj->kfi", np.sqrt(0.5) * (own + common), drive)
        size, angle = work.options.soft_tissue, work.options.soft_tissue_turn
        slide *= size * amount / np.sqrt(np.mean(np.sum(slide**2, axis=-1)))
        turn *= angle * amount / np.sqrt(np.mean(np.sum(turn**2, axis=-1)))
        R_world_body = T[:, body, :3, :3]
        work.T[:, sensor, :3, 3] += np.einsum("fij,fj->fi", R_world_body, slide)
        _turn_sensor(work, int(sensor), turn)


def _turn_sensor(work: Work, sensor: int, rotvec: Array) -> None:
    R = work.T[:, sensor, :3, :3]
    work.T[:, sensor, :3, :3] = R @ geometry.rotation_exp(rotvec)


def slip(work: Work) -> None:
    """Let some sensors, or markers where there are none, slip once on their body."""
    rng, truth, options = work.rng("slips"), work.truth, work.options
    sensors = work.T.shape[1] > 0
    wearers = truth.sensor_joint if sensors else truth.marker_joint
    chosen = np.flatnonzero(wearers >= 0)
    chosen = rng.permutation(chosen)[: options.slips]
    n = len(work.points)
    for item in chosen:
        drawn = int(rng.integers(n // 4, max(3 * n // 4, n // 4 + 1)))
        first = drawn if options.slip_frame < 0 else min(options.slip_frame, n - 1)
        way, axis = directions(rng, 2)
        subject = (truth.sensor_subject if sensors else truth.marker_subject)[item]
        R = truth.motions[subject].T_world_joint()[first:, wearers[item], :3, :3]
        moved = R @ (options.slip_size * way)
        if sensors:
            work.T[first:, item, :3, 3] += moved
            turn = np.zeros((n, 3))
            turn[first:] = options.slip_turn * axis
            _turn_sensor(work, int(item), turn)
        else:
            work.points[first:, item] += moved
        kind = "sensor" if sensors else "marker"
        work.note(
            "slips", size=options.slip_size, item=kind, index=int(item), first=first
        )
