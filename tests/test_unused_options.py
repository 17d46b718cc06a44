"""Options that cannot matter are reported, with the reason; others are not."""

import re
from pathlib import Path

import numpy as np
import pytest

import marey
from marey import synth
from marey.pipeline.reporting.unused_options import UNUSED_OPTIONS


@pytest.fixture(scope="module")
def person():
    return synth.human(seed=3)


@pytest.fixture(scope="module")
def takes(person):
    """Recordings by name: labels or sensors, with and without gaps and distortion."""

    def record(motion="exercise", seconds=1.5, rate=60.0, **options):
        return person.record(motion, seconds=seconds, rate=rate, seed=1, **options)

    noisy = {"noise": 1e-3}
    sensors = {"markers": "none", "sensors": True, "seconds": 3.0, **noisy}
    return {
        "labels": record(markers="set53", **noisy),
        "gaps": record(markers="set53", gaps=0.05, rate=120.0, **noisy),
        "sensors": record(**sensors),
        "bent": record(field=0.02, **sensors),
    }


@pytest.fixture(scope="module")
def solve(takes):
    """Solve a recording, each way once."""
    known = {}

    def solve(name, **options):
        key = name, str(options)
        if key not in known:
            chosen = marey.SolveOptions(**options)
            known[key] = marey.solve(takes[name], options=chosen)
        return known[key]

    return solve


@pytest.fixture(scope="module")
def performer(solve):
    return solve("labels").skeleton


def findings(solution):
    codes = (f for f in solution.report.findings if f.code == "option-unused")
    return {finding.subject: finding for finding in codes}


def answer(solution):
    """Joints, markers and motions: all numbers of an answer."""
    (subject,) = solution.subjects
    skeleton, (motion,) = subject.skeleton, subject.motions
    yield from (skeleton.offset, skeleton.covariance, skeleton.length_sd)
    yield from (skeleton.marker_offset, skeleton.T_joint_sensor)
    yield from (motion.wxyz, motion.T_world_root)


def same(a, b):
    pairs = zip(answer(a), answer(b), strict=True)
    return a.skeleton.names == b.skeleton.names and all(
        np.array_equal(x, y, equal_nan=True) for x, y in pairs
    )


WITHOUT_EFFECT = [
    ("labels", {}, {"joints": "gdke"}, "landmarks"),
    ("labels", {}, {"joints": "distance"}, "landmarks"),
    ("labels", {"skeleton": ...}, {"joints": "distance"}, "bones of the performer"),
    ("labels", {}, {"weight": "residual"}, "hierarchy is known"),
    ("labels", {"skeleton": ...}, {"segment": "labels"}, "known performer"),
    ("labels", {"skeleton": ...}, {"template": ...}, "known performer"),
    ("labels", {"segment": "labels"}, {"template": ...}, "another segmentation"),
    ("labels", {"segment": "labels"}, {"n_bodies": 7}, "labels or a marker map"),
    ("labels", {"skeleton": ...}, {"tree": {"Head": "Hips"}}, "hierarchy"),
    ("labels", {}, {"ground": 0.1}, "neither held"),
    ("labels", {}, {"max_gap": 1e-3}, "no marker has a gap"),
    ("labels", {}, {"min_confidence": 0.5}, "no position has a confidence"),
    ("labels", {}, {"field": True}, "no sensors"),
    ("sensors", {}, {"field": True}, "no significant distortion"),
    ("sensors", {}, {"n_bodies": 7}, "every sensor is a body"),
    ("sensors", {}, {"calibrate": False}, "never calibrated"),
]


@pytest.mark.parametrize(
    ("take", "others", "option", "reason"), WITHOUT_EFFECT, ids=str
)
def test_an_option_without_effect_says_so(
    solve, performer, take, others, option, reason
):
    others = {k: performer if v is ... else v for k, v in others.items()}
    (name, value), *_ = option.items()
    value = performer if value is ... else value
    without, with_option = solve(take, **others), solve(take, **others, **{name: value})
    assert same(without, with_option)
    assert name not in findings(without)
    finding = findings(with_option)[name]
    assert reason in finding.message
    assert (finding.severity, finding.stage) == ("info", "solve")
    assert len(finding.message.split()) <= 25


@pytest.mark.parametrize("method", ["gdke", "distance"])
def test_joint_fits_matter_to_landmarks_only_where_markers_are_occluded(solve, method):
    """A marker that the reference frame does not show is placed by the joint fits."""
    ball, other = solve("gaps"), solve("gaps", joints=method)
    shift = np.linalg.norm(ball.skeleton.offset - other.skeleton.offset, axis=1)
    assert ball.skeleton.names == other.skeleton.names
    assert shift.max() < 1e-4, "a tenth of the noise"


WITH_EFFECT = [
    ("labels", {"segment": "overlap"}, {"joints": "distance"}),
    ("labels", {"calibrate": False}, {"joints": "distance"}),
    ("sensors", {}, {"joints": "gdke"}),
    ("sensors", {}, {"weight": "residual"}),
    ("labels", {}, {"segment": "overlap"}),
    ("labels", {}, {"n_bodies": 9}),
    ("labels", {}, {"calibrate": False}),
    ("labels", {}, {"limits": "human"}),
    ("gaps", {}, {"max_gap": 0.2}),
    ("bent", {}, {"field": True}),
]


@pytest.mark.parametrize(("take", "others", "option"), WITH_EFFECT, ids=str)
def test_an_option_that_can_matter_is_no_finding(solve, take, others, option):
    assert findings(solve(take, **others, **option)) == {}


def test_a_default_is_no_finding(solve):
    assert findings(solve("labels")) == findings(solve("sensors")) == {}


def test_one_body_has_no_joints(person):
    take = person.record("walk", seconds=2.0, markers="set53").select(
        [i for i in range(4)]
    )
    options = marey.SolveOptions(joints="gdke", segment="overlap", n_bodies=1)
    found = findings(marey.solve(take, options=options))
    assert "one body only" in found["joints"].message


def test_only_joint_fits_that_a_skeleton_has_are_reported(takes):
    """Calibration fits joints again, and reports on them itself."""
    still = takes["sensors"].cut(0, 30)
    codes = {f.code for f in marey.solve(still).report.findings}
    assert codes & {"joint-weak", "joint-free", "joint-still"}
    still = takes["labels"].cut(0, 30)
    for calibrate in (True, False):
        solution = marey.solve(still, calibrate=calibrate)
        codes = {f.code for f in solution.report.findings if f.stage == "joints"}
        assert bool(codes & {"joint-weak", "joint-free", "joint-still"}) != calibrate


def test_edits_may_give_an_option_an_effect(takes):
    """A joint that is added by hand removes the costliest of its cycle."""
    edits = (marey.Edit(do="join", bodies=("LeftFoot", "RightFoot")),)
    options = marey.SolveOptions(weight="residual", edits=edits)
    assert "weight" not in findings(marey.solve(takes["labels"], options=options))


def test_the_page_on_options_has_the_table():
    text = (Path(__file__).parent.parent / "docs" / "options.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.+) \|$", text, re.MULTILINE)
    assert rows == [(option, reason) for option, _, reason in UNUSED_OPTIONS]
