"""Joints of a real mechanism and of real walks, from markers and a marker map."""

import json

import numpy as np
import pytest

import marey
from marey.joints import fit_joints
from marey.joints.hierarchy.estimate import estimate_hierarchy
from marey.numerics import geometry
from marey.segmentation import segment
from marey.skeleton import marker_columns
from marey.topology import infer_tree

CHAIN = ("static", "upper", "middle", "lower")
PARENT = {"upper": "static", "middle": "upper", "lower": "middle"}


@pytest.fixture(scope="module")
def pendulum(recordings):
    """Bodies of both trials of a triple pendulum."""
    folder = recordings / "mech_pendulum"
    template = {body: [f"{body}*"] for body in CHAIN}
    return {
        trial: segment(
            marey.read(folder / f"pendulum_{trial}.trc"),
            method="template",
            template=template,
        )
        for trial in ("01", "03")
    }


def link_lengths(fits):
    """Distances of the hinges along the two middle bodies, across their axes."""
    row = {tuple(pair): i for i, pair in enumerate(fits.pair.tolist())}
    lengths = []
    for body in (1, 2):
        above, below = row[body - 1, body], row[body, body + 1]
        link = fits.center_b[above] - fits.center_a[below]
        lengths.append(np.linalg.norm(np.cross(link, fits.axis_a[below])))
    return np.array(lengths)


def test_the_map_makes_four_rigid_bodies(pendulum):
    for bodies in pendulum.values():
        assert bodies.names == CHAIN
        assert bodies.determined.all()
        assert (bodies.marker_body >= 0).all()
        assert bodies.findings == ()
        assert bodies.rms.max() < 0.5e-3


@pytest.mark.parametrize("trials", [("01",), ("03",), ("01", "03")], ids="+".join)
def test_the_pendulum_has_three_hinges_and_its_links(pendulum, trials):
    """Nominal 520.7 mm; least squares on all poses measures 518.7 to 519.4 mm.

    In trial 01 the lower joints rotate by ten degrees rms. The radii alone would give
    517.1 mm for one link: marker errors are 0.2 mm, larger on some sides than on
    others, and an arc of ten degrees is only 1.5 % of its radius deep. The joint
    residual, which counts too, is six times as sensitive.
    """
    fits = fit_joints([pendulum[trial] for trial in trials], method="gdke")
    joined = np.array([b - a == 1 for a, b in fits.pair])
    assert [kind for kind, j in zip(fits.kind, joined, strict=True) if j] == [
        "hinge"
    ] * 3
    assert fits.residual[joined].max() < 0.7e-3
    assert fits.residual[~joined].min() > 50.0 * fits.residual[joined].max()
    assert ((link_lengths(fits) > 0.518) & (link_lengths(fits) < 0.520)).all()
    assert infer_tree(fits, root=0).parent.tolist() == [-1, 0, 1, 2]
    assert (np.degrees(axis_sd(fits)[joined]) < 1.0).all()


def axis_sd(fits):
    """Standard deviations of the axes in radians."""
    return np.sqrt(np.trace(fits.axis_covariance[:, :3, :3], axis1=1, axis2=2))


def test_axes_of_two_trials_differ_by_no_more_than_their_uncertainties(pendulum):
    """The pins have a third of a degree of play, and swing by ten degrees rms."""
    one, other = (fit_joints([trial], method="gdke") for trial in pendulum.values())
    joined = np.array([b - a == 1 for a, b in one.pair])
    sd = np.hypot(axis_sd(one), axis_sd(other))[joined]
    for side in ("axis_a", "axis_b"):
        cosine = np.sum(getattr(one, side) * getattr(other, side), axis=1)[joined]
        assert (np.arccos(np.minimum(np.abs(cosine), 1.0)) < 3.0 * sd).all()


def test_the_axes_of_the_pendulum_are_parallel(pendulum):
    fits = fit_joints(list(pendulum.values()), method="gdke")
    row = {tuple(pair): i for i, pair in enumerate(fits.pair.tolist())}
    for body in (1, 2):
        above, below = (
            fits.axis_b[row[body - 1, body]],
            fits.axis_a[row[body, body + 1]],
        )
        assert np.degrees(np.arccos(min(abs(above @ below), 1.0))) < 1.0


def test_the_hinges_lie_where_the_pins_were_calibrated(pendulum, recordings):
    """The reference are the pins of the model, in the frame of the same markers."""
    truth = json.loads((recordings / "mech_pendulum" / "truth.json").read_text())
    fits = fit_joints(list(pendulum.values()), method="gdke")
    bodies = pendulum["01"]
    row = {tuple(pair): i for i, pair in enumerate(fits.pair.tolist())}
    pins = {"static": "Upper", "upper": "Middle", "middle": "Lower"}
    for body, (name, pin) in enumerate(pins.items()):
        labels = [
            label for label in bodies.take.labels if label.lower().startswith(name)
        ]
        known = np.array([truth["markers"][label]["xyz_mm"] for label in labels])
        index = [bodies.take.labels.index(label) for label in labels]
        T_body_model = geometry.kabsch(1e-3 * known, bodies.marker_offset[index])
        ends = [truth["markers"][f"{pin}J{i}"]["xyz_mm"] for i in (1, 2)]
        ends = geometry.apply(T_body_model, 1e-3 * np.array(ends))
        fit = row[body, body + 1]
        error = np.cross(fits.center_a[fit] - ends.mean(axis=0), fits.axis_a[fit])
        assert np.linalg.norm(error) < 4e-3


@pytest.mark.parametrize("marker", "OXY45")
def test_one_marker_per_link_is_enough_for_the_pendulum(recordings, marker):
    """Knight2007's first construction: a marker, a joint and a null vector.

    The pins have a third of a degree of play, which one marker does not show: the
    links below deviate by millimetres. The hinges are still found.
    """
    take = marey.read(recordings / "mech_pendulum" / "pendulum_03.trc")
    template = {"static": ["Static*"]} | {
        body: [f"{body.capitalize()}{marker}"] for body in CHAIN[1:]
    }
    bodies = segment(take, method="template", template=template)
    hierarchy = estimate_hierarchy((bodies,), PARENT)
    assert hierarchy.skeleton.kind == ("root", "hinge", "hinge", "hinge")
    # One marker per link, and errors propagate: one per cent of the length.
    np.testing.assert_allclose(hierarchy.skeleton.lengths[2:], 0.519, atol=6e-3)
    motion = hierarchy.pose(bodies)
    labels = [take.labels.index(label) for label in hierarchy.skeleton.marker_labels]
    error = np.linalg.norm(motion.marker_points() - take.points[:, labels], axis=-1)
    assert np.sqrt(np.nanmean(error**2)) < 1.5e-3


# --- people ---------------------------------------------------------------------------


LEGS = {
    "pelvis": ["LFWT", "RFWT", "LBWT", "RBWT"],
    "thigh_l": {"markers": ["LTHI", "LKNE"], "parent": "pelvis"},
    "thigh_r": {"markers": ["RTHI", "RKNE"], "parent": "pelvis"},
}


def hips(recordings, trials):
    """Hips of a subject in the pelvis, and their distance from the reference."""
    takes = [marey.read(recordings / "cmu" / f"{trial}.c3d") for trial in trials]
    bodies = [segment(take, method="template", template=LEGS) for take in takes]
    fits = fit_joints(bodies, method="gdke")
    error = []
    for row, name in ((0, "l_hip"), (1, "r_hip")):
        assert fits.pair[row].tolist() == [0, row + 1]
        reference = np.load(recordings / "cmu" / f"{trials[0]}_ref_joints.npz")
        joint = list(reference["joint"]).index(name)
        true = 1e-3 * reference["pos_mm"][:, joint]
        found = geometry.apply(bodies[0].T_world_body[:, 0], fits.center_a[row])
        error.append(np.nanmedian(np.linalg.norm(found - true, axis=-1)))
    return fits, np.array(error)


@pytest.mark.parametrize(
    ("trials", "bound", "scatter"),
    [
        (["02_01"], 0.12, 5e-3),
        (["02_05"], 0.04, 5e-3),
        (["02_01", "02_05"], 0.04, 7e-3),
    ],
    ids=["walk", "punches", "pooled"],
)
def test_hips_against_the_commercial_fit(recordings, trials, bound, scatter):
    """Two thigh markers, and skin: the pelvis is rigid to 3.3 mm, a thigh to 1.6 mm.

    A walk of 12 x 3 x 1 degrees gives an error of 100 mm at the hip, and the
    covariance, that of the noise, does not include the skin. Punches rotate the thigh
    farther: 30 mm, against 17 to 20 cm between the hips. Pooled, the radii scatter by
    6.2 mm, more than in either take, because the skin slides differently.
    """
    fits, error = hips(recordings, trials)
    assert fits.kind[:2] == ("ball", "ball")
    assert fits.residual[:2].max() < scatter
    assert error.max() < bound
    assert np.isfinite(fits.center_b).all()
    assert fits.fitted.all()


@pytest.mark.parametrize("calibrate", [True, False])
def test_a_segment_of_one_marker_gives_a_file_of_numbers(
    recordings, tmp_path, calibrate
):
    """A marker on the shoulder blade, which hardly moves against the chest."""
    bodies = {
        "Hips": ["LFWT", "RFWT", "LBWT", "RBWT"],
        "Chest": {"markers": ["C7", "T10", "CLAV", "STRN"], "parent": "Hips"},
        "Blade": {"markers": ["RBAC"], "parent": "Chest"},
        "LeftUpperArm": {"markers": ["LELB"], "parent": "Chest"},
        "LeftLowerArm": {"markers": ["LWRA"], "parent": "LeftUpperArm"},
    }
    take = marey.read(recordings / "hdm05/HDM_dg_06-03_03_120.c3d")
    solution = marey.solve(
        take, template={"bodies": bodies}, joints="gdke", calibrate=calibrate
    )
    marey.write(solution.motion, tmp_path / "dance.bvh")
    assert "nan" not in (tmp_path / "dance.bvh").read_text()
    points = solution.motion.marker_points()
    columns = marker_columns(solution.skeleton, take)
    error = np.linalg.norm(points - take.points[:, columns], axis=-1)
    assert np.sqrt(np.nanmean(error**2)) < (0.004 if calibrate else 0.04)
