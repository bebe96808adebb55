"""Texts to vectors: a model, a pooling of its positions, and what may follow. Knows no family.

Reads the folders that sentence-transformers writes: modules.json says what follows what.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import votive
from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .auto import AutoModelForTextEncoding
from .checkpoint import Checkpoint, bundled, download, is_repo_id
from .config import StrPath, read_json
from .sentence_files import ACTIVATIONS, save_encoder

# In this order their results are joined, when a folder asks for several.
_POOLINGS: dict[str, Callable[[Any, Any], Any]] = {}


def _pooling(name: str) -> Callable[[Any], Any]:
    def keep(function: Any) -> Any:
        _POOLINGS[name] = function
        return function

    return keep


# x is (batch, positions, features), real (batch, positions, 1) with 0 at padding.


@_pooling("cls_token")
def _first(x: Tensor, real: Tensor) -> Any:
    at = real.squeeze(-1).argmax(1)  # padding may stand on the left
    return x[votive.arange(x.shape[0], device=x.device), at]


@_pooling("max_tokens")
def _max(x: Tensor, real: Tensor) -> Any:
    return x.masked_fill(real == 0, -1e9).amax(1)


@_pooling("mean_tokens")
def _mean(x: Tensor, real: Tensor) -> Any:
    return (x * real).sum(1) / real.sum(1).clamp(min=1e-9)


@_pooling("mean_sqrt_len_tokens")
def _mean_sqrt(x: Tensor, real: Tensor) -> Any:
    return (x * real).sum(1) / real.sum(1).clamp(min=1e-9).sqrt()


@_pooling("weightedmean_tokens")
def _weighted(x: Tensor, real: Tensor) -> Any:
    place = votive.arange(1, x.shape[1] + 1, dtype=x.dtype, device=x.device).view(1, -1, 1)
    return _mean(x, real * place)


@_pooling("lasttoken")
def _last(x: Tensor, real: Tensor) -> Any:
    at = real.shape[1] - 1 - real.squeeze(-1).flip(1).argmax(1)
    return x[votive.arange(x.shape[0], device=x.device), at]


class SentenceEncoder(nn.Module):
    """A model that gives each text a vector; near ones mean near things.

    `pooling` names how the vectors of positions become one: "cls_token", "max_tokens",
    "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken", or several of them;
    with `include_prompt=False`, the positions of a prompt are left out of it.

    >>> config = votive.models.BertConfig(vocab_size=300, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> words = lambda texts, **_: {"input_ids": [[1, *t.encode(), 2] for t in texts]}
    >>> encoder = votive.models.SentenceEncoder(votive.models.BertModel(config), words)
    >>> encoder.encode(["one", "two words"]).shape
    votive.Size([2, 8])
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        pooling: str | Sequence[str] = "mean_tokens",
        dense: Sequence[nn.Module] = (),
        normalize: bool = False,
        max_length: int | None = None,
        prompts: dict[str, str] | None = None,
        default_prompt: str | None = None,
        similarity: str = "cosine",
        lower_case: bool = False,
        include_prompt: bool = True,
    ) -> None:
        super().__init__()
        self.model, self.tokenizer = model, tokenizer
        self.dense = nn.ModuleList(dense)
        self.pool_by(pooling)
        self.normalize, self.max_length = normalize, max_length
        self.prompts, self.default_prompt = dict(prompts or {}), default_prompt
        if similarity not in _SIMILARITIES:
            known = ", ".join(_SIMILARITIES)
            raise ValueError(f"SentenceEncoder: unknown similarity {similarity!r}; known: {known}.")
        self.compared, self.lower_case, self.include_prompt = similarity, lower_case, include_prompt
        self.eval()

    @classmethod
    def from_pretrained(
        cls,
        name: StrPath,
        *,
        dtype: Any = None,
        device: votive.device | str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
    ) -> Self:
        """From a folder, a bundled name or a repository id; without a modules.json, positions are averaged."""
        from ..text import Tokenizer

        found = _folder_of(name, revision, local_files_only)
        options: dict[str, Any] = {"pooling": "mean_tokens", "dense": [], "normalize": False}
        model_at = found
        for kind, path in _modules(found):
            if kind == "Transformer":
                model_at = path
            elif kind == "Pooling":
                told = read_json(path / "config.json")
                options["pooling"] = _pooling_modes(told)
                options["include_prompt"] = told.get("include_prompt") is not False
            elif kind == "Normalize":
                options["normalize"] = True
            elif kind == "Dense":
                options["dense"].append(_dense(path, device))
            else:
                raise ValueError(f"SentenceEncoder: {found.name} has a part of unknown kind {kind}.")
        settings = _optional(model_at / "sentence_bert_config.json")
        more = _optional(found / "config_sentence_transformers.json")
        tokenizer = Tokenizer.from_pretrained(model_at)
        model = AutoModelForTextEncoding.from_pretrained(model_at, dtype=dtype, device=device)
        limit = settings.get("max_seq_length")
        if limit is None:  # newer folders leave it to the tokenizer, which the model's positions end
            limits = (
                getattr(tokenizer, "model_max_length", None),
                getattr(model.config, "max_position_embeddings", None),
            )
            limit = min((int(n) for n in limits if n), default=None)
        return cls(
            model,
            tokenizer,
            max_length=limit,
            prompts=more.get("prompts"),
            default_prompt=more.get("default_prompt_name"),
            similarity=more.get("similarity_fn_name") or "cosine",
            lower_case=bool(settings.get("do_lower_case")),
            **options,
        )

    def pool_by(self, pooling: str | Sequence[str]) -> None:
        """Make one vector of those of positions in another way, or in several."""
        names = [pooling] if isinstance(pooling, str) else list(pooling)
        unknown = [name for name in names if name not in _POOLINGS]
        if unknown or not names:
            known = ", ".join(_POOLINGS)
            raise ValueError(f"SentenceEncoder: unknown pooling {unknown}; known: {known}.")
        self.pooling = names

    def save_pretrained(self, folder: StrPath) -> None:
        """Write a folder that `from_pretrained` and sentence-transformers read; of an adapted model, its adapter."""
        save_encoder(self, folder)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, prompt_length: int = 0) -> Tensor:
        """The vectors (batch, features) of texts given as ids; not scaled to length one.

        The first `prompt_length` tokens of each are read, and are no part of its vector.
        """
        if attention_mask is None:
            attention_mask = votive.ones_like(input_ids)
        x = self.model(input_ids, attention_mask=attention_mask).last_hidden_state.float()
        if prompt_length:
            attention_mask = attention_mask * (attention_mask.cumsum(1) > prompt_length).to(attention_mask.dtype)
        real = attention_mask.unsqueeze(-1).float()
        y = votive.cat([_POOLINGS[name](x, real) for name in self.pooling], -1)
        for part in self.dense:
            y = part(y)
        return y

    def encode(
        self,
        texts: str | Sequence[str],
        *,
        batch_size: int = 32,
        normalize: bool | None = None,
        progress: bool = False,
        max_length: int | None = None,
        prompt: str | None = None,
        prompt_name: str | None = None,
    ) -> Any:
        """The vectors of texts, (texts, features); of a single text, (features,).

        Texts of similar length are computed together and come back in the order given. `normalize`
        scales to length one; None does as the folder says. A prompt is put before each text.
        """
        if isinstance(texts, str):
            return self.encode(
                [texts], normalize=normalize, max_length=max_length, prompt=prompt, prompt_name=prompt_name
            )[0]
        if batch_size < 1:
            raise ValueError(f"encode: batch_size must be positive, got {batch_size}.")
        before = self._prompt(prompt, prompt_name)
        rows = self._tokens([before + text for text in texts], max_length)
        prompt_length = self.left_out(before, max_length)
        order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
        parts = []
        for start in _bar(range(0, len(rows), batch_size), progress):
            ids, mask = self._padded([rows[i] for i in order[start : start + batch_size]])
            with votive.no_grad():
                parts.append(self(ids, mask, prompt_length))
        if not parts:
            return votive.zeros(0, self.width)
        back = votive.tensor(order, device=parts[0].device).argsort()
        y = votive.cat(parts)[back]
        wanted = self.normalize if normalize is None else normalize
        return F.normalize(y, dim=-1) if wanted else y

    @property
    def width(self) -> int:
        """How many features a vector has."""
        if len(self.dense):
            return self.dense[-1][0].out_features
        return self.model.config.hidden_size * len(self.pooling)

    def similarity(self, a: Tensor, b: Tensor) -> Any:
        """How near each vector of `a` (n, features) is to each of `b` (m, features): (n, m)."""
        a, b = (x.unsqueeze(0) if x.dim() == 1 else x for x in (a, b))
        return _SIMILARITIES[self.compared](a, b)

    def _prompt(self, prompt: str | None, name: str | None) -> str:
        if prompt is not None:
            return prompt
        name = name or self.default_prompt
        if name is None:
            return ""
        if name not in self.prompts:
            known = ", ".join(self.prompts) or "none"
            raise ValueError(f"encode: unknown prompt {name!r}; known: {known}.")
        return self.prompts[name]

    def left_out(self, prompt: str, max_length: int | None = None) -> int:
        """How many tokens at the beginning of a text, those of a prompt, are no part of its vector."""
        if self.include_prompt or not prompt:
            return 0
        # Without what ends a text.
        (ids,) = self._tokens([prompt], max_length)
        ends = getattr(self.tokenizer, "all_special_ids", ())
        return len(ids) - int(bool(ids) and ids[-1] in ends)

    def _tokens(self, texts: list[str], max_length: int | None) -> list[list[int]]:
        limits = [max_length, self.max_length]
        limit = next((n for n in limits if n is not None), None)
        if not texts:
            return []
        if self.lower_case:
            texts = [text.lower() for text in texts]
        if limit is None:
            return self.tokenizer(texts)["input_ids"]
        return self.tokenizer(texts, truncation=True, max_length=limit)["input_ids"]

    def _padded(self, rows: list[list[int]]) -> tuple[Any, Any]:
        length, device = max(max(map(len, rows)), 1), self.model.device
        pad = getattr(self.tokenizer, "pad_token_id", None) or self.model.config.pad_token_id or 0
        ids = [[*row, *[pad] * (length - len(row))] for row in rows]
        mask = [[1] * len(row) + [0] * (length - len(row)) for row in rows]
        return votive.tensor(ids, device=device), votive.tensor(mask, device=device)


def _cosines(a: Tensor, b: Tensor) -> Tensor:
    units: list[Tensor] = [F.normalize(x, dim=-1) for x in (a, b)]
    return units[0] @ units[1].t()


def _distances(a: Tensor, b: Tensor, p: float) -> Tensor:
    return votive.cdist(a, b, p=p)


_SIMILARITIES: dict[str, Callable[[Any, Any], Any]] = {
    "cosine": lambda a, b: _cosines(a, b),
    "dot": lambda a, b: a @ b.t(),
    "euclidean": lambda a, b: -_distances(a, b, 2.0),
    "manhattan": lambda a, b: -_distances(a, b, 1.0),
}


def _folder_of(name: StrPath, revision: str | None, local_files_only: bool) -> Path:
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if str(name) in bundled():
        return Checkpoint.folder_of(name)
    if path.exists() or not is_repo_id(str(name)):
        raise FileNotFoundError(
            f"SentenceEncoder: {name} is no folder and no repository id such as "
            "'sentence-transformers/all-MiniLM-L6-v2'."
        )
    return download(str(name), revision, local_files_only)


def _modules(folder: Path) -> list[tuple[str, Path]]:
    """Kinds and folders of the parts, in order."""
    file = folder / "modules.json"
    if not file.is_file():
        return []
    try:
        rows = json.loads(file.read_bytes())
        parts = [(str(row["type"]).rpartition(".")[2], str(row["path"])) for row in rows]
    except (ValueError, TypeError, KeyError) as e:
        raise ValueError(f"{file} does not list the parts of a sentence encoder: {e}") from None
    for _, path in parts:
        if Path(path).is_absolute() or ".." in Path(path).parts:
            raise ValueError(f"{file}: {path!r} leads out of the folder.")
    return [(kind, folder / path) for kind, path in parts]


def _pooling_modes(settings: dict[str, Any]) -> list[str]:
    """The names of poolings, from single truth values or from one name or several."""
    given = settings.get("pooling_mode")
    if given is None:
        return [name for name in _POOLINGS if settings.get(f"pooling_mode_{name}")]
    short = {name.removesuffix("_tokens").removesuffix("_token"): name for name in _POOLINGS}
    return [short.get(name, name) for name in ([given] if isinstance(given, str) else given)]


def _dense(folder: Path, device: votive.device | str | None) -> nn.Module:
    """A product and an activation behind the pooling."""
    from ..io import load_into, open_weights

    settings = read_json(folder / "config.json")
    name = str(settings.get("activation_function", "torch.nn.modules.linear.Identity"))
    kind = name.rpartition(".")[2]
    if kind not in ACTIVATIONS:
        raise ValueError(f"SentenceEncoder: unknown activation {name!r} in {folder.name}.")
    linear = nn.Linear(settings["in_features"], settings["out_features"], bias=settings.get("bias", True))
    load_into(linear, open_weights(folder).prefixed("linear"), device=device)
    return nn.Sequential(linear, ACTIVATIONS[kind]())


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _bar(steps: Any, shown: bool) -> Any:
    if not shown:
        return steps
    from rich.progress import track

    return track(steps, description="Encoding")
