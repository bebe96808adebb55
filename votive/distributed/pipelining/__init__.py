"""Pipelines: a model in stages on several ranks, through which microbatches go in an order that is data."""

from __future__ import annotations

from .clipping import clip_grad_norm_
from .microbatch import Replicate, TensorChunkSpec, merge_chunks, split_args_kwargs_into_chunks
from .schedules import (
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
    get_schedule_class,
    order_of,
    table_of,
)
from .splitting import Pipe, SplitPoint, pipeline
from .stage import PipelineStage, build_stage

__all__ = [
    "Pipe", "PipelineStage", "Replicate", "Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "SplitPoint", "TensorChunkSpec",
    "build_stage", "clip_grad_norm_", "get_schedule_class", "merge_chunks", "order_of", "pipeline",
    "split_args_kwargs_into_chunks", "table_of",
]  # fmt: skip
