"""An edit of a value that nothing reads is an error, and a receipt claims no more than is known."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.core.mode import only_shown
from votive.glass import Edit, values

from .test_models import DISTINCT, made


def result(out: Any) -> Any:
    return out.logits if hasattr(out, "logits") else values.first(out)


class Parts(nn.Module):
    """Parts whose results are used, dropped, kept, read as numbers and shown."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("used", "dropped", "kept", "asked", "looked_at", "looked_for", "chosen"):
            setattr(self, name, nn.Linear(3, 3))
        self.memory: Any = None

    def forward(self, x: Any) -> dict[str, Any]:
        y = self.used(x)
        self.dropped(x).relu()
        self.memory = self.kept(x)
        y = y * self.asked(x).sum().item()
        with only_shown("linear"):
            shown = self.looked_at(x).softmax(-1)
        best = self.chosen(x).argmax(-1)
        y = y + votive.eye(3)[best]
        looked = self.looked_for(x)
        with only_shown("linear"):
            report = looked.exp()
        return {"y": y, "shown": shown, "report": report}


def parts() -> Parts:
    votive.manual_seed(0)
    return Parts()


def data() -> Any:
    return votive.tensor([[1.0, -2.0, 3.0], [0.5, 0.5, -1.0]])


@pytest.mark.parametrize("site", ["dropped", "dropped:in", "/relu", "/relu:in", "dropped/linear"])
def test_an_edit_of_what_is_dropped_is_an_error_at_the_end_of_the_block(site: str) -> None:
    model = parts()
    plain = model(data())
    with pytest.raises(glass.Unread, match="nothing of the result is computed from it"):
        with glass.patch(model, {site: 5.0}) as receipt:
            changed = model(data())  # the run itself goes on to its end
    assert votive.equal(plain["y"], changed["y"])
    (fired,) = receipt.sites.values()
    assert fired.reached is False
    assert "does not reach the result" in str(receipt)


@pytest.mark.parametrize("site", ["looked_at", "looked_at/linear:in", "looked_at:in"])
def test_what_is_only_shown_names_the_operator_that_counts(site: str) -> None:
    model = parts()
    with pytest.raises(glass.Unread, match=r"only to be shown.*computes with .*linear#0"):
        with glass.patch(model, {site: 5.0}):
            model(data())


def test_a_value_that_only_a_report_reads_is_unread() -> None:
    model = parts()
    with pytest.raises(glass.Unread), glass.patch(model, {"looked_for": 5.0}):
        model(data())


def test_what_cannot_be_known_is_said() -> None:
    model = parts()
    edits = {"used": 5.0, "kept": 5.0, "asked": 5.0, "chosen": lambda v: v.flip(-1)}
    with glass.patch(model, edits) as receipt:
        model(data())
    sites = receipt.sites
    assert (sites["used"].reached, sites["used"].why) == (True, "")
    assert (sites["kept"].reached, sites["kept"].why) == (None, "it is kept outside of the result")
    assert sites["asked"].reached is None
    assert "Python numbers" in sites["asked"].why
    assert sites["chosen"].reached is True
    assert "whole numbers" in sites["chosen"].why
    said = str(receipt).splitlines()
    assert said[0].endswith(f"relative {sites['used'].relative:.4g}")
    assert "may not reach the result: it is kept" in said[1]
    with glass.patch(model, {"used": 5.0}, measure=False) as receipt:
        model(data())
    assert receipt.sites["used"].reached is None
    assert str(receipt) == "used  fired 1  change not measured"


def test_some_places_may_be_unread_when_others_are_not() -> None:
    model = parts()
    with glass.patch(model, {"{used,dropped}": 5.0}) as receipt:
        model(data())
    assert [s.reached for s in receipt.sites.values()] == [True, False]


def test_an_edit_that_another_one_replaces_is_told_and_no_error() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    with glass.patch(model, [Edit("0", "scale", 2.0), Edit("1", "replace", 1.0)]) as receipt:
        model(data())
    assert receipt.sites["0"].reached is False
    assert receipt.sites["0"].why == "what was computed from it was replaced at 1"
    assert receipt.sites["1"].reached is True
    with glass.patch(model, {"0": 5.0}) as outer, glass.patch(model, {"1": 1.0}):
        model(data())
    assert "replaced at 1" in outer.sites["0"].why
    with glass.patch(model, {"0": 5.0}) as outer, glass.patch(model, {"1": lambda v: v + 1}):
        model(data())
    assert outer.sites["0"].reached is True


def test_an_edit_read_in_a_later_run_is_read() -> None:
    class Late(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part, self.memory = nn.Identity(), None

        def forward(self, x: Any) -> Any:
            before, self.memory = self.memory, self.part(x)
            return x if before is None else x + before

    model = Late()
    with glass.patch(model, Edit("part", "replace", 5.0, runs=[1])) as receipt:
        model(data())
        assert receipt.sites["part"].reached is None
        model(data())
    assert receipt.sites["part"].reached is True


def test_a_receipt_does_not_slow_down_what_follows() -> None:
    model = nn.Sequential(nn.Linear(3, 3))
    with glass.patch(model, {"0": 5.0}):
        model(data())
        assert not votive.dispatch.state.observers  # it is known after the first run


def test_an_infinite_change_is_measured_where_something_changed() -> None:
    model = nn.Sequential(nn.Identity())
    masked = votive.tensor([1.0, -float("inf")])
    with glass.patch(model, {"0": lambda v: v + 2}) as receipt:
        model(masked)
    assert (receipt.sites["0"].largest, receipt.sites["0"].relative) == (2.0, 2.0)
    with glass.patch(model, {"0": float("nan")}) as receipt:
        model(masked)
    assert receipt.sites["0"].largest != receipt.sites["0"].largest


ATTENTIVE = [f for f in DISTINCT if f != "vision-encoder-decoder"]


@pytest.mark.parametrize("family", ATTENTIVE)
def test_attention_weights_made_to_be_shown_cannot_be_edited_unnoticed(family: str) -> None:
    model, given = made(family)
    if not any(n.address.op == "attention" for n in glass.tree(model, ops=True, **given).walk()):
        pytest.skip("it has no fused attention")
    given["output_attentions"] = True
    with votive.no_grad():
        plain = result(model(**given))
        said = ""
        try:
            with glass.patch(model, {"/softmax": 0.0}) as receipt:
                changed = result(model(**given))
        except glass.Unread as e:
            said = str(e)
        if said:
            assert votive.equal(plain, changed)
            site = said.rpartition("Edit '")[2].partition("'")[0]
            with glass.patch(model, {f"^{site}": 0.0}):
                assert not votive.equal(result(model(**given)), plain)
            return
    # A softmax that counts, of a router or of capped scores.
    assert any(s.reached for s in receipt.sites.values())
    assert not votive.equal(plain, changed)
    assert all(s.reached or "only to be shown" in s.why for s in receipt.sites.values())
