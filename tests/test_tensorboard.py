"""Files for TensorBoard: what its own reader finds in them, and the same messages as torch's writer makes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests import docstrings
from votive.utils.tensorboard import SummaryWriter, pictures, records, writer

DOCS = docstrings.examples([records, writer])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


def _draw(lib: Any, *shape: int) -> Any:
    return lib.tensor(np.random.default_rng(0).random(shape).astype("f4"))


PROGRAMS: dict[str, Callable[[Any, Any], None]] = {
    "scalar": lambda w, lib: [w.add_scalar("a/b", lib.tensor(0.5 * i), i, walltime=1.5) for i in range(3)],
    "new style": lambda w, lib: w.add_scalar("a", 0.25, 7, 2.0, new_style=True),
    "double": lambda w, lib: w.add_scalar("a", 0.1, 7, 2.0, new_style=True, double_precision=True),
    "negative": lambda w, lib: w.add_scalar("a", -3, 2**40, 2.0),
    "histogram": lambda w, lib: w.add_histogram("h", _draw(lib, 50) - 0.3, 3, walltime=1.0),
    "histogram bins": lambda w, lib: w.add_histogram("h", _draw(lib, 50), 3, bins="auto", walltime=1.0),
    "histogram few bins": lambda w, lib: w.add_histogram("h", _draw(lib, 50), 3, walltime=1.0, max_bins=64),
    "histogram raw": lambda w, lib: w.add_histogram_raw("h", 0.0, 1.0, 3, 1.5, 0.9, [0.5, 1.0], [1, 2], 1, 1.0),
    "text": lambda w, lib: w.add_text("t", "some *text*: äöü", 2, walltime=1.0),
    "tensor": lambda w, lib: w.add_tensor("x", _draw(lib, 2, 3), 2, walltime=1.0),
    "curve": lambda w, lib: w.add_pr_curve("p", lib.tensor([0, 1, 1, 0]), _draw(lib, 4), 1, walltime=1.0),
    "layout": lambda w, lib: w.add_custom_scalars(
        {"c": {"one": ["Multiline", ["x", "y"]], "two": ["Margin", ["a", "b", "c"]]}}
    ),
    "purge": lambda w, lib: None,
}


def events(folder: Path) -> list[Any]:
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    found = []
    for path in sorted(folder.rglob("events*")):
        found += list(loader.RawEventFileLoader(str(path)).Load())
    proto = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    return [proto.Event.FromString(raw) for raw in found]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_messages_are_those_of_torchs_writer(name: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("torch.utils.tensorboard")
    given = {"purge_step": 5} if name == "purge" else {}
    for lib, cls in ((votive, SummaryWriter), (torch, theirs.SummaryWriter)):
        with cls(tmp_path / lib.__name__, **given) as w:
            PROGRAMS[name](w, lib)
    mine, other = events(tmp_path / "votive"), events(tmp_path / "torch")
    other = other[:1] + [e for e in other[1:] if not e.file_version]  # torch's says its version again before a purge
    assert len(mine) == len(other)
    for a, b in zip(mine, other, strict=True):
        for one in (a, b):
            if one.wall_time > 1e6:
                one.wall_time = 0
            one.ClearField("source_metadata")
        assert a == b


def test_tensorboards_reader_shows_everything(tmp_path: Path) -> None:
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    picture = votive.tensor(np.random.default_rng(0).integers(0, 255, (3, 4, 5), dtype=np.uint8))
    with SummaryWriter(tmp_path) as w:
        for i in range(25):
            w.add_scalar("loss", votive.tensor(1.0 / (i + 1), dtype=votive.bfloat16), i)
        w.add_image("img", picture, 1)
        w.add_images("many", picture.float().unsqueeze(0).repeat(9, 1, 1, 1) / 255, 2)
        w.add_image("gray", np.zeros((4, 5)), 1, dataformats="HW")
        w.add_audio("sound", votive.linspace(-1, 1, 100), 1, sample_rate=8000)
        w.add_hparams(
            {"lr": 0.1, "net": "a", "bias": True, "n": 3}, {"accuracy": 0.5}, {"net": ["a", "b"]}, run_name="r"
        )
        w.add_scalars("both", {"x": 1.0, "y": 2.0}, 4)
    found = accumulators.EventAccumulator(str(tmp_path), size_guidance={accumulators.SCALARS: 0})
    found.Reload()
    tags = found.Tags()
    assert tags["scalars"] == ["loss"]
    assert [e.step for e in found.Scalars("loss")] == list(range(25))
    image = found.Images("img")[0]
    assert (image.width, image.height) == (5, 4)
    assert found.Images("many")[0].width == 40
    assert found.Audio("sound")[0].sample_rate == 8000
    run = accumulators.EventAccumulator(str(tmp_path / "r"))
    run.Reload()
    assert run.Scalars("accuracy")[0].value == 0.5
    plugin = pytest.importorskip("tensorboard.plugins.hparams.plugin_data_pb2")
    content = run.PluginTagToContent("hparams")
    started = plugin.HParamsPluginData.FromString(content["_hparams_/session_start_info"]).session_start_info
    assert {k: v.WhichOneof("kind") for k, v in started.hparams.items()} == {
        "lr": "number_value",
        "net": "string_value",
        "bias": "bool_value",
        "n": "number_value",
    }
    info = plugin.HParamsPluginData.FromString(content["_hparams_/experiment"]).experiment
    assert sorted(h.name for h in info.hparam_infos) == ["bias", "lr", "n", "net"]
    assert sorted(os.listdir(tmp_path / "both_x"))


def test_pictures_are_whole_png_files() -> None:
    image = pytest.importorskip("PIL.Image")
    import io

    pixels = np.random.default_rng(0).integers(0, 255, (6, 7, 3), dtype=np.uint8)
    assert (np.asarray(image.open(io.BytesIO(pictures.png(pixels)))) == pixels).all()


def test_vectors_for_the_projector_are_written(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as w:
        w.add_embedding(votive.eye(3), ["a", "b", "c"], votive.ones(3, 3, 4, 5), global_step=2, tag="t")
    assert (tmp_path / "00002/t/metadata.tsv").read_text() == "a\nb\nc\n"
    assert np.allclose(np.loadtxt(tmp_path / "00002/t/tensors.tsv"), np.eye(3))
    assert "sprite.png" in (tmp_path / "projector_config.pbtxt").read_text()
    with pytest.raises(AssertionError, match="#labels"):
        w.add_embedding(votive.eye(3), ["a"])


def test_what_is_not_written_says_so(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as w:
        with pytest.raises(NotImplementedError, match=r"votive\.onnx"):
            w.add_graph(None)
        with pytest.raises(NotImplementedError, match="add_images"):
            w.add_video("v", votive.ones(1, 2, 3, 4, 5))
        with pytest.raises(AssertionError, match="0D"):
            w.add_scalar("a", votive.ones(2))
