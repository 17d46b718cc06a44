"""Every file of the recordings reads, and holds what its manifest says of it."""

import json
import re
from typing import Any

import pytest
from real import loaders

import marey

# How the manifest words a fact, one pattern per quantity.
WORDINGS = {
    "frames": r"(?<![x\d])(\d+) (?:frames|rows|poses)|pred \((\d+)",
    "markers": r"(\d+) (?:points x|markers|3-D points|marker )|, (\d+)\) \(frames",
    "joints": r"(\d+) (?:joints|segments|bones)|4, (\d+), \d+\)",
    "sensors": r"(two|one) Polhemus|of (two) bodies",
    "rate": r"(?:@ |\(|about )([\d.]+) (?:Hz|rows/s)",
    "missing": r"missing ([\d.]+)%",
    "gappy": r"% in (\d+) points",
    "events": r"(\d+) events",
    "analog": r"(\d+) analog",
    "unit": r"(?:Hz, (?:units )?|units |, )(mm|m|Meters|Millimeters)(?:[,;]|$)",
    "length": r"length unit ([\d.]+)",
    "lines": r"text, (\d+) lines",
}
WORDS = {"one": 1, "two": 2, "mm": "mm", "m": "m", "Meters": "m", "Millimeters": "mm"}
# What it gives in numbers goes before what it says in words.
NUMBERS = {
    "points": "markers",
    "frames": "frames",
    "rate": "rate",
    "missing": "missing",
    "units": "unit",
}

FOUND_ELSEWHERE = "the manifest has no facts: "
DIFFERENT: dict[str, tuple[dict[str, Any], str]] = {
    "formats_c3d/badParameterOffset.c3d": (
        {"markers": 41, "frames": 111, "rate": 250.0, "missing": 2 / 41},
        FOUND_ELSEWHERE + "the libraries it is from refuse the file",
    ),
    "formats_c3d/bad_parameter_section.c3d": (
        {"markers": 45, "frames": 332, "rate": 120.0, "missing": 6044 / 14_940},
        FOUND_ELSEWHERE + "the parameters run into the frames",
    ),
    "formats_c3d/mocap36.c3d": (
        {"markers": 36, "frames": 1380, "rate": 100.0, "missing": 8244 / 49_680},
        FOUND_ELSEWHERE + "the libraries it is from refuse the file",
    ),
    "formats_c3d/phasespace_sample.c3d": (
        {"markers": 40, "frames": 701, "rate": 30.0, "missing": 1281 / 28_040},
        "the file has no parameters, its header says what there is",
    ),
    "formats_c3d/dynamic.C3D": (
        {"missing": 3572 / 10_064, "gappy": 32},
        "without ANALOG:RATE the analog numbers were taken for points",
    ),
    "formats_trc/10002-20130626160334-Unnamed.trc": (
        {"markers": 10, "frames": 882, "rate": 400.0, "missing": 6678 / 8820},
        FOUND_ELSEWHERE + "the header names fewer markers than there are columns",
    ),
    "formats_trc/HHMotion.trb": (
        {"markers": 37, "frames": 545, "rate": 100.0, "missing": 283 / 545},
        FOUND_ELSEWHERE + "a binary file, which was not parsed",
    ),
    "formats_trc/HHStatic.trb": (
        {"markers": 37, "frames": 247, "rate": 100.0, "missing": 0.0},
        FOUND_ELSEWHERE + "a binary file, which was not parsed",
    ),
    "sixdof_motive_csv/gaga_skeleton_bones_v1.25.csv": (
        {"frames": 32},
        "the header has a line more than in version 1.21, counted as a frame",
    ),
    "sixdof_xsens_mvnx/test_mocap.mvnx": (
        {"frames": 112},
        "three of the frames are poses of the calibration, left out with a finding",
    ),
    "animal_rat/rat23.mat": ({"markers": 23}, FOUND_ELSEWHERE + "it holds names only"),
    "addbio_arnold_s01_synthetic/model_topology.json": (
        {"joints": 22, "markers": 64},
        FOUND_ELSEWHERE + "counted in the file",
    ),
    "addbio_hamner_s01/model_topology.json": (
        {"joints": 20, "markers": 64},
        FOUND_ELSEWHERE + "counted in the file",
    ),
    "addbio_uhlrich_s2/model_topology.json": (
        {"joints": 22, "markers": 49},
        FOUND_ELSEWHERE + "counted in the file",
    ),
    **{
        f"nimble_kuleuven_weirdtrc/markers_{name}.trc": (
            {"missing": 0.0},
            "positions that are exactly zero are kept, with a finding",
        )
        for name in ("Gait7", "Squat2", "StairUp3")
    },
    "mech_pendulum/truth.json": (
        {"joints": 3, "markers": 28},
        "22 markers of the takes and 6 of the calibration on the pins",
    ),
}
REFUSED = {
    "formats_c3d/Empty.c3d": "an empty file",
    "formats_trc/Empty.trc": "an empty file",
    "formats_trc/Truncated.trc": "the end of the file",
}


def stated(entry):
    """The facts that an entry of the manifest states."""
    facts = {}
    for name, pattern in WORDINGS.items():
        if match := re.search(pattern, entry["fact"]):
            word = next(group for group in match.groups() if group)
            facts[name] = WORDS[word] if word in WORDS else worded(name, float(word))
    facts |= {NUMBERS[key]: entry[key] for key in NUMBERS if key in entry}
    return {name: value for name, value in facts.items() if value not in (None, "?")}


def worded(name, value):
    """A number of the words, which are rounded."""
    if name == "missing":
        return pytest.approx(value / 100.0, abs=6e-4)
    return pytest.approx(value, rel=3e-3) if name == "rate" else value


def about_take(take):
    seen = take.seen
    return {
        "frames": take.n_frames,
        "markers": len(take.labels),
        "joints": len(take.sensor_names),
        "sensors": len(take.sensor_names),
        "rate": take.rate,
        "missing": 1.0 - seen.mean() if seen.size else 0.0,
        "gappy": (~seen.all(axis=0)).sum(),
        "events": len(take.events),
        "analog": len(take.analog.labels),
        "unit": take.source.unit.value,
    }


def read_take(path):
    """A recording with all that is in it; the rate is known of a tracker's matrices."""
    rate = 100.0 if path.suffix == ".traj" else None
    return about_take(marey.read(path, computed=True, analog=True, rate=rate))


def read_motion(path):
    """A motion, of which the take of its joints says the same."""
    motion, take = marey.read_motion(path), marey.read(path)
    figure = motion.skeleton
    joints = [n for n, end in zip(figure.names, figure.is_end, strict=True) if not end]
    assert (motion.n_frames, motion.rate) == (take.n_frames, take.rate)
    assert set(joints) <= set(take.sensor_names)
    return about_take(take)


def read_skeleton(path):
    """A figure: its root is no bone of an ASF, and its ends are no joints."""
    figure = marey.read_skeleton(path)
    joints = figure.n_joints
    if path.suffix == ".asf":
        joints = int((~figure.is_end).sum()) - 1
    return {
        "joints": joints,
        "markers": len(figure.marker_labels),
        "length": stated_length(path),
    }


def stated_length(path):
    match = re.search(r"length ([\d.]+)", path.read_text(encoding="latin-1"))
    return float(match[1]) if match else None


def read_mat(path):
    if path.stem == "rat23":
        pairs = loaders.rat_pairs(path.parent)
        return {"markers": len({*pairs.ravel().tolist()})}
    load = loaders.load_hinge if path.stem == "SampleHinge" else loaders.load_rat
    return about_take(load(path.parent))


def read_reference(path):
    names, parents, points = loaders.reference_joints(path)
    n_frames, n_joints, _ = points.shape
    assert len(names) == len(parents) == n_joints
    return {"joints": n_joints, "frames": n_frames}


def read_json(path):
    """A model's topology, or the bodies that labels belong to."""
    if path.name.startswith("bodies"):
        data = json.loads(path.read_text())
        known = {body for bodies in data["bodies"].values() for body in bodies}
        assert known
        return {}
    tree = loaders.topology(path)
    return {"joints": len(tree.joints), "markers": len(tree.marker_body)}


def read_template(path):
    """A template and its estimates have one line for each bone, end and marker."""
    figure = loaders.load_template(path.parent)
    things = figure.n_joints + len(figure.marker_labels)
    given_by_hand = 1 + int(figure.is_end.sum())
    lines = {"skeleton_template": things + 1}
    return {"lines": lines.get(path.stem, things - given_by_hand)}


def read_prose(path):
    """Words about recordings: no recording."""
    with pytest.raises(marey.FormatError, match="none of them knows"):
        marey.read(path)
    lines = path.read_text().splitlines()
    return {"lines": sum(bool(line.strip()) for line in lines)}


def read_dog(path):
    return about_take(loaders.load_dog(path.parent))


READERS = {
    ".c3d": read_take,
    ".trc": read_take,
    ".trb": read_take,
    ".tsv": read_take,
    ".csv": read_take,
    ".traj": read_take,
    ".bvh": read_motion,
    ".amc": read_motion,
    ".htr": read_motion,
    ".mvnx": read_motion,
    ".asf": read_skeleton,
    ".vsk": read_skeleton,
    ".mat": read_mat,
    ".npz": read_reference,
    ".json": read_json,
    ".txt": read_prose,
}
SPECIAL = {
    "animal_dog/dog_walk00_joint_pos.txt": read_dog,
    "olafhaag_unlabelled/skeleton_template.csv": read_template,
    "olafhaag_unlabelled/estimated_offsets.csv": read_template,
}


@pytest.fixture(scope="module")
def manifest(recordings):
    """The manifest's entries by file, below the folder of the recordings."""
    entries = json.loads((recordings / "manifest.json").read_text())
    return {entry["file"]: entry for entry in entries}


def test_the_table_covers_every_file_of_the_folder(recordings, manifest):
    files = {
        path.relative_to(recordings).as_posix()
        for path in recordings.glob("*/*")
        if path.name != "README.md"
    }
    assert files == set(manifest)
    assert {*DIFFERENT, *REFUSED, *SPECIAL} <= files
    assert not DIFFERENT.keys() & REFUSED.keys()
    recordings_only = {name for name in files - {*REFUSED} if name[-5:] != ".json"}
    without_facts = {name for name in recordings_only if not stated(manifest[name])}
    assert without_facts <= set(DIFFERENT)


@pytest.mark.parametrize("suffix", READERS)
def test_every_file_holds_what_is_stated_of_it(suffix, recordings, manifest):
    mine = [n for n in manifest if n.lower().endswith(suffix) and n not in REFUSED]
    assert mine
    for name in mine:
        found = SPECIAL.get(name, READERS[suffix])(recordings / name)
        facts = stated(manifest[name])
        changes, reason = DIFFERENT.get(name, ({}, "as stated"))
        assert all(facts.get(k) != v for k, v in changes.items()), f"{name}: no change"
        for quantity, wanted in (facts | changes).items():
            assert found[quantity] == nearly(wanted), (
                f"{name}: {quantity} is {found[quantity]}, not {wanted} ({reason})"
            )


def nearly(wanted):
    exact = not isinstance(wanted, float)
    return wanted if exact else pytest.approx(wanted, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", REFUSED)
def test_what_holds_nothing_is_refused_with_its_reason(name, recordings):
    with pytest.raises(marey.FormatError, match=REFUSED[name]):
        marey.read(recordings / name)


def test_a_take_names_the_bytes_it_came_from(recordings, manifest):
    for name in ("cmu/02_01.c3d", "hand_dfki/recording.tsv", "cmu/07_01.bvh"):
        take = marey.read(recordings / name)
        assert take.source.sha256 == manifest[name]["sha256"]
