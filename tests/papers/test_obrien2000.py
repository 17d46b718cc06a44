"""OBrien2000: each published experiment that can be rebuilt, in small."""

import numpy as np
import pytest

import marey
from marey.joints import residuals, rigid_pair

# Table 1, "Meas.": joint to joint on the linkage, in metres, as (body, from, to).
TABLE_1 = {
    ("Torso", "Head", "LeftUpperArm"): 0.390,
    ("Torso", "Head", "RightUpperArm"): 0.397,
    ("Torso", "LeftUpperArm", "RightUpperArm"): 0.343,
    ("RightUpperArm", "Torso", "RightLowerArm"): 0.286,
    ("LeftUpperArm", "Torso", "LeftLowerArm"): 0.314,
}


def lengths(bodies, fits):
    """Distances between the joints of one body, as in the paper's tables."""
    row = {tuple(pair): k for k, pair in enumerate(fits.pair.tolist())}

    def center(body, other):
        a, b = bodies.names.index(body), bodies.names.index(other)
        if a < b:
            return fits.center_a[row[a, b]]
        return fits.center_b[row[b, a]]

    return np.array(
        [
            np.linalg.norm(center(body, one) - center(body, two))
            for body, one, two in TABLE_1
        ]
    )


def table_1_errors(motion="swing", sets=6, **corruption):
    """Calculated less measured lengths, in cm, of six sets of 1,800 frames."""
    errors = []
    for seed in range(sets):
        take = marey.synth.linkage().record(
            motion,
            sensors=True,
            markers="none",
            seconds=30.0,
            rate=60.0,
            seed=seed,
            **corruption,
        )
        bodies = marey.segment(take)
        found = lengths(bodies, marey.fit_joints(bodies))
        errors.append(100.0 * (found - list(TABLE_1.values())))
    return np.array(errors)


def test_section_4_the_simulated_human():
    """Limb lengths within 1e-6 m there, here within 1e-9 m."""
    take = marey.synth.human(seed=0).record(
        "exercise", sensors=True, markers="none", seconds=20.0, rate=60.0
    )
    bodies = marey.segment(take)
    fits = marey.fit_joints(bodies)
    truth = take.truth
    rest = truth.skeleton.rest()[:, :3, 3]
    row = {tuple(pair): k for k, pair in enumerate(fits.pair.tolist())}
    places = {}
    for parent, child, joint in truth.edges.tolist():
        k = row[min(parent, child), max(parent, child)]
        ends = {fits.pair[k, 0]: fits.center_a[k], fits.pair[k, 1]: fits.center_b[k]}
        for body in (parent, child):
            places.setdefault(body, []).append((joint, ends[body]))
    compared = 0
    for joints in places.values():
        for joint, place in joints[1:]:
            first, origin = joints[0]
            true = np.linalg.norm(rest[joint] - rest[first])
            assert abs(np.linalg.norm(place - origin) - true) < 1e-9
            compared += 1
    assert compared == 13


def test_section_4_the_rigid_pair():
    """Scale 0.94, and a distance that varies by 0.7 cm, recovered from a stick."""
    take = marey.synth.linkage().record(
        "still",
        sensors=("Torso", "Head"),
        markers="none",
        seconds=30.0,
        rate=60.0,
        noise=0.005,
        scale=1.0 / 0.94,
    )
    true = np.linalg.norm(np.diff(take.truth.T_world_sensor[0, :, :3, 3], axis=0))
    found = rigid_pair(marey.segment(take), (0, 1), distance=float(true))
    assert found.scale == pytest.approx(0.94, rel=2e-3)
    assert 100.0 * found.sd == pytest.approx(0.7, abs=0.07)


def test_table_1_with_white_noise():
    """Paper: rms 0.41, at most 1.1 cm. A pair of sensors varies by 0.7 cm."""
    error = table_1_errors(noise=0.005, turn_noise=np.radians(0.5))
    assert np.sqrt(np.mean(error**2)) <= 0.05
    assert np.abs(error).max() <= 0.2


def test_table_1_in_a_bent_field():
    error = table_1_errors(field=0.0045, field_scale=0.6)
    assert np.sqrt(np.mean(error**2)) <= 0.2
    assert np.abs(error).max() <= 0.5


def test_table_1_calculated_lengths_are_not_biased_by_noisy_orientations():
    error = table_1_errors(noise=0.005, turn_noise=np.radians(1.0))
    assert abs(np.mean(error)) < 0.015


def test_figure_6_residuals_are_of_the_order_of_the_sensors_resolution():
    take = marey.synth.linkage().record(
        sensors=True, markers="none", seconds=10.0, rate=60.0, noise=0.002
    )
    bodies = marey.segment(take)
    fits = marey.fit_joints(bodies)
    shoulder = tuple(bodies.names.index(name) for name in ("Torso", "RightUpperArm"))
    norm = np.linalg.norm(residuals(bodies, fits, shoulder), axis=1)
    # A Maxwell distribution: the length of three axes of sqrt(2) times 2 mm.
    assert norm.mean() == pytest.approx(
        0.002 * np.sqrt(2) * np.sqrt(8 / np.pi), rel=0.05
    )
    assert np.median(norm) < norm.mean()


def test_section_3_2_the_halves_of_the_null_vector():
    """The first half belongs to the first body; the paper has them swapped."""
    take = marey.synth.hinge_pair(seed=4).record(
        sensors=True, markers="none", seconds=5.0
    )
    fits = marey.fit_joints(marey.segment(take))
    axis = take.truth.skeleton.axes[1, 0]
    in_base, in_arm = (R.T @ axis for R in take.truth.T_body_sensor[:, :3, :3])
    assert abs(fits.axis_a[0] @ in_base) == pytest.approx(1.0, abs=1e-12)
    assert abs(fits.axis_b[0] @ in_arm) == pytest.approx(1.0, abs=1e-12)
    assert abs(fits.axis_a[0] @ in_arm) < 0.99
