"""The library of CMU: whose each recording is, by name, by pattern and by table."""

import shutil

import marey

SUBJECTS = ("01", "02", "07", "16", "35")


def test_the_subjects_of_cmu_are_found_by_name_by_pattern_and_by_table(
    recordings, tmp_path
):
    """Recordings of C3D, and one that has only the motion of another program."""
    root = tmp_path / "cmu"
    root.mkdir()
    for path in (recordings / "cmu").iterdir():
        if path.suffix in (".c3d", ".amc", ".asf"):
            shutil.copyfile(path, root / path.name)
    by_name = marey.plan_batch(root)
    assert len(by_name) == 7
    assert {take.name[:2] for take in by_name} == set(SUBJECTS)
    assert all(take.subject == take.name[:2] for take in by_name)
    assert marey.plan_batch(root, subject_from=r"^([0-9]+)_[0-9]+\.") == by_name
    rows = "".join(f"{number}_*;{number}\r\n" for number in SUBJECTS)
    (tmp_path / "who.csv").write_text(f"Take;Subject\r\n{rows}")
    assert marey.plan_batch(root, subjects=tmp_path / "who.csv") == by_name
