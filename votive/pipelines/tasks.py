"""`pipeline`: from the name of a task to a model with what prepares its inputs and reads its outputs."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import votive

from ..core.similar import similar
from ..models import auto, auto_table
from ..models.checkpoint import Checkpoint
from ..models.config import StrPath
from .base import Pipeline

# Tasks by transformers' names: file and class.
TASKS: dict[str, tuple[str, str]] = {
    "audio-classification": ("speech_recognition", "AudioClassificationPipeline"),
    "automatic-speech-recognition": ("speech_recognition", "AutomaticSpeechRecognitionPipeline"),
    "feature-extraction": ("feature_extraction", "FeatureExtractionPipeline"),
    "fill-mask": ("fill_mask", "FillMaskPipeline"),
    "image-classification": ("image_classification", "ImageClassificationPipeline"),
    "image-feature-extraction": ("feature_extraction", "ImageFeatureExtractionPipeline"),
    "image-segmentation": ("image_classification", "ImageSegmentationPipeline"),
    "image-to-text": ("image_classification", "ImageToTextPipeline"),
    "object-detection": ("image_classification", "ObjectDetectionPipeline"),
    "question-answering": ("question_answering", "QuestionAnsweringPipeline"),
    "summarization": ("text_generation", "SummarizationPipeline"),
    "text-classification": ("text_classification", "TextClassificationPipeline"),
    "text-generation": ("text_generation", "TextGenerationPipeline"),
    "text2text-generation": ("text_generation", "Text2TextGenerationPipeline"),
    "token-classification": ("token_classification", "TokenClassificationPipeline"),
    "translation": ("text_generation", "TranslationPipeline"),
    "zero-shot-classification": ("zero_shot", "ZeroShotClassificationPipeline"),
    "zero-shot-image-classification": ("image_classification", "ZeroShotImageClassificationPipeline"),
}
ALIASES = {"sentiment-analysis": "text-classification", "ner": "token-classification"}
# diffusers' task, which has pipelines of its own.
PICTURES = "text-to-image"
# The task that a model was made for, by the end of its class.
_MADE_FOR = {
    "ForSequenceClassification": "text-classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
    "ForMaskedLM": "fill-mask",
    "ForCTC": "automatic-speech-recognition",
    "ForCausalLM": "text-generation",
    "LMHeadModel": "text-generation",
    "ForImageClassification": "image-classification",
    "ForObjectDetection": "object-detection",
    "ForSemanticSegmentation": "image-segmentation",
    "VisionEncoderDecoderModel": "image-to-text",
    "WhisperForConditionalGeneration": "automatic-speech-recognition",
    "ForConditionalGeneration": "text2text-generation",
    "MTModel": "translation",
}
_PLACES = ("revision", "local_files_only", "token", "cache_dir")


def pipeline(
    task: str | None = None,
    model: Any = None,
    config: Any = None,
    tokenizer: Any = None,
    feature_extractor: Any = None,
    image_processor: Any = None,
    processor: Any = None,
    *,
    revision: str | None = None,
    token: Any = None,
    device: int | str | votive.device | None = None,
    device_map: Any = None,
    dtype: votive.dtype | str | None = "auto",
    torch_dtype: Any = None,
    trust_remote_code: bool | None = None,
    model_kwargs: dict[str, Any] | None = None,
    pipeline_class: type[Pipeline] | None = None,
    **options: Any,
) -> Any:
    """A function that does a task: `pipeline("text-classification", model=folder)("a text")`.

    `model` is a folder, a repository or a model; tokenizer and processors are objects, places, or those that lie with
    the model. Tasks have transformers' names, and results its form; without a task, the model's files tell it.
    `options` hold for every call. "text-to-image" gives a pipeline of `votive.models.diffusion`.

    >>> generate = votive.pipeline("text-generation", model="tales")
    >>> found = generate("Once upon a time", max_new_tokens=8, do_sample=False)
    >>> found[0]["generated_text"][:16]
    'Once upon a time'
    """
    if model is None:
        raise ValueError("pipeline: give a model, a folder or a repository; none is chosen for you.")
    places = {k: v for k, v in {"revision": revision, "token": token}.items() if v is not None}
    places |= {k: options.pop(k) for k in _PLACES if k in options}
    asked = _task_of(model) if task is None else task
    if asked == PICTURES:
        return _pictures(model, dtype, torch_dtype, device, {**places, **(model_kwargs or {}), **options})
    kind = _class_of(asked) if pipeline_class is None else pipeline_class
    name = model if isinstance(model, str | Path) else getattr(model, "name_or_path", "") or None
    if isinstance(model, str | Path):
        kept = {"config": config, "device": None if device_map is not None else _first(device), **places}
        kept |= {} if device_map is None else {"device_map": device_map}
        kept |= {} if trust_remote_code is None else {"trust_remote_code": trust_remote_code}
        wanted = torch_dtype if torch_dtype is not None else dtype
        kept |= {"dtype": None if wanted == "auto" else wanted}
        loader = _loader(kind, model, places)
        model = loader.from_pretrained(model, **{**kept, **(model_kwargs or {})})
    elif config is not None or model_kwargs:
        raise ValueError("pipeline: config and model_kwargs are for a model that is loaded here; give its name.")
    elif torch_dtype is not None or dtype not in (None, "auto"):
        model.to(dtype=votive.io.source.as_dtype(torch_dtype if torch_dtype is not None else dtype))
    if processor is not None:
        tokenizer = getattr(processor, "tokenizer", None) if tokenizer is None else tokenizer
        image_processor = getattr(processor, "image_processor", None) if image_processor is None else image_processor
        extractor = getattr(processor, "feature_extractor", None)
        feature_extractor = extractor if feature_extractor is None else feature_extractor
    kind = kind.fitting(model)
    given = {"tokenizer": tokenizer, "feature_extractor": feature_extractor, "image_processor": image_processor}
    parts = {part: _part(part, given[part], name, model, kind, places) for part in given}
    made = kind(model, **parts, device=None if device_map is not None else device, **options)
    if hasattr(made, "asked_task"):
        made.asked_task = asked
    return made


def _first(device: Any) -> Any:
    if isinstance(device, int):
        return "cpu" if device < 0 else f"cuda:{device}"
    return device


def _class_of(task: str) -> type[Pipeline]:
    found = ALIASES.get(task, task)
    if re.fullmatch(r"translation_\w+_to_\w+", found):
        found = "translation"
    if found not in TASKS:
        known = sorted([*TASKS, *ALIASES, PICTURES])
        near = similar(task, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
        raise ValueError(f"pipeline: the task {task!r} is not here; {hint}")
    file, name = TASKS[found]
    kind: type[Pipeline] = getattr(import_module(f".{file}", __package__), name)
    return kind


def _task_of(model: Any) -> str:
    """The task that a model was made for."""
    if isinstance(model, str | Path):
        folder = Path(model).expanduser()
        if (folder / "model_index.json").is_file():
            return PICTURES
        values = Checkpoint.find(model).config
        named, family = (values.get("architectures") or [""])[0], values.get("model_type")
    else:
        named, family = type(model).__name__, getattr(getattr(model, "config", None), "model_type", None)
    if named.endswith("ForSequenceClassification") and "audio" in _uses(family):
        return "audio-classification"
    for ending, task in _MADE_FOR.items():
        if named.endswith(ending):
            return task
    raise ValueError(
        f"pipeline: {named or 'the folder'} does not tell what it is for; name the task, one of {', '.join(TASKS)}."
    )


def _loader(kind: type[Pipeline], model: StrPath, places: dict[str, Any]) -> Any:
    """The class that chooses the model for a task."""
    there = _uses(Checkpoint.find(model, **places).config.get("model_type"))
    uses = [use for use in kind.uses if use in there] or list(kind.uses)
    return getattr(votive.models, auto_table.USES[uses[0]])


def _uses(family: str | None) -> list[str]:
    """What a family has models for."""
    return list(auto._family(family)[1]) if family in auto.families() else []


def _part(part: str, given: Any, name: StrPath | None, model: Any, kind: type[Pipeline], places: dict[str, Any]) -> Any:
    """A tokenizer or processor: as given, or from where it was named, or from beside the model."""
    if given is not None and not isinstance(given, str | Path):
        return given
    if given is None and part not in kind.needs:
        return None
    where = given if given is not None else name
    if where is None:
        raise ValueError(f"pipeline: {kind.__name__} needs a {part}; pass {part}= with the model.")
    if not Path(where).expanduser().exists():
        where = Checkpoint.folder_of(where, **places)
    return kind.read_part(part, Path(where), model)


def _pictures(model: Any, dtype: Any, torch_dtype: Any, device: Any, options: dict[str, Any]) -> Any:
    from ..models.diffusion import AutoPipelineForText2Image

    wanted = torch_dtype if torch_dtype is not None else dtype
    if not isinstance(model, str | Path):
        return AutoPipelineForText2Image.from_pipe(model, **options)
    return AutoPipelineForText2Image.from_pretrained(
        model, dtype=None if wanted == "auto" else wanted, device=_first(device), **options
    )


def tasks() -> list[str]:
    """The tasks that `pipeline` knows.

    >>> "fill-mask" in votive.pipelines.tasks()
    True
    """
    return sorted([*TASKS, *ALIASES, PICTURES])
