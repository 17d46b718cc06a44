"""Numbers changed in a running process are changed everywhere; answers are kept."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.tools import stage_memo

ROOT = Path(__file__).parents[1]

PATCHED = """
import inspect, sys
sys.path.insert(0, {root!r})
import marey.cleaning, marey.pose, marey.rig.ground, marey.rig.lengths
from benchmarks.tools.live_patch import patch_module
from pathlib import Path

module = sys.modules[{module!r}]
path = Path(module.__file__)
patch_module(path, path.read_text(encoding="utf-8").replace({old!r}, {new!r}))
print({shown})
"""


@pytest.mark.parametrize(
    ("module", "old", "new", "shown", "expected"),
    [
        pytest.param(
            "marey.numerics.thresholds",
            "FEW, MOST = 0.1,",
            "FEW, MOST = 0.2,",
            "sys.modules['marey.rig.ground'].MAX_HEIGHT_ERROR",
            "0.2",
            id="derived in another module",
        ),
        pytest.param(
            "marey.numerics.robust",
            "OUTLIER_SCALES = 3.5",
            "OUTLIER_SCALES = 7.0",
            "inspect.signature(marey.rig.lengths.find_outlier_joints)"
            ".parameters['outlier_scales'].default",
            "7.0",
            id="default of a function",
        ),
        pytest.param(
            "marey.pose.options",
            "marker_sd: float = number(2e-3",
            "marker_sd: float = number(4e-3",
            "marey.pose.options.PhysicsOptions().marker_sd",
            "0.004",
            id="field of options",
        ),
        pytest.param(
            "marey.rig.ground",
            "len(points) < 3",
            "len(points) < 6",
            "6 in marey.rig.ground.estimate_ground.__code__.co_consts",
            "True",
            id="number in a line",
        ),
    ],
)
def test_a_change_reaches_all_that_depends_on_it(module, old, new, shown, expected):
    source = PATCHED.format(
        root=str(ROOT), module=module, old=old, new=new, shown=shown
    )
    run = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == expected


def test_equal_arguments_have_one_fingerprint():
    assert stage_memo.digest_of((1.0, [2.0])) == stage_memo.digest_of((1.0, [2.0]))
    assert stage_memo.digest_of((1.0,)) != stage_memo.digest_of((1.0 + 1e-15,))


def test_what_cannot_be_compared_has_no_fingerprint():
    number = 1.0
    assert stage_memo.digest_of(lambda: number) is None
    assert stage_memo.digest_of(number for number in ()) is None
