"""Processes that work on files of others, under limits of time and memory."""

from marey.workers.limits import machine_memory as machine_memory
from marey.workers.pool import Job as Job
from marey.workers.pool import Outcome as Outcome
from marey.workers.pool import WorkerPool as WorkerPool
from marey.workers.start import PIPES as PIPES
from marey.workers.start import open_channel as open_channel
from marey.workers.start import worker_command as worker_command
