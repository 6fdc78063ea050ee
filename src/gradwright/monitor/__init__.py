"""Watching how the tasks' gradients agree in each layer while a model trains."""

from gradwright.monitor.conflict_monitor import ConflictMonitor
from gradwright.monitor.snapshot import Snapshot
from gradwright.monitor.table import LayerRow, PairRow

__all__ = ["ConflictMonitor", "Snapshot", "LayerRow", "PairRow"]
