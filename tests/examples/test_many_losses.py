"""The example with two digits in one image: its data, and the program as a whole."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from examples.many_losses import TASKS, overlapping

ROOT = Path(__file__).resolve().parents[2]


def test_both_digits_are_in_the_image() -> None:
    images = torch.arange(1.0, 6.0)[:, None, None].expand(5, 8, 8)  # told apart by their grey
    part = overlapping(images, torch.arange(5), torch.tensor([1, 3, 4]), count=20)

    assert part.images.shape == (20, 1, 10, 12)
    assert set(part.labels) == set(TASKS)
    for image, left, right in zip(part.images, *part.labels.values(), strict=True):
        assert {int(left), int(right)} <= {1, 3, 4}
        assert image[0, 0, 0] == left + 1
        assert image[0, -1, -1] == right + 1
        assert image[0, 5, 5] == max(left, right) + 1  # where they overlap
        assert image[0, 0, -1] == image[0, -1, 0] == 0


@pytest.mark.slow
def test_the_program() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "many_losses.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    rows = re.findall(r"^(\S.*?) +(\d\.\d{3}) +(\d\.\d{3})$", done.stdout, re.M)

    assert done.returncode == 0, done.stderr
    assert [name for name, *_ in rows] == ["equal weights", "UW", "UPGrad"]
    assert min(float(share) for _, *shares in rows for share in shares) > 0.9
