"""Every program in the documentation runs, and prints what it is shown to print."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.markdown import Block, after, before, blocks, run, run_block

ROOT = Path(__file__).resolve().parents[1]
GUIDE = ROOT / "docs" / "many-losses.md"
RUN = [ROOT / "README.md", GUIDE, ROOT / "docs" / "loops.md", ROOT / "docs" / "multi-task.md"]
PAGES = [*RUN, ROOT / "docs" / "methods.md"]
TASKS = ("price", "rooms", "age")
_LINES = re.DOTALL | re.MULTILINE


@pytest.mark.filterwarnings("ignore:The '.*_dataloader' does not have many workers")
@pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated")
@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_the_programs_run(page: Path) -> None:
    assert any(block.language == "python" for block in blocks(page))

    run(page, {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=_LINES)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if target.startswith("https://"):
            continue
        name, _, heading = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), f"{page.name} links {target}"
        assert not heading or heading in _headings(file), f"{page.name} links {target}"


def test_the_first_lines_train_before_and_after() -> None:
    block = blocks(GUIDE)[0]
    assert block.language == "diff"

    for text in (before(block.text), after(block.text)):
        names = _program()
        trunk = names["trunk"]
        names["batches"] = [(names["inputs"], names["targets"])]
        names["loss_fn"] = nn.functional.mse_loss
        names["optimizer"] = torch.optim.SGD(trunk.parameters(), lr=0.1)
        start = trunk[0].weight.detach().clone()
        run_block(GUIDE, block, text, names)
        assert not torch.equal(trunk[0].weight, start)


def test_coming_from_torchjd() -> None:
    """Both sides of each diff give the same gradients."""
    pytest.importorskip("torchjd")
    changes = _diffs("torchjd")

    assert len(changes) == 2
    for block in changes:
        old, new = (_gradients(block, side(block.text)) for side in (before, after))
        assert old.keys() == new.keys()
        for name in old:
            torch.testing.assert_close(new[name], old[name], rtol=1e-6, atol=1e-10)


def test_coming_from_torchjd_runs_without_it() -> None:
    for block in _diffs("torchjd"):
        assert {"trunk.0.weight", "heads.age.bias"} <= _gradients(block, after(block.text)).keys()


def test_coming_from_libmtl() -> None:
    (block,) = _diffs("LibMTL")
    names = _program()
    encoder, decoders = names.pop("trunk"), names.pop("heads")
    names |= {
        "torch": torch,
        "Encoder": lambda: encoder,
        "decoders": decoders,
        "task_dict": dict.fromkeys(TASKS),
        "loss_fn": nn.functional.mse_loss,
        "train_loader": [(names["inputs"], names["targets"])],
    }
    start = encoder[0].weight.detach().clone()

    run_block(GUIDE, block, after(block.text), names)

    assert not torch.equal(encoder[0].weight, start)


def test_libmtl_has_the_names_of_the_guide() -> None:
    """Its source is read: importing it needs a graph library and a GPU."""
    (block,) = _diffs("LibMTL")
    trainer = next(
        node
        for node in _source_of_libmtl("trainer.py").body
        if isinstance(node, ast.ClassDef) and node.name == "Trainer"
    )
    functions = {node.name: node for node in trainer.body if isinstance(node, ast.FunctionDef)}
    known = {argument.arg for argument in functions["__init__"].args.args}

    given = {keyword.arg for keyword in _call_of_trainer(before(block.text)).keywords}
    assert given - {"weight_args", "arch_args"} == known - {"self", "save_path", "load_path"}
    assert "train" in functions


def test_output_that_differs_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n", encoding="utf-8")

    with pytest.raises(AssertionError, match=r"page\.md:2 prints\n1"):
        run(page, {})


def test_output_that_is_not_shown_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\nText.\n\n```text\n1\n```\n", encoding="utf-8")

    with pytest.raises(AssertionError, match=r"page\.md:2 prints"):
        run(page, {})


def _diffs(library: str) -> list[Block]:
    return [b for b in blocks(GUIDE) if b.language == "diff" and f"from {library}" in b.text]


def _program() -> dict:
    """What the guide has made before, in float64."""
    torch.manual_seed(0)
    trunk = nn.Sequential(nn.Linear(6, 8), nn.Tanh()).double()
    heads = nn.ModuleDict({task: nn.Linear(8, 1).double() for task in TASKS})
    targets = {task: torch.randn(16, 1).double() for task in TASKS}
    inputs = torch.randn(16, 6).double()
    return {"torch": torch, "trunk": trunk, "heads": heads, "inputs": inputs, "targets": targets}


def _gradients(block: Block, text: str) -> dict[str, Tensor]:
    names = _program()
    run_block(GUIDE, block, text, names)
    model = nn.ModuleDict({"trunk": names["trunk"], "heads": names["heads"]})
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    if isinstance(names.get("weighting"), nn.Module):
        own = [parameter.grad for parameter in names["weighting"].parameters()]
        found |= {f"weighting {place}": gradient for place, gradient in enumerate(own)}
    return {name: gradient for name, gradient in found.items() if gradient is not None}


def _headings(page: Path) -> set[str]:
    """The headings as links name them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


def _source_of_libmtl(file: str) -> ast.Module:
    spec = importlib.util.find_spec("LibMTL")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("LibMTL is not installed")
    path = Path(spec.submodule_search_locations[0], file)
    return ast.parse(path.read_text(encoding="utf-8"))


def _call_of_trainer(program: str) -> ast.Call:
    return next(
        node
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "Trainer"
    )
