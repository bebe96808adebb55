"""Small tokenizers of every kind, made in memory, for the tests of this folder."""

from __future__ import annotations

from functools import cache
from typing import Any

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

import votive
from votive.text import Tokenizer

TEXTS = [
    "The quick brown fox jumps over the lazy dog, again and again.",
    "It's a test: don't you see? I'm sure we've 1234 reasons!",
    "Grüße aus Köln – ein schöner Tag für 8 € … 你好世界 🎉",
    "def f(x):\n    return x ** 2  # square\n\n\nprint(f(3))",
] * 3


@cache
def byte_level() -> Tokenizer:
    return votive.text.train_bpe(
        TEXTS, 400, special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"], progress=False
    )


@cache
def sentencepiece_bpe() -> Tokenizer:
    """As Llama 2: spaces as ▁, bytes for what the vocabulary lacks."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256))]
    letters = list("▁abcdefghijklmnopqrstuvwxyzT.,'!?")
    words = ["th", "▁th", "▁the", "in", "er", "an", "▁a", "▁an", "and", "▁▁"]
    merges = [
        ("t", "h"),
        ("▁", "th"),
        ("▁th", "e"),
        ("i", "n"),
        ("e", "r"),
        ("a", "n"),
        ("▁", "a"),
        ("▁", "an"),
        ("▁a", "n"),
        ("an", "d"),
        ("▁", "▁"),
    ]
    vocab = {p: i for i, p in enumerate([*pieces, *letters, *words])}
    backend: Any = Backend(models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]
    )
    special = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    return Tokenizer(backend, special_tokens=special)


@cache
def unigram() -> Tokenizer:
    letters = list("abcdefghijklmnopqrstuvwxyzT.,'!?")
    scored = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    scored += [(c, -5.0) for c in letters] + [("▁the", -3.0), ("ing", -4.0), ("▁a", -3.5)]
    backend: Any = Backend(models.Unigram(scored, unk_id=2))
    backend.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")])
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    special = {"unk_token": "<unk>", "pad_token": "<pad>", "eos_token": "</s>"}
    return Tokenizer(backend, special_tokens=special, clean_up_tokenization_spaces=True)


@cache
def wordpiece() -> Tokenizer:
    letters = list("abcdefghijklmnopqrstuvwxyz.,'!?")
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *letters,
        *("##" + c for c in letters),
        "the",
        "do",
        "not",
        "##ing",
        "##er",
        "n",
        "t",
        "don",
    ]
    vocab = {w: i for i, w in enumerate(dict.fromkeys(words))}
    backend: Any = Backend(models.WordPiece(vocab, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    return Tokenizer(
        backend, special_tokens={f"{k}_token": v for k, v in names.items()}, clean_up_tokenization_spaces=True
    )


@cache
def plain_words() -> Tokenizer:
    vocab = {w: i for i, w in enumerate(["<unk>", "a", "b", "c d", "."])}
    return Tokenizer(Backend(models.WordLevel(vocab, unk_token="<unk>")))


@cache
def suffix_bpe() -> Tokenizer:
    """As the first GPT: words end in </w>."""
    vocab = {w: i for i, w in enumerate(["<unk>", "a", "b", "a</w>", "b</w>", "ab</w>"])}
    backend: Any = Backend(models.BPE(vocab, [("a", "b</w>")], unk_token="<unk>", end_of_word_suffix="</w>"))
    backend.decoder = decoders.BPEDecoder("</w>")
    return Tokenizer(backend)


@cache
def speech_letters() -> Tokenizer:
    vocab = {w: i for i, w in enumerate(["<pad>", "|", "a", "b", "'s", ".", " ."])}
    backend: Any = Backend(models.WordLevel(vocab, unk_token="<pad>"))
    backend.decoder = decoders.CTC("<pad>", "|")
    return Tokenizer(backend)


KINDS = {
    "byte_level": byte_level,
    "sentencepiece_bpe": sentencepiece_bpe,
    "unigram": unigram,
    "wordpiece": wordpiece,
    "plain_words": plain_words,
    "suffix_bpe": suffix_bpe,
    "speech_letters": speech_letters,
}
