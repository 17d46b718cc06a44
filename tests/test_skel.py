"""Skeletons as JSON."""

import json
from dataclasses import replace

import numpy as np
import pytest
import samples

import marey


def test_every_field_comes_back_exactly(tmp_path, rng):
    skeleton = replace(
        samples.skeleton(),
        limits=rng.normal(size=(7, 3, 2)),
        covariance=rng.normal(size=(7, 3, 3)),
        length_sd=np.array([np.nan, 0.001, 0.002, 0.003, np.nan, 0.1, 0.2]),
        marker_labels=("LFHD", "é☃"),
        marker_joint=np.array([0, 5]),
        marker_offset=rng.normal(size=(2, 3)),
        sensor_names=("s1",),
        sensor_joint=np.array([3]),
        T_joint_sensor=rng.normal(size=(1, 4, 4)),
    )
    marey.write(skeleton, tmp_path / "s.skel.json")
    read = marey.read_skeleton(tmp_path / "s.skel.json")
    for name in ("names", "kind", "marker_labels", "sensor_names"):
        assert getattr(read, name) == getattr(skeleton, name)
    for name in (
        "parent",
        "offset",
        "axes",
        "limits",
        "covariance",
        "length_sd",
        "marker_joint",
        "marker_offset",
        "sensor_joint",
        "T_joint_sensor",
    ):
        np.testing.assert_array_equal(getattr(read, name), getattr(skeleton, name))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.update(marey_skeleton=9), "need 1"),
        (lambda s: s["joints"][1].update(parent="nobody"), "nobody"),
        (lambda s: s["joints"][0].update(parent="Foot"), "one root"),
        (lambda s: s["joints"][6].update(name="Hips"), "unique"),
        (lambda s: s["joints"][1].update(kind="rubber"), "rubber"),
        (lambda s: s["joints"][1].update(offset=[1, 2]), "shape"),
        (lambda s: s["joints"][1].pop("offset"), "offset"),
        (lambda s: s.update(joints=7), "TypeError"),
    ],
)
def test_a_wrong_skeleton_is_refused(change, message, tmp_path):
    path = tmp_path / "s.skel.json"
    marey.write(samples.skeleton(), path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(marey.FormatError, match=message):
        marey.read_skeleton(path)


def test_it_holds_no_recording(tmp_path):
    marey.write(samples.skeleton(), tmp_path / "s.skel.json")
    with pytest.raises(marey.FormatError, match="does not"):
        marey.read(tmp_path / "s.skel.json")
