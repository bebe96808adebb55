"""Libraries that look inside models: TransformerLens' hooks and caches, nnsight's traces."""

from __future__ import annotations

import functools
from typing import Any

import common  # noqa: F401  # first: it sees to torchvision
import numpy as np
import torch
from common import array, fill, gradients, integers, main, numbers

IDS = torch.from_numpy(integers("inside", 50, 2, 7))


def lens(**options: Any) -> Any:
    """A small model of TransformerLens with our weights."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig

    given = {
        "n_layers": 2,
        "d_model": 32,
        "n_ctx": 16,
        "d_head": 8,
        "n_heads": 4,
        "d_mlp": 64,
        "d_vocab": 50,
        "act_fn": "gelu",
        "device": "cpu",
        **options,
    }
    return fill(HookedTransformer(HookedTransformerConfig(**given)))


KINDS: dict[str, dict[str, Any]] = {
    "plain": {"normalization_type": "LN"},
    "pre": {"normalization_type": "LNPre"},
    "rms": {"normalization_type": "RMS", "gated_mlp": True, "act_fn": "silu", "n_key_value_heads": 2},
    "rotary": {"normalization_type": "LN", "positional_embedding_type": "rotary", "rotary_dim": 8},
    "parallel": {"normalization_type": "LN", "parallel_attn_mlp": True},
    "attention_only": {"attn_only": True, "normalization_type": None},
    "shortformer": {"normalization_type": "LN", "positional_embedding_type": "shortformer"},
    "split": {
        "normalization_type": "LN",
        "use_split_qkv_input": True,
        "use_attn_result": True,
        "use_hook_mlp_in": True,
    },
}


def cache(kind: str) -> dict[str, Any]:
    """Every activation of `run_with_cache`, and loss and gradients."""
    model = lens(**KINDS[kind])
    logits, stored = model.run_with_cache(IDS)
    found = {"logits": array(logits), **{f"at.{key}": array(value) for key, value in stored.items()}}
    loss = model(IDS, return_type="loss")
    loss.backward()
    return {**found, "loss": array(loss), **gradients(model)}


def hooks() -> dict[str, Any]:
    """Hooks that change activations, forward and backward, and contexts that end."""
    model = lens(**KINDS["plain"])
    seen: dict[str, Any] = {}

    def ablate(value: Any, hook: Any, head: int = 1) -> Any:
        value[:, :, head] = 0.0
        return value

    def keep(gradient: Any, hook: Any) -> None:
        seen[hook.name] = array(gradient)

    found = {"ablated": array(model.run_with_hooks(IDS, fwd_hooks=[("blocks.0.attn.hook_v", ablate)]))}
    found["pattern"] = array(
        model.run_with_hooks(
            IDS, fwd_hooks=[(lambda name: name.endswith("pattern"), lambda value, hook: value * (value > 0.1))]
        )
    )
    with model.hooks(fwd_hooks=[("hook_embed", lambda value, hook: value + 1)], bwd_hooks=[("hook_embed", keep)]):
        model(IDS, return_type="loss").backward()
    found["after"] = array(model(IDS))
    return {**found, **{f"backward.{key}": value for key, value in seen.items()}}


def decompose() -> dict[str, Any]:
    """What a cache is taken apart into: residuals, heads, directions of logits."""
    model = lens(**KINDS["split"])
    _, stored = model.run_with_cache(IDS)
    parts, labels = stored.decompose_resid(layer=-1, return_labels=True)
    accumulated = stored.accumulated_resid(layer=-1, incl_mid=True)
    heads = stored.stack_head_results(layer=-1)
    scaled = stored.apply_ln_to_stack(parts, layer=-1)
    last = stored.decompose_resid(layer=-1, pos_slice=-1)
    return {
        "parts": array(parts),
        "labels": np.array("\n".join(labels)),
        "accumulated": array(accumulated),
        "heads": array(heads),
        "scaled": array(scaled),
        "attribution": array(stored.logit_attrs(last, tokens=IDS[:, -1], pos_slice=-1)),
        "ov": array(model.OV.AB),
        "norms": array(model.QK.norm()),
        "composition": array(model.all_composition_scores("Q")),
    }


def generation() -> dict[str, Any]:
    """Greedy tokens with a cache of keys and values, and logits with it."""
    from transformer_lens.cache.key_value_cache import TransformerLensKeyValueCache

    model = lens(**KINDS["rotary"])
    options = {"do_sample": False, "verbose": False, "stop_at_eos": False, "use_past_kv_cache": False}
    tokens = model.generate(IDS, max_new_tokens=6, **options)
    past = TransformerLensKeyValueCache.init_cache(model.cfg, "cpu", 2)
    first = model(IDS[:, :4], past_kv_cache=past, attention_mask=torch.ones(2, 4, dtype=torch.long))
    rest = model(IDS[:, 4:], past_kv_cache=past, attention_mask=torch.ones(2, 3, dtype=torch.long))
    return {"tokens": array(tokens), "first": array(first), "rest": array(rest)}


def processed() -> dict[str, Any]:
    """Weights folded and centred."""
    model = lens(**KINDS["plain"])
    state = model.state_dict()
    model.load_and_process_state_dict(
        state, fold_ln=True, center_writing_weights=True, center_unembed=True, fold_value_biases=True
    )
    return {"logits": array(model(IDS)), **{f"weight.{key}": array(v) for key, v in model.state_dict().items()}}


def sequential() -> Any:
    """Two layers with our weights."""
    from collections import OrderedDict

    return fill(
        torch.nn.Sequential(
            OrderedDict(
                first=torch.nn.Linear(5, 10),
                act=torch.nn.ReLU(),
                second=torch.nn.Linear(10, 3),
                last=torch.nn.Identity(),
            )
        )
    )


def trace() -> dict[str, Any]:
    """nnsight on a module: values saved, changed, and gradients at a place."""
    from nnsight import NNsight

    model = NNsight(sequential())
    x = torch.from_numpy(numbers("trace", 2, 5))
    with model.trace(x):
        hidden = model.first.output.save()
        out = model.output.save()
    with model.trace(x):
        model.first.output[:, 0] = 0
        changed = model.output.save()
    with model.trace(x):
        model.act.output = model.act.output * 2
        doubled = model.second.output.save()
    with model.trace(x):
        inner = model.first.output
        inner.requires_grad_(True)
        loss = model.output.sum()
        with loss.backward():
            gradient = inner.grad.save()
    return {
        "hidden": array(hidden),
        "out": array(out),
        "changed": array(changed),
        "doubled": array(doubled),
        "gradient": array(gradient),
    }


def language() -> dict[str, Any]:
    """nnsight's LanguageModel around a GPT-2 from a configuration: states, changes, patches between prompts, tokens."""
    import tokenizers
    import transformers
    from nnsight import LanguageModel, save

    words = {f"w{i}": i for i in range(50)}
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w0"))
    core.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="w0", pad_token="w0", eos_token="w2"
    )
    config = transformers.GPT2Config(
        vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=32, bos_token_id=1, eos_token_id=2, pad_token_id=0
    )
    model = LanguageModel(fill(transformers.GPT2LMHeadModel(config).eval()), tokenizer=tokenizer)
    prompts = [" ".join(f"w{i}" for i in row) for row in (IDS + 3).clamp(max=49).tolist()]
    prompts[1] = prompts[1].rsplit(" ", 2)[0]
    with torch.no_grad():
        with model.trace(prompts[0]):
            states = model.transformer.h[0].output.save()
            attention = model.transformer.h[1].attn.output[0].save()
            logits = model.lm_head.output.save()
        with model.trace(prompts[0]):
            model.transformer.h[0].mlp.output[:, -1] = 0
            changed = model.lm_head.output.save()
        with model.trace() as tracer:
            barrier = tracer.barrier(2)
            with tracer.invoke(prompts[0]):
                source = model.transformer.h[0].mlp.output[:, -1].save()
                barrier()
            with tracer.invoke(prompts[1]):
                barrier()
                model.transformer.h[1].mlp.output[:, -1] = source
                patched = model.lm_head.output.save()
        with model.generate(prompts[0], max_new_tokens=4, do_sample=False) as tracer:
            tokens = tracer.result.save()
        with model.generate(prompts[0], max_new_tokens=3, do_sample=False) as tracer:
            steps = save([])
            for _ in tracer.iter[:]:
                steps.append(model.lm_head.output[0, -1])
    states = states[0] if isinstance(states, tuple) else states
    found = {"states": states, "attention": attention, "logits": logits, "changed": changed, "tokens": tokens}
    found.update({f"step.{i}": value for i, value in enumerate(steps)})
    return {key: array(value) for key, value in {**found, "source": source, "patched": patched}.items()}


CASES: dict[str, Any] = {
    **{f"lens.{kind}": functools.partial(cache, kind) for kind in KINDS},
    "lens.hooks": hooks,
    "lens.decompose": decompose,
    "lens.generation": generation,
    "lens.processed": processed,
    "nnsight.trace": trace,
    "nnsight.language": language,
}

if __name__ == "__main__":
    main(CASES)
