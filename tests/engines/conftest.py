"""What tests of engines share."""

import pytest

from aniso.engines.cpu import base, evolution, volume_evolution


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles so small that small images and volumes have several along each axis, for several threads."""
    monkeypatch.setattr(base, "_ALONE", 0)
    for module, largest in ((evolution, 16), (volume_evolution, 5)):

        def spans(length, size, largest=largest):
            return base.spans(length, min(size, largest))

        monkeypatch.setattr(module, "spans", spans)
