"""Objects of files, each with the line where it begins: JSON lines, JSON, tables, Parquet and Arrow.

Knows no method of training. Files of columns are read by pyarrow, if it is installed.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

Placed = tuple[str, dict[str, Any]]  # "file:line", and what stands there
_BINARY = (".gz", ".zst", ".zip", ".xlsx")
_COLUMNS = (".parquet", ".feather", ".arrow")
_FRACTION = re.compile(r"[+-]?\d*\.\d+(e[+-]?\d+)?", re.IGNORECASE)
# Columns of a table whose cells hold JSON, since they are no texts.
_JSON_COLUMNS = ("messages", "tools")


def objects_of(path: Path) -> Iterator[Placed]:
    """The objects of a file, by its name a table (`.csv`, `.tsv`), a list (`.json`), columns (`.parquet`, `.feather`,
    `.arrow`) or JSON lines.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "data.csv"
    >>> _ = path.write_text("text,label\\none,2\\n")
    >>> [values for _, values in votive.train.example_files.objects_of(path)]
    [{'text': 'one', 'label': 2}]
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is no file; give JSON lines (.jsonl), a list (.json), a table (.csv, .tsv) or .parquet."
        )
    kind = path.suffix.lower()
    if kind in _BINARY:
        raise ValueError(
            f"{path} is not read as it is; write it as JSON lines, one object a line, such as with pandas' "
            'to_json("data.jsonl", orient="records", lines=True).'
        )
    if kind in _COLUMNS:
        return _columns(path, kind)
    if kind in (".csv", ".tsv"):
        return _table(path, "," if kind == ".csv" else "\t")
    if kind == ".json" and _is_list(path):
        return _list(path)
    return _json_lines(path)


def _columns(path: Path, kind: str) -> Iterator[Placed]:
    """The rows of a file of columns, in pieces; what is null in a row is not there."""
    try:
        pyarrow, ipc, parquet = (import_module(name) for name in ("pyarrow", "pyarrow.ipc", "pyarrow.parquet"))
    except ImportError:
        raise ImportError(
            f"{path} is read with pyarrow, which is not installed: pip install pyarrow, or write the file as JSON "
            'lines, such as with pandas\' to_json("data.jsonl", orient="records", lines=True).'
        ) from None
    number = 0
    try:
        if kind == ".parquet":
            batches = parquet.ParquetFile(path).iter_batches(1024)
        else:
            file = ipc.open_file(pyarrow.memory_map(str(path)))
            batches = (file.get_batch(i) for i in range(file.num_record_batches))
        for batch in batches:
            for values in batch.to_pylist():
                number += 1
                yield f"{path}:{number}", {name: value for name, value in values.items() if value is not None}
    except pyarrow.ArrowException as e:
        raise ValueError(f"{path} is no {kind} file that pyarrow reads: {e}") from None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with open(path, "rb") as f:
        for number, raw in enumerate(f, 1):
            try:
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as e:
                raise ValueError(f"{path}:{number}: is not UTF-8 text: {e}.") from None


def _json_lines(path: Path) -> Iterator[Placed]:
    for number, line in _lines(path):
        if line.strip():
            where = f"{path}:{number}"
            try:
                values = json.loads(line)
            except (ValueError, RecursionError) as e:
                raise ValueError(f"{where}: not valid JSON ({e}); a line holds one whole object.") from None
            yield where, _object(where, values)


def _object(where: str, values: object) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise ValueError(f"{where}: holds a {type(values).__name__}, not an object.")
    return values


def _is_list(path: Path) -> bool:
    return next((line.lstrip()[0] for _, line in _lines(path) if line.strip()), "") == "["


def _list(path: Path) -> Iterator[Placed]:
    text = "".join(line for _, line in _lines(path))
    decoder, at, line, counted = json.JSONDecoder(), text.index("[") + 1, 1, 0
    while True:
        at = _skipped(text, at)
        if text[at : at + 1] == "]":
            break
        line, counted = line + text.count("\n", counted, at), at
        where = f"{path}:{line}"
        try:
            values, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as e:
            raise ValueError(f"{where}: not valid JSON ({e}); the file holds one list of objects.") from None
        yield where, _object(where, values)
        at = _skipped(text, at)
        if text[at : at + 1] not in (",", "]"):
            raise ValueError(f"{where}: not valid JSON (nothing ends the list, or a comma is missing behind this).")
        at += text[at] == ","
    if _skipped(text, at + 1) < len(text):
        raise ValueError(f"{path}: not valid JSON (something follows the list).")


def _skipped(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _table(path: Path, delimiter: str) -> Iterator[Placed]:
    # The limit of a cell is the process's: one without a limit is put back.
    limit = csv.field_size_limit(2**31 - 1)
    try:
        rows = csv.reader((line for _, line in _lines(path)), delimiter=delimiter, strict=True)
        names: list[str] = []
        line = 1
        while True:
            try:
                row = next(rows, None)
            except csv.Error as e:
                raise ValueError(f"{path}:{line}: not a row of a table ({e}).") from None
            if row is None:
                return
            where, line = f"{path}:{line}", rows.line_num + 1
            if not names:
                names = _header(where, row)
            elif row:
                yield where, _row(where, names, row)
    finally:
        csv.field_size_limit(limit)


def _header(where: str, row: list[str]) -> list[str]:
    names = [name.strip() for name in row]
    if row and (not all(names) or len(set(names)) < len(names)):
        raise ValueError(f"{where}: the first line names the columns, each once; got {', '.join(map(repr, names))}.")
    return names


def _row(where: str, names: list[str], row: list[str]) -> dict[str, Any]:
    if len(row) != len(names):
        raise ValueError(f"{where}: has {len(row)} cells, and there are {len(names)} columns: {', '.join(names)}.")
    return {name: _cell(where, name, text) for name, text in zip(names, row, strict=True) if text}


def _cell(where: str, name: str, text: str) -> Any:
    if name in _JSON_COLUMNS:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as e:
            raise ValueError(f'{where}: "{name}" is not valid JSON ({e}).') from None
    if name != "label" or not text.isascii():
        return text
    return int(text) if text.isdigit() else float(text) if _FRACTION.fullmatch(text) else text
