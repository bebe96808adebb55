"""The metadata by which a GGUF file carries a tokenizer. Knows tokenizers; `votive.io` writes."""

from __future__ import annotations

import json
from typing import Any

from .gguf import KEYS
from .pieces import SPACE, fallback_byte
from .pieces_models import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED, merges_by_score
from .pretokenizers import PRE_TOKENIZERS, byte_level_split
from .tokenizer import Tokenizer

# Text on which no two rules of the table split alike.
_PROBE = (
    "Hello World's I'M we'LL  two   spaces\n\n \n\tTabs 1 12 123 1234567 3.14 $5+6=7 "
    "a+=b{}();// x\r\n"
    "ÀÉîõü straßeABCdef camelCaseWORD __init__ こんにちは世界カタ 中文123 한국어 Привет мир "
    "🎉🎊 e\u0301 अनुच्छेद ½ Ⅷ `tick` ~^| <a>|b$ (see)… end.  "
)


def to_gguf(tokenizer: Tokenizer) -> dict[str, Any]:
    """The `tokenizer.*` metadata of a tokenizer, from which `from_gguf` (and llama.cpp) rebuild it.

    >>> tok = votive.text.train_bpe(["one two"], vocab_size=260, split="gpt-2", progress=False)
    >>> meta = votive.text.to_gguf(tok)
    >>> meta["tokenizer.ggml.model"], meta["tokenizer.ggml.pre"], meta["tokenizer.ggml.tokens"][0]
    ('gpt2', 'gpt-2', '<|endoftext|>')
    """
    spec = json.loads(tokenizer.backend.to_str())
    tokens, types = _tokens(tokenizer, spec)
    kind = spec["model"]["type"]
    if kind == "BPE" and "ByteLevel" in _kinds(spec["decoder"]):
        meta = _byte_level(tokenizer, spec)
    elif kind == "BPE":
        meta = _sentencepiece(tokenizer, spec, tokens, types)
    elif kind == "Unigram":
        meta = _unigram(tokenizer, spec, tokens)
    elif kind == "WordPiece":
        meta = {"model": "bert", "pre": "default"}
        tokens = [_phantom(t) for t in tokens]
    else:
        raise ValueError(f"to_gguf: GGUF has no form for a {kind} vocabulary.")
    meta |= {"tokens": tokens, "token_type": types}
    for name, key in KEYS.items():
        i = getattr(tokenizer, f"{name}_token_id")
        if i is not None:
            meta[f"{key}_token_id"] = i
    if tokenizer.extra_end_ids:
        others = [i for i in tokenizer.extra_end_ids if i != tokenizer.eos_token_id]
        meta |= {f"{n}_token_id": i for n, i in zip(("eot", "eom"), others)}
    if kind != "WordPiece":
        ids = tokenizer.encode("a")
        meta["add_bos_token"] = tokenizer.bos_token_id is not None and (ids[0] == tokenizer.bos_token_id)
        meta["add_eos_token"] = tokenizer.eos_token_id is not None and (ids[-1] == tokenizer.eos_token_id)
    made = {f"tokenizer.ggml.{k}": v for k, v in meta.items()}
    if meta["model"] == "gpt2" and spec["normalizer"] is not None:
        made["votive.tokenizer.normalizer"] = _unicode_form(spec["normalizer"])
    return made | _templates(tokenizer)


def _unicode_form(spec: dict[str, Any]) -> str:
    # GGUF has no key for it; other readers take the text as it is.
    if spec["type"] not in ("NFC", "NFD", "NFKC", "NFKD"):
        raise ValueError(f"to_gguf: GGUF has no form for the normalizer {spec['type']} of a byte-level vocabulary.")
    return spec["type"]


def _kinds(spec: Any) -> set[str]:
    """The types of a component and, for a sequence, of its parts."""
    if spec is None:
        return set()
    parts = spec.get("decoders") or spec.get("normalizers") or spec.get("pretokenizers") or [spec]
    return {p["type"] for p in parts}


def _tokens(tok: Tokenizer, spec: dict[str, Any]) -> tuple[list[str], list[int]]:
    """Every token in the order of ids, with its type; ids that no token has are filled."""
    by_id = {i: t for t, i in tok.get_vocab().items()}
    added = tok.added_tokens_decoder
    unknown = spec["model"].get("unk_token")
    bytes_too = bool(spec["model"].get("byte_fallback"))
    tokens, types = [], []
    for i in range(max(by_id) + 1):
        token = by_id.get(i)
        if token is None:
            tokens.append(f"[PAD{i}]")
            types.append(UNUSED)
            continue
        tokens.append(token)
        if token == unknown or token == tok.unk_token:
            # Byte-level vocabularies name an ordinary special token here.
            types.append(UNKNOWN if unknown is not None or i not in added else CONTROL)
        elif i in added:
            types.append(CONTROL if added[i].special else USER_DEFINED)
        elif bytes_too and fallback_byte(token) is not None:
            types.append(BYTE)
        else:
            types.append(NORMAL)
    return tokens, types


def _merge_pairs(spec: dict[str, Any]) -> list[tuple[str, str]]:
    merges = spec["model"]["merges"]
    pairs = (m.split(" ", 1) if isinstance(m, str) else m for m in merges)
    return [(left, right) for left, right in pairs]


def _byte_level(tok: Tokenizer, spec: dict[str, Any]) -> dict[str, Any]:
    return {"model": "gpt2", "pre": _pre_name(tok), "merges": [f"{left} {right}" for left, right in _merge_pairs(spec)]}


def _pre_name(tok: Tokenizer) -> str:
    """The name of the rule that cuts text as this tokenizer does, found by trying."""
    ours = tok.backend.pre_tokenizer
    want = ours.pre_tokenize_str(_PROBE) if ours is not None else None
    for name in PRE_TOKENIZERS:
        if byte_level_split(name).pre_tokenize_str(_PROBE) == want:
            return name
    raise ValueError(
        "to_gguf: GGUF names the rule that cuts text into words, and none of the known ones "
        f"({', '.join(sorted(PRE_TOKENIZERS))}) cuts as this tokenizer does."
    )


def _sentencepiece(tok: Tokenizer, spec: dict[str, Any], tokens: list[str], types: list[int]) -> dict[str, Any]:
    marks = json.dumps([spec["normalizer"], spec["pre_tokenizer"]], ensure_ascii=False)
    if SPACE not in marks:
        raise ValueError(
            "to_gguf: GGUF holds byte-level BPE and SentencePiece BPE (spaces as ▁); this vocabulary is neither."
        )
    merged: dict[str, int] = {}
    merges = _merge_pairs(spec)
    for rank, (left, right) in enumerate(merges):
        merged.setdefault(left + right, rank)
    # Pieces that nothing merges into have no rank; the lowest score keeps their place.
    scores = [-float(merged.get(t, len(merges))) for t in tokens]
    meta = {"model": "llama", "pre": "default", "scores": scores, "add_space_prefix": _adds_space(tok)}
    plain = [i for i, t in enumerate(types) if t == NORMAL]
    implied = merges_by_score([tokens[i] for i in plain], [scores[i] for i in plain])
    if implied != merges:
        # llama.cpp knows scores only; readers that know merges get them as they are.
        meta["merges"] = [f"{left} {right}" for left, right in merges]
    return meta


def _adds_space(tok: Tokenizer) -> bool:
    first = tok.tokenize("a")
    return bool(first) and first[0].startswith(SPACE)


def _unigram(tok: Tokenizer, spec: dict[str, Any], tokens: list[str]) -> dict[str, Any]:
    import base64

    scored = {t: float(s) for t, s in spec["model"]["vocab"]}
    meta: dict[str, Any] = {
        "model": "t5",
        "pre": "default",
        "scores": [scored.get(t, 0.0) for t in tokens],
        "add_space_prefix": _adds_space(tok),
        "remove_extra_whitespaces": tok.encode("a  b") == tok.encode("a b"),
    }
    steps = (spec["normalizer"] or {}).get("normalizers") or [spec["normalizer"] or {}]
    for step in steps:
        if step.get("type") == "Precompiled":
            meta["precompiled_charsmap"] = list(base64.b64decode(step["precompiled_charsmap"]))
    return meta


def _phantom(token: str) -> str:
    """BERT's tokens as GGUF spells them: ▁ begins a word, nothing continues it."""
    if token.startswith("[") and token.endswith("]"):
        return token
    return token[2:] if token.startswith("##") else SPACE + token


def _templates(tok: Tokenizer) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, template in tok.chat_templates.items():
        key = "tokenizer.chat_template"
        made[key if name == "default" else f"{key}.{name}"] = template
    others = [n for n in tok.chat_templates if n != "default"]
    return made | ({"tokenizer.chat_templates": others} if others else {})
