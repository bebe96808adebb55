"""Exported models give in onnxruntime what they give here, for the sizes they were exported with and for others."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")

import votive  # noqa: E402
from votive import nn  # noqa: E402
from votive.nn import functional as F  # noqa: E402
from votive.onnx import OnnxExporterError, export, load  # noqa: E402
from votive.onnx.export import _tensors  # noqa: E402
from votive.onnx.load import from_proto  # noqa: E402

r = votive.randn


def run(program: Any, args: tuple[Any, ...]) -> list[np.ndarray[Any, Any]]:
    """The results of onnxruntime, or where it is missing those of our own reader."""
    try:
        import onnxruntime
    except ImportError:
        return [t.detach().numpy() for t in _tensors(from_proto(program.model_proto)(*args))]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString(), options)
    feeds = {i.name: t.numpy() for i, t in zip(session.get_inputs(), args, strict=True)}
    return list(session.run(None, feeds))


def agree(model: Any, args: Any, *others: Any, tolerance: float = 1e-4, **options: Any) -> Any:
    """Export with some arguments, compare with those and with others."""
    if isinstance(model, nn.Module):
        model.eval()
    program = export(model, args, **options)
    for given in (args, *others):
        values = given if isinstance(given, tuple) else (given,)
        with votive.no_grad():
            wanted = _tensors(model(*values))
        flat = tuple(_tensors(values))
        read = _tensors(from_proto(program.model_proto)(*flat))
        for found in (run(program, flat), [t.detach().numpy() for t in read]):
            assert len(found) == len(wanted)
            for f, w in zip(found, wanted, strict=True):
                assert (f.shape, f.dtype) == (w.shape, w.numpy().dtype)
                np.testing.assert_allclose(f, w.numpy(), rtol=tolerance, atol=tolerance)
    return program


class Picture(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.BatchNorm2d(8)
        self.pool, self.end = nn.MaxPool2d(2, 2, ceil_mode=True), nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        x = self.pool(F.relu(self.norm(self.conv(x))))
        return self.end(F.adaptive_avg_pool2d(x, 1).flatten(1))


def everything(x: Any) -> Any:
    """Operators of many families."""
    y = x.clone()
    y[:, 1:3] = 0
    y[0] += 1
    y.mul_(2)
    rows, columns = x.new_tensor([0, 1]).long(), x.new_tensor([1, 2]).long()
    return (
        y,
        x.cumsum(1),
        x.topk(2)[0],
        x.sort(1)[1],
        x.argmax(1),
        x.argmin(),
        x.var(1),
        x.std(),
        x.norm(dim=1),
        x.norm(p=3),
        votive.where(x > 0.5, x, -x),
        x.flip(1),
        x.roll(1, 1),
        F.pad(x, (1, 2)),
        F.pad(x[None], (1, 1), mode="reflect"),
        x.T @ x,
        x.unfold(1, 2, 1),
        x[[0, 1]][:, [1, 0]],
        x[rows, columns],
        x.gather(1, x.argsort(1)),
        x.scatter(1, x.argsort(1), 0.0),
        x.log1p(),
        x.expm1(),
        x.floor_divide(0.3),
        x % 0.3,
        x.clamp(-0.5, 0.5),
        x.logsumexp(1),
        (x > 0.5).any(1),
        (x > 0).all(),
        x.tril(),
        x.triu(1),
        x.diagonal(),
        x.round(),
        x.long() % 3,
        x.half() + 1,
        x.prod(1),
        x.amax(0),
        x.max(1)[1],
        x.min(1)[0],
        x.index_select(1, columns),
        x.index_add(0, rows, x[:2]),
        x.masked_fill(x > 0.5, 2.0),
        x.repeat(2, 1),
        x.chunk(2, 1)[1],
        votive.stack([x, x], 1),
        votive.cat([x, x], -1),
        x.expand(2, 3, 4),
        x.squeeze(),
        x[..., None],
        x[::2, 1:],
        x.bool().int(),
        votive.arange(3) + x[0, 0].long(),
        votive.eye(3),
        votive.full((2, 2), 0.5) * x[0, 0],
        x.new_zeros(2, 3),
        x.trunc(),
        votive.einsum("ij,kj->ik", x, x),
        F.normalize(x),
        F.softmax(x, 0),
        F.log_softmax(x, 1),
        x.pow(1.5),
        x.rsqrt(),
        x.sinc(),
        F.cross_entropy(x, rows.new_tensor([0, 1, 2])),
        votive.atan2(x, x - 0.5),
        x.logical_not(),
        x.count_nonzero(1),
        x.nan_to_num(),
        x.frac(),
        x.square().sum((0, 1)),
    )


ACTIVATIONS = (
    nn.ELU(),
    nn.SELU(),
    nn.CELU(),
    nn.Hardswish(),
    nn.Hardsigmoid(),
    nn.Mish(),
    nn.SiLU(),
    nn.Softplus(),
    nn.LeakyReLU(),
    nn.Hardtanh(),
    nn.Softsign(),
    nn.GELU(),
    nn.GELU("tanh"),
    nn.ReLU6(),
    nn.Tanhshrink(),
    nn.Softshrink(),
    nn.LogSigmoid(),
    nn.Threshold(0.1, 20.0),
    nn.PReLU(),
    nn.Hardshrink(),
    nn.GLU(),
)

CASES: dict[str, Callable[[], Any]] = {
    "linear": lambda: agree(nn.Linear(3, 4), r(2, 3), r(7, 3), dynamic_axes={"input": {0: "rows"}}),
    "mlp": lambda: agree(
        nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.LayerNorm(4), nn.Linear(4, 2), nn.Softmax(-1)),
        r(2, 5, 3),
        r(4, 9, 3),
        dynamic_axes={"input": [0, 1]},
    ),
    "picture": lambda: agree(
        Picture(), r(2, 3, 15, 15), r(3, 3, 20, 23), dynamic_shapes={"x": {0: "n", 2: "h", 3: "w"}}
    ),
    "lstm": lambda: agree(
        nn.LSTM(3, 4, 2, bidirectional=True), r(6, 2, 3), r(9, 3, 3), dynamic_axes={"input": {0: "t", 1: "b"}}
    ),
    "lstm with a state": lambda: agree(nn.LSTM(3, 4), (r(6, 2, 3), (r(1, 2, 4), r(1, 2, 4)))),
    "gru": lambda: agree(nn.GRU(3, 4, batch_first=True), r(2, 6, 3), r(3, 9, 3), dynamic_axes={"input": [0, 1]}),
    "rnn": lambda: agree(nn.RNN(3, 4, nonlinearity="relu", bias=False), r(2, 6, 3)),
    "transformer": lambda: agree(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        r(2, 5, 8),
        r(3, 7, 8),
        dynamic_axes={"src": {0: "b", 1: "t"}},
    ),
    "activations": lambda: [agree(a, r(3, 4), r(5, 4), dynamic_axes={"input": {0: "b"}}) for a in ACTIVATIONS],
    "everything": lambda: agree(everything, votive.rand(3, 4) * 2 + 0.01),
    "resizing": lambda: agree(
        nn.Sequential(
            nn.Upsample(scale_factor=2, mode="bilinear"),
            nn.Upsample(scale_factor=2),
            nn.Upsample(size=(9, 11), mode="bicubic"),
            nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1),
            nn.GroupNorm(2, 4),
            nn.InstanceNorm2d(4),
            nn.PixelShuffle(2),
            nn.AvgPool2d(3, 2, 1),
            nn.AdaptiveAvgPool2d((3, 4)),
            nn.LocalResponseNorm(2),
        ),
        r(1, 3, 5, 6),
        r(2, 3, 5, 6),
        dynamic_axes={"input": {0: "b"}},
    ),
    "lines and volumes": lambda: [
        agree(nn.Sequential(nn.Conv1d(2, 4, 3), nn.MaxPool1d(2), nn.BatchNorm1d(4)), r(2, 2, 9)),
        agree(nn.Sequential(nn.Conv3d(1, 2, 2), nn.AvgPool3d(2)), r(1, 1, 5, 5, 5)),
    ],
    "words": lambda: agree(
        nn.Sequential(nn.Embedding(10, 4), nn.RMSNorm(4)),
        votive.tensor([[1, 2, 3]]),
        votive.tensor([[1, 2, 3, 4], [0, 9, 8, 7]]),
        dynamic_axes={"input": {0: "b", 1: "t"}},
    ),
    "grid": lambda: agree(F.grid_sample, (r(1, 2, 4, 4), votive.rand(1, 3, 3, 2) * 2 - 1)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_a_file_computes_what_the_model_computes(name: str) -> None:
    votive.manual_seed(0)
    assert CASES[name]()


def test_language_models_can_be_exported_for_any_length() -> None:
    from votive.models import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    sizes = {
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    }
    models: list[Any] = [
        GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=8, vocab_size=20, n_positions=32)),
        LlamaForCausalLM(LlamaConfig(vocab_size=20, **sizes)),
    ]
    for model in models:
        model.eval()

        def logits(ids: Any, model: Any = model) -> Any:
            return model(ids).logits

        short, long = votive.randint(0, 20, (1, 4)), votive.randint(0, 20, (3, 9))
        agree(logits, short, long, dynamic_axes={"ids": {0: "b", 1: "t"}})


def test_weights_bear_their_names_and_results_theirs(tmp_path: Any) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).eval()
    export(model, r(1, 3), tmp_path / "m.onnx", input_names=["x"], output_names=["y"], external_data=True)
    assert (tmp_path / "m.onnx.data").exists()
    read = load(tmp_path / "m.onnx")
    assert (read.input_names, read.output_names) == (["x"], ["y"])
    assert {"0.weight", "0.bias", "1.weight", "1.bias"} <= set(dict(read.named_parameters()))
    x = r(1, 3)
    assert votive.allclose(read(x=x), model(x), atol=1e-6)


def test_verify_runs_the_file_beside_the_model() -> None:
    program = export(nn.Linear(3, 4).eval(), r(2, 3), verify=True)
    assert "Gemm" in [n.op_type for n in program.model_proto.graph.node]
    assert program(r(2, 3)).shape == (2, 4)


@pytest.mark.parametrize(
    ("model", "args", "options", "says"),
    [
        (lambda x: x * float(x.sum()), r(3), {}, "looks at the numbers"),
        (lambda x: x if x.shape[0] > 4 else x * 2, r(3), {"dynamic_axes": {"x": [0]}}, "another way for other sizes"),
        (lambda x: votive.linalg.svd(x)[0], r(3, 3), {}, "svd"),
        (lambda x: votive.polar(x, x).real, r(4), {}, "complex"),
        (lambda x: x, r(3), {"opset_version": 7}, "opset_version"),
        (lambda x: x, r(3), {"input_names": ["a", "b"]}, "input_names"),
    ],
)
def test_what_cannot_be_written_is_refused(model: Any, args: Any, options: Any, says: str) -> None:
    with pytest.raises(OnnxExporterError, match=says):
        export(model, args, **options)


def test_models_in_training_mode_are_refused() -> None:
    with pytest.warns(UserWarning, match="training mode"), pytest.raises(OnnxExporterError, match="eval"):
        export(nn.Dropout(0.5), r(3))


def test_open_files_and_buffers_are_written_to() -> None:
    buffer, layer = io.BytesIO(), nn.Linear(3, 2).eval()
    export(layer, (votive.ones(1, 3),), buffer)
    x = votive.randn(4, 3)[:1]
    loaded = from_proto(onnx.load_from_string(buffer.getvalue()))
    assert votive.allclose(loaded(x), layer(x), atol=1e-6)
    with pytest.raises(OnnxExporterError, match="need a file's name"):
        export(layer, (x,), io.BytesIO(), external_data=True)
