import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import marey
from marey.report import (
    NAME_MARKS,
    SENTENCES,
    Finding,
    Report,
    Severity,
    Table,
    group_findings,
    mark_name,
    spell_frames,
)

severities = st.sampled_from(["info", "warning", "error"])


def finding(severity="info", message="all is well", **fields):
    return Finding("code", "read", severity, message, **fields)


@given(st.lists(severities))
def test_worst_is_the_gravest_of_the_findings(found):
    report = Report(findings=tuple(finding(severity) for severity in found))
    rank = ["info", "warning", "error"].index
    assert rank(report.worst) == max(map(rank, found), default=0)


def test_a_report_reads_like_a_page():
    report = Report(
        findings=(
            finding(),
            Finding("gaps", "read", "warning", "3 gaps", subject="RTHI"),
        ),
        tables={
            "bones": Table(
                ("bone", "length, m"), (("thigh", 0.41237), ("shin", 12345.0))
            )
        },
        seconds={"read": 0.25, "solve": 12.0},
    )
    assert str(report) == (
        "warning: [read] RTHI: 3 gaps\n"
        "info: [read] all is well\n"
        "\n"
        "bones\n"
        " bone  length, m\n"
        "thigh     0.4124\n"
        " shin      12345\n"
        "\n"
        "        read    0.250 s\n"
        "       solve   12.000 s"
    )


def test_an_empty_report_says_so():
    assert str(Report()) == "no findings"
    assert Report().worst == "info"


def test_cells_keep_counts_whole_and_show_the_unknown():
    table = Table(("what", "n"), (("a", 1234567.0), ("b", float("nan")), ("c", 1e-7)))
    assert [line.split()[1] for line in str(table).splitlines()[1:]] == [
        "1234567",
        "nan",
        "1e-07",
    ]


@pytest.mark.parametrize("row", [(), ("a",), ("a", 1.0, 2.0)])
def test_a_row_of_another_length_is_refused(row):
    with pytest.raises(marey.DataError, match=r"table row: found .* need 2 cells"):
        Table(("a", "b"), (row,))


def test_names_from_files_stay_data_when_printed():
    nasty = "\x1b[2J\n<b>"
    shown = str(
        Report(
            findings=(finding(message=nasty, subject=nasty),),
            tables={"t": Table((nasty,), ((nasty,),))},
        )
    )
    assert all(line.isprintable() for line in shown.splitlines())
    assert shown.count(r"\x1b[2J\n<b>") == 4


def test_a_finding_knows_the_names_in_it_from_the_words_around():
    """Numbers, and words that are names elsewhere, stay what they are."""
    one, of = mark_name("1"), mark_name("of")
    message = f"1 of 12 mm from {one} at (1, 2), and of {of}: look at 1"
    one = finding(message=message)
    assert one.message == "1 of 12 mm from 1 at (1, 2), and of of: look at 1"
    assert [one.message[a:b] for a, b in one.names] == ["1", "of"]
    other = one.rename({"1": "Pelvis", "of": "", "12": "X", "look": "Y"})
    assert other.message == "1 of 12 mm from Pelvis at (1, 2), and of : look at 1"
    assert [other.message[a:b] for a, b in other.names] == ["Pelvis", ""]


texts = st.text(st.characters(exclude_characters="".join(NAME_MARKS)))


@given(st.lists(st.tuples(texts, texts), max_size=5), texts)
def test_names_there_and_back_are_where_they_were(parts, end):
    """Whatever stands around them."""
    one = finding(message="".join(text + mark_name(name) for text, name in parts) + end)
    there = {name: f"{i} and {name}" for i, (_, name) in enumerate(parts)}
    back = {new: old for old, new in there.items()}
    assert one.message == "".join(text + name for text, name in parts) + end
    other = one.rename(there)
    told = "".join(text + there[name] for text, name in parts) + end
    assert other.message == told
    assert other.rename(back) == one
    assert one.rename({}) == one


def test_a_message_without_names_is_told_as_it_is():
    one = finding(message="z = -1 mm")
    assert one.names == ()
    assert one.rename({"1": "Pelvis", "mm": "X"}) == one


# --- causes ---------------------------------------------------------------------------

codes = st.sampled_from(["joint-unseen", "pose-lost", "tree-unsure", "anything"])
stages = st.sampled_from(["clean", "pose"])
frames = st.tuples(st.integers(-1, 9), st.integers(10, 20))
fields = st.tuples(codes, stages, severities, st.just("m"), texts, frames, st.floats())


@given(st.lists(fields, max_size=20))
def test_every_finding_is_in_one_cause_and_the_gravest_come_first(rows):
    found = [Finding(*row) for row in rows]
    causes = group_findings(found)
    assert sorted(map(repr, found)) == sorted(
        repr(f) for cause in causes for f in cause.findings
    )
    assert len({(cause.stage, cause.code) for cause in causes}) == len(causes)
    ranks = [["error", "warning", "info"].index(cause.severity) for cause in causes]
    assert ranks == sorted(ranks)
    assert all(str(cause) for cause in causes)


def test_many_gaps_are_one_sentence_with_the_worst_examples():
    severities: tuple[Severity, ...] = ("info", "warning", "info", "info", "info")
    gaps = [
        Finding("joint-unseen", "pose", severity, "gap", f"joint{i}", (i, i), float(i))
        for i, severity in enumerate(severities)
    ]
    (cause,) = group_findings(gaps)
    assert str(cause) == (
        "warning: [pose] too few markers or sensors show joint4, joint3, joint2 and 2 "
        "more in 5 spans of time, 10 s in all: rotations there are guesses; fill or "
        "cut these frames"
    )


def test_runs_of_frames_are_counted_and_named():
    runs = [(0, 4), (9, 9), (12, 13), (20, 29)]
    lost = [Finding("pose-lost", "pose", "warning", "m", frames=run) for run in runs]
    (cause,) = group_findings(lost)
    assert "in 18 frames (0 to 4, 9, 12 to 13 and 1 more)" in cause.message


def test_a_single_finding_speaks_for_itself():
    one = finding(message="3 gaps", subject="RTHI")
    (cause,) = group_findings([one])
    assert cause.message == "RTHI: 3 gaps"
    assert str(cause) == str(one)


def test_findings_without_a_common_sentence_are_counted():
    (cause,) = group_findings([finding(subject=name) for name in ("A", "B", "A")])
    assert cause.message == "all is well (3 such: A, B)"


@pytest.mark.parametrize("code", SENTENCES)
def test_sentences_are_short(code):
    several = [Finding(code, "pose", "info", "m", k, frames=(1, 1)) for k in "AB"]
    (cause,) = group_findings(several)
    assert 1 < len(cause.message.replace("A, B", "A").split()) <= 25


def test_a_marker_that_is_bad_in_two_takes_is_one_marker():
    found = [
        Finding(
            "marker-far", "pose", "warning", f"off in take {k}", label, value=float(k)
        )
        for k, label in enumerate(("RFHD", "STRN", "RFHD"))
    ]
    (cause,) = group_findings(found)
    assert cause.message.startswith("2 markers are up to 2000 mm off")
    (alone,) = group_findings([found[0], found[2]])
    assert alone.message == "RFHD: off in take 2 (2 such)"


def test_frames_in_which_several_subjects_are_unseen_count_once():
    runs = [(0, 4), (3, 9), (0, 9), (20, 20)]
    found = [
        Finding("pose-unseen", "pose", "warning", "nothing is seen", "", frames)
        for frames in runs
    ]
    (cause,) = group_findings(found)
    assert cause.message.startswith("nothing is seen in 11 frames")


def test_a_sentence_about_items_is_not_said_of_whole_files():
    """The same code may be of a marker, or of all positions of a file."""
    message = "7 positions are exactly zero: taken as not seen"
    files = [Finding("points-zero", "read", "info", message)] * 2
    (cause,) = group_findings(files)
    assert cause.message == f"{message} (2 such)"


def spelled(node):
    """A text of the sources with each value in it as one word; None for others."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(spelled(value) or "X" for value in node.values)
    return None


def test_messages_are_short():
    """At most 25 words; that holds for findings that are made where they stand."""
    makers = {"Finding", "_finding", "note", "note_count", "warn_of_runs"}
    sources, long = Path(marey.__file__).parent, []
    for path in sorted(sources.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            texts = []
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func).split(".")[-1] in makers
            ):
                texts = [*node.args, *(keyword.value for keyword in node.keywords)]
            elif (
                isinstance(node, ast.Assign)
                and ast.unparse(node.targets[0]) == "message"
            ):
                texts = [node.value]
            words = [(spelled(text) or "").split() for text in texts]
            long += [" ".join(one) for one in words if len(one) > 25]
    assert long == []


def test_a_span_of_one_frame_is_a_frame():
    assert spell_frames(6, 6) == "frame 6"
    assert spell_frames(6, 9) == "frames 6 to 9"
