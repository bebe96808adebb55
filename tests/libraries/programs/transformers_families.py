"""Families of transformers with tiny random configurations: logits, greedy tokens, gradients, a step of Trainer."""

from __future__ import annotations

import copy
import functools
import tempfile
from typing import Any

import numpy as np
import torch
import transformers
from common import array, fill, gradients, integers, main, numbers, quiet

transformers.logging.set_verbosity_error()

VOCAB = 99
SMALL = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
GQA = {**SMALL, "num_key_value_heads": 2}
ENDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
GEMMA = {**GQA, "head_dim": 8}
MOE = {**GQA, "num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2}
T5 = {
    "vocab_size": VOCAB,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
BART = {
    "vocab_size": VOCAB,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": 2,
}
VISION = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
    "num_channels": 3,
}

# family: (kind, class of the model, configuration)
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "llama": ("causal", "LlamaForCausalLM", GQA),
    "qwen2": (
        "causal",
        "Qwen2ForCausalLM",
        {**GQA, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
    ),
    "qwen3": ("causal", "Qwen3ForCausalLM", GEMMA),
    "qwen3_moe": ("causal", "Qwen3MoeForCausalLM", {**MOE, "head_dim": 8, "moe_intermediate_size": 16}),
    "mistral": ("causal", "MistralForCausalLM", {**GQA, "sliding_window": 4}),
    "mixtral": ("causal", "MixtralForCausalLM", MOE),
    "gemma": ("causal", "GemmaForCausalLM", GEMMA),
    "gemma2": ("causal", "Gemma2ForCausalLM", {**GEMMA, "sliding_window": 4}),
    "gemma3": ("causal", "Gemma3ForCausalLM", {**GEMMA, "sliding_window": 4}),
    "phi": ("causal", "PhiForCausalLM", SMALL),
    "phi3": ("causal", "Phi3ForCausalLM", GQA),
    "gpt2": (
        "causal",
        "GPT2LMHeadModel",
        {"vocab_size": VOCAB, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    ),
    "gpt_neo": (
        "causal",
        "GPTNeoForCausalLM",
        {
            "vocab_size": VOCAB,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 4,
            "max_position_embeddings": 64,
        },
    ),
    "gpt_neox": ("causal", "GPTNeoXForCausalLM", SMALL),
    "gptj": (
        "causal",
        "GPTJForCausalLM",
        {"vocab_size": VOCAB, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "rotary_dim": 4},
    ),
    "opt": (
        "causal",
        "OPTForCausalLM",
        {
            "vocab_size": VOCAB,
            "hidden_size": 32,
            "ffn_dim": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 64,
            "word_embed_proj_dim": 32,
        },
    ),
    "bloom": ("causal", "BloomForCausalLM", {"vocab_size": VOCAB, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "falcon": ("causal", "FalconForCausalLM", {**SMALL, "multi_query": True}),
    "olmo": ("causal", "OlmoForCausalLM", GQA),
    "olmo2": ("causal", "Olmo2ForCausalLM", GQA),
    "stablelm": ("causal", "StableLmForCausalLM", GQA),
    "starcoder2": ("causal", "Starcoder2ForCausalLM", GQA),
    "cohere": ("causal", "CohereForCausalLM", GQA),
    "granite": ("causal", "GraniteForCausalLM", GQA),
    "smollm3": ("causal", "SmolLM3ForCausalLM", GQA),
    "deepseek_v3": (
        "causal",
        "DeepseekV3ForCausalLM",
        {
            **GQA,
            "num_key_value_heads": 4,
            "moe_intermediate_size": 16,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "n_group": 2,
            "topk_group": 1,
            "n_shared_experts": 1,
            "first_k_dense_replace": 1,
            "kv_lora_rank": 8,
            "q_lora_rank": 8,
            "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 4,
            "v_head_dim": 8,
        },
    ),
    "mamba": (
        "causal",
        "MambaForCausalLM",
        {"vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
    ),
    "mamba2": (
        "causal",
        "Mamba2ForCausalLM",
        {
            "vocab_size": VOCAB,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "state_size": 8,
            "num_heads": 8,
            "head_dim": 8,
            "n_groups": 2,
            "chunk_size": 4,
        },
    ),
    "bert": ("masked", "BertForMaskedLM", SMALL),
    "roberta": ("masked", "RobertaForMaskedLM", SMALL),
    "distilbert": (
        "masked",
        "DistilBertForMaskedLM",
        {"vocab_size": VOCAB, "dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64},
    ),
    "albert": ("masked", "AlbertForMaskedLM", {**SMALL, "embedding_size": 16}),
    "electra": ("masked", "ElectraForMaskedLM", {**SMALL, "embedding_size": 16}),
    "deberta_v2": (
        "masked",
        "DebertaV2ForMaskedLM",
        {**SMALL, "relative_attention": True, "position_biased_input": False, "pos_att_type": ["p2c", "c2p"]},
    ),
    "modernbert": (
        "masked",
        "ModernBertForMaskedLM",
        {
            **SMALL,
            "local_attention": 4,
            "global_attn_every_n_layers": 2,
            "cls_token_id": 1,
            "sep_token_id": 2,
            "pad_token_id": 0,
        },
    ),
    "t5": ("seq2seq", "T5ForConditionalGeneration", T5),
    "bart": ("seq2seq", "BartForConditionalGeneration", BART),
    "marian": ("seq2seq", "MarianMTModel", {**BART, "pad_token_id": 0, "decoder_start_token_id": 0}),
    "vit": ("image", "ViTForImageClassification", {**VISION, "num_labels": 5}),
    "dinov2": ("image", "Dinov2ForImageClassification", {**VISION, "num_labels": 5}),
    "clip": (
        "clip",
        "CLIPModel",
        {
            "text_config": {
                **SMALL,
                "max_position_embeddings": 16,
                "eos_token_id": 2,
                "bos_token_id": 1,
                "projection_dim": 16,
            },
            "vision_config": {**VISION, "projection_dim": 16},
            "projection_dim": 16,
        },
    ),
    "whisper": (
        "speech",
        "WhisperForConditionalGeneration",
        {
            **BART,
            "num_mel_bins": 16,
            "max_source_positions": 20,
            "max_target_positions": 40,
            "decoder_start_token_id": 1,
            "suppress_tokens": None,
            "begin_suppress_tokens": None,
            "forced_eos_token_id": None,
            **ENDS,
        },
    ),
    "wav2vec2": (
        "wave",
        "Wav2Vec2ForCTC",
        {
            **SMALL,
            "conv_dim": [16, 16, 16],
            "conv_stride": [5, 2, 2],
            "conv_kernel": [10, 3, 3],
            "num_feat_extract_layers": 3,
            "num_conv_pos_embeddings": 16,
            "num_conv_pos_embedding_groups": 2,
            "apply_spec_augment": False,
            "ctc_loss_reduction": "mean",
            "ctc_zero_infinity": True,
            "pad_token_id": 0,
        },
    ),
}


def build(family: str) -> tuple[str, Any]:
    """The kind of a family, and its model with our weights."""
    kind, name, options = FAMILIES[family]
    cls = getattr(transformers, name)
    options = copy.deepcopy(options)
    if kind in ("causal", "masked", "seq2seq"):
        options = {**ENDS, **options}
    config = quiet(cls.config_class(**options))
    model = cls(config).eval()
    return kind, fill(model)


def inputs(family: str, kind: str) -> dict[str, Any]:
    """A batch of two, without labels."""
    ids = torch.from_numpy(integers(family, VOCAB, 2, 9, low=3))
    mask = torch.ones(2, 9, dtype=torch.long)
    if kind in ("masked", "seq2seq", "causal"):
        # The second text is shorter: padded where its family pads.
        if kind == "causal":
            mask[1, :3] = 0
            ids[1, :3] = 0
        else:
            mask[1, 6:] = 0
            ids[1, 6:] = 0
    if kind in ("causal", "masked"):
        return {"input_ids": ids, "attention_mask": mask}
    if kind == "seq2seq":
        decoded = torch.from_numpy(integers(family + "decoder", VOCAB, 2, 6, low=3))
        return {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": decoded}
    pixels = torch.from_numpy(numbers(family, 2, 3, 32, 32))
    if kind == "image":
        return {"pixel_values": pixels}
    if kind == "clip":
        ids[:, -1] = 2
        return {"input_ids": ids, "attention_mask": mask, "pixel_values": pixels}
    if kind == "speech":
        decoded = torch.from_numpy(integers(family + "decoder", VOCAB, 2, 6, low=3))
        return {"input_features": torch.from_numpy(numbers(family, 2, 16, 40)), "decoder_input_ids": decoded}
    return {"input_values": torch.from_numpy(numbers(family, 2, 400))}


def targets(family: str, kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """The batch with labels, as it is trained with."""
    if kind == "causal":
        return {**given, "labels": given["input_ids"].masked_fill(given["attention_mask"] == 0, -100)}
    if kind == "masked":
        return {**given, "labels": given["input_ids"].masked_fill(given["attention_mask"] == 0, -100)}
    if kind in ("seq2seq", "speech"):
        kept = {key: value for key, value in given.items() if key != "decoder_input_ids"}
        return {**kept, "labels": given["decoder_input_ids"]}
    if kind == "image":
        return {**given, "labels": torch.tensor([1, 3])}
    if kind == "clip":
        return {**given, "return_loss": True}
    return {**given, "labels": torch.from_numpy(integers(family, VOCAB, 2, 4, low=3))}


def forward(family: str) -> dict[str, Any]:
    """Logits, and the tokens of greedy generation."""
    kind, model = build(family)
    given = inputs(family, kind)
    found: dict[str, Any] = {}
    with torch.no_grad():
        out = model(**given)
        if kind == "clip":
            found["logits"] = array(out.logits_per_image)
            found["text_embeds"] = array(out.text_embeds)
        else:
            found["logits"] = array(out.logits)
    return found


def generate(family: str) -> dict[str, Any]:
    """The tokens of greedy generation."""
    kind, model = build(family)
    given = {key: value for key, value in inputs(family, kind).items() if key != "decoder_input_ids"}
    if kind not in ("causal", "seq2seq", "speech"):
        return {}
    return {"tokens": array(model.generate(**given, max_new_tokens=8, do_sample=False))}


def step(family: str) -> dict[str, Any]:
    """Loss and gradients of a plain training step."""
    kind, model = build(family)
    model.train()
    loss = model(**targets(family, kind, inputs(family, kind))).loss
    loss.backward()
    return {"loss": array(loss), **gradients(model)}


def trainer(family: str) -> dict[str, Any]:
    """Loss and what one step of Trainer changes."""
    kind, model = build(family)
    batch = targets(family, kind, inputs(family, kind))
    rows = [{key: value[i] if hasattr(value, "shape") else value for key, value in batch.items()} for i in range(2)]
    before = {name: array(p).copy() for name, p in model.named_parameters()}

    def collate(rows: list[dict[str, Any]]) -> dict[str, Any]:
        return {key: torch.stack([r[key] for r in rows]) if hasattr(v, "shape") else v for key, v in rows[0].items()}

    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder,
            max_steps=1,
            per_device_train_batch_size=2,
            learning_rate=1.0,
            optim="sgd",
            lr_scheduler_type="constant",
            use_cpu=True,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            remove_unused_columns=False,
        )
        made = transformers.Trainer(model=model, args=arguments, train_dataset=rows, data_collator=collate)
        result = made.train()
    changed = {f"step.{name}": array(p) - before[name] for name, p in model.named_parameters()}
    return {"loss": np.array(result.training_loss), **changed}


CASES = {
    f"{family}.{part.__name__}": functools.partial(part, family)
    for family in FAMILIES
    for part in (forward, generate, step, trainer)
}

if __name__ == "__main__":
    main(CASES)
