"""A whole library of recordings in one call: grouped, solved, recorded and indexed."""

from marey.library.options import BatchOptions as BatchOptions
from marey.library.recordings import LibraryTake as LibraryTake
from marey.library.run import BatchProgress as BatchProgress
from marey.library.run import BatchSummary as BatchSummary
from marey.library.run import batch as batch
from marey.library.run import plan_batch as plan_batch
from marey.library.verify import Verification as Verification
from marey.library.verify import verify_batch as verify_batch
