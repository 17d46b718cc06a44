"""Stage 6: takes without the errors that only bodies and joints show."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from marey.bodies import Bodies
from marey.cleaning import (
    fill_gaps,
    find_joint_outliers,
    find_marker_slips,
    find_sensor_slips,
    find_shared_sensor_slips,
    fit_field,
    mask_outliers,
    undistort,
    undo_marker_slips,
    undo_sensor_slips,
)
from marey.pipeline.options import SolveOptions
from marey.pipeline.stages.bodies import BodyFit, name_anonymous_bodies, sensors_alone
from marey.take import Take

MAX_REPAIR_ITERATIONS = 3
"""Largest number of searches for errors that only joints show, each with the tree of
the search before. Higher costs time where the tree keeps changing. Chosen by hand."""


Refit = Callable[[tuple[Take, ...], SolveOptions], BodyFit]
"""Estimates bodies, joints and tree of repaired takes."""


def repair_with_joints(first: BodyFit, options: SolveOptions, refit: Refit) -> BodyFit:
    """Return the fit of takes without the errors that bodies and joints show.

    These are slips of markers and sensors, outliers of sensors and, if asked for, a
    distorted magnetic field. Short gaps are filled at the end, for display only.

    Args:
        first: Fit of the cleaned takes.
        options: How to solve.
        refit: Estimates bodies, joints and tree again after each repair.
    """
    # Residuals of misread orientations contain no information about slips.
    if any(doubt.code == "orientations-inconsistent" for doubt in first.joint_findings):
        return _fill_short_gaps(first, options.max_gap)
    fit = _undo_slips(first, options, refit) if options.clean else first
    if options.field:
        fit = _undistort_field(fit, options, refit)
    return _fill_short_gaps(fit, options.max_gap)


def _undo_slips(first: BodyFit, options: SolveOptions, refit: Refit) -> BodyFit:
    """Return the fit of takes without slips and outliers.

    A slip may have led to a wrong tree, and a wrong tree to a wrong slip: each round
    looks at the takes of the first fit with the tree of the round before.
    """
    fit = first
    for _ in range(MAX_REPAIR_ITERATIONS):
        takes = _repair_takes(first, fit)
        if takes == first.takes:
            break
        before, fit = fit, refit(takes, options)
        if np.array_equal(fit.tree.edge, before.tree.edge):
            break
    return fit


def _repair_takes(first: BodyFit, fit: BodyFit) -> tuple[Take, ...]:
    """Return the first fit's takes without slips and outliers, or the same takes.

    Markers of bodies slip; sensors slip and jump.

    Args:
        first: Fit of the cleaned takes.
        fit: Best joints and tree so far.
    """
    takes = first.takes
    if any(bodies.shared.any() for bodies in first.bodies):
        # Findings about slips use the names that the solution will have.
        names, _ = name_anonymous_bodies(first)
        named = [bodies.rename(names) for bodies in first.bodies]
        slips_of_takes = [
            find_marker_slips(bodies) if bodies.shared.any() else () for bodies in named
        ]
        takes = tuple(map(undo_marker_slips, takes, slips_of_takes))
        takes = _undo_shared_slips(takes, first.candidates.bodies)
    return _repair_sensors(takes, first.candidates.bodies, fit)


def _undo_shared_slips(
    takes: tuple[Take, ...], bodies: tuple[Bodies, ...]
) -> tuple[Take, ...]:
    """Return the takes without slips of sensors that have markers on their bodies."""
    repaired = [
        replace(one, take=take) for one, take in zip(bodies, takes, strict=True)
    ]
    slips = find_shared_sensor_slips(repaired)
    return undo_sensor_slips(takes, slips) if slips else takes


def _repair_sensors(
    takes: tuple[Take, ...], bodies: tuple[Bodies, ...], fit: BodyFit
) -> tuple[Take, ...]:
    """Return the takes without slips and outliers of sensors that are bodies."""
    alone = sensors_alone(bodies)
    if any(one.shared.any() for one in bodies) and not alone:
        return takes
    sensors = tuple(map(_named_by_sensors, bodies))
    names = {sensors[0].names[body] for body in alone} or set(sensors[0].names)
    slips = [
        slip
        for slip in find_sensor_slips(sensors, fit.joints, fit.tree)
        if slip.sensor in takes[slip.take].sensor_names and slip.sensor in names
    ]
    outliers = [
        [
            o
            for o in find_joint_outliers(one, fit.joints, fit.tree)
            if o.name in one.sensor_names and o.name in names
        ]
        for one in sensors
    ]
    takes = tuple(map(mask_outliers, takes, outliers))
    return undo_sensor_slips(takes, slips) if slips else takes


def _named_by_sensors(bodies: Bodies) -> Bodies:
    """Return bodies by the names of their sensors; several sensors give no name.

    An error of a body that has one sensor is an error of the sensor.
    """
    count = Counter(bodies.sensor_body.tolist())
    names = [f"{name}\0" for name in bodies.names]
    for name, body in zip(bodies.sensor_names, bodies.sensor_body, strict=True):
        if count[int(body)] == 1:
            names[body] = name
    return bodies if tuple(names) == bodies.names else bodies.rename(names)


def _undistort_field(fit: BodyFit, options: SolveOptions, refit: Refit) -> BodyFit:
    """Return the fit of takes without a distortion of the magnetic field, if any."""
    if not (fit.tree.edge >= 0).any() or any(one.shared.any() for one in fit.bodies):
        return fit
    distortion = fit_field(fit.bodies, fit.joints, fit.tree)
    if not distortion.significant:
        return fit
    return refit(tuple(undistort(take, distortion) for take in fit.takes), options)


def _fill_short_gaps(fit: BodyFit, max_gap: float) -> BodyFit:
    """Return the fit with short gaps of its takes filled; nothing is fitted to them."""
    takes = tuple(
        fill_gaps(bodies.take, max_gap, bodies=bodies, joints=fit.joints, tree=fit.tree)
        for bodies in fit.bodies
    )
    return replace(fit, takes=takes)
