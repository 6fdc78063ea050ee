"""Stretches of a program in which recording was off."""

from collections.abc import Sequence

from gradwright.doctor.crash import Crash
from gradwright.doctor.journal import Operation, Switch


def switches_for(crash: Crash, operation: Operation | None) -> list[Switch]:
    """The switch that held for an operation; without a record, all that were ever thrown."""
    if operation is not None:
        return [operation.switch] if operation.switch is not None else []
    known = {one.place: one for one in crash.journal.operations.switches if not one.recording}
    return list(reversed(known.values()))


def last_stretch(switches: Sequence[Switch]) -> Switch | None:
    """The switch that began the last stretch with recording off.

    Where recording was off when the program died, this is what held: the blocks it was in, and
    the generators it was consuming, have been left since, which turned recording on.
    """
    off = next((one for one in reversed(switches) if not one.recording), None)
    return beginning_of(switches, off) if off is not None else None


def beginning_of(switches: Sequence[Switch], switch: Switch) -> Switch:
    """The switch that began the stretch in which recording was turned off by `switch`.

    A block inside a stretch turns recording off when it is off, and puts that back at its end:
    neither changes anything.
    """
    index = next((i for i in reversed(range(len(switches))) if switches[i] is switch), 0)
    while index and not switches[index - 1].recording:
        index -= 1
    return switches[index] if switches else switch
