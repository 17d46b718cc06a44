"""One task in a process of its own: rows go out as they come, one line of JSON each.

    python -m benchmarks.harness.child NAME QUICK ONLY

What libraries print goes to the other stream, so that rows stay readable. The last line
has the processor time and the peak memory of the whole process.
"""

import json
import os
import sys
import time

from benchmarks.harness.limits import exit_when_asked
from benchmarks.harness.task import Setting, find_tasks
from benchmarks.harness.timing import peak_mib


def main() -> None:
    """Measure one task."""
    exit_when_asked()
    name, quick, only = sys.argv[1:]
    rows = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    began = time.perf_counter()
    for row in find_tasks()[name].load()(Setting(quick == "quick", only)):
        print(json.dumps(row.to_json()), file=rows, flush=True)
    whole = {
        "cpu_s": round(time.process_time(), 1),
        "wall_s": round(time.perf_counter() - began, 1),
        "peak_mib": round(peak_mib()),
    }
    print(json.dumps(whole), file=rows, flush=True)


if __name__ == "__main__":
    main()
