"""Vectors learned to stand before every text: prompt tuning, p-tuning and prefix tuning, as PEFT computes them.

Knows decoders by what they can do: embeddings, a cache, a mask; knows no family and no file.
"""

from __future__ import annotations

import inspect
from typing import Any

import votive
from votive import nn

from ..tensor import Tensor
from .peft_config import PrefixTuningConfig, PromptConfig, PromptEncoderConfig, PromptTuningConfig


class Prompt(nn.Module):
    """A table of vectors, perhaps with a network behind it that only learning needs.

    Prompt tuning: Lester et al. 2021, arXiv:2104.08691; p-tuning: Liu et al. 2021, arXiv:2103.10385; prefix tuning:
    Li and Liang 2021, arXiv:2101.00190.

    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> model.add_adapter(votive.models.PromptTuningConfig(num_virtual_tokens=3))
    >>> model(votive.tensor([[1, 2]])).logits.shape
    votive.Size([1, 5, 10])
    """

    def __init__(self, config: PromptConfig, width: int, table: Tensor, network: nn.Module | None) -> None:
        super().__init__()
        self.count, self.width = config.num_virtual_tokens or 0, width
        self.prefix = isinstance(config, PrefixTuningConfig)
        self.layers, self.heads = config.num_layers or 0, config.num_attention_heads or 0
        rows, features = table.shape
        self.embedding = nn.Embedding(rows, features, device=table.device, dtype=table.dtype)
        with votive.no_grad():
            self.embedding.weight.copy_(table)
        self.network = network

    @staticmethod
    def of(model: nn.Module, config: PromptConfig, *, blank: bool = False) -> Prompt:
        """The prompt that a configuration describes, its sizes filled in from the model; `blank` is to be filled."""
        from .pretrained import CausalLM

        name = type(config).__name__
        if not isinstance(model, CausalLM) or not hasattr(model.config, "num_hidden_layers"):
            raise ValueError(f"{name}: prompts stand before the texts of decoders; {type(model).__name__} is none.")
        sizes = model.config
        if config.num_layers is None:
            config.num_layers = sizes.num_hidden_layers
        if config.token_dim is None:
            config.token_dim = sizes.hidden_size
        if config.num_attention_heads is None:
            config.num_attention_heads = sizes.num_attention_heads
            shared = getattr(sizes, "num_key_value_heads", None)
            if isinstance(config, PrefixTuningConfig) and shared is not None:
                wide = getattr(sizes, "head_dim", None) or config.token_dim // config.num_attention_heads
                config.num_attention_heads, config.token_dim = shared, shared * wide
        if config.num_transformer_submodules is None:
            config.num_transformer_submodules = 1
        width = config.token_dim
        if config.modules_to_save:
            raise ValueError(f"{name}: modules_to_save stands beside adapters of layers only.")
        words: Any = model.get_input_embeddings().weight
        made = {"device": words.device, "dtype": votive.float32}
        count = config.num_virtual_tokens
        assert count is not None, "checked by the configuration"
        rows = width
        network: nn.Module | None = None
        if isinstance(config, PrefixTuningConfig):
            whole = config.num_layers * 2 * width
            rows = width if config.prefix_projection and not blank else whole
            if config.prefix_projection and not blank:
                inner = config.encoder_hidden_size or width
                config.encoder_hidden_size = inner
                network = nn.Sequential(nn.Linear(width, inner), nn.Tanh(), nn.Linear(inner, whole))
                if config.init_weights == "zero":
                    nn.init.zeros_(network[2].weight)
                    nn.init.zeros_(network[2].bias)
        elif isinstance(config, PromptEncoderConfig) and not blank:
            config.encoder_hidden_size = config.encoder_hidden_size or width
            network = _encoder(config, width, config.encoder_hidden_size)
        table = votive.empty(count, rows, **made) if blank else votive.randn(count, rows, **made)
        if isinstance(config, PrefixTuningConfig) and config.init_weights == "zero" and network is None and not blank:
            table = votive.zeros(count, rows, **made)
        if isinstance(config, PromptTuningConfig) and not blank and config.prompt_tuning_init != "RANDOM":
            table = _words(model, config, count).to(**made)
        return Prompt(config, width, table, None if network is None else network.to(device=words.device))

    def vectors(self) -> Tensor:
        """The vectors (count, features)."""
        found = self.embedding.weight
        if isinstance(self.network, _Recurrent):
            found = self.network(found.unsqueeze(0)).squeeze(0)
        elif self.network is not None:
            found = self.network(found)
        return found

    def into_cache(self, cache: nn.KVCache, rows: int, dtype: Any) -> None:
        """Put the keys and values of a prefix before those of `rows` texts."""
        both = self.vectors().to(dtype).view(self.count, 2 * self.layers, self.heads, self.width // self.heads)
        both = both.permute(1, 2, 0, 3).unsqueeze(1)  # (2 L, 1, H, T, D)
        for i in range(self.layers):
            key, value = (both[2 * i + k].expand(rows, -1, -1, -1).contiguous() for k in (0, 1))
            cache.update(key, value, i)


class _Recurrent(nn.Module):
    """P-tuning's LSTM in both directions and the two products behind it."""

    def __init__(self, config: PromptEncoderConfig, width: int, inner: int) -> None:
        super().__init__()
        layers, dropout = config.encoder_num_layers, config.encoder_dropout
        self.lstm_head = nn.LSTM(width, inner, layers, dropout=dropout, bidirectional=True, batch_first=True)
        self.mlp_head = nn.Sequential(nn.Linear(2 * inner, 2 * inner), nn.ReLU(), nn.Linear(2 * inner, width))

    def forward(self, x: Tensor) -> Tensor:
        return self.mlp_head(self.lstm_head(x)[0])


def _encoder(config: PromptEncoderConfig, width: int, inner: int) -> nn.Module:
    if config.encoder_reparameterization_type == "LSTM":
        return _Recurrent(config, width, inner)
    sizes = [nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, inner), nn.ReLU(), nn.Linear(inner, width)]
    return nn.Sequential(*sizes)


def _words(model: Any, config: PromptTuningConfig, count: int) -> Tensor:
    """Embeddings of tokens to begin with: those of a text, or some at random."""
    table = model.get_input_embeddings()
    if config.prompt_tuning_init == "SAMPLE_VOCAB":
        ids = votive.randint(0, table.num_embeddings, (count,))
    else:
        from ..text import Tokenizer

        assert config.tokenizer_name_or_path, "checked by the configuration"
        assert config.prompt_tuning_init_text, "checked by the configuration"
        tokenizer = Tokenizer.from_pretrained(config.tokenizer_name_or_path, **(config.tokenizer_kwargs or {}))
        found = list(tokenizer(config.prompt_tuning_init_text)["input_ids"])
        ids = votive.tensor((found * (count // len(found) + 1))[:count])
    with votive.no_grad():
        return table(ids.to(table.weight.device)).detach().clone()


def put_before(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a decoder is called with when a prompt is active: a hook before its forward."""
    from .adapter_layers import adapters_of

    state = adapters_of(model)
    prompt = None if state is None else state.prompt
    if prompt is None:
        return args, kwargs
    given = dict(inspect.signature(model.forward).bind(*args, **kwargs).arguments)
    given |= given.pop("options", {})
    ids, embeds = given.get("input_ids"), given.get("inputs_embeds")
    text = ids if ids is not None else embeds
    if text is None or (ids is not None and embeds is not None):
        return args, kwargs  # the model itself says what is wrong
    cache, mask = given.get("past_key_values"), given.get("attention_mask")
    past = 0 if cache is None else cache.get_seq_length()
    ones = (text.shape[0], prompt.count)
    if mask is not None and mask.dim() == 2 and (not past or mask.shape[1] + prompt.count == past + text.shape[1]):
        given["attention_mask"] = votive.cat([mask.new_ones(ones), mask], 1)
    elif mask is not None and mask.dim() != 2 and not past:
        raise ValueError(f"{type(model).__name__}: with a prompt, attention_mask is (batch, positions).")
    if past:
        return (), given
    at = given.get("position_ids")
    if prompt.prefix:
        given["past_key_values"] = cache = cache if cache is not None else nn.DynamicCache()
        prompt.into_cache(cache, text.shape[0], model.dtype)
        if at is not None:
            given["position_ids"] = at + prompt.count
        return (), given
    x = embeds if embeds is not None else model.get_input_embeddings()(ids)
    given["inputs_embeds"] = votive.cat([prompt.vectors().to(x.dtype).expand(ones[0], -1, -1), x], 1)
    given.pop("input_ids", None)
    if at is not None:
        before = votive.arange(prompt.count, device=at.device, dtype=at.dtype).expand(at.shape[0], -1)
        given["position_ids"] = votive.cat([before, at + prompt.count], 1)
    if given.get("labels") is not None:
        labels = given["labels"]
        given["labels"] = votive.cat([labels.new_full(ones, -100), labels], 1)
    return (), given


# What looks at the ids of the prompt, where a learned one has none.
_LOOKS = ("repetition_penalty", "no_repeat_ngram_size", "num_beams", "prompt_lookup_num_tokens", "penalty_alpha")


def generate_behind(model: Any, prompt: Prompt, input_ids: Any = None, *, settings: dict[str, Any]) -> Any:
    """Continue texts behind a learned prompt; gives ids without it, as ever."""
    from ..generation import generate

    for name in (*_LOOKS, "past_key_values", "assistant_model", "inputs_embeds", "return_dict_in_generate"):
        if settings.get(name) not in (None, 1, 1.0, 0, False):
            raise ValueError(f"generate: {name} does not go with a learned prompt; leave it out.")
    mask = settings.pop("attention_mask", None)
    input_ids = settings.pop("input_ids", input_ids)
    if input_ids is None:
        raise ValueError("generate: input_ids are missing.")
    if not isinstance(input_ids, Tensor):
        if len({len(row) for row in input_ids}) > 1:
            raise ValueError("generate: with a learned prompt, give rows of one length, padded, and attention_mask.")
        input_ids = votive.tensor(input_ids, device=model.device)
    rows = input_ids.shape[0]
    cache = nn.DynamicCache()
    with votive.no_grad():
        if prompt.prefix:
            prompt.into_cache(cache, rows, model.dtype)
        else:
            # The hook sees a cache that is not empty next, and leaves it alone.
            start = prompt.vectors().to(model.dtype).expand(rows, -1, -1)
            inner = getattr(model, model.base_model_prefix)
            inner(inputs_embeds=start, past_key_values=cache, use_cache=True)
    blank = input_ids.new_zeros((rows, prompt.count))
    if mask is not None:
        mask = votive.cat([mask.new_ones((rows, prompt.count)), mask], 1)
    for name in ("max_length", "min_length"):
        if settings.get(name):
            settings[name] += prompt.count
    found = generate(model, votive.cat([blank, input_ids], 1), attention_mask=mask, past_key_values=cache, **settings)
    return found[:, prompt.count :]
