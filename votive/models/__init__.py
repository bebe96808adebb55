"""Models of texts and pictures, a readable file each, with Hugging Face's names."""

from .attention import AttentionMask, attend, attention_weights, causal_mask
from .auto import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForImageClassification,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForSpeechSeq2Seq,
    AutoModelForTextEncoding,
    AutoModelForVision2Seq,
    AutoModelForZeroShotImageClassification,
    families,
    register,
)
from .checkpoint import Checkpoint, bundled
from .config import Config
from .llama import LlamaConfig, LlamaForCausalLM, LlamaModel, MistralConfig, MistralForCausalLM, MistralModel
from .output import BaseModelOutput, CausalLMOutput, ModelOutput
from .pretrained import CausalLM, PreTrainedModel
from .qwen import Qwen2Config, Qwen2ForCausalLM, Qwen2Model, Qwen3Config, Qwen3ForCausalLM, Qwen3Model

# The other families are read when one of them is asked for.
_LAZY = {
    "beit": ("BeitConfig", "BeitForImageClassification", "BeitModel"),
    "bert": ("BertConfig", "BertForMaskedLM", "BertForSequenceClassification", "BertModel"),
    "clip": (
        "CLIPConfig", "CLIPForImageClassification", "CLIPModel", "CLIPOutput", "CLIPTextConfig",
        "CLIPTextModel", "CLIPTextModelWithProjection", "CLIPVisionConfig", "CLIPVisionModel",
        "CLIPVisionModelWithProjection",
    ),
    "cross_cache": ("EncoderDecoderCache",),
    "deit": (
        "DeiTConfig", "DeiTForImageClassification", "DeiTForImageClassificationWithTeacher",
        "DeiTModel",
    ),
    "distilbert": (
        "DistilBertConfig", "DistilBertForMaskedLM", "DistilBertForSequenceClassification",
        "DistilBertModel",
    ),
    "gemma": (
        "Gemma2Config", "Gemma2ForCausalLM", "Gemma2Model", "Gemma3ForCausalLM",
        "Gemma3TextConfig", "Gemma3TextModel", "GemmaConfig", "GemmaForCausalLM", "GemmaModel",
    ),
    "adapters": ("load_adapter", "save_adapter"),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", "GPT2Model"),
    "image_processing": (
        "AutoImageProcessor", "BatchFeature", "BeitImageProcessor", "CLIPImageProcessor",
        "DeiTImageProcessor", "ImageProcessor", "ViTImageProcessor",
    ),
    "mixtral": (
        "MixtralConfig", "MixtralForCausalLM", "MixtralModel", "Qwen3MoeConfig",
        "Qwen3MoeForCausalLM", "Qwen3MoeModel", "load_balancing_loss",
    ),
    "mt5": ("MT5Config", "MT5EncoderModel", "MT5ForConditionalGeneration", "MT5Model"),
    "output": (
        "EncoderOutput", "MoeCausalLMOutput", "MoeModelOutput", "PredictionOutput",
        "Seq2SeqLMOutput", "Seq2SeqModelOutput",
    ),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", "Phi3Model"),
    "processing": ("AutoProcessor", "CLIPProcessor", "TrOCRProcessor"),
    "roberta": (
        "RobertaConfig", "RobertaForMaskedLM", "RobertaForSequenceClassification", "RobertaModel",
        "XLMRobertaConfig", "XLMRobertaForMaskedLM", "XLMRobertaForSequenceClassification",
        "XLMRobertaModel",
    ),
    "sentence": ("SentenceEncoder",),
    "t5": ("T5Config", "T5EncoderModel", "T5ForConditionalGeneration", "T5Model"),
    "trocr": ("TrOCRConfig", "TrOCRForCausalLM"),
    "vision_encoder_decoder": ("VisionEncoderDecoderConfig", "VisionEncoderDecoderModel"),
    "vit": ("ViTConfig", "ViTForImageClassification", "ViTModel"),
    "whisper": ("WhisperConfig", "WhisperForConditionalGeneration", "WhisperModel"),
}  # fmt: skip
_FILES = {name: file for file, names in _LAZY.items() for name in names}

__all__ = [
    "AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoModelForImageClassification",
    "AutoModelForMaskedLM", "AutoModelForSeq2SeqLM", "AutoModelForSequenceClassification",
    "AutoModelForSpeechSeq2Seq", "AutoModelForTextEncoding", "AutoModelForVision2Seq",
    "AutoModelForZeroShotImageClassification",
    "BaseModelOutput", "CausalLM", "CausalLMOutput", "Checkpoint", "Config", "LlamaConfig",
    "LlamaForCausalLM", "LlamaModel", "MistralConfig", "MistralForCausalLM", "MistralModel",
    "ModelOutput", "PreTrainedModel", "Qwen2Config", "Qwen2ForCausalLM", "Qwen2Model",
    "Qwen3Config", "Qwen3ForCausalLM", "Qwen3Model", "AttentionMask", "attend", "attention_weights",
    "bundled", "causal_mask", "families", "register", *_FILES,
]  # fmt: skip


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f".{_FILES[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
