"""marey's own archive: everything exact, nothing executed, nothing oversized."""

import dataclasses
import io
import json
import os
import zipfile

import numpy as np
import pytest
import samples

import marey


def same(a, b):
    """Whether two nouns are equal in every field, NaN equal to NaN."""
    if dataclasses.is_dataclass(a):
        return all(
            same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a)
        )
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(
            a, b, equal_nan=a.dtype.kind == "f"
        )
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b or (a != a and b != b)


def solution():
    take, motion = samples.take(), samples.motion()
    n = len(take.labels)
    bodies = marey.Bodies(
        take=take,
        names=("a", "b"),
        T_world_body=take.T_world_sensor,
        determined=np.array([True, False]),
        marker_body=np.zeros(n, np.int64),
        shared=np.zeros((n, 2), bool),
        marker_confidence=np.ones(n),
        body_confidence=np.ones(2),
        marker_offset=np.zeros((n, 3)),
        rms=np.zeros(2),
    )
    one = {k: np.zeros((1, 3)) for k in ("center_a", "center_b", "axis_a", "axis_b")}
    flat = {k: np.zeros(1) for k in ("residual", "noise", "distance", "mediated")}
    joints = marey.JointFits(
        pair=np.array([[0, 1]]),
        **one,
        **flat,
        spread=np.zeros((1, 6)),
        covariance=np.zeros((1, 6, 6)),
        kind=("ball",),
    )
    tree = marey.Tree(
        parent=np.array([-1, 0]), edge=np.array([-1, 0]), margin=np.array([np.inf, 1.0])
    )
    finding = marey.Finding("x", "joints", "warning", "look here", frames=(3, 9))
    return marey.Solution(
        takes=(take,),
        bodies=(bodies,),
        joints=joints,
        tree=tree,
        subjects=(marey.Subject("Ann", motion.skeleton, (motion,)),),
        report=marey.Report((finding,), seconds={"joints": 0.1}),
        options={"method": "ball", "limit": 0.5},
    )


@pytest.mark.parametrize(
    "make", [samples.take, samples.motion, samples.skeleton, solution]
)
def test_every_noun_comes_back_exactly(make, tmp_path):
    path = tmp_path / "thing.marey"
    thing = make()
    marey.write(thing, path)
    assert same(marey.load(path), thing)


def test_numpy_opens_it_too(tmp_path):
    marey.write(samples.take(), tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz", allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["points"], samples.take().points)


def test_an_archive_of_somebody_else_is_read(tmp_path, rng):
    points = rng.normal(size=(4, 2, 3)) * 1000.0
    np.savez_compressed(
        tmp_path / "n.npz", points=points, labels=["a", "b"], rate=50.0, unit="mm"
    )
    take = marey.read(tmp_path / "n.npz")
    np.testing.assert_allclose(take.points, points / 1000.0)
    assert (take.labels, take.rate) == (("a", "b"), 50.0)
    assert take.source.up.how == "assumed"


def archive(path, entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, data in entries.items():
            zipped.writestr(name, data)
    return path


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def test_objects_are_never_unpickled(tmp_path):
    path = archive(
        tmp_path / "evil.npz", {"points.npy": npy(np.array([print], dtype=object))}
    )
    with pytest.raises(marey.FormatError, match="plain NumPy array"):
        marey.read(path)


def test_a_small_file_that_unpacks_to_gigabytes_is_refused(tmp_path):
    path = archive(tmp_path / "bomb.npz", {"points.npy": b"\0" * 200_000_000})
    assert path.stat().st_size < 1_000_000
    with pytest.raises(marey.FormatError, match="unpacked"):
        marey.read(path)


def test_a_header_that_promises_too_much_is_refused(tmp_path):
    data = npy(np.zeros((2, 2, 3))).replace(b"(2, 2, 3)", b"(9, 9, 3)")
    path = archive(tmp_path / "big.npz", {"points.npy": data})
    with pytest.raises(marey.FormatError, match=r"\(9, 9, 3\)"):
        marey.read(path)


@pytest.mark.parametrize(
    "content",
    [
        {"noun": "os", "fields": {}},
        {"noun": "Take", "fields": {}},
        {"noun": "Event", "fields": {"label": 1, "context": "", "time": 0.0}},
        {"noun": "Event", "fields": {"label": "a", "context": "", "time": "soon"}},
        {"array": "nowhere"},
        [[]],
    ],
)
def test_a_wrong_description_is_refused(content, tmp_path):
    text = json.dumps({"marey": 1, "content": content})
    path = archive(tmp_path / "d.marey", {"marey.json": text})
    with pytest.raises(marey.FormatError):
        marey.read(path)


def test_deep_nesting_is_refused(tmp_path):
    deep = "[" * 500 + "]" * 500
    path = archive(
        tmp_path / "d.marey", {"marey.json": f'{{"marey": 1, "content": {deep}}}'}
    )
    with pytest.raises(marey.FormatError, match="nesting"):
        marey.load(path)


def test_what_it_does_not_hold_is_said(tmp_path):
    marey.write(samples.skeleton(), tmp_path / "s.npz")
    with pytest.raises(marey.FormatError, match="expected a motion, found a skeleton"):
        marey.read_motion(tmp_path / "s.npz")


def test_a_file_whose_name_is_no_text_is_kept_by_that_name(tmp_path):
    """Bytes that are not UTF-8 come back as they were, quotes and slashes too."""
    take = samples.take()
    path = os.fsdecode(b'/data/w\xff"\\\xfe.trc')
    source = dataclasses.replace(take.source, path=path)
    odd = dataclasses.replace(take, source=source)
    marey.write(odd, tmp_path / "odd.marey")
    assert marey.read(tmp_path / "odd.marey").source.path == path


def test_what_is_from_before_a_field_was_there_is_read_as_if_it_were_left_out(tmp_path):
    take = marey.Take(
        rate=50.0,
        source=marey.take.Source(
            findings=(marey.report.Finding("code", "read", "info", "all is well"),)
        ),
    )
    marey.write(take, tmp_path / "new.marey")
    with zipfile.ZipFile(tmp_path / "new.marey") as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    about = json.loads(parts["marey.json"])
    source = about["content"]["fields"]["source"]["fields"]
    del source["findings"][0]["fields"]["names"]
    parts["marey.json"] = json.dumps(about).encode()
    old = marey.read(archive(tmp_path / "old.marey", parts))
    assert same(old.source.findings, take.source.findings)
    del source["findings"][0]["fields"]["message"]
    parts["marey.json"] = json.dumps(about).encode()
    with pytest.raises(marey.FormatError, match="message"):
        marey.read(archive(tmp_path / "odd.marey", parts))
