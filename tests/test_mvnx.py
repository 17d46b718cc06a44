"""MVNX: bodies are written here as MVN exports them and read back."""

import re
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pytest
from damage import same, survive
from scipy.spatial.transform import Rotation

import marey
from marey.io.units_axes import rotation_to_z_up

NAMESPACE = ' xmlns="http://www.xsens.com/mvn/mvnx" xmlns:x="http://x.org"'
PARENTS = {"Pelvis": "", "L5": "Pelvis", "Thigh": "Pelvis", "Shin": "Thigh"}


@dataclass
class Body:
    """Segments whose joints hold together, in metres and Z up."""

    names: tuple
    above: dict
    """Place of each joint in the parent segment."""

    within: dict
    """Place of each joint in its own segment; zero in what MVN writes."""

    T: np.ndarray
    parents: dict = field(default_factory=lambda: PARENTS)
    tips: dict = field(default_factory=dict)

    def text(self, *, frames=None, rate="60", skip=(), kinds=(), index=None):
        frames = self.T if frames is None else frames
        points = {name: dict(self.tips.get(name, {})) for name in self.names}
        joints = []
        for child, parent in self.parents.items():
            if parent:
                points[parent][f"j{child}"] = self.above[child]
                points[child][f"j{child}"] = self.within[child]
                joints.append((child, parent))
        segments = "".join(
            f"<segment label={quoteattr(n)}><points>{dots(points[n])}</points>"
            "</segment>"
            for n in self.names
        )
        meet = "".join(
            f'<joint label="j{c}"><connector1>{escape(p)}/j{c}</connector1>'
            f"<connector2>{escape(c)}/j{c}</connector2></joint>"
            for c, p in joints
        )
        parts = {"segments": segments, "joints": meet}
        head = "".join(f"<{k}>{v}</{k}>" for k, v in parts.items() if k not in skip)
        poses = "".join(calibration(kind, len(self.names)) for kind in kinds)
        numbers = range(len(frames)) if index is None else index
        poses += "".join(map(shot, frames, numbers))
        return (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<mvnx{NAMESPACE} version="4">\n'
            f'<subject label="S" frameRate="{rate}">{head}\n'
            f"<frames>{poses}</frames></subject></mvnx>\n"
        )


def dots(points):
    return "".join(
        f'<point label="{name}"><pos_b>{numbers(place)}</pos_b></point>'
        for name, place in points.items()
    )


def numbers(values):
    return " ".join(repr(float(v)) for v in np.ravel(values))


def calibration(kind, count):
    q, p = numbers(np.tile([1.0, 0.0, 0.0, 0.0], count)), numbers(np.zeros(3 * count))
    return (
        f'<frame time="0" type="{kind}"><orientation>{q}</orientation>'
        f"<position>{p}</position></frame>\n"
    )


def shot(T, index):
    q = Rotation.from_matrix(T[:, :3, :3]).as_quat()[:, [3, 0, 1, 2]]
    return (
        f'<frame time="{1000 * index // 60}" index="{index}" type="normal">'
        f"<orientation>{numbers(q)}</orientation>"
        f"<position>{numbers(T[:, :3, 3])}</position>"
        "<velocity>0 0 <deep>0</deep></velocity></frame>\n"
    )


def body(rng, n_frames=4, shift=0.0):
    """A pelvis with a spine and a leg; `shift` moves joints off segment origins."""
    names = tuple(PARENTS)
    above = {n: rng.normal(scale=0.2, size=3) for n in names}
    within = {n: shift * rng.normal(scale=0.1, size=3) for n in names}
    T = np.tile(np.eye(4), (n_frames, len(names), 1, 1))
    for k, name in enumerate(names):
        T[:, k, :3, :3] = Rotation.random(n_frames, random_state=rng).as_matrix()
        T[:, k, :3, 3] = rng.normal(size=(n_frames, 3))
        if PARENTS[name]:
            up = names.index(PARENTS[name])
            joint = T[:, up, :3, 3] + T[:, up, :3, :3] @ above[name]
            T[:, k, :3, 3] = joint - T[:, k, :3, :3] @ within[name]
    tips = {"L5": {"pTop": [0.0, 0.0, 0.3], "pBack": [-0.1, 0.0, 0.0]}}
    return Body(names, above, within, T, tips=tips)


def saved(folder, text, encoding="utf-8"):
    path = folder / "take.mvnx"
    path.write_bytes(text.encode(encoding))
    return path


def codes(thing):
    return [finding.code for finding in thing.source.findings]


def test_a_take_holds_the_segments_exactly(rng, tmp_path):
    figure = body(rng)
    take = marey.read(saved(tmp_path, figure.text()))
    np.testing.assert_allclose(take.T_world_sensor, figure.T, atol=1e-12)
    assert take.sensor_names == figure.names
    assert (take.rate, take.start, codes(take)) == (60.0, 0.0, [])
    assert str(take.source.rate) == "60 (stated: frameRate)"
    assert (take.source.unit.value, take.source.up.value) == ("m", "z")


@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("up", ["z", "y", "-x"])
def test_a_motion_goes_where_the_segments_go(rng, shift, up, tmp_path):
    figure = body(rng, shift=shift)
    motion = marey.read_motion(saved(tmp_path, figure.text()), up=up)
    U, T = rotation_to_z_up(up), motion.T_world_joint()
    R = U @ figure.T[..., :3, :3] @ U.T
    np.testing.assert_allclose(T[:, :4, :3, :3], R, atol=1e-12)
    within = np.array([figure.within[n] for n in figure.names])
    within[0] = 0.0
    joints = figure.T[..., :3, 3] + np.einsum(
        "fkij,kj->fki", figure.T[..., :3, :3], within
    )
    np.testing.assert_allclose(T[:, :4, :3, 3], joints @ U.T, atol=1e-12)
    assert codes(motion) == []


def test_the_skeleton_stands_in_the_identity_pose(rng, tmp_path):
    figure = body(rng)
    skeleton = marey.read_motion(saved(tmp_path, figure.text())).skeleton
    assert skeleton.names == (*figure.names, "L5_end")
    assert skeleton.kind == ("root", "ball", "ball", "ball", "fixed")
    rest = skeleton.rest()[:, :3, 3]
    np.testing.assert_allclose(rest[1] - rest[0], figure.above["L5"], atol=1e-12)
    np.testing.assert_allclose(rest[3] - rest[2], figure.above["Shin"], atol=1e-12)
    np.testing.assert_allclose(rest[4] - rest[1], [0.0, 0.0, 0.3], atol=1e-12)
    assert rest[:, 2].min() == pytest.approx(0.0, abs=1e-12)


def test_calibration_poses_are_left_out(rng, tmp_path):
    figure = body(rng)
    kinds = ["identity", "tpose", "npose"]
    take = marey.read(saved(tmp_path, figure.text(kinds=kinds)))
    np.testing.assert_allclose(take.T_world_sensor, figure.T, atol=1e-12)
    (finding,) = take.source.findings
    assert (finding.code, finding.severity) == ("frames-left-out", "info")
    assert finding.value == 3.0
    path = saved(tmp_path, figure.text(frames=figure.T[:0], kinds=kinds))
    with pytest.raises(marey.FormatError, match="type normal"):
        marey.read(path)


def test_of_several_subjects_the_first_is_read(rng, tmp_path):
    text, other = body(rng).text(), body(rng).text()
    second = other[other.index("<subject") : other.index("</mvnx>")]
    take = marey.read(saved(tmp_path, text.replace("</mvnx>", f"{second}</mvnx>")))
    assert same(take, marey.read(saved(tmp_path, text)))
    assert codes(take) == ["subjects-several"]


def test_frames_that_were_dropped_are_told(rng, tmp_path):
    figure = body(rng)
    take = marey.read(saved(tmp_path, figure.text(index=[120, 121, 124, 125])))
    assert take.start == 2.0
    (finding,) = take.source.findings
    assert finding.message.startswith("frames declared 6 by their numbers, present 4")


def test_bones_that_come_apart_are_told(rng, tmp_path):
    figure = body(rng)
    figure.T[2, 3, :3, 3] += [0.0, 0.003, 0.0]
    motion = marey.read_motion(saved(tmp_path, figure.text()))
    (finding,) = motion.source.findings
    assert finding.code == "bones-not-rigid"
    assert finding.value == pytest.approx(0.003)


def test_a_prop_without_a_joint_hangs_on_an_added_root(rng, tmp_path):
    figure = body(rng)
    prop = figure.T[:, :1].copy()
    prop[..., :3, 3] += [1.0, 0.0, 0.0]
    prop[..., :3, :3] = Rotation.random(4, random_state=rng).as_matrix()[:, None]
    figure.T = np.concatenate([figure.T, prop], axis=1)
    figure.names = (*figure.names, "Sword")
    motion = marey.read_motion(saved(tmp_path, figure.text()))
    assert motion.skeleton.names[:2] == ("root", "Pelvis")
    np.testing.assert_allclose(
        motion.T_world_joint()[:, 1:6], figure.T[:, [0, 1, 2, 3, 4]], atol=1e-12
    )
    assert codes(motion) == ["roots-several"]


@pytest.mark.parametrize(
    "twin",
    [
        lambda text: text.replace(NAMESPACE, ""),
        lambda text: text.replace(NAMESPACE, ' xmlns="urn:other"'),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("<mvnx", "<!-- <!DOCTYPE mvnx> --><mvnx"),
        lambda text: text.replace(" type=", "\n\tx:note='1' type="),
    ],
    ids=["no namespace", "other namespace", "CRLF", "comment", "foreign attribute"],
)
def test_spelling_does_not_matter(rng, twin, tmp_path):
    text = body(rng).text()
    whole = marey.read(saved(tmp_path, text))
    if "x:note" in twin(text):
        assert NAMESPACE in text
    assert same(marey.read(saved(tmp_path, twin(text))), whole)


def test_encodings_are_told_by_their_mark(rng, tmp_path):
    text = body(rng).text()
    whole = marey.read(saved(tmp_path, text))
    assert same(marey.read(saved(tmp_path, text, "utf-16")), whole)
    assert same(marey.read(saved(tmp_path, text, "utf-8-sig")), whole)


BOMB = '<!DOCTYPE mvnx [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    "declared",
    [
        "<!DOCTYPE mvnx>",
        '<!DOCTYPE mvnx SYSTEM "http://www.xsens.com/mvn/mvnx/schema.dtd">',
        '<!DOCTYPE mvnx [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        BOMB,
    ],
)
@pytest.mark.parametrize("reader", [marey.read, marey.read_motion])
def test_document_types_and_entities_are_refused(rng, declared, reader, tmp_path):
    text = body(rng).text().replace("<mvnx", f"{declared}<mvnx")
    with pytest.raises(marey.FormatError, match="without a document type"):
        reader(saved(tmp_path, text))


def test_an_entity_nobody_declared_is_refused(rng, tmp_path):
    text = body(rng).text().replace("</position>", "&secret;</position>", 1)
    with pytest.raises(marey.FormatError, match="undefined entity"):
        marey.read(saved(tmp_path, text))


@pytest.mark.parametrize(
    ("padding", "says"),
    [
        ("<a>" * 5000 + "</a>" * 5000, "at most 200 elements inside"),
        ("<a/>" * 5000, "at most 4000 elements"),
    ],
)
def test_deep_and_endless_trees_are_refused(rng, padding, says, tmp_path, monkeypatch):
    monkeypatch.setattr("marey.io.text.xml.MAX_ELEMENTS", 4000)
    text = body(rng).text().replace("<subject", f"{padding}<subject")
    with pytest.raises(marey.FormatError, match=says):
        marey.read(saved(tmp_path, text))


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda t: t.replace("</mvnx>", ""), "no element found"),
        (lambda t: t.replace("subject", "object"), "mvnx with a subject"),
        (lambda t: t.replace('"Shin"', '"L5"'), "a name of its own"),
        (lambda t: t.replace("position", "place", 2), "a frame with"),
        (
            lambda t: t.replace("<position>", "<position>1 ", 2),
            "3 numbers of position",
        ),
        (lambda t: t.replace("<position>", "<position>nan ", 1), "a frame with"),
        (lambda t: t.replace("<position>", "<position>1e300 ", 1), "a frame with"),
    ],
)
def test_a_broken_file_is_refused_by_what_is_wrong(rng, harm, says, tmp_path):
    text = body(rng, n_frames=2).text()
    with pytest.raises(marey.FormatError, match=says):
        marey.read(saved(tmp_path, harm(text)))


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda t: t.replace("Pelvis/jThigh", "Shin/jShin"), "a loop through 'Thigh'"),
        (lambda t: t.replace("Pelvis/jL5", "L5/jL5"), "a loop through 'L5'"),
        (lambda t: t.replace("Pelvis/jL5", "Tail/jL5"), "segment/point"),
        (lambda t: t.replace("Thigh/jThigh", "L5/jL5"), "one joint above 'L5'"),
        (lambda t: t.replace("pos_b", "pos_c"), "three numbers"),
        (lambda t: t.replace("<joints>", "<j>").replace("</joints>", "</j>"), "joints"),
    ],
)
def test_broken_joints_are_refused_by_what_is_wrong(rng, harm, says, tmp_path):
    path = saved(tmp_path, harm(body(rng).text()))
    with pytest.raises(marey.FormatError, match=says):
        marey.read_motion(path)
    assert marey.read(path).n_frames == 4


def test_every_cut_is_refused(rng, tmp_path):
    text = re.sub(r"(\.\d)\d+", r"\1", body(rng, n_frames=1).text())
    path = saved(tmp_path, text)
    for cut in range(len(text.rstrip())):
        path.write_text(text[:cut])
        with pytest.raises(marey.FormatError):
            marey.read(path)


@pytest.mark.parametrize("read", [marey.read, marey.read_motion])
def test_damaged_files_give_a_typed_error_or_a_result(rng, read, tmp_path, request):
    survive(read, saved(tmp_path, body(rng).text()))
