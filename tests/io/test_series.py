"""Series of volumes and channels in NIfTI, TIFF and NPY files: as frames, with one plan."""

import dataclasses

import nibabel
import numpy as np
import pytest

import aniso
from aniso.io import Picture, read, write
from aniso.io.pages import Pages, is_volume
from tests.cli.command_calls import called
from tests.io.files import as_results, load_volume, pixels, tiff

T, C, Z, Y, X = 3, 2, 5, 16, 20


def _nifti(path, values):
    """A series (X, Y, Z, T) with an oblique place in space and a time step."""
    affine = np.array([[0.0, -2, 0, 10], [1.5, 0, 0, 20], [0, 0, 3, 30], [0, 0, 0, 1]])
    image = nibabel.Nifti1Image(values, affine)
    image.header.set_zooms((1.5, 2.0, 3.0, 0.8))
    image.header.set_xyzt_units("mm", "sec")
    image.to_filename(path)
    return affine


class TestNifti:
    def test_geometry_and_time_step_are_kept(self, tmp_path):
        affine = _nifti(tmp_path / "a.nii.gz", pixels((X, Y, Z, T), "int16"))
        picture = read(tmp_path / "a.nii.gz")
        assert picture.shape == (T, Z, Y, X)
        assert picture.spacing == (3.0, 2.0, 1.5)
        write(tmp_path / "b.nii.gz", as_results(picture), like=picture)
        before, after = load_volume(tmp_path / "a.nii.gz"), load_volume(tmp_path / "b.nii.gz")
        np.testing.assert_array_equal(before.get_fdata(), after.get_fdata())
        np.testing.assert_array_equal(after.affine, affine)
        assert after.header.get_zooms() == before.header.get_zooms()
        assert after.header.get_xyzt_units() == ("mm", "sec")

    def test_finer_results_cover_the_same_box(self, tmp_path):
        affine = _nifti(tmp_path / "a.nii", pixels((X, Y, Z, T), "int16"))
        picture = read(tmp_path / "a.nii")
        fine = np.repeat(np.repeat(np.repeat(picture.pixels, 2, 1), 2, 2), 2, 3)
        write(tmp_path / "b.nii", fine, like=picture)
        after = load_volume(tmp_path / "b.nii")
        assert after.header.get_zooms() == pytest.approx((0.75, 1.0, 1.5, 0.8))
        corner = affine @ [-0.5, -0.5, -0.5, 1]
        np.testing.assert_allclose(after.affine @ [-0.5, -0.5, -0.5, 1], corner, atol=1e-5)


class TestTiff:
    @pytest.mark.parametrize("axes", ["TZYX", "TZCYX", "TCZYX", "CTZYX", "ZTYX", "ZCTYX"])
    def test_ome(self, tmp_path, axes):
        sizes = dict(zip("TCZYX", (T, C, Z, Y, X), strict=True))
        values = pixels([sizes[axis] for axis in axes], "uint16")
        notes = {"axes": axes, "PhysicalSizeX": 0.2, "PhysicalSizeY": 0.2, "PhysicalSizeZ": 0.5}
        tiff.imwrite(tmp_path / "a.ome.tif", values, metadata=notes)
        picture = read(tmp_path / "a.ome.tif")
        assert picture.shape == (T, Z, Y, X)
        assert picture.channels == (C if "C" in axes else None)
        assert picture.spacing == (0.5, 0.2, 0.2)
        expected = tiff.imread(tmp_path / "a.ome.tif")
        order = [axes.index(axis) for axis in "TZYXC" if axis in axes]
        np.testing.assert_array_equal(picture.pixels, expected.transpose(order))
        write(tmp_path / "b.ome.tif", as_results(picture), like=picture)
        with tiff.TiffFile(tmp_path / "b.ome.tif") as file:
            assert file.is_ome
            assert file.series[0].axes == axes
            assert 'PhysicalSizeZ="0.5"' in file.ome_metadata
            np.testing.assert_array_equal(file.asarray(), values)

    @pytest.mark.parametrize("axes", ["TZYX", "TZCYX"])
    def test_imagej(self, tmp_path, axes):
        sizes = dict(zip("TCZYX", (T, C, Z, Y, X), strict=True))
        values = pixels([sizes[axis] for axis in axes], "uint16")
        notes = {"axes": axes, "spacing": 0.5, "unit": "um"}
        tiff.imwrite(tmp_path / "a.tif", values, imagej=True, metadata=notes, resolution=(5, 5))
        picture = read(tmp_path / "a.tif")
        assert (picture.shape, picture.spacing) == ((T, Z, Y, X), (0.5, 0.2, 0.2))
        write(tmp_path / "b.tif", as_results(picture), like=picture)
        # A file that was not a TIFF file gets the text of ImageJ.
        write(tmp_path / "c.tif", dataclasses.replace(picture, details={}, format=None))
        for name in ("b.tif", "c.tif") if axes == "TZYX" else ("b.tif",):
            with tiff.TiffFile(tmp_path / name) as file:
                assert file.series[0].axes == axes
                assert file.imagej_metadata["spacing"] == 0.5
                np.testing.assert_array_equal(file.asarray(), values)


class TestPages:
    @pytest.mark.parametrize("axis", [None, 0, 1, -1])
    @pytest.mark.parametrize("volume", [True, False])
    def test_joined_pages_are_the_picture(self, axis, volume):
        values = pixels((T, Z, Y, X))
        if axis is not None:
            values = np.stack([values, 255 - values], axis)
        stack = Pages(Picture(values, channel_axis=axis), volume=volume)
        pages = list(stack)
        assert stack.count == len(pages) == (T if volume else T * Z)
        for page in pages:
            shape = [n for k, n in enumerate(page.image.shape) if k != page.channel_axis]
            assert shape == [Z, Y, X][-stack.ndim :]
        np.testing.assert_array_equal(stack.join([page.image for page in pages]), values)
        assert stack.outline((2,) * stack.ndim).size == values.size * 2**stack.ndim

    def test_masks_of_a_page_a_volume_or_all(self):
        picture = Picture(pixels((T, Z, Y, X)))
        for volume in (True, False):
            stack = Pages(picture, volume=volume)
            for shape in ((T, Z, Y, X), (Z, Y, X), (Y, X)):
                mask = pixels(shape) > 128
                parts = [stack.part_of_mask(mask, page) for page in stack]
                np.testing.assert_array_equal(stack.join(parts), np.broadcast_to(mask, picture.shape))

    def test_frames_of_a_series_are_volumes(self):
        picture = Picture(pixels((T, Z, Y, X)))
        assert is_volume(picture, None)
        assert not is_volume(picture, False)
        assert not is_volume(Picture(pixels((T, 1, Y, X))), None)


class TestCommand:
    @pytest.fixture
    def series(self, tmp_path):
        rng = np.random.default_rng(0)
        values = (200 + 40 * np.arange(X)[:, None, None, None] // 8 + rng.normal(0, 9, (X, Y, Z, T))).astype(
            "i2"
        )
        _nifti(tmp_path / "a.nii", values)
        return np.ascontiguousarray(values.T)

    def test_frames_have_one_plan(self, tmp_path, series):
        answer = called(tmp_path, "denoise", "a.nii", "--frames", "--save-plan", "p.json")
        assert answer.exit_code == 0, answer.output
        spacing = (2.0, 2 / 1.5, 1.0)
        expected, plan = aniso.denoise(series, frame_axis=0, spacing=spacing, return_info=True)
        assert aniso.Plan.from_json((tmp_path / "p.json").read_text()) == plan
        written = load_volume(tmp_path / "a_denoised.nii")
        np.testing.assert_array_equal(written.get_fdata().T, np.rint(expected))
        assert written.header.get_zooms()[3] == pytest.approx(0.8)

    def test_frames_one_by_one(self, tmp_path, series):
        answer = called(tmp_path, "diffuse", "a.nii", "--time", 1, "--contrast", 20)
        assert answer.exit_code == 0, answer.output
        assert "series of 3 volumes" in answer.output
        model = aniso.EdgeEnhancing(contrast=20)
        expected = [aniso.diffuse(frame, model, 1.0, spacing=(2.0, 2 / 1.5, 1.0)) for frame in series]
        np.testing.assert_array_equal(
            load_volume(tmp_path / "a_diffused.nii").get_fdata().T, np.rint(expected)
        )

    def test_info_names_the_frames(self, tmp_path, series):
        answer = called(tmp_path, "info", "a.nii", "--no-estimate")
        assert "5 × 16 × 20 voxels" in answer.output
        assert "frames" in answer.output

    def test_maps_of_all_frames(self, tmp_path, series):
        answer = called(tmp_path, "structure", "a.nii", "--what", "coherence")
        assert answer.exit_code == 0, answer.output
        assert read(tmp_path / "a_coherence.tif").shape == (T, Z, Y, X)
