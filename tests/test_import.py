"""`import gradwright` loads torch and nothing heavier, and changes nothing.

Cheapness is tested by what is loaded; benchmarks/import_time.py prints the milliseconds. The star
imports are for the public names, which gradwright loads at first use.
"""

import json
import subprocess
import sys

# What gradwright may load beyond `import torch`, the standard library and its own modules.
EXTRA = {
    "torch.utils._device",  # the mode behind `with torch.device(...)`: a small file
}

LOADED = """
import json, sys
import torch
before = set(sys.modules)
from gradwright import *
print(json.dumps(sorted(set(sys.modules) - before)))
"""

# Everything that a careless import has been seen to change, as text that can be compared.
CHANGED = """
import json, logging, os, random, signal, sys, threading, warnings
import numpy
import torch
from torch.nn.modules import module as hooks
from torch.optim import optimizer

def identities(owner):
    return {name: id(value) for name, value in vars(owner).items()}

def state():
    monitoring = getattr(sys, "monitoring", None)
    return {
        "trace": repr((sys.gettrace(), sys.getprofile(), threading.gettrace())),
        "monitoring": [monitoring.get_tool(tool) for tool in range(6)] if monitoring else [],
        "interpreter": repr((sys.excepthook, sys.displayhook, sys.unraisablehook,
                             sys.stdout, sys.stderr, sys.meta_path, sys.path_hooks, sys.path)),
        "signals": repr([signal.getsignal(number) for number in signal.valid_signals()]),
        "warnings": repr(warnings.filters),
        "logging": repr((logging.root.handlers, logging.root.level)),
        "environment": dict(os.environ),
        "random": repr((random.getstate(), numpy.random.get_state())),
        "torch random": torch.get_rng_state().tolist(),
        "torch settings": repr((torch.is_grad_enabled(), torch.is_anomaly_enabled(),
                                torch.get_default_dtype(), torch.get_default_device(),
                                torch.get_num_threads(),
                                torch.are_deterministic_algorithms_enabled())),
        "torch hooks": [len(value) for owner in (hooks, optimizer)
                        for name, value in vars(owner).items()
                        if name.startswith("_global_") and hasattr(value, "__len__")],
        **{repr(owner): identities(owner) for owner in (
            torch, torch._C, torch.Tensor, torch.autograd, torch.autograd.Function,
            torch.autograd.graph, torch.nn.Module, torch.nn.functional, torch.nn.utils,
            torch.optim.Optimizer, torch.optim.SGD, torch.optim.lr_scheduler,
            torch.amp.GradScaler, torch.utils.checkpoint)},
    }

import torch.utils.checkpoint
before = state()
{statement}
after = state()
print(json.dumps([key for key in before if before[key] != after[key]]))
"""


def test_nothing_heavier_than_torch_is_loaded() -> None:
    light = {"gradwright"} | sys.stdlib_module_names

    loaded = set(_run(LOADED)) - EXTRA
    heavy = [name for name in sorted(loaded) if name.partition(".")[0] not in light]

    assert heavy == []


def test_importing_changes_nothing() -> None:
    assert _run(CHANGED.replace("{statement}", "from gradwright import *")) == []


def test_changes_would_be_seen() -> None:
    careless = {
        "trace": "sys.settrace(lambda *_: None)",
        "warnings": "warnings.simplefilter('ignore')",
        "logging": "logging.basicConfig()",
        "environment": "os.environ['NEW'] = '1'",
        "random": "random.seed(0)",
        "torch random": "torch.rand(1)",
        "torch settings": "torch.set_grad_enabled(False)",
        "torch hooks": "hooks.register_module_forward_hook(print)",
        "<class 'torch.Tensor'>": "torch.Tensor.backward = print",
    }

    seen = _run(CHANGED.replace("{statement}", "\n".join(careless.values())))

    assert sorted(seen) == sorted(careless)


def test_packages_are_found_by_their_names() -> None:
    names = "gw.loops.measure_lengths, gw.weighting.PCGrad, gw.architecture.MMoE, gw.engine.Sketch"
    shown = f"print(json.dumps([found.__name__ for found in ({names})]))"

    assert _run(f"import json, gradwright as gw; {shown}") == [
        "measure_lengths",
        "PCGrad",
        "MMoE",
        "Sketch",
    ]


def _run(program: str) -> list[str]:
    """What `program` prints as JSON, in a fresh interpreter."""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    names: list[str] = json.loads(result.stdout)
    return names
