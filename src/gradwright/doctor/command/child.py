"""Run the command `gradwright` again, in a process of its own."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType


def run_child(arguments: Sequence[str]) -> int:
    """Run `gradwright` with `arguments`; returns the exit status, 128 + n for signal n.

    The child has our terminal: Ctrl-C reaches it directly, and this process waits for its end.
    """
    with subprocess.Popen([*_command(), *arguments]) as child:

        def pass_on(number: int, frame: FrameType | None) -> None:
            child.send_signal(number)

        before = [
            (signal.SIGINT, signal.signal(signal.SIGINT, lambda *_: None)),
            (signal.SIGTERM, signal.signal(signal.SIGTERM, pass_on)),
        ]
        try:
            status = child.wait()
        finally:
            for number, handler in before:
                signal.signal(number, handler)
    return status if status >= 0 else 128 - status


def _command() -> list[str]:
    """How this process was started, up to its own arguments: Python, its options, gradwright."""
    ours = len(sys.argv) - 1
    return [sys.executable, *sys.orig_argv[1 : len(sys.orig_argv) - ours]]
