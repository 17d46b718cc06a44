"""Bad input: a typed error, or an answer with an error finding; never a traceback."""

import functools
import warnings
from dataclasses import replace

import numpy as np
import pytest

import marey
from marey import synth
from marey.cli import main
from marey.numerics import geometry
from marey.take import Fact, Source


@pytest.fixture(scope="module")
def takes():
    """A person that walks or exercises, with markers or sensors, made in memory."""
    person, usual = synth.human(), {"rate": 60.0, "noise": 1e-3}
    sensors = {"markers": "none", "sensors": True, "turn_noise": 2e-3, "seconds": 6.0}
    markers = {"markers": "sparse41", "seconds": 1.0}
    recorded = {
        "markers": person.record("walk", **markers, **usual),
        "sensors": person.record("exercise", **sensors, **usual),
    }
    return {kind: in_memory(take) for kind, take in recorded.items()}


@pytest.fixture(scope="module")
def solved(takes):
    """Solve the recording of a kind, once."""
    return functools.cache(lambda kind: solve(takes[kind]))


def in_memory(take):
    """The same arrays without anything that is known about them."""
    return marey.Take(
        rate=take.rate,
        points=take.points,
        labels=take.labels,
        T_world_sensor=take.T_world_sensor,
        sensor_names=take.sensor_names,
    )


def change(take, positions=lambda x: x, poses=None):
    """The take with other positions of markers and sensors, or other poses."""
    T = take.T_world_sensor.copy()
    if T.size:
        T[..., :3, 3] = positions(T[..., :3, 3])
        T = T if poses is None else poses(T)
    points = positions(take.points) if take.points.size else take.points
    return replace(take, points=points, T_world_sensor=T)


def first(count):
    return lambda take: replace(
        take,
        points=take.points[:count],
        filled=take.filled[:count],
        T_world_sensor=take.T_world_sensor[:count],
    )


def of_type(dtype):
    return lambda take: replace(
        take,
        points=take.points.astype(dtype),
        T_world_sensor=take.T_world_sensor.astype(dtype),
    )


def in_millimetres(take):
    """Integers cannot hold metres; nor can they hold orientations."""
    integers = np.int32
    millimetres = (1e3 * take.points).astype(integers)
    T_world_sensor = take.T_world_sensor.astype(integers)
    return replace(take, points=millimetres, T_world_sensor=T_world_sensor)


def repeat_names(take):
    labels, sensors = list(take.labels), list(take.sensor_names)
    for names in (labels, sensors):
        names[1:2] = names[:1]
    return replace(take, labels=tuple(labels), sensor_names=tuple(sensors))


def some(value):
    def put(positions):
        positions = positions.copy()
        positions[10, 0] = positions[20:25, 3, 1] = value
        return positions

    return lambda take: change(take, put)


def every(value):
    return lambda take: change(take, lambda x: np.full_like(x, value))


def still(take):
    return first(take.n_frames)(
        replace(
            take,
            points=np.repeat(take.points[:1], take.n_frames, axis=0),
            T_world_sensor=np.repeat(take.T_world_sensor[:1], take.n_frames, axis=0),
        )
    )


def still_with_noise(take):
    rng = np.random.default_rng(0)
    return change(still(take), lambda x: x + rng.normal(scale=1e-3, size=x.shape))


def noise(take):
    rng = np.random.default_rng(0)

    def poses(T):
        turned = geometry.rotation_exp(rng.normal(size=(*T.shape[:2], 3)))
        return geometry.transform(turned, T[..., :3, 3])

    return change(take, lambda x: rng.normal(size=x.shape), poses)


def scale(factor):
    return lambda take: change(take, lambda x: factor * x)


def at_rate(rate):
    return lambda take: replace(take, rate=rate)


NOTHING = "found (0 markers seen|sensors without positions)"
REFUSED = {
    "no frames": (first(0), "found 0 frames"),
    "nothing but 1e30": (
        every(1e30),
        NOTHING,
    ),
    "nothing but inf": (
        every(np.inf),
        NOTHING,
    ),
    "nothing but NaN": (
        every(np.nan),
        NOTHING,
    ),
    "nothing but zeros": (every(0.0), "found all in one position"),
}
DOUBTED = {
    "one frame": (first(1), "take-short"),
    "five frames": (first(5), "take-short"),
    "names repeated": (repeat_names, "labels-repeated"),
    "1e30 in places": (some(1e30), "coordinates-absurd"),
    "inf in places": (some(-np.inf), "coordinates-absurd"),
    "still": (still, "no-motion"),
    "still but for noise": (still_with_noise, "no-motion"),
    "pure noise": (noise, "no-motion"),
    "1 Hz": (at_rate(1.0), "rate-doubtful"),
    "10 kHz": (at_rate(1e4), "rate-doubtful"),
}
HARMLESS = {
    "float32": (of_type(np.float32), 1e-5),
    "float16": (of_type(np.float16), 0.02),
    "big-endian": (of_type(">f8"), 0.0),
    "millimetres": (scale(1e3), 1e-9),
    "divided by 1000 twice": (scale(1e-3), 1e-9),
}
KINDS = ("markers", "sensors")


def without_labels(take):
    return replace(take, labels=tuple(f"M{k}" for k in range(len(take.labels))))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("size", [1.0, 1e-6])
def test_a_still_take_without_labels_is_doubted(takes, size):
    solution = solve(still(without_labels(scale(size)(takes["markers"]))))
    assert [f.code for f in solution.report.findings if f.severity == "error"] == [
        "no-motion"
    ]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e3])
def test_a_person_of_another_size_without_labels_is_solved_and_doubted(takes, size):
    """It may be a model of a person: only absurd speeds are errors."""
    solution = solve(without_labels(scale(size)(takes["markers"])))
    findings = solution.report.findings
    errors = [f for f in findings if f.severity == "error"]
    assert bool(errors) == (size == 1e3)
    assert all("unit=" in f.message for f in errors if f.code == "rate-doubtful")
    is_person = any(f.code == "named-by-shape" for f in findings)
    doubts = [f.severity for f in findings if f.code == "unit-doubtful"]
    assert doubts == is_person * ["warning"]


def solve(take):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return marey.solve(take)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", REFUSED)
def test_nothing_to_solve_is_refused(takes, kind, case):
    spoil, message = REFUSED[case]
    with pytest.raises(marey.DataError, match=message):
        solve(spoil(takes[kind]))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", DOUBTED)
def test_doubtful_data_give_an_answer_with_an_error_finding(takes, kind, case):
    spoil, code = DOUBTED[case]
    solution = solve(spoil(takes[kind]))
    errors = [f.code for f in solution.report.findings if f.severity == "error"]
    assert set(errors) - {"pose-lost"} == {code}
    for motion in solution.subjects[0].motions:
        assert np.isfinite(motion.wxyz).all()


def shuffle(take):
    """Columns in another order in every frame: labels are those of nobody."""
    rng = np.random.default_rng(0)
    points = take.points.copy()
    for frame in points:
        rng.shuffle(frame)
    return replace(take, points=points)


def hide_most(take):
    rng = np.random.default_rng(1)
    return replace(
        take,
        points=np.where(rng.random(take.seen.shape)[..., None] < 0.95, np.nan, 1.0)
        * take.points,
    )


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (shuffle, "pose-lost"),
        (lambda take: change(take, lambda x: x * [0.0, 0.0, 1.0]), "points-flat"),
        (at_rate(1e9), "rate-doubtful"),
    ],
)
def test_markers_that_make_no_figure_are_an_error(takes, labelled, spoil, code):
    take = takes["markers"] if labelled else without_labels(takes["markers"])
    findings = solve(spoil(take)).report.findings
    assert code in {f.code for f in findings if f.severity == "error"}


@pytest.mark.usefixtures("unchecked")
def test_markers_hardly_ever_seen_are_refused(takes):
    with pytest.raises(marey.DataError, match="found no pose"):
        solve(hide_most(takes["markers"]))


@pytest.mark.usefixtures("unchecked")
def test_two_dimensions_are_an_error_for_people(takes):
    flat = change(takes["markers"], lambda x: x * [1.0, 1.0, 0.0])
    severity = {
        labelled: {
            f.severity
            for f in solve(flat if labelled else without_labels(flat)).report.findings
            if f.code == "points-flat"
        }
        for labelled in (True, False)
    }
    assert severity == {True: {"error"}, False: {"warning"}}


@pytest.mark.usefixtures("unchecked")
def test_sensors_at_an_absurd_rate_need_no_absurd_memory(takes):
    solution = solve(at_rate(1e9)(takes["sensors"]))
    assert "rate-doubtful" in {f.code for f in solution.report.findings}


@pytest.mark.usefixtures("unchecked")
def test_a_sensor_that_is_out_of_sight_is_reported():
    take = in_memory(
        synth.human(seed=3).record(
            "walk",
            markers="none",
            sensors=True,
            seconds=6.0,
            rate=60.0,
            noise=1e-3,
            turn_noise=5e-3,
        )
    )
    T = take.T_world_sensor.copy()
    T[60:240, take.sensor_names.index("LeftLowerArm")] = np.nan
    T[270:300] = np.nan
    findings = solve(replace(take, T_world_sensor=T)).report.findings
    found = {(f.code, f.subject, f.frames) for f in findings if f.stage == "pose"}
    assert found == {
        ("pose-unseen", "", (270, 299)),
        ("joint-unseen", "LeftLowerArm", (60, 239)),
        ("joint-unseen", "LeftHand", (60, 239)),
    }


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", HARMLESS)
def test_other_numbers_and_units_give_the_same_answer(takes, solved, kind, case):
    spoil, tolerance = HARMLESS[case]
    expected, found = solved(kind), solve(spoil(takes[kind]))
    assert found.report.worst != "error"
    assert found.skeleton.names == expected.skeleton.names
    difference = found.skeleton.lengths - expected.skeleton.lengths
    assert np.abs(difference).max() <= tolerance


@pytest.mark.usefixtures("unchecked")
def test_integers_are_numbers_but_no_orientations(takes):
    solution = solve(in_millimetres(takes["markers"]))
    assert [f.code for f in solution.report.findings if f.code[:5] == "unit-"] == [
        "unit-corrected"
    ]
    with pytest.raises(marey.DataError, match="without orientations"):
        solve(in_millimetres(takes["sensors"]))


@pytest.mark.usefixtures("unchecked")
def test_markers_on_one_point_are_no_division_by_zero(takes):
    """Whole metres put most markers of a body on the same point."""
    rounded = change(takes["markers"], positions=np.round)
    assert solve(replace(rounded, labels=numbered(rounded))).report.findings


def numbered(take):
    return tuple(f"m{i}" for i in range(len(take.labels)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["stated", "given"])
def test_a_unit_that_someone_stated_is_doubted_and_kept(takes, kind, how):
    small = scale(1e-3)(takes[kind])
    small = replace(small, source=Source(unit=Fact("mm", how)))
    solution = marey.solve(small)
    (doubt,) = [f for f in solution.report.findings if f.code == "unit-doubtful"]
    assert doubt.severity == "error"
    assert f"in mm, which is {how}: m fits; read it with unit=m" in doubt.message
    assert solution.skeleton.lengths.max() < 1e-2


@pytest.mark.parametrize("how", ["stated", "assumed"])
def test_a_small_figure_whose_trunk_is_level_may_be_an_animal(takes, how):
    """Its legs have the names of a person's; its file says what is up."""
    R = geometry.R_Z_UP["y"]
    small = change(takes["markers"], lambda x: 0.1 * x @ R.T, lambda T: T)
    source = Source(path="cat.c3d", unit=Fact("mm", how), up=Fact("z", "stated"))
    small = replace(small, source=source)
    solution = marey.solve(small)
    (doubt,) = [f for f in solution.report.findings if f.code.startswith("unit-")]
    assert (doubt.code, doubt.severity) == ("unit-doubtful", "warning")
    assert doubt.message.startswith("what looks like a person")
    assert solution.takes[0].source.unit.value == "mm"
    assert solution.skeleton.lengths.max() < 0.1


def test_a_take_without_markers_and_sensors_is_refused_in_words(takes):
    take = takes["markers"].select([])
    with pytest.raises(marey.DataError, match="found neither markers nor sensors"):
        marey.solve(take)
    with pytest.raises(marey.DataError, match=r"at least 3$"):
        marey.solve(takes["markers"].select([0, 1]))


def test_messages_about_bad_input_have_numbers_that_people_read(takes):
    small = replace(takes["markers"], source=Source(unit=Fact("m", "stated")))
    cases = (
        (scale(1e-3)(small), "multiply the positions by 1000"),
        (at_rate(1e4)(takes["markers"]), "at 10,000 Hz"),
        (first(1)(takes["markers"]), "1 frame shows no motion"),
        (still(takes["markers"]), "nothing moves, so joints are guesses"),
    )
    for take, words in cases:
        findings = marey.solve(take).report.findings
        assert any(words in f.message for f in findings if f.severity == "error")


@pytest.mark.parametrize("how", ["stated", "assumed"])
def test_a_person_whom_no_unit_fits_is_doubted(takes, how):
    large = replace(scale(1e3)(takes["markers"]), source=Source(unit=Fact("mm", how)))
    findings = marey.solve(large).report.findings
    (doubt,) = [f for f in findings if f.code.startswith("unit-")]
    assert (doubt.code, doubt.severity) == ("unit-doubtful", "error")
    assert "no unit fits" in doubt.message


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("suffix", ["trc", "csv", "c3d", "npz", "parquet"])
def test_no_frames_are_written_and_read_or_refused(takes, tmp_path, suffix):
    path = tmp_path / f"empty.{suffix}"
    try:
        marey.write(first(0)(takes["markers"]), path)
        with pytest.raises(marey.MareyError, match="frame"):
            marey.solve(path)
    except marey.MareyError as error:
        assert "frame" in str(error)  # noqa: PT017


def test_a_mended_unit_is_named(takes):
    large = replace(
        scale(1e2)(takes["markers"]), source=Source(unit=Fact("m", "assumed"))
    )
    findings = marey.solve(large).report.findings
    (doubt,) = [f for f in findings if f.code == "unit-corrected"]
    assert doubt.severity == "warning"
    assert (
        "in m, which is assumed: cm is used; give unit= if that is wrong"
        in doubt.message
    )


def test_what_no_label_calls_a_person_keeps_its_size():
    take = in_memory(synth.human().record("walk", seconds=1.0, labels=False, rate=60.0))
    small = marey.solve(scale(0.05)(take))
    units = [f for f in small.report.findings if f.code.startswith("unit-")]
    assert [f.code for f in units] == ["unit-doubtful"]
    assert units[0].value < 0.1
    np.testing.assert_array_equal(small.takes[0].points, 0.05 * take.points)


@pytest.mark.parametrize("kind", ["markers", "sensors"])
def test_one_frame_shows_no_noise_of_angles(takes, kind):
    (motion,) = marey.solve(takes[kind].cut(0, 1)).subjects[0].motions
    assert np.isnan(motion.angle_sd).all()


@pytest.mark.parametrize("joints", ["ball", "gdke"])
def test_one_frame_of_markers_and_sensors_is_doubted(joints):
    """Hips and chest may have no width there."""
    both = {"markers": "sparse41", "sensors": True, "turn_noise": 2e-3, "noise": 1e-3}
    take = synth.human().record("exercise", rate=60.0, seconds=0.1, **both)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = marey.solve(in_memory(take).cut(0, 1), joints=joints)
    errors = [f.code for f in solution.report.findings if f.severity == "error"]
    assert set(errors) - {"pose-lost"} == {"take-short"}


def test_a_known_skeleton_is_posed_in_one_frame(takes):
    skeleton = marey.solve(takes["markers"]).skeleton
    solution = marey.solve(first(1)(takes["markers"]), skeleton=skeleton)
    assert solution.report.worst != "error"


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("recordings", [None, 5])
def test_what_is_no_recording_is_refused(recordings):
    with pytest.raises(marey.DataError, match="need files or takes"):
        marey.solve(recordings)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("dtype", [np.complex128, bool, "U3", object])
def test_what_is_no_number_is_refused(dtype):
    points = np.zeros((3, 2, 3)).astype(dtype)
    with pytest.raises(
        marey.DataError, match=r"take.points: found .*need real numbers"
    ):
        marey.Take(rate=100.0, points=points, labels=("a", "b"))


@pytest.mark.parametrize("spoil", [still_with_noise, noise, first(3)])
def test_nonsense_is_not_written_with_exit_zero(takes, tmp_path, spoil):
    source, target = tmp_path / "bad.npz", tmp_path / "bad.bvh"
    marey.write(spoil(takes["sensors"]), source)
    with pytest.raises(SystemExit) as stop:
        main(["solve", str(source), "-o", str(target), "--quiet"])
    assert stop.value.code == 1


def test_a_shank_never_seen_with_its_thigh_is_a_figure_of_its_own(takes):
    take = takes["markers"]
    points, half = take.points.copy(), take.n_frames // 2
    for k, label in enumerate(take.labels):
        if label in ("LTHI", "LKNE"):
            points[half:, k] = np.nan
        if label in ("LSHN", "LANK", "LHEE", "LTOE", "LMT5"):
            points[:half, k] = np.nan
    solution = marey.solve(replace(take, points=points))
    names = [subject.skeleton.names[0] for subject in solution.subjects]
    assert names == ["Hips", "LeftLowerLeg"]
    found = [f for f in solution.report.findings if f.code == "parent-unseen"]
    assert [f.subject for f in found] == ["LeftLowerLeg"]
    for subject in solution.subjects:
        assert np.isfinite(subject.skeleton.offset).all()
        assert np.isfinite(subject.motions[0].T_world_joint()).all()


def test_positions_of_whole_metres_are_refused(takes):
    """Markers that share a position most of the time show hardly any body."""
    with pytest.raises(marey.errors.DataError, match="LeftHand: found no pose"):
        marey.solve(change(takes["markers"], np.trunc))
