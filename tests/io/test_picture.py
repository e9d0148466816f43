"""Values are rounded and clipped, and pictures go from one kind of file to another."""

import dataclasses
from typing import Any

import nibabel
import numpy as np
import pytest

from aniso.io import Picture, read, write
from aniso.io.exif import with_orientation as exif_with_orientation
from aniso.io.picture import as_dtype
from tests.io.files import (
    FLOATS,
    INTEGERS,
    PROFILE,
    as_results,
    pixels,
    refused,
    tiff,
)


class TestValues:
    """Rounded and clipped, never wrapped."""

    @pytest.mark.parametrize("dtype", INTEGERS)
    @pytest.mark.parametrize("real", FLOATS)
    def test_floats_as_integers(self, dtype, real):
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        largest = float(np.finfo(real).max)
        values = np.array([-largest, -1e4, -0.6, 0.4, 0.5, 1.5, 2.6, 1e4, largest], real)
        expected = [min(max(round(float(value)), low), high) for value in values]
        assert as_dtype(values, dtype).tolist() == expected
        assert as_dtype(values, dtype).dtype == dtype

    @pytest.mark.parametrize("dtype", INTEGERS)
    @pytest.mark.parametrize("other", INTEGERS)
    def test_integers_as_integers(self, dtype, other):
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        values = pixels((50,), other)
        assert as_dtype(values, dtype).tolist() == [min(max(int(value), low), high) for value in values]

    def test_floats_as_shorter_floats(self):
        values = np.array([1e300, -1e300, np.inf, -np.inf, np.nan, 1.5])
        largest = float(np.finfo("float16").max)
        expected = [largest, -largest, np.inf, -np.inf, np.nan, 1.5]
        np.testing.assert_array_equal(as_dtype(values, "float16"), expected)

    @pytest.mark.parametrize("suffix", [".png", ".tif", ".npy", ".nii", ".mrc"])
    def test_in_files(self, tmp_path, suffix):
        image = pixels((3, 5), "uint16")
        before = read(write(tmp_path / f"a{suffix}", image))
        result = np.array([[-1e9, -0.4, 0.6, 65534.6, 65536.0], [1e9, 70000, 1.5, 2.5, 3.5], [0] * 5])
        keep = result.copy()
        after = read(write(tmp_path / f"b{suffix}", result, like=before))
        assert after.dtype == np.uint16
        assert after.pixels.tolist() == [[0, 0, 1, 65535, 65535], [65535, 65535, 2, 2, 4], [0] * 5]
        np.testing.assert_array_equal(result, keep)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    @pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".npy", ".nii", ".mrc"])
    def test_what_is_no_number_is_refused_by_integers(self, tmp_path, suffix, value):
        dtype = "int16" if suffix in (".nii", ".mrc") else "uint8"
        before = read(write(tmp_path / f"a{suffix}", np.ones((5, 7), dtype)))
        result = as_results(before)
        result[2, 3] = value
        call = lambda: write(tmp_path / f"b{suffix}", result, like=before)  # noqa: E731
        refused(call, "1 values", "NaN or infinite", "(2, 3)", dtype, ".tif or .npy", folder=tmp_path)

    @pytest.mark.parametrize("suffix", [".tif", ".npy", ".nii", ".mrc"])
    def test_and_kept_by_floats(self, tmp_path, suffix):
        image = pixels((5, 7), "float32")
        image[2, 3], image[1, 1] = np.nan, np.inf
        np.testing.assert_array_equal(read(write(tmp_path / f"a{suffix}", image)).pixels, image)

    def test_alpha_is_not_touched(self, tmp_path):
        image = pixels((5, 7, 4), "uint16")
        before = read(write(tmp_path / "a.png", image))
        after = read(write(tmp_path / "b.png", np.full((5, 7, 3), 1e6), like=before))
        assert after.alpha is not None
        np.testing.assert_array_equal(after.alpha, image[..., 3])
        assert (after.pixels == 65535).all()


class TestConversion:
    def test_between_photographs(self, tmp_path):
        exif = exif_with_orientation(6)
        options: dict[str, Any] = {"resolution": (150.0, 300.0), "icc_profile": PROFILE, "exif": exif}
        picture = Picture(np.full((40, 56, 3), 100, np.uint8), channel_axis=-1, **options)
        paths = [write(tmp_path / "0.png", picture)]
        for number, suffix in enumerate(["jpg", "tif", "png", "tif", "jpg", "png"]):
            paths.append(write(tmp_path / f"{number + 1}.{suffix}", read(paths[-1])))
        for path in paths:
            after = read(path)
            np.testing.assert_allclose(after.pixels, picture.pixels, atol=1)
            assert after.icc_profile == PROFILE
            assert after.resolution == pytest.approx((150, 300), rel=1e-3)
            assert after.orientation == 6

    @pytest.mark.parametrize("target", ["tif", "nii", "nii.gz", "mrc"])
    @pytest.mark.parametrize("origin", ["tif", "nii", "mrc"])
    def test_between_volumes(self, tmp_path, origin, target):
        image = pixels((4, 5, 7), "int16")
        unit = {"tif": "mm", "nii": "mm", "mrc": "Å"}[origin]
        first = Picture(image, spacing=(3.5, 2.5, 1.5), unit=unit)
        before = read(write(tmp_path / f"a.{origin}", first))
        assert before.spacing == pytest.approx((3.5, 2.5, 1.5))
        assert before.unit == unit
        after = read(write(tmp_path / f"b.{target}", before))
        np.testing.assert_array_equal(after.pixels, image)
        assert after.spacing is not None
        factor = {"mm to Å": 1e7, "Å to micron": 1e-4}.get(f"{unit} to {after.unit}", 1.0)
        np.testing.assert_allclose(after.spacing, np.array([3.5, 2.5, 1.5]) * factor, rtol=1e-6)

    @pytest.mark.parametrize(
        ("unit", "metres"),
        [("Å", 1e-10), ("\u212b", 1e-10), ("angstroms", 1e-10), ("nm", 1e-9), ("µm", 1e-6), ("um", 1e-6),
         ("μm", 1e-6), ("micron", 1e-6), ("microns", 1e-6), ("micrometer", 1e-6), (r"\u00B5m", 1e-6),
         ("&#181;m", 1e-6), ("&#xb5;m", 1e-6), ("mm", 1e-3), ("cm", 1e-2), ("inch", 0.0254), ("meter", 1.0)],
    )  # fmt: skip
    def test_units_of_length(self, tmp_path, unit, metres):
        picture = Picture(pixels((4, 5, 7), "int16"), spacing=(0.2, 0.1, 0.1), unit=unit)
        target = read(write(tmp_path / "a.mrc", picture))
        assert target.spacing == pytest.approx(np.array([0.2, 0.1, 0.1]) * metres / 1e-10)
        target = read(write(tmp_path / "a.nii", picture))
        own = {"mm": 1e-3, "micron": 1e-6, "meter": 1.0}[str(target.unit)]
        assert target.spacing == pytest.approx(np.array([0.2, 0.1, 0.1]) * metres / own)
        # Through ImageJ, whose text is in ASCII, and on.
        target = read(write(tmp_path / "b.mrc", read(write(tmp_path / "a.tif", picture))))
        assert target.spacing == pytest.approx(np.array([0.2, 0.1, 0.1]) * metres / 1e-10)
        with tiff.TiffFile(tmp_path / "a.tif") as file:
            assert file.pages[0].description.isascii()

    @pytest.mark.parametrize("unit", [None, "furlong", "sec"])
    def test_unknown_units_give_no_wrong_size(self, tmp_path, unit):
        picture = Picture(pixels((4, 5, 7), "int16"), spacing=(2.0, 1.0, 1.0), unit=unit)
        assert read(write(tmp_path / "a.mrc", picture)).spacing is None
        volume = read(write(tmp_path / "a.nii", picture))
        assert (volume.spacing, volume.unit) == ((2.0, 1.0, 1.0), None)

    def test_scaled_integers_leave_nifti_as_floats(self, tmp_path):
        original = nibabel.Nifti1Image(pixels((7, 5, 4), "int16"), np.eye(4))
        original.header.set_slope_inter(1e-4, 0.0)
        original.to_filename(tmp_path / "a.nii")
        before = read(tmp_path / "a.nii")
        after = read(write(tmp_path / "a.tif", before))
        assert after.dtype == np.float32
        np.testing.assert_array_equal(before.pixels, after.pixels)

    def test_an_enlarged_picture(self, tmp_path):
        image = pixels((5, 7, 4))
        before = dataclasses.replace(read(write(tmp_path / "a.png", image)), resolution=(100.0, 200.0))
        after = read(write(tmp_path / "b.png", np.zeros((10, 21, 3)), like=before))
        assert after.alpha is not None
        np.testing.assert_array_equal(after.alpha, image[..., 3].repeat(2, 0).repeat(3, 1))
        assert after.resolution == pytest.approx((200.0, 600.0), rel=1e-3)
        call = lambda: write(tmp_path / "c.png", np.zeros((11, 21, 3)), like=before)  # noqa: E731
        refused(call, "alpha of shape (5, 7)", "(11, 21)", "alpha=None", folder=tmp_path)

    @pytest.mark.parametrize("shape", [(5, 7), (5, 7, 4), (2, 5, 7, 3)], ids=str)
    def test_a_result_that_does_not_fit(self, tmp_path, shape):
        before = read(write(tmp_path / "a.png", pixels((5, 7, 3))))
        call = lambda: write(tmp_path / "b.png", np.zeros(shape), like=before)  # noqa: E731
        refused(call, str(shape), "(5, 7, 3)", folder=tmp_path)

    @pytest.mark.parametrize(
        ("name", "shape", "dtype", "parts"),
        [
            ("a.png", (5, 7), "float32", ("PNG", "float32", ".npy or .tif", "uint8")),
            ("a.png", (5, 7), "uint32", ("PNG", "uint32", ".npy or .tif")),
            ("a.jpg", (5, 7), "uint16", ("JPEG", "uint16", ".npy or .png or .tif")),
            ("a.jpg", (5, 7, 4), "uint8", ("JPEG", "cannot store transparency", "alpha=None")),
            ("a.jpg", (1, 70000), "uint8", ("JPEG", "65500", "70000")),
            ("a.png", (9, 5, 7), "uint8", ("PNG", "(9, 5, 7)", "stacks")),
            ("a.tif", (2, 2, 9, 5, 7), "uint8", ("TIFF", "(2, 2, 9, 5, 7)", ".npy")),
            ("a.nrrd", (2, 2, 9, 5, 7), "uint8", ("series", "(2, 2, 9, 5, 7)", ".npy")),
            ("a.bmp", (5, 7), "uint16", ("BMP", "uint16", ".png")),
            ("a.dcm", (5, 7), "uint16", ("read only", ".nrrd")),
            ("a.mhd", (5, 7), "uint16", ("read only", ".mha")),
            ("a.mrc", (9, 5, 7), "float64", ("MRC", "float64")),
            ("a.nii", (9, 5, 7), "float16", ("NIfTI", "float16")),
            ("a.nii", (2, 2, 9, 5, 7), "uint8", ("NIfTI", "(2, 2, 9, 5, 7)", ".npy")),
            ("a.tif", (0, 7), "uint8", ("must have pixels", "(0, 7)")),
            ("a.npy", (5, 7), "complex64", ("complex64",)),
        ],
        ids=str,
    )
    def test_what_a_file_cannot_hold(self, tmp_path, name, shape, dtype, parts):
        refused(lambda: write(tmp_path / name, np.zeros(shape, dtype)), *parts, folder=tmp_path)

    def test_colours_in_volumes(self, tmp_path):
        picture = read(write(tmp_path / "a.png", pixels((5, 7, 3))))
        for suffix in ("nii", "mrc"):
            refused(lambda s=suffix: write(tmp_path / f"a.{s}", picture), "colours", folder=tmp_path)

    def test_premultiplied_colours_in_png(self, tmp_path):
        options = {"photometric": "rgb", "extrasamples": ["assocalpha"], "metadata": None}
        tiff.imwrite(tmp_path / "a.tif", pixels((5, 7, 4)), **options)
        picture = read(tmp_path / "a.tif")
        refused(lambda: write(tmp_path / "a.png", picture), "multiplied by alpha", folder=tmp_path)

    def test_floats_become_integers_on_demand(self, tmp_path):
        before = read(write(tmp_path / "a.tif", np.array([[-3.0, 0.6, 300.0]], np.float32)))
        after = read(write(tmp_path / "a.png", dataclasses.replace(before, dtype="uint8")))
        assert after.pixels.tolist() == [[0, 1, 255]]

    def test_big_endian_arrays(self, tmp_path):
        image = pixels((5, 7, 3), "uint16")
        for suffix in ("png", "tif"):
            path = write(tmp_path / f"a.{suffix}", image.astype(">u2"))
            np.testing.assert_array_equal(read(path).pixels, image)

    def test_channels_first(self, tmp_path):
        image = pixels((3, 5, 7))
        path = write(tmp_path / "a.png", Picture(image, channel_axis=0))
        np.testing.assert_array_equal(read(path).pixels, np.moveaxis(image, 0, -1))

    def test_alpha_of_another_type(self, tmp_path):
        picture = read(write(tmp_path / "a.png", pixels((5, 7, 4))))
        picture = dataclasses.replace(picture, dtype="uint16")
        refused(lambda: write(tmp_path / "b.png", picture), "alpha is uint8", "uint16", folder=tmp_path)

    def test_pictures_check_themselves(self):
        refused(lambda: Picture(np.zeros((5, 7)), alpha=np.zeros((5, 6))), "(5, 6)", "(5, 7)")
        refused(lambda: Picture(np.zeros((5, 7)), channel_axis=2), "no axis 2", "(5, 7)")
        with pytest.raises(TypeError, match="Leave like out"):
            write("a.png", Picture(np.zeros((5, 7))), like=Picture(np.zeros((5, 7))))
