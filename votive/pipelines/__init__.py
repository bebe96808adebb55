"""Tasks by name: `votive.pipeline("text-classification", model=folder)` and what it makes.

Each task has a file, read when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .base import Pipeline
from .tasks import TASKS, pipeline, tasks

if TYPE_CHECKING:
    from .feature_extraction import FeatureExtractionPipeline as FeatureExtractionPipeline
    from .feature_extraction import ImageFeatureExtractionPipeline as ImageFeatureExtractionPipeline
    from .fill_mask import FillMaskPipeline as FillMaskPipeline
    from .image_classification import ImageClassificationPipeline as ImageClassificationPipeline
    from .image_classification import ImageSegmentationPipeline as ImageSegmentationPipeline
    from .image_classification import ImageToTextPipeline as ImageToTextPipeline
    from .image_classification import ZeroShotImageClassificationPipeline as ZeroShotImageClassificationPipeline
    from .question_answering import QuestionAnsweringPipeline as QuestionAnsweringPipeline
    from .speech_recognition import AudioClassificationPipeline as AudioClassificationPipeline
    from .speech_recognition import AutomaticSpeechRecognitionPipeline as AutomaticSpeechRecognitionPipeline
    from .text_classification import TextClassificationPipeline as TextClassificationPipeline
    from .text_generation import SummarizationPipeline as SummarizationPipeline
    from .text_generation import Text2TextGenerationPipeline as Text2TextGenerationPipeline
    from .text_generation import TextGenerationPipeline as TextGenerationPipeline
    from .text_generation import TranslationPipeline as TranslationPipeline
    from .token_classification import TokenClassificationPipeline as TokenClassificationPipeline
    from .zero_shot import ZeroShotClassificationPipeline as ZeroShotClassificationPipeline

_FILES = {name: file for file, name in TASKS.values()}

__all__ = ["Pipeline", "pipeline", "tasks", *_FILES]


def __getattr__(name: str) -> object:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_FILES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
