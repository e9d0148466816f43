"""TIFF: types, pages, planes, alpha, ImageJ and OME."""

import re
from typing import Any

import numpy as np
import pytest
from PIL import Image

from aniso.io import Picture, read, write
from tests.io.files import FLOATS, INTEGERS, PROFILE, as_results, pixels, refused, there_and_back, tiff


class TestTiff:
    @pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
    @pytest.mark.parametrize("order", ["<", ">"], ids=["little", "big"])
    @pytest.mark.parametrize("compression", [None, "lzw", "zlib"])
    def test_types(self, tmp_path, dtype, order, compression):
        image = pixels((5, 7), dtype)
        path = tmp_path / "a.tif"
        tiff.imwrite(path, image, byteorder=order, compression=compression, metadata=None)
        before, after = there_and_back(path)
        for picture in (before, after):
            assert picture.dtype == np.dtype(dtype)
            assert picture.pixels.dtype.isnative
            np.testing.assert_array_equal(picture.pixels, image)
        with tiff.TiffFile(tmp_path / "after.tif") as file:
            assert file.byteorder == order
            assert (
                file.pages[0].compression.name
                == {None: "NONE", "lzw": "LZW", "zlib": "ADOBE_DEFLATE"}[compression]
            )

    @pytest.mark.parametrize("shape", [(4, 5, 7), (3, 5, 7), (4, 5, 3), (2, 5, 7, 3), (2, 5, 7, 4)], ids=str)
    @pytest.mark.parametrize("compression", [None, "lzw"])
    def test_pages(self, tmp_path, shape, compression):
        image = pixels(shape, "uint16")
        extra = ["unassalpha"] if shape[-1] == 4 else None
        kind = "rgb" if len(shape) == 4 else "minisblack"
        path = tmp_path / "a.tiff"
        options = {"compression": compression, "metadata": None}
        tiff.imwrite(path, image, photometric=kind, extrasamples=extra, **options)
        before, after = there_and_back(path)
        for picture in (before, after):
            assert picture.shape == shape[:3]
            assert picture.channels == (3 if len(shape) == 4 else None)
            np.testing.assert_array_equal(picture.samples(), image)
        with tiff.TiffFile(tmp_path / "after.tiff") as file:
            assert len(file.pages) == shape[0]

    @pytest.mark.parametrize("pages", [(), (3,)], ids=["one", "many"])
    @pytest.mark.parametrize("samples", [3, 4])
    def test_planes(self, tmp_path, pages, samples):
        image = pixels((*pages, samples, 5, 7))
        path = tmp_path / "a.tif"
        extra = {"extrasamples": ["assocalpha"]} if samples == 4 else {}
        tiff.imwrite(path, image, photometric="rgb", planarconfig="separate", metadata=None, **extra)
        before, after = there_and_back(path)
        for picture in (before, after):
            assert picture.channel_axis == -1
            assert picture.channels == 3
            np.testing.assert_array_equal(np.moveaxis(picture.samples(), -1, -3), image)
        with tiff.TiffFile(tmp_path / "after.tif") as file:
            assert file.pages[0].planarconfig.name == "SEPARATE"
            assert [extra.name for extra in file.pages[0].extrasamples] == ["ASSOCALPHA"] * (samples == 4)

    @pytest.mark.parametrize("code", ["unspecified", "assocalpha", "unassalpha"])
    def test_alpha_of_colours(self, tmp_path, code):
        image = pixels((5, 7, 4), "uint16")
        path = tmp_path / "a.tif"
        tiff.imwrite(path, image, photometric="rgb", extrasamples=[code], metadata=None)
        before, after = there_and_back(path)
        assert before.alpha is not None
        assert after.alpha is not None
        np.testing.assert_array_equal(before.alpha, image[..., 3])
        np.testing.assert_array_equal(after.samples(), image)
        with tiff.TiffFile(tmp_path / "after.tif") as file:
            assert file.pages[0].extrasamples[0].name == code.upper()

    def test_alpha_of_grey(self, tmp_path):
        image = pixels((5, 7, 2), "float32")
        options = {"photometric": "minisblack", "planarconfig": "contig", "metadata": None}
        tiff.imwrite(tmp_path / "a.tif", image, extrasamples=["unassalpha"], **options)
        before, after = there_and_back(tmp_path / "a.tif")
        assert before.channel_axis is None
        np.testing.assert_array_equal(after.samples(), image)

    def test_many_bands_are_channels(self, tmp_path):
        image = pixels((5, 7, 6), "uint16")
        path = tmp_path / "a.tif"
        tiff.imwrite(path, image, photometric="minisblack", planarconfig="contig", metadata=None)
        before, after = there_and_back(path)
        for picture in (before, after):
            assert picture.channels == 6
            assert picture.alpha is None
            np.testing.assert_array_equal(picture.pixels, image)

    def test_alpha_among_other_channels_is_refused(self, tmp_path):
        path = tmp_path / "a.tif"
        extra = ["unspecified", "unassalpha"]
        tiff.imwrite(path, pixels((5, 7, 5)), photometric="rgb", extrasamples=extra, metadata=None)
        refused(lambda: read(path), "alpha among 2 additional channels")

    def test_predictors_and_other_compressions(self, tmp_path):
        image = pixels((50, 70), "uint16")
        for number, compression in enumerate(["zstd", "lzma", "packbits"]):
            path = tmp_path / f"{number}.tif"
            predictor = compression != "packbits"
            tiff.imwrite(path, image, compression=compression, predictor=predictor, metadata=None)
            _, after = there_and_back(path)
            np.testing.assert_array_equal(after.pixels, image)
            with tiff.TiffFile(path) as one, tiff.TiffFile(tmp_path / "after.tif") as other:
                assert one.pages[0].compression == other.pages[0].compression
                assert one.pages[0].predictor == other.pages[0].predictor
            (tmp_path / "after.tif").unlink()

    def test_lossy_compression_becomes_lossless(self, tmp_path):
        image = Image.fromarray(pixels((40, 56, 3)))
        image.save(tmp_path / "a.tif", compression="jpeg", quality=90)
        before, after = there_and_back(tmp_path / "a.tif")
        assert before.channels == 3
        np.testing.assert_array_equal(before.pixels, after.pixels)

    def test_large_file_format(self, tmp_path):
        tiff.imwrite(tmp_path / "a.tif", pixels((3, 5, 7)), bigtiff=True, photometric="minisblack")
        _, after = there_and_back(tmp_path / "a.tif")
        np.testing.assert_array_equal(after.pixels, pixels((3, 5, 7)))
        assert (tmp_path / "after.tif").read_bytes()[:4] == b"II+\0"

    @pytest.mark.parametrize("compression", ["raw", "group4"])
    def test_one_bit(self, tmp_path, compression):
        mask = pixels((9, 11)) > 100
        Image.fromarray(mask).save(tmp_path / "a.tif", compression=compression)
        before, after = there_and_back(tmp_path / "a.tif")
        np.testing.assert_array_equal(before.pixels, np.where(mask, 255, 0))
        np.testing.assert_array_equal(after.pixels, before.pixels)

    @pytest.mark.parametrize("dtype", ["bool", "uint8", "uint16"])
    def test_where_white_is_zero(self, tmp_path, dtype):
        image = pixels((9, 16)) > 100 if dtype == "bool" else pixels((9, 16), dtype)
        path = tmp_path / "a.tif"
        tiff.imwrite(path, image, photometric="miniswhite", metadata=None)
        shown = np.where(image, 0, 255) if dtype == "bool" else np.iinfo(dtype).max - image
        before, after = there_and_back(path)
        np.testing.assert_array_equal(before.pixels, shown)
        np.testing.assert_array_equal(after.pixels, shown)
        if dtype != "uint16":
            with Image.open(path) as other:
                np.testing.assert_array_equal(np.asarray(other.convert("L")), shown)

    @pytest.mark.parametrize("code", ["assocalpha", "unassalpha"])
    def test_where_white_is_zero_opaque_is_not(self, tmp_path, code):
        image = pixels((9, 16, 2))
        options = {"photometric": "miniswhite", "planarconfig": "contig", "metadata": None}
        tiff.imwrite(tmp_path / "a.tif", image, extrasamples=[code], **options)
        for picture in there_and_back(tmp_path / "a.tif"):
            np.testing.assert_array_equal(picture.pixels, 255 - image[..., 0])
            np.testing.assert_array_equal(picture.alpha, image[..., 1])

    def test_white_as_zero_of_floats_is_refused(self, tmp_path):
        path = tmp_path / "a.tif"
        tiff.imwrite(path, pixels((5, 7), "float32"), photometric="miniswhite", metadata=None)
        refused(lambda: read(path), "0 is white", "float32")

    @pytest.mark.parametrize(("bits", "factor"), [(4, 17), (12, 1)])
    def test_odd_depths(self, tmp_path, bits, factor):
        image = pixels((5, 7, 3), "uint16") >> (16 - bits)
        image = image.astype(np.uint8) if bits < 8 else image
        path = tmp_path / "a.tif"
        tiff.imwrite(path, image, photometric="rgb", bitspersample=bits, metadata=None)
        np.testing.assert_array_equal(read(path).pixels, image * image.dtype.type(factor))

    def test_a_palette_becomes_rgb(self, tmp_path):
        image = Image.fromarray(pixels((9, 11, 3))).quantize(7)
        image.save(tmp_path / "a.tif")
        before, after = there_and_back(tmp_path / "a.tif")
        np.testing.assert_array_equal(before.pixels, np.asarray(image.convert("RGB")))
        np.testing.assert_array_equal(after.pixels, before.pixels)

    def test_false_colours_of_measurements_stay_grey(self, tmp_path):
        image, colours = pixels((5, 7)), pixels((3, 256))
        options = {"imagej": True, "metadata": {"LUTs": [colours]}}
        tiff.imwrite(
            tmp_path / "a.tif",
            image,
            colormap=colours.astype(np.uint16) << 8,
            photometric="palette",
            **options,
        )
        before, after = there_and_back(tmp_path / "a.tif")
        np.testing.assert_array_equal(before.pixels, image)
        np.testing.assert_array_equal(after.pixels, image)
        with tiff.TiffFile(tmp_path / "after.tif") as file:
            np.testing.assert_array_equal(file.pages[0].colormap, colours.astype(np.uint16) << 8)

    def test_what_goes_with_it(self, tmp_path):
        path = tmp_path / "a.tif"
        tags = [(274, 3, 1, 3, True), (33550, 12, 3, (30.0, 30.0, 0.0), True), (315, 2, 0, "somebody", True)]
        options: dict[str, Any] = {
            "iccprofile": PROFILE,
            "extratags": tags,
            "metadata": None,
            "photometric": "rgb",
        }
        options |= {
            "description": "a remark",
            "resolution": ((118, 1), (2, 3)),
            "resolutionunit": "CENTIMETER",
        }
        tiff.imwrite(path, pixels((5, 7, 3), "uint16"), datetime="2020:01:02 03:04:05", **options)
        before, after = there_and_back(path)
        for picture in (before, after):
            assert picture.icc_profile == PROFILE
            assert picture.resolution == pytest.approx((2 / 3 * 2.54, 118 * 2.54))
            assert picture.orientation == 3
            assert picture.description == "a remark"
            assert picture.spacing is None
        with tiff.TiffFile(path) as one, tiff.TiffFile(tmp_path / "after.tif") as other:
            for code in (270, 274, 282, 283, 296, 305, 306, 315, 33550, 34675):
                assert other.pages[0].tags[code].value == one.pages[0].tags[code].value, code

    def test_unicode_in_the_description(self, tmp_path):
        write(tmp_path / "a.tif", Picture(pixels((5, 7)), description="Grüße, σ = 2 µm"))
        assert read(tmp_path / "a.tif").description == "Grüße, σ = 2 µm"

    @pytest.mark.parametrize("axes", ["ZYX", "YX", "CYX", "ZCYX"])
    def test_imagej(self, tmp_path, axes):
        shape = tuple({"Z": 4, "C": 2, "Y": 5, "X": 7}[axis] for axis in axes)
        image = pixels(shape, "uint16")
        path = tmp_path / "a.tif"
        notes = {"axes": axes, "spacing": 3.5, "unit": "micron"}
        tiff.imwrite(path, image, imagej=True, resolution=(2.0, 4.0), metadata=notes)
        before, after = there_and_back(path)
        for picture in (before, after):
            assert picture.unit == "micron"
            assert picture.spacing == ((3.5, 0.25, 0.5) if "Z" in axes else (0.25, 0.5))
            assert picture.channels == (2 if "C" in axes else None)
        with tiff.TiffFile(path) as one, tiff.TiffFile(tmp_path / "after.tif") as other:
            assert one.series[0].axes == other.series[0].axes == axes
            assert one.imagej_metadata == other.imagej_metadata
            np.testing.assert_array_equal(other.asarray(), image)

    @pytest.mark.parametrize("written", [r"\u00B5m", "um", "µm", "micron"])
    def test_micrometres_of_imagej(self, tmp_path, written):
        text = f"ImageJ=1.54f\nunit={written}\n".encode()
        options = {"metadata": None, "resolution": (2.0, 4.0), "resolutionunit": 1, "description": text}
        tiff.imwrite(tmp_path / "a.tif", pixels((5, 7)), **options)
        picture = read(tmp_path / "a.tif")
        assert (picture.spacing, picture.unit) == ((0.25, 0.5), written.replace(r"\u00B5", "µ"))

    def test_each_axis_of_ome_has_its_unit(self, tmp_path):
        notes = {"axes": "ZYX", "PhysicalSizeX": 0.5, "PhysicalSizeXUnit": "µm", "PhysicalSizeY": 0.5}
        notes |= {"PhysicalSizeYUnit": "&#181;m", "PhysicalSizeZ": 2000.0, "PhysicalSizeZUnit": "nm"}
        tiff.imwrite(tmp_path / "a.ome.tif", pixels((4, 5, 7)), ome=True, metadata=notes)
        picture = read(tmp_path / "a.ome.tif")
        assert picture.spacing == pytest.approx((2.0, 0.5, 0.5))
        assert picture.unit == "µm"

    def test_ome(self, tmp_path):
        path = tmp_path / "a.ome.tif"
        notes = {"axes": "ZYX", "PhysicalSizeX": 0.5, "PhysicalSizeXUnit": "µm"}
        notes |= {"PhysicalSizeY": 0.25, "PhysicalSizeZ": 2.0}
        tiff.imwrite(path, pixels((4, 5, 7), "uint16"), ome=True, metadata=notes)
        before = read(path)
        after = read(write(tmp_path / "b.ome.tif", as_results(before), like=before))
        for picture in (before, after):
            assert picture.spacing == (2.0, 0.25, 0.5)
            assert picture.unit == "µm"
        with tiff.TiffFile(path) as one, tiff.TiffFile(tmp_path / "b.ome.tif") as other:
            before, after = (tiff.xml2dict(file.ome_metadata)["OME"] for file in (one, other))
        assert before.pop("UUID")
        assert before["Image"]["Pixels"].pop("TiffData")
        assert not after["Image"]["Pixels"].pop("TiffData")
        assert before == after

    @pytest.mark.parametrize("space", ["", "ome:"])
    def test_ome_names_no_other_file(self, tmp_path, space):
        """The pixels of a result are its own, and not those of the file it was made from."""
        path = tmp_path / "cells.ome.tif"
        tiff.imwrite(path, pixels((3, 5, 7)), ome=True, metadata={"axes": "ZYX"})
        text = tiff.tiffcomment(path)
        name = '<UUID FileName="cells.ome.tif">urn:uuid:8d7d3a2e-3a1c-4f9c-9a51-2d6c9f1a0b77</UUID>'
        planes = "".join(
            f'<TiffData FirstZ="{z}" IFD="{z}" PlaneCount="1">\n{name}\n</TiffData>' for z in range(3)
        )
        text = re.sub("<TiffData.*?/>", planes, text)
        if space:
            text = re.sub(r"<(/?)(?=[A-Z])", rf"<\1{space}", text).replace("xmlns=", "xmlns:ome=")
        tiff.tiffcomment(path, text.encode())
        before = read(path)
        write(tmp_path / "after.ome.tif", 255 - before.pixels[:, :4], like=before)
        path.unlink()
        with tiff.TiffFile(tmp_path / "after.ome.tif") as file:
            assert "UUID" not in file.ome_metadata
            assert "cells.ome.tif" not in file.ome_metadata
            assert file.ome_metadata.count("TiffData") == 1
            assert file.series[0].axes == "ZYX"
            np.testing.assert_array_equal(file.series[0].asarray(), 255 - before.pixels[:, :4])

    def test_ome_that_is_in_another_file_is_not_kept(self, tmp_path):
        text = '<OME><BinaryOnly MetadataFile="a.companion.ome" UUID="urn:uuid:1"/></OME>'
        tiff.imwrite(tmp_path / "a.tif", pixels((5, 7)), metadata=None, description=text)
        write(tmp_path / "b.tif", read(tmp_path / "a.tif"))
        with tiff.TiffFile(tmp_path / "b.tif") as file:
            assert "companion" not in file.pages[0].description

    def test_ome_that_tells_of_more_files_is_not_kept(self, tmp_path):
        tiff.imwrite(tmp_path / "a.ome.tif", pixels((2, 5, 7)), ome=True, metadata={"axes": "ZYX"})
        text = tiff.tiffcomment(tmp_path / "a.ome.tif").replace('SizeZ="2"', 'SizeZ="4"')
        other = '<TiffData FirstZ="2" IFD="0" PlaneCount="2"><UUID FileName="b">urn:uuid:1</UUID></TiffData>'
        text = re.sub("(<TiffData.*?/>)", rf"\1{other}", text)
        tiff.tiffcomment(tmp_path / "a.ome.tif", text.encode())
        write(tmp_path / "c.tif", read(tmp_path / "a.ome.tif"))
        with tiff.TiffFile(tmp_path / "c.tif") as file:
            assert not file.is_ome
            assert file.series[0].shape == (2, 5, 7)

    def test_finer_ome_with_units_of_its_own(self, tmp_path):
        notes = {"axes": "YX", "PhysicalSizeX": 0.5, "PhysicalSizeXUnit": "µm", "PhysicalSizeY": 500.0}
        notes |= {"PhysicalSizeYUnit": "nm"}
        tiff.imwrite(tmp_path / "a.ome.tif", pixels((5, 7)), ome=True, metadata=notes)
        before = read(tmp_path / "a.ome.tif")
        after = read(write(tmp_path / "b.ome.tif", np.zeros((10, 14)), like=before))
        assert (after.spacing, after.unit) == ((0.25, 0.25), "µm")

    def test_numpy_shapes_of_tifffile(self, tmp_path):
        tiff.imwrite(tmp_path / "a.tif", pixels((3, 5, 7), "float32"), photometric="minisblack")
        before, after = there_and_back(tmp_path / "a.tif")
        assert before.description is None
        np.testing.assert_array_equal(after.pixels, pixels((3, 5, 7), "float32"))
        write(tmp_path / "large.tif", np.zeros((3, 10, 14)), like=before)
        assert read(tmp_path / "large.tif").shape == (3, 10, 14)

    def test_a_thumbnail_is_passed_over(self, tmp_path):
        with tiff.TiffWriter(tmp_path / "a.tif") as file:
            file.write(pixels((50, 70)), metadata=None)
            file.write(pixels((5, 7)), subfiletype=1, metadata=None)
        assert read(tmp_path / "a.tif").shape == (50, 70)

    def test_pages_of_different_sizes_are_refused(self, tmp_path):
        with tiff.TiffWriter(tmp_path / "a.tif") as file:
            file.write(pixels((50, 70)), metadata=None)
            file.write(pixels((50, 60)), metadata=None)
        refused(lambda: read(tmp_path / "a.tif"), "2 images of different sizes", "50 × 60", "Split")

    def test_too_many_axes_are_refused(self, tmp_path):
        tiff.imwrite(tmp_path / "a.tif", pixels((2, 3, 5, 7), "uint16"), photometric="minisblack")
        refused(lambda: read(tmp_path / "a.tif"), "axes QQYX", "Split")

    def test_inks_and_complex_numbers_are_refused(self, tmp_path):
        Image.fromarray(pixels((8, 8, 4)), "CMYK").save(tmp_path / "a.tif")
        refused(lambda: read(tmp_path / "a.tif"), "SEPARATED", "RGB")
        tiff.imwrite(tmp_path / "b.tif", np.zeros((4, 4), np.complex64), metadata=None)
        refused(lambda: read(tmp_path / "b.tif"), "complex64")
