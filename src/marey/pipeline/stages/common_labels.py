"""Labels that mean one marker in all takes: prefixes and spellings may differ."""

from collections import Counter
from dataclasses import replace

from marey.report import Finding, Severity, count_noun
from marey.segmentation.labels.spelling import is_name, label_readings, normalise_label
from marey.take import Take

Key = tuple[str, str]
"""Subject and normalised label of a marker."""


def unite_labels(takes: tuple[Take, ...], subject: str) -> tuple[Take, ...]:
    """Return the takes with one name for each marker that several of them have.

    Args:
        takes: The takes.
        subject: Name of the subject who is solved, or a label of the result.
    """
    return _unite_spellings(_unite_subjects(takes, subject))


def _unite_subjects(takes: tuple[Take, ...], subject: str) -> tuple[Take, ...]:
    """Return takes of one subject each with the name that the first of them gives it.

    Labels whose prefixes differ between takes ("Joe:LASI", "Joe2:LASI", "LASI") are of
    one marker. If `subject` is the name in some takes, only takes without any name get
    it.

    Args:
        takes: The takes.
        subject: Name of the subject who is solved, or a label of the result.
    """
    named = [sorted({name for name in take.subjects if name}) for take in takes]
    names = [name for some in named for name in some]
    is_named = subject in names
    if not names or (any(len(some) > 1 for some in named) and not is_named):
        return takes
    name = subject if is_named else names[0]
    labels = {
        label
        for take in takes
        for label, owner in zip(take.labels, take.subjects, strict=True)
        if owner == name
    }
    united = []
    for take, some in zip(takes, named, strict=True):
        if not some:
            owners = tuple(name if label in labels else "" for label in take.labels)
            take = _with_subjects(take, owners, f"no subject, those of another {name}")
        elif not is_named and some[0] != name:
            owners = tuple(owner and name for owner in take.subjects)
            others = f"{some[0]}, those of another take {name}"
            take = _with_subjects(take, owners, others, some[0])
        united.append(take)
    return tuple(united)


def _with_subjects(
    take: Take, subjects: tuple[str, ...], named: str, before: str = ""
) -> Take:
    """Return the take with other subjects of its markers, and a finding about it."""
    if subjects == take.subjects:
        return take
    name = next(filter(None, subjects))
    message = f"labels name {named}: taken for one subject, {name}; solve two people "
    severity: Severity = "warning" if before else "info"
    finding = Finding("subject-renamed", "read", severity, f"{message}apart", before)
    return replace(take, subjects=subjects).with_findings(finding)


def _unite_spellings(takes: tuple[Take, ...]) -> tuple[Take, ...]:
    """Return takes whose markers are called as in the first take that has them.

    "LKNE", "l_kne" and "Bob_LKNE" are one marker, if a take has only one such. Numbers
    are no names.
    """
    if len(takes) < 2:
        return takes
    known: dict[Key, tuple[str, str]] = {}
    united = []
    for take in takes:
        keys = _keys(take)
        names = list(zip(take.labels, take.subjects, strict=True))
        own, count, renamed = set(names), Counter(keys), {}
        for name, key in zip(names, keys, strict=True):
            other = known.get(key, name)
            if is_name(name[0]) and count[key] == 1 and other not in own:
                renamed[name] = other
        united.append(_with_names(take, renamed))
        for name, key in zip(names, keys, strict=True):
            known.setdefault(key, name)
    return tuple(united)


def _keys(take: Take) -> list[Key]:
    """Return what identifies each marker in any take.

    The subject is left out if all markers that have one have the same.
    """
    reading = label_readings(take)[-1]
    several = len(Counter(subject for subject, _ in reading if subject)) > 1
    return [
        (subject if several else "", normalise_label(label) or label)
        for subject, label in reading
    ]


def _with_names(take: Take, renamed: dict[Key, Key]) -> Take:
    """Return the take with other names of markers, and a finding about them.

    Args:
        take: The recording.
        renamed: Label and subject of each renamed marker, by those that it has.
    """
    if not renamed:
        return take
    count = float(len(renamed))
    (old, _), (new, _) = next(iter(renamed.items()))
    message = (
        f"{count_noun(len(renamed), 'label')} spelled otherwise than in another take, "
        f"such as {old} for {new}: taken for the same markers"
    )
    finding = Finding("labels-respelled", "read", "info", message, value=count)
    names = [
        renamed.get(name, name) for name in zip(take.labels, take.subjects, strict=True)
    ]
    labels, subjects = zip(*names, strict=True)
    return replace(take, labels=labels, subjects=subjects).with_findings(finding)
