"""What the label of a text is: one class, several classes at once, or a number. Knows examples, no model.

A label that is a name or a whole number from 0 is a class; a list of these is several classes, none where it is empty;
a number with a fraction makes all labels numbers to be predicted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import votive

from ..tensor import Tensor
from .examples import Example
from .tuning import PROBLEMS

ONE, SEVERAL, NUMBER = PROBLEMS


@dataclass(frozen=True)
class Labels:
    """Which kind labels are of, and the names of classes in their order; a number has the one name LABEL_0.

    >>> from votive.train.examples import read_examples
    >>> data = read_examples([{"text": "a", "label": ["x", "y"]}, {"text": "b", "label": []}])
    >>> labels = votive.train.labels.Labels.of(data)
    >>> labels.problem, labels.names, labels.target(data[0])
    ('multi_label_classification', ('x', 'y'), [1.0, 1.0])
    """

    problem: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, examples: Sequence[Example], given: Sequence[str] | None = None, problem: str | None = None) -> Labels:
        """The labels of examples; `given` names classes in their order, `problem` says what labels are of."""
        for example in examples:
            _check(example)
        kind = _problem(examples, given is not None) if problem is None else problem
        if kind == NUMBER:
            if given is not None:
                raise ValueError("labels are names of classes, and these examples have numbers to predict.")
            for example in examples:
                _number(example)
            return cls(NUMBER, ("LABEL_0",))
        names = list(given) if given is not None else _named(examples, kind)
        made = cls(kind, tuple(names))
        for example in examples:
            made.target(example)
        return made

    def target(self, example: Example) -> int | float | list[float]:
        """What a model is to give for an example: a class, a number, or a 1 for each of its classes."""
        label = example.values["label"]
        if self.problem == NUMBER:
            return _number(example)
        if self.problem == ONE:
            return self._index(example, label)
        several = label if isinstance(label, list) else [label]
        mine = {self._index(example, one) for one in several}
        return [float(i in mine) for i in range(len(self.names))]

    def _index(self, example: Example, label: Any) -> int:
        if type(label) is int and label >= 0:
            if label >= len(self.names):
                example.wrong(
                    f'"label" is {label}, and there are {len(self.names)} classes, from 0: {", ".join(self.names)}.'
                )
            return label
        if not isinstance(label, str):
            example.wrong(f'"label" must be a name or a number from 0, got {label!r:.60}.')
        if label not in self.names:
            example.wrong(f'"label" is {label!r:.60}, which is none of {", ".join(self.names)}.')
        return self.names.index(label)

    def tensor(self, targets: Sequence[int | float | list[float]]) -> Tensor:
        """A batch of targets as a loss takes it."""
        return votive.tensor(list(targets), dtype=votive.int64 if self.problem == ONE else votive.float32)

    def measured(self, logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """How good scores are: of classes the share that is right, of numbers how far they are off."""
        if self.problem == NUMBER:
            return {"error": (logits.view(labels.shape).float() - labels.float()).abs().mean()}
        if self.problem == ONE:
            return {"accuracy": (logits.argmax(-1) == labels).float().mean()}
        return {"accuracy": ((logits > 0) == (labels > 0.5)).float().mean()}


def _check(example: Example) -> None:
    if "text" not in example or "label" not in example:
        given = ", ".join(map(repr, example.values)) or "nothing"
        example.wrong(f'needs "text" and "label"; it has {given}.')


def _problem(examples: Sequence[Example], named: bool) -> str:
    labels = [example.values["label"] for example in examples]
    if all(isinstance(label, list) for label in labels):
        return SEVERAL
    numbers = any(isinstance(label, float) for label in labels) and not any(_value(label) is None for label in labels)
    return NUMBER if numbers and not named else ONE


def _value(label: object) -> float | None:
    """A number, which tables hold as a text where it is negative and whole; None for anything else."""
    if isinstance(label, bool) or not isinstance(label, int | float | str):
        return None
    try:
        return float(label)
    except ValueError:
        return None


def _number(example: Example) -> float:
    label = example.values["label"]
    found = _value(label)
    if found is None or not math.isfinite(found):
        example.wrong(f'"label" must be a number, as others are, got {label!r:.60}.')
    assert found is not None, "told otherwise"
    return found


def _named(examples: Sequence[Example], kind: str) -> list[str]:
    """Names of classes: those of the data, sorted; of numbers, up to the largest."""
    numbers, names = [], set()
    for example in examples:
        label = example.values["label"]
        for one in label if kind == SEVERAL and isinstance(label, list) else [label]:
            if isinstance(one, str):
                names.add(one)
            elif type(one) is int and one >= 0:
                numbers.append(one)
            else:
                example.wrong(f'"label" must be a name or a number from 0, got {one!r:.60}.')
    if names and numbers:
        raise ValueError('some labels are names and some numbers; give names for all, or labels=("…", "…").')
    if not names and not numbers:
        raise ValueError("no example has a class.")
    found = sorted(names) if names else [f"LABEL_{i}" for i in range(max(numbers) + 1)]
    if len(found) < 2:
        raise ValueError(f"all examples are of one class, {found[0]!r}; there is nothing to tell apart.")
    return found
