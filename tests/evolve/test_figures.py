"""The figure of a scale space."""

import sys

import numpy as np
import pytest

import aniso


@pytest.mark.parametrize(
    ("shape", "axis"), [((20, 30), None), ((20, 30, 3), -1), ((3, 20, 30), 0), ((20, 30, 1), 2)]
)
def test_every_panel_says_its_time(shape, axis):
    image = np.random.default_rng(0).integers(0, 255, shape, dtype=np.uint8)
    figure = aniso.scale_space_figure(image, aniso.Homogeneous(), [0, 0.5, 2], channel_axis=axis)
    assert [panel.get_xlabel() for panel in figure.axes] == ["t = 0", "t = 0.5", "t = 2"]
    assert all(panel.images[0].get_array().shape[:2] == (20, 30) for panel in figure.axes)


@pytest.mark.parametrize(("shape", "axis"), [((5, 20, 30), None), ((5, 20, 30, 3), -1)])
def test_of_a_volume_the_middle_slice_is_shown(shape, axis):
    volume = np.random.default_rng(0).integers(0, 255, shape, dtype=np.uint8)
    figure = aniso.scale_space_figure(volume, aniso.Homogeneous(), [0, 1], channel_axis=axis)
    shown = [panel.images[0].get_array() for panel in figure.axes]
    np.testing.assert_allclose(shown[0], volume[2] / (1 if axis is None else 255), atol=1e-6)
    assert shown[1].std() < shown[0].std()


def test_rows_are_filled_and_nothing_is_left_empty():
    figure = aniso.scale_space_figure(np.eye(8), aniso.Homogeneous(), range(7), columns=3)
    assert len(figure.axes) == 7
    assert len({panel.get_position().y0 for panel in figure.axes}) == 3


def test_all_panels_have_one_grey_range():
    figure = aniso.scale_space_figure(10 * np.eye(8), aniso.Homogeneous(), [1, 4])
    assert {panel.images[0].get_clim() for panel in figure.axes} == {(0.0, 10.0)}


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="a figure shows images"):
        aniso.scale_space_figure(np.zeros(9), aniso.Homogeneous(), [1])
    with pytest.raises(ValueError, match="a figure shows images"):
        aniso.scale_space_figure(np.zeros((9, 9, 2)), aniso.Homogeneous(), [1], channel_axis=-1)


def test_a_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"aniso\[plot\]"):
        aniso.scale_space_figure(np.eye(8), aniso.Homogeneous(), [1])
