"""What an encoder reads, and where the decoder that looks at it begins."""

from __future__ import annotations

from typing import Any

import votive
from votive import nn

from ..tensor import Tensor
from .config import GenerationConfig
from .processing import Read
from .prompts import Ids, as_tensors, mask_of
from .stepping import Seq2SeqStepper, Wanted


class Source:
    """What an encoder reads, and where its decoder begins."""

    def __init__(
        self,
        model: Any,
        input_ids: Ids | None,
        mask: Ids | None,
        encoded: Any,
        config: GenerationConfig,
        wanted: Wanted | None,
    ) -> None:
        self.model, self.config = model, config
        self.ids: Tensor | None = None
        if encoded is None:
            if input_ids is None:
                raise ValueError("generate: give input_ids for the encoder, or encoder_outputs.")
            ids, mask = as_tensors(input_ids, mask, config)
            if mask is None and config.pad_token_id is not None:
                mask = ids.ne(config.pad_token_id).long()
            self.ids = ids
            asked = wanted or Wanted()
            with votive.no_grad():
                encoded = model.get_encoder()(
                    ids,
                    attention_mask=mask,
                    output_attentions=asked.attentions,
                    output_hidden_states=asked.hidden_states,
                )
        self.encoded = encoded
        self.mask = mask_of(mask)

    def read(self, copies: int) -> Read | None:
        """The ids that were read and their mask, for each row that is searched; None where they are not known."""
        if self.ids is None:
            return None
        ids = self.ids if copies == 1 else self.ids.repeat_interleave(copies, 0)
        mask = self.mask if copies == 1 or self.mask is None else self.mask.repeat_interleave(copies, 0)
        return Read(ids, mask)

    def start(self, given: Tensor | None, device: votive.device | None) -> Tensor:
        """The ids the decoder begins with."""
        rows = self.encoded[0].shape[0]
        if given is not None:
            return given
        first = self.config.decoder_start_token_id
        first = self.config.bos_token_id if first is None else first
        if first is None:
            raise ValueError("generate: the decoder needs a token to begin with; set decoder_start_token_id.")
        return votive.full((rows, 1), first, dtype=votive.int64, device=device)

    def stepper(self, copies: int, cache: nn.KVCache | None, wanted: Wanted | None) -> Seq2SeqStepper:
        """A stepper over as many rows as are searched."""
        encoded, mask = self.encoded, self.mask
        if copies > 1:
            encoded = type(encoded)(last_hidden_state=encoded.last_hidden_state.repeat_interleave(copies, 0))
            mask = None if mask is None else mask.repeat_interleave(copies, 0)
        return Seq2SeqStepper(self.model, encoder_outputs=encoded, encoder_mask=mask, cache=cache, wanted=wanted)
