"""The studio's models compute on the device that `votive studio --device` names."""

from __future__ import annotations

from pathlib import Path

import pytest

from votive import studio
from votive.core.errors import DeviceError
from votive.studio.models import ModelLibrary


def test_models_are_moved_once_they_are_loaded(tmp_path: Path) -> None:
    library = ModelLibrary(tmp_path)
    library.device = "webgpu"
    loading = library.request()
    loading._finished.wait(120)
    assert loading.error is None
    assert loading.loaded is not None
    assert loading.loaded.model.device.type == "webgpu"


@pytest.mark.anywhere
def test_a_device_that_is_not_there_is_told_before_the_page_opens() -> None:
    with pytest.raises(DeviceError, match="there is no device 'nowhere'"):
        studio.serve(device="nowhere", open_browser=False)
