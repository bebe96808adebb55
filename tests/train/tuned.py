"""A tiny chat model and data that it is fine-tuned on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import votive
from tests import tiny_sizes

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MARKED = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
    "<|im_end|>{% endgeneration %}{{ '\n' }}{% else %}{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
)
WORDS = "the cat sat on the mat and the dog ran to the king user assistant yes no good bad one two three\n" * 20


def tokenizer(template: str | None = CHAT) -> Any:
    return votive.text.train_bpe(
        [WORDS], 300, special_tokens=SPECIAL, eos_token=SPECIAL[0], progress=False, chat_template=template
    )


def decoder(tok: Any, **more: Any) -> Any:
    """A tiny Qwen3; its start values are large, so that what it reads matters."""
    votive.manual_seed(0)
    sizes = {
        **tiny_sizes.transformer(32, 48, layers=2, heads=4, vocab=len(tok), kv_heads=2),
        "head_dim": 8,
        "tie_word_embeddings": True,
        "eos_token_id": tok.eos_token_id,
        "pad_token_id": tok.eos_token_id,
        "max_position_embeddings": 256,
        "initializer_range": 0.2,
    }
    config = votive.models.Qwen3Config(**{**sizes, **more})
    return votive.models.Qwen3ForCausalLM(config)


def folder(path: Path, model: Any, tok: Any) -> Path:
    model.save_pretrained(path)
    tok.save_pretrained(path)
    return path


def conversation(i: int) -> dict[str, Any]:
    words = ["cat", "dog", "king"][i % 3]
    return {
        "messages": [
            {"role": "user", "content": f"the {words}" + " and the mat" * (i % 4)},
            {"role": "assistant", "content": "yes" if i % 2 else "no"},
            {"role": "user", "content": "one two"},
            {"role": "assistant", "content": f"three {words}"},
        ]
    }


def lines(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
