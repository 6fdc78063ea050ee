"""Peak memory of one step: `python -m benchmarks._peak W1 8 ours-lean MGDA` prints megabytes.

A process of its own for each figure. Counted is what the process holds at most during a step over
what it held before it, with no `.grad` then: saved tensors, gradients and scratch alike. malloc is
told to take and give back larger pieces at once, so resident is what is alive.
"""

import gc
import os
import subprocess
import sys
from pathlib import Path

import torch

from benchmarks._contenders import plain, step_of
from benchmarks._workloads import WORKLOADS, Workload

MALLOC = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}


def peak(workload: str, n_tasks: int, name: str, method: str) -> float:
    """Megabytes at the peak of a step, measured in a fresh process; name "plain" for the sum.

    Raises:
        RuntimeError: the process failed; with the last line that it wrote.
    """
    command = [sys.executable, "-m", "benchmarks._peak", workload, str(n_tasks), name, method]
    result = subprocess.run(command, capture_output=True, text=True, env=os.environ | MALLOC)
    if result.returncode:
        raise RuntimeError(result.stderr.strip().rpartition("\n")[2])
    return float(result.stdout)


def clear(work: Workload) -> None:
    """No parameter has a gradient."""
    for parameter in work.parameters():
        parameter.grad = None


def main() -> None:
    """Prints the megabytes of the second step; the first one fills caches."""
    workload, n_tasks, name, method = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    work = WORKLOADS[workload](int(n_tasks))
    step = plain(work, method) if name == "plain" else step_of(name, work, method)
    step()
    clear(work)
    gc.collect()
    before = kilobytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
    step()
    print((kilobytes("VmHWM") - before) * 1024 / 1e6)


def kilobytes(field: str) -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith(field))
    return int(line.split()[1])


if __name__ == "__main__":
    main()
