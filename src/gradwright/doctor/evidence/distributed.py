"""A DistributedDataParallel module in trouble: which parameters, where it was made."""

import ast
import re
from dataclasses import dataclass

import torch
from torch.nn.parallel import DistributedDataParallel

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.checkpointed import calls_checkpoint
from gradwright.doctor.evidence.lines import Line
from gradwright.doctor.evidence.sources import source_files
from gradwright.doctor.evidence.trained import modules_in_sight
from gradwright.doctor.kinds import is_a
from gradwright.doctor.syntax import SourceTree, is_named
from gradwright.graph import reachable

_NAMES = {
    "DistributedDataParallel",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
}
_WITHOUT_GRADIENT = re.compile(r"did not receive grad for rank \d+\s*: ([\d ,]+)")
_TWICE = re.compile(r"[Pp]arameter at index (\d+)")


@dataclass(frozen=True, slots=True)
class Reducer:
    """The module whose reducer raised."""

    module: DistributedDataParallel | None
    made: tuple[SourceTree, ast.Call] | None  # the call that wrapped the model
    names: tuple[str, ...]  # parameters that the exception is about


def find_reducer(crash: Crash) -> Reducer:
    """The wrapped module from the frames or the user's variables."""
    module = _module(crash)
    return Reducer(module, _made(crash), _names(crash, module))


def _module(crash: Crash) -> DistributedDataParallel | None:
    for frame in reversed(crash.frames):
        value = frame.frame.f_locals.get("self")
        if is_a(value, DistributedDataParallel):
            return value
    for _, module in modules_in_sight(crash):
        for one in module.modules():
            if is_a(one, DistributedDataParallel):
                return one
    return None


def _made(crash: Crash) -> tuple[SourceTree, ast.Call] | None:
    for tree in source_files(crash):
        for one in ast.walk(tree.root):
            if isinstance(one, ast.Call) and is_named(tree, one.func, _NAMES):
                return tree, one
    return None


def _names(crash: Crash, module: DistributedDataParallel | None) -> tuple[str, ...]:
    match = _WITHOUT_GRADIENT.search(crash.message) or _TWICE.search(crash.message)
    if module is None or match is None:
        return ()
    inner: torch.nn.Module = module.module
    names = [name for name, one in inner.named_parameters() if one.requires_grad]
    indices = [int(text) for text in re.findall(r"\d+", match[1])]
    return tuple(names[index] for index in indices if index < len(names))


def reentrant_calls(crash: Crash) -> list[Line]:
    """The lines of reentrant checkpoints below the loss, each once."""
    found: dict[tuple[str, int], Line] = {}
    for node in reachable(crash.root_nodes()):
        if node.name() != "CheckpointFunctionBackward":
            continue
        for site in crash.journal.stack_of_node(node._sequence_nr()):
            if calls_checkpoint(site) is not None:
                found.setdefault((site.file, site.line), Line(site))
                break
    return list(found.values())


def checkpoints_below(crash: Crash) -> int:
    """How many reentrant checkpoints the loss contains."""
    nodes = reachable(crash.root_nodes())
    return sum(node.name() == "CheckpointFunctionBackward" for node in nodes)


def common_owner(reducer: Reducer) -> str:
    """The module that all the named parameters belong to."""
    if not reducer.names:
        return ""
    parts = [name.split(".")[:-1] for name in reducer.names]
    common = parts[0]
    for one in parts[1:]:
        same = 0
        while same < min(len(common), len(one)) and common[same] == one[same]:
            same += 1
        common = common[:same]
    return ".".join(common)
