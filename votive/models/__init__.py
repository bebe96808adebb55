"""Language models in one readable file each, with Hugging Face's configurations and names."""

from .attention import Sight, attend, attention_weights, causal_sight
from .auto import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    families,
    register,
)
from .checkpoint import Checkpoint, bundled
from .config import Config
from .llama import (
    LlamaConfig,
    LlamaForCausalLM,
    LlamaModel,
    MistralConfig,
    MistralForCausalLM,
    MistralModel,
)
from .output import BaseModelOutput, CausalLMOutput, ModelOutput
from .pretrained import CausalLM, PreTrainedModel
from .qwen import (
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2Model,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3Model,
)

__all__ = [
    "AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoModelForMaskedLM",
    "AutoModelForSeq2SeqLM", "AutoModelForSequenceClassification", "BaseModelOutput", "CausalLM",
    "CausalLMOutput", "Checkpoint", "Config", "LlamaConfig", "LlamaForCausalLM", "LlamaModel",
    "MistralConfig", "MistralForCausalLM", "MistralModel", "ModelOutput", "PreTrainedModel",
    "Qwen2Config", "Qwen2ForCausalLM", "Qwen2Model", "Qwen3Config", "Qwen3ForCausalLM",
    "Qwen3Model", "Sight", "attend", "attention_weights", "bundled", "causal_sight", "families",
    "register",
]  # fmt: skip
