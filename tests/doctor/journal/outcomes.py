"""Runs programs, watched or not, and writes down all that watching must not change.

python outcomes.py plain|watched OUT.json PROGRAM.py …
"""

# mypy: ignore-errors

import contextlib
import hashlib
import io
import json
import random
import runpy
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch._C import _len_torch_function_stack
from torch.optim.optimizer import (
    _global_optimizer_post_hooks,
    _global_optimizer_pre_hooks,
    register_optimizer_step_post_hook,
)

STEPS = 20


def outcome(program: str, watched: bool) -> dict[str, object]:
    """What `program` prints, learns and leaves behind."""
    _seed()
    printed, learned = io.StringIO(), _Learned()
    before = _settings()
    handle = register_optimizer_step_post_hook(learned.after_step)
    operations, raised = _none, ""
    try:
        with contextlib.redirect_stdout(printed), _watching(watched) as operations:
            runpy.run_path(program, run_name="__main__")
    except Exception as error:
        raised = f"{type(error).__name__}: {error}"
        traceback.print_exc()
    finally:
        handle.remove()
    after = _settings()
    changed = {name: repr(after[name]) for name in after if after[name] != before[name]}
    _restore()
    return {
        "printed": printed.getvalue(),
        "raised": raised,
        "learned": learned.digests,
        "random": _random_states(),
        "changed": changed,
        "operations": operations(),
    }


def _none() -> int:
    return 0


class _Learned:
    """Digests of all parameters after the first steps."""

    def __init__(self) -> None:
        self.digests: list[str] = []

    def after_step(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        if len(self.digests) >= STEPS:
            return
        digest = hashlib.sha256()
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                digest.update(parameter.detach().numpy().tobytes())
        self.digests.append(digest.hexdigest())


@contextlib.contextmanager
def _watching(watched: bool) -> Iterator[Callable[[], int]]:
    if not watched:
        yield lambda: 0
        return
    from gradwright.doctor.watch import Watch

    with Watch(show=False) as seen:
        journal = seen._journal
        assert journal is not None
        yield lambda: journal.operations.count
    assert seen.report is not None, "the doctor stepped aside"


def _settings() -> dict[str, object]:
    """The state of torch and Python that a watch must leave as the program left it."""
    return {
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "modes": _len_torch_function_stack(),
        "engine": torch.autograd._engine_run_backward,
        "compile": torch.compile,
        "override": torch.overrides.has_torch_function,
        "trace": sys.gettrace(),
        "thread trace": threading.gettrace(),
        "profile": sys.getprofile(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "threads": torch.get_num_threads(),
        "stdout hook": sys.displayhook,
        "excepthook": sys.excepthook,
        "step hooks": len(_global_optimizer_post_hooks),
        "step pre-hooks": len(_global_optimizer_pre_hooks),
    }


def _random_states() -> list[str]:
    states = (
        torch.get_rng_state().numpy().tobytes(),
        np.random.get_state()[1].tobytes(),
        repr(random.getstate()).encode(),
    )
    return [hashlib.sha256(state).hexdigest() for state in states]


def _seed() -> None:
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


def _restore() -> None:
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)


if __name__ == "__main__":
    mode, out, *programs = sys.argv[1:]
    results = {name: outcome(name, mode == "watched") for name in programs}
    Path(out).write_text(json.dumps(results), encoding="utf-8")
