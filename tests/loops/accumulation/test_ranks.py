"""Two processes: the gradient is Σ sums / Σ counts over both, with one reduction per window."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist

from tests.loops.accumulation import ranks, ranks_fsdp
from tests.loops.accumulation.processes import in_two_processes

Run = Callable[[], object]
pytestmark = pytest.mark.skipif(not dist.is_available(), reason="torch has no torch.distributed")


def name_of(run: Run) -> str:
    return run.__name__


def differences(facts: list[dict[str, Any]]) -> list[float]:
    return [difference for of_rank in facts for difference in of_rank["differences"]]


@pytest.mark.slow
@pytest.mark.parametrize("run", [ranks.ddp, ranks.ddp_inside, ranks.accelerate], ids=name_of)
def test_ddp_with_uneven_windows(run: Run, tmp_path: Path) -> None:
    if run is ranks.accelerate:
        pytest.importorskip("accelerate")
    facts = in_two_processes(run, tmp_path)

    assert len(differences(facts)) >= 4 and max(differences(facts)) <= 1e-6
    assert [of_rank["lengths"] for of_rank in facts] == [[3, 2], [3, 1]]
    for of_rank in facts:
        assert of_rank["counts"] == [1 + 6 + 2 + 4 + 2 + 7, 5 + 3 + 8]
        assert of_rank["losses"] == facts[0]["losses"]
        assert of_rank["reductions"] == 2  # one per window


@pytest.mark.slow
@pytest.mark.parametrize("run", [ranks.ddp_bucket_views, ranks_fsdp.fsdp_discarded], ids=name_of)
def test_memory_of_the_wrapper(run: Run, tmp_path: Path) -> None:
    assert max(differences(in_two_processes(run, tmp_path))) <= 1e-6


@pytest.mark.slow
def test_a_window_without_a_loader(tmp_path: Path) -> None:
    facts = in_two_processes(ranks.ddp_by_hand, tmp_path)

    assert max(differences(facts)) <= 1e-6
    assert [of_rank["reductions"] for of_rank in facts] == [[3, 1], [3, 1]]


@pytest.mark.slow
def test_fsdp(tmp_path: Path) -> None:
    facts = in_two_processes(ranks_fsdp.fsdp, tmp_path)

    assert max(differences(facts)) <= 1e-6
    for of_rank in facts:
        assert of_rank["counts"] == [22, 916] and of_rank["lengths"] == [3, 2]
        assert of_rank["reductions"] == 2  # of each of the three groups of parameters


@pytest.mark.slow
def test_fsdp_with_different_numbers_of_micro_batches(tmp_path: Path) -> None:
    for facts in in_two_processes(ranks_fsdp.fsdp_uneven, tmp_path):
        assert facts["closed"] == 1
        assert "different numbers of micro-batches in this window" in facts["error"]


@pytest.mark.slow
def test_options_of_ddp(tmp_path: Path) -> None:
    facts = in_two_processes(ranks.ddp_options, tmp_path)

    assert len(differences(facts)) == 12 and max(differences(facts)) <= 1e-6
    assert [of_rank["reductions"] for of_rank in facts] == [[2, 2, 3]] * 2


@pytest.mark.slow
def test_options_of_fsdp(tmp_path: Path) -> None:
    facts = in_two_processes(ranks_fsdp.fsdp_options, tmp_path)

    assert len(differences(facts)) == 12 and max(differences(facts)) <= 1e-6


@pytest.mark.slow
def test_what_is_refused(tmp_path: Path) -> None:
    for facts in in_two_processes(ranks.errors, tmp_path):
        assert facts["deferred"].startswith("the last backward of the window was deferred")
        assert "add up to 0" in facts["zero"] and facts["zero: gradients"] == 0
        assert "not averaged over ranks" in facts["several"]
        assert facts["several: gradients"] == 0
        assert facts["zero here"] == 6


@pytest.mark.slow
def test_different_numbers_of_windows_are_an_error_on_all_ranks(tmp_path: Path) -> None:
    first, second = in_two_processes(ranks.uneven, tmp_path)

    assert first["closed"] == second["closed"] == 1
    assert "rank 0 has further batches" in first["error"]
    assert "rank 1 has no batch left" in second["error"]
