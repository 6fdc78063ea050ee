"""`watch`: a stretch of a program under watch, in the program itself."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.optim.optimizer import _global_optimizer_post_hooks
from torch.overrides import _len_torch_function_stack  # type: ignore[attr-defined]

import gradwright
from gradwright.doctor.journal import Journal
from gradwright.doctor.rules import Rule
from gradwright.doctor.watch import Watch, watch

FORK = """
import os, sys, torch, gradwright
x = torch.ones(2, requires_grad=True)
loss = x.square().sum()
loss.backward()
with gradwright.watch() as seen:
    if os.fork() == 0:
        print(sys.gettrace(), flush=True)
        loss.backward()
    assert os.wait()[1] != 0
print(seen.report.outcome, flush=True)
"""


def loss_of(weight: Tensor) -> Tensor:
    return weight.square().sum()


@pytest.fixture
def weight() -> Tensor:
    return torch.ones(3, requires_grad=True)


def test_the_package_offers_it() -> None:
    assert gradwright.watch is watch
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = gradwright.no_such_name


def test_a_healthy_stretch_has_a_report_and_no_diagnostics(weight: Tensor) -> None:
    optimizer = torch.optim.SGD([weight], 0.1)

    with watch() as seen:
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(weight).backward()
            optimizer.step()

    assert seen.report is not None
    assert (seen.report.outcome, seen.report.steps, seen.diagnostics) == ("finished", 3, ())
    assert not seen.failed


def test_an_exception_goes_on_and_is_explained(
    weight: Tensor, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RuntimeError, match="a second time"), watch() as seen:
        loss = loss_of(weight)
        loss.backward()
        loss.backward()

    assert seen.report is not None and seen.report.exception is not None
    assert seen.report.exception.file == __file__
    assert [each.code for each in seen.diagnostics] == ["GW101"]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("error[GW101] graph used twice: `loss`") == 1


def test_nothing_is_shown_when_not_asked_to(
    weight: Tensor, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RuntimeError, match="a second time"), Watch(show=False) as seen:
        loss = loss_of(weight)
        loss.backward()
        loss.backward()

    assert len(seen.diagnostics) == 1
    assert capsys.readouterr().err == ""


def test_an_exception_that_no_rule_knows() -> None:
    with pytest.raises(KeyError), watch() as seen:
        raise KeyError("mine")

    assert seen.report is not None and seen.report.exception is not None
    assert seen.report.exception.type == "KeyError"
    assert (seen.report.outcome, seen.diagnostics, seen.failed) == ("raised", (), False)


@pytest.mark.parametrize(
    ("exception", "outcome"),
    [(SystemExit(0), "finished"), (SystemExit(1), "stopped"), (KeyboardInterrupt(), "stopped")],
)
def test_other_ways_out(exception: BaseException, outcome: str) -> None:
    with pytest.raises(type(exception)), watch() as seen:
        raise exception

    assert seen.report is not None
    assert (seen.report.outcome, seen.report.exception) == (outcome, None)


def test_everything_is_put_back(weight: Tensor) -> None:
    def state() -> tuple[object, ...]:
        owners = (torch, torch.autograd, torch.Tensor, torch.nn.Module, torch.optim.Optimizer)
        names = [{name: id(value) for name, value in vars(owner).items()} for owner in owners]
        hooks = len(_global_optimizer_post_hooks)
        traces = (sys.gettrace(), sys.getprofile(), threading.gettrace())
        return (*names, hooks, traces, _len_torch_function_stack(), torch.is_grad_enabled())

    random = torch.get_rng_state()
    before = state()
    with watch():
        loss_of(weight).backward()
        assert state() != before
    after = state()

    assert after == before
    assert torch.equal(torch.get_rng_state(), random)


def test_one_watch_after_another_and_one_inside_another(weight: Tensor) -> None:
    with watch() as outer:
        loss_of(weight).backward()
        with watch() as inner:
            loss_of(weight).backward()
        loss_of(weight).backward()
    with watch() as last:
        loss_of(weight).backward()

    assert all(each.report is not None and not each.failed for each in (outer, inner, last))


def test_a_rule_that_fails_is_said_once_and_changes_nothing(
    weight: Tensor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def explain(crash: object) -> None:
        raise ZeroDivisionError("a bug of ours")

    rule = Rule("GW999", "broken", "other", "A rule.", explain)
    monkeypatch.setattr("gradwright.doctor.diagnose.RULES", (rule, rule))

    with pytest.raises(RuntimeError, match="a second time"), watch() as seen:
        loss = loss_of(weight)
        loss.backward()
        loss.backward()

    assert seen.failed and seen.report is not None and seen.diagnostics == ()
    assert capsys.readouterr().err.count("a bug of ours") == 1


def test_a_journal_that_cannot_start_leaves_the_program_alone(
    weight: Tensor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(journal: object, frame: object) -> None:
        raise OSError("no more of it")

    monkeypatch.setattr(Journal, "start", start)

    with watch() as seen:
        loss_of(weight).backward()

    assert weight.grad is not None and seen.failed
    assert "stepped aside; the program goes on: OSError: no more of it" in capsys.readouterr().err


def test_a_forked_child_is_not_watched(tmp_path: Path) -> None:
    (tmp_path / "fork.py").write_text(FORK)

    result = subprocess.run(
        [sys.executable, "fork.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert result.stdout.split() == ["None", "finished"]
    assert result.stderr.count("a second time") == 2, "once: torch says so twice in a message"
    assert "GW101" not in result.stderr
