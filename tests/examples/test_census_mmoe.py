"""The example of `make demo`: its data, its model, and the demo as a whole."""

import gzip
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from tests.data import shared

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "census_mmoe"
MODULES = ("census", "data", "model", "programs")
WEIGHT, MARITAL, INCOME = 24, 7, 41


@pytest.fixture(scope="module")
def example() -> Iterator[dict[str, ModuleType]]:
    """The modules of the example, imported as `train.py` imports them."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield {name: importlib.import_module(name) for name in MODULES}
    finally:
        sys.path.remove(str(EXAMPLE))
        for name in MODULES:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def rows() -> list[list[str]]:
    """Invented people: 300 different ones, then 100 of them again."""
    draw = torch.Generator().manual_seed(1)
    made = []
    for person in range(300):
        values = torch.randint(0, 4, (42,), generator=draw).tolist()
        row = [str(value) for value in values]
        row[0] = str(person)  # age, a number: no two are equal
        row[MARITAL] = "Never married" if values[MARITAL] < 2 else "Divorced"
        row[INCOME] = "50000+." if values[INCOME] == 0 else "- 50000."
        made.append(row)
    return made + made[:100]


def test_every_row_is_in_one_part(example, rows) -> None:
    data = example["data"].census_data(rows)
    sizes = [len(part.labels) for part in (data.train, data.validation, data.test)]

    assert sum(sizes) == len(rows)
    assert sizes[0] == pytest.approx(0.70 * len(rows), rel=0.1)
    assert sizes[1] == pytest.approx(0.15 * len(rows), rel=0.4)


def test_shapes(example, rows) -> None:
    train = example["data"].census_data(rows).train
    count = len(train.labels)

    assert train.categories.shape == (count, 32)
    assert train.numbers.shape == (count, 7)  # 32 + 7 features, 2 tasks, 1 weight: 42 columns
    assert train.labels.shape == (count, 2)
    assert set(train.labels.unique().tolist()) == {0.0, 1.0}


def test_equal_rows_share_a_part(example, rows) -> None:
    parts = example["data"].split([tuple(row) for row in rows])
    part_of = {int(row): number for number, part in enumerate(parts) for row in part}

    assert [part_of[row] for row in range(100)] == [part_of[300 + row] for row in range(100)]


def test_the_split_is_the_same_each_time(example, rows) -> None:
    first, second = (example["data"].split([tuple(row) for row in rows]) for _ in range(2))

    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("column", [MARITAL, INCOME, WEIGHT])
def test_a_task_and_the_weight_are_no_features(example, rows, column) -> None:
    """Not even the split changes with them."""
    changed = [[*row[:column], "7", *row[column + 1 :]] for row in rows]
    before, after = map(example["data"].census_data, (rows, changed))

    assert torch.equal(before.train.categories, after.train.categories)
    assert torch.equal(before.train.numbers, after.train.numbers)


def test_labels_are_the_tasks(example, rows) -> None:
    data = example["data"]
    train = data.census_data(rows).train
    features = [tuple(row[column] for column in (*data.CATEGORIES, *data.NUMBERS)) for row in rows]
    members = data.split(features)[0].tolist()

    assert data.census_data(rows).tasks == ("income above 50K", "never married")
    for (income, married), row in zip(train.labels.tolist(), members, strict=True):
        assert bool(income) == (rows[row][INCOME] == "50000+.")
        assert bool(married) == (rows[row][MARITAL] == "Never married")


def test_the_test_part_teaches_nothing(example, rows) -> None:
    """Values that only the test part has get code 0, and do not move the scale of the others."""
    data = example["data"]
    before = data.census_data(rows)
    features = [tuple(row[column] for column in (*data.CATEGORIES, *data.NUMBERS)) for row in rows]
    last = max(data.split(features)[2].tolist())
    changed = [list(row) for row in rows]
    twin = [number for number, row in enumerate(rows) if row == rows[last]]
    for number in twin:
        changed[number][1], changed[number][0] = "a new class of worker", "5000"
    after = data.census_data(changed)

    assert torch.equal(before.train.numbers, after.train.numbers)
    assert after.values == before.values
    assert before.test.categories.min() > 0
    assert (after.test.categories == 0).sum() == len(twin)


def test_numbers_are_standardised_on_the_training_part(example, rows) -> None:
    numbers = example["data"].census_data(rows).train.numbers

    torch.testing.assert_close(numbers.mean(0), torch.zeros(7), atol=1e-5, rtol=0)
    torch.testing.assert_close(numbers.std(0), torch.ones(7), atol=1e-5, rtol=0)


def test_each_column_has_codes_of_its_own(example, rows) -> None:
    data = example["data"].census_data(rows)
    columns = [set(column.tolist()) for column in data.train.categories.T]

    assert set().union(*columns) == set(range(1, data.values))
    assert sum(map(len, columns)) == data.values - 1


def test_the_real_file(example) -> None:
    """The rates of the paper, on the file's first rows."""
    shared("data/census-income.test.gz")
    rows = example["census"].census_rows(5000)

    assert len(rows) == 5000
    assert sum(row[INCOME] == "50000+." for row in rows) / 5000 == pytest.approx(0.062, abs=0.01)
    assert sum(row[MARITAL] == "Never married" for row in rows) / 5000 == pytest.approx(
        0.432, abs=0.02
    )


def test_a_cached_file_is_read(example, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("GRADWRIGHT_SHARED", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "gradwright").mkdir()
    line = ", ".join(["a", *["1"] * 41]) + "\n"
    with gzip.open(tmp_path / "gradwright" / "census-income.test.gz", "wt") as file:
        file.write(2 * line)

    assert example["census"].census_rows() == 2 * [["a", *["1"] * 41]]


def test_a_broken_file_is_refused(example, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("GRADWRIGHT_SHARED", str(tmp_path))
    (tmp_path / "data").mkdir()
    with gzip.open(tmp_path / "data" / "census-income.test.gz", "wt") as file:
        file.write("1, 2, 3\n")

    with pytest.raises(ValueError, match="needs rows of 42 columns"):
        example["census"].census_rows()


def test_offline_the_digits_take_over(example, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("GRADWRIGHT_SHARED", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(example["census"], "URL", (tmp_path / "no.zip").as_uri())
    data = example["data"].load(400)

    assert "the download failed" in capsys.readouterr().err
    assert data.name == "digits (scikit-learn)"
    assert sum(len(part.labels) for part in (data.train, data.validation, data.test)) == 400
    assert data.train.categories.max() < data.values
    assert not list((tmp_path).rglob("*.gz"))


def test_mmoe_is_the_equation(example) -> None:
    """y_k = h_k(Σ_i softmax(W_k x)_i f_i(x)), one row, task and expert at a time."""
    torch.manual_seed(0)
    model = example["model"].MMoE(inputs=11, tasks=3, experts=4, units=5).double()
    features, numbers = torch.randn(6, 4, 2).double(), torch.randn(6, 3).double()
    logits = model(features, numbers)

    assert logits.shape == (6, 3)
    for row in range(6):
        x = torch.tensor([*features[row].flatten().tolist(), *numbers[row].tolist()]).double()
        for task in range(3):
            scores = (model.gates[task].weight @ x).exp()
            mixture = torch.zeros(5).double()
            for expert in range(4):
                mixture += scores[expert] / scores.sum() * model.experts[expert](x)
            torch.testing.assert_close(logits[row, task], model.towers[task](mixture)[0])


@pytest.mark.slow
def test_the_demo() -> None:
    shared("data/census-income.test.gz")
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "demo.py"), "--quick"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUTF8": "1", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
    )

    assert done.returncode == 0, done.stdout
    assert done.stdout.count("error[GW101]") == 1
    assert "+        logits = model(embed(train.categories[batch])" in done.stdout
    assert "GW101 (graph used twice) is gone." in done.stdout
    aucs = dict(re.findall(r"│ ([\w ]+?) +│ (\d\.\d+)", done.stdout))
    assert float(aucs["income above 50K"]) > 0.75
    assert float(aucs["never married"]) > 0.90
    assert not re.search(r"[^\n -~·-￿]", done.stdout), "control characters in a pipe"
