"""Cases of `benchmarks.cliffs` follow from a seed, are read as written, and agree with torch; nothing is timed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cliffs.__main__ import cases, parse
from benchmarks.cliffs.check import distance
from benchmarks.cliffs.family import case, families
from benchmarks.cliffs.measure import Result
from benchmarks.cliffs.report import by_kind, record, row, summary
from benchmarks.cliffs.side import Side, leaves_of, work_of
from benchmarks.cliffs.spec import Layout, Spec


def test_a_seed_gives_the_same_cases_and_another_one_others() -> None:
    drawn = [[str(case(i, seed, "cpu")) for i in range(40)] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_case_is_read_as_it_was_written() -> None:
    for i in range(200):
        spec = case(i, 3, "cpu")
        assert str(Spec.parse(str(spec))) == str(spec)
        assert dict(Spec.parse(str(spec)).params) == dict(spec.params)


def test_every_kind_has_its_turn() -> None:
    cards = sum(f.weight for f in families().values())
    assert {case(i, 5, "cpu").kind for i in range(cards)} == set(families())


def test_a_filter_and_a_count_choose_cases() -> None:
    chosen = list(cases(parse(["cpu", "--count", "5", "--filter", "^softmax.*bfloat16"])))
    assert [s.kind for s in chosen] == ["softmax"] * 5
    assert list(cases(parse(["cpu", "--case", str(chosen[0])]))) == chosen[:1]


def test_layouts_hold_what_they_say() -> None:
    torch = pytest.importorskip("torch")
    side = Side(torch, "cpu", Spec("unary", "abs", "float32", False))
    assert side.plain("4x5x6:p201").permute(2, 0, 1).is_contiguous()
    assert side.plain("2x3x4x5:cl").is_contiguous(memory_format=torch.channels_last)
    assert side.plain("4x6:s").stride() == (12, 2)
    assert side.plain("4x6:w").stride() == (9, 1)
    assert side.plain("4x6:e").stride() == (0, 1)
    assert side.plain("scalar").shape == ()
    assert str(Layout.parse("4x6:w")) == "4x6:w"


@pytest.mark.parametrize("kind", families())
def test_votive_runs_small_cases_of_every_kind_as_torch_does(kind: str) -> None:
    torch = pytest.importorskip("torch")
    import votive
    from benchmarks.cliffs.check import disagreement

    family = families()[kind]
    args = parse(["cpu", "--count", "6", "--filter", rf"^{kind}\.", "--scale", "tiny", "--seed", "11"])
    for spec in cases(args):
        results = []
        for m in (votive, torch):
            side = Side(m, "cpu", spec)
            results.append(work_of(side, family.build(side))())
            assert leaves_of(results[-1]), spec
        found = disagreement(spec, family, *results, lambda spec=spec: Side(torch, "cpu", spec, exact=True))
        assert not found, f"{spec}: {found}"


def test_distances_see_shapes_numbers_and_what_is_no_number() -> None:
    a = np.array([1.0, 2.0])
    assert distance([a], [a]) == 0.0
    assert distance([a], [a + 0.2]) == pytest.approx(0.2 / 2.2)
    assert distance([a], [a[:1]]) == math.inf
    assert distance([a], [np.array([1.0, np.nan])]) == math.inf
    assert distance([], [a]) == math.inf


def test_a_report_counts_what_is_slow_failed_or_differs(tmp_path: Path) -> None:
    spec = Spec.parse("softmax.softmax float32 forward x=3x4 dim=1")
    results = [
        Result(spec, 1.0, 2.0, 0.5, ratios=[0.5]),
        Result(spec, 8.0, 1.0, 8.0, differs="differs by 1", ratios=[9.0, 8.0]),
        Result(spec, failed="RuntimeError: no"),
    ]
    text = summary(results, 10)
    assert "2 cases: geometric mean 2.000, total time 3.00 of torch's, 50.0 % above 1.2" in text
    assert "DIFFERS: differs by 1" in text
    assert "RuntimeError: no" in row(results[2])
    assert by_kind(results).splitlines()[-1].split()[:3] == ["all", "2", "2.00"]
    path = tmp_path / "found.json"
    path.write_text(json.dumps({"rows": [record(r) for r in results]}))
    again = list(cases(parse(["cpu", "--again", str(path)])))
    assert again == [spec, spec]
