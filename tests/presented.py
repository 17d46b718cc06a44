"""What every rebuilt experiment owes its reader."""

import io

import pytest

from marey import papers


def check(paper, name, effort):
    """Return one experiment: it has tables and a note, and its figures can be drawn."""
    ((_, found),) = papers.run(paper, effort, only=(name,))
    assert found.tables
    assert found.note
    for draw in found.figures.values():
        figure = pytest.importorskip("matplotlib.figure").Figure(layout="constrained")
        draw(figure)
        figure.savefig(io.BytesIO(), format="png")
        assert figure.get_suptitle()
        assert all(axes.get_xlabel() for axes in figure.axes)
    return found
