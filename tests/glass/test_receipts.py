"""Receipts tell the truth: an edit that fires changes the result, or the receipt says why not.

Every kind of edit is made at every kind of site of every model in the package: at the result and
the first input of each class of module and of each operator.
"""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import glass
from votive.generation.stepping import keeps_states
from votive.glass import Edit, values
from votive.ops.registry import OPS, Op

from .nets import Net
from .test_models import DISTINCT, made

KINDS = ("call", "zero", "replace", "add", "scale", "resample", "swap", "skip")


def tensors(output: Any) -> list[Any]:
    return [t for _, t in values.tensors(output)]


def same(a: list[Any], b: list[Any]) -> bool:
    """Equal bit by bit; the same NaN is equal."""
    return len(a) == len(b) and all(
        x.shape == y.shape and bool(((x == y) | ((x != x) & (y != y))).all()) for x, y in zip(a, b, strict=True)
    )


def other(v: Any) -> Any:
    """Other values that a model can read in the same place."""
    if v.dtype == votive.bool:
        return ~v
    if not v.is_floating_point():
        return v.flip(0)  # whole numbers may be indices
    g = votive.Generator().manual_seed(3)
    return v + votive.randn(v.shape, generator=g).to(v.dtype)


def sites(model: Any, given: dict[str, Any]) -> list[tuple[str, str]]:
    """(kind, address) of the first call of each class of module and of each operator."""
    found: dict[tuple[str, str], str] = {}
    for node in glass.tree(model, ops=True, **given).walk():
        # With the number of the call: two edits could take each other back.
        module, slash, op = str(node.address).partition("/")
        module += "" if "#" in module else "#0"
        found.setdefault((node.kind, node.name), f"{module}{slash}{op}")
    return [(kind, address) for (kind, _), address in found.items()]


def swapped(model: Any, kind: str, address: str) -> Any:
    """What runs there, but with other results."""
    if kind == "module":
        module = model.get_submodule(address.partition("#")[0])
        return lambda *args, **kwargs: values.mapped(module.forward(*args, **kwargs), other)
    name = address.rpartition("/")[2].partition("#")[0]
    op = OPS[f"_{name}" if f"_{name}" in OPS and name not in OPS else name]
    return lambda *args: values.mapped(Op.apply(op, (*args, *op.defaults(len(args)))), other)


def edit_of(do: str, at: str, kind: str, model: Any, real: bool) -> Edit:
    """An edit of this kind, or of one that the site can take."""
    if do == "swap":
        address = at.removeprefix("^").removesuffix(":in")
        return Edit(at.removesuffix(":in"), "swap", swapped(model, kind, address))
    if do == "skip":
        return Edit(at.removesuffix(":in"), "skip")
    if do == "call" or not real:
        return Edit(at, "call", other)
    number = {"replace": 0.37, "add": votive.tensor(1.7), "scale": 1.3}
    return Edit(at, do, number.get(do))


def is_real(model: Any, given: dict[str, Any], at: str) -> bool | None:
    """Whether the value at a site is of real numbers; None where there is no tensor."""
    with glass.capture(model, at) as seen:
        model(**given)
    found = values.first(seen.kept[next(iter(seen.kept))][-1].value)
    return None if found is None else found.is_floating_point()


# Pictures and experts: half of the sites make positions, masks and choices, of which a receipt says so.
FEWER = {"llama4_text": 0.65, "llava": 0.7}


def check(model: Any, given: dict[str, Any], edit: Edit, plain: list[Any], fades: bool = False) -> str:
    """Make an edit and compare what its receipt says with what happened; `fades`: decays are multiplied by a state that
    is zero when a text begins.
    """
    receipt, found = None, None
    try:
        with glass.patch(model, edit) as receipt:
            found = tensors(model(**given))
    except glass.Unread:
        assert same(found, plain), "an edit that is said to be unread has changed the result"
        return "unread"
    except (ValueError, LookupError, RuntimeError, TypeError, AttributeError):
        if found is None:
            return "refused"  # a skip whose input does not fit, an operator without tensors
        raise
    (site,) = receipt.sites.values()
    assert site.times == 1
    if (site.measured and site.largest == 0) or site.reached is False:
        assert same(found, plain), "a change that is said to be none has changed the result"
        return "nothing"
    if site.why:
        return "told"
    if fades and same(found, plain):
        return "nothing"
    assert not same(found, plain), f"the receipt says more than happened: {receipt}"
    return "changed"


@pytest.mark.parametrize("family", DISTINCT)
def test_a_receipt_says_what_happened_at_every_kind_of_site(family: str) -> None:
    model, given = made(family)
    counts, edits, fades = {"changed": 0}, 0, keeps_states(model)
    turn = DISTINCT.index(family)
    with votive.no_grad():
        plain = tensors(model(**given))
        for kind, address in sites(model, given):
            for side in ("", ":in"):
                turn += 1
                at = f"^{address}{side}"
                real = is_real(model, given, at)
                if real is None:
                    continue
                edit = edit_of(KINDS[turn % len(KINDS)], at, kind, model, real)
                try:
                    result = check(model, given, edit, plain, fades)
                except AssertionError as e:
                    raise AssertionError(f"{edit.do} at {at}: {e}") from e
                # Whole numbers may hide a change, and a skip cannot be followed.
                if real and edit.do != "skip":
                    counts[result] = counts.get(result, 0) + 1
                    edits += 1
    assert counts["changed"] > FEWER.get(family, 0.8) * edits, counts


@pytest.mark.parametrize("do", KINDS)
def test_a_receipt_says_what_happened_for_every_kind_of_edit(do: str) -> None:
    votive.manual_seed(0)
    model, given = Net().eval(), {"x": votive.randn(2, 5, 4)}
    result = set()
    with votive.no_grad():
        plain = tensors(model(**given))
        for kind, address in sites(model, given):
            for side in ("", ":in"):
                at = f"^{address}{side}"
                if is_real(model, given, at):
                    result.add(check(model, given, edit_of(do, at, kind, model, True), plain))
    assert "changed" in result or (do == "skip" and "told" in result)
