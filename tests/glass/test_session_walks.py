"""However one walks through a session, each node is what a fresh run of its path gives."""

from __future__ import annotations

import random
from typing import Any

import pytest

import votive
from votive import glass

from ..generation.tiny import VOCABULARY
from .session_models import KINDS, fresh, mlp, model

WALKS, MOVES = 500, 9


class Walk:
    """One random walk."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.kind = KINDS[seed % len(KINDS)]
        self.block = self.random.choice([2, 3, 8])
        # Some sessions must compute again what they have dropped.
        limit = self.random.choice([None, None, 4000, 0])
        self.session = glass.Session(
            model(self.kind),
            None,
            self.prompt(),
            seed=seed,
            block=self.block,
            do_sample=self.random.random() < 0.7,
            memory_limit=limit,
        )
        self.checked: set[int] = set()

    def prompt(self) -> list[int]:
        return [self.random.randrange(VOCABULARY) for _ in range(self.random.randint(1, 9))]

    def edits(self) -> Any:
        r, at = self.random, mlp(self.kind)
        here = self.session.node.stop
        choices = [
            [],
            [glass.Edit(at, "zero")],
            [glass.Edit(at, "scale", 0.5, positions=[r.randrange(here + 2)])],
            [glass.Edit(at, "add", votive.full((32,), r.choice([0.25, 0.5])))],
            [*self.session.edits, glass.Edit(at, "zero", positions=[r.randrange(here)])],
            [glass.Edit(at, "scale", 2.0, features=[1, 5])],
        ]
        return r.choice(choices)

    def move(self) -> None:
        s, r = self.session, self.random
        name = r.choice(
            ["step"] * 4
            + ["undo", "redo", "choose", "branch", "jump"] * 2
            + ["set_sampler", "set_edits", "set_edits", "set_prompt"]
        )
        if name == "step":
            s.step(r.randint(1, 3))
        elif name == "undo" and s._at:
            s.undo(r.randint(1, s._at))
        elif name == "redo" and s._at + 1 < len(s._history):
            s.redo()
        elif name == "choose":
            if r.random() < 0.5:
                s.choose(rank=r.randrange(5))
            else:
                s.choose(r.randrange(VOCABULARY))
        elif name == "branch":
            s.branch()
            s.step()
        elif name == "jump":
            s.jump(r.randrange(len(s)))
        elif name == "set_sampler":
            s.set_sampler(do_sample=True, temperature=r.choice([0.5, 1.5]), top_k=r.choice([0, 5]))
        elif name == "set_edits":
            s.set_edits(self.edits(), from_start=r.random() < 0.2)
        elif name == "set_prompt":
            old = s.tokens
            s.set_prompt(old[: r.randint(1, len(old))] + self.prompt()[:4])

    def check(self) -> None:
        node = self.session.node
        if node.id not in self.checked:
            self.checked.add(node.id)
            want = fresh(node, self.block)
            assert votive.equal(node.logits, want), (node, self.session.actions)


@pytest.mark.parametrize("part", range(10))
def test_every_visited_node_has_the_logits_of_a_fresh_run_bit_by_bit(part: int) -> None:
    for seed in range(part, WALKS, 10):
        walk = Walk(seed)
        for _ in range(MOVES):
            walk.move()
            walk.check()


@pytest.mark.parametrize("seed", range(20))
def test_a_saved_session_is_loaded_and_replayed_exactly(seed: int, tmp_path: Any) -> None:
    walk = Walk(seed)
    for _ in range(MOVES):
        walk.move()
    session = walk.session
    for node in session.nodes:
        assert node.digest  # all that can be compared shall be
    session.save(tmp_path / "one.votive")
    again = glass.Session.load(tmp_path / "one.votive", model(walk.kind))
    assert [n.key() for n in again.nodes] == [n.key() for n in session.nodes]
    assert [n.outlook for n in again.nodes] == [n.outlook for n in session.nodes]
    assert again.tokens == session.tokens
    assert again.settings == session.settings
    report = again.replay()
    assert report.exact
    assert report.compared == len(session.nodes)
    # It goes on as the first one does.
    assert again.step(3).tokens == session.step(3).tokens
    assert votive.equal(again.logits(), session.logits())
