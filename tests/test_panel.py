"""The panel of 12 takes has the figures on record: no tuned number goes unnoticed."""

import pytest

from benchmarks.tools import panel


@pytest.mark.parametrize("take", panel.read_record())
def test_the_figures_of_the_panel_are_those_on_record(take):
    solvers = dict(panel.panel())
    if take not in solvers:
        pytest.skip("no real recordings: set MAREY_DATA to their folders")
    change, figure = panel.change_of(panel.read_record()[take], solvers[take]())
    assert change < panel.NO_EFFECT, figure


@pytest.mark.parametrize(
    ("after", "change"),
    [
        ({"centre error:m": 2.0e-3, "bodies:": 15.0}, 0.0),
        ({"centre error:m": 2.1e-3, "bodies:": 15.0}, 0.05),
        ({"centre error:m": 2.0e-3, "bodies:": 12.0}, 0.2),
        ({"centre error:m": 2.0e-3}, panel.UNLIKE),
        ({"error": "DataError: no markers"}, panel.UNLIKE),
    ],
)
def test_a_change_is_the_largest_of_all_figures(after, change):
    before = {"centre error:m": 2.0e-3, "bodies:": 15.0}
    assert panel.change_of(before, after)[0] == pytest.approx(change)
