"""Census-Income (KDD) of the UCI repository: finds the file, downloads it if need be, reads it.

DOI 10.24432/C5N30T. Of its two files we use the smaller one, the 99,762 rows of the test part.
"""

import csv
import gzip
import io
import os
import sys
import tarfile
import zipfile
from pathlib import Path
from urllib.request import urlopen

URL = "https://archive.ics.uci.edu/static/public/117/census+income+kdd.zip"
NAME = "census-income.test.gz"
TIMEOUT = 10  # seconds without an answer
COLUMNS = 42

Row = list[str]


def census_rows(limit: int | None = None) -> list[Row] | None:
    """The rows of the file, 42 texts each; None, with a message, if the file cannot be had."""
    file = _beside_the_repository() or _cached()
    if not file.exists():
        print(f"downloading Census-Income (10 MB) from {URL}", flush=True)
        try:
            _download(file)
        except (OSError, KeyError, tarfile.TarError, zipfile.BadZipFile) as error:
            print(f"no Census-Income here: the download failed ({error})", file=sys.stderr)
            return None
    return _read(file, limit)


def _beside_the_repository() -> Path | None:
    """The file in the folder that GRADWRIGHT_SHARED names, else beside the repository."""
    here = Path(__file__).resolve()
    folder = os.environ.get("GRADWRIGHT_SHARED")
    if folder is None and len(here.parents) > 3:
        folder = str(here.parents[3] / "shared")
    file = Path(folder or "shared") / "data" / NAME
    return file if file.exists() else None


def _cached() -> Path:
    """Where a download is kept for the next time."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "gradwright" / NAME


def _download(file: Path) -> None:
    """Fetch the archive, and keep the one file in it that we read."""
    with urlopen(URL, timeout=TIMEOUT) as answer:
        archive = zipfile.ZipFile(io.BytesIO(answer.read()))
    with tarfile.open(fileobj=io.BytesIO(archive.read("census.tar.gz"))) as inner:
        member = inner.extractfile("census-income.test")
        assert member is not None
        content = gzip.compress(member.read())
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(file)


def _read(file: Path, limit: int | None) -> list[Row]:
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines, skipinitialspace=True))[:limit]
    widths = set(map(len, rows))
    if widths != {COLUMNS}:
        raise ValueError(f"{file} needs rows of {COLUMNS} columns: got {sorted(widths)}")
    return rows
