"""The pipeline from recordings to skeletons and their motion.

`run.py` shows its stages, one per line; each is one function of a module in `stages`.
"""

from marey.pipeline.options import SolveOptions as SolveOptions
from marey.pipeline.run import solve_takes as solve_takes
