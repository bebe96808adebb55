"""Writes data/golden.npz: what transformers gives for the models of golden.py.

Run it as `python -m tests.models.make_golden` when a row is added.
"""

from __future__ import annotations

import tempfile

import numpy as np
import torch
import transformers

from tests.vision.torchvision_models import prepare

from .golden import FILE, ROWS, inputs, model_of, scores


def main() -> None:
    prepare()
    found = {}
    for row, (name, _) in ROWS.items():
        with tempfile.TemporaryDirectory() as folder:
            model_of(row).save_pretrained(folder)
            reference, told = getattr(transformers, name).from_pretrained(
                folder, output_loading_info=True, attn_implementation="eager"
            )
        assert not told["missing_keys"], told
        assert not told["unexpected_keys"], told
        with torch.no_grad():
            found[row] = scores(reference.eval()(**inputs(row, torch.tensor))).numpy()
    FILE.parent.mkdir(exist_ok=True)
    np.savez_compressed(FILE, **found)
    print(f"{FILE}: {len(found)} models, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
