"""One of each result of the glass engine that has pictures, on small models. Used by tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

import votive
from tests import tiny_sizes
from votive import glass, nn
from votive.glass.heatmap import Heatmap
from votive.glass.plots import Bars, Lines
from votive.glass.table import Table
from votive.studio import demo

EVIL = '</script><script>document.title="evil"</script><img src=x onerror=\'document.title="evil"\'>'


@cache
def model() -> Any:
    return demo.model()


@cache
def session() -> glass.Session:
    """A text with a branch and an edit, in which a token tries to be code."""
    made = glass.Session(model(), demo.tokenizer(), "Once upon a time", do_sample=True)
    made.step(3)
    made.branch(made.nodes[1])
    made.step(2)
    made.choose(EVIL)
    made.set_edits([glass.Edit("layers.1.mlp", "scale", 0.5)])
    return made


def ids() -> Any:
    return demo.tokenizer()("Once upon a time there was a fox", return_tensors="vt").input_ids


class Evil(nn.Module):
    """A model whose names are markup, as far as names may be."""

    def __init__(self) -> None:
        super().__init__()
        self.add_module("<img src=x onerror=alert(1)>", nn.Linear(4, 300))
        self.act = nn.ReLU()

    def forward(self, x: Any) -> Any:
        return self.act(self._modules["<img src=x onerror=alert(1)>"](x))


def captured(policy: str = "keep", other: Any = None, *given: Any) -> glass.Capture:
    other = model() if other is None else other
    with votive.no_grad(), glass.capture(other, "**", policy=policy) as seen:
        other(*(given or (ids(),)))
    return seen


def receipt() -> glass.Receipt:
    with votive.no_grad(), glass.patch(model(), {"layers.*.mlp": lambda x: 2 * x}) as found:
        model()(ids())
    return found


def quantized() -> glass.QuantizationError:
    other = demo.model()
    votive.quantize_(other, "q8_0")
    return glass.quantization_error(other, model(), ids(), each=True)


def patch() -> glass.Patch:
    made = glass.patch(model(), [glass.Edit("layers.1", "swap", "model.layers.0")])
    with votive.no_grad(), made:
        model()(ids())
    return made


def debugger() -> glass.Debugger:
    d = votive.debug(model(), ids())
    d.run(until="layers.2.mlp")
    d.over()
    return d


def ended() -> glass.Debugger:
    d = votive.debug(nn.Linear(2, 2), votive.ones(1, 2))
    d.finish()
    return d


def net() -> Any:
    votive.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def health() -> glass.Health:
    small = net()
    optimizer = votive.optim.SGD(small.parameters(), lr=0.1)
    with glass.Health(small) as found:
        for _ in range(3):
            small(votive.ones(2, 4)).sum().backward()
            optimizer.step()
            found.step()
    return found


def watched() -> glass.Watch:
    small = net()
    with votive.no_grad():
        small[0].weight.fill_(float("inf"))
    with suppress(glass.BadValue), glass.watch(small, action="record") as seen:
        small(votive.ones(2, 4))
    return seen


def picture_model() -> Any:
    votive.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 14 * 14, 2)).eval()


def patch_model() -> Any:
    votive.manual_seed(0)
    return votive.models.ViTModel(
        votive.models.ViTConfig(
            **tiny_sizes.transformer(8, 8, layers=2, heads=2), image_size=16, patch_size=4, initializer_range=0.5
        )
    ).eval()


def last(out: Any) -> Any:
    return out.logits[:, -1].amax(-1)


def lens() -> Any:
    return glass.logit_lens(model(), ids(), target=5, tokenizer=demo.tokenizer())


def sweep() -> Any:
    other = ids().clone()
    other[0, 1] = 7
    return glass.sweep(model(), ids(), other, metric=last, estimate=True, tokenizer=demo.tokenizer())


def lockstep() -> glass.Lockstep:
    one, other = net(), net()
    with votive.no_grad():
        other[2].weight.add_(1.0)
    with glass.lockstep(one, other, votive.ones(1, 4), stop=False) as found:
        return found


def attention() -> Any:
    return glass.attention_maps(model(), ids(), tokenizer=demo.tokenizer())


def alignment() -> Any:
    """What a small model that hears looks at."""
    votive.manual_seed(0)
    config = votive.models.WhisperConfig(
        vocab_size=60,
        **tiny_sizes.whisper(16, layers=(1, 2), heads=2),
        max_source_positions=30,
        pad_token_id=50,
        eos_token_id=50,
        decoder_start_token_id=51,
    )
    hears = votive.models.WhisperForConditionalGeneration(config).eval()
    tokens = [51, 52, 53, 54, 3, 4, 5, 50]
    return glass.alignment(hears, votive.randn(1, 80, 60), tokens, heads=[(0, 1)], start=4)


RESULTS: dict[str, Callable[[], Any]] = {
    "Alignment": alignment,
    "AttentionMap": lambda: attention()[0],
    "AttentionMaps": attention,
    "Attribution": lambda: glass.logit_attribution(model(), ids()),
    "Bars": lambda: Bars([1.0, -2.0, math.nan, math.inf], ["a", EVIL, "c", "d"], "bars"),
    "Capture": captured,
    "Capture of statistics": lambda: captured("stats"),
    "Capture of markup": lambda: captured("keep", Evil(), votive.ones(500, 4)),
    "Debugger": debugger,
    "Debugger at the end": ended,
    "Difference": lambda: lockstep().rows[-1],
    "Edit": lambda: glass.Edit(EVIL.replace("/", ""), "scale", 2.0, positions=[1]),
    "FeatureMaps": lambda: glass.feature_maps(picture_model(), votive.rand(2, 1, 16, 16)),
    "Finding": lambda: watched().findings[0],
    "GradCam": lambda: glass.grad_cam(picture_model(), votive.rand(2, 1, 16, 16)),
    "Gradients": lambda: glass.gradient_times_activation(model(), ids(), at="layers.*.mlp", metric=last),
    "Health": health,
    "Heatmap": lambda: Heatmap([[0.0, float("nan")], [1.0, -1.0]], ["a", EVIL], ["b", "\x00\ud800"]),
    "Heatmap of nothing": lambda: Heatmap([], [], []),
    "Labelled": lambda: glass.Labelled(votive.randn(2, 3), {"layer": [EVIL, "1"], "head": ["a", "b", "c"]}, EVIL),
    "Labelled line": lambda: glass.Labelled(votive.tensor([1.0, math.nan]), {"layer": ["0", EVIL]}),
    "LayerStatistics": lambda: glass.layer_statistics(model(), ids()),
    "Lens": lens,
    "Lines": lambda: Lines({EVIL: [1.0, float("nan"), 2.0], "b": [0.0, 1.0, 2.0]}, title=EVIL),
    "Lockstep": lockstep,
    "Mels": lambda: glass.mels(votive.sin(votive.arange(8000.0) / 5)),
    "Node": lambda: glass.tree(model(), ids(), ops=True),
    "Outlook": lambda: session().node.outlook,
    "Patch": patch,
    "PatchAttention": lambda: glass.patch_attention(patch_model(), votive.rand(1, 3, 16, 16)),
    "Pixels": lambda: glass.Pixels(np.zeros((2, 3, 3), np.uint8), EVIL),
    "Prediction": lambda: glass.predict(model(), "**", ids()),
    "Profile": lambda: glass.profile(model(), ids(), repeat=1),
    "Receipt": receipt,
    "Replay": lambda: glass.Replay(nodes=2, compared=2, drawn=1),
    "QuantizationError": quantized,
    "Saliency": lambda: glass.saliency(model(), ids(), tokenizer=demo.tokenizer()),
    "Session": session,
    "SessionDiff": lambda: session().diff(1, session().node),
    "SessionNode": lambda: session().node,
    "SiteCheck": lambda: glass.check_sites(model()),
    "Statistics": lambda: glass.statistics(votive.randn(40, 50)),
    "Statistics of nothing": lambda: glass.statistics(votive.zeros(0, 3)),
    "Sweep": sweep,
    "Table": lambda: Table(["a", ">b"], [[EVIL, i] for i in range(300)], depths=[0, *[1] * 299]),
    "Watch": watched,
}
