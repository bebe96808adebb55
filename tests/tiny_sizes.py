"""The sizes of tiny models, by the names that configurations have for them."""

from __future__ import annotations

from typing import Any


def transformer(
    hidden: int, inner: int, *, layers: int, heads: int, kv_heads: int | None = None, vocab: int | None = None
) -> dict[str, Any]:
    """Sizes of a decoder or encoder, of text or pictures: width, width inside an MLP, depth, heads, known tokens."""
    optional = {"num_key_value_heads": kv_heads, "vocab_size": vocab}
    return {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        **{name: size for name, size in optional.items() if size is not None},
    }


def trocr(width: int, inner: int, *, layers: int, heads: int) -> dict[str, Any]:
    """Sizes of the decoder that reads what a picture says."""
    return {"d_model": width, "decoder_ffn_dim": inner, "decoder_layers": layers, "decoder_attention_heads": heads}


def whisper(width: int, *, layers: tuple[int, int], heads: int) -> dict[str, Any]:
    """Sizes of a model that hears: layers of the encoder, then of the decoder."""
    return {
        "d_model": width,
        "encoder_layers": layers[0],
        "decoder_layers": layers[1],
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
    }
