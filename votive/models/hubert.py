"""HuBERT, which learned speech by guessing kinds of hidden moments. Hsu et al. 2021, arXiv:2106.07447."""

from __future__ import annotations

from dataclasses import dataclass

from .wave import WaveConfig, wave_classes


@dataclass(kw_only=True)
class HubertConfig(WaveConfig):
    """The numbers of a HuBERT.

    >>> votive.models.HubertConfig().projected_norm
    True
    """

    model_type = "hubert"

    feat_proj_layer_norm: bool = True
    conv_pos_batch_norm: bool = False


HubertModel, HubertForCTC, HubertForSequenceClassification = wave_classes(
    "Hubert", HubertConfig, "hubert", heads=("ForCTC", "ForSequenceClassification"), gives_features=False
)
