"""The pipeline from recordings to skeletons and their motion.

`run.py` shows its ten stages in ten lines; each stage is one function of the modules
`stages_takes`, `stages_bodies` and `stages_subjects`.
"""

from marey.pipeline.options import SolveOptions as SolveOptions
from marey.pipeline.run import solve_takes as solve_takes
