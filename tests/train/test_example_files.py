"""Files of examples: tables, lists and JSON lines give the same, and what is wrong is told with its line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from votive.train.examples import read_examples

ROWS: list[dict[str, Any]] = [
    {"text": 'one, "two"\nand three', "label": 2},
    {"text": "vier ä", "label": 0},
    {"text": "five", "label": 1},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix in (".csv", ".tsv"):
        with open(path, "w", newline="", encoding="utf-8-sig") as f:
            table = csv.DictWriter(f, list(rows[0]), delimiter="," if path.suffix == ".csv" else "\t")
            table.writeheader()
            table.writerows(rows)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")
    else:
        path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


LINES = {"csv": (2, 4, 5), "tsv": (2, 4, 5), "json": (2, 6, 10), "jsonl": (1, 2, 3)}


@pytest.mark.parametrize(("kind", "lines"), LINES.items())
def test_every_kind_of_file_gives_the_same_examples(tmp_path: Path, kind: str, lines: tuple[int, ...]) -> None:
    path = write(tmp_path / f"data.{kind}", ROWS)
    found = read_examples(str(path))
    assert [dict(example.values) for example in found] == ROWS
    assert [example.where for example in found] == [f"{path}:{line}" for line in lines]


def test_json_lines_may_be_called_json(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text('{"text": "a"}\n\n{"text": "b"}\n')
    assert [example.values["text"] for example in read_examples(path)] == ["a", "b"]


def test_cells_of_tables_hold_texts_numbers_of_labels_and_json_of_messages(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "hi"}]
    path = tmp_path / "data.csv"
    with open(path, "w", newline="") as f:
        csv.writer(f).writerows([["text", "label", "messages", "negative"], ["12", "-1", json.dumps(talk), ""]])
    (example,) = read_examples(path)
    assert example.values == {"text": "12", "label": "-1", "messages": talk}
    long = "x" * 200_000  # more than a cell of Python's may have
    write(path, [{"text": long}])
    limit = csv.field_size_limit()
    assert read_examples(path)[0].values["text"] == long
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", b"text,label\none\n", r"a\.csv:2: has 1 cells, and there are 2 columns: text, label"),
        ("b.csv", b"text,label\n\none,1\ntwo,2,3\n", r"b\.csv:4: has 3 cells"),
        ("c.csv", b'text\n"one\ntwo" x\n', r"c\.csv:2: not a row of a table"),
        ("d.csv", b"text,text\none,two\n", r"d\.csv:1: the first line names the columns, each once"),
        ("e.csv", b"text,\none,two\n", r"e\.csv:1: the first line names the columns"),
        ("f.csv", b"messages\n[1\n", r'f\.csv:2: "messages" is not valid JSON'),
        ("g.csv", b"text,label\n", r"g\.csv holds no example"),
        ("h.csv", b"text\none\n\xff\n", r"h\.csv:3: is not UTF-8 text"),
        ("a.json", b'[{"text": "one"},\n {"text": two}]', r"a\.json:2: not valid JSON"),
        ("b.json", b'[{"text": "one"},\n 3]', r"b\.json:2: holds a int, not an object"),
        ("c.json", b'[{"text": "one"}\n {"text": "two"}]', r"c\.json:1: .*a comma is missing"),
        ("d.json", b'[{"text": "one"}', r"d\.json:1: .*nothing ends the list"),
        ("e.json", b'[{"text": "one"}] {}', r"e\.json: .*something follows the list"),
        ("f.json", b"[]", r"f\.json holds no example"),
        ("g.json", b'{\n "data": []\n}', r"g\.json:1: not valid JSON .*one whole object"),
        ("a.jsonl", b'{"text": "one"}\n{"text": "\xff"}', r"a\.jsonl:2: is not UTF-8 text"),
        ("a.jsonl.gz", b"PAR1", r"a\.jsonl\.gz is not read as it is; write it as JSON lines"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=says):
        read_examples(tmp_path / name)


COLUMNS = [{"text": "one", "label": ["a", "b"]}, {"text": "two", "label": []}, {"text": "three", "label": None}]


@pytest.mark.parametrize("kind", ["parquet", "feather", "arrow"])
def test_files_of_columns_are_read_row_by_row(tmp_path: Path, kind: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, ipc, parquet

    table, path = pyarrow.Table.from_pylist(COLUMNS), tmp_path / f"data.{kind}"
    if kind == "parquet":
        parquet.write_table(table, path, row_group_size=2)
    elif kind == "feather":
        feather.write_feather(table, path)
    else:
        with ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    found = read_examples(path)
    # What is null is not there, as in a table's empty cell.
    assert [example.values for example in found] == [*COLUMNS[:2], {"text": "three"}]
    assert [example.where for example in found] == [f"{path}:{i}" for i in (1, 2, 3)]


@pytest.mark.parametrize("kind", ["parquet", "feather", "arrow"])
@pytest.mark.parametrize("content", [b"", b"PAR1", b"ARROW1\0\0" + b"x" * 40])
def test_damaged_files_of_columns_are_told(tmp_path: Path, kind: str, content: bytes) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / f"a.{kind}").write_bytes(content)
    with pytest.raises(ValueError, match=rf"a\.{kind} is no \.{kind} file that pyarrow reads"):
        read_examples(tmp_path / f"a.{kind}")


def test_without_pyarrow_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(ImportError, match="pip install pyarrow, or write the file as JSON lines"):
        read_examples(tmp_path / "a.parquet")
