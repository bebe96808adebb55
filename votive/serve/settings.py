"""From the fields of a request to settings of generation: OpenAI's names, and those of votive beside them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ..generation import GenerationConfig
from ..generation.preparing import settings_of
from .body import Fields
from .errors import wrong
from .served_model import ServedModel

STOPS = 16
_LONGEST_FORM = 65536  # characters of a schema, a grammar or a regular expression


def asked_settings(fields: Fields, served: ServedModel, ends: list[int]) -> GenerationConfig:
    """How tokens are chosen and where a text ends, everything filled in.

    What a request does not say is as in the model's generation_config.json. `ends` are the tokens that end a text
    besides those that the model names.
    """
    said: dict[str, Any] = {"num_beams": 1, "num_return_sequences": 1}
    temperature = fields.number("temperature", low=0, high=100)
    drawn = temperature is None or temperature > 0
    shaping = {
        "temperature": temperature,
        "top_p": fields.number("top_p", low=0, high=1),
        "top_k": fields.whole("top_k", low=-1),
        "min_p": fields.number("min_p", low=0, high=1),
        "typical_p": fields.number("typical_p", low=0, high=1),
    }
    if shaping["top_p"] == 0:
        drawn = False  # of no share of the probability only the likeliest token is left
    if shaping["top_k"] == -1:
        shaping["top_k"] = 0
    said["do_sample"] = drawn
    if drawn:
        said |= {name: value for name, value in shaping.items() if value is not None}
    said["seed"] = fields.whole("seed", low=-(1 << 63), high=(1 << 64) - 1)
    for name in ("presence_penalty", "frequency_penalty"):
        said[name] = fields.number(name, low=-2, high=2)
    said["repetition_penalty"] = fields.number("repetition_penalty", low=0.01, high=100)
    said["no_repeat_ngram_size"] = fields.whole("no_repeat_ngram_size", low=0, high=1024)
    said["min_new_tokens"] = fields.whole("min_tokens", low=0)
    said["sequence_bias"] = _bias(fields, served)
    said["stop_strings"] = _stops(fields)
    form = _form(fields)
    said |= form
    stop_ids = _tokens(fields, served)
    own = {n: v for n, v in said.items() if v is not None}
    found = settings_of(served.model, None, own)
    changes: dict[str, Any] = {"penalty_alpha": None, "dola_layers": None, "max_time": None}
    if own.get("top_k") is None and getattr(served.model.generation_config, "top_k", None) is None:
        changes["top_k"] = 0  # transformers' default of fifty is not what clients of this interface expect
    ignore = fields.truth("ignore_eos")
    if ignore and form:
        raise fields.wrong("ignore_eos", f"left out: with {next(iter(form))} a text ends when it has its form")
    eos = [] if ignore else [*found.eos_ids(), *ends]
    changes["eos_token_id"] = list(dict.fromkeys([*eos, *stop_ids])) or None
    return replace(found, **changes)


def _stops(fields: Fields) -> list[str] | None:
    given = fields.any("stop")
    if given is None:
        return None
    stops = [given] if isinstance(given, str) else given
    if not isinstance(stops, list) or not all(isinstance(s, str) and 0 < len(s) <= 1024 for s in stops):
        raise fields.wrong("stop", "a text or a list of texts, none empty and none longer than 1,024 characters")
    if len(stops) > STOPS:
        raise fields.wrong("stop", f"a list of at most {STOPS}")
    return stops or None


def _tokens(fields: Fields, served: ServedModel) -> list[int]:
    given = fields.listed("stop_token_ids", most=64) or []
    if not all(isinstance(t, int) and not isinstance(t, bool) and 0 <= t < served.vocabulary for t in given):
        raise fields.wrong("stop_token_ids", f"a list of tokens from 0 to {served.vocabulary - 1}")
    return [int(t) for t in given]


def _bias(fields: Fields, served: ServedModel) -> dict[tuple[int, ...], float] | None:
    given = fields.table("logit_bias")
    if not given:
        return None
    rule = f"an object of at most 1,024 tokens, from 0 to {served.vocabulary - 1}, with numbers from -100 to 100"
    if len(given) > 1024:
        raise fields.wrong("logit_bias", rule)
    found: dict[tuple[int, ...], float] = {}
    for name, value in given.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and -100 <= value <= 100
        if not (name.isascii() and name.isdigit() and len(name) < 10 and int(name) < served.vocabulary and number):
            raise fields.wrong("logit_bias", rule)
        # As OpenAI has it, a bias of -100 forbids a token, whatever its score.
        found[(int(name),)] = float(value) if value > -100 else -float("inf")
    return found


def _form(fields: Fields) -> dict[str, Any]:
    """What the text must look like."""
    found: dict[str, Any] = {}
    for name in ("regex", "grammar"):
        value = fields.text(name, longest=_LONGEST_FORM)
        if value is not None:
            found[name] = value
    choices = fields.listed("choices", most=1024)
    if choices is not None:
        found["choices"] = choices
    schema = fields.any("json_schema")
    if schema is not None:
        found["json_schema"] = schema
    told = Fields(fields.table("response_format") or {}, "response_format")
    kind = told.one_of("type", ("text", "json_object", "json_schema"))
    if told.values and kind is None:
        raise told.wrong("type", "one of text, json_object, json_schema")
    if kind == "json_object":
        found["json_schema"] = {"type": "object"}
    elif kind == "json_schema":
        described = Fields(told.table("json_schema") or {}, "response_format.json_schema")
        described.text("name", longest=64)
        described.text("description")
        described.truth("strict")
        found["json_schema"] = described.any("schema")
        if not isinstance(found["json_schema"], (dict, bool)):
            raise described.wrong("schema", "a JSON schema")
        described.end()
    told.end()
    if len(found) > 1:
        raise wrong(f"{' and '.join(sorted(found))} both say what the text must look like; give one of them.")
    if "json_schema" in found and len(json.dumps(found["json_schema"])) > _LONGEST_FORM:
        raise wrong(f"a JSON schema has at most {_LONGEST_FORM:,} characters.", "response_format")
    return found
