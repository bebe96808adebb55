"""Files stay short enough to be read in a sitting: past 450 lines there is a second idea in one."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MOST = 450
SOURCES = {".py", ".cpp", ".h", ".js", ".css"}
FOLDERS = ("votive", "tests", "scripts", "benchmarks", "examples")


# Still to be parted. Nothing joins this list.
STANDING = {"tests/libraries/programs/more_libraries.py", "votive/studio/static/style.css"}


def too_long(root: Path) -> list[str]:
    """The files of a checkout with more lines than that; stubs are written by scripts/generate.py and do not count."""
    found = []
    for path in (p for folder in FOLDERS for p in sorted((root / folder).rglob("*"))):
        if path.suffix in SOURCES and path.is_file():
            lines = len(path.read_bytes().splitlines())
            if lines > MOST:
                found.append(f"{path.relative_to(root).as_posix()}: {lines}")
    return found


def test_no_file_has_more_than_450_lines() -> None:
    found = [line for line in too_long(ROOT) if line.split(":")[0] not in STANDING]
    assert not found, "find the second idea in each, and give that a file of its own"


@pytest.mark.parametrize(("name", "lines"), [("votive/a.py", 451), ("tests/deep/b.cpp", 900), ("votive/c.js", 460)])
def test_a_long_file_is_found(name: str, lines: int, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text("x\n" * lines)
    path.with_name("stub.pyi").write_text("x\n" * lines)
    assert too_long(tmp_path) == [f"{name}: {lines}"]
    path.write_text("x\n" * MOST)
    assert too_long(tmp_path) == []
