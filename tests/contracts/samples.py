"""Small things to write and read, made without any module under test."""

from dataclasses import replace

import numpy as np

import marey


def random_rotations(rng, *shape):
    """Smooth unit quaternions along the first axis."""
    phase = rng.uniform(0.0, 6.0, size=(1, *shape[1:], 3))
    t = np.linspace(0.0, 2.0, shape[0]).reshape(-1, *[1] * len(shape))
    rotvec = 0.8 * np.sin(t + phase)
    angle = np.linalg.norm(rotvec, axis=-1, keepdims=True)
    return np.concatenate(
        [np.cos(angle / 2), np.sinc(angle / 2 / np.pi) / 2 * rotvec], axis=-1
    )


def take(n_frames=6, *, sensors=True, markers=True):
    """A take with gaps, subjects, an event and a start time."""
    rng = np.random.default_rng(7)
    points = rng.uniform(-1.0, 2.0, size=(n_frames, 4, 3))
    points[1, 0] = np.nan
    points[n_frames // 2 :, 2] = np.nan
    T = marey.geometry.transform(
        marey.geometry.matrix_from_quat(random_rotations(rng, n_frames, 2)),
        rng.uniform(-1.0, 2.0, size=(n_frames, 2, 3)),
    )
    T[2, 1] = np.nan
    whole = marey.Take(
        rate=120.0,
        points=points,
        labels=("LFHD", "RFHD", "C7", "T10"),
        subjects=("Ann", "Ann", "Bob", ""),
        T_world_sensor=T,
        sensor_names=("pelvis", "thigh"),
        events=(marey.Event("Foot Strike", "Left", 0.025),),
        start=0.5,
    )
    if not markers:
        whole = replace(
            whole,
            points=np.zeros((n_frames, 0, 3)),
            filled=np.zeros((n_frames, 0), bool),
            labels=(),
            subjects=(),
        )
    if not sensors:
        nothing = np.zeros((n_frames, 0, 4, 4))
        whole = replace(whole, T_world_sensor=nothing, sensor_names=())
    return whole


def skeleton():
    """Hips with a hinged leg, a universal foot and an end, and an arm."""
    nan = np.nan
    return marey.Skeleton(
        names=("Hips", "UpperLeg", "LowerLeg", "Foot", "Foot_end", "Arm", "Arm_end"),
        parent=np.array([-1, 0, 1, 2, 3, 0, 5]),
        offset=np.array(
            [
                [0.0, 0.0, 0.95],
                [0.1, 0.0, -0.05],
                [0.0, 0.01, -0.42],
                [0.0, 0.0, -0.43],
                [0.0, 0.2, 0.0],
                [0.2, 0.0, 0.5],
                [0.6, 0.0, 0.0],
            ]
        ),
        kind=("root", "ball", "hinge", "universal", "fixed", "ball", "fixed"),
        axes=np.array(
            [
                [[nan] * 3] * 2,
                [[nan] * 3] * 2,
                [[1.0, 0.0, 0.0], [nan] * 3],
                [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
                [[nan] * 3] * 2,
                [[nan] * 3] * 2,
                [[nan] * 3] * 2,
            ]
        ),
    )


def motion(n_frames=6):
    """A motion of `skeleton` whose joints turn about their own axes only."""
    rng = np.random.default_rng(8)
    figure = skeleton()
    wxyz = random_rotations(rng, n_frames, figure.n_joints)
    t = np.linspace(0.0, 1.0, n_frames)[:, None]
    knee = 0.2 + 0.5 * np.sin(t) * [1.0, 0.0, 0.0]
    wxyz[:, 2] = marey.geometry.quat_exp(knee * [1.0, 0.0, 0.0])
    first = marey.geometry.quat_exp(0.4 * np.sin(t) * [1.0, 0.0, 0.0])
    second = marey.geometry.quat_exp(0.3 * np.cos(t) * [0.0, 1.0, 0.0])
    wxyz[:, 3] = marey.geometry.quat_multiply(first, second)
    wxyz[:, [4, 6]] = [1.0, 0.0, 0.0, 0.0]
    position = np.cumsum(rng.normal(scale=0.02, size=(n_frames, 3)), axis=0)
    position += np.array([0.0, 0.0, 0.95])
    T = marey.geometry.transform(marey.geometry.matrix_from_quat(wxyz[:, 0]), position)
    return marey.Motion(skeleton=figure, T_world_root=T, wxyz=wxyz, rate=60.0)


SAMPLES = {"take": take, "motion": motion, "skeleton": skeleton}
