"""Continuations of texts and conversations. Names of arguments and of results are transformers'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import votive

from ..tensor import Tensor
from .base import Pipeline, Row


def is_chat(inputs: Any) -> bool:
    """Whether something is a conversation: messages with a role.

    >>> from votive.pipelines.text_generation import is_chat
    >>> is_chat([{"role": "user", "content": "Hi"}]), is_chat(["Hi"])
    (True, False)
    """
    return isinstance(inputs, list | tuple) and bool(inputs) and isinstance(inputs[0], Mapping) and "role" in inputs[0]


class TextGenerationPipeline(Pipeline):
    """`pipe(text)` gives `[{"generated_text": …}]`; of a conversation, the conversation with the answer.

    `return_full_text=False` leaves the text out that was given. Options that are not its own are settings of
    `generate`. Where neither the caller nor the model's files say so, 256 tokens are drawn at a temperature of 0.7.

    >>> votive.pipelines.TextGenerationPipeline.uses
    ('causal',)
    """

    task, uses = "text-generation", ("causal",)
    generation: ClassVar[dict[str, Any]] = {"max_new_tokens": 256, "do_sample": True, "temperature": 0.7}
    other_name = "text_inputs"

    def ready(self) -> None:
        """Texts of a batch end at one place, so they are padded before."""
        self.tokenizer.padding_side = "left"

    def one_input(self, inputs: Any) -> bool:
        return is_chat(inputs)

    def sorted_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options that some method takes, checked before anything runs."""
        told = [n for n in ("return_full_text", "return_text", "return_tensors") if options.get(n) is not None]
        if len(told) > 1:
            raise ValueError(f"{type(self).__name__}: give {told[0]} or {told[1]}, not both.")
        if options.get("handle_long_generation") not in (None, "hole"):
            raise ValueError(f"{type(self).__name__}: handle_long_generation may be None or 'hole'.")
        return super().sorted_options(options)

    def prepare(
        self,
        item: Any,
        prefix: str = "",
        add_special_tokens: bool | None = None,
        truncation: bool | str | None = None,
        padding: bool | str | None = None,
        max_length: int | None = None,
        max_new_tokens: int | None = None,
        handle_long_generation: str | None = None,
        continue_final_message: bool | None = None,
        tokenizer_encode_kwargs: Mapping[str, Any] | None = None,
        tools: list[Any] | None = None,
        documents: list[dict[str, Any]] | None = None,
    ) -> Iterable[Row]:
        """One row."""
        given: dict[str, Any] = {"truncation": truncation, "padding": padding}
        if truncation is not None or padding is not None:
            given["max_length"] = max_length
        options = {k: v for k, v in given.items() if v is not None} | dict(tokenizer_encode_kwargs or {})
        if is_chat(item):
            goes_on = item[-1]["role"] == "assistant" if continue_final_message is None else continue_final_message
            found = dict(
                self.tokenizer.apply_chat_template(
                    list(item), tools=tools, documents=documents, add_generation_prompt=not goes_on,
                    continue_final_message=goes_on, return_dict=True, return_tensors="vt", **options,
                )
            )  # fmt: skip
            told = {"given": list(item), "goes_on": goes_on}
        elif isinstance(item, str):
            if add_special_tokens is not None:
                options["add_special_tokens"] = add_special_tokens
            found, told = self.encoded(prefix + item, **options), {"given": item}
        else:
            raise ValueError(
                f"{type(self).__name__}: give a text or a conversation, {{'role': …, 'content': …}} for each message; "
                f"got {type(item).__name__}."
            )
        if handle_long_generation == "hole":
            room = self._room(found["input_ids"].shape[1], max_new_tokens, max_length)
            found = {k: v[:, -room:] for k, v in found.items()} if room is not None else found
        return [Row({k: v for k, v in found.items() if k in ("input_ids", "attention_mask")}, told)]

    def _room(self, length: int, new: int | None, total: int | None) -> int | None:
        """How much of a text is kept, if not all of it."""
        limit = self.tokenizer.model_max_length
        settings = {k: v for k, v in (("max_new_tokens", new), ("max_length", total)) if v is not None}
        found = self.generated(settings)
        count = found.get("max_new_tokens")
        count = found.get("max_length", 0) - length if count is None else count
        if limit is None or length + count <= limit:
            return None
        if limit - count <= 0:
            raise ValueError(
                f"{type(self).__name__}: {count} new tokens leave no room for the text in {limit}; ask for fewer."
            )
        return limit - count

    def run(
        self,
        tensors: dict[str, Tensor],
        max_length: int | None = None,
        max_new_tokens: int | None = None,
        stop_sequence: str | list[str] | None = None,
        **settings: Any,
    ) -> dict[str, Any]:
        """Texts with what follows, (batch, texts, tokens)."""
        for name, value in (("max_length", max_length), ("max_new_tokens", max_new_tokens)):
            if value is not None:
                settings[name] = value
        if stop_sequence is not None:
            settings["stop_strings"] = [stop_sequence] if isinstance(stop_sequence, str) else list(stop_sequence)
        settings.setdefault("tokenizer", self.tokenizer)
        ids = tensors["input_ids"]
        if not ids.shape[1]:
            raise ValueError(f"{type(self).__name__}: an empty text has no token to go on from; give a word.")
        found = self.model.generate(ids, attention_mask=tensors.get("attention_mask"), **self.generated(settings))
        found = found if isinstance(found, Tensor) else found.sequences
        return {"sequences": found.reshape(ids.shape[0], -1, found.shape[-1])}

    def finish(
        self,
        rows: list[Row],
        return_full_text: bool | None = None,
        return_tensors: bool | None = None,
        return_text: bool | None = None,
        clean_up_tokenization_spaces: bool | None = None,
        skip_special_tokens: bool = True,
    ) -> list[dict[str, Any]]:
        """A record for each text that was made."""
        row, found = rows[0], []
        for sequence in row.found["sequences"][0].tolist():
            if return_tensors or return_text is False:
                found.append({"generated_token_ids": sequence})
                continue
            text = self.tokenizer.decode(
                sequence[row.width :],
                skip_special_tokens=skip_special_tokens,
                clean_up_tokenization_spaces=clean_up_tokenization_spaces,
            )
            whole = return_full_text is None or return_full_text
            found.append({"generated_text": _joined(row.told, text) if whole else text})
        return found


def _joined(told: dict[str, Any], text: str) -> Any:
    """What was given with what follows."""
    given = told["given"]
    if isinstance(given, str):
        return given + text
    if told["goes_on"]:
        last = given[-1]
        return [*given[:-1], {"role": last["role"], "content": last["content"] + text}]
    return [*given, {"role": "assistant", "content": text}]


class Text2TextGenerationPipeline(Pipeline):
    """`pipe(text)` gives `[{"generated_text": …}]`, by a model that turns one text into another.

    >>> votive.pipelines.Text2TextGenerationPipeline.uses
    ('seq2seq',)
    """

    task, uses = "text2text-generation", ("seq2seq",)
    # What the result is called.
    result: ClassVar[str] = "generated"
    generation: ClassVar[dict[str, Any]] = {"max_new_tokens": 256, "num_beams": 4}

    def prepare(self, item: str, prefix: str | None = None, truncation: bool | str | None = None) -> Iterable[Row]:
        """One row; a prefix that the model's files ask for is put before."""
        if not isinstance(item, str):
            raise ValueError(f"{type(self).__name__}: give a text, got {type(item).__name__}.")
        told = prefix if prefix is not None else self._asked().get("prefix", "")
        options = {} if truncation is None else {"truncation": truncation}
        found = self.encoded(told + item, **options)
        return [Row({k: v for k, v in found.items() if k in ("input_ids", "attention_mask")})]

    def _asked(self) -> dict[str, Any]:
        """What the model's files say of the task."""
        known = (getattr(self.model.config, "extra", None) or {}).get("task_specific_params") or {}
        found: dict[str, Any] = known.get(self._name(), {})
        return found

    def _name(self) -> str:
        return self.task

    def run(
        self, tensors: dict[str, Tensor], stop_sequence: str | list[str] | None = None, **settings: Any
    ) -> dict[str, Any]:
        """Texts (batch, texts, tokens)."""
        if stop_sequence is not None:
            settings["stop_strings"] = [stop_sequence] if isinstance(stop_sequence, str) else list(stop_sequence)
            settings.setdefault("tokenizer", self.tokenizer)
        ids = tensors["input_ids"]
        asked = {k: v for k, v in self._asked().items() if k != "prefix"}
        found = self.model.generate(
            ids, attention_mask=tensors.get("attention_mask"), **self.generated({**asked, **settings})
        )
        found = found if isinstance(found, Tensor) else found.sequences
        return {"sequences": found.reshape(ids.shape[0], -1, found.shape[-1])}

    def finish(
        self,
        rows: list[Row],
        return_tensors: bool = False,
        return_text: bool | None = None,
        clean_up_tokenization_spaces: bool | None = None,
    ) -> list[dict[str, Any]]:
        """A record for each text that was made."""
        found: list[dict[str, Any]] = []
        for sequence in rows[0].found["sequences"][0]:
            if return_tensors and not return_text:
                found.append({f"{self.result}_token_ids": votive.tensor(sequence.tolist())})
                continue
            text = self.tokenizer.decode(
                sequence.tolist(), skip_special_tokens=True, clean_up_tokenization_spaces=clean_up_tokenization_spaces
            )
            found.append({f"{self.result}_text": text})
        return found


class SummarizationPipeline(Text2TextGenerationPipeline):
    """`pipe(text)` gives `[{"summary_text": …}]`.

    >>> votive.pipelines.SummarizationPipeline.result
    'summary'
    """

    task, result = "summarization", "summary"


class TranslationPipeline(Text2TextGenerationPipeline):
    """`pipe(text)` gives `[{"translation_text": …}]`; the task is "translation" or "translation_en_to_de".

    `src_lang` and `tgt_lang` name languages where the tokenizer knows tokens for them.

    >>> votive.pipelines.TranslationPipeline.result
    'translation'
    """

    task, result = "translation", "translation"
    # As the caller named it, with its languages.
    asked_task: str = "translation"

    def _name(self) -> str:
        return self.asked_task

    def prepare(
        self, item: str, prefix: str | None = None, truncation: bool | str | None = None, src_lang: str | None = None
    ) -> Iterable[Row]:
        """One row; the token of the language that it is in is put where the tokenizer's files say."""
        for row in super().prepare(item, prefix, truncation):
            if src_lang is not None:
                ids = row.tensors["input_ids"]
                known = [i for i in ids[0].tolist() if i in self._languages().values()]
                if len(known) != 1:
                    raise ValueError(
                        f"{type(self).__name__}: src_lang={src_lang!r}, and the tokenizer puts no token of a language "
                        "to the text; leave it out."
                    )
                new = self._language(src_lang)
                row.tensors["input_ids"] = votive.where(ids == known[0], votive.full_like(ids, new), ids)
            yield row

    def run(
        self,
        tensors: dict[str, Tensor],
        stop_sequence: str | list[str] | None = None,
        tgt_lang: str | None = None,
        **settings: Any,
    ) -> dict[str, Any]:
        """Texts (batch, texts, tokens)."""
        if tgt_lang is not None:
            settings["forced_bos_token_id"] = self._language(tgt_lang)
        return super().run(tensors, stop_sequence, **settings)

    def _languages(self) -> dict[str, int]:
        known = self.tokenizer.get_vocab()
        named = (t for t in self.tokenizer.all_special_tokens if len(t.strip("_")) > 1 and t.replace("_", "").isalpha())
        return {t: known[t] for t in named if t in known}

    def _language(self, name: str) -> int:
        known = self._languages()
        for token in (name, f"__{name}__"):
            if token in known:
                return known[token]
        raise ValueError(
            f"{type(self).__name__}: the tokenizer has no token for the language {name!r}; it has "
            f"{', '.join(sorted(known)) or 'none'}."
        )
