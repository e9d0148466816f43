"""The widgets in a real viewer: on layers of all kinds, results equal those of the library to the bit."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask.array as da
import numpy as np
import pytest
import yaml
import zarr

import aniso
from aniso.explorer.choosing.choices import methods
from aniso.napari.target import Target
from aniso.verbs.table import VERBS
from tests.napari.conftest import threads, wait_for

# Warnings of napari are its own.
pytestmark = [
    pytest.mark.viewer,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.filterwarnings("error:::aniso"),
]

SIZE = 28
GREY = aniso.samples.shapes(SIZE, noise=20.0).image.astype("float32")
COLOUR = aniso.samples.lighthouse(SIZE, noise=20.0).image.clip(0, 255).astype("uint8")
VOLUME = aniso.samples.fibres((8, 14, 16), noise=20.0).image.astype("float32")
FRAMES = np.stack([GREY, np.roll(GREY, 5, 0), np.roll(GREY, 9, 1)])
#: Name → data, options of the layer, and options of the library.
LAYERS: dict[str, Any] = {
    "grey": (GREY, {"scale": (2, 2), "translate": (3, 4), "units": ("um", "um")}, {}),
    "colour": (COLOUR, {"rgb": True}, {"channel_axis": -1}),
    "volume": (VOLUME, {"scale": (3, 1, 1)}, {"spacing": (3.0, 1.0, 1.0)}),
    "frames": (FRAMES, {"axis_labels": ("t", "y", "x")}, {"frame_axis": 0}),
    "dask": (da.from_array(GREY, chunks=20), {}, {}),
    "multiscale": ([GREY, GREY[::2, ::2]], {"multiscale": True}, {}),
}


def opened(viewer, name, data, options):
    """A widget on a new layer, once it has its controls."""
    from aniso.napari import widgets

    viewer.add_image(data, name="scene", **options)
    widget = getattr(widgets, name.capitalize())(viewer)
    widget.preview_box.setChecked(False)
    viewer.window.add_dock_widget(widget)
    wait_for(lambda: widget.rows)
    return widget


def finished(viewer, widget, errors=list):
    """The new layer."""
    count = len(viewer.layers)
    widget.run()
    wait_for(lambda: widget.run_button.isEnabled())
    assert errors() == []
    assert len(viewer.layers) == count + 1
    return viewer.layers[-1]


def expected(name, data, options):
    """What the library returns for the same data."""
    if name == "inpaint":
        options = {**options, "mask": marked(data, options)}
    if name == "upsample":
        return aniso.upsample(data, 2, **options)
    if name != "diffuse":
        return VERBS[name].function(data, **options)
    model = aniso.EdgeEnhancing(contrast=10.0)
    each = {key: value for key, value in options.items() if key != "frame_axis"}
    images = data if "frame_axis" in options else [data]
    results = [aniso.diffuse(image, model, 2.0, scheme=aniso.FED(5), **each) for image in images]
    return np.stack(results) if "frame_axis" in options else results[0]


def marked(data, options):
    """A mask for each frame."""
    shape = data.shape[: data.ndim - ("channel_axis" in options)]
    mask = np.zeros(shape, bool)
    mask[..., 5:8, 6:9] = True
    return mask


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("name", methods())
def test_results_are_those_of_the_library(viewer, errors, name, kind):
    data, options, given = LAYERS[kind]
    first = data[0] if kind == "multiscale" else data
    widget = opened(viewer, name, data, {**options, "metadata": {"mine": 1}, "colormap": "viridis"}
                    if kind != "colour" else {**options, "metadata": {"mine": 1}})  # fmt: skip
    layer = viewer.layers["scene"]
    if kind == "dask" and name in ("inpaint", "denoise"):
        first = np.asarray(first)
    if name == "inpaint":
        where = {"scale": layer.scale, "translate": layer.translate}
        viewer.add_labels(marked(first, given).astype(int), name="holes", **where)
        widget.layers.setCurrentText("scene")
        widget.masks.setCurrentText("holes")
        wait_for(lambda: widget.scene is not None)
    if name == "diffuse":
        widget.rows["contrast"].set(10.0)
        widget.rows["time"].set(2.0)
    result = finished(viewer, widget, errors)
    if kind == "dask":
        assert isinstance(result.data, da.Array)  # nothing is computed before it is shown
    values = result.data[0] if kind == "multiscale" else result.data
    np.testing.assert_array_equal(np.asarray(values), np.asarray(expected(name, first, given)))
    finer = np.divide(layer.data[0].shape if kind == "multiscale" else layer.data.shape,
                      values.shape)[: layer.ndim]  # fmt: skip
    np.testing.assert_allclose(result.scale, layer.scale * finer)
    corner = [-0.5] * layer.ndim
    np.testing.assert_allclose(result.data_to_world(corner), layer.data_to_world(corner))
    assert (result.units, result.rgb, result.colormap.name) == (layer.units, layer.rgb, layer.colormap.name)
    assert list(result.contrast_limits) == list(layer.contrast_limits)
    assert result.metadata["mine"] == 1
    if name != "diffuse":
        plan = aniso.Plan.from_json(result.metadata["aniso"]["plan"])
        assert plan.verb == name
    if kind == "multiscale":
        assert result.multiscale
        assert [level.shape for level in result.data] == [
            tuple(round(n / h) for n, h in zip(level.shape, finer, strict=True)) for level in data
        ]


@pytest.mark.parametrize("kind", ["grey", "frames", "colour", "zarr"])
def test_copied_python_gives_the_same(viewer, errors, kind):
    from qtpy.QtWidgets import QApplication

    data, options, _ = LAYERS[kind] if kind != "zarr" else (zarr.array(GREY, chunks=20), {}, {})
    for name in ("denoise", "diffuse"):
        widget = opened(viewer, name, data, options)
        result = finished(viewer, widget, errors)
        text = widget.copy_python()
        assert QApplication.clipboard().text() == text == result.metadata["aniso"]["python"]
        words = {"viewer": viewer}
        exec(text, words)
        assert type(words["result"]) is type(result.data)
        np.testing.assert_array_equal(np.asarray(words["result"]), np.asarray(result.data))
        viewer.layers.clear()


def test_masks_of_shapes_and_labels(viewer, errors):
    widget = opened(viewer, "denoise", GREY, {})
    shapes = viewer.add_shapes([[[5, 5], [5, 15], [12, 15], [12, 5]]], name="region")
    widget.layers.setCurrentText("scene")
    widget.masks.setCurrentText("region")
    wait_for(lambda: widget.scene is not None)
    mask = shapes.to_labels(labels_shape=GREY.shape) > 0
    assert 50 < mask.sum() < 120
    np.testing.assert_array_equal(finished(viewer, widget, errors).data, aniso.denoise(GREY, mask=mask))


@pytest.mark.parametrize("kind", ["grey", "colour", "volume", "frames", "dask", "multiscale"])
@pytest.mark.parametrize("name", ["denoise", "diffuse"])
def test_previews_show_the_visible_slice_at_its_place(viewer, errors, name, kind):
    data, options, _ = LAYERS[kind]
    widget = opened(viewer, name, data, options)
    layer = viewer.layers["scene"]
    widget.preview_box.setChecked(True)
    wait_for(lambda: widget.preview_layer is not None)
    first = widget.preview_layer.data.copy()
    assert widget.preview_layer.ndim == layer.ndim
    shape = (data[0] if kind == "multiscale" else data).shape
    if kind in ("volume", "frames"):
        viewer.dims.set_current_step(0, 1)
        wait_for(lambda: widget.preview_layer.data_to_world([0] * 3)[0] == layer.data_to_world([1, 0, 0])[0])
        assert first.shape == (1, *shape[1:])
    np.testing.assert_allclose(
        widget.preview_layer.data_to_world([-0.5] * layer.ndim)[-2:],
        layer.data_to_world([-0.5] * layer.ndim)[-2:],
    )
    if name == "denoise" and kind == "grey":
        np.testing.assert_array_equal(first, aniso.denoise(GREY))  # fine enough to be the result
        widget.rows["noise"].set(60.0)
        wait_for(lambda: not np.array_equal(widget.preview_layer.data, first))
        np.testing.assert_array_equal(widget.preview_layer.data, aniso.denoise(GREY, noise=60.0))
    assert errors() == []
    widget.preview_box.setChecked(False)
    assert [each.name for each in viewer.layers] == ["scene"]


def test_cancel_and_close_leave_no_thread(display, errors):
    from aniso.napari import widgets

    viewer = display.Viewer(show=False)
    image = np.tile(aniso.samples.shapes(256, noise=20.0).image, (4, 4))
    viewer.add_image(image, name="scene")
    widget = getattr(widgets, "Enhance")(viewer)  # noqa: B009 (made from the table)
    widget.preview_box.setChecked(False)
    viewer.window.add_dock_widget(widget)
    wait_for(lambda: widget.rows)
    for end in (widget.cancel, viewer.close):
        widget.run()
        wait_for(lambda: widget._worker._running is not None)
        assert not widget.run_button.isEnabled()
        end()
        wait_for(lambda: widget._worker._running is None)
        if end == widget.cancel:
            assert widget.run_button.isEnabled()
            assert [layer.name for layer in viewer.layers] == ["scene"]
    wait_for(lambda: not threads())


def test_layers_that_cannot_be_filtered(viewer, errors):
    widget = opened(viewer, "denoise", GREY, {})
    viewer.add_points([[1, 2]], name="spots")
    widget.layers.setCurrentText("spots")
    widget.run()
    assert "'spots' is a layer of points, which has no grey values" in errors()[-1]
    viewer.add_image(GREY > 50, name="flags")  # napari itself rejects layers of complex numbers and objects
    widget.layers.setCurrentText("flags")
    wait_for(lambda: "real numeric dtype, got bool" in errors()[-1])
    widget.run()
    wait_for(lambda: len(errors()) == 3)
    assert "real numeric dtype, got bool" in errors()[-1]
    waves = SimpleNamespace(
        data=GREY.astype(complex), multiscale=False, ndim=2, name="waves", rgb=False, units=None
    )
    waves.scale = (1.0, 1.0)
    with pytest.raises(ValueError, match="real numeric dtype, got complex128"):
        Target(waves, 2).scene([0, 0], [0, 1], [[0, 0], [8, 8]])
    viewer.add_image(np.zeros((2, 2, 2, 8, 8)), name="many")
    widget.layers.setCurrentText("many")
    widget.run()
    assert "'many' has 5 axes" in errors()[-1]
    viewer.add_image(np.full((8, 8), np.nan), name="holes")
    widget.layers.setCurrentText("holes")
    wait_for(lambda: widget.scene is not None)
    widget.run()
    wait_for(lambda: widget.run_button.isEnabled())
    assert "all pixels are unknown" in errors()[-1]


def test_impossible_parameters(viewer, errors):
    widget = opened(viewer, "diffuse", GREY, {})
    widget.rows["contrast"].set(0.0)
    widget.run()
    wait_for(lambda: errors())
    assert "contrast must" in errors()[-1]
    labels = viewer.add_labels(np.zeros((5, 5), int), name="small")
    other = opened(viewer, "inpaint", GREY, {})
    other.masks.setCurrentText("small")
    other.run()
    assert "'small' has shape (5, 5)" in errors()[-1]
    labels.data = np.zeros(GREY.shape, int)
    for name, value in (("scale", (2, 2)), ("translate", (0, 3)), ("rotate", 10)):
        before = getattr(labels, name)
        setattr(labels, name, value)
        other.run()
        assert "another scale or place" in errors()[-1]
        setattr(labels, name, before)
    other.run()
    wait_for(lambda: other.run_button.isEnabled())
    assert "no pixel is unknown. Choose a mask" in errors()[-1]
    assert len(viewer.layers) == 3


def test_a_run_at_once_uses_what_was_chosen(viewer, errors):
    widget = opened(viewer, "denoise", GREY, {})
    widget.rows["noise"].set(60.0)
    viewer.add_image(GREY.T, name="other")
    assert (widget.layers.currentText(), widget.scene) == ("other", None)  # it is still being measured
    np.testing.assert_array_equal(finished(viewer, widget, errors).data, aniso.denoise(GREY.T, noise=60.0))
    viewer.add_image(GREY > 50, name="flags")
    widget.layers.setCurrentText("flags")
    widget.run()
    wait_for(lambda: widget.run_button.isEnabled())
    assert len(errors()) == 1


def test_each_model_has_its_own_parameters(viewer):
    widget = opened(viewer, "diffuse", GREY, {})
    widget.rows["sigma"].set(2.0)
    for model, sigma in (("coherence-enhancing", 0.5), ("edge-enhancing", 2.0)):
        before = widget.rows
        widget.models.setCurrentText(model)
        wait_for(lambda before=before: widget.rows is not before)
        assert widget.rows["sigma"].value() == sigma


def test_estimates_are_shown_when_they_are_known(viewer, errors):
    widget = opened(viewer, "denoise", GREY, {})
    assert widget.rows["noise"]._number.text() == ""
    widget.preview_box.setChecked(True)
    wait_for(lambda: widget.rows["noise"]._number.text() != "")
    _, plan = aniso.denoise(GREY, return_info=True)
    assert widget.rows["noise"]._number.value() == pytest.approx(plan.noise, abs=1e-2)
    assert widget.rows["noise"].value() == "auto"


def test_layers_are_renamed_and_removed(viewer, errors):
    widget = opened(viewer, "denoise", GREY, {})
    viewer.layers["scene"].name = "picture"
    assert widget.layers.currentText() == "picture"
    finished(viewer, widget, errors)
    widget.preview_box.setChecked(True)
    wait_for(lambda: widget.preview_layer is not None)
    viewer.window.remove_dock_widget("all")
    assert [layer.name for layer in viewer.layers] == ["picture", "picture denoised"]
    viewer.layers.clear()
    widget = opened(viewer, "denoise", GREY, {})
    widget.run()
    viewer.layers.remove("scene")
    wait_for(lambda: widget.run_button.isEnabled())
    assert [layer.name for layer in viewer.layers] == ["scene denoised"]


def test_nan_are_unknown_where_the_library_takes_them(viewer, errors):
    missing = GREY.copy()
    missing[3:5, 4:7] = np.nan
    widget = opened(viewer, "denoise", missing, {})
    np.testing.assert_array_equal(finished(viewer, widget, errors).data, aniso.denoise(missing))


def test_previews_follow_a_mask_that_is_painted(viewer, errors):
    widget = opened(viewer, "inpaint", GREY, {})
    widget.preview_box.setChecked(True)
    wait_for(lambda: "No pixel is unknown" in widget.report.text())
    labels = viewer.add_labels(np.zeros(GREY.shape, int), name="holes")
    widget.layers.setCurrentText("scene")
    widget.masks.setCurrentText("holes")
    wait_for(lambda: widget.report.text() == "")
    before = widget.preview_layer.data
    labels.paint((10, 10), 1)
    wait_for(lambda: not np.array_equal(widget.preview_layer.data, before))


@pytest.mark.parametrize("ndim", [2, 3])
def test_previews_read_a_part_of_what_is_not_in_memory(viewer, errors, ndim):
    read = []

    def block(block_info=None):
        places = block_info[None]["array-location"]
        read.append(places)
        return np.random.default_rng(0).normal(100, 9, [stop - start for start, stop in places]).astype("f4")

    shape = (40, 6144, 6144)[-ndim:]
    data = da.map_blocks(block, chunks=[(8 if k < ndim - 2 else 1024,) * (n // (8 if k < ndim - 2 else 1024))
                                        for k, n in enumerate(shape)], dtype="f4")  # fmt: skip
    widget = opened(viewer, "denoise", data, {"contrast_limits": (0, 255)})
    read.clear()
    widget.preview_box.setChecked(True)
    wait_for(lambda: widget.preview_layer is not None)
    first = len(read)
    assert first <= 9 * (4 if ndim == 3 else 2)
    widget.rows["noise"].set(30.0)
    before = widget.preview_layer.data
    wait_for(lambda: widget.preview_layer.data is not before)
    assert len(read) == first  # it is not read again
    labels = viewer.layers["scene"]
    place = widget.preview_layer.data_to_world([0] * ndim)
    assert 0 < place[-1] < labels.data_to_world(shape)[-1] / 2


def test_dask_layers_are_written_to_zarr(viewer, errors, tmp_path):
    data, options, _ = LAYERS["dask"]
    widget = opened(viewer, "denoise", data, options)
    widget.write_zarr(str(tmp_path / "out.zarr"))
    wait_for(lambda: widget.run_button.isEnabled())
    assert errors() == []
    result = viewer.layers[-1].data
    assert isinstance(result, da.Array)
    np.testing.assert_array_equal(np.asarray(da.from_zarr(tmp_path / "out.zarr")), aniso.denoise(GREY))
    widget.write_zarr(str(tmp_path / "out.zarr"))
    wait_for(lambda: errors())
    assert "exists" in errors()[-1]


@pytest.mark.parametrize("kind", ["grey", "colour", "volume", "frames"])
def test_structure(viewer, errors, kind):
    from aniso.napari.widgets import Structure

    data, options, given = LAYERS[kind]
    viewer.add_image(data, name="scene", **options)
    widget = Structure(viewer)
    widget.wanted["vectors"].setChecked(True)
    viewer.window.add_dock_widget(widget)
    widget.run()
    wait_for(lambda: widget.run_button.isEnabled())
    assert errors() == []
    each = {key: value for key, value in given.items() if key != "frame_axis"}
    found = aniso.coherence(data[0] if kind == "frames" else data, **each)
    result = viewer.layers["scene coherence"].data
    np.testing.assert_array_equal(result[0] if kind == "frames" else result, found)
    lines = viewer.layers["scene directions"].data
    assert lines.shape[1:] == (2, viewer.layers["scene"].ndim)
    if kind == "grey":
        angle = aniso.orientation(data)
        middle = np.rint(lines[:, 0] + lines[:, 1] / 2).astype(int)
        np.testing.assert_allclose(
            np.arctan(lines[:, 1, 0] / lines[:, 1, 1]), angle[tuple(middle.T)], atol=1e-5
        )


def test_the_manifest_has_all_verbs(display):
    from npe2 import PluginManager, PluginManifest

    import aniso.napari
    from aniso.napari import widgets

    path = Path(aniso.napari.__file__).with_name("napari.yaml")
    manifest = PluginManifest.from_file(path)
    names = [*methods(), "structure"]
    commands = [f"aniso.{name}" for name in names]
    assert [each.command for each in manifest.contributions.widgets] == commands
    menu = yaml.safe_load(path.read_text())["contributions"]["menus"]["napari/layers/filter"]
    assert [each["command"] for each in menu] == commands
    for name in names:
        assert PluginManager.instance().commands.get(f"aniso.{name}") is getattr(widgets, name.capitalize())


def test_an_installed_wheel_is_discovered(tmp_path):
    root = Path(__file__).parents[2]
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    subprocess.run(build, cwd=root, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    target = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(target)
    program = """
import json, os, sys
from npe2 import PluginManager, PluginManifest
target = os.path.realpath(sys.argv[1])
places = [
    os.path.realpath(found.distribution.locate_file(""))
    for found in PluginManifest.discover()
    if found.manifest is not None and found.manifest.name == "aniso"
]
manager = PluginManager.instance()
manager.discover()
command = manager.commands.get("aniso.denoise")
print(json.dumps([target in places, sys.modules["aniso"].__file__, command.__name__]))
"""
    environment = {**os.environ, "PYTHONPATH": str(target), "QT_QPA_PLATFORM": "offscreen"}
    words = [sys.executable, "-c", program, str(target)]
    answer = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    found, module, command = json.loads(answer.stdout)
    assert found
    assert Path(module).is_relative_to(target)
    assert command == "Denoise"


def test_samples_open(viewer):
    for key in ("lighthouse", "fingerprint", "fibres"):
        viewer.open_sample("aniso", key)
    assert viewer.layers["fibres"].ndim == 3
    assert viewer.layers["lighthouse"].rgb


def test_the_menu_opens_a_widget(viewer):
    _, widget = viewer.window.add_plugin_dock_widget("aniso", "Denoise")
    assert type(widget).__name__ == "Denoise"


def test_the_library_knows_nothing_of_qt():
    program = """
import json, sys, time
import aniso, aniso.io, aniso.verbs.table, aniso.explorer.choosing.controls
first = sorted(name for name in sys.modules if name.split(".")[0] in ("napari", "qtpy", "PyQt6", "vispy"))
print(json.dumps(first))
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout) == []


def test_a_widget_that_was_opened_before_the_image(viewer, errors):
    from aniso.napari.widgets import Denoise  # type: ignore[attr-defined]

    widget = Denoise(viewer)
    viewer.window.add_dock_widget(widget)
    assert not widget.form.isRowVisible(widget.kind)
    widget.run()
    assert "there is no layer. Open an image first" in errors()[-1]
    viewer.add_image(GREY, name="scene")
    viewer.layers.selection.clear()
    wait_for(lambda: widget.rows)
    assert widget.layers.currentText() == "scene"
