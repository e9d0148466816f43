"""aniso structure: files and stores hold what the functions return."""

import json
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr as zarr_package

import aniso
from aniso import io
from aniso.io.picture import Picture
from tests.cli.command_calls import called, contents, noisy

zarr: Any = zarr_package
VOLUME = (9, 12, 10)


@pytest.fixture
def folder(tmp_path):
    io.write(tmp_path / "colour.png", Picture(noisy((40, 44, 3)), channel_axis=-1))
    io.write(tmp_path / "volume.npy", noisy(VOLUME, "float64"))
    scan = Picture(noisy(VOLUME, "float32"), spacing=(2.0, 1.0, 1.0), unit="mm")
    io.write(tmp_path / "scan.nii.gz", scan)
    return tmp_path


def expected(what, image, **options):
    if what != "tensor":
        return getattr(aniso, what)(image, **options)
    tensor = aniso.structure_tensor(image, **options)
    return tensor[np.triu_indices(len(tensor))]


@pytest.mark.parametrize("what", ["coherence", "orientation", "tensor"])
def test_files(folder, what):
    answer = called(folder, "structure", "colour.png", "--what", what, "--rho", 2, "--json")
    assert answer.exit_code == 0, answer.output
    (result,) = json.loads(answer.stdout)["results"]
    assert result["output"] == f"colour_{what}.tif"
    found = io.read(folder / f"colour_{what}.tif")
    wanted = expected(what, noisy((40, 44, 3)), rho=2.0, channel_axis=-1)
    assert found.dtype == np.float32
    assert np.array_equal(found.pixels, np.moveaxis(wanted, 0, -1) if what == "tensor" else wanted)
    place = f"{what}.npy"
    assert called(folder, "structure", "volume.npy", "--what", what, "-o", place, "-q").exit_code == 0
    wanted = expected(what, noisy(VOLUME, "float64"))
    assert np.array_equal(
        np.load(folder / place), wanted if what == "coherence" else np.moveaxis(wanted, 0, -1)
    )


def test_stacks_are_taken_page_by_page(folder):
    stack = np.stack([noisy(seed=seed) for seed in range(3)])
    io.write(folder / "stack.tif", stack)
    assert called(folder, "structure", "stack.tif", "--slices", "--what", "orientation").exit_code == 0
    found = io.read(folder / "stack_orientation.tif").pixels
    assert np.array_equal(found, np.stack([aniso.orientation(page) for page in stack]))


@pytest.mark.parametrize(
    ("name", "words", "axes"),
    [
        ("colour.png", ("--what", "tensor"), "CYX"),
        ("volume.npy", ("--what", "orientation"), "ZCYX"),
        ("volume.npy", ("--what", "tensor", "--slices"), "ZCYX"),
    ],
)
def test_values_of_a_pixel_are_pages_that_imagej_opens(folder, name, words, axes):
    assert called(folder, "structure", name, *words, "-o", "map.tif").exit_code == 0
    with tifffile.TiffFile(folder / "map.tif") as file:
        assert file.series[0].axes == axes
        # ImageJ rejects several floats per pixel.
        assert {page.keyframe.samplesperpixel for page in file.pages if page.keyframe} == {1}
        assert (file.imagej_metadata or {})["channels"] == file.series[0].shape[axes.index("C")]
    assert io.read(folder / "map.tif").channel_axis == -1


def test_degrees(folder):
    words = ("--what", "orientation", "--degrees", "-o", "angles.tif")
    assert called(folder, "structure", "colour.png", *words).exit_code == 0
    wanted = np.rad2deg(aniso.orientation(noisy((40, 44, 3)), channel_axis=-1))
    assert np.array_equal(io.read(folder / "angles.tif").pixels, wanted)


def test_volumes_keep_the_shape_of_their_voxels(folder):
    words = ("--lines", "--sigma", "0.5", "-o", "lines.nii.gz")
    assert called(folder, "structure", "scan.nii.gz", *words).exit_code == 0
    found = io.read(folder / "lines.nii.gz")
    image = noisy(VOLUME, "float32")
    wanted = aniso.coherence(image, sigma=0.5, plates=False, spacing=(2.0, 1.0, 1.0))
    assert np.array_equal(found.pixels, wanted)
    assert found.spacing == (2.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("colour.png", "-o", "out.png"), "PNG files cannot hold floating-point numbers"),
        (("colour.png", "--degrees"), "--degrees is for --what orientation"),
        (("volume.npy", "--what", "orientation", "--degrees"), "vectors, not angles"),
        (("scan.nii.gz", "--what", "tensor", "-o", "out.nii.gz"), "NIfTI files hold grey values"),
        (("colour.png", "--sigma", "-1"), "sigma"),
        (("colour.png", "-o", "volume.npy"), "exists"),
        (("missing.png",), "does not exist"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_written(folder, words, said):
    before = contents(folder)
    answer = called(folder, "structure", *words)
    assert answer.exit_code != 0
    assert said in " ".join(answer.output.replace("│", " ").split())
    assert contents(folder) == before


class TestStores:
    @pytest.fixture
    def frames(self, tmp_path):
        frames = np.random.default_rng(0).random((2, 45, 38)).astype(np.float32)
        store = zarr.create_array(
            str(tmp_path / "in.zarr"),
            shape=frames.shape,
            chunks=(1, 16, 16),
            dtype=frames.dtype,
            dimension_names=("t", "y", "x"),
        )
        store[:] = frames
        return frames

    @pytest.mark.parametrize("what", ["coherence", "orientation", "tensor"])
    def test_hold_the_same_bits(self, tmp_path, frames, what):
        answer = called(tmp_path, "structure", "in.zarr", "out.zarr", "--what", what, "--rho", "1.5")
        assert answer.exit_code == 0, answer.output
        found = zarr.open_array(str(tmp_path / "out.zarr"), mode="r")
        assert np.array_equal(found[:], np.stack([expected(what, frame, rho=1.5) for frame in frames]))
        assert found.metadata.dimension_names == (
            ("t", "c", "y", "x") if what == "tensor" else ("t", "y", "x")
        )
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in.zarr", "out.zarr"]

    def test_are_never_overwritten_and_appear_complete(self, tmp_path, frames):
        assert called(tmp_path, "structure", "in.zarr").exit_code == 0
        before = contents(tmp_path)
        answer = called(tmp_path, "structure", "in.zarr", "--what", "coherence")
        assert answer.exit_code == 1
        assert "in_coherence.zarr already exists" in answer.output
        assert contents(tmp_path) == before

    def test_a_run_that_fails_leaves_nothing(self, tmp_path, frames):
        zarr.open_array(str(tmp_path / "in.zarr"), mode="r+")[1, 40, 30] = np.nan
        answer = called(tmp_path, "structure", "in.zarr", "out.zarr")
        assert answer.exit_code == 1
        assert "NaN or infinite" in answer.output
        assert [path.name for path in tmp_path.iterdir()] == ["in.zarr"]
