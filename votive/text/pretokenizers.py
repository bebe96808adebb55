r"""How byte-level BPE vocabularies cut text into words before merging.

Names are those of `tokenizer.ggml.pre` in GGUF files, by which a vocabulary says what it was made
with; the expressions are published with the models' tokenizers. Knows no vocabulary.
"""

from __future__ import annotations

from typing import Any

_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*" + _SPACES
_REST_SLASH = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*" + _SPACES
_LLAMA3 = _SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + _REST
_QWEN2 = _SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + _REST
_BEFORE = r"[^\r\n\p{L}\p{N}]?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_GPT4O = (
    f"{_BEFORE}{_UPPER}*{_LOWER}+{_SHORT}?|{_BEFORE}{_UPPER}+{_LOWER}*{_SHORT}?"
    r"|\p{N}{1,3}" + _REST_SLASH
)
_TEKKEN = f"{_BEFORE}{_UPPER}*{_LOWER}+|{_BEFORE}{_UPPER}+{_LOWER}*" r"|\p{N}" + _REST_SLASH
_PUNCTUATION = r"[\p{P}$+<=>^~|]+"
_CJK = "[一-龥\u0800-一가-\ud7ff]+"
_DEEPSEEK3 = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*" + _SPACES
)

# Expressions applied one after the other, each to the pieces that the one before it left.
PRE_TOKENIZERS: dict[str, list[str]] = {
    "default": [_PUNCTUATION, _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
    "gpt-2": [_GPT2],
    "llama-bpe": [_LLAMA3],
    "qwen2": [_QWEN2],
    "smollm": [r"\p{N}", _GPT2],
    "falcon": [r"[\p{P}$+<=>^~|`]+", _GPT2, "[0-9][0-9][0-9]"],
    "gpt-4o": [_GPT4O],
    "tekken": [_TEKKEN],
    "bloom": [r" ?[^(\s|.,!?…。，、।۔،)]+"],
    "viking": [r" ?[^(\s|.,!?…。，、।۔،)]+", r"\p{N}"],
    # The letters are those with case; the published expression lists their ranges.
    "deepseek-llm": [
        r"[\r\n]",
        r"\s?[\p{Lu}\p{Ll}\p{Lt}]+",
        r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
        r"\s+$",
        _CJK,
        r"\p{N}+",
    ],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", _DEEPSEEK3],
}

_SAME = {
    "llama-bpe": "llama3 llama-v3 llama3.2 falcon3 falcon-h1 pixtral midm-2.0 lfm2 dbrx smaug-bpe "
    "chatglm-bpe glm4 kanana2",
    "qwen2": "qwen3 deepseek-r1-qwen stablelm2 megrez hunyuan rwkv-qwen2 qwen2.5",
    "gpt-2": "gpt2 phi-2 mpt olmo jais jina-es jina-de jina-v1-en jina-v2-es jina-v2-de "
    "jina-v2-code roberta-bpe exaone4 gigachat modern-bert a.x-4.0 trillion granite-docling",
    "smollm": "starcoder refact command-r codeshell exaone minerva-7b",
    "bloom": "poro-chat gpt3-finnish",
    "deepseek-v3": "hunyuan-dense joyai-llm",
    "gpt-4o": "llama4",
}
ALIASES = {alias: name for name, aliases in _SAME.items() for alias in aliases.split()}
# Words that are in the vocabulary as a whole are taken without merging.
WHOLE_WORDS = {"llama-bpe", "tekken"}


def canonical(name: str) -> str:
    """The name of the table's entry for a pre-tokenizer, or an error that lists what is known."""
    name = ALIASES.get(name, name)
    if name not in PRE_TOKENIZERS:
        raise ValueError(
            f"the pre-tokenizer {name!r} is not known, and another would split text differently; "
            f"known are {', '.join(sorted([*PRE_TOKENIZERS, *ALIASES]))}."
        )
    return name


def byte_level_split(name: str) -> Any:
    """The pre-tokenizer of a table entry: its splits, then bytes as characters."""
    from tokenizers import Regex, pre_tokenizers

    splits = [pre_tokenizers.Split(Regex(e), "isolated") for e in PRE_TOKENIZERS[canonical(name)]]
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([*splits, to_bytes])
