"""docs/methods.md says what the methods do, and cites what their docstrings cite."""

import ast
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

from docs import catalogue, methods_table
from docs.catalogue import Method, methods
from docs.costs import line
from docs.methods_table import (
    COST_TITLES,
    HEAD_TITLES,
    PROPERTY_TITLES,
    cost_row,
    head_rows,
    markdown,
    property_row,
)
from tests.weighting.gramian_methods import METHODS as GRAMIAN_METHODS

LINES = methods_table.PAGE.read_text(encoding="utf-8").splitlines()
ALL = {method.name: method for method in methods()}
STALE = "docs/methods.md is not what the methods do: run `make docs`"
named = pytest.mark.parametrize("method", ALL.values(), ids=ALL)


@named
def test_costs_are_as_counted(method: Method) -> None:
    assert _line(cost_row(method)) in LINES, STALE


@named
def test_properties_are_as_tried(method: Method) -> None:
    assert _line(property_row(method)) in LINES, STALE


def test_the_table_of_heads_is_what_the_classes_say() -> None:
    table = markdown(HEAD_TITLES, head_rows([*ALL.values()]))

    assert table in "\n".join(LINES) + "\n", STALE
    assert "| `MGDA` | weighted | unweighted | unweighted |" in table


def test_the_tables_have_all_methods_and_no_others() -> None:
    rows = [row for row in LINES if row.startswith("| `")]

    assert len(rows) == 2 * len(ALL) + len(head_rows([*ALL.values()])), STALE
    assert {_line(COST_TITLES), _line(PROPERTY_TITLES)} <= {*LINES}, STALE


@named
def test_the_docstring_cites_the_paper(method: Method) -> None:
    words = " ".join((inspect.getdoc(method.kind) or "").split())

    for cited in (method.title, str(method.year or ""), method.link):
        assert cited in words, f"{method.name} does not cite {cited!r}"


@named
def test_every_paper_has_a_link_and_a_year(method: Method) -> None:
    if method.name == "Mean":
        assert not method.title, "the one method without a paper"
    else:
        assert re.fullmatch(r"https://\S+\.\w+/\S+", method.link)
        assert 2000 < method.year < 2100
        assert len(method.title) > 10


@pytest.mark.parametrize("entry", ["", '[PCGrad]\ntitle = "Gradient Surgery"\nyear = 2020\n'])
def test_a_method_without_its_paper_is_an_error(tmp_path, monkeypatch, entry: str) -> None:
    text = catalogue.DATA.read_text(encoding="utf-8")
    before, _, after = text.partition("[PCGrad]\n")
    without = tmp_path / "methods.toml"
    without.write_text(before + entry + after[after.index("[") :], encoding="utf-8")
    monkeypatch.setattr(catalogue, "DATA", without)

    with pytest.raises(KeyError, match="PCGrad" if not entry else "link"):
        methods()


def test_every_entry_is_a_method() -> None:
    entries = re.findall(r"^\[(\w+)\]$", catalogue.DATA.read_text(encoding="utf-8"), re.M)

    assert sorted(entries) == sorted(ALL)


@pytest.mark.parametrize(
    ("claim", "title", "mark"),
    [
        ("agrees", "No conflict", "✓"),
        ("simplex", "Shares", "✓"),
        ("stationary", "Stationary", "✓"),
    ],
)
def test_what_other_tests_prove_is_in_the_table(claim: str, title: str, mark: str) -> None:
    """Two ways to find out: by calling the methods with Gramians, and by `gradwright.backward`."""
    proved = [name for name in GRAMIAN_METHODS if getattr(GRAMIAN_METHODS[name], claim)]
    compared = [name for name in proved if name in ALL and name != "CRMOGM"]  # smooth over steps

    assert compared
    for name in compared:
        row = dict(zip(PROPERTY_TITLES, property_row(ALL[name]), strict=True))
        assert row[title] == mark, f"{name}: {row}"


def test_torchjd_has_these_methods_and_no_others() -> None:
    pytest.importorskip("torchjd")
    from torchjd import aggregation, scalarization

    theirs = {*aggregation.__all__, *scalarization.__all__}
    bases = {"Aggregator", "Weighting", "GramianWeightedAggregator", "WeightedAggregator"}
    twins = {name for name in theirs if name.removesuffix("Weighting") in theirs - {name}}
    ours = {method.torchjd for method in ALL.values()} - {""}

    assert ours == theirs - bases - twins - {"Scalarizer"}


def test_libmtl_has_no_others() -> None:
    """Its package on PyPI, older than the repository of the same version, has half of them."""
    spec = importlib.util.find_spec("LibMTL")  # importing it would need its many dependencies
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("LibMTL is not installed")
    file = Path(spec.submodule_search_locations[0], "weighting", "__init__.py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    imported = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    theirs = {alias.name for node in imported for alias in node.names} - {"AbsWeighting"}

    assert theirs
    assert theirs <= {method.libmtl for method in ALL.values()}


def test_a_line_through_two_counts() -> None:
    assert [line(1, 1), line(5, 7), line(6, 8), line(11, 15)] == ["1", "K", "K + 1", "2 K + 1"]


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for the costs"):
        methods_table._between("# All methods\n", "costs", "| a |\n")


def test_markdown() -> None:
    assert markdown(["a", "b"], [["1", ""]]) == "| a | b |\n|---|---|\n| 1 |  |\n"


def _line(cells) -> str:
    return markdown(cells, []).splitlines()[0]
