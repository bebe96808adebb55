"""A recipe says all that decides a language model, and refuses what it does not know."""

from __future__ import annotations

import pytest

import votive
from votive.train import Recipe


def test_a_recipe_survives_json() -> None:
    recipe = Recipe(lr=1e-4, betas=(0.8, 0.9), model={"rope_theta": 5e5}, separator="\n\n\n")
    assert Recipe.from_dict(recipe.to_dict()) == recipe


def test_an_unknown_setting_names_its_neighbour() -> None:
    with pytest.raises(ValueError, match="no setting 'hidden_sise'; did you mean 'hidden_size'"):
        Recipe.from_dict({"hidden_sise": 3})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hidden_size": 0}, "hidden_size must be a positive integer"),
        ({"hidden_size": 100, "num_attention_heads": 3}, "does not divide"),
        ({"held_out": 1.0}, "held_out is a fraction below 1"),
        ({"amp": "int8"}, "amp names a floating-point type"),
        ({"save_dtype": "nonsense"}, "save_dtype names a floating-point type"),
    ],
)
def test_impossible_settings_are_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Recipe(**changes)


def test_key_heads_must_divide_query_heads() -> None:
    with pytest.raises(ValueError, match="no multiple"):
        Recipe(num_attention_heads=4, num_key_value_heads=3).config(300)


@pytest.mark.parametrize("family", ["qwen3", "llama", "qwen2"])
def test_the_configuration_has_the_sizes_of_the_recipe(family: str) -> None:
    config = Recipe(model_type=family, hidden_size=64, num_hidden_layers=3).config(500, 0)
    assert (config.model_type, config.hidden_size, config.num_hidden_layers) == (family, 64, 3)
    assert (config.vocab_size, config.head_dim, config.num_key_value_heads) == (500, 16, 2)
    assert config.eos_token_id == 0
    assert config.tie_word_embeddings


def test_only_what_decides_the_weights_is_a_difference() -> None:
    assert Recipe().differences(Recipe(log_every=3, checkpoint_every=7)) == {}
    assert Recipe().differences(Recipe(seed=1)) == {"seed": (0, 1)}


def test_the_rate_rises_then_falls_to_its_lowest() -> None:
    recipe = Recipe(max_steps=100, lr=1.0, min_lr=0.25, warmup_steps=10)
    optimizer, schedule = recipe.optimizer(votive.nn.Linear(2, 2))
    rates = []
    for _ in range(100):
        optimizer.step()
        schedule.step()
        rates.append(schedule.get_last_lr()[0])
    assert max(rates) == rates[9] == 1.0
    assert rates[-1] == pytest.approx(0.25)
