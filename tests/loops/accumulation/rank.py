"""One of the processes of `in_two_processes`: runs a function, writes what it returns."""

import json
import os
import sys
from importlib import import_module
from pathlib import Path

import torch
import torch.distributed as dist


def main(module: str, function: str, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    facts = getattr(import_module(module), function)()
    Path(folder, f"{dist.get_rank()}.json").write_text(json.dumps(facts), encoding="utf-8")
    dist.barrier()
    os._exit(0)  # gloo's destructor may wait for threads that wait for the GIL (torch 2.13)


if __name__ == "__main__":
    main(*sys.argv[1:])
