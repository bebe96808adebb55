"""Every layer: same text, state, values and gradients as torch's, in training and eval."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import votive
from tests import docstrings
from votive import nn

Case = tuple[str, tuple[Any, ...], dict[str, Any], tuple[Any, ...]]


def case(name: str, *args: Any, inputs: tuple[Any, ...], **kwargs: Any) -> Case:
    return (name, args, kwargs, inputs)


I = "int"  # an input of class indices
ACTIVATIONS = [
    "ReLU",
    "RReLU",
    "Hardtanh",
    "ReLU6",
    "Sigmoid",
    "Hardsigmoid",
    "Tanh",
    "SiLU",
    "Mish",
    "Hardswish",
    "ELU",
    "CELU",
    "SELU",
    "GELU",
    "Hardshrink",
    "LeakyReLU",
    "LogSigmoid",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanhshrink",
    "PReLU",
]
CASES: list[Case] = [
    *(case(n, inputs=((2, 3, 4),)) for n in ACTIVATIONS),
    case("Threshold", 0.1, 20.0, inputs=((2, 3),)),
    case("GELU", "tanh", inputs=((2, 3),)),
    case("LeakyReLU", 0.2, inplace=True, inputs=((2, 3),)),
    case("ReLU", inplace=True, inputs=((2, 3),)),
    case("GLU", inputs=((2, 4),)),
    case("PReLU", 3, init=0.1, inputs=((2, 3, 4),)),
    case("Softmax", 1, inputs=((2, 3),)),
    case("Softmin", 1, inputs=((2, 3),)),
    case("LogSoftmax", -1, inputs=((2, 3),)),
    case("Softmax2d", inputs=((2, 3, 2, 2),)),
    case("Identity", 3, unused=1, inputs=((2, 3),)),
    case("Linear", 4, 5, inputs=((2, 3, 4),)),
    case("Linear", 4, 5, bias=False, inputs=((4,),)),
    case("Bilinear", 3, 4, 2, inputs=((5, 3), (5, 4))),
    case("Flatten", inputs=((2, 3, 4),)),
    case("Unflatten", 1, (2, 3), inputs=((2, 6),)),
    case("Conv1d", 4, 6, 3, stride=2, padding=1, groups=2, inputs=((2, 4, 9),)),
    case("Conv2d", 3, 5, (3, 2), padding="same", inputs=((2, 3, 5, 5),)),
    case("Conv2d", 2, 4, 3, padding=2, dilation=2, padding_mode="circular", inputs=((2, 2, 6, 6),)),
    case("Conv2d", 2, 4, 3, padding=1, padding_mode="reflect", bias=False, inputs=((2, 5, 5),)),
    case("Conv3d", 2, 3, 2, inputs=((1, 2, 3, 3, 3),)),
    case("ConvTranspose1d", 4, 6, 3, stride=2, output_padding=1, groups=2, inputs=((2, 4, 5),)),
    case("ConvTranspose2d", 3, 2, 3, stride=2, padding=1, dilation=2, inputs=((2, 3, 4, 4),)),
    case("ConvTranspose3d", 2, 2, 2, inputs=((1, 2, 2, 2, 2),)),
    case("MaxPool1d", 2, inputs=((2, 3, 6),)),
    case("MaxPool2d", 3, 2, 1, ceil_mode=True, inputs=((2, 3, 6, 6),)),
    case("MaxPool3d", 2, inputs=((1, 2, 4, 4, 4),)),
    case("AvgPool1d", 3, 1, 1, inputs=((2, 3, 6),)),
    case("AvgPool2d", 2, count_include_pad=False, padding=1, inputs=((2, 3, 5, 5),)),
    case("AvgPool3d", 2, divisor_override=3, inputs=((1, 2, 4, 4, 4),)),
    case("LPPool1d", 2, 3, inputs=((2, 3, 6),)),
    case("LPPool2d", 2, 2, stride=1, inputs=((2, 3, 4, 4),)),
    case("AdaptiveAvgPool1d", 3, inputs=((2, 3, 7),)),
    case("AdaptiveAvgPool2d", (2, None), inputs=((2, 3, 5, 4),)),
    case("AdaptiveAvgPool3d", 2, inputs=((1, 2, 3, 4, 5),)),
    case("AdaptiveMaxPool1d", 3, inputs=((2, 3, 7),)),
    case("AdaptiveMaxPool2d", 2, inputs=((2, 3, 5, 4),)),
    case("AdaptiveMaxPool3d", 2, inputs=((1, 2, 3, 4, 5),)),
    *(
        case(f"{k}Pad{n}d", 1, inputs=((2, 3, *(4,) * n),))
        for k in ("Reflection", "Replication", "Circular", "Zero")
        for n in (1, 2, 3)
    ),
    *(case(f"ConstantPad{n}d", 1, 3.5, inputs=((2, 3, *(4,) * n),)) for n in (1, 2, 3)),
    case("BatchNorm1d", 3, inputs=((4, 3),)),
    case("BatchNorm1d", 3, momentum=None, inputs=((4, 3, 5),)),
    case("BatchNorm2d", 3, affine=False, inputs=((4, 3, 2, 2),)),
    case("BatchNorm2d", 3, track_running_stats=False, inputs=((4, 3, 2, 2),)),
    case("BatchNorm2d", 3, bias=False, inputs=((4, 3, 2, 2),)),
    case("GroupNorm", 2, 4, bias=False, inputs=((2, 4, 3),)),
    case("BatchNorm3d", 3, inputs=((4, 3, 2, 2, 2),)),
    case("InstanceNorm1d", 3, inputs=((4, 3, 5),)),
    case("InstanceNorm2d", 3, affine=True, track_running_stats=True, inputs=((4, 3, 3, 2),)),
    case("InstanceNorm3d", 3, inputs=((3, 2, 2, 2),)),
    case("LayerNorm", (3, 4), inputs=((2, 3, 4),)),
    case("LayerNorm", 4, bias=False, inputs=((2, 3, 4),)),
    case("LayerNorm", 4, elementwise_affine=False, inputs=((2, 3, 4),)),
    case("RMSNorm", 4, inputs=((2, 3, 4),)),
    case("RMSNorm", (3, 4), eps=1e-3, elementwise_affine=False, inputs=((2, 3, 4),)),
    case("GroupNorm", 2, 4, inputs=((2, 4, 3),)),
    case("LocalResponseNorm", 2, inputs=((2, 4, 3),)),
    *(
        case(n, 0.0, inputs=((2, 3, *(2,) * k),))
        for n, k in (
            ("Dropout", 0),
            ("Dropout1d", 1),
            ("Dropout2d", 2),
            ("Dropout3d", 3),
            ("AlphaDropout", 0),
            ("FeatureAlphaDropout", 1),
        )
    ),
    case("Embedding", 7, 3, inputs=((I, (2, 4), 7),)),
    case("Embedding", 7, 3, padding_idx=-1, inputs=((I, (2, 4), 7),)),
    case("EmbeddingBag", 7, 3, mode="sum", inputs=((I, (2, 4), 7),)),
    case("EmbeddingBag", 7, 3, mode="max", inputs=((I, (2, 4), 7),)),
    case("Fold", (4, 4), 2, inputs=((2, 12, 9),)),
    case("Unfold", 2, padding=1, inputs=((2, 3, 4, 4),)),
    case("PixelShuffle", 2, inputs=((2, 8, 3, 3),)),
    case("PixelUnshuffle", 2, inputs=((2, 2, 4, 4),)),
    case("ChannelShuffle", 2, inputs=((2, 4, 3, 3),)),
    case("Upsample", scale_factor=2, mode="bilinear", align_corners=False, inputs=((1, 2, 3, 3),)),
    case("Upsample", size=(5, 7), inputs=((1, 2, 3, 3),)),
    case("UpsamplingBilinear2d", scale_factor=2, inputs=((1, 2, 3, 3),)),
    case("UpsamplingNearest2d", scale_factor=2, inputs=((1, 2, 3, 3),)),
    case("CosineSimilarity", inputs=((3, 4), (3, 4))),
    case("PairwiseDistance", 1.0, keepdim=True, inputs=((3, 4), (3, 4))),
    *(case(n, inputs=((3, 4), (3, 4))) for n in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss", "PoissonNLLLoss")),
    case("MSELoss", reduction="none", inputs=((3, 4), (3, 4))),
    case("SmoothL1Loss", beta=0.5, reduction="sum", inputs=((3, 4), (3, 4))),
    case("NLLLoss", inputs=((3, 5), (I, (3,), 5))),
    case("CrossEntropyLoss", inputs=((3, 5), (I, (3,), 5))),
    case("CrossEntropyLoss", ignore_index=1, label_smoothing=0.1, inputs=((3, 5, 2), (I, (3, 2), 5))),
    case("BCEWithLogitsLoss", inputs=((3, 4), ("unit", (3, 4)))),
    case("BCELoss", inputs=(("unit", (3, 4)), ("unit", (3, 4)))),
    case("KLDivLoss", reduction="batchmean", inputs=((3, 4), ("unit", (3, 4)))),
    case("GaussianNLLLoss", inputs=((3, 4), (3, 4), ("unit", (3, 4)))),
    case("HingeEmbeddingLoss", inputs=((3, 4), ("sign", (3, 4)))),
    case("SoftMarginLoss", inputs=((3, 4), ("sign", (3, 4)))),
    case("MarginRankingLoss", 0.1, inputs=((3,), (3,), ("sign", (3,)))),
    case("CosineEmbeddingLoss", inputs=((3, 4), (3, 4), ("sign", (3,)))),
    case("MultiMarginLoss", inputs=((3, 5), (I, (3,), 5))),
    case("MultiLabelSoftMarginLoss", inputs=((3, 5), ("unit", (3, 5)))),
    case("TripletMarginLoss", swap=True, inputs=((3, 4), (3, 4), (3, 4))),
    case("TripletMarginWithDistanceLoss", inputs=((3, 4), (3, 4), (3, 4))),
]


def values(spec: Any, rng: np.random.Generator) -> np.ndarray:
    """Random input: floats, class indices, numbers in (0, 1), or signs."""
    if spec[0] == I:
        return rng.integers(0, spec[2], spec[1])
    if spec[0] == "unit":
        return rng.uniform(0.1, 0.9, spec[1])
    if spec[0] == "sign":
        return np.where(rng.uniform(size=spec[1]) < 0.5, -1.0, 1.0)
    return rng.normal(size=spec)


def label(c: Case) -> str:
    return f"{c[0]}-{'-'.join(map(str, [*c[1], *c[2].values()]))}"


@pytest.mark.parity
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("c", CASES, ids=label)
def test_a_layer_agrees_with_torch_given_the_same_state(c: Case, training: bool) -> None:
    torch = pytest.importorskip("torch")
    name, args, kwargs, inputs = c
    if name == "RReLU" and training:
        pytest.skip("random slopes")
    theirs = getattr(torch.nn, name)(*args, **kwargs).double().train(training)
    ours = getattr(nn, name)(*args, **kwargs).double().train(training)
    assert repr(ours) == repr(theirs)
    state = {k: votive.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict(state)
    rng = np.random.default_rng(0)
    data = [values(s, rng) for s in inputs]
    a = [votive.from_numpy(d.copy()) for d in data]
    b = [torch.from_numpy(d.copy()) for d in data]
    # The second and later inputs of losses are targets; torch does not always differentiate them.
    floats = [i for i, d in enumerate(data) if d.dtype.kind == "f" and ("Loss" not in name or i == 0)]
    inplace = kwargs.get("inplace", False)
    for i in floats:
        a[i].requires_grad_()
        b[i].requires_grad_()
    x = [t * 1 if inplace else t for t in a]
    y = [t * 1 if inplace else t for t in b]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got, want = ours(*x), theirs(*y)
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-9, atol=1e-10)
    weight = rng.normal(size=tuple(want.shape))
    if want.requires_grad:
        got.backward(votive.from_numpy(np.array(weight)))
        want.backward(torch.from_numpy(np.array(weight)))
        for i in floats:
            # torch divides by 6 in float32 in hardsigmoid's gradient.
            rtol = 1e-7 if name == "Hardsigmoid" else 1e-8
            np.testing.assert_allclose(a[i].grad.numpy(), b[i].grad.numpy(), rtol=rtol, atol=1e-9)
        for (key, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
            assert (p.grad is None) == (q.grad is None), key
            if q.grad is not None:
                np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-8, atol=1e-9)
    for (key, p), q in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-9, atol=1e-12, err_msg=key)


def layers() -> list[str]:
    return [n for n in dir(nn) if inspect.isclass(getattr(nn, n)) and getattr(nn, n).__module__.startswith("votive.nn")]


@pytest.mark.parametrize("name", layers())
def test_the_example_of_a_layer_runs_as_printed(name: str) -> None:
    docstrings.run(name, getattr(nn, name).__doc__)


@pytest.mark.parity
def test_every_layer_of_torch_is_there() -> None:
    torch = pytest.importorskip("torch")
    missing = [
        n
        for n in dir(torch.nn)
        if inspect.isclass(getattr(torch.nn, n))
        and issubclass(getattr(torch.nn, n), torch.nn.Module)
        and not hasattr(nn, n)
    ]
    assert missing == []
