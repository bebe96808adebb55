"""Calls of pipelines: inputs of all kinds, options that go where they belong, errors that say what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import votive
from votive.pipelines.base import Pipeline, Row

from ..docstrings import examples, explained, modules_of, run

DOCS = examples([*modules_of(votive.pipelines), votive.pipelines])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_example_runs(name: str) -> None:
    run(name, DOCS[name])


@pytest.mark.parametrize("name", votive.pipelines.__all__)
def test_a_public_name_has_an_example(name: str) -> None:
    found = getattr(votive.pipelines, name)
    assert explained(found)
    assert found.__name__ == name


def test_names_are_found_when_they_are_asked_for() -> None:
    assert set(votive.pipelines.__all__) <= set(dir(votive.pipelines))
    with pytest.raises(AttributeError, match="no attribute 'FillPipeline'"):
        _ = votive.pipelines.FillPipeline


class Doubled(Pipeline):
    """Twice each number of a row; a row for each number of an input."""

    task, needs = "doubled", ()

    def prepare(self, item: Any, offset: int = 0) -> Iterable[Row]:
        values = item if isinstance(item, tuple) else (item,)
        return [Row({"input_ids": votive.tensor([[v + offset] * (1 + v % 2)])}, {"n": v}) for v in values]

    def run(self, tensors: dict[str, Any], times: int = 2, **rest: int) -> dict[str, Any]:
        self.batches.append(tuple(tensors["input_ids"].shape))
        return {"y": tensors["input_ids"] * times + rest.get("more", 0)}

    def finish(self, rows: list[Row], text: bool = False) -> Any:
        found = [int(row.trimmed("y", "right")[0, 0]) for row in rows]
        return str(found) if text else found

    def one_input(self, inputs: Any) -> bool:
        return isinstance(inputs, tuple)

    batches: list[tuple[int, ...]]


class Named(Doubled):
    """Without options of any name."""

    def run(self, tensors: dict[str, Any], times: int = 2) -> dict[str, Any]:
        return super().run(tensors, times)


class Padded:
    """What a pipeline asks of a tokenizer."""

    pad_token_id: int | None = 0
    padding_side = "right"


def doubled(**options: Any) -> Any:
    pipe = Doubled(votive.nn.Linear(1, 1), Padded(), **options)
    pipe.batches = []
    return pipe


def test_inputs_of_all_kinds() -> None:
    pipe = doubled()
    assert pipe(3) == [6]
    assert pipe([3, 4]) == [[6], [8]]
    assert pipe((1, 2, 3)) == [2, 4, 6]
    assert pipe([]) == []
    stream = pipe(iter([1, 2]))
    assert next(stream) == [2]
    assert list(stream) == [[4]]

    class Numbers:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, i: int) -> int:
            return i + 5

    assert list(pipe(Numbers())) == [[10], [12]]
    stored = votive.data.TensorDataset(votive.tensor([5, 6]))
    pipe.prepare = lambda item, offset=0: Doubled.prepare(pipe, int(item[0]), offset)
    assert list(pipe(stored)) == [[10], [12]]
    assert not pipe.model.training


def test_rows_of_several_inputs_share_a_batch_and_padding_is_left_out() -> None:
    pipe = doubled(batch_size=2)
    assert pipe([(1, 2, 3), 4, (5, 6)]) == [[2, 4, 6], [8], [10, 12]]
    assert pipe.batches == [(2, 2), (2, 2), (2, 2)]
    pipe.batches.clear()
    assert pipe([2, 4, 6], batch_size=3) == [[4], [8], [12]]
    assert pipe.batches == [(3, 1)]
    pipe.tokenizer.pad_token_id = None
    assert pipe([2, 4]) == [[4], [8]]
    with pytest.raises(ValueError, match="need a padding token"):
        pipe([1, 2])
    with pytest.raises(ValueError, match="batch_size must be 1 or more"):
        pipe(1, batch_size=0)


def test_options_go_to_the_method_that_names_them() -> None:
    pipe = doubled(times=3, text=True)
    assert pipe(1) == "[3]"
    assert pipe(1, text=False, offset=1, more=10) == [16]
    assert pipe(1) == "[3]"
    plain = votive.pipeline("text-generation", model="tales")
    with pytest.raises(ValueError, match="Did you mean 'max_new_tokens'"):
        plain("Once", max_new_tokenz=3)
    named = Named(votive.nn.Linear(1, 1), Padded())
    named.batches = []
    with pytest.raises(TypeError, match="unexpected argument 'timez'; did you mean 'times'"):
        named(1, timez=2)


def test_a_bundled_model_writes() -> None:
    pipe = votive.pipeline("text-generation", model="tales", do_sample=False, max_new_tokens=5)
    text = pipe("Once upon")[0]["generated_text"]
    assert text.startswith("Once upon")
    assert pipe(["Once upon", "The dog and the cat"], batch_size=2)[0][0]["generated_text"] == text
    assert pipe("Once upon", return_full_text=False)[0]["generated_text"] == text.removeprefix("Once upon")
    model, tok = pipe.model, pipe.tokenizer
    again = votive.pipeline("text-generation", model=model, tokenizer=tok, do_sample=False, max_new_tokens=5)
    assert again("Once upon")[0]["generated_text"] == text
    assert votive.pipeline(model="tales").task == "text-generation"


def test_wrong_calls_say_what_to_do() -> None:
    with pytest.raises(ValueError, match="did you mean 'fill-mask'"):
        votive.pipeline("fill-masks", model="tales")
    with pytest.raises(ValueError, match="none is chosen for you"):
        votive.pipeline("fill-mask")
    with pytest.raises(ValueError, match="there are audio-classification, automatic-speech-recognition"):
        votive.pipeline("qqq", model="tales")
    model = votive.pipeline("text-generation", model="tales").model
    model.__dict__["name_or_path"] = ""
    with pytest.raises(ValueError, match="needs a tokenizer; pass tokenizer="):
        votive.pipeline("text-generation", model=model)
    with pytest.raises(ValueError, match="needs a tokenizer"):
        votive.pipelines.FillMaskPipeline(model)
    with pytest.raises(ValueError, match="for a model that is loaded here"):
        votive.pipeline("text-generation", model=model, tokenizer=Padded(), model_kwargs={"strict": False})
    with pytest.raises(ValueError, match="give an input"):
        doubled()()
    with pytest.raises(ValueError, match="inputs are prepared here"):
        doubled()(1, num_workers=2)
    with pytest.raises(TypeError, match="must be a place or a model, got int"):
        votive.pipeline("fill-mask", model=3)
    with pytest.raises(ValueError, match="does not tell what it is for"):
        votive.pipeline(model=votive.nn.Linear(1, 1))
