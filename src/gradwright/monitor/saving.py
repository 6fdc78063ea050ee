"""What a monitor has recorded, as plain tensors, lists and numbers."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from torch import Tensor

from gradwright.monitor.curve import Curve
from gradwright.monitor.snapshot import Snapshot
from gradwright.monitor.summary import Summary


def state_of(
    calls: int,
    layers: Iterable[str],
    tasks: Iterable[str],
    summaries: Mapping[str, Summary],
    snapshots: Iterable[Snapshot],
    curve: Curve,
) -> dict[str, Any]:
    """A copy: later steps do not change it."""
    return {
        "calls": calls,
        "layers": list(layers),
        "tasks": list(tasks),
        "summaries": {layer: _fields_of(one) for layer, one in summaries.items()},
        "snapshots": [{"step": one.step, "gramians": _copied(one.gramians)} for one in snapshots],
        "steps": list(curve.steps),
        "curve": curve.values,
    }


def loaded_summaries(state: Mapping[str, Any]) -> dict[str, Summary]:
    """The summaries in what `state_of` returned."""
    return {layer: Summary(**_copied(one)) for layer, one in state["summaries"].items()}


def loaded_snapshots(state: Mapping[str, Any]) -> list[Snapshot]:
    """The recorded steps in what `state_of` returned."""
    tasks = tuple(state["tasks"])
    return [Snapshot(one["step"], tasks, _copied(one["gramians"])) for one in state["snapshots"]]


def _fields_of(summary: Summary) -> dict[str, Any]:
    return _copied({field.name: getattr(summary, field.name) for field in fields(summary)})


def _copied(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one.clone() if isinstance(one, Tensor) else one for name, one in values.items()}
