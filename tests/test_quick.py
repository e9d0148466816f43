"""One path through every verb, file kind, command and engine: `pytest -m quick` runs this and a few laws.

All lists come from the registries of the tests and the package, so what is new there is tried here.
"""

import importlib
import inspect
import json
import urllib.request

import dask
import dask.array as da
import numpy as np
import pytest

import aniso
from aniso import engines, io
from aniso.cli import commands
from aniso.cli.jobs import demonstration
from aniso.io.formats import FORMATS
from aniso.io.picture import FileError, Picture
from benchmarks.explorer_process import explorer
from tests.cli.command_calls import called, noisy
from tests.registry import (
    ENGINES,
    INTERPRETED_ENGINE,
    MODELS,
    RINGS,
    SAMPLES,
    SCHEMES,
    UNKNOWN,
    VERBS,
    VOLUME_ENGINES,
    VOLUME_MODELS,
    VOLUME_SAMPLES,
)

pytestmark = pytest.mark.quick

every_engine = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)


def public_classes(module):
    """Names of the classes of this module that `aniso` itself offers."""
    home = importlib.import_module(f"aniso.{module}")
    return {name for name in home.__all__ if inspect.isclass(getattr(home, name)) and name in aniso.__all__}


class TestTheRegistriesAreComplete:
    """What the package offers is registered, so that it is tried."""

    def test_engines(self):
        assert {engine.name for engine in (*ENGINES, INTERPRETED_ENGINE)} == set(engines.ENGINES)

    def test_verbs(self):
        computing = {
            name
            for name in aniso.__all__
            if name != "nn"  # which imports PyTorch
            and inspect.isfunction(getattr(aniso, name))
            and "engine" in inspect.signature(getattr(aniso, name)).parameters
        }
        assert computing == {*VERBS, "diffuse", "scale_space", "filter_store"}

    def test_models_and_schemes(self):
        assert {type(make((4, 4))).__name__ for make in MODELS.values()} == public_classes("models")
        assert {type(scheme).__name__ for scheme in SCHEMES} == public_classes("schemes")


@every_engine
@pytest.mark.parametrize("verb", VERBS)
def test_verbs(verb, engine):
    result = VERBS[verb](RINGS.image, engine=engine.name)
    expected = VERBS[verb](RINGS.image)
    assert abs(result - expected).max() < 1e-6 * abs(expected).max()
    assert np.isfinite(result).all()


@every_engine
@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_schemes_in_one_piece_and_in_blocks(scheme, engine):
    image, model = SAMPLES["edges"]((16, 13)), MODELS["edge, weickert"]((16, 13))
    expected = aniso.diffuse(image, model, 2.0, scheme=scheme, engine="reference")
    engine.assert_equal(engine.diffuse(image, model, 2.0, scheme=scheme), expected)
    *_, (_, last) = engine.scale_space(image, model, [1.0, 2.0], scheme=scheme)
    assert last.shape == image.shape
    with dask.config.set(scheduler="synchronous"):
        blocks = engine.diffuse(da.from_array(image, chunks=(9, 8)), model, 2.0, scheme=scheme)
        assert abs(blocks.compute() - expected).max() < 1e-9 * abs(expected).max()


@pytest.mark.parametrize("engine", VOLUME_ENGINES, ids=lambda engine: engine.name)
def test_volumes(engine):
    """One model: to compile the others takes long."""
    shape = (7, 6, 5)
    volume, model = VOLUME_SAMPLES["edges"](shape), VOLUME_MODELS["coherence"](shape)
    expected = aniso.diffuse(volume, model, 0.4, engine="reference")
    engine.assert_equal(engine.diffuse(volume, model, 0.4), expected)
    assert abs(expected - volume).max() > 0.1  # something happened


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_in_blocks(verb):
    with dask.config.set(scheduler="synchronous"):
        result = np.asarray(VERBS[verb](da.from_array(RINGS.image, chunks=30)))
    whole = VERBS[verb](RINGS.image)
    assert result.shape == whole.shape
    np.testing.assert_array_equal(result, whole)


def _kinds():
    return [
        pytest.param(format, suffix, id=suffix)
        for format in FORMATS.values()
        for suffix in format.suffixes
        if suffix not in format.written_as
    ]


@pytest.mark.parametrize(("format", "suffix"), _kinds())
def test_kinds_of_files(tmp_path, format, suffix):
    """The first type of pixels that it can hold, there and back."""
    picture = next(picture for picture in _pictures() if _fits(format, picture))
    path = tmp_path / f"image{suffix}"
    io.write(path, picture)
    with path.open("rb") as file:
        assert format.recognises(file.read(400), suffix)
    found = io.read(path)
    assert found.dtype.kind == picture.dtype.kind
    slack = 8 if format.lossy else 0
    assert abs(found.pixels.astype(float) - picture.pixels.astype(float)).max() <= slack


def _pictures():
    return (Picture(noisy((24, 26), dtype)) for dtype in ("uint8", "uint16", "float32"))


def _fits(format, picture):
    try:
        format.check(picture)
    except FileError:
        return False
    return True


#: Command → the words after it; `explore` serves until it is stopped and has a test of its own.
CALLS = {
    "denoise": ("image.npy",),
    "enhance": ("image.npy",),
    "inpaint": ("image.npy", "--mask", "mask.png"),
    "upsample": ("image.npy", "--factor", 2),
    "diffuse": ("image.npy", "--time", 1),
    "scale-space": ("image.npy", "--times", "0,1"),
    "structure": ("image.npy", "--what", "tensor"),
    "status": ("image.zarr",),
    "info": ("image.npy",),
    "stencil": (),
    "demo": (),
    "bench": ("--size", 64, "--rounds", 1, "--threads", 1),
}


@pytest.mark.parametrize("command", [name for name in commands.summaries() if name != "explore"])
def test_commands(tmp_path, monkeypatch, command):
    monkeypatch.setattr(demonstration, "BLOCKS", demonstration.BLOCKS[-1:])  # a part of the picture
    np.save(tmp_path / "image.npy", RINGS.image)  # in double precision, for which kernels are there
    io.write(tmp_path / "mask.png", 255 * UNKNOWN.astype(np.uint8))
    (tmp_path / "image.zarr").mkdir()
    (tmp_path / "image.zarr" / "zarr.json").touch()
    answer = called(tmp_path, command, *CALLS[command], "--json")
    assert answer.exit_code == 0, answer.output
    summary = json.loads(answer.stdout)
    for entry in summary.get("results", ()):
        for output in [*entry.get("outputs", ()), entry]:
            if "output" in output:
                assert np.ptp(io.read(tmp_path / output["output"]).pixels) > 0


def test_explore():
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())  # the token becomes a cookie
    with explorer() as (address, _, said), browser.open(address, timeout=300) as page:
        assert page.status == 200
        assert "aniso" in page.read().decode()
    assert not [line for line in said if "Traceback" in line]


def test_a_photograph_and_a_figure():
    photograph = aniso.samples.photograph("camera")[::16, ::16]
    figure = aniso.scale_space_figure(photograph, aniso.Homogeneous(), [0, 1])
    assert [panel.get_xlabel() for panel in figure.axes] == ["t = 0", "t = 1"]
