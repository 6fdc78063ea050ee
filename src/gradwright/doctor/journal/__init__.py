"""What happened in a run: lines, engine calls, optimizer steps, operations."""

from gradwright.doctor.journal.engine import EngineCall, mark_of
from gradwright.doctor.journal.journal import Journal
from gradwright.doctor.journal.operations import Operation, Switch, Write
from gradwright.doctor.journal.places import NOWHERE, Site
from gradwright.doctor.journal.usercode import UserCode

__all__ = [
    "NOWHERE",
    "EngineCall",
    "Journal",
    "Operation",
    "Site",
    "Switch",
    "UserCode",
    "Write",
    "mark_of",
]
