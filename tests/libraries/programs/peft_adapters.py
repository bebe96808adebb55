"""Adapters of peft on a small Llama: outputs, training, merging, saving and loading; safetensors.torch beside."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import common  # noqa: F401  # first: it sees to torchvision
import numpy as np
import peft
import safetensors.torch
import torch
import transformers
from common import array, fill, gradients, integers, main, numbers

transformers.logging.set_verbosity_error()


def base() -> Any:
    """A small Llama with our weights."""
    config = transformers.LlamaConfig(
        vocab_size=99,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    return fill(transformers.LlamaForCausalLM(config))


IDS = torch.from_numpy(integers("peft", 99, 2, 9))
LORA = {"r": 4, "lora_alpha": 8, "lora_dropout": 0.0, "target_modules": ["q_proj", "v_proj"]}
# adapter: (class of the configuration, options)
ADAPTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "lora": ("LoraConfig", LORA),
    "rslora": ("LoraConfig", {**LORA, "use_rslora": True, "bias": "all"}),
    "dora": ("LoraConfig", {**LORA, "use_dora": True}),
    "lora_saved": ("LoraConfig", {**LORA, "modules_to_save": ["lm_head"]}),
    "adalora": ("AdaLoraConfig", {**LORA, "total_step": 10}),
    "loha": ("LoHaConfig", {"r": 4, "alpha": 8, "target_modules": ["q_proj", "v_proj"]}),
    "lokr": ("LoKrConfig", {"r": 4, "alpha": 8, "target_modules": ["q_proj", "v_proj"]}),
    "ia3": ("IA3Config", {"target_modules": ["k_proj", "down_proj"], "feedforward_modules": ["down_proj"]}),
    "oft": ("OFTConfig", {"oft_block_size": 8, "target_modules": ["q_proj"]}),
    "vera": ("VeraConfig", {"r": 4, "target_modules": ["q_proj", "o_proj"]}),
    "prefix": ("PrefixTuningConfig", {"num_virtual_tokens": 4}),
    "prompt": ("PromptTuningConfig", {"num_virtual_tokens": 4}),
    "ptuning": ("PromptEncoderConfig", {"num_virtual_tokens": 4, "encoder_hidden_size": 16}),
}


def adapted(name: str) -> Any:
    """The model with an adapter of our numbers."""
    cls, options = ADAPTERS[name]
    model = peft.get_peft_model(base(), getattr(peft, cls)(task_type="CAUSAL_LM", **options))
    fill(model)
    # Projections that peft draws and keeps as buffers.
    with torch.no_grad():
        for key, buffer in model.named_buffers():
            if "vera" in key:
                buffer.copy_(torch.from_numpy(numbers(key, *buffer.shape, scale=0.1)))
    return model


def adapter(name: str) -> dict[str, Any]:
    """Outputs, gradients of the trainable part, a step of AdamW, and what is saved and loaded."""
    model = adapted(name).train()
    out = model(input_ids=IDS, labels=IDS)
    out.loss.backward()
    found = {"logits": array(out.logits), "loss": array(out.loss), **gradients(model)}
    trained = [key for key, p in model.named_parameters() if p.requires_grad]
    found["trained"] = np.array("\n".join(trained))
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    optimizer.step()
    model.eval()
    with torch.no_grad():
        after = model(input_ids=IDS).logits
        found["after"] = array(after)
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            saved = safetensors.torch.load_file(Path(folder) / "adapter_model.safetensors")
            found["saved"] = np.array("\n".join(f"{key} {tuple(t.shape)}" for key, t in sorted(saved.items())))
            if name != "vera":  # its projections are drawn again
                back = peft.PeftModel.from_pretrained(base(), folder).eval()
                found["loaded"] = array(back(input_ids=IDS).logits)
    return found


def merge() -> dict[str, Any]:
    """Merged into the weights, taken out again, switched off, and unloaded."""
    model = adapted("lora").eval()
    with torch.no_grad():
        found = {"plain": array(model(input_ids=IDS).logits)}
        with model.disable_adapter():
            found["disabled"] = array(model(input_ids=IDS).logits)
        model.merge_adapter()
        found["merged"] = array(model(input_ids=IDS).logits)
        model.unmerge_adapter()
        found["unmerged"] = array(model(input_ids=IDS).logits)
        whole = model.merge_and_unload()
        found["unloaded"] = array(whole(input_ids=IDS).logits)
        found["tokens"] = array(whole.generate(input_ids=IDS, max_new_tokens=5, do_sample=False))
    return found


def several() -> dict[str, Any]:
    """Two adapters on one model, chosen in turn and mixed."""
    model = adapted("lora").eval()
    model.add_adapter("second", peft.LoraConfig(**LORA, task_type="CAUSAL_LM"))
    fill(model)
    found = {}
    with torch.no_grad():
        for chosen in ("default", "second"):
            model.set_adapter(chosen)
            found[chosen] = array(model(input_ids=IDS).logits)
        model.add_weighted_adapter(["default", "second"], [0.7, 0.3], "both", combination_type="linear")
        model.set_adapter("both")
        found["both"] = array(model(input_ids=IDS).logits)
    return found


def pretrained() -> dict[str, Any]:
    """A model of transformers saved, loaded again and loaded in halves."""
    model = base().eval()
    found = {}
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model.save_pretrained(folder)
        back = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
        found["logits"] = array(back(input_ids=IDS).logits)
        half = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
        found["dtype"] = np.array(str(half.lm_head.weight.dtype))
        found["halves"] = array(half.lm_head.weight)
    return found


def files() -> dict[str, Any]:
    """safetensors.torch: dicts and models, shared and strided tensors, all types."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.safetensors"
        kinds = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]
        tensors = {k: torch.arange(6).reshape(2, 3).to(getattr(torch, k)) for k in kinds}
        safetensors.torch.save_file(tensors, file, metadata={"format": "pt"})
        found["bytes"] = np.frombuffer(file.read_bytes(), np.uint8)
        for key, value in safetensors.torch.load_file(file).items():
            found[key] = array(value)
            assert value.dtype == tensors[key].dtype
        again = safetensors.torch.load(safetensors.torch.save(tensors))
        found["again"] = array(again["float32"])
        with safetensors.safe_open(file, framework="pt") as opened:
            found["slice"] = array(opened.get_slice("float32")[:, 1:])
        layer = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
        layer[1].weight = layer[0].weight
        fill(layer)
        safetensors.torch.save_model(layer, str(file))
        other = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
        other[1].weight = other[0].weight
        safetensors.torch.load_model(other, str(file))
        found["model"] = array(other(torch.ones(1, 3)))
        try:
            safetensors.torch.save_file({"a": layer[0].weight, "b": layer[1].weight}, file)
        except RuntimeError as error:
            found["shared"] = np.array(str(error)[:40])
    return found


CASES: dict[str, Any] = {
    **{name: (lambda name=name: adapter(name)) for name in ADAPTERS},
    "merge": merge,
    "several": several,
    "pretrained": pretrained,
    "files": files,
}

if __name__ == "__main__":
    main(CASES)
