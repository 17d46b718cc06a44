"""Processes that work on files of others, under limits of time and memory."""

from marey.workers.limits import limit_memory as limit_memory
from marey.workers.limits import machine_memory as machine_memory
from marey.workers.pool import Job as Job
from marey.workers.pool import Outcome as Outcome
from marey.workers.pool import WorkerPool as WorkerPool
