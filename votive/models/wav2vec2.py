"""wav2vec 2.0, which learned speech from recordings alone. Baevski et al. 2020, arXiv:2006.11477."""

from __future__ import annotations

from dataclasses import dataclass

from .wave import WaveConfig, wave_classes


@dataclass(kw_only=True)
class Wav2Vec2Config(WaveConfig):
    """The numbers of a wav2vec 2.0; of MMS with nets for each language where `adapter_attn_dim` is given.

    >>> votive.models.Wav2Vec2Config(hidden_size=96).output_hidden_size
    96
    """

    model_type = "wav2vec2"

    add_adapter: bool = False
    adapter_kernel_size: int = 3
    adapter_stride: int = 2
    num_adapter_layers: int = 3
    output_hidden_size: int | None = None
    adapter_attn_dim: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.output_hidden_size = self.output_hidden_size or self.hidden_size


Wav2Vec2Model, Wav2Vec2ForCTC, Wav2Vec2ForSequenceClassification, Wav2Vec2ForAudioFrameClassification = wave_classes(
    "Wav2Vec2", Wav2Vec2Config, "wav2vec2"
)
