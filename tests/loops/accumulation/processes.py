"""Runs a function in two processes that torch.distributed joins."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 120


def in_two_processes(function: Callable[[], object], folder: Path) -> list[dict[str, Any]]:
    """What the function returned on each rank."""
    port = _free_port()
    processes = [_start(function, rank, folder, port) for rank in range(2)]
    try:
        said = [process.communicate(timeout=SECONDS)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    for rank, process in enumerate(processes):
        assert process.returncode == 0, f"rank {rank} of {function.__name__}:\n{said[rank]}"
    return [json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]


def _start(
    function: Callable[[], object], rank: int, folder: Path, port: int
) -> subprocess.Popen[str]:
    place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    master = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    what = ["tests.loops.accumulation.rank", function.__module__, function.__name__, str(folder)]
    return subprocess.Popen(
        [sys.executable, "-m", *what],
        cwd=ROOT,
        env=os.environ
        | place
        | master
        | {"ACCELERATE_USE_CPU": "true", "TORCHELASTIC_RUN_ID": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
    return port
