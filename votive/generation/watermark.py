"""A watermark in a text: some tokens, found from those before them, are made likelier. Knows no model.

Kirchenbauer et al. 2023, arXiv:2301.10226 and 2306.04634. The "green" tokens are those of transformers on the CPU, so a
text that one of them wrote is recognised by the other.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import votive

from ..tensor import Tensor
from .warpers import LogitsProcessor

_TABLE = 1_000_003  # numbers by which selfhash mixes tokens
_TRIED = 40  # candidates that selfhash looks at
_SCHEMES = ("lefthash", "selfhash")


@dataclass
class WatermarkingConfig:
    """How a text is marked: a share of green tokens, what is added to their scores, and how they are found.

    With "lefthash" they follow from the last token, with "selfhash" from the candidate and the
    `context_width - 1` tokens before it.

    >>> votive.generation.WatermarkingConfig(bias=3.0).to_dict()["greenlist_ratio"]
    0.25
    """

    greenlist_ratio: float = 0.25
    bias: float = 2.0
    hashing_key: int = 15485863
    seeding_scheme: str = "lefthash"
    context_width: int = 1

    def __post_init__(self) -> None:
        self.validate()

    @classmethod
    def of(cls, value: WatermarkingConfig | dict[str, Any]) -> WatermarkingConfig:
        """From itself, or a dict of its fields."""
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            raise TypeError(
                "generate: watermarking_config must be a votive.generation.WatermarkingConfig or a dict of its fields, "
                f"got {type(value).__name__}."
            )
        unknown = sorted(set(value) - set(cls.__dataclass_fields__))
        if unknown:
            raise ValueError(
                f"generate: watermarking_config has no field {unknown[0]!r}; there are "
                f"{', '.join(cls.__dataclass_fields__)}. SynthID's watermark is not supported."
            )
        return cls(**value)

    def to_dict(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)

    def validate(self) -> None:
        """Raise ValueError for a field with which nothing can be marked."""
        if self.seeding_scheme not in _SCHEMES:
            raise ValueError(f"watermark: seeding_scheme must be one of {_SCHEMES}, got {self.seeding_scheme!r}.")
        if not 0.0 < self.greenlist_ratio < 1.0:
            raise ValueError(f"watermark: greenlist_ratio must be above 0 and below 1, got {self.greenlist_ratio}.")
        if self.context_width < 1:
            raise ValueError(f"watermark: context_width must be at least 1, got {self.context_width}.")


def shuffled(size: int, seed: int, first: int | None = None) -> list[int]:
    """The first of the numbers below `size`, in the order in which `torch.randperm` has them for a seed.

    Fisher and Yates with the 32-bit numbers of a Mersenne Twister.

    >>> from votive.generation.watermark import shuffled
    >>> shuffled(10, 5, 4)
    [1, 4, 9, 6]
    """
    count = size if first is None else min(first, size)
    draws: Any = np.random.RandomState(seed & 0xFFFFFFFF)
    raw = draws._bit_generator.random_raw(min(count, size - 1)).astype(np.int64)
    left = size - np.arange(len(raw))
    numbers = list(range(size))
    for i, z in enumerate((raw % left).tolist()):
        numbers[i], numbers[i + z] = numbers[i + z], numbers[i]
    return numbers[:count]


@lru_cache(4)
def _table(key: int) -> list[int]:
    return shuffled(_TABLE, key)


class WatermarkLogitsProcessor(LogitsProcessor):
    """Adds a bias to the scores of the green tokens of each row.

    >>> mark = votive.generation.WatermarkLogitsProcessor(vocab_size=8, bias=1.0)
    >>> mark(votive.tensor([[3]]), votive.zeros(1, 8)).sum()
    tensor(2.)
    """

    def __init__(
        self,
        vocab_size: int,
        device: Any = None,
        greenlist_ratio: float = 0.25,
        bias: float = 2.0,
        hashing_key: int = 15485863,
        seeding_scheme: str = "lefthash",
        context_width: int = 1,
    ) -> None:
        if device is not None and votive.device(device).type != "cpu":
            raise ValueError(f"watermark: green tokens are those of the CPU everywhere; leave out device={device!r}.")
        self.config = WatermarkingConfig(greenlist_ratio, bias, hashing_key, seeding_scheme, context_width)
        self.size, self.count = vocab_size, int(vocab_size * greenlist_ratio)
        self._of_seed = lru_cache(1024)(lambda seed: frozenset(shuffled(self.size, seed, self.count)))

    def green(self, tokens: list[int]) -> frozenset[int]:
        """The green tokens after these; with "selfhash" the last of them is the candidate."""
        key = self.config.hashing_key
        if self.config.seeding_scheme == "lefthash":
            seed = key * tokens[-1]
        else:
            table, last = _table(key), tokens[-self.config.context_width :]
            own = table[last[-1] % _TABLE] + 1
            # Numbers of 64 bits with a sign, as there.
            seed = min(_signed(key * (table[t % _TABLE] + 1) * own) for t in last)
        return self._of_seed(seed % (2**64 - 1))

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if input_ids.shape[1] < self.config.context_width:
            return scores
        added = np.zeros(tuple(scores.shape), np.float32)
        for row, tokens in enumerate(input_ids[:, -self.config.context_width :].tolist()):
            added[row, self._row(tokens, scores[row])] = self.config.bias
        return scores + votive.tensor(added, device=scores.device).to(scores.dtype)

    def _row(self, tokens: list[int], scores: Tensor) -> list[int]:
        if self.config.seeding_scheme == "lefthash":
            return sorted(self.green(tokens))
        tried = votive.sort(scores, descending=True)[1][:_TRIED].tolist()
        return [t for t in tried if t in self.green([*tokens, t])]


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) * (value >> 63)


@dataclass
class WatermarkDetectorOutput:
    """What a detector found for each text; fields are those of transformers.

    >>> votive.generation.WatermarkDetectorOutput().prediction is None
    True
    """

    num_tokens_scored: Any = None
    num_green_tokens: Any = None
    green_fraction: Any = None
    z_score: Any = None
    p_value: Any = None
    prediction: Any = None
    confidence: Any = None


class WatermarkDetector:
    """Whether texts are marked: called with ids (texts, positions), without their prompts.

    >>> config = votive.models.LlamaConfig(vocab_size=50)
    >>> detector = votive.generation.WatermarkDetector(config, watermarking_config={"bias": 2.0})
    >>> detector(votive.arange(20).view(1, 20)).tolist()
    [False]
    """

    def __init__(
        self,
        model_config: Any,
        device: Any = None,
        watermarking_config: WatermarkingConfig | dict[str, Any] | None = None,
        ignore_repeated_ngrams: bool = False,
    ) -> None:
        if watermarking_config is None:
            raise TypeError("WatermarkDetector: give the watermarking_config that the text was written with.")
        config = WatermarkingConfig.of(watermarking_config)
        begin = "decoder_start_token_id" if getattr(model_config, "is_encoder_decoder", False) else "bos_token_id"
        self.first = getattr(model_config, begin, None)
        self.once = ignore_repeated_ngrams
        self.processor = WatermarkLogitsProcessor(model_config.vocab_size, device, **config.to_dict())

    def __call__(self, input_ids: Any, z_threshold: float = 3.0, return_dict: bool = False) -> Any:
        rows = input_ids.tolist() if hasattr(input_ids, "tolist") else [list(r) for r in input_ids]
        begun = [bool(r) and r[0] == self.first for r in rows]
        if any(begun) != all(begun):
            raise ValueError(
                "WatermarkDetector: either all texts begin with the first token or none; encode them alike."
            )
        rows = [r[1:] for r in rows] if any(begun) else rows
        config = self.processor.config
        if len(rows[0]) - config.context_width < 1:
            raise ValueError(
                f"WatermarkDetector: a text needs more than {config.context_width} tokens after its first."
            )
        counts = [self._counted(r) for r in rows]
        scored, green = (np.array(c, np.float64) for c in zip(*counts, strict=True))
        share = config.greenlist_ratio
        z = (green - share * scored) / np.sqrt(scored * share * (1 - share))
        found = z > z_threshold
        if not return_dict:
            return found
        p = np.array([0.5 * math.erfc(value / math.sqrt(2)) for value in z])
        return WatermarkDetectorOutput(scored, green, green / scored, z, p, found, 1 - p)

    def _counted(self, row: list[int]) -> tuple[int, int]:
        """How many tokens of a text are looked at, and how many of those are green."""
        own = self.processor.config.seeding_scheme == "selfhash"
        n = self.processor.config.context_width + (0 if own else 1)
        times = Counter(tuple(row[i : i + n]) for i in range(len(row) - n + 1))
        hits = {gram: gram[-1] in self.processor.green(list(gram if own else gram[:-1])) for gram in times}
        if self.once:
            return len(times), sum(hits.values())
        return sum(times.values()), sum(n for gram, n in times.items() if hits[gram])
