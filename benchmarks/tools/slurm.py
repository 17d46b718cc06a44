"""A batch on a real SLURM of one node, which this script sets up and ends.

    apt-get install slurm-wlm munge        # Debian; as root
    python -m benchmarks.tools.slurm [--takes 24] [--people 3] [--workers 2]

All files of the cluster are in one scratch folder. The outputs are compared, byte by
byte, with those of a run without SLURM; with `--kill`, one job is cancelled on the way.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.tools.library import batch_command, content, make_library

CONFIG = """
ClusterName=marey
SlurmctldHost={host}
SlurmctldPort={port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket
CryptoType=crypto/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def slurm(root: Path) -> Iterator[dict[str, str]]:
    """Yield the environment in which `sbatch` reaches a cluster of this machine."""
    for name in ("state", "spool"):
        (root / name).mkdir()
    (root / "munge.key").write_bytes(os.urandom(128))
    (root / "munge.key").chmod(0o600)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    config = CONFIG.format(
        root=root,
        host=socket.gethostname(),
        port=free_port(),
        node_port=free_port(),
        cpus=os.cpu_count(),
        memory=int(0.9 * memory),
    )
    (root / "slurm.conf").write_text(config)
    environment = os.environ | {"SLURM_CONF": str(root / "slurm.conf")}
    files = {"key-file": "munge.key", "socket": "munge.socket", "seed-file": "seed"}
    files |= {"log-file": "munge.log", "pid-file": "munge.pid"}
    munge = [f"--{option}={root / name}" for option, name in files.items()]
    daemons = [
        subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        for command in (
            ["munged", "--foreground", "--force", *munge],
            ["slurmctld", "-D", "-c"],
            ["slurmd", "-D"],
        )
    ]
    try:
        wait_for_node(environment)
        yield environment
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait(timeout=60.0)


def wait_for_node(environment: dict[str, str]) -> None:
    for _ in range(60):
        shown = subprocess.run(
            ["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True, text=True
        )
        if "idle" in shown.stdout:
            return
        time.sleep(1.0)
    raise RuntimeError("the node of SLURM does not come up")


def cancel_one_job(environment: dict[str, str]) -> None:
    """Cancel the first job that runs, after it has worked for a while."""
    for _ in range(300):
        shown = subprocess.run(
            ["squeue", "-h", "-t", "R", "-o", "%i"],
            env=environment,
            capture_output=True,
            text=True,
        )
        if shown.stdout.split():
            time.sleep(15.0)
            job = shown.stdout.split()[0]
            subprocess.run(["scancel", job], env=environment, check=False)
            print(f"cancelled job {job}", flush=True)
            return
        time.sleep(1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--takes", type=int, default=24)
    parser.add_argument("--people", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kill", action="store_true")
    given = parser.parse_args()
    root = Path(tempfile.mkdtemp())
    root.chmod(0o755)  # Every user reaches the socket of munge.
    library = make_library(root / "library", given.takes, given.people)
    workers = ["--workers", str(given.workers), "--memory", "4000"]
    began = time.monotonic()
    subprocess.run(batch_command(library, root / "plain", *workers), check=True)
    print(f"without SLURM: {given.takes / (time.monotonic() - began):.2f} takes/s")
    (root / "cluster").mkdir()
    with slurm(root / "cluster") as environment:
        if given.kill:
            threading.Thread(target=cancel_one_job, args=(environment,)).start()
        began = time.monotonic()
        sbatch = ["--slurm", "--sbatch=--partition=all --time=1:00:00"]
        command = batch_command(library, root / "slurm", *workers, *sbatch)
        code = subprocess.run(command, env=environment, cwd=root).returncode
    print(f"with SLURM: {given.takes / (time.monotonic() - began):.2f} takes/s")
    same = content(root / "plain") == content(root / "slurm")
    print(f"exit code {code}, same bytes: {same}")
    sys.exit(not same)


if __name__ == "__main__":
    main()
