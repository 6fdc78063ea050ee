"""Peak memory of a loop: `python -m benchmarks._accumulation_peak GPT-2 gradwright` prints MB.

A process of its own for each figure, as in `_peak`: what the process holds at most during an epoch
over what it held before it, saved tensors, gradients and scratch alike.
"""

import gc
import os
import subprocess
import sys
from pathlib import Path

import torch

from benchmarks._accumulation_loops import LOOPS, WORKS
from benchmarks._peak import MALLOC, kilobytes


def peak(work: str, loop: str) -> float:
    """Megabytes at the peak of an epoch, measured in a fresh process.

    Raises:
        RuntimeError: the process failed; with the last line that it wrote.
    """
    command = [sys.executable, "-m", "benchmarks._accumulation_peak", work, loop]
    result = subprocess.run(command, capture_output=True, text=True, env=os.environ | MALLOC)
    if result.returncode:
        raise RuntimeError(result.stderr.strip().rpartition("\n")[2])
    return float(result.stdout)


def main() -> None:
    """Prints the megabytes of the second epoch; the first one fills caches."""
    work, loop = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    epoch = LOOPS[loop](WORKS[work]())
    epoch()
    gc.collect()
    before = kilobytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
    epoch()
    print((kilobytes("VmHWM") - before) * 1024 / 1e6)


if __name__ == "__main__":
    main()
