"""Tokenizers rebuilt from the metadata of GGUF files, and from llama2.c's lists of pieces.

The keys are those of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Knows metadata as
a mapping; `votive.io` reads the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..serialization.container import FileFormatError
from .classic import build_wordpiece
from .ends import set_ends
from .pieces import SPACE
from .pieces_models import BYTE, CONTROL, NORMAL, UNKNOWN, first_ids, mark_tokens, spm_bpe, spm_unigram
from .pretokenizers import WHOLE_WORDS, byte_level_split, canonical
from .tokenizer import Tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend

# What llama.cpp assumes where a file is silent.
_DEFAULT_IDS = {"llama": {"bos": 1, "eos": 2, "unk": 0}, "bert": {}, "gpt2": {}, "t5": {"eos": 1, "unk": 2, "pad": 0}}
# What files call special tokens.
KEYS = {
    "bos": "bos",
    "eos": "eos",
    "unk": "unknown",
    "sep": "seperator",
    "pad": "padding",
    "cls": "cls",
    "mask": "mask",
}
# Other ids that end what a model says.
_ENDS = ("eot", "eom")


def from_gguf(metadata: Mapping[str, Any], pre: str | None = None) -> Tokenizer:
    """The tokenizer that a GGUF file's metadata describe.

    `pre` names a pre-tokenizer of `votive.text.PRE_TOKENIZERS` where a file names none that is
    known.

    >>> tok = votive.text.train_bpe(["one two"], vocab_size=260, progress=False)
    >>> again = votive.text.from_gguf(votive.text.to_gguf(tok))
    >>> again.encode("one two three") == tok.encode("one two three")
    True
    """
    meta = {k.removeprefix("tokenizer.ggml."): v for k, v in metadata.items() if k.startswith("tokenizer.ggml.")}
    kind = meta.get("model")
    if kind not in _BUILDERS:
        raise FileFormatError(
            f"from_gguf: the tokenizer model {kind!r} is not known; known are {', '.join(sorted(_BUILDERS))}."
        )
    tokens = meta.get("tokens")
    if not isinstance(tokens, Sequence) or not len(tokens):
        raise FileFormatError("from_gguf: the metadata have no tokenizer.ggml.tokens.")
    meta["tokens"] = tokens = [t if isinstance(t, str) else bytes(t).decode() for t in tokens]
    for name in ("token_type", "scores"):
        if meta.get(name) is not None and len(meta[name]) != len(tokens):
            raise FileFormatError(
                f"from_gguf: {len(tokens)} tokens but {len(meta[name])} entries in tokenizer.ggml.{name}."
            )
    meta["pre"] = pre or meta.get("pre") or "default"
    meta["architecture"] = metadata.get("general.architecture", "")
    named = _named(kind, meta)
    try:
        backend = _BUILDERS[kind](meta, named)
    except (FileFormatError, ValueError):
        raise
    except Exception as e:  # the library raises bare exceptions
        raise FileFormatError(f"from_gguf: the vocabulary is inconsistent ({e}).") from None
    form = metadata.get("votive.tokenizer.normalizer")
    if form in ("NFC", "NFD", "NFKC", "NFKD"):
        from tokenizers import normalizers

        backend.normalizer = getattr(normalizers, form)()
    limit = metadata.get(f"{meta['architecture']}.context_length")
    tok = Tokenizer(
        backend,
        special_tokens=named,
        chat_template=_templates(metadata),
        model_max_length=int(limit) if limit else None,
    )
    tok.extra_end_ids = [int(meta[f"{n}_token_id"]) for n in _ENDS if f"{n}_token_id" in meta]
    return tok


def from_gguf_file(path: str | Path) -> Tokenizer:
    """The tokenizer inside a GGUF file."""
    from ..io.gguf import GGUFFile

    with GGUFFile(path) as file:
        return from_gguf(file.metadata)


def from_llama2c(pieces: Sequence[bytes], scores: Sequence[float]) -> Tokenizer:
    r"""The tokenizer of a llama2.c file: pieces with scores, BOS = 1, EOS = 2.

    >>> base = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *(b"<0x%02X>" % b for b in range(256))]
    >>> pieces = [*base, b" ", b"h", b"i", b"hi", b" hi"]
    >>> tok = votive.text.from_llama2c(pieces, [0.0] * 262 + [-1.0, -2.0])
    >>> tok.encode("hi é")
    [1, 263, 259, 198, 172]
    """
    if len(pieces) != len(scores) or len(pieces) < 259:
        raise FileFormatError(
            f"from_llama2c: {len(pieces)} pieces and {len(scores)} scores; there is one score for "
            "each piece, and the first 259 are special tokens and bytes."
        )
    names = {0: "<unk>", 1: "<s>", 2: "</s>"}
    tokens = [names.get(i) or piece.decode("utf-8", "replace").replace(" ", SPACE) for i, piece in enumerate(pieces)]
    types = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * (len(tokens) - 259)]
    backend = spm_bpe(tokens, scores, types, unknown="<unk>")
    set_ends(backend, "<s>", None)
    return Tokenizer(backend, special_tokens={"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"})


def _named(kind: str, meta: Mapping[str, Any]) -> dict[str, str]:
    ids = dict(_DEFAULT_IDS[kind])
    for name, key in KEYS.items():
        # One key is misspelled in the format itself; files with the right spelling exist.
        value = meta.get(f"{key}_token_id", meta.get(f"{name}_token_id"))
        if value is None and name == "sep":
            value = meta.get("separator_token_id")
        if value is not None:
            ids[name] = int(value)
    tokens = meta["tokens"]
    for name, i in ids.items():
        if not 0 <= i < len(tokens):
            raise FileFormatError(f"from_gguf: the {name} token has id {i} of {len(tokens)}.")
    return {f"{name}_token": tokens[i] for name, i in ids.items()}


def _types(meta: Mapping[str, Any]) -> list[int]:
    types = meta.get("token_type")
    return [int(t) for t in types] if types is not None else [NORMAL] * len(meta["tokens"])


def _ends(backend: Backend, meta: Mapping[str, Any], named: Mapping[str, str], bos: bool, eos: bool) -> None:
    add_bos, add_eos = meta.get("add_bos_token", bos), meta.get("add_eos_token", eos)
    set_ends(backend, named.get("bos_token") if add_bos else None, named.get("eos_token") if add_eos else None)


def _byte_level(meta: dict[str, Any], named: Mapping[str, str]) -> Any:
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models

    if meta.get("merges") is None:
        raise FileFormatError("from_gguf: a byte-level vocabulary needs tokenizer.ggml.merges.")
    name = canonical(meta["pre"])
    merges = [_pair(m) for m in meta["merges"]]
    vocab = first_ids(meta["tokens"])
    backend: Any = Backend(models.BPE(vocab, merges, ignore_merges=name in WHOLE_WORDS))
    backend.pre_tokenizer = byte_level_split(name)
    backend.decoder = decoders.ByteLevel()
    mark_tokens(backend, meta["tokens"], _types(meta))
    _ends(backend, meta, named, bos=name in WHOLE_WORDS, eos=False)
    return backend


def _pair(merge: Any) -> tuple[str, str]:
    # A token may itself contain a space when a file spells tokens as they are.
    left, _, right = str(merge).partition(" ")
    if not left or not right:
        raise FileFormatError(f"from_gguf: {merge!r:.40} does not merge two tokens.")
    return left, right


def _sentencepiece(meta: dict[str, Any], named: Mapping[str, str]) -> Any:
    tokens, scores = meta["tokens"], meta.get("scores")
    if scores is None or meta["architecture"].startswith("gemma"):
        # Gemma's pieces stand in the order of their merges, which the scores do not give.
        scores = [-float(i) for i in range(len(tokens))]
    backend = spm_bpe(
        tokens,
        scores,
        _types(meta),
        unknown=named.get("unk_token"),
        add_space_prefix=bool(meta.get("add_space_prefix", True)),
        remove_extra_whitespaces=bool(meta.get("remove_extra_whitespaces", False)),
        charsmap=_charsmap(meta),
        merges=[_pair(m) for m in meta["merges"]] if meta.get("merges") else None,
    )
    _ends(backend, meta, named, bos=True, eos=False)
    return backend


def _unigram(meta: dict[str, Any], named: Mapping[str, str]) -> Any:
    if meta.get("scores") is None:
        raise FileFormatError("from_gguf: a unigram vocabulary needs tokenizer.ggml.scores.")
    tokens = meta["tokens"]
    backend = spm_unigram(
        tokens,
        meta["scores"],
        _types(meta),
        unknown_id=tokens.index(named["unk_token"]),
        add_space_prefix=bool(meta.get("add_space_prefix", True)),
        remove_extra_whitespaces=bool(meta.get("remove_extra_whitespaces", True)),
        charsmap=_charsmap(meta),
    )
    _ends(backend, meta, named, bos=False, eos=True)
    return backend


def _charsmap(meta: Mapping[str, Any]) -> bytes | None:
    found = meta.get("precompiled_charsmap")
    # Signed or unsigned bytes, by writer.
    return bytes(int(b) & 0xFF for b in found) if found is not None and len(found) else None


def _wordpiece(meta: dict[str, Any], named: dict[str, str]) -> Any:
    def spelled(token: str) -> str:
        # Words begin with ▁ here; in BERT's own files what continues them begins with ##.
        if token.startswith("[") and token.endswith("]"):
            return token
        return token[1:] if token.startswith(SPACE) else "##" + token

    backend, defaults = build_wordpiece([spelled(t) for t in meta["tokens"]])
    named.clear()
    named.update(defaults)
    return backend


_BUILDERS = {"gpt2": _byte_level, "llama": _sentencepiece, "t5": _unigram, "bert": _wordpiece}


def _templates(metadata: Mapping[str, Any]) -> dict[str, str] | None:
    found = {}
    if "tokenizer.chat_template" in metadata:
        found["default"] = metadata["tokenizer.chat_template"]
    for name in metadata.get("tokenizer.chat_templates") or ():
        template = metadata.get(f"tokenizer.chat_template.{name}")
        if template is not None:
            found[str(name)] = template
    return found or None
