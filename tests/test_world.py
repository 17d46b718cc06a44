"""Units, axes and what formats lose: the border between files and marey's world."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marey
from marey.io import units_axes
from marey.io.contract import Format
from marey.io.losses import (
    DESCRIPTIONS,
    MOTION_CHECKS,
    SKELETON_CHECKS,
    TAKE_CHECKS,
    find_losses,
)

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)
units = st.sampled_from(list(units_axes.METRES_PER_UNIT))
ups = st.sampled_from(list(marey.geometry.R_Z_UP))
quick = settings(deadline=None, max_examples=25)
close = partial(np.testing.assert_allclose, rtol=0.0)

AXES = {"x": [1, 0, 0], "y": [0, 1, 0], "z": [0, 0, 1]}


@pytest.mark.parametrize("up", list(marey.geometry.R_Z_UP))
def test_the_axis_that_points_up_becomes_z_without_a_mirror(up):
    R = units_axes.rotation_to_z_up(up)
    axis = np.array(AXES[up[-1]]) * (-1 if up.startswith("-") else 1)
    np.testing.assert_array_equal(R @ axis, [0, 0, 1])
    np.testing.assert_array_equal(R @ R.T, np.eye(3))
    assert np.linalg.det(R) == pytest.approx(1.0)


@given(rng=seeds, unit=units, up=ups)
@quick
def test_points_and_poses_come_back_and_agree(rng, unit, up):
    T = marey.geometry.transform_exp(rng.normal(size=(5, 2, 6)))
    T[1, 1] = np.nan
    inside = units_axes.poses_from_file(T, unit, up)
    close(units_axes.poses_to_file(inside, unit, up), T, atol=1e-13)
    close(
        units_axes.points_from_file(T[..., :3, 3].copy(), unit, up),
        inside[..., :3, 3],
        atol=1e-13,
    )
    close(
        units_axes.points_to_file(inside[..., :3, 3], unit, up),
        T[..., :3, 3],
        atol=1e-13,
    )
    # A pose still carries the sensor's own points to the right position.
    point = rng.normal(size=3)
    there = units_axes.points_from_file(marey.geometry.apply(T, point), unit, up)
    scaled = units_axes.metres_per_unit(unit) * point
    close(there, marey.geometry.apply(inside, scaled), atol=1e-13)


@pytest.mark.parametrize(
    ("word", "unit"),
    [("Millimeters", "mm"), (" (cm) ", "cm"), ("[m]", "m"), ("INCHES", "in")],
)
def test_units_are_known_by_their_spellings(word, unit):
    assert units_axes.parse_unit(word) == unit
    assert units_axes.metres_per_unit(word) == units_axes.METRES_PER_UNIT[unit]


def test_what_is_no_unit_and_no_axis_is_refused():
    assert units_axes.parse_unit("furlong") is None
    with pytest.raises(
        marey.OptionError, match="unit: found 'furlong', need one of mm"
    ):
        units_axes.metres_per_unit("furlong")
    with pytest.raises(marey.OptionError, match="up: found 'w', need one of z, -z"):
        units_axes.rotation_to_z_up("w")


# --- losses --------------------------------------------------------------------------


def target(*loses, motion=False):
    return Format(
        name="thin",
        title="Thin",
        suffixes=(".thin",),
        sniff=lambda head: False,
        write_motion=(lambda motion, options: {}) if motion else None,
        loses=loses,
    )


def motion():
    skeleton = marey.Skeleton(
        names=("hips", "knee"), parent=np.array([-1, 0]), offset=np.zeros((2, 3))
    )
    return marey.Motion(
        skeleton=skeleton,
        T_world_root=np.tile(np.eye(4), (2, 1, 1)),
        wxyz=np.tile([1.0, 0.0, 0.0, 0.0], (2, 2, 1)),
        rate=100.0,
    )


def words(thing, *loses, **options):
    found = find_losses(thing, target(*loses, **options))
    assert all((f.code, f.severity) == ("lost", "info") for f in found)
    return [finding.subject for finding in found]


def test_every_loss_has_its_words():
    assert {*TAKE_CHECKS, *SKELETON_CHECKS, *MOTION_CHECKS, "skeleton"} == set(
        DESCRIPTIONS
    )


def test_only_what_is_there_can_be_lost():
    plain = marey.Take(rate=1.0, points=np.zeros((2, 1, 3)), labels=("a",))
    assert words(plain, *TAKE_CHECKS) == ["markers"]
    gappy = replace(plain, points=np.full((2, 1, 3), np.nan), start=1.0)
    assert words(gappy, *TAKE_CHECKS) == ["markers", "gaps", "start"]
    assert words(gappy) == []
    assert words(gappy, "gaps", "limits") == ["gaps"]


def test_a_motion_loses_its_skeleton_in_a_format_for_takes():
    still = motion()
    contact = marey.Contact(joint="knee", start=0.0, end=0.01, anchor=np.zeros(3))
    moved = replace(still, start=2.0, contacts=(contact,))
    assert words(still, motion=True) == []
    assert words(still) == ["skeleton"]
    assert words(still, "sensors", "start") == ["skeleton", "sensors"]
    assert words(moved, "start") == ["skeleton", "start", "contacts"]
    assert words(moved, "start", "contacts", motion=True) == ["contacts", "start"]


def test_a_skeleton_loses_what_it_has():
    plain = motion().skeleton
    assert words(plain, *SKELETON_CHECKS) == []
    limited = replace(plain, limits=np.zeros((2, 3, 2)), kind=("root", "hinge"))
    assert words(limited, *SKELETON_CHECKS) == ["limits", "kinds"]
