"""Pipelines show how far they are, where that is wanted."""

from __future__ import annotations

from typing import Any

import pytest

from votive.models.diffusion import DDPMPipeline, DDPMScheduler, UNet2DModel


@pytest.fixture
def pipe() -> Any:
    unet = UNet2DModel(
        sample_size=4, block_out_channels=(8,), norm_num_groups=4, layers_per_block=1,
        down_block_types=("DownBlock2D",), up_block_types=("UpBlock2D",),
    )  # fmt: skip
    return DDPMPipeline(unet, DDPMScheduler())


def test_a_bar_goes_to_the_terminal_where_it_is_asked_for(pipe: Any, capsys: pytest.CaptureFixture[str]) -> None:
    call = {"num_inference_steps": 3, "output_type": "pt"}
    pipe(**call)
    assert capsys.readouterr().err == ""  # no terminal
    pipe.set_progress_bar_config(disable=False, desc="Painting")
    pipe(**call)
    shown = capsys.readouterr()
    assert "Painting" in shown.err
    assert "3/3" in shown.err
    assert shown.out == ""
    pipe.set_progress_bar_config(disable=True)
    pipe(**call)
    assert capsys.readouterr().err == ""
    with pytest.raises(TypeError, match="'ncols' is not known; there are disable, desc and leave"):
        pipe.set_progress_bar_config(ncols=80)
