"""Addresses and the patterns that match them."""

from __future__ import annotations

import re

import pytest

from votive.glass import Address, Pattern


@pytest.mark.parametrize(
    "address", [Address(""), Address("a.b"), Address("a", 2), Address("a", 0, "add", 3), Address("", 1, "x")]
)
def test_an_address_is_read_back_from_its_text(address: Address) -> None:
    assert Address.parse(str(address)) == address


MATCHES = [
    ("layers.*.mlp", "model.layers.3.mlp", True),
    ("layers.*.mlp", "layers.3.mlp", True),
    ("^layers.*.mlp", "model.layers.3.mlp", False),
    ("layers.*.mlp", "layers.3.mlp.up", False),
    ("layers.*", "layers.3.mlp", False),
    ("layers.**", "layers.3.mlp.up", True),
    ("**", "a.b.c", True),
    ("**", "a/add#0", False),
    ("layers.3", "layers.3#1", True),
    ("layers.3#0", "layers.3#1", False),
    ("layers.3#1", "layers.3#1", True),
    ("layers.{1,3}", "layers.3", True),
    ("layers.{1,3}", "layers.2", False),
    ("layers.[0-2]", "layers.2", True),
    ("layers.[!0-2]", "layers.2", False),
    ("layers.?", "layers.12", False),
    ("/softmax", "a.b/softmax#2", True),
    ("/softmax#0", "a.b/softmax#2", False),
    ("b/*", "a.b/softmax#2", True),
    ("b/*", "a.cb/softmax#2", False),
    ("/**", "a/b#0", True),
    ("^", "", True),
    ("^", "a", False),
    ("a.b", "axb", False),
    ("*", "", False),
    ("**", "", True),
    ("layer*", "layer", True),
]


@pytest.mark.parametrize(("pattern", "address", "expected"), MATCHES)
def test_a_glob_matches_as_documented(pattern: str, address: str, expected: bool) -> None:
    assert Pattern(pattern).matches(Address.parse(address)) is expected


def test_a_regular_expression_must_match_the_whole_address() -> None:
    assert Pattern(re.compile(r"a\.\d+")).matches(Address("a.1"))
    assert not Pattern(re.compile(r"a\.\d+")).matches(Address("b.a.1"))


def test_a_function_is_asked_about_the_call() -> None:
    asked = []
    pattern = Pattern(lambda frame: asked.append(frame) or True)
    assert pattern.matches(Address("a"), "frame")
    assert asked == ["frame"]


def test_a_selector_names_an_input_or_a_part_of_the_result() -> None:
    assert (Pattern("a:in").side, Pattern("a:in").path) == ("in", ())
    assert (Pattern("a:in.mask").side, Pattern("a:in.mask").path) == ("in", ("mask",))
    assert Pattern("a:out.0.x").path == ("0", "x")
    with pytest.raises(ValueError, match="must be in or out"):
        Pattern("a:input")


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(ValueError, match="is not an address"):
        Address.parse("a/b/c")


def test_a_pattern_of_a_pattern_is_the_same() -> None:
    first = Pattern("a.*:in.1")
    again = Pattern(first)
    assert (again.text, again.side, again.path) == (first.text, first.side, first.path)
    assert again.matches(Address("a.b"))
