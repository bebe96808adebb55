"""Histories survive their file; charts are valid pictures that show what was recorded."""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from votive.train import History, chart, png, sparkline


def recorded(losses: list[float]) -> History:
    history = History()
    for i, loss in enumerate(losses, 1):
        history.add(step=i, epoch=0, loss=loss, lr=0.1, grad_norm=None)
    return history


def pixels(raw: bytes) -> Any:
    """A PNG decoded with nothing but its specification."""
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    at, data, size = 8, b"", (0, 0)
    while at < len(raw):
        (n,) = struct.unpack(">I", raw[at : at + 4])
        kind, body = raw[at + 4 : at + 8], raw[at + 8 : at + 8 + n]
        (check,) = struct.unpack(">I", raw[at + 8 + n : at + 12 + n])
        assert zlib.crc32(kind + body) == check
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert (depth, colour) == (8, 2)
            size = (height, width)
        elif kind == b"IDAT":
            data += body
        at += 12 + n
    assert kind == b"IEND"
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(size[0], 1 + 3 * size[1])
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(*size, 3)


def test_a_history_survives_its_file_with_every_kind_of_number(tmp_path: Path) -> None:
    history = recorded([0.1 + 0.2, math.inf, -math.inf, 5e-324])
    history.add(step=5, epoch=1, loss=1.0, lr=0.1, late=3.0)
    history.add(step=6, epoch=1, loss=1.0, lr=0.1)
    history.add_eval(6, {"loss": 2.0, "accuracy": 0.5})
    assert history["late"] == [None, None, None, None, 3.0, None]
    history.save(tmp_path / "h.json")
    assert History.load(tmp_path / "h.json") == history
    other = History()
    other.load_state_dict(history.state_dict())
    assert other == history
    assert other != recorded([1.0])
    nan = recorded([math.nan])
    nan.save(tmp_path / "h.json")
    assert math.isnan(History.load(tmp_path / "h.json")["loss"][0])


@pytest.mark.parametrize(
    "losses",
    [[], [1.0], [2.0, 2.0], [0.0], [math.nan, 1.0], [1e-9, 1e9], [-5.0, 3.0], [float(i % 7) for i in range(5000)]],
    ids=["none", "one", "flat", "zero", "nan", "wide", "signs", "long"],
)
@pytest.mark.parametrize("log", [False, True])
def test_any_curve_can_be_drawn(losses: list[float], log: bool, tmp_path: Path) -> None:
    history = recorded(losses)
    history.add_eval(max(1, len(losses)), {"loss": 1.5})
    for name in ("a.svg", "a.png"):
        history.plot(tmp_path / name, title="A & B <1>", log=log)
    root = ElementTree.fromstring((tmp_path / "a.svg").read_text())
    assert root.tag.endswith("svg")
    text = [e.text for e in root.iter() if e.tag.endswith("text")]
    assert {"A & B <1>", "step", "loss", "eval loss"} <= set(text)
    box = [float(v) for v in root.attrib["viewBox"].split()]
    for line in root.iter("{http://www.w3.org/2000/svg}polyline"):
        for pair in line.attrib["points"].split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= box[2]
            assert 0 <= y <= box[3]
    assert (tmp_path / "a.svg").stat().st_size < 60_000
    assert pixels((tmp_path / "a.png").read_bytes()).shape == (450, 800, 3)


def test_a_picture_shows_the_curve_where_it_belongs() -> None:
    made = chart.build([chart.Curve("falls", [0, 10], [1.0, 0.0])])
    shown = pixels(png.draw(made)).astype(int)
    colour = np.array([int(chart.COLOURS[0][i : i + 2], 16) for i in (1, 3, 5)])
    near = np.abs(shown - colour).sum(axis=2) < 60
    rows, columns = np.nonzero(near[60:])  # below the legend
    left, right = rows[columns < 200].mean(), rows[columns > 600].mean()
    assert left < right
    assert (made.x.place(0), made.x.place(10)) == (made.x.start, made.x.end)


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.svg or \.png"):
        recorded([1.0]).plot(tmp_path / "a.jpg")


def test_thinning_keeps_spikes_and_order() -> None:
    points = [(float(i), 0.0) for i in range(10_000)]
    points[4321] = (4321.0, 9.0)
    points[4400] = (4400.0, -9.0)
    xs, ys = chart.thin(points)
    assert len(xs) <= 1001
    assert xs == sorted(xs)
    assert (max(ys), min(ys)) == (9.0, -9.0)


@pytest.mark.parametrize(("low", "high"), [(0.13, 0.97), (-4e5, 7e6), (1e-12, 3e-12), (5, 5), (-2, -1)])
def test_axes_cover_their_values_with_few_round_ticks(low: float, high: float) -> None:
    axis = chart.axis([low, high], 0, 100)
    assert axis.low <= low <= high <= axis.high
    assert 3 <= len(axis.ticks) <= 9
    assert (axis.place(axis.low), axis.place(axis.high)) == (0, 100)


def test_a_sparkline_has_one_block_per_value_up_to_its_width() -> None:
    assert sparkline([]) == ""
    assert sparkline([math.nan]) == ""
    assert sparkline([1, 1]) == "▁▁"
    assert sparkline([0, 7, math.inf, 3.5]) == "▁█▅"
    assert sparkline(list(range(100)), width=8) == "▁▂▃▄▅▆▇█"
