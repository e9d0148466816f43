"""Arrays and volumes in files."""

import mrcfile
import nibabel
import numpy as np
import pytest

from aniso.io import read, write
from tests.io.files import FLOATS, INTEGERS, load_volume, pixels, refused, there_and_back


class TestNpy:
    @pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, ">f4", ">u2"])
    @pytest.mark.parametrize("shape", [(9,), (5, 7), (5, 7, 3), (4, 5, 7)], ids=str)
    def test_round_trip(self, tmp_path, dtype, shape):
        image = pixels(shape, np.dtype(dtype).name).astype(dtype)
        np.save(tmp_path / "a.npy", image)
        before, after = there_and_back(tmp_path / "a.npy")
        for picture in (before, after):
            assert picture.dtype == np.dtype(dtype)
            assert picture.channel_axis is None
            np.testing.assert_array_equal(picture.pixels, image)

    @pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
    def test_versions_and_column_order(self, tmp_path, version):
        image = np.asfortranarray(pixels((5, 7), "float32"))
        with (tmp_path / "a.npy").open("wb") as file:
            np.lib.format.write_array(file, image, version)
        np.testing.assert_array_equal(read(tmp_path / "a.npy").pixels, image)

    def test_masks(self, tmp_path):
        mask = pixels((5, 7)) > 100
        path = write(tmp_path / "a.npy", mask)
        assert read(path).dtype == np.bool_
        np.testing.assert_array_equal(read(path).pixels, mask)
        np.testing.assert_array_equal(read(write(tmp_path / "a.png", mask)).pixels, mask * 255)

    @pytest.mark.parametrize("value", [1j, "text", None], ids=repr)
    def test_other_values_are_refused(self, tmp_path, value):
        """Objects above all: loading them would run code that is in the file."""
        np.save(tmp_path / "a.npy", np.array([[value]]))
        refused(lambda: read(tmp_path / "a.npy"), "not grey values", "real")

    def test_alpha_becomes_a_channel(self, tmp_path):
        image = pixels((5, 7, 4))
        picture = read(write(tmp_path / "a.png", image))
        np.testing.assert_array_equal(np.load(write(tmp_path / "a.npy", picture)), image)

    def test_nothing_in_it(self, tmp_path):
        np.save(tmp_path / "a.npy", np.zeros((0, 4)))
        np.save(tmp_path / "b.npy", np.float64(3))
        for name in ("a", "b"):
            refused(lambda name=name: read(tmp_path / f"{name}.npy"), "holds no pixels", "shape (")


class TestNifti:
    AFFINE = np.array([[0.0, -2.0, 0, 10], [1.5, 0, 0, 20], [0, 0, 3.0, 30], [0, 0, 0, 1]])

    @pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
    @pytest.mark.parametrize("dtype", [*INTEGERS, "float32", "float64"])
    def test_round_trip(self, tmp_path, suffix, dtype):
        image = pixels((7, 5, 4), dtype)
        path = tmp_path / f"a{suffix}"
        original = nibabel.Nifti1Image(image, self.AFFINE, dtype=dtype)
        original.header.set_xyzt_units("mm", "sec")
        original.header["descrip"] = b"a remark"
        original.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"an extension"))
        original.to_filename(path)
        before, after = there_and_back(path)
        for picture in (before, after):
            assert picture.dtype == np.dtype(dtype)
            assert picture.shape == (4, 5, 7)
            assert picture.spacing == (3.0, 2.0, 1.5)
            assert picture.unit == "mm"
            assert picture.description == "a remark"
            np.testing.assert_array_equal(picture.pixels, image.T)
        one, other = load_volume(path), load_volume(tmp_path / f"after{suffix}")
        np.testing.assert_array_equal(one.affine, other.affine)
        np.testing.assert_array_equal(np.asarray(other.dataobj), image)
        assert other.header.extensions[0].get_content() == one.header.extensions[0].get_content()
        for name in ("qform_code", "sform_code", "pixdim", "xyzt_units", "datatype", "descrip"):
            np.testing.assert_array_equal(one.header[name], other.header[name])

    def test_two_maps_into_space_are_both_kept(self, tmp_path):
        original = nibabel.Nifti1Image(pixels((7, 5, 4)), self.AFFINE)
        original.set_qform(np.diag([2.0, 2, 2, 1]), 1)
        original.set_sform(self.AFFINE, 4)
        original.to_filename(tmp_path / "a.nii")
        there_and_back(tmp_path / "a.nii")
        other = load_volume(tmp_path / "after.nii")
        np.testing.assert_allclose(other.get_qform(), np.diag([2.0, 2, 2, 1]))
        np.testing.assert_allclose(other.get_sform(), self.AFFINE)

    @pytest.mark.parametrize("kind", [nibabel.Nifti1Image, nibabel.Nifti2Image])
    @pytest.mark.parametrize("order", ["<", ">"])
    def test_scaled_integers(self, tmp_path, kind, order):
        raw = pixels((7, 5, 4), "int16")
        header = kind.header_class(endianness=order)
        header.set_data_dtype(np.int16)
        original = kind(raw, self.AFFINE, header)
        original.header.set_slope_inter(0.5, -100.0)
        original.to_filename(tmp_path / "a.nii")
        before, after = there_and_back(tmp_path / "a.nii")
        np.testing.assert_array_equal(before.pixels, raw.T * 0.5 - 100)
        np.testing.assert_array_equal(after.pixels, before.pixels)
        assert before.dtype == np.float32
        other = load_volume(tmp_path / "after.nii")
        assert type(other) is kind
        assert other.header.endianness == order
        assert other.get_data_dtype() == np.dtype("int16").newbyteorder(order)
        np.testing.assert_array_equal(other.dataobj.get_unscaled(), raw)
        write(tmp_path / "much.nii", before.pixels * 10, like=before)
        clipped = load_volume(tmp_path / "much.nii").dataobj.get_unscaled()
        assert (clipped.min(), clipped.max()) == (-32768, 32767)

    def test_a_larger_grid_covers_the_same_box(self, tmp_path):
        original = nibabel.Nifti1Image(pixels((6, 4, 2)), self.AFFINE)
        original.set_qform(self.AFFINE, 1)
        original.to_filename(tmp_path / "a.nii")
        before = read(tmp_path / "a.nii")
        after = read(
            write(tmp_path / "b.nii", before.pixels.repeat(2, 0).repeat(2, 1).repeat(2, 2), like=before)
        )
        assert after.spacing == (1.5, 1.0, 0.75)
        other = load_volume(tmp_path / "b.nii")
        for affine in (other.affine, other.get_qform(), other.get_sform()):
            corner, end = affine @ [-0.5, -0.5, -0.5, 1], affine @ [11.5, 7.5, 3.5, 1]
            np.testing.assert_allclose(corner, self.AFFINE @ [-0.5, -0.5, -0.5, 1], atol=1e-5)
            np.testing.assert_allclose(end, self.AFFINE @ [5.5, 3.5, 1.5, 1], atol=1e-5)

    def test_a_series_of_one_volume(self, tmp_path):
        path = tmp_path / "one.nii.gz"
        values = np.arange(140, dtype=np.int16).reshape(7, 5, 4, 1)
        nibabel.Nifti1Image(values, np.diag([1.0, 2.0, 3.0, 1.0])).to_filename(path)
        picture = read(path)
        assert picture.shape == (4, 5, 7)
        assert picture.spacing == (3.0, 2.0, 1.0)
        write(tmp_path / "again.nii", picture)
        again = load_volume(tmp_path / "again.nii")
        assert again.shape == (7, 5, 4)
        assert np.array_equal(again.affine, np.diag([1.0, 2.0, 3.0, 1.0]))

    def test_vectors_and_colours_are_refused(self, tmp_path):
        nibabel.Nifti1Image(pixels((5, 4, 3, 2, 2)), np.eye(4)).to_filename(tmp_path / "a.nii")
        refused(lambda: read(tmp_path / "a.nii"), "(5, 4, 3, 2, 2)", "Split")
        nibabel.Nifti1Image(pixels((5, 4, 3, 1, 3)), np.eye(4)).to_filename(tmp_path / "c.nii")
        refused(lambda: read(tmp_path / "c.nii"), "3 values for each voxel", "Split")
        colours = np.zeros((5, 4, 3), [("R", "u1"), ("G", "u1"), ("B", "u1")])
        nibabel.Nifti1Image(colours, np.eye(4)).to_filename(tmp_path / "b.nii")
        refused(lambda: read(tmp_path / "b.nii"), "not grey values")


class TestMrc:
    @pytest.mark.parametrize("dtype", ["int8", "int16", "uint16", "float16", "float32"])
    @pytest.mark.parametrize("shape", [(5, 7), (4, 5, 7)], ids=str)
    def test_round_trip(self, tmp_path, dtype, shape):
        image = pixels(shape, dtype) / 8 if dtype == "float16" else pixels(shape, dtype)
        path = tmp_path / "a.mrc"
        with mrcfile.new(path, image) as file:
            file.voxel_size = (1.5, 2.5, 3.5)
            file.header.origin.x = 12.0
            file.add_label("a remark")
            file.set_extended_header(np.frombuffer(b"something more  ", "V1"))
            file.header.exttyp = b"CCP4"
        before, after = there_and_back(path)
        for picture in (before, after):
            assert picture.dtype == np.dtype(dtype)
            assert picture.spacing == pytest.approx((3.5, 2.5, 1.5)[-len(shape) :])
            assert picture.unit == "Å"
            assert "a remark" in (picture.description or "")
            np.testing.assert_array_equal(picture.pixels, image)
        if dtype != "float16":  # whose squares are too large for the validator
            assert mrcfile.validate(tmp_path / "after.mrc")
        with mrcfile.open(tmp_path / "after.mrc") as file:
            assert file.header.origin.x == 12.0
            assert file.extended_header.tobytes() == b"something more  "
            assert file.header.dmax == image.max()

    def test_order_of_axes(self, tmp_path):
        with mrcfile.new(tmp_path / "a.map", pixels((4, 5, 7), "int16")) as file:
            file.voxel_size = (1.0, 2.0, 3.0)
            file.header.mapc, file.header.mapr, file.header.maps = 3, 2, 1
        assert read(tmp_path / "a.map").spacing == pytest.approx((1.0, 2.0, 3.0))

    def test_big_endian(self, tmp_path):
        image = pixels((4, 5, 7), "int16")
        with mrcfile.new(tmp_path / "a.mrc") as file:
            file.set_data(image)
            file._header = file._header.byteswap().view(file._header.dtype.newbyteorder())
            file._header.machst = [0x11, 0x11, 0, 0]
            file._data = image.astype(">i2")
        picture = read(tmp_path / "a.mrc")
        np.testing.assert_array_equal(picture.pixels, image)

    def test_a_larger_grid_covers_the_same_box(self, tmp_path):
        with mrcfile.new(tmp_path / "a.mrc", pixels((4, 5, 7), "int16")) as file:
            file.voxel_size = (1.5, 2.5, 3.5)
        before = read(tmp_path / "a.mrc")
        after = read(write(tmp_path / "b.mrc", np.zeros((8, 10, 14)), like=before))
        assert after.spacing == pytest.approx((1.75, 1.25, 0.75))

    def test_unknown_size(self, tmp_path):
        assert read(write(tmp_path / "a.mrc", pixels((5, 7), "int16"))).spacing is None

    def test_complex_numbers_and_stacks_of_volumes_are_refused(self, tmp_path):
        mrcfile.write(tmp_path / "a.mrc", np.zeros((4, 5), np.complex64))
        refused(lambda: read(tmp_path / "a.mrc"), "complex64")
        mrcfile.write(tmp_path / "b.mrc", np.zeros((2, 3, 4, 5), np.int16))
        refused(lambda: read(tmp_path / "b.mrc"), "stack of volumes")
