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
from .auto_table import class_files
from .checkpoint import Checkpoint, bundled
from .config import Config
from .llama import LlamaConfig, LlamaForCausalLM, LlamaModel, MistralConfig, MistralForCausalLM, MistralModel
from .output import BaseModelOutput, CausalLMOutput, ModelOutput
from .pretrained import CausalLM, PreTrainedModel
from .qwen import Qwen2Config, Qwen2ForCausalLM, Qwen2Model, Qwen3Config, Qwen3ForCausalLM, Qwen3Model

# What stands in no row of the table of families; both are read when one of them is asked for.
_LAZY = {
    "adapter_files": ("load_adapter", "save_adapter"),
    "adapter_layers": ("disabled_adapters",),
    "adapter_mixing": ("add_weighted_adapter",),
    "adapters": (
        "add_adapter", "delete_adapter", "merge_adapter", "merge_and_unload", "set_adapter", "unload",
        "unmerge_adapter",
    ),
    "auto_seeing": (
        "AutoBackbone", "AutoModelForAudioClassification", "AutoModelForAudioFrameClassification", "AutoModelForCTC",
        "AutoModelForDepthEstimation",
        "AutoModelForImageSegmentation", "AutoModelForImageTextToText", "AutoModelForMaskGeneration",
        "AutoModelForMaskedImageModeling", "AutoModelForObjectDetection", "AutoModelForSemanticSegmentation",
        "AutoModelForVisualQuestionAnswering",
    ),
    "backbone": ("BackboneOutput",),
    "blip": ("BlipForConditionalGenerationModelOutput", "BlipTextVisionModelOutput"),
    "blip_text": ("BlipTextConfig",),
    "clip": ("CLIPOutput", "CLIPTextModelWithProjection", "CLIPVisionModelWithProjection"),
    "auto_text": (
        "AutoModelForMultipleChoice", "AutoModelForNextSentencePrediction", "AutoModelForPreTraining",
        "AutoModelForQuestionAnswering", "AutoModelForTokenClassification",
    ),
    "cross_cache": ("EncoderDecoderCache",),
    "detr_processor": ("DetrImageProcessor",),
    "image_processing": (
        "AutoImageProcessor", "BatchFeature", "BeitImageProcessor", "CLIPImageProcessor",
        "DeiTImageProcessor", "ImageProcessor", "ViTImageProcessor",
    ),
    "image_processors": ("BlipImageProcessor", "ConvNextImageProcessor", "SegformerImageProcessor"),
    "mixtral": ("load_balancing_loss",),
    "multimodal": ("PictureTextOutput",),
    "output": (
        "EncoderOutput", "MoeCausalLMOutput", "MoeModelOutput", "PredictionOutput", "QuestionAnsweringOutput",
        "Seq2SeqLMOutput", "Seq2SeqModelOutput", "Seq2SeqQuestionAnsweringModelOutput",
        "Seq2SeqSequenceClassifierOutput",
    ),
    "peft_config": (
        "IA3Config", "LoHaConfig", "LoKrConfig", "LoraConfig", "PeftConfig", "PrefixTuningConfig",
        "PromptEncoderConfig", "PromptTuningConfig",
    ),
    "processing": ("AutoProcessor", "BlipProcessor", "CLIPProcessor", "TrOCRProcessor"),
    "sam": ("SamImageSegmentationOutput", "SamMaskDecoderConfig"),
    "sam_processor": ("SamImageProcessor", "SamProcessor"),
    "sam_prompts": ("SamPromptEncoderConfig",),
    "sentence": ("SentenceEncoder",),
    "swin": ("SwinImageClassifierOutput", "SwinMaskedImageModelingOutput", "SwinModelOutput"),
}  # fmt: skip
_FILES = {**class_files(), **{name: file for file, names in _LAZY.items() for name in names}}

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
