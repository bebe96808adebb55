"""Tensors of GGUF files and of Hugging Face checkpoints: which becomes which, and what is done on the way.

Reads names and shapes only; knows records of kinds (`gguf_family`), and of the kinds none but Mixtral's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..io import FileFormatError, WeightSource
from .gguf_families import MIXTRAL
from .gguf_family import COLUMN, DECAY, DECAYS, EXPERTS, FILTER, GROUPED, KEY, ONE, QUERY, ROW, TRANSPOSED, Bond, Family
from .refitted import STACKED, TAKEN, Part

BLOCK = re.compile(r"blk\.(\d+)\.(.+?)\.(weight|bias)")
FREQUENCIES = "rope_freqs.weight"
# Phi-3's two sets of divisors of frequencies, for texts up to the first length and beyond it.
FACTORS = {"long_factor": "rope_factors_long.weight", "short_factor": "rope_factors_short.weight"}
_OF_BIASES = (QUERY, KEY, EXPERTS)
# What families call the number of experts.
_EXPERT_COUNTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
# Older files of Mixtral have a tensor for each expert: blk.0.ffn_gate.3.weight.
_OLD_EXPERT = re.compile(r"blk\.(\d+)\.(ffn_gate|ffn_up|ffn_down)\.(\d+)\.weight")


def fitted(family: Family, values: Mapping[str, Any]) -> Family:
    """The family with the names that a configuration gives."""
    return family if family.variant is None else replace(family, block=family.block | family.variant(values))


def _numbers(config: Mapping[str, Any]) -> dict[str, int]:
    """What changes of tensors need to know."""
    heads = config.get("num_attention_heads") or config.get("n_head") or 0
    groups = config.get("n_groups") or config.get("mamba_n_groups") or 1
    return {QUERY: heads, KEY: config.get("num_key_value_heads") or heads, GROUPED: groups}


# What is done on the way from GGUF, and on the way there.
_FROM = {
    QUERY: "halves",
    KEY: "halves",
    TRANSPOSED: "transposed",
    ROW: "row",
    FILTER: "filter",
    COLUMN: "flat",
    GROUPED: "flat",
    DECAY: "log decay",
    DECAYS: "log decays",
}
_TO = {
    QUERY: "neighbours",
    KEY: "neighbours",
    TRANSPOSED: "transposed",
    ROW: "flat",
    FILTER: "no filter",
    COLUMN: "column",
    GROUPED: "rows",
    DECAY: "decay",
    DECAYS: "decays",
}


def incoming(file: WeightSource, family: Family, config: dict[str, Any]) -> dict[str, Part]:
    """Hugging Face names and where in a GGUF file their tensors are."""
    if family.table is not None:
        names = family.table(config)
        return {names.get(name, name): Part((name,)) for name in file.names()}
    numbers = _numbers(config)
    family = fitted(family, config)
    out, bound = _bound(file, family, config)
    all_layers = file.metadata[f"{family.architecture}.block_count"]
    beyond = tuple(f"blk.{i}." for i in range(_count(family, config), all_layers))
    for name in file.names():
        if name in bound or name.startswith(beyond):
            continue
        new = hf_name(family, name)
        if name in (FREQUENCIES, *FACTORS.values()) or new is None:
            continue
        stem = _stem(name)
        bare = name.removeprefix("blk.").partition(".")[2]
        stem = bare if bare in family.bare else stem
        fix = family.fixes.get(stem, "")
        # A transposed layer's bias and a norm's have nothing to turn, nor has a bias one added.
        if name.endswith(".bias") and fix not in _OF_BIASES and stem not in family.bare:
            fix = ""
        if fix == EXPERTS and "{e}" in new:
            for e in range(_stack_height(file, name)):
                out[new.format(e=e)] = Part((name,), TAKEN, e)
        elif fix == ONE:
            out[new] = Part((name,), "plus", -1)
        else:
            out[new] = Part((name,), _FROM.get(fix, ""), numbers.get(fix, 0))
    return out


def _bound(file: WeightSource, family: Family, config: Mapping[str, Any]) -> tuple[dict[str, Part], set[str]]:
    """Hugging Face names of what several tensors of a GGUF file make, and these tensors."""
    out: dict[str, Part] = {}
    used: set[str] = set()
    for bond in family.bonds(config) if family.bonds is not None else ():
        for theirs, ours in _places(bond, family, config):
            names = tuple(theirs + name for name in bond.stored)
            if all(name in file for name in names) and not used.intersection(names):
                used.update(names)
                for new, change in bond.named.items():
                    out[ours + new] = Part(names, change=change, rows=bond.rows)
    return out, used


def _stack_height(file: WeightSource, name: str) -> int:
    shape = file.info(name).shape
    wanted = 2 if name.endswith(".bias") else 3
    if len(shape) != wanted:
        raise FileFormatError(f"{name} has the shape {tuple(shape)}; that of all experts has {wanted} dimensions.")
    return shape[0]


def hf_name(family: Family, name: str) -> str | None:
    """The Hugging Face name of a GGUF tensor; `{e}` in it stands for the number of an expert.

    >>> from votive.models.gguf_families import QWEN3
    >>> from votive.models.gguf_tensors import hf_name
    >>> hf_name(QWEN3, "blk.3.attn_q_norm.weight")
    'model.layers.3.self_attn.q_norm.weight'
    """
    layer, _, stem = name.removeprefix("blk.").partition(".")
    if stem in family.bare:
        return f"{family.layers}.{layer}.{family.bare[stem]}"
    old = _OLD_EXPERT.fullmatch(name)
    if old is not None and family is MIXTRAL:
        inner = family.block[f"{old[2]}_exps"].format(e=old[3])
        return f"{family.layers}.{old[1]}.{inner}.weight"
    found = BLOCK.fullmatch(name)
    if found is not None:
        known = family.block.get(found[2])
        # Tables that llama.cpp once stored with each layer.
        if found[2] == "attn_rot_embd":
            return None
        return name if known is None else f"{family.layers}.{found[1]}.{known}.{found[3]}"
    stem, _, kind = name.rpartition(".")
    return f"{family.whole[stem]}.{kind}" if stem in family.whole else name


def _stem(name: str) -> str:
    """What a tensor does in its layer, or in the whole."""
    found = BLOCK.fullmatch(name)
    if found is not None:
        return found[2]
    return name.split(".", 2)[2] if re.match(r"blk\.\d+\.", name) else name.rpartition(".")[0]


def outgoing(source: WeightSource, family: Family, config: Mapping[str, Any]) -> dict[str, Part]:
    """GGUF names and where in a Hugging Face checkpoint their tensors are."""
    numbers = _numbers(config)
    known = dict.fromkeys(source.names())
    head = f"{family.head}.weight"
    tied = config.get("tie_word_embeddings")
    if tied is None:
        tied = head not in known
    if family.table is not None:
        return _listed(known, family, config, tied)
    out = _bonded(known, family, config)
    for stem, hf in _wanted(family, config):
        short = _stem(f"{stem}.weight")
        if short in family.bare:
            if hf in known:
                fix = family.fixes.get(short, "")
                out[stem] = Part((hf,), _TO.get(fix, ""), numbers.get(fix, 0))
                del known[hf]
            elif short not in family.some:
                raise ValueError(f"to_gguf: 1 tensors are missing: {[hf]}.")
            continue
        for kind in ("weight", "bias"):
            fix = family.fixes.get(short, "")
            if kind == "bias" and fix not in _OF_BIASES:
                fix = ""
            if fix == EXPERTS and "{e}" in hf:
                count = next((config[k] for k in _EXPERT_COUNTS if config.get(k)), 0)
                names = tuple(f"{hf.format(e=e)}.{kind}" for e in range(count))
            else:
                names = (f"{hf}.{kind}",)
            if names == (head,) and tied:
                known.pop(names[0], None)
                continue
            if f"{stem}.{kind}" in out:
                continue
            there = [n for n in names if n in known]
            if not there or len(there) != len(names):
                if there or (kind == "weight" and short not in family.some):
                    lack = [n for n in names if n not in known]
                    raise ValueError(f"to_gguf: {len(lack)} tensors are missing: {lack[:3]}.")
                continue
            for n in names:
                del known[n]
            if fix == EXPERTS:
                out[f"{stem}.{kind}"] = Part(names, STACKED)
            elif fix == ONE:
                out[f"{stem}.{kind}"] = Part(names, "plus", 1)
            else:
                out[f"{stem}.{kind}"] = Part(names, _TO.get(fix, ""), numbers.get(fix, 0))
    if known:
        raise ValueError(f"to_gguf: GGUF files of {family.architecture} have no place for {list(known)[:5]}.")
    return out


def _listed(known: dict[str, None], family: Family, config: Mapping[str, Any], tied: bool) -> dict[str, Part]:
    """GGUF names of tensors that are the same on both sides."""
    assert family.table is not None, "asked for only then"
    head, names = f"{family.head}.weight", family.table(config)
    if config.get("scale_decoder_outputs") is False and head not in known:
        # A T5 whose head is its table, without the scale that readers take for granted then.
        names["output.weight"] = names["token_embd.weight"]
    elif tied:
        del names["output.weight"]
    # Only some layers know how far positions are from each other.
    lack = [ours for theirs, ours in names.items() if ours not in known and "attn_rel_b" not in theirs]
    if lack:
        raise ValueError(f"to_gguf: {len(lack)} tensors are missing: {lack[:3]}.")
    more = [name for name in known if name not in names.values() and name != head]
    if more:
        raise ValueError(f"to_gguf: GGUF files of {family.architecture} have no place for {more[:5]}.")
    return {theirs: Part((ours,)) for theirs, ours in names.items() if ours in known}


def _bonded(known: dict[str, None], family: Family, config: Mapping[str, Any]) -> dict[str, Part]:
    """GGUF names of what several tensors of a checkpoint make; these are taken out of those `known`."""
    out: dict[str, Part] = {}
    for bond in family.bonds(config) if family.bonds is not None else ():
        for theirs, ours in _places(bond, family, config) if bond.written else ():
            names = tuple(ours + name for name in bond.named)
            lack = [n for n in names if n not in known]
            if len(lack) == len(names) and bond.optional:
                continue
            if lack:
                raise ValueError(f"to_gguf: {len(lack)} tensors are missing: {lack[:3]}.")
            for n in names:
                del known[n]
            for stored, change in bond.stored.items():
                out[theirs + stored] = Part(names, change=change, rows=bond.rows)
    return out


def _places(bond: Bond, family: Family, config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What stands before the names of a bond, in a GGUF file and in a checkpoint."""
    if bond.whole:
        return [("", "")]
    return [(f"blk.{i}.", f"{family.layers}.{i}.") for i in range(_count(family, config))]


def _count(family: Family, config: Mapping[str, Any]) -> int:
    return int(config.get(family.keys["block_count"]) or 0)


def _wanted(family: Family, config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """All tensors a model may have, GGUF stems and Hugging Face names, in the order of the file."""
    count = _count(family, config)
    first = [(g, h) for g, h in family.whole.items() if g not in ("output_norm", "output")]
    block = {**family.block, **family.bare}
    blocks = [(f"blk.{i}.{g}", f"{family.layers}.{i}.{h}") for i in range(count) for g, h in block.items()]
    last = [(g, h) for g, h in family.whole.items() if g in ("output_norm", "output")]
    return first + blocks + last


def plain_names(source: WeightSource, family: Family) -> WeightSource:
    """The spelling of released checkpoints, whatever the source's: prefixes, stacked experts."""
    if EXPERTS in family.fixes.values():
        from .stacked import Unstacked

        source = Unstacked(source, family.stacked)
    starts = (family.prefix, f"{family.head}.") if family.prefix else ("",)

    def rule(name: str) -> str | None:
        for pattern, new in family.respelled:
            name = re.sub(pattern, new, name)
        if any(re.search(pattern, name) for pattern in family.dropped):
            return None
        if not name.startswith(starts):
            name = family.prefix + name
        return _mixtral(name) if family is MIXTRAL else name

    return source.renamed(rule)


def _mixtral(name: str) -> str:
    """Newer files name the experts as other models do."""
    name = re.sub(r"\.mlp\.(gate|experts)\.", r".block_sparse_moe.\1.", name)
    for new, old in (("gate_proj", "w1"), ("down_proj", "w2"), ("up_proj", "w3")):
        name = re.sub(rf"(\.experts\.\d+\.){new}\.", rf"\g<1>{old}.", name)
    return name
