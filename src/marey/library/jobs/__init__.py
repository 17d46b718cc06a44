"""What workers do: describe a take, fit the skeletons of a subject, solve a take.

Each function writes its own outputs and returns its record, so it can run anywhere that
sees the same folders.
"""

from marey.library.jobs.describe import describe_take as describe_take
from marey.library.jobs.fit import fit_subject as fit_subject
from marey.library.jobs.take import solve_take as solve_take
