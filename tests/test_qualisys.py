"""Qualisys TSV: files are written here in the layout of QTM's 3D and 6D exports.

The 6D layout is that of real exports: sixteen columns per body, only the first of which
carries the body's name, every line ending in a tab, five decimals.
"""

import numpy as np
import pytest
from damage import assert_every_cut_is_noticed, same, survive
from scipy.spatial.transform import Rotation

import marey

LABELS = ("hand_top", "Ann:thumb tip", "C7")
BODIES = ("PSVH", "Wand 2")


def header(fields, events=()):
    lines = [f"{key}\t{value}" for key, value in fields.items() if value]
    lines += [f"EVENT\t{name}\t{frame}\t{time}" for name, frame, time in events]
    return "".join(line + "\n" for line in lines)


def clock(n_frames, columns, rate=100.0):
    """Cells of the leading columns, one list per frame."""
    both = {"Frame": "{0}", "Time": "{1:.5f}"}
    cells = [both[c] for c in columns]
    return [[c.format(i + 1, i / rate) for c in cells] for i in range(n_frames)]


def rows(clocks, values, gap, decimals):
    """Lines of numbers; `gap` stands for what was not seen."""
    lines = ""
    for cells, numbers in zip(clocks, values.tolist(), strict=True):
        text = [gap if v != v else f"{v:.{decimals}f}" for v in numbers]
        lines += "\t".join([*cells, *text]) + "\n"
    return lines


def export_3d(
    points, *, columns=("Frame", "Time"), named=True, gap="", events=(), **fields
):
    n_frames, count, _ = points.shape
    head = {
        "NO_OF_FRAMES": n_frames,
        "NO_OF_CAMERAS": 7,
        "NO_OF_MARKERS": count,
        "FREQUENCY": 100,
        "NO_OF_ANALOG": 0,
        "DESCRIPTION": "--",
        "TIME_STAMP": "2021-08-26, 15:19:24.317\t1483034.68525310",
        "DATA_INCLUDED": "3D",
        "MARKER_NAMES": "\t".join(LABELS[:count]),
    } | fields
    names = [f"{label} {axis}" for label in LABELS[:count] for axis in "XYZ"]
    titles = "\t".join([*columns, *names]) + "\n" if named else ""
    values = 1e3 * points.reshape(n_frames, -1)
    return (
        header(head, events) + titles + rows(clock(n_frames, columns), values, gap, 6)
    )


def export_6d(T, *, columns=("Frame", "Time"), named=True, matrix=True, **fields):
    n_frames, count = T.shape[:2]
    head = {
        "NO_OF_FRAMES": n_frames,
        "NO_OF_BODIES": count,
        "FREQUENCY": 100,
        "DATA_INCLUDED": "6D",
        "BODY_NAMES": "\t".join(BODIES[:count]),
    } | fields
    parts = ["X", "Y", "Z", "Roll", "Pitch", "Yaw", "Residual"]
    parts += [f"Rot[{i}]" for i in range(9)] if matrix else []
    names = [
        f"{body} {part}" if part == "X" else part
        for body in BODIES[:count]
        for part in parts
    ]
    titles = "\t".join([*columns, *names]) + "\t\n" if named else ""
    seen = np.isfinite(T).all(axis=(-1, -2))
    values = np.zeros((n_frames, count, len(parts)))
    values[..., :3] = np.where(seen[..., None], 1e3 * T[..., :3, 3], 0.0)
    R = np.where(seen[..., None, None], T[..., :3, :3], np.eye(3))
    angles = Rotation.from_matrix(R.reshape(-1, 3, 3)).as_euler("XYZ", degrees=True)
    values[..., 3:6] = angles.reshape(n_frames, count, 3)
    values[..., 6] = np.where(seen, 0.4, -1.0)
    if matrix:
        values[..., 7:] = R.swapaxes(-1, -2).reshape(n_frames, count, 9)
        values[~seen, 7:] = 0.0
    flat = values.reshape(n_frames, -1)
    body = rows(clock(n_frames, columns), flat, "", 9).replace("\n", "\t\n")
    return header(head) + titles + body


def saved(folder, text, name="take.tsv"):
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def codes(take):
    return [finding.code for finding in take.source.findings]


@pytest.fixture
def points(rng):
    values = rng.uniform(-1.0, 2.0, size=(5, 3, 3))
    values[2, 1] = np.nan
    return values


@pytest.fixture
def poses(rng):
    R = Rotation.random(10, random_state=rng).as_matrix().reshape(5, 2, 3, 3)
    T = marey.geometry.transform(R, rng.uniform(-1.0, 2.0, size=(5, 2, 3)))
    T[3, 0] = np.nan
    return T


@pytest.fixture
def read(tmp_path):
    def reader(text, **options):
        return marey.read(saved(tmp_path, text), **options)

    return reader


# --- markers -------------------------------------------------------------------------


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("columns", [("Frame", "Time"), ("Frame",), ("Time",), ()])
@pytest.mark.parametrize("gap", ["", "NaN", "NULL", "0.000"])
def test_every_layout_and_gap_gives_the_same_markers(named, columns, gap, points, read):
    take = read(export_3d(points, named=named, columns=columns, gap=gap))
    assert take.source.format == "qualisys"
    np.testing.assert_allclose(take.points, points, atol=1e-9)
    assert take.labels == ("hand_top", "thumb tip", "C7")
    assert take.subjects == ("", "Ann", "")
    assert take.rate == 100.0
    assert codes(take) == (["points-zero"] if gap.startswith("0") else [])


def test_the_facts_say_how_they_are_known(points, read):
    source = read(export_3d(points)).source
    assert str(source.unit) == "mm (inferred: QTM's convention)"
    assert str(source.up) == "z (inferred: QTM's convention)"
    assert str(source.rate) == "100 (stated: FREQUENCY)"
    assert source.parameters["NO_OF_CAMERAS"] == "7"


def test_events_keep_their_times(points, read):
    text = export_3d(points, events=[("Heel strike", 3, 0.02), ("broken", 3, "")])
    assert read(text).events == (marey.Event("Heel strike", "", 0.02),)


def test_a_later_file_version_and_more_header_lines_do_not_matter(points, read):
    text = "FILE_VERSION\t2.0.0\n" + export_3d(points, SOME_NEW_KEY="7", DESCRIPTION="")
    text = text.replace("TIME_STAMP", "DESCRIPTION -- \nTIME_STAMP", 1)
    assert same(read(text), read(export_3d(points)))


def test_virtual_trajectories_are_read_on_request_only(points, read):
    text = export_3d(points, TRAJECTORY_TYPES="Measured\tVirtual\tMixed")
    measured, every = read(text), read(text, computed=True)
    assert measured.labels == ("hand_top", "C7")
    assert codes(measured) == ["trajectories-filled", "computed-left-out"]
    assert every.labels == ("hand_top", "thumb tip", "C7")
    np.testing.assert_array_equal(every.points[:, [0, 2]], measured.points)


def test_an_external_clock_takes_the_rate_of_the_times(points, read):
    take = read(export_3d(points, FREQUENCY="EXT"))
    assert str(take.source.rate) == "100 (inferred: mean step of the times)"
    take = read(export_3d(points, FREQUENCY="EXT", columns=()))
    assert "rate-assumed" in codes(take)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"NO_OF_FRAMES": 90}, "frames-missing"),
        ({"NO_OF_FRAMES": 2}, "frames-extra"),
        ({"NO_OF_MARKERS": 4}, "markers-mismatch"),
        ({"MARKER_NAMES": "a\tb"}, "markers-mismatch"),
        ({"MARKER_NAMES": "a\ta\tb"}, "labels-repeated"),
        ({"MARKER_NAMES": "a\t\tb"}, "labels-missing"),
        ({"FREQUENCY": 250}, "rate-mismatch"),
    ],
)
def test_what_does_not_fit_is_a_finding(fields, code, rng, read):
    points = rng.normal(size=(60, 3, 3))
    take = read(export_3d(points, **fields))
    assert code in codes(take)
    np.testing.assert_allclose(take.points, points, atol=1e-9)
    assert len(set(take.full_labels)) == 3


def test_column_names_serve_when_the_header_has_none(points, read):
    take = read(export_3d(points, MARKER_NAMES=""))
    assert take.full_labels == LABELS


# --- bodies --------------------------------------------------------------------------


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("columns", [("Frame", "Time"), ("Time",), ()])
def test_every_layout_gives_the_same_bodies(named, columns, poses, read):
    take = read(export_6d(poses, named=named, columns=columns))
    np.testing.assert_allclose(take.T_world_sensor, poses, atol=1e-8)
    assert take.sensor_names == BODIES
    assert not codes(take)


def test_rounded_matrices_become_rotations(poses, read):
    text = export_6d(poses)
    head, lines = text.split("Rot[8]\t\n")
    rounded = [
        "\t".join(f"{float(c):.3f}" if c else "" for c in line.split("\t"))
        for line in lines.split("\n")[:-1]
    ]
    take = read(head + "Rot[8]\t\n" + "\n".join(rounded) + "\n")
    R = take.T_world_sensor[take.sensor_seen][:, :3, :3]
    eyes = np.broadcast_to(np.eye(3), R.shape)
    np.testing.assert_allclose(R @ R.swapaxes(-1, -2), eyes, atol=1e-12)
    np.testing.assert_allclose(take.T_world_sensor, poses, atol=2e-3)


def test_the_angles_serve_without_the_matrix(poses, read):
    take = read(export_6d(poses, matrix=False))
    np.testing.assert_allclose(take.T_world_sensor, poses, atol=1e-8)


def test_a_line_of_a_real_export_agrees_with_its_angles(read):
    text = (
        "NO_OF_FRAMES\t1\nNO_OF_BODIES\t1\nFREQUENCY\t100\nDATA_INCLUDED\t6D\n"
        "BODY_NAMES\tPSVH\nFrame\tTime\tPSVH X\tY\tZ\tRoll\tPitch\tYaw\tResidual\t"
        + "\t".join(f"Rot[{i}]" for i in range(9))
        + "\t\n1\t0.00000\t-194.91974\t2.24150\t0.99661\t-0.65630\t0.09391\t0.05772\t"
        "4.98536\t1.00000\t0.00099\t-0.00165\t-0.00101\t0.99993\t-0.01145\t0.00164\t"
        "0.01145\t0.99993\t\n"
    )
    T = read(text).T_world_sensor[0, 0]
    R = Rotation.from_euler("XYZ", [-0.65630, 0.09391, 0.05772], degrees=True)
    np.testing.assert_allclose(T[:3, :3], R.as_matrix(), atol=2e-5)
    np.testing.assert_allclose(T[:3, 3], [-0.19491974, 0.0022415, 0.00099661])


@pytest.mark.parametrize(
    "wrong", [lambda R: 1.1 * R, lambda R: -R, lambda R: R[:, ::-1], np.zeros_like]
)
def test_matrices_that_are_no_rotations_are_gaps(wrong, poses, read):
    lines = [line.split("\t") for line in export_6d(poses[:2]).split("\n")]
    R = np.array(lines[-2][-10:-1], float).reshape(3, 3)
    lines[-2][-10:-1] = map(repr, wrong(R).ravel().tolist())
    take = read("\n".join("\t".join(cells) for cells in lines))
    assert take.sensor_seen.tolist() == [[True, True], [True, False]]
    # Zeros are how a body that was not seen is written.
    assert codes(take) == ([] if not wrong(R).any() else ["rotations-wrong"])


def test_names_and_counts_of_bodies_may_be_left_out(poses, read):
    take = read(export_6d(poses, BODY_NAMES="", NO_OF_BODIES="", DATA_INCLUDED="6D"))
    assert take.sensor_names == BODIES
    take = read(export_6d(poses, NO_OF_BODIES="3"))
    assert codes(take) == ["bodies-mismatch"]


# --- dialects and bad input ----------------------------------------------------------


@pytest.mark.parametrize(
    "twin",
    [
        lambda t: t.replace("\n", "\r\n").encode(),
        lambda t: t.replace("\n", "\r").encode(),
        lambda t: t.encode("utf-8-sig"),
        lambda t: t.encode("utf-16"),
        lambda t: t.rstrip("\n").encode(),
        lambda t: t.replace("\n", "\t\n").encode(),
        lambda t: t.replace("MARKER_NAMES", "\nMARKER_NAMES").encode(),
    ],
    ids=["CRLF", "CR", "BOM", "UTF-16", "no newline", "trailing tabs", "blank line"],
)
def test_dialects_do_not_matter(twin, points, tmp_path):
    path = saved(tmp_path, export_3d(points))
    whole = marey.read(path)
    path.write_bytes(twin(export_3d(points)))
    assert same(marey.read(path), whole)


@pytest.mark.parametrize("name", ["take.tsv", "take.txt", "take.csv", "noname"])
def test_content_alone_tells_the_format(name, points, poses, tmp_path):
    for text in (export_3d(points), export_6d(poses)):
        assert marey.io.recognise(saved(tmp_path, text, name)).name == "qualisys"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace("DATA_INCLUDED\t3D", "DATA_INCLUDED\t2D"), "export"),
        (lambda t: t.replace("\tC7 Z", ""), "three columns per marker"),
        (lambda t: t.replace("\n3\t", "\nthree\t"), "a word in column 1"),
        (lambda t: t.replace("\n3\t", "\n0x3\t"), "a word in column 1"),
        (lambda t: t.replace("\n3\t", "\n3\t4\t5\t"), "cells, found"),
        (lambda t: t[: t.index("\n1\t") + 1], "expected frames"),
        (lambda t: t[: t.index("Frame\t")], "lines of numbers"),
    ],
)
def test_what_is_wrong_is_said(change, message, points, read):
    with pytest.raises(marey.FormatError, match=message):
        read(change(export_3d(points, gap="NaN")))


def test_a_body_that_lacks_a_column_is_refused(poses, read):
    with pytest.raises(marey.FormatError, match="for each body"):
        read(export_6d(poses, matrix=False).replace("Pitch", "Tilt"))


def test_a_huge_count_is_refused_at_once(points, read):
    text = export_3d(points, named=False, MARKER_NAMES="", NO_OF_MARKERS=10**9)
    with pytest.raises(marey.FormatError, match="lines of"):
        read(text)


def test_every_truncation_is_an_error_or_a_finding(points, poses, tmp_path):
    for text in (export_3d(points[:2, :2]), export_6d(poses[:2, :1])):
        assert_every_cut_is_noticed(saved(tmp_path, text))


def test_damaged_files_give_a_typed_error_or_a_take(points, poses, tmp_path, request):
    for text in (export_3d(points, TRAJECTORY_TYPES="Mixed"), export_6d(poses)):
        survive(marey.read, saved(tmp_path, text))
