"""Answers that stand in a text. Names of arguments and of results are transformers' (before version 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .base import Pipeline, Row
from .scores import array, softmax
from .token_classification import _tensor


class QuestionAnsweringPipeline(Pipeline):
    """`pipe(question=…, context=…)` gives `{"score": …, "start": …, "end": …, "answer": …}`.

    Inputs may be dicts of the two, or lists of these. Texts longer than the model are read in parts of `max_seq_len`
    tokens that overlap by `doc_stride`. With `handle_impossible_answer` the answer may be empty.

    >>> votive.pipelines.QuestionAnsweringPipeline.task
    'question-answering'
    """

    task, uses = "question-answering", ("answer",)

    def __call__(self, inputs: Any = None, *, question: Any = None, context: Any = None, **options: Any) -> Any:
        """The answer to a question, or to each in a list."""
        if inputs is None:
            if question is None or context is None:
                raise ValueError(f"{type(self).__name__}: give question= and context=.")
            if isinstance(question, str) and isinstance(context, str):
                inputs = {"question": question, "context": context}
            else:
                asked = [question] * len(context) if isinstance(question, str) else list(question)
                texts = [context] * len(asked) if isinstance(context, str) else list(context)
                if len(asked) != len(texts):
                    raise ValueError(
                        f"{type(self).__name__}: {len(asked)} questions and {len(texts)} texts came; give one for each."
                    )
                inputs = [{"question": q, "context": c} for q, c in zip(asked, texts, strict=True)]
        found = super().__call__(inputs, **options)
        return found[0] if isinstance(inputs, list) and len(inputs) == 1 else found

    def prepare(
        self,
        item: Mapping[str, str],
        doc_stride: int | None = None,
        max_question_len: int = 64,
        max_seq_len: int | None = None,
        padding: bool | str = "do_not_pad",
    ) -> Iterable[Row]:
        """A row for each part of the text."""
        name, tok = type(self).__name__, self.tokenizer
        question, context = item.get("question"), item.get("context")
        if not question or not context:
            raise ValueError(f"{name}: neither question nor context may be empty.")
        longest = min(tok.model_max_length or 384, 384) if max_seq_len is None else max_seq_len
        stride = min(longest // 2, 128) if doc_stride is None else doc_stride
        if stride > longest:
            raise ValueError(f"{name}: doc_stride={stride} is more than max_seq_len={longest}.")
        cut = tok(question, add_special_tokens=False, max_length=max_question_len, truncation=True)
        if len(tok(question, add_special_tokens=False).input_ids) > max_question_len:
            question = question[: cut.token_to_chars(max_question_len - 1).end]
        first = tok.padding_side == "right"
        found = tok(
            question if first else context,
            context if first else question,
            padding=padding,
            truncation="only_second" if first else "only_first",
            max_length=longest,
            stride=stride,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        names = [k for k in found if k not in ("offset_mapping", "overflow_to_sample_mapping")]
        for i in range(len(found["input_ids"])):
            side = 1 if first else 0
            inside = [s == side for s in found.sequence_ids(i)]
            ids = found["input_ids"][i]
            # The first token stands for no answer.
            allowed = [a or (t == tok.cls_token_id) for a, t in zip(inside, ids, strict=True)]
            told = {"context": context, "allowed": np.array(allowed), "encoding": found, "part": i, "side": side}
            yield Row({k: _tensor(found[k][i]) for k in names}, told)

    def finish(
        self,
        rows: list[Row],
        top_k: int = 1,
        handle_impossible_answer: bool = False,
        max_answer_len: int = 15,
        align_to_words: bool = True,
    ) -> Any:
        """Answers, best first; one alone by itself."""
        name = type(self).__name__
        if top_k < 1 or max_answer_len < 1:
            raise ValueError(f"{name}: top_k and max_answer_len are 1 or more, got {top_k} and {max_answer_len}.")
        answers: list[dict[str, Any]] = []
        none = 1e6
        for row in rows:
            begins, ends = self._odds(row)
            if handle_impossible_answer:
                none = min(none, float(begins[0] * ends[0]))
            begins[0] = ends[0] = 0.0
            for start, end, score in _spans(begins, ends, row.told["allowed"], top_k, max_answer_len):
                at = self._characters(row, start, end, align_to_words)
                if at is None:
                    continue
                text = row.told["context"][at[0] : at[1]]
                same = next((a for a in answers if a["answer"].lower() == text.lower()), None)
                if same is not None:
                    # Parts overlap, and words have several tokens: what is found again is surer.
                    same["score"] += score
                else:
                    answers.append({"score": score, "start": at[0], "end": at[1], "answer": text})
        if handle_impossible_answer:
            answers.append({"score": none, "start": 0, "end": 0, "answer": ""})
        best = sorted(answers, key=lambda a: a["score"], reverse=True)[:top_k]
        return best[0] if len(best) == 1 else best

    def _odds(self, row: Row) -> tuple[Any, Any]:
        """How likely an answer begins and ends at each token; those outside of the text are left out."""
        side, allowed = self.tokenizer.padding_side, row.told["allowed"]
        if "attention_mask" in row.tensors:
            allowed = allowed & (row.tensors["attention_mask"][0].numpy() > 0)
        return tuple(
            softmax(np.where(allowed, array(row.trimmed(n, side))[0], np.float32(-10000.0)))
            for n in ("start_logits", "end_logits")
        )

    def _characters(self, row: Row, start: int, end: int, words: bool) -> tuple[int, int] | None:
        """Where an answer stands in the text, from the first of its words to the last."""
        found, part, side = row.told["encoding"], row.told["part"], row.told["side"]
        if words:
            first, last = found.token_to_word(part, start), found.token_to_word(part, end)
            if first is not None and last is not None:
                a = found.word_to_chars(part, first, sequence_index=side)
                b = found.word_to_chars(part, last, sequence_index=side)
                if a is not None and b is not None:
                    return a.start, b.end
        a, b = found.token_to_chars(part, start), found.token_to_chars(part, end)
        return None if a is None or b is None else (a.start, b.end)


def _spans(begins: Any, ends: Any, allowed: Any, top_k: int, longest: int) -> list[tuple[int, int, float]]:
    """The likeliest begins and ends, of answers with at most `longest` tokens."""
    joint = np.tril(np.triu(np.outer(begins, ends)), longest - 1)
    order = np.argsort(-joint.ravel(), kind="stable")[:top_k]
    found = []
    for place in order:
        start, end = divmod(int(place), joint.shape[1])
        if allowed[start] and allowed[end]:
            found.append((start, end, float(joint[start, end])))
    return found
