"""The time offset between markers and sensors that two systems recorded.

Two systems are started by hand or by a cable, and each has its own delay. A sensor on a
body of markers shows the offset: only at the right time do the two move as one.
"""

from dataclasses import dataclass, replace

import numpy as np

from marey.bodies import Bodies
from marey.numerics import Array, Float, Int, geometry
from marey.numerics.resampling import resample_poses
from marey.numerics.thresholds import FEW, MIN_SAMPLES, OUTLIER_SD, SKIN_MOTION_M
from marey.report import Finding
from marey.segmentation.sensors_on_bodies import (
    SKIN_LAYERS,
    find_bodies_of_sensors,
    relative_motion,
    skin_motion,
    white_variance,
)
from marey.take import Take

MAX_OFFSET_S = 1.0
"""Largest time offset that is searched, in seconds; higher takes longer, and may find
another repetition of the same motion."""

SEARCH_STEP_S = 1.0 / 60.0
"""Step of the coarse search, in seconds; higher may pass over the offset: hands move
by two centimetres in this time, as much as skin does."""

SEARCH_FRAMES = 80
"""Frames of the coarse search; more take longer. Chosen by hand."""

MAX_ITERATIONS = 10
"""Gauss-Newton iterations; two or three usually suffice."""

TINY_VARIANCE = 1e-18
"""Smallest variance by which is divided, in square metres: exact data have none."""

TINY_OFFSET_FRAMES = 1e-4
"""Change of the offset, in frames, at which the iterations end."""


@dataclass(frozen=True, slots=True)
class TimeOffset:
    """How much later than the markers the sensors show a motion."""

    seconds: float
    """Delay of the sensors; negative if they are early."""

    sd: float
    """Its standard deviation, in seconds."""

    n_sensors: int
    """Number of sensors on bodies of markers, which show it; 0 if it was given."""

    @property
    def is_significant(self) -> bool:
        """Whether the delay differs from zero by more than chance."""
        return abs(self.seconds) > OUTLIER_SD * self.sd

    def __str__(self) -> str:
        way = "after" if self.seconds >= 0.0 else "before"
        size, sd = 1e3 * abs(self.seconds), 1e3 * self.sd
        doubt = f" (± {sd:.1f} ms)" if self.n_sensors else ", as given"
        return f"{size:.1f} ms {way} the markers{doubt}"


def estimate_time_offset(bodies: Bodies) -> TimeOffset | None:
    r"""Return the delay of the sensors of a take; None if no sensor shows it.

    A coarse search finds the delay at which sensors move as one with bodies of markers.
    Gauss-Newton then minimises the motion of the markers y in the axes of the sensors
    over the delay :math:`\tau`,

    .. math:: \min_\tau \sum_{s,m,t} w_{sm}\,
              |T_s(t + \tau)^{-1} x_m(t) - \bar y_{sm}|^2 ,

    with one over the variance of each marker as weight.

    Args:
        bodies: Bodies of a take with markers and sensors.
    """
    rate, frames = bodies.take.rate, _search(bodies)
    offset = None
    # Between the steps of the search sensors seem to move a little on their bodies.
    for skin in (SKIN_MOTION_M, skin_motion(bodies)):
        body_of = find_bodies_of_sensors(_delay_sensors(bodies, frames), skin)
        refined = _refine(bodies, body_of, frames)
        if refined is not None:
            frames, sd = refined
            offset = TimeOffset(frames / rate, sd / rate, int((body_of >= 0).sum()))
    return offset


def _refine(
    bodies: Bodies, body_of: Int[Array, " sensor"], frames: float
) -> tuple[float, float] | None:
    """Return the delay and its standard deviation in frames, by Gauss-Newton.

    None if no sensor is on a body, or nothing moves.

    Args:
        bodies: Bodies of markers; their take has sensors.
        body_of: The body of each sensor; -1 = none.
        frames: The delay to start from.
    """
    sensors = np.flatnonzero(body_of >= 0)
    for _ in range(MAX_ITERATIONS if len(sensors) else 0):
        fits = [_gradient(bodies, int(s), int(body_of[s]), frames) for s in sensors]
        gradient, curvature, misfit = (np.array(x) for x in zip(*fits, strict=True))
        if not curvature.sum() > 0.0:
            return None
        step = -float(gradient.sum() / curvature.sum())
        frames += float(np.clip(step, -1.0, 1.0))
        if abs(step) < TINY_OFFSET_FRAMES:
            break
    if not len(sensors):
        return None
    return frames, _standard_deviation(gradient, curvature, misfit)


def synchronise_sensors(take: Take, offset: TimeOffset | None) -> Take:
    """Return the take with its sensors in time with its markers, and a finding.

    A delay that is unknown or not significant is reported only. Between frames the
    poses are interpolated (`marey.numerics.resampling.resample_poses`).
    """
    finding = _offset_finding(take, offset)
    take = take.with_findings(finding)
    if offset is None or not offset.is_significant:
        return take
    return replace(
        take,
        T_world_sensor=resample_poses(take.T_world_sensor, offset.seconds * take.rate),
        history=(*take.history, f"shifted sensors by {-offset.seconds:g} s"),
    )


def _offset_finding(take: Take, offset: TimeOffset | None) -> Finding:
    """Return the finding about the delay of the sensors, in seconds."""
    if offset is None:
        message = (
            "no sensor moves with a body of markers: equal clocks are assumed; "
            "give the delay (time_offset)"
        )
        return Finding("time-offset-unknown", "clean", "info", message)
    frames = offset.seconds * take.rate
    if not offset.is_significant:
        message = f"the sensors are in time with the markers: {offset}; nothing changed"
    else:
        message = (
            f"the sensors show the motion {offset}, {abs(frames):.2f} frames: corrected"
        )
    return Finding("time-offset", "clean", "info", message, value=offset.seconds)


def _standard_deviation(
    gradient: Float[Array, "sensor frame"],
    curvature: Float[Array, " sensor"],
    misfit: Float[Array, " sensor"],
) -> float:
    r"""Return the standard deviation of the delay, in frames.

    From noise that is correlated in time, and from the skin: what moves below a sensor
    may follow the velocity of the body, which looks like a delay, in every repetition
    of the motion. With a correlation :math:`\rho` of a tenth and the sums over all
    frames of squared slopes H and of squared residuals M of each sensor, the variances
    are

    .. math:: \sigma^2 = \frac{\operatorname{var} \sum_t g_t
              + \rho^2 \sum_s H_s M_s}{(\sum_s H_s)^2} .
    """
    skin = FEW**2 * float(np.sum(curvature * misfit))
    variance = _sum_sd(gradient.sum(axis=0)) ** 2 + skin
    return float(np.sqrt(variance)) / float(curvature.sum())


def _sum_sd(values: Float[Array, " frame"]) -> float:
    r"""Return the standard deviation of the sum of correlated values.

    A walk repeats itself, and values that return are no new samples: of n there are
    :math:`n / (1 + 2 \sum_k \rho_k^2)`, with the autocorrelations :math:`\rho_k`.
    """
    n = len(values)
    size = 1 << (2 * n - 1).bit_length()
    power = np.abs(np.fft.rfft(values - values.mean(), size)) ** 2
    covariance = np.fft.irfft(power, size)[: n // 2]
    if not covariance[0] > 0.0:
        return 0.0
    rho = covariance[1:] / covariance[0]
    time = 1.0 + 2.0 * float(np.sum(rho**2))
    return float(np.sqrt(n * time) * values.std())


def _search(bodies: Bodies) -> float:
    """Return the delay, in frames, at which most sensors move as one with a body.

    It is the smallest of the delays at which hardly fewer do: what stands still moves
    as one at any delay.
    """
    take = bodies.take
    step = max(round(SEARCH_STEP_S * take.rate), 1)
    last = min(int(MAX_OFFSET_S * take.rate), take.n_frames // 2) // step
    scale = (SKIN_LAYERS * SKIN_MOTION_M) ** 2
    misfit = {}
    for lag in sorted(range(-last * step, last * step + 1, step), key=abs):
        motion = relative_motion(_sample(bodies, lag), subtract_noise=False)
        nearest = np.where(np.isfinite(motion), motion, np.inf).min(axis=1) ** 2
        with np.errstate(invalid="ignore"):
            misfit[lag] = float(np.nansum(nearest / (nearest + scale)))
    enough = min(misfit.values()) + FEW
    return float(next(lag for lag, value in misfit.items() if value <= enough))


def _delay_sensors(bodies: Bodies, frames: float) -> Bodies:
    """Return the bodies with the sensors of their take a number of frames later."""
    T = resample_poses(bodies.take.T_world_sensor, frames)
    return replace(bodies, take=replace(bodies.take, T_world_sensor=T))


def _sample(bodies: Bodies, frames: int) -> Bodies:
    """Return a sample of the frames, with the sensors a number of frames later."""
    take = bodies.take
    step = max(take.n_frames // SEARCH_FRAMES, 1)
    first = np.arange(max(-frames, 0), take.n_frames - max(frames, 0), step)
    sample = Take(
        rate=take.rate,
        points=take.points[first],
        labels=take.full_labels,
        T_world_sensor=take.T_world_sensor[first + frames],
        sensor_names=take.sensor_names,
    )
    return replace(bodies, take=sample)


def _gradient(
    bodies: Bodies, sensor: int, body: int, frames: float
) -> tuple[Float[Array, " frame"], float, float]:
    """Return gradient, curvature and misfit of one sensor on a body.

    Half the derivative by the delay, in frames, of every frame; half the second
    derivative of their sum (Gauss-Newton), without the part that noise has in it; and
    the sum of weighted squared residuals.
    """
    take = bodies.take
    points = take.points[:, bodies.marker_body == body]
    earlier, local, later = (
        geometry.apply(geometry.inverse(T)[:, None], points)
        for T in (
            resample_poses(take.T_world_sensor[:, sensor], frames + k)
            for k in (-1, 0, 1)
        )
    )
    slope = 0.5 * (later - earlier)
    seen = np.isfinite(slope + local).all(axis=-1)
    gradient, curvature, misfit = np.zeros(take.n_frames), 0.0, 0.0
    for marker in np.flatnonzero(seen.sum(axis=0) >= MIN_SAMPLES):
        on = seen[:, marker]
        residual = local[on, marker] - local[on, marker].mean(axis=0)
        rate = slope[on, marker] - slope[on, marker].mean(axis=0)
        variance = max(float(np.mean(np.sum(residual**2, axis=-1))), TINY_VARIANCE)
        noise = 0.5 * len(rate) * float(white_variance(residual[:, None])[0])
        gradient[on] += np.sum(rate * residual, axis=-1) / variance
        curvature += max(float(np.sum(rate**2)) - noise, 0.0) / variance
        misfit += float(np.sum(residual**2)) / variance
    return gradient, curvature, misfit
