"""The command on Zarr stores: with workers of its own where they matter, else with those of this process."""

import json
import os

import numpy as np
import pytest
from dask.distributed import LocalCluster

import aniso
from aniso.blocks.stores.filtering import bokeh_hint
from aniso.io.picture import as_dtype
from tests.blocks.stores import ome_group, zarr
from tests.cli.command_calls import aniso_command, called
from tests.registry import SAMPLES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scheduler():
    """One that is there already, with a worker in this process."""
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50
    ) as local:
        yield local.scheduler_address


def words_of(answer):
    """What it says on standard error, in one line."""
    return " ".join(answer.stderr.replace("│", " ").split())


@pytest.fixture
def image():
    noise = np.random.default_rng(0).normal(0, 10, (90, 70))
    return (SAMPLES["edges"]((90, 70)) + noise).clip(0, None).astype(np.uint16)


@pytest.fixture
def store(tmp_path, image):
    return ome_group(tmp_path / "in.zarr", image, "yx", (0.5, 1.0), chunks=(32, 32))


def test_diffuse_keeps_the_type_and_uses_the_spacing(tmp_path, store, image):
    options = ("--model", "edge-enhancing", "--contrast", "12", "--sigma", "0.5", "--time", "2", "--json")
    answer = aniso_command(tmp_path, "diffuse", "in.zarr", "out.zarr", *options, "--workers", "1")
    assert answer.returncode == 0, answer.stderr
    (result,) = json.loads(answer.stdout)["results"]
    assert result["output"] == "out.zarr"
    found = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")["0"][:]
    model = aniso.EdgeEnhancing(12.0, 0.5)
    expected = as_dtype(aniso.diffuse(image, model, 2.0, spacing=(1.0, 2.0)), np.uint16)
    assert abs(found.astype(int) - expected.astype(int)).max() <= 1
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(
    ("scheduler", "installed", "words"),
    [
        (None, None, "pip install bokeh"),
        (None, object(), ""),
        ("tcp://10.0.0.1:8786", None, ""),
    ],
    ids=["without", "with", "elsewhere"],
)
def test_the_page_of_the_workers_is_offered_with_what_it_needs(monkeypatch, scheduler, installed, words):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: installed)
    said = bokeh_hint(scheduler)
    assert words in said
    assert bool(said) == bool(words)


def test_only_some_commands_take_stores(tmp_path, store):
    answer = called(tmp_path, "info", "in.zarr")
    assert answer.exit_code == 1
    assert "Commands that filter images, such as denoise, take Zarr stores." in words_of(answer)


def test_an_array_within_a_store(tmp_path, store, image, scheduler):
    """Diffusion without estimates reads no sample, and says nothing about one."""
    options = ("--model", "edge-enhancing", "--contrast", "12", "--time", "1")
    answer = called(tmp_path, "diffuse", "in.zarr/0", *options, "--scheduler", scheduler)
    assert answer.exit_code == 0, answer.stderr
    assert "EdgeEnhancing(contrast=12" in answer.stdout
    assert "noise" not in answer.stdout
    assert zarr.open_array(str(tmp_path / "in_diffused.zarr"), mode="r").shape == image.shape


def test_denoise_and_enhance_choose_by_themselves(tmp_path, store, scheduler):
    for verb, name in (("denoise", "in_denoised.zarr"), ("enhance", "in_enhanced.zarr")):
        answer = called(tmp_path, verb, "in.zarr", "--scheduler", scheduler)
        assert answer.exit_code == 0, answer.stderr
        assert name in answer.stdout
        assert (tmp_path / name).is_dir()
    assert sorted(os.listdir(tmp_path)) == ["in.zarr", "in_denoised.zarr", "in_enhanced.zarr"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("denoise", "in.zarr", "in.zarr"), 2, "input itself"),
        (("denoise", "in.zarr", "a.zarr", "b.zarr"), 2, "one at a time"),
        (("denoise", "in.zarr", "photo.png"), 2, "cannot be filtered by one command"),
        (("denoise", "in.zarr", "-o", "out.png"), 2, "must be a Zarr store"),
        (("denoise", "in.zarr", "--memory", "much"), 2, "not a memory size"),
        (("denoise", "in.zarr", "--memory", "0GB"), 2, "not a memory size"),
        (("denoise", "missing.zarr"), 1, "does not exist"),
        (("denoise", "in.zarr", "nowhere/out.zarr"), 1, "does not exist. Create it first"),
        (("denoise", "in.zarr", "there.zarr"), 1, "already exists"),
        (("denoise", "in.zarr", "there.zarr/zarr.json/out.zarr"), 1, "does not exist. Create it first"),
        (("denoise", "in.zarr", "odd.zarr"), 1, "odd.zarr.unfinished is not a folder"),
        (("denoise", "in.zarr", "--memory", "300MB", "--workers", "1"), 1, "smaller chunks"),
        (("denoise", "nan.zarr", "--scheduler", "tcp"), 1, "block (0, 1) holds NaN"),
        (("upsample", "in.zarr"), 2, "upsample needs --factor"),
        (("upsample", "in.zarr", "--factor", "2,2,2"), 1, "got 3 values"),
        (("denoise", "in.zarr", "--scheduler", "nonsense"), 1, "no Dask scheduler"),
        (("diffuse", "in.zarr", "--time", "1", "--tensor", "1", "0", "1"), 2, "Give a model"),
    ],
)
def test_refusals(tmp_path, store, image, scheduler, arguments, code, words):
    (tmp_path / "there.zarr").mkdir()
    (tmp_path / "odd.zarr.unfinished").touch()
    broken = image.astype(np.float32)
    broken[5, 40] = np.nan
    ome_group(tmp_path / "nan.zarr", broken, "yx", (0.5, 1.0), chunks=(32, 32))
    answer = called(tmp_path, *(scheduler if word == "tcp" else word for word in arguments))
    assert answer.exit_code == code, answer.stderr
    assert words in words_of(answer)
    assert "Traceback" not in answer.stderr
    assert sorted(os.listdir(tmp_path)) == ["in.zarr", "nan.zarr", "odd.zarr.unfinished", "there.zarr"]


def test_nothing_to_do_is_a_copy(tmp_path, scheduler):
    image = np.full((40, 50), 70_000, np.uint32)
    ome_group(tmp_path / "in.zarr", image, "yx", (0.5, 1.0), chunks=(32, 32))
    answer = called(tmp_path, "denoise", "in.zarr", "out.zarr", "--scheduler", scheduler, "--json")
    assert answer.exit_code == 0, answer.stderr
    assert any("is a copy" in note for note in json.loads(answer.stdout)["notes"])
    np.testing.assert_array_equal(zarr.open_group(str(tmp_path / "out.zarr"), mode="r")["0"][:], image)
    assert sorted(os.listdir(tmp_path)) == ["in.zarr", "out.zarr"]


def test_units_that_cannot_be_compared_are_named(tmp_path, image, scheduler):
    units = {"y": "micrometer", "x": "furlong"}
    ome_group(tmp_path / "in.zarr", image, "yx", (0.5, 1.0), units=units, chunks=(32, 32))
    answer = called(tmp_path, "diffuse", "in.zarr", "--time", "0", "--scheduler", scheduler)
    assert answer.exit_code == 0, answer.stderr
    assert "furlong and micrometer" in words_of(answer)


def short_files():
    """Files of this process and of those it starts end early, as on a full disk."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))


def test_a_full_disk(tmp_path):
    pytest.importorskip("resource")  # not on Windows
    noise = np.random.default_rng(0).normal(100, 10, (500, 520))
    ome_group(tmp_path / "in.zarr", noise, "yx", (1.0, 1.0), chunks=(500, 520))
    call = (
        "diffuse",
        "in.zarr",
        "out.zarr",
        "--contrast",
        "9",
        "--time",
        "2",
        "--workers",
        "1",
        "--memory",
        "1gb",
    )
    answer = aniso_command(tmp_path, *call, preexec_fn=short_files)
    assert answer.returncode == 1, answer.stderr
    assert "cannot be written" in words_of(answer)
    assert "repeat the call to continue" in words_of(answer)
    assert "Traceback" not in answer.stderr
    assert sorted(os.listdir(tmp_path)) == ["in.zarr", "out.zarr.unfinished"]
    again = called(tmp_path, *call)
    assert again.exit_code == 0, again.stderr
    assert "is continued" in words_of(again)
    assert sorted(os.listdir(tmp_path)) == ["in.zarr", "out.zarr"]
    result = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")["0"][:]
    expected = aniso.diffuse(noise, aniso.EdgeEnhancing(9.0), 2.0)
    np.testing.assert_allclose(result, expected, atol=1e-9 * np.ptp(noise))


class TestFilling:
    """inpaint and upsample on stores."""

    @pytest.mark.parametrize("kind", ["store", "file", "inverted", "value", "not finite"])
    def test_inpaint(self, tmp_path, image, scheduler, kind):
        mask = np.random.default_rng(1).random(image.shape) < 0.4
        pixels, words = image.astype(np.float32), []
        if kind == "store":
            zarr.create_array(str(tmp_path / "mask.zarr"), data=mask, chunks=(50, 50))
            words = ["--mask", "mask.zarr"]
        elif kind in ("file", "inverted"):
            aniso.io.write(tmp_path / "mask.png", ((mask ^ (kind == "inverted")) * 255).astype(np.uint8))
            words = ["--mask", "mask.png", *(["--invert"] if kind == "inverted" else [])]
        elif kind == "value":
            pixels[mask] = 9e4
            words = ["--mask-value", "90000"]
        else:
            pixels[mask] = np.where(np.arange(mask.sum()) % 2, np.nan, np.inf)
        zarr.create_array(str(tmp_path / "in.zarr"), data=pixels, chunks=(32, 32))
        answer = called(tmp_path, "inpaint", "in.zarr", *words, "--scheduler", scheduler)
        assert answer.exit_code == 0, answer.stderr
        found = zarr.open_array(str(tmp_path / "in_inpainted.zarr"), mode="r")[:]
        np.testing.assert_array_equal(found, aniso.inpaint(pixels, mask))
        assert "fraction of unknown pixels" in answer.stdout

    def test_masks_that_do_not_fit(self, tmp_path, store):
        zarr.create_array(str(tmp_path / "mask.zarr"), data=np.zeros((90, 71), bool))
        for name, words in (("mask.zarr", "has shape (90, 71)"), ("lost.zarr", "does not exist")):
            answer = called(tmp_path, "inpaint", "in.zarr", "--mask", name)
            assert answer.exit_code == 1
            assert words in words_of(answer)
            assert not (tmp_path / "in_inpainted.zarr").exists()

    @pytest.mark.parametrize(
        ("words", "options", "name"),
        [
            (["--factor", "2"], {"factor": 2}, "in_x2.zarr"),
            (["--factor", "3,1"], {"factor": (3, 1)}, "in_x3x1.zarr"),
            (["--isotropic"], {"isotropic": True}, "in_isotropic.zarr"),
        ],
    )
    def test_upsample(self, tmp_path, store, image, scheduler, words, options, name):
        answer = called(tmp_path, "upsample", "in.zarr", *words, "--scheduler", scheduler, "--json")
        assert answer.exit_code == 0, answer.stderr
        spacing = (0.5, 1.0) if "isotropic" in options else (1.0, 2.0)
        expected = as_dtype(aniso.upsample(image, **options, spacing=spacing), np.uint16)
        np.testing.assert_array_equal(zarr.open_group(str(tmp_path / name), mode="r")["0"][:], expected)
        (result,) = json.loads(answer.stdout)["results"]
        assert result["shape"] == list(expected.shape)

    def test_plans(self, tmp_path, store, image, scheduler):
        first = called(
            tmp_path, "upsample", "in.zarr", "--factor", 2, "--save-plan", "p.json", "--scheduler", scheduler
        )
        assert first.exit_code == 0, first.stderr
        second = called(
            tmp_path, "upsample", "in.zarr", "again.zarr", "--plan", "p.json", "--scheduler", scheduler
        )
        assert second.exit_code == 0, second.stderr
        assert "p.json, whose estimates are of the image from which it was made" in second.stdout
        one, two = (
            zarr.open_group(str(tmp_path / name), mode="r")["0"][:] for name in ("in_x2.zarr", "again.zarr")
        )
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("option", ["--frames", "--slices"])
def test_frames_of_stores_without_names(tmp_path, scheduler, image, option):
    series = np.stack([image, image[::-1], image // 2])
    zarr.create_array(str(tmp_path / "in.zarr"), data=series, chunks=(1, 32, 32))
    answer = called(tmp_path, "denoise", "in.zarr", "out.zarr", option, "--scheduler", scheduler)
    assert answer.exit_code == 0, answer.stderr
    expected = as_dtype(aniso.denoise(series, frame_axis=0), np.uint16)
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "out.zarr"), mode="r")[:], expected)


def test_stores_keep_their_dtype(tmp_path, scheduler, store):
    answer = called(
        tmp_path,
        "diffuse",
        "in.zarr",
        "out.zarr",
        "--time",
        "1",
        "--dtype",
        "float32",
        "--scheduler",
        scheduler,
    )
    assert answer.exit_code == 1
    assert "Zarr stores keep their dtype. Remove --dtype" in words_of(answer)
    assert not (tmp_path / "out.zarr").exists()
