"""What `make demo` runs: the doctor on a broken program, its fix, and the repaired program.

`--quick` uses a few rows and one epoch. The exit status is 0 if each part did what it says.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from programs import DemoError, doctor, lines, shown
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

HERE = Path(__file__).resolve().parent
PROGRAM = ("train.py", "model.py", "data.py", "census.py")
QUICK = ("--rows", "24000", "--epochs", "1")
# The area under the ROC curve on the test part, at least; 0.5 is guessing.
EXPECTED = {
    "income above 50K": 0.90,
    "never married": 0.97,
    "is even": 0.95,  # the two tasks on scikit-learn's digits
    "is below five": 0.90,
}
EXPECTED_QUICK = 0.5

console = Console(highlight=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the three parts in a temporary folder; returns the exit status."""
    parser = argparse.ArgumentParser(description="The doctor on a broken multi-task program.")
    parser.add_argument("--quick", action="store_true", help="few rows, one epoch")
    quick = parser.parse_args(arguments).quick
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="census-mmoe-") as name:
        folder = Path(name)
        for file in PROGRAM:
            shutil.copy(HERE / file, folder)
        try:
            diagnose(folder, quick)
            repair(folder, quick)
            train(folder, quick)
        except DemoError as error:
            console.print(f"\nThe demo failed: {error}", markup=False)
            return 1
    console.print(f"\nThe whole demo took {time.perf_counter() - start:.0f} s.")
    return 0


def diagnose(folder: Path, quick: bool) -> None:
    """Show what the doctor says of the broken program."""
    _headline("1. The doctor runs a multi-task program that dies in its second step")
    _show(" ".join(["gradwright doctor train.py", *_settings(quick)]))
    status = shown(doctor("--json", "report.json", "train.py", *_settings(quick)), folder)
    report = folder / "report.json"
    found = json.loads(report.read_text("utf-8"))["diagnostics"] if report.exists() else []
    codes = [diagnostic["code"] for diagnostic in found]
    if status != 1 or codes[:1] != ["GW101"]:
        raise DemoError(f"expected GW101 and status 1, found {codes} and status {status}.")


def repair(folder: Path, quick: bool) -> None:
    """Let the doctor apply its first fix and try the program again."""
    _headline("2. The doctor applies its fix, and runs 30 steps of the repaired program")
    _show(" ".join(["gradwright doctor --fix --steps 30 train.py", *_settings(quick)]))
    broken = (folder / "train.py").read_text("utf-8")
    command = doctor("--fix", "--steps", "30", "train.py", *_settings(quick))
    said: list[str] = []
    for line in lines(command, folder, "the doctor with --fix"):
        if said or line.startswith("gradwright: applied the fix"):
            said.append(line)  # before that comes the message of part 1, again
            console.print(line, markup=False)
    if (folder / "train.py").read_text("utf-8") == broken:
        raise DemoError("the doctor was expected to change train.py, and left it as it was.")
    if not any("30 optimizer steps watched" in line for line in said):
        raise DemoError("the doctor was expected to watch 30 steps of the repaired program.")


def train(folder: Path, quick: bool) -> None:
    """Train the program as the doctor left it, and compare its result with what we expect."""
    _headline("3. The repaired program, trained on real data")
    _show(" ".join(["python train.py", *_settings(quick)]))
    start = time.perf_counter()
    result = _trained([sys.executable, "-u", "train.py", *_settings(quick)], folder)
    seconds = time.perf_counter() - start
    aucs = {task: float(auc) for task, auc in re.findall(r"([a-zA-Z][\w ]*) (\d\.\d+)", result)}
    expected = {task: EXPECTED_QUICK if quick else EXPECTED[task] for task in aucs}
    _show_result(aucs, expected, seconds)
    low = [task for task, auc in aucs.items() if not auc > expected[task]]
    if len(aucs) != 2 or low:
        raise DemoError(f"expected a good AUC for two tasks, found {aucs}.")


def _trained(command: Sequence[str], folder: Path) -> str:
    """Run the training with a progress bar; returns what follows `test AUC: `."""
    columns = TextColumn("training"), BarColumn(), TextColumn("{task.percentage:.0f}%")
    result = ""
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
        refresh_per_second=2,
    ) as progress:
        bar = progress.add_task("training", total=None)
        for line in lines(command, folder, "the repaired program"):
            progress.console.print(line, markup=False)
            if epoch := re.match(r"epoch (\d+) of (\d+)", line):
                progress.update(bar, completed=int(epoch[1]), total=int(epoch[2]))
            if line.startswith("test AUC: "):
                result = line.removeprefix("test AUC: ")
    return result


def _show_result(aucs: dict[str, float], expected: dict[str, float], seconds: float) -> None:
    table = Table("task", "test AUC", "expected", title=f"trained in {seconds:.0f} s")
    for task, auc in aucs.items():
        table.add_row(task, f"{auc:.4f}", f"above {expected[task]:.2f}")
    console.print()
    console.print(table, soft_wrap=False)
    console.print("AUC 0.5 is guessing, 1 is perfect. The epoch was chosen on the validation part.")


def _headline(text: str) -> None:
    console.print()
    console.rule(f"[bold]{text}", align="left")


def _show(command: str) -> None:
    console.print(f"$ {command}\n", markup=False)


def _settings(quick: bool) -> tuple[str, ...]:
    return QUICK if quick else ()


if __name__ == "__main__":
    sys.exit(main())
