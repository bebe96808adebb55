"""What happened, as TensorBoard's messages: scalars, histograms, images, sounds, texts, curves. Writes no file.

The numbers of fields are those of TensorFlow's `summary.proto`, `tensor.proto` and of the plugins of TensorBoard.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import pictures
from . import protobuf as pb
from .pictures import Array

DT_FLOAT, DT_DOUBLE, DT_STRING = 1, 2, 7


def event(*values: bytes) -> bytes:
    """The part of an event that holds a summary."""
    return pb.data(5, b"".join(pb.data(1, value) for value in values))


def _plugin(name: str, content: bytes = b"") -> bytes:
    return pb.data(9, pb.data(1, pb.data(1, name) + (pb.data(2, content) if content else b"")))


def _tensor(kind: int, shape: tuple[int, ...] | None, values: bytes) -> bytes:
    dims = b"".join(pb.data(2, pb.integer(1, n)) for n in shape or ())
    return pb.data(8, pb.integer(1, kind) + (b"" if shape is None else pb.data(2, dims)) + values)


def scalar(tag: str, value: float, new_style: bool = False, double_precision: bool = False) -> bytes:
    """One number."""
    if not new_style:
        return pb.data(1, tag) + pb.single(2, value)
    if double_precision:
        return pb.data(1, tag) + _tensor(DT_DOUBLE, None, pb.doubles(6, [value])) + _plugin("scalars")
    raw = pb.data(5, np.asarray([value], "<f4").tobytes())
    return pb.data(1, tag) + _tensor(DT_FLOAT, None, raw) + _plugin("scalars")


def histogram_raw(tag: str, moments: tuple[float, ...], limits: Any, counts: Any) -> bytes:
    """A histogram from (min, max, num, sum, sum of squares), upper limits of bins and counts."""
    fields = b"".join(pb.double(i, float(v)) for i, v in enumerate(moments, start=1))
    return pb.data(1, tag) + pb.data(5, fields + pb.doubles(6, limits) + pb.doubles(7, counts))


def default_bins() -> Array:
    """Bins that grow by a tenth in both directions, as TensorFlow's."""
    v, positive = 1e-12, []
    while v < 1e20:
        positive.append(v)
        v *= 1.1
    return np.array([-x for x in reversed(positive)] + [0.0, *positive])


def histogram(tag: str, values: Array, bins: Any, max_bins: int | None) -> bytes:
    """A histogram of an array's numbers; empty bins at both ends are left out."""
    flat = values.astype(np.float64).reshape(-1)
    if not flat.size:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(flat, bins=bins)
    n = len(counts)
    if max_bins is not None and n > max_bins:
        step = n // max_bins
        rest = n % step
        if rest:
            counts = np.pad(counts, (0, step - rest))
        counts = counts.reshape(-1, step).sum(-1)
        limits = np.append(limits[:-1:step], limits[-1])
    filled = np.nonzero(counts)[0]
    if not filled.size:
        raise ValueError("The histogram is empty, please file a bug report.")
    first, last = filled[0], filled[-1] + 1
    # One empty bin before the first, which gives it its lower limit.
    kept = counts[first - 1 : last] if first > 0 else np.concatenate([[0], counts[:last]])
    edges = limits[first : last + 1]
    moments = (flat.min(), flat.max(), float(flat.size), flat.sum(), float(flat.dot(flat)))
    return histogram_raw(tag, moments, edges.tolist(), kept.tolist())


def image(tag: str, pixels: Array, formats: str) -> bytes:
    """An image, or several in one."""
    found = pictures.as_bytes(pictures.arranged(pixels, formats))
    height, width, channels = found.shape
    fields = pb.integer(1, height) + pb.integer(2, width) + pb.integer(3, channels)
    return pb.data(1, tag) + pb.data(4, fields + pb.data(4, pictures.png(found)))


def audio(tag: str, samples: Array, rate: int) -> bytes:
    """A sound of one channel."""
    flat = samples.squeeze()
    if flat.ndim != 1:
        raise ValueError("input tensor should be 1 dimensional.")
    fields = pb.single(1, float(rate)) + pb.integer(2, 1) + pb.integer(3, len(flat))
    fields += pb.data(4, pictures.wav(flat, rate)) + pb.data(5, "audio/wav")
    return pb.data(1, tag) + pb.data(6, fields)


def text(tag: str, words: str) -> bytes:
    """A text, which TensorBoard shows as Markdown."""
    content = _tensor(DT_STRING, (1,), pb.data(8, words))
    return pb.data(1, f"{tag}/text_summary") + content + _plugin("text")


def tensor(tag: str, values: Array) -> bytes:
    """An array of float32."""
    raw = pb.data(5, values.astype("<f4").tobytes())
    return pb.data(1, tag) + _tensor(DT_FLOAT, values.shape, raw) + _plugin("tensor")


def pr_curve(tag: str, rows: Array, thresholds: int) -> bytes:
    """A curve of precision and recall: six rows of numbers, one column per threshold."""
    values = pb.data(5, rows.astype("<f4").tobytes())
    content = pb.integer(2, thresholds)
    return pb.data(1, tag) + _tensor(DT_FLOAT, rows.shape, values) + _plugin("pr_curves", content)


def pr_rows(labels: Array, predictions: Array, thresholds: int, weights: Any) -> Array:
    """True and false positives, true and false negatives, precision and recall at each threshold."""
    weights = np.ones_like(labels, dtype=np.float64) if weights is None else np.asarray(weights, np.float64)
    thresholds = min(thresholds, 127)
    bucket = np.floor(predictions * (thresholds - 1)).astype(np.int64)
    sums = [
        np.bincount(bucket, mask * weights, minlength=thresholds)
        for mask in (labels.astype(np.float64), 1 - labels.astype(np.float64))
    ]
    true, false = (np.cumsum(s[::-1])[::-1] for s in sums)
    precision = true / np.maximum(1e-7, true + false)
    recall = true / np.maximum(1e-7, true[0])
    return np.stack([true, false, false[0] - false, true[0] - true, precision, recall])


def layout(described: dict[str, dict[str, Any]]) -> bytes:
    """Which scalars custom charts show: {category: {title: ["Multiline" or "Margin", [tags]]}}."""
    categories = b""
    for category, charts in described.items():
        made = b""
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                names = zip(range(1, 4), tags[:3], strict=False)
                series = pb.data(1, b"".join(pb.data(i, name) for i, name in names))
                chart = pb.data(3, series)
            else:
                chart = pb.data(2, b"".join(pb.data(1, name) for name in tags))
            made += pb.data(2, pb.data(1, title) + chart)
        categories += pb.data(2, pb.data(1, category) + made)
    content = _tensor(DT_STRING, (), pb.data(8, categories))
    return pb.data(1, "custom_scalars__config__") + content + _plugin("custom_scalars")


def _hparam_value(value: object) -> tuple[int, bytes]:
    """The type of a setting, and it as google.protobuf.Value."""
    if isinstance(value, bool):
        raw = pb.varint(4 << 3) + pb.varint(int(value))
        return 2, raw
    if isinstance(value, (int, float)):
        raw = pb.varint(2 << 3 | 1) + np.asarray(float(value), "<f8").tobytes()
        return 3, raw
    if isinstance(value, str):
        raw = pb.data(3, value)
        return 1, raw
    raise ValueError("value should be one of int, float, str, bool, or a tensor of one element")


def hparams(settings: dict[str, Any], metrics: dict[str, Any], domains: dict[str, list[Any]] | None) -> list[bytes]:
    """An experiment's settings and metrics, the start of a session with these settings, and its end."""
    infos, started = b"", b""
    for key, value in settings.items():
        if value is None:
            continue
        kind, raw = _hparam_value(value)
        started += pb.data(1, pb.data(1, key) + pb.data(2, raw))
        domain = b""
        if domains and key in domains:
            for v in domains[key]:
                if type(v) is not type(value):
                    raise TypeError(f"parameter: hparam_domain_discrete[{key}] should be a list of same type")
            values = b"".join(pb.data(1, _hparam_value(v)[1]) for v in domains[key])
            domain = pb.data(5, values)
        infos += pb.data(4, pb.data(1, key) + pb.integer(4, kind) + domain)
    for key in metrics:
        infos += pb.data(5, pb.data(1, pb.data(2, key)))
    contents = {
        "_hparams_/experiment": pb.data(2, infos),
        "_hparams_/session_start_info": pb.data(3, started),
        "_hparams_/session_end_info": pb.data(4, pb.integer(1, 1)),
    }
    return [pb.data(1, tag) + _plugin("hparams", content) for tag, content in contents.items()]


def projector_entry(folder: str, tag: str, metadata: bool, sprite: tuple[int, int] | None) -> str:
    """The lines of projector_config.pbtxt for one set of vectors."""
    lines = ["embeddings {", f'tensor_name: "{tag}:{folder}"', f'tensor_path: "{folder}/tensors.tsv"']
    if metadata:
        lines.append(f'metadata_path: "{folder}/metadata.tsv"')
    if sprite is not None:
        lines += ["sprite {", f'image_path: "{folder}/sprite.png"']
        lines += [f"single_image_dim: {n}" for n in sprite] + ["}"]
    return "\n".join([*lines, "}", ""])
