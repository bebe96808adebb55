"""Classes of the tokens of texts, and the names that several tokens make. Arguments and results are transformers'."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .base import Pipeline, Row
from .scores import array, softmax

STRATEGIES = ("none", "simple", "first", "average", "max")
_WHOLE_WORDS = ("first", "average", "max")


class TokenClassificationPipeline(Pipeline):
    """`pipe(text)` gives the tokens that have a class other than O, with score and place.

    `aggregation_strategy` makes names of them: "simple" joins neighbours of one class; "first", "average" and "max"
    give each word one class before. `stride` goes through texts longer than the model in parts that overlap by so many
    tokens. With `is_split_into_words` a text is a list of words.

    >>> votive.pipelines.TokenClassificationPipeline.task
    'token-classification'
    """

    task, uses = "token-classification", ("tokens",)

    def __call__(self, inputs: Any = None, **options: Any) -> Any:
        """Tokens or names of a text, or of each in a list."""
        words = {**self.options, **options}.get("is_split_into_words", False)
        if words and isinstance(inputs, list | tuple) and not all(isinstance(i, list | tuple) for i in inputs):
            return super().__call__([list(inputs)], **options)
        return super().__call__(inputs, **options)

    def sorted_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options that some method takes, checked before anything runs."""
        found = super().sorted_options(options)
        strategy = found.get("aggregation_strategy")
        if strategy is not None:
            found["aggregation_strategy"] = str(getattr(strategy, "value", strategy)).lower()
            if found["aggregation_strategy"] not in STRATEGIES:
                raise ValueError(
                    f"{type(self).__name__}: aggregation_strategy={strategy!r} is not known; it may be "
                    f"{', '.join(STRATEGIES)}."
                )
        joined = {**self.options, **found}.get("aggregation_strategy", "none")
        if found.get("stride") is not None and joined == "none":
            raise ValueError(f"{type(self).__name__}: stride needs an aggregation_strategy, such as 'simple'.")
        return found

    def prepare(
        self,
        item: Any,
        is_split_into_words: bool = False,
        delimiter: str | None = None,
        stride: int | None = None,
        offset_mapping: list[tuple[int, int]] | None = None,
    ) -> Iterable[Row]:
        """A row, or several of a text that is longer than the model."""
        name, limit = type(self).__name__, self.tokenizer.model_max_length
        if is_split_into_words != isinstance(item, list | tuple):
            kind = "a list of words" if is_split_into_words else "a text"
            raise ValueError(f"{name}: with is_split_into_words={is_split_into_words} give {kind}, not {item!r}.")
        text = (" " if delimiter is None else delimiter).join(item) if is_split_into_words else item
        options: dict[str, Any] = {"truncation": True, "max_length": limit} if limit else {}
        if stride is not None:
            if not limit or stride >= limit:
                raise ValueError(
                    f"{name}: stride={stride} must be below the tokenizer's model_max_length, which is {limit}."
                )
            options |= {"return_overflowing_tokens": True, "stride": stride}
        found = self.tokenizer(
            list(item) if is_split_into_words else item,
            is_split_into_words=is_split_into_words,
            return_special_tokens_mask=True,
            return_offsets_mapping=True,
            **options,
        )
        several = stride is not None
        found.pop("overflow_to_sample_mapping", None)
        rows = found if several else {k: [v] for k, v in found.items()}
        starts = _starts(item, " " if delimiter is None else delimiter) if is_split_into_words else None
        for i in range(len(rows["input_ids"])):
            places = rows["offset_mapping"][i] if offset_mapping is None else offset_mapping
            if starts is not None and offset_mapping is None:
                words = found.word_ids(i)
                places = [
                    (a + starts[w], b + starts[w]) if w is not None else (a, b)
                    for (a, b), w in zip(places, words, strict=True)
                ]
            told = {"text": text, "places": places, "special": rows["special_tokens_mask"][i]}
            kept = ("offset_mapping", "special_tokens_mask")
            yield Row({k: _tensor(v[i]) for k, v in rows.items() if k not in kept}, told)

    def finish(
        self, rows: list[Row], aggregation_strategy: str = "none", ignore_labels: list[str] | None = None
    ) -> list[dict[str, Any]]:
        """Tokens, or names."""
        left_out = ["O"] if ignore_labels is None else ignore_labels
        found: list[dict[str, Any]] = []
        for row in rows:
            tokens = self._tokens(row)
            if aggregation_strategy in _WHOLE_WORDS:
                one = self._names(self._words(tokens, aggregation_strategy))
            else:
                labels = self.model.config.id2label
                one = [self._token(token, labels) for token in tokens]
                one = self._names(one) if aggregation_strategy == "simple" else one
            found += [e for e in one if e.get("entity") not in left_out and e.get("entity_group") not in left_out]
        return _apart(found) if len(rows) > 1 else found

    def _token(self, token: dict[str, Any], labels: dict[int, str]) -> dict[str, Any]:
        best = int(token["scores"].argmax())
        kept = {k: token[k] for k in ("index", "word", "start", "end")}
        return {"entity": labels[best], "score": token["scores"][best], **kept}

    def _tokens(self, row: Row) -> list[dict[str, Any]]:
        """Tokens that stand in the text, with their scores and whether they go on with a word."""
        tok, text = self.tokenizer, row.told["text"]
        scores = softmax(array(row.trimmed("logits", tok.padding_side))[0])
        aware = getattr(tok.backend.model, "continuing_subword_prefix", None)
        found = []
        for i, token in enumerate(row.tensors["input_ids"][0].tolist()):
            if row.told["special"][i]:
                continue
            word, (start, end) = tok.convert_ids_to_tokens(token), row.told["places"][i]
            there = text[start:end]
            if aware:
                # A token that goes on has a sign that the text has not.
                goes_on = len(word) != len(there)
            else:
                goes_on = start > 0 and " " not in text[start - 1 : start + 1]
            if token == tok.unk_token_id:
                word, goes_on = there, False
            found.append({
                "word": word, "scores": scores[i], "start": int(start), "end": int(end), "index": i, "goes_on": goes_on,
            })  # fmt: skip
        return found

    def _words(self, tokens: list[dict[str, Any]], strategy: str) -> list[dict[str, Any]]:
        """Words, each with one class."""
        groups: list[list[dict[str, Any]]] = []
        for token in tokens:
            if groups and token["goes_on"]:
                groups[-1].append(token)
            else:
                groups.append([token])
        found = []
        for group in groups:
            if strategy == "first":
                scores = group[0]["scores"]
            elif strategy == "max":
                scores = max(group, key=lambda t: float(t["scores"].max()))["scores"]
            else:
                scores = np.nanmean(np.stack([t["scores"] for t in group]), axis=0)
            best = int(scores.argmax())
            found.append({
                "entity": self.model.config.id2label[best], "score": scores[best],
                "word": self.tokenizer.convert_tokens_to_string([t["word"] for t in group]),
                "start": group[0]["start"], "end": group[-1]["end"],
            })  # fmt: skip
        return found

    def _names(self, entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Neighbours of one class as one; a class that begins with B- begins another."""
        groups: list[list[dict[str, Any]]] = []
        for entity in entities:
            begins, tag = _tag(entity["entity"])
            if groups and not begins and tag == _tag(groups[-1][-1]["entity"])[1]:
                groups[-1].append(entity)
            else:
                groups.append([entity])
        return [
            {
                "entity_group": group[0]["entity"].split("-", 1)[-1],
                "score": np.nanmean([e["score"] for e in group]),
                "word": self.tokenizer.convert_tokens_to_string([e["word"] for e in group]),
                "start": group[0]["start"],
                "end": group[-1]["end"],
            }
            for group in groups
        ]


def _tensor(ids: list[int]) -> Any:
    from ..surface.interchange import from_numpy

    return from_numpy(np.asarray([ids], np.int64))


def _starts(words: list[str], delimiter: str) -> list[int]:
    """Where words begin in the text that they make."""
    found, at = [], 0
    for word in words:
        found.append(at)
        at += len(word) + len(delimiter)
    return found


def _tag(label: str) -> tuple[bool, str]:
    """Whether a class begins a name, and of what kind it is."""
    return label.startswith("B-"), label[2:] if label.startswith(("B-", "I-")) else label


def _apart(entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Names of parts that overlap: of those at one place the longest, then the surest."""
    found: list[dict[str, Any]] = []
    for entity in sorted(entities, key=lambda e: e["start"]):
        last = found[-1] if found else None
        if last is None or not last["start"] <= entity["start"] < last["end"]:
            found.append(entity)
            continue
        sizes = entity["end"] - entity["start"], last["end"] - last["start"]
        if sizes[0] > sizes[1] or (sizes[0] == sizes[1] and entity["score"] > last["score"]):
            found[-1] = entity
    return found
