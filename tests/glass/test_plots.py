"""Pictures: well-formed, escaped, with every number in its place."""

from __future__ import annotations

import copy
import dataclasses
import math
import struct
import zlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import votive
from tests import tiny_sizes
from votive import glass
from votive.glass.canvas import Canvas
from votive.glass.heatmap import RISING, SIGNED, Heatmap, colour_of

from .decoders import decoder
from .test_saliency import Convs
from .test_sweep import metric, texts

SVG = "{http://www.w3.org/2000/svg}"


def pixels(png: bytes) -> Any:
    """The picture in a PNG file of our own making."""
    width, height = struct.unpack(">II", png[16:24])
    at, data = 8, b""
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + size]
        at += 12 + size
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + 3 * width)
    return rows[:, 1:].reshape(height, width, 3)


def texts_in(svg: str) -> list[str]:
    return [t.text or "" for t in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_heat_map_has_a_cell_for_each_number_and_names_beside_them() -> None:
    picture = glass.Heatmap(
        [[0.0, 1.0], [math.nan, 0.5]],
        ["a", "b"],
        ["<x>", 'y & "z"'],
        title="t & t",
        x_name="col",
        y_name="row",
        legend="share",
    )
    root = ElementTree.fromstring(picture.svg())
    cells = [r for r in root.iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None]
    assert [c.get("fill") for c in cells] == [RISING[0], RISING[-1], "#9a9a9a", colour_of(0.5, RISING)]
    assert cells[0].find(f"{SVG}title").text == "a, <x>: 0"  # type: ignore[union-attr]
    found = texts_in(picture.svg())
    for name in ("a", "b", "<x>", 'y & "z"', "t & t", "col", "row", "share"):
        assert name in found, name
    assert {"0", "0.5", "1"} <= set(found)  # the scale
    assert picture.to_dict()["rows"] == ["a", "b"]
    with pytest.raises(ValueError, match="1 x 2 values"):
        glass.Heatmap([[1.0, 2.0]], ["a"], ["b"])


def test_signed_colours_are_centred_at_zero() -> None:
    picture = glass.Heatmap([[-1.0, 0.0, 4.0]], ["a"], ["x", "y", "z"], signed=True)
    assert picture.bounds() == (-4.0, 4.0)
    root = ElementTree.fromstring(picture.svg())
    cells = [r.get("fill") for r in root.iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None]
    assert cells == [colour_of(3 / 8, SIGNED), SIGNED[2], SIGNED[4]]


def test_a_png_has_the_colours_of_the_svg_at_the_same_places() -> None:
    picture = glass.Heatmap([[0.0, 1.0]], ["a"], ["x", "y"])
    root = ElementTree.fromstring(picture.svg())
    canvas = pixels(picture.png())
    assert canvas.shape[:2] == (float(root.get("height")), float(root.get("width")))  # type: ignore[arg-type]
    for r in root.iter(f"{SVG}rect"):
        if r.find(f"{SVG}title") is None:
            continue
        x = float(r.get("x")) + float(r.get("width")) / 2  # type: ignore[arg-type]
        y = float(r.get("y")) + 3  # type: ignore[arg-type]
        colour = "#" + "".join(f"{v:02x}" for v in canvas[int(y), int(x)])
        assert colour == r.get("fill")


def test_letters_that_stand_upright_are_drawn_upwards() -> None:
    flat, turned = Canvas(60, 60), Canvas(60, 60)
    flat.text(30, 30, "L", "middle")
    turned.text(30, 30, "L", "middle", upright=True)
    dark = [(pixels(p.png()) < 128).all(-1) for p in (flat, turned)]
    assert dark[0].sum() == dark[1].sum() > 0
    rows, columns = np.nonzero(dark[0])
    up_rows, up_columns = np.nonzero(dark[1])
    assert np.ptp(rows) > np.ptp(columns)
    assert np.ptp(up_rows) < np.ptp(up_columns)
    assert abs(rows.mean() - up_rows.mean()) < 4


def test_pictures_are_readable_on_white_and_on_black() -> None:
    """Letters outside of cells are a grey with contrast 4 to both; SVG paints no background."""

    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        lin = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * lin[0] + 0.7152 * lin[1] + 0.0722 * lin[2]

    svg = glass.Bars([1.0, -2.0], ["a", "b"], title="t").svg()
    assert "100%" not in svg
    inks = {t.get("fill") or "" for t in ElementTree.fromstring(svg).iter(f"{SVG}text")}
    assert inks
    for ink in inks:
        assert 1.05 / (light(ink) + 0.05) > 4
        assert (light(ink) + 0.05) / 0.05 > 4


def test_lines_and_bars_show_their_numbers() -> None:
    lines = glass.Lines({"a": [1.0, 2.0, 4.0], "b": [3.0, 3.0, math.nan]}, ["p", "q", "<r>"])
    root = ElementTree.fromstring(lines.svg())
    marks = [r.find(f"{SVG}title").text for r in root.iter(f"{SVG}rect")]  # type: ignore[union-attr]
    assert marks == ["a", "a", "a", "b", "b"]
    assert {"a", "b", "p", "q", "<r>"} <= set(texts_in(lines.svg()))
    bars = glass.Bars([1.0, -0.5], ["one", "two"])
    widths = [float(r.get("width")) for r in ElementTree.fromstring(bars.svg()).iter(f"{SVG}rect")]  # type: ignore[arg-type]
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.2)
    assert {"one", "two", "1", "-0.5"} <= set(texts_in(bars.svg()))


def quantized() -> Any:
    sizes = tiny_sizes.transformer(32, 32, layers=2, heads=2, vocab=32)
    model = votive.models.LlamaForCausalLM(votive.models.LlamaConfig(**sizes))
    made = copy.deepcopy(model)
    votive.quantize_(made, "q8_0")
    return glass.quantization_error(made, model, votive.arange(8)[None], each=True)


def results() -> dict[str, tuple[Any, list[Any]]]:
    model, ids = decoder("llama")
    words = ["<b>", *(f" &{i}" for i in range(60))]
    x = votive.randn(1, 1, 8, 8, generator=votive.Generator().manual_seed(0))
    votive.manual_seed(0)
    given = {"tokenizer": words}
    return {
        "lens": (glass.logit_lens(model, ids, target=3, **given), ["probability", "entropy", "kl", "rank"]),
        "attribution": (glass.logit_attribution(model, ids, target=3), ["top", "heads"]),
        "maps": (
            glass.attention_maps(model, ids, **given),
            ["entropy", "distance", "previous", "induction", "duplicate", "first"],
        ),
        "map": (glass.attention_maps(model, ids, **given)[0], [0, 1]),
        "sweep": (
            glass.sweep(model, *texts(ids), metric=metric, estimate=True, **given),
            ["values", "recovered", "estimate"],
        ),
        "saliency": (glass.saliency(model, ids, target=3, **given), []),
        "quantized": (quantized(), ["stream", "weight", "kl", "output"]),
        "statistics": (glass.layer_statistics(model, ids), ["histogram", "growth", "mean", "std", "norm"]),
        "gradients": (
            glass.gradient_times_activation(model, ids, at="layers.*", metric=lambda out: out.logits[:, -1, 3]),
            ["totals", "norms", "gradient_norms"],
        ),
        "cam": (glass.grad_cam(Convs(), x), [0]),
    }


RESULTS = results()


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_every_result_is_drawn_and_told(name: str, tmp_path: Path) -> None:
    result, kinds = RESULTS[name]
    for args in [(), *((k,) for k in kinds)]:
        svg = result.svg(*args)
        ElementTree.fromstring(svg)
        assert texts_in(svg)
        assert (pixels(result.png(*args)) < 255).any()
    result.save(tmp_path / "a.svg")
    result.save(tmp_path / "a.PNG")
    assert (tmp_path / "a.svg").read_text() == result.svg()
    assert (tmp_path / "a.PNG").read_bytes() == result.png()
    assert result._repr_svg_() == result.svg()
    with pytest.raises(ValueError, match=r"\.svg or \.png"):
        result.save(tmp_path / "a.pdf")


@pytest.mark.parametrize("name", sorted(set(RESULTS) - {"map"}))
def test_every_result_has_its_data_as_plain_values(name: str) -> None:
    import json

    result = RESULTS[name][0].to_dict()
    assert json.loads(json.dumps(result))


@pytest.mark.parametrize(
    ("name", "what"),
    [("lens", "x"), ("attribution", "x"), ("maps", "x"), ("sweep", "x"), ("statistics", "x"), ("gradients", "x")],
)
def test_a_figure_that_does_not_exist_is_refused(name: str, what: str) -> None:
    with pytest.raises(ValueError, match="'x'"):
        RESULTS[name][0].svg(what)


def test_tokens_stand_at_the_axes_of_attention() -> None:
    found = texts_in(RESULTS["map"][0].svg())
    assert found.count("·&4") >= 2  # as a query and as a key


def test_a_long_text_has_narrow_cells_and_fewer_names() -> None:
    wide = glass.Heatmap([[float(i) for i in range(300)]], ["a"], [str(i) for i in range(300)])
    found = texts_in(wide.svg())
    assert "298" in found
    assert "297" not in found
    assert pixels(wide.png()).shape[1] < 3400


def test_marks_stand_in_place_of_names_wherever_there_is_room() -> None:
    names = [f"{i} ms" for i in range(100)]
    marks = ["" if i % 9 else str(i) for i in range(100)]
    picture = Heatmap(
        [[float(i) for i in range(100)]] * 2, ["low", "high"], names, column_marks=marks, row_marks=["", "8 kHz"]
    )
    drawn = picture.svg()
    texts = list(ElementTree.fromstring(drawn).iter(f"{SVG}text"))
    written = [t.text for t in texts]
    below = [t for t in texts if t.get("text-anchor") == "middle" and t.get("transform") is None]
    assert [t.text for t in below if t.text] == [m for m in marks if m]  # none needs to be upright
    assert "8 kHz" in written
    assert "low" not in written
    assert "low, 7 ms: 7" in drawn  # what is pointed at has its name
    small = picture.within(2, 50)
    assert (small.columns[0], small.column_marks[:6]) == ("0 ms … 1 ms", ["0", "", "", "", "9", ""])
    with pytest.raises(ValueError, match="100 names have 2 marks"):
        dataclasses.replace(picture, column_marks=["a", "b"])
