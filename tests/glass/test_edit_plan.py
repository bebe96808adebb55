"""Which edits are made where, when they change along a text."""

from __future__ import annotations

import itertools
from typing import Any

from votive.glass import Edit
from votive.glass.edit_plan import EditPlan, begin, change, in_force

A, B, C = (Edit(f"layers.{i}", "zero") for i in range(3))
P, Q = Edit("layers.3", "scale", 2.0, positions=[2]), Edit("layers.4", "zero", positions=[2, 9])


def at(plan: EditPlan, position: int) -> list[str]:
    return [one.edit.at for one in plan if one.during(position, position + 1)]


def names(*edits: Any) -> list[str]:
    return [e.at for e in edits]


def test_edits_begin_and_end_where_they_are_set() -> None:
    plan = change(change(begin([A]), [A, B], 5), [B], 8)
    assert [at(plan, p) for p in (0, 5, 7, 8)] == [names(A), names(A, B), names(A, B), names(B)]
    assert in_force(plan) == [B]


def test_what_has_positions_is_made_there_whenever_it_is_set() -> None:
    plan = change(begin([A]), [A, P], 5)
    assert [at(plan, p) for p in (1, 2, 5)] == [names(A), names(A, P), names(A)]
    gone = change(plan, [A], 7)
    assert at(gone, 2) == names(A, P)  # what was computed stays
    assert in_force(gone) == [A]


def test_setting_the_same_edits_again_changes_nothing() -> None:
    plan = change(begin([P, A]), [P, A, Q, B], 5)
    again = change(plan, in_force(plan), 8)
    assert [(o.key, o.since, o.until) for o in again] == [(o.key, o.since, o.until) for o in plan]


def test_before_a_change_all_stays_in_order_and_after_it_all_is_as_given() -> None:
    pool = (A, B, C, P, Q)
    for first in itertools.permutations(pool, 3):
        plan = begin(first)
        for count in range(4):
            for second in itertools.permutations(pool, count):
                changed = change(plan, second, 5)
                assert in_force(changed) == list(second)
                assert at(changed, 6) == names(*(e for e in second if e.positions is None))
                assert at(changed, 9) == names(*(e for e in second if e not in (P,)))
                for position in (0, 2):
                    before = at(plan, position)
                    # Only edits with positions of their own can join what was.
                    kept = [n for n in at(changed, position) if n in before]
                    assert kept == before, (first, second)
                    assert len(set(at(changed, position))) == len(at(changed, position))


def test_an_edit_that_comes_again_is_not_made_twice() -> None:
    plan = change(change(begin([P]), [], 5), [P], 8)
    assert at(plan, 2) == names(P)
    twice = change(change(begin([Q]), [], 5), [Q], 8)
    assert [at(twice, p) for p in (2, 9)] == [names(Q), names(Q)]


def test_at_the_beginning_of_a_text_nothing_is_left_of_what_was() -> None:
    assert in_force(change(begin([A, B]), [C], 0)) == [C]
    assert at(change(begin([A, B]), [C], 0), 0) == names(C)
