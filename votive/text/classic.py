"""Tokenizers from the older vocabulary files: vocab.json with merges.txt, and vocab.txt.

These say less than tokenizer.json, so the tokenizer's class decides the rest. Knows files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..serialization.container import FileFormatError
from .ends import set_ends, token_text
from .pretokenizers import byte_level_split
from .sentencepiece import read

_SPLITS = {"Qwen2Tokenizer": "qwen2", "Qwen2TokenizerFast": "qwen2"}
# These put <s> and </s> around texts; between the texts of a pair stand two </s>.
_BETWEEN = ("Roberta", "Bart", "Longformer", "LED", "Blenderbot", "MVP")
_OTHERS = ("OpenAIGPT", "Herbert", "XLM", "Flaubert", "CTRL", "Phobert", "Bertweet")

# Of these the ids are not those of the SentencePiece file.
_SHIFTED = (
    "XLMRoberta",
    "Camembert",
    "MBart",
    "Nllb",
    "XGLM",
    "Barthez",
    "Plbart",
    "M2M100",
    "Marian",
    "SeamlessM4T",
    "Pegasus",
    "Reformer",
    "Speech2Text",
    "Deberta",
)


def sentencepiece(file: Path, config: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    """A tokenizer from a SentencePiece model, with what its class puts around texts."""
    kind = config.get("tokenizer_class") or ""
    if kind.startswith(_SHIFTED):
        raise FileFormatError(
            f"{file}: {kind} renumbers the pieces of its model file; save the tokenizer as tokenizer.json first."
        )
    backend, named = read(file)
    if kind.startswith(("T5", "MT5", "UMT5")):
        from tokenizers import AddedToken

        # The first of T5's places to fill has the last id.
        blanks = [f"<extra_id_{i}>" for i in reversed(range(int(config.get("extra_ids", 100))))]
        backend.add_special_tokens([AddedToken(b, special=True) for b in blanks])
        set_ends(backend, None, named.get("eos_token"))
    elif kind.startswith(("Albert", "BigBird", "RemBert")):
        set_ends(backend, "[CLS]", "[SEP]")
    elif kind.startswith(("Llama", "CodeLlama", "Gemma", "Mistral", "Mixtral")):
        set_ends(backend, named.get("bos_token"), None)
    return backend, named


def byte_level(file: Path, config: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    """A byte-level BPE tokenizer from vocab.json and the merges.txt beside it."""
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

    kind = config.get("tokenizer_class") or ""
    if kind.startswith(_OTHERS):
        raise FileFormatError(
            f"{file}: vocabularies of {kind} are not byte-level; save the tokenizer as tokenizer.json first."
        )
    merges_file = file.with_name(file.name.replace("vocab.json", "merges.txt"))
    if not merges_file.is_file():
        raise FileNotFoundError(f"{file} needs {merges_file.name} beside it.")
    try:
        vocab = {str(k): int(v) for k, v in json.loads(file.read_text("utf-8")).items()}
        merges = _merges(merges_file)
        backend: Any = Backend(models.BPE(vocab, merges))
    except Exception as e:  # the library raises bare exceptions
        raise FileFormatError(f"{file}: this is not a byte-level vocabulary ({e}).") from None
    if kind.startswith("CLIP"):
        return clip(vocab, merges, config)
    prefix = bool(config.get("add_prefix_space", False))
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=False)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    if kind in _SPLITS:
        backend.pre_tokenizer = byte_level_split(_SPLITS[kind])
        backend.normalizer = normalizers.NFC()
        return backend, {"eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"}
    if kind.startswith(_BETWEEN) or ("<s>" in vocab and "</s>" in vocab and not kind):
        backend.post_processor = processors.RobertaProcessing(
            ("</s>", vocab["</s>"]), ("<s>", vocab["<s>"]), add_prefix_space=prefix
        )
        names = {
            "bos": "<s>",
            "eos": "</s>",
            "unk": "<unk>",
            "sep": "</s>",
            "pad": "<pad>",
            "cls": "<s>",
            "mask": "<mask>",
        }
        return backend, {f"{k}_token": v for k, v in names.items() if v in vocab}
    end = "<|endoftext|>"
    names = {"bos_token": end, "eos_token": end, "unk_token": end}
    return backend, names if end in vocab else {}


# Where CLIP's words end: at contractions, and between letters, digits, each by itself, and everything else.
_CLIP_WORDS = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def clip(vocab: dict[str, int], merges: Any, config: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    """CLIP's tokenizer: lower case, bytes, and a mark at the end of each word instead of a space before it."""
    from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors
    from tokenizers import Tokenizer as Backend

    named = {"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}
    named["pad_token"] = "<|endoftext|>"
    # Files of Stable Diffusion 2 pad by "!", which their configuration says.
    named |= {key: str(token_text(config[key])) for key in named if config.get(key) is not None}
    absent = [t for t in (named["bos_token"], named["eos_token"]) if t not in vocab]
    if absent:
        raise FileFormatError(f"a vocabulary of CLIP needs {', '.join(absent)}.")
    backend: Any = Backend(
        models.BPE(vocab, merges, end_of_word_suffix="</w>", continuing_subword_prefix="", unk_token=named["unk_token"])
    )
    backend.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    words = pre_tokenizers.Split(Regex(_CLIP_WORDS), behavior="removed", invert=True)
    backend.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    backend.decoder = decoders.Sequence(
        [decoders.ByteLevel(), decoders.Replace(Regex("</w>$"), ""), decoders.Replace("</w>", " ")]
    )
    bos, eos = ((named[key], vocab[named[key]]) for key in ("bos_token", "eos_token"))
    backend.post_processor = processors.RobertaProcessing(eos, bos, trim_offsets=False, add_prefix_space=False)
    return backend, named


def _merges(path: Path) -> list[tuple[str, str]]:
    lines = path.read_text("utf-8").split("\n")
    if lines and lines[0].startswith("#version"):
        lines = lines[1:]
    pairs = [tuple(line.split(" ")) for line in lines if line]
    if any(len(p) != 2 for p in pairs):
        raise ValueError(f"a line of {path.name} is not two tokens")
    return pairs  # type: ignore[return-value]


def wordpiece(file: Path, config: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    """A BERT tokenizer from vocab.txt: one token on each line."""
    try:
        lines = file.read_text("utf-8").split("\n")
    except UnicodeDecodeError as e:
        raise FileFormatError(f"{file}: this is no WordPiece vocabulary ({e}).") from None
    if lines and not lines[-1]:
        lines.pop()
    tokens = [line.removesuffix("\r") for line in lines]
    return build_wordpiece(
        tokens,
        lowercase=bool(config.get("do_lower_case", True)),
        strip_accents=config.get("strip_accents"),
        chinese=bool(config.get("tokenize_chinese_chars", True)),
    )


def build_wordpiece(
    tokens: list[str], *, lowercase: bool = True, strip_accents: bool | None = None, chinese: bool = True
) -> tuple[Any, dict[str, str]]:
    """BERT's tokenizer for a list of tokens, and its named special tokens."""
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

    vocab = {t: i for i, t in reversed(list(enumerate(tokens)))}
    names = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}
    missing = [names[k] for k in ("unk", "cls", "sep") if names[k] not in vocab]
    if missing:
        raise FileFormatError(f"a WordPiece vocabulary needs {', '.join(missing)}.")
    backend: Any = Backend(models.WordPiece(vocab, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(
        lowercase=lowercase, strip_accents=strip_accents, handle_chinese_chars=chinese
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(t, vocab[t]) for t in ("[CLS]", "[SEP]")],
    )
    return backend, {f"{k}_token": v for k, v in names.items() if v in vocab}
