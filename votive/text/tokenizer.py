"""The tokenizer that users hold: text to ids and back, in the manner of Hugging Face.

Wraps one `tokenizers.Tokenizer`, which does the splitting; knows no files and no models.
"""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .chat import ChatTemplates
from .encoding import BatchEncoding, as_arrays, check_tensors, pad_rows
from .inputs import Ids, Text, asked_or, batch_of, checked_id, plain_ids
from .pieces import SPACE, byte_level_bytes, fallback_byte
from .special import NAMED
from .stages import clean_up_text

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend

_TRUNCATIONS = ("longest_first", "only_first", "only_second", "do_not_truncate")
_PADDINGS = ("longest", "max_length", "do_not_pad")


class Tokenizer(ChatTemplates):
    """Text to token ids and back.

    Made by `Tokenizer.from_pretrained`, `votive.text.train_bpe` or `votive.text.from_gguf`.

    >>> tok = votive.text.train_bpe(["one two two"], vocab_size=260, progress=False)
    >>> tok.decode(tok("two ☃").input_ids)
    'two ☃'
    """

    def __init__(
        self,
        backend: Backend,
        *,
        special_tokens: Mapping[str, Any] | None = None,
        extra_special_tokens: Iterable[Any] = (),
        chat_template: str | Mapping[str, str] | None = None,
        model_max_length: int | None = None,
        padding_side: str = "right",
        truncation_side: str = "right",
        clean_up_tokenization_spaces: bool = False,
        model_input_names: Sequence[str] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.backend = backend
        # Set for each call instead: a file that pads or cuts by itself would surprise.
        backend.no_padding()
        backend.no_truncation()
        self.config = dict(config or {})
        self.model_max_length = model_max_length
        self.padding_side = padding_side
        self.truncation_side = truncation_side
        self.clean_up_tokenization_spaces = clean_up_tokenization_spaces
        kind = type(backend.model).__name__
        default = ["input_ids", *["token_type_ids"] * (kind == "WordPiece"), "attention_mask"]
        self.model_input_names = list(model_input_names or default)
        # Ids besides `eos_token` that end what a model says, as its files list them.
        self.extra_end_ids: list[int] = []
        self._kinds: set[str] | None = None
        self._lock = threading.Lock()
        self._init_special(special_tokens or {}, extra_special_tokens)
        self._init_chat(chat_template)

    @classmethod
    def from_pretrained(cls, source: str | os.PathLike[str], **options: Any) -> Tokenizer:
        """A tokenizer from a folder, one of its files, a GGUF file, or a Hugging Face repo id.

        `options` are those of the constructor and replace what the files say.

        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> tok = votive.text.train_bpe(["some text"], vocab_size=260, progress=False)
        >>> tok.save_pretrained(folder)
        >>> votive.text.Tokenizer.from_pretrained(folder).encode("text") == tok.encode("text")
        True
        """
        from .loading import load

        return load(source, **options)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write tokenizer.json, tokenizer_config.json and the chat templates into a folder."""
        from .saving import save

        save(self, folder)

    # ---- size and vocabulary

    @property
    def vocab_size(self) -> int:
        """How many tokens the model of the tokenizer has, without those added to it."""
        return self.backend.get_vocab_size(with_added_tokens=False)

    def __len__(self) -> int:
        return self.backend.get_vocab_size(with_added_tokens=True)

    def get_vocab(self) -> dict[str, int]:
        """Every token with its id."""
        return self.backend.get_vocab(with_added_tokens=True)

    def convert_ids_to_tokens(self, ids: Ids, skip_special_tokens: bool = False) -> Any:
        """Tokens as they are written in the vocabulary, for one id or a list."""
        found = plain_ids(ids)
        if isinstance(found, int):
            return self.backend.id_to_token(checked_id(found))
        drop = self.backend_special_ids() if skip_special_tokens else set()
        return [self.backend.id_to_token(checked_id(i)) for i in found if i not in drop]

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        """The text of tokens as they are written in the vocabulary.

        >>> tok = votive.text.train_bpe(["one two"], vocab_size=260, progress=False)
        >>> tok.convert_tokens_to_string(tok.tokenize("two one"))
        'two one'
        """
        decoder = self.backend.decoder
        return " ".join(tokens) if decoder is None else decoder.decode(list(tokens))

    def convert_tokens_to_ids(self, tokens: str | Iterable[str]) -> Any:
        """The id of a token or of each in a list; that of the unknown token where there is none."""
        if not isinstance(tokens, str):
            return [self.convert_tokens_to_ids(t) for t in tokens]
        found = self.backend.token_to_id(tokens)
        return self.unk_token_id if found is None else found

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token adds to the text.

        >>> tok = votive.text.train_bpe(["one two"], vocab_size=260, progress=False)
        >>> b"".join(tok.token_bytes(i) for i in tok.encode("é ☃")).decode()
        'é ☃'
        """
        token = self.backend.id_to_token(checked_id(token_id))
        if token is None:
            raise IndexError(f"token_bytes: there is no token {token_id}; the tokenizer has {len(self)} tokens.")
        if token_id in self.backend_special_ids():
            return token.encode()
        kinds = self._decoder_kinds()
        if "ByteLevel" in kinds:
            return byte_level_bytes(token)
        byte = fallback_byte(token) if "ByteFallback" in kinds else None
        if byte is not None:
            return bytes([byte])
        if "WordPiece" in kinds:
            return token.removeprefix("##").encode()
        if "Metaspace" in kinds or "Replace" in kinds:
            return token.replace(SPACE, " ").encode()
        return token.encode()

    def _decoder_kinds(self) -> set[str]:
        if self._kinds is None:
            decoder = self.backend.decoder
            spec = json.loads(decoder.__getstate__()) if decoder is not None else {"decoders": []}
            self._kinds = {d["type"] for d in spec.get("decoders", [spec])}
        return self._kinds

    # ---- text to ids

    def __call__(
        self,
        text: Text,
        text_pair: Text | None = None,
        *,
        add_special_tokens: bool = True,
        padding: bool | str = False,
        truncation: bool | str | None = None,
        max_length: int | None = None,
        stride: int = 0,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        split_special_tokens: bool = False,
        return_tensors: str | None = None,
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_offsets_mapping: bool = False,
        return_special_tokens_mask: bool = False,
        return_length: bool = False,
    ) -> BatchEncoding:
        """Encode a text, a list of texts, or pairs (`text_pair`, or a list of tuples).

        `return_tensors` is None for lists, "vt" for tensors, "np" for arrays; the other arguments
        are those of a transformers tokenizer. With `return_overflowing_tokens`, what was cut off becomes rows, each of
        which begins with the last `stride` tokens of the one before; `overflow_to_sample_mapping` has their texts.
        """
        check_tensors(return_tensors)
        inputs, single = batch_of(text, text_pair, is_split_into_words)
        padding, truncation, max_length = self._strategies(padding, truncation, max_length)
        with self._lock:
            rows = self._encode(
                inputs, add_special_tokens, truncation, max_length, stride, is_split_into_words, split_special_tokens
            )
        samples = list(range(len(rows)))
        if return_overflowing_tokens:
            parts = [[row, *row.overflowing] for row in rows]
            samples = [i for i, several in enumerate(parts) for _ in several]
            rows = [row for several in parts for row in several]
        self._pad_encodings(rows, padding, max_length, pad_to_multiple_of, padding_side or self.padding_side)
        names = self.model_input_names
        types = asked_or(return_token_type_ids, "token_type_ids" in names)
        mask = asked_or(return_attention_mask, "attention_mask" in names)
        wanted = {
            "input_ids": ("ids", True),
            "token_type_ids": ("type_ids", types),
            "attention_mask": ("attention_mask", mask),
            "special_tokens_mask": ("special_tokens_mask", return_special_tokens_mask),
            "offset_mapping": ("offsets", return_offsets_mapping),
        }
        columns = {k: [getattr(r, a) for r in rows] for k, (a, want) in wanted.items() if want}
        if return_length:
            columns["length"] = [len(r) for r in columns["input_ids"]]
        if return_overflowing_tokens:
            columns["overflow_to_sample_mapping"] = samples
        if return_tensors is not None:
            return BatchEncoding(as_arrays(columns, return_tensors), rows, single)
        # A text that overflows may be several rows.
        if single and not return_overflowing_tokens:
            columns = {k: v[0] for k, v in columns.items()}
        return BatchEncoding(columns, rows, single)

    def encode(self, text: Text, text_pair: Text | None = None, **options: Any) -> Any:
        """The ids of a text (or pair); takes the arguments of a call.

        >>> tok = votive.text.train_bpe(["aa"], vocab_size=257, progress=False)
        >>> len(tok.encode("xyz"))
        3
        """
        return self(text, text_pair, **options)["input_ids"]

    def tokenize(self, text: str, pair: str | None = None, add_special_tokens: bool = False) -> list[str]:
        """The tokens of a text, as they are written in the vocabulary."""
        return self(text, pair, add_special_tokens=add_special_tokens).tokens()

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """How many special tokens a call puts around a text (or pair)."""
        return self.backend.num_special_tokens_to_add(pair)

    def pad(
        self,
        encoded_inputs: Any,
        padding: bool | str = True,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: str | None = None,
    ) -> BatchEncoding:
        """Bring encoded rows (a list of dicts, or a dict of lists) to one length.

        >>> tok = votive.text.train_bpe(["aa"], vocab_size=257, progress=False)
        >>> tok.pad([{"input_ids": [5, 6]}, {"input_ids": [7]}]).attention_mask
        [[1, 1], [1, 0]]
        """
        check_tensors(return_tensors)
        if not isinstance(encoded_inputs, Mapping):
            encoded_inputs = {k: [plain_ids(r[k]) for r in encoded_inputs] for k in encoded_inputs[0]}
        columns = {k: plain_ids(v) for k, v in encoded_inputs.items()}
        if columns["input_ids"] and isinstance(columns["input_ids"][0], int):
            columns = {k: [v] for k, v in columns.items()}
        columns.setdefault("attention_mask", [[1] * len(r) for r in columns["input_ids"]])
        strategy, _, max_length = self._strategies(padding, False, max_length)
        columns = self._padded(columns, strategy, max_length, pad_to_multiple_of, padding_side or self.padding_side)
        made = as_arrays(columns, return_tensors) if return_tensors else columns
        return BatchEncoding(made)

    def _encode(
        self,
        inputs: list[Any],
        special: bool,
        truncation: str,
        max_length: int | None,
        stride: int,
        words: bool,
        split_special: bool,
    ) -> list[Any]:
        if truncation != "do_not_truncate" and max_length is not None:
            pair = any(isinstance(i, tuple) for i in inputs)
            around = self.num_special_tokens_to_add(pair) if special else 0
            if max_length < around:
                raise ValueError(
                    f"tokenizer: max_length={max_length} leaves no room for the {around} special "
                    "tokens; raise it or pass add_special_tokens=False."
                )
            if not 0 <= stride <= max(max_length - around - 1, 0):
                raise ValueError(
                    f"tokenizer: stride={stride} of max_length={max_length} would never come to the end of a text; "
                    f"use 0..{max(max_length - around - 1, 0)}."
                )
            self.backend.enable_truncation(
                max_length, stride=stride, strategy=truncation, direction=self.truncation_side
            )
        self.backend.encode_special_tokens = split_special
        without = self.backend.post_processor is None
        if without:  # which tells the library what each row was made of
            self.backend.post_processor = _nothing_around()
        try:
            return self.backend.encode_batch(inputs, is_pretokenized=words, add_special_tokens=special)
        except TypeError:
            raise
        except Exception as e:  # the library raises bare exceptions
            raise ValueError(f"tokenizer: {e}") from e
        finally:
            self.backend.no_truncation()
            self.backend.encode_special_tokens = False
            if without:
                self.backend.post_processor = None

    def _strategies(
        self, padding: bool | str, truncation: bool | str | None, max_length: int | None
    ) -> tuple[str, str, int | None]:
        if max_length is not None and padding is False and truncation is None:
            truncation = True
        named = {None: "do_not_truncate", False: "do_not_truncate", True: "longest_first"}
        pad = padding if isinstance(padding, str) else "longest" if padding else "do_not_pad"
        cut = truncation if isinstance(truncation, str) else named[truncation]
        if pad not in _PADDINGS:
            raise ValueError(f"padding={padding!r} is not known; use True, False or {_PADDINGS}.")
        if cut not in _TRUNCATIONS:
            raise ValueError(f"truncation={truncation!r} is not known; use True, False or {_TRUNCATIONS}.")
        if max_length is not None and pad == "longest" and cut == "do_not_truncate":
            warnings.warn(
                "max_length is ignored when padding=True and nothing is truncated; to pad to it "
                "use padding='max_length'.",
                stacklevel=3,
            )
        if max_length is None and (pad == "max_length" or cut != "do_not_truncate"):
            max_length = self.model_max_length
            if max_length is None and pad == "max_length":
                raise ValueError("padding='max_length' needs max_length: the tokenizer names no limit.")
        return pad, cut, max_length

    def _padded(
        self, columns: dict[str, Any], strategy: str, max_length: int | None, multiple: int | None, side: str
    ) -> dict[str, Any]:
        ids = columns["input_ids"]
        length = self._padded_length([len(r) for r in ids], strategy, max_length, multiple, side)
        if length is None:
            return columns
        values = {"input_ids": self.pad_token_id, "special_tokens_mask": 1, "offset_mapping": (0, 0), "labels": -100}
        return {k: pad_rows(v, length, side, values.get(k, 0)) for k, v in columns.items()}

    def _padded_length(
        self, lengths: list[int], strategy: str, max_length: int | None, multiple: int | None, side: str
    ) -> int | None:
        """The length that rows are brought to; None where they stay as they are."""
        if side not in ("left", "right"):
            raise ValueError(f"padding_side={side!r} is not known; use 'left' or 'right'.")
        if strategy == "do_not_pad":
            return None
        if self.pad_token_id is None:
            raise ValueError(
                "tokenizer: padding needs a padding token and there is none; set one, for example "
                "tok.pad_token = tok.eos_token."
            )
        length = max_length if strategy == "max_length" and max_length is not None else max(lengths, default=0)
        return -(-length // multiple) * multiple if multiple else length

    def _pad_encodings(
        self, rows: list[Any], strategy: str, max_length: int | None, multiple: int | None, side: str
    ) -> None:
        """Pad rows of the library, so that what they tell of words and characters is padded, too."""
        length = self._padded_length([len(r.ids) for r in rows], strategy, max_length, multiple, side)
        if length is None:
            return
        for row in rows:
            row.pad(length, direction=side, pad_id=self.pad_token_id, pad_token=self.pad_token)

    # ---- ids to text

    def cleans_up(self, asked: bool | None) -> bool:
        """Whether decoding removes the spaces before punctuation.

        Files of BPE tokenizers ask for it by accident, and it would change their text, so for
        these only the argument counts.
        """
        if asked is not None:
            return asked
        return self.clean_up_tokenization_spaces and type(self.backend.model).__name__ != "BPE"

    def decode(
        self, token_ids: Ids, skip_special_tokens: bool = False, clean_up_tokenization_spaces: bool | None = None
    ) -> Any:
        """The text of ids: a number, a list, an array or a tensor; a list of texts for 2-D input.

        >>> tok = votive.text.train_bpe(["aa"], vocab_size=257, progress=False)
        >>> tok.decode(votive.tensor(tok.encode("hi")))
        'hi'
        """
        ids = plain_ids(token_ids)
        if isinstance(ids, int):
            ids = [ids]
        if ids and not isinstance(ids[0], int):
            return [self.decode(r, skip_special_tokens, clean_up_tokenization_spaces) for r in ids]
        text = self.backend.decode([checked_id(i) for i in ids], skip_special_tokens)
        return clean_up_text(text) if self.cleans_up(clean_up_tokenization_spaces) else text

    def batch_decode(self, sequences: Ids, **options: Any) -> list[str]:
        """The text of each row of ids; takes the arguments of `decode`."""
        return [self.decode(row, **options) for row in plain_ids(sequences)]

    # ---- as an object

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        special = {n: getattr(self, n) for n in NAMED if getattr(self, n) is not None}
        return f"Tokenizer({type(self.backend.model).__name__}, {len(self)} tokens, {special})"


def _nothing_around() -> Any:
    from tokenizers import processors

    return processors.TemplateProcessing(single="$A", pair="$A $B:1", special_tokens=[])
