"""Files: what is read is what was stored, what is written is whole, and what is broken is refused."""

import dataclasses
import errno
import gzip
import io as streams
import os
import re
import stat
import struct
import subprocess
import sys
import textwrap
import time
import zlib
from pathlib import Path
from typing import Any

import imagecodecs
import mrcfile
import nibabel
import numpy as np
import pytest
import tifffile
from PIL import Image, ImageCms

import aniso
from aniso.io import FileError, Picture, check_output, formats, read, write
from aniso.io.exif import with_orientation as exif_with_orientation
from aniso.io.picture import as_dtype

PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
# Their annotations are too strict for options in a dictionary, and too general for a volume.
tiff: Any = tifffile
load_volume: Any = nibabel.load
INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "float32", "float64"]


def pixels(shape, dtype="uint8", seed=0):
    """Random values over the whole range of integers; ordinary numbers as floats."""
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return random.normal(0, 100, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def as_results(picture):
    """The pixels as a filter that changes nothing returns them; doubles, which hold 32-bit integers."""
    return picture.pixels.astype(np.float64)


def there_and_back(path, **changes):
    """A file, and what is read again after its pixels went through floats."""
    before = read(path)
    suffix = formats.suffix_of(path)
    result = as_results(before) if before.dtype.itemsize < 8 else before.pixels
    after = read(write(path.with_name(f"after{suffix}"), result, like=dataclasses.replace(before, **changes)))
    return before, after


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")


def png(width, height, depth, colour, rows, *chunks):
    """A PNG file made by hand; rows begin with their filter byte."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    middle = b"".join(chunks) + chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + head + middle + chunk(b"IEND", b"")


def with_chunks(data, *chunks):
    return data[:33] + b"".join(chunks) + data[33:]


def encoded(image, kind, **options):
    stream = streams.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def saved(path, data):
    path.write_bytes(data)
    return path


def refused(call, *parts, folder=None):
    """One sentence or two that say what, why and what to do; and no trace in the folder."""
    before = None if folder is None else contents(folder)
    with pytest.raises(FileError) as caught:
        call()
    message = str(caught.value)
    for part in parts:
        assert part in message, f"{part!r} is not in {message!r}"
    assert "\n" not in message
    assert len(message) < 500
    assert re.search(r"[.']$", message), f"not a sentence: {message!r}"
    if folder is not None:
        assert contents(folder) == before


def contents(folder):
    """Every file with its bytes; a temporary one that was left behind would show."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


@pytest.fixture(autouse=True)
def _no_temporary_files(tmp_path):
    yield
    assert not [path for path in tmp_path.rglob(".*") if path.is_file()]


class TestPng:
    @pytest.mark.parametrize("dtype", ["uint8", "uint16"])
    @pytest.mark.parametrize("samples", [1, 2, 3, 4], ids=["grey", "grey+alpha", "colour", "colour+alpha"])
    def test_round_trip(self, tmp_path, dtype, samples):
        image = pixels((5, 7, samples), dtype)
        image = image[..., 0] if samples == 1 else image
        path = saved(tmp_path / "a.png", imagecodecs.png_encode(image))
        before, after = there_and_back(path)
        for picture in (before, after):
            assert picture.format == "PNG"
            assert picture.dtype == dtype
            assert picture.channels == (3 if samples > 2 else None)
            assert picture.shape == (5, 7)
            assert (picture.alpha is not None) == (samples % 2 == 0)
            np.testing.assert_array_equal(picture.samples(), image)
        np.testing.assert_array_equal(imagecodecs.png_decode((tmp_path / "after.png").read_bytes()), image)

    def test_pillow_agrees(self, tmp_path):
        write(tmp_path / "a.png", image := pixels((5, 7, 4)))
        with Image.open(tmp_path / "a.png") as other:
            np.testing.assert_array_equal(np.asarray(other), image)

    def test_shallow_grey_is_widened(self, tmp_path):
        path = saved(tmp_path / "a.png", png(4, 2, 4, 0, b"\0\x01\x23\0\xef\x80"))
        assert read(path).pixels.tolist() == [[0, 17, 34, 51], [238, 255, 136, 0]]
        mask = pixels((5, 7)) > 100
        path = saved(tmp_path / "b.png", encoded(Image.fromarray(mask), "PNG"))
        picture = read(path)
        assert picture.dtype == np.uint8
        np.testing.assert_array_equal(picture.pixels, np.where(mask, 255, 0))

    def test_a_palette_becomes_rgb(self, tmp_path):
        image = Image.fromarray(pixels((9, 11, 3))).quantize(7)
        picture = read(saved(tmp_path / "a.png", encoded(image, "PNG")))
        assert picture.channels == 3
        np.testing.assert_array_equal(picture.pixels, np.asarray(image.convert("RGB")))

    def test_a_transparent_colour_becomes_alpha(self, tmp_path):
        rows = b"\0" + struct.pack(">HH", 1, 2)
        path = saved(tmp_path / "a.png", png(2, 1, 16, 0, rows, chunk(b"tRNS", struct.pack(">H", 2))))
        picture = read(path)
        assert picture.alpha is not None
        assert picture.pixels.tolist() == [[1, 2]]
        assert picture.alpha.tolist() == [[65535, 0]]

    def test_what_goes_with_it(self, tmp_path):
        exif = exif_with_orientation(6)
        assert exif is not None
        extra = [
            chunk(b"iCCP", b"some name\0\0" + zlib.compress(PROFILE)),
            chunk(b"gAMA", struct.pack(">I", 45455)),
            chunk(b"pHYs", struct.pack(">IIB", 2835, 5670, 1)),
            chunk(b"eXIf", exif),
            chunk(b"tEXt", b"Title\0A title"),
        ]
        data = with_chunks(imagecodecs.png_encode(pixels((5, 7, 3), "uint16")), *extra)
        before, after = there_and_back(saved(tmp_path / "a.png", data))
        for picture in (before, after):
            assert picture.icc_profile == PROFILE
            assert picture.resolution == pytest.approx((144.018, 72.009))
            assert picture.orientation == 6
            assert picture.exif == exif
        bytes_after = (tmp_path / "after.png").read_bytes()
        assert all(part in bytes_after for part in extra[1:])
        with Image.open(tmp_path / "after.png") as image:
            image.load()
            assert image.info["icc_profile"] == PROFILE
            assert image.info["Title"] == "A title"

    def test_the_shape_of_pixels_alone_is_kept(self, tmp_path):
        body = chunk(b"pHYs", struct.pack(">IIB", 2, 1, 0))
        before, _ = there_and_back(
            saved(tmp_path / "a.png", with_chunks(imagecodecs.png_encode(pixels((5, 7))), body))
        )
        assert before.resolution is None
        assert body in (tmp_path / "after.png").read_bytes()

    def test_a_broken_profile_does_not_matter(self, tmp_path):
        data = with_chunks(imagecodecs.png_encode(pixels((5, 7))), chunk(b"iCCP", b"name\0\0nonsense"))
        assert read(saved(tmp_path / "a.png", data)).icc_profile is None

    def test_an_animation_is_refused(self, tmp_path):
        frames = [Image.fromarray(pixels((5, 7), seed=seed)) for seed in range(3)]
        data = encoded(frames[0], "PNG", save_all=True, append_images=frames[1:])
        refused(lambda: read(saved(tmp_path / "a.png", data)), "is an animation", "one frame")


class TestJpeg:
    @pytest.mark.parametrize("shape", [(40, 56), (40, 56, 3)], ids=["grey", "colour"])
    def test_round_trip(self, tmp_path, shape):
        ramp = np.linspace(20, 230, 56).astype(np.uint8)
        image = np.broadcast_to(ramp.reshape((1, 56, 1)[: len(shape)]), shape)
        data = encoded(Image.fromarray(image), "JPEG", quality=95, subsampling=0)
        before, after = there_and_back(saved(tmp_path / "a.jpg", data))
        with Image.open(tmp_path / "a.jpg") as other:
            np.testing.assert_array_equal(before.pixels, np.asarray(other))
        assert before.dtype == after.dtype == np.uint8
        assert np.abs(after.pixels.astype(int) - image).max() <= 4

    def test_colours_are_not_subsampled_and_quality_counts(self, tmp_path):
        checks = np.zeros((32, 32, 3), np.uint8)
        checks[:, ::2, 0] = checks[:, 1::2, 2] = 255
        path = write(tmp_path / "fine.jpg", checks)
        assert np.abs(read(path).pixels.astype(int) - checks).mean() < 5
        noise = pixels((64, 64))
        small, large = (write(tmp_path / f"{q}.jpeg", noise, quality=q).stat().st_size for q in (40, 95))
        assert small < 0.6 * large
        assert large == write(tmp_path / "default.jpg", noise).stat().st_size

    @pytest.mark.parametrize("quality", [0, 101, -5])
    def test_no_such_quality(self, tmp_path, quality):
        refused(lambda: write(tmp_path / "a.jpg", pixels((5, 7)), quality=quality), "1 to 100", str(quality))

    def test_what_goes_with_it(self, tmp_path):
        tags = Image.Exif()
        tags[274], tags[271] = 8, "a camera"
        image = Image.fromarray(pixels((40, 56, 3)))
        options = {"icc_profile": PROFILE, "exif": tags, "dpi": (300, 150), "comment": b"a remark"}
        data = encoded(image, "JPEG", xmp=b"<x:xmpmeta/>", progressive=True, **options)
        before, after = there_and_back(saved(tmp_path / "a.jpg", data))
        for picture in (before, after):
            assert picture.icc_profile == PROFILE
            assert picture.resolution == (150, 300)
            assert picture.orientation == 8
            assert picture.description == "a remark"
            assert picture.shape == (40, 56)  # pixels are not turned
        assert before.exif == after.exif
        with Image.open(tmp_path / "after.jpg") as other:
            assert other.getexif()[271] == "a camera"
            assert other.info["xmp"] == b"<x:xmpmeta/>"
            assert other.info["progressive"]

    def test_inks_are_refused(self, tmp_path):
        data = encoded(Image.fromarray(pixels((8, 8, 4)), "CMYK"), "JPEG")
        refused(lambda: read(saved(tmp_path / "a.jpg", data)), "CMYK", "Convert it to RGB")

    def test_photographs_of_200_megapixels_are_no_bombs(self, tmp_path, monkeypatch):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
        path = write(tmp_path / "a.jpg", pixels((40, 40)))
        assert read(path).shape == (40, 40)

    def test_progressive_ones_of_much_noise(self, tmp_path):
        """At the best quality they take more bytes than Pillow has room for."""
        picture = Picture(pixels((700, 900, 3)), channel_axis=-1, details={"progressive": True})
        path = write(tmp_path / "a.jpg", picture, quality=100)
        assert np.abs(read(path).pixels.astype(int) - picture.pixels).mean() < 2


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
        notes = {"axes": "TZYX"}
        tiff.imwrite(tmp_path / "a.tif", pixels((2, 3, 5, 7), "uint16"), imagej=True, metadata=notes)
        refused(lambda: read(tmp_path / "a.tif"), "axes TZYX", "Split")

    def test_inks_and_complex_numbers_are_refused(self, tmp_path):
        Image.fromarray(pixels((8, 8, 4)), "CMYK").save(tmp_path / "a.tif")
        refused(lambda: read(tmp_path / "a.tif"), "SEPARATED", "RGB")
        tiff.imwrite(tmp_path / "b.tif", np.zeros((4, 4), np.complex64), metadata=None)
        refused(lambda: read(tmp_path / "b.tif"), "complex64")


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

    def test_series_and_colours_are_refused(self, tmp_path):
        nibabel.Nifti1Image(pixels((5, 4, 3, 2)), np.eye(4)).to_filename(tmp_path / "a.nii")
        refused(lambda: read(tmp_path / "a.nii"), "(5, 4, 3, 2)", "Split")
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
            ("a.jpg", (5, 7, 4), "uint8", ("JPEG", "no transparency", "alpha=None")),
            ("a.jpg", (1, 70000), "uint8", ("JPEG", "65500", "70000")),
            ("a.png", (9, 5, 7), "uint8", ("PNG", "(9, 5, 7)", "stacks")),
            ("a.tif", (2, 9, 5, 7), "uint8", ("TIFF", "(2, 9, 5, 7)", ".npy")),
            ("a.mrc", (9, 5, 7), "float64", ("MRC", "float64")),
            ("a.nii", (9, 5, 7), "float16", ("NIfTI", "float16")),
            ("a.nii", (2, 9, 5, 7), "uint8", ("NIfTI", "(2, 9, 5, 7)", ".npy")),
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


MAKERS = {
    ".png": lambda path: path.write_bytes(imagecodecs.png_encode(pixels((50, 70, 3), "uint16"))),
    ".jpg": lambda path: path.write_bytes(encoded(Image.fromarray(pixels((50, 70, 3))), "JPEG")),
    ".tif": lambda path: tiff.imwrite(path, pixels((4, 50, 70)), photometric="minisblack", metadata=None),
    ".npy": lambda path: np.save(path, pixels((50, 70))),
    ".nii": lambda path: nibabel.Nifti1Image(pixels((20, 30, 4)), np.eye(4)).to_filename(path),
    ".nii.gz": lambda path: nibabel.Nifti1Image(pixels((20, 30, 4)), np.eye(4)).to_filename(path),
    ".mrc": lambda path: mrcfile.write(path, pixels((20, 30), "int16")),
}
# TIFF files differ in where they keep the list of pages.
MORE_TIFFS: dict[str, Any] = {
    "lzw": {"compression": "lzw"},
    "zlib": {"compression": "zlib", "predictor": True},
    "tiled": {"tile": (16, 16)},
    "shaped": {"metadata": {}},
    "big": {"bigtiff": True, "byteorder": ">"},
    "imagej": {"imagej": True, "metadata": {"axes": "ZYX"}},
}
every_suffix = pytest.mark.parametrize("suffix", MAKERS)


class TestBrokenFiles:
    @every_suffix
    @pytest.mark.parametrize("part", [0.002, 0.1, 0.5, 0.9, 0.998])
    def test_cut_short(self, tmp_path, suffix, part):
        MAKERS[suffix](tmp_path / f"whole{suffix}")
        data = (tmp_path / f"whole{suffix}").read_bytes()
        path = saved(tmp_path / f"cut{suffix}", data[: max(int(part * len(data)), 1)])
        refused(lambda: read(path), str(path), folder=tmp_path)

    @pytest.mark.parametrize("kind", MORE_TIFFS)
    def test_every_cut_of_a_tiff(self, tmp_path, kind):
        path = tmp_path / "a.tif"
        tiff.imwrite(
            path, pixels((4, 16, 20)), photometric="minisblack", **{"metadata": None, **MORE_TIFFS[kind]}
        )
        data = path.read_bytes()
        assert read(path).shape == (4, 16, 20)
        for length in range(1, len(data) - 20, 97):
            refused(lambda length=length: read(saved(path, data[:length])), str(path))

    def test_every_cut_of_a_pillow_tiff(self, tmp_path):
        """The list of pages is spread over the file; a cut must not read as fewer pages."""
        frames = [Image.fromarray(pixels((16, 20, 3), seed=seed)) for seed in range(3)]
        data = encoded(frames[0], "TIFF", save_all=True, append_images=frames[1:], compression="tiff_lzw")
        path = saved(tmp_path / "a.tif", data)
        assert read(path).shape == (3, 16, 20)
        for length in range(1, len(data) - 20, 97):
            refused(lambda length=length: read(saved(path, data[:length])), str(path))

    def test_pages_in_a_circle(self, tmp_path):
        MAKERS[".tif"](tmp_path / "a.tif")
        data = bytearray((tmp_path / "a.tif").read_bytes())
        (first,) = struct.unpack_from("<I", data, 4)
        (entries,) = struct.unpack_from("<H", data, first)
        struct.pack_into("<I", data, first + 2 + 12 * entries, first)
        refused(lambda: read(saved(tmp_path / "b.tif", data)), "circle")
        struct.pack_into("<I", data, 4, 0)
        refused(lambda: read(saved(tmp_path / "c.tif", data)), "no page")

    @every_suffix
    def test_empty(self, tmp_path, suffix):
        refused(lambda: read(saved(tmp_path / f"a{suffix}", b"")), "is empty")

    @every_suffix
    @pytest.mark.parametrize("seed", range(3))
    def test_random_bytes(self, tmp_path, suffix, seed):
        data = np.random.default_rng(seed).bytes(5000)
        refused(lambda: read(saved(tmp_path / f"a{suffix}", data)), "is not a", "begins with")

    @every_suffix
    @pytest.mark.parametrize("seed", range(3))
    def test_random_bytes_behind_a_good_beginning(self, tmp_path, suffix, seed):
        head = bytearray(600)
        format = formats.format_of(Path(f"a{suffix}"))
        start, mark = format.marks[0]
        head[start : start + len(mark)] = mark
        data = bytes(head[: start + len(mark)]) + np.random.default_rng(seed).bytes(5000)
        refused(lambda: read(saved(tmp_path / f"a{suffix}", data)), f"a{suffix}")

    @every_suffix
    def test_text(self, tmp_path, suffix):
        path = saved(tmp_path / f"a{suffix}", b"This is a letter.\n" * 100)
        refused(lambda: read(path), "is not a", "b'This is '", folder=tmp_path)

    def test_another_kind_of_image(self, tmp_path):
        MAKERS[".jpg"](tmp_path / "photo.png")
        refused(lambda: read(tmp_path / "photo.png"), "is a JPEG file, not a PNG file", "photo.jpg.")

    @pytest.mark.parametrize("place", [40, 60, 200, 2000])
    def test_a_flipped_byte_in_a_png(self, tmp_path, place):
        data = bytearray(imagecodecs.png_encode(pixels((50, 70))))
        data[place] ^= 0xFF
        refused(lambda: read(saved(tmp_path / "a.png", bytes(data))), "damaged")

    def test_a_flipped_byte_in_a_text(self, tmp_path):
        """Decoders pass over it; what goes back into the result should be right."""
        text = chunk(b"tEXt", b"Title\0A title").replace(b"A title", b"B title")
        data = with_chunks(imagecodecs.png_encode(pixels((5, 7))), text)
        refused(lambda: read(saved(tmp_path / "a.png", data)), "a checksum does not match")

    def test_pixels_beyond_the_end_of_a_tiff(self, tmp_path):
        path = tmp_path / "a.tif"
        for compression in (None, "lzw"):
            tiff.imwrite(path, pixels((50, 70)), compression=compression, rowsperstrip=8, metadata=None)
            data = path.read_bytes()
            refused(lambda data=data: read(saved(path, data[:-1])), "is cut short:")

    def test_a_damaged_volume(self, tmp_path):
        MAKERS[".nii.gz"](tmp_path / "a.nii.gz")
        data = bytearray((tmp_path / "a.nii.gz").read_bytes())
        data[len(data) // 2] ^= 0xFF
        refused(lambda: read(saved(tmp_path / "a.nii.gz", bytes(data))), "damaged")


class TestBombs:
    """A small file that claims to hold a huge image is refused before memory is taken for it."""

    def bomb(self, folder, suffix):
        path = folder / f"a{suffix}"
        if suffix == ".png":
            path.write_bytes(png(200_000, 200_000, 16, 6, b"\0" * 1000))
        elif suffix == ".jpg":
            data = bytearray(encoded(Image.fromarray(pixels((16, 16, 3))), "JPEG"))
            struct.pack_into(">HH", data, data.index(b"\xff\xc0") + 5, 65500, 65500)
            path.write_bytes(data)
        elif suffix == ".tif":
            tiff.imwrite(path, pixels((16, 20)), compression="zlib", metadata=None)
            with tiff.TiffFile(path, mode="r+") as file:
                for name in ("ImageWidth", "ImageLength", "RowsPerStrip"):
                    file.pages[0].tags[name].overwrite(1_000_000)
        else:
            header = nibabel.Nifti1Header()
            header.set_data_shape((30000, 30000, 30))
            header.set_data_dtype(np.float64)
            header["magic"], header["vox_offset"] = b"n+1", 352
            data = header.binaryblock + b"\0" * 1000
            path.write_bytes(gzip.compress(data) if suffix == ".nii.gz" else data)
        return path

    @pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".nii", ".nii.gz"])
    def test_refused(self, tmp_path, suffix):
        path = self.bomb(tmp_path, suffix)
        start = time.perf_counter()
        refused(lambda: read(path), "decompression bomb", "limit=None", folder=tmp_path)
        assert time.perf_counter() - start < 5

    def test_a_header_of_an_array(self, tmp_path):
        with (tmp_path / "a.npy").open("wb") as file:
            header = {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
            np.lib.format.write_array_header_1_0(file, header)
        refused(lambda: read(tmp_path / "a.npy"), "decompression bomb")
        refused(lambda: read(tmp_path / "a.npy", limit=None), "cut short")

    def test_a_header_of_a_map(self, tmp_path):
        mrcfile.write(tmp_path / "a.mrc", pixels((20, 30), "int16"))
        data = bytearray((tmp_path / "a.mrc").read_bytes())
        struct.pack_into("<iii", data, 0, 100_000, 100_000, 10)
        refused(lambda: read(saved(tmp_path / "a.mrc", data)), "decompression bomb")

    def test_the_limit_can_be_lifted(self, tmp_path):
        path = write(tmp_path / "a.png", np.zeros((2000, 2000), np.uint8))
        assert path.stat().st_size * 200 < 4_000_000
        refused(lambda: read(path, limit=3_999_999), "decompression bomb", "4 MB")
        assert read(path, limit=4_000_000).shape == (2000, 2000)
        assert read(path, limit=None).shape == (2000, 2000)

    def test_a_file_that_is_large_itself_is_none(self, tmp_path):
        path = write(tmp_path / "a.png", pixels((100, 100)))
        assert read(path, limit=1).shape == (100, 100)

    def test_too_little_memory(self, tmp_path, monkeypatch):
        def exhausted(*_, **__):
            raise MemoryError

        path = write(tmp_path / "a.png", pixels((5, 7)))
        with monkeypatch.context() as patch:
            patch.setattr(imagecodecs, "png_decode", exhausted)
            refused(lambda: read(path), "does not fit into memory")
        monkeypatch.setattr(imagecodecs, "png_encode", exhausted)
        refused(lambda: write(tmp_path / "b.png", pixels((5, 7))), "not enough memory", folder=tmp_path)


class TestPaths:
    def test_missing(self, tmp_path):
        refused(lambda: read(tmp_path / "a.png"), "a.png does not exist")

    def test_a_folder(self, tmp_path):
        (tmp_path / "a.png").mkdir()
        refused(lambda: read(tmp_path / "a.png"), "is a folder")
        refused(lambda: write(tmp_path / "a.png", pixels((5, 7)), force=True), "is a folder")

    def test_a_pipe(self, tmp_path):
        if sys.platform == "win32":
            return  # pipes have no place among the files there
        os.mkfifo(tmp_path / "a.png")
        refused(lambda: read(tmp_path / "a.png"), "a device or a pipe")
        refused(lambda: write(tmp_path / "a.png", pixels((5, 7)), force=True), "a device or a pipe")

    @pytest.mark.parametrize("name", ["a.gif", "a", "a.png.bak", ".png", "a.gz", "png"])
    def test_unknown_suffix(self, tmp_path, name):
        parts = (
            name,
            "PNG (.png)",
            "JPEG (.jpg, .jpeg)",
            "TIFF (.tif, .tiff, .ome.tif, .ome.tiff)",
            "NPY (.npy)",
            "MRC (.mrc",
        )
        refused(lambda: read(tmp_path / name), *parts, "NIfTI (.nii, .nii.gz)")
        refused(lambda: write(tmp_path / name, pixels((5, 7))), *parts, folder=tmp_path)

    @pytest.mark.parametrize(
        "name", ["A.PNG", "b.Tif", "c.NII.GZ", "d.e.f.npy", "é ü.jpeg", "x" * 240 + ".png"]
    )
    def test_names(self, tmp_path, name):
        write(tmp_path / name, pixels((8, 8)))
        assert read(str(tmp_path / name)).shape == (8, 8)
        assert [path.name for path in tmp_path.iterdir()] == [name]

    def test_relative_paths(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        write("a.png", pixels((5, 7)))
        assert read("a.png").source == tmp_path / "a.png"

    def test_no_permission_to_read(self, tmp_path, monkeypatch):
        path = write(tmp_path / "a.png", pixels((5, 7)))
        monkeypatch.setattr(Path, "open", denied)
        refused(lambda: read(path), "may not be read", "permissions")

    def test_no_permission_to_write(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "open", denied)
        refused(lambda: write(tmp_path / "a.png", pixels((5, 7))), "may not write there")
        assert not contents(tmp_path)

    def test_a_folder_that_is_not_there(self, tmp_path):
        refused(lambda: write(tmp_path / "no" / "a.png", pixels((5, 7))), "folder does not exist")

    def test_an_existing_file(self, tmp_path):
        path = write(tmp_path / "a.png", pixels((5, 7)))
        refused(lambda: write(path, np.zeros((5, 7), np.uint8)), "exists already", "force", folder=tmp_path)
        write(path, np.zeros((5, 7), np.uint8), force=True)
        assert not read(path).pixels.any()

    def test_the_input_itself(self, tmp_path, monkeypatch):
        path = write(tmp_path / "a.png", pixels((5, 7)))
        picture = read(path)
        (tmp_path / "sub").mkdir()
        names = [path, tmp_path / "sub" / ".." / "a.png", Path("a.png"), tmp_path / "hard.png"]
        os.link(path, tmp_path / "hard.png")
        if os.name == "posix":
            names.append(tmp_path / "soft.png")
            (tmp_path / "soft.png").symlink_to("a.png")
        monkeypatch.chdir(tmp_path)
        for name in names:
            call = lambda name=name: write(name, picture.pixels, like=picture)  # noqa: E731
            refused(call, "is the input itself", "force", folder=tmp_path)
            refused(lambda name=name: check_output(name, source=path), "is the input itself")
        write(path, np.zeros((5, 7)), like=picture, force=True)
        assert not read(path).pixels.any()
        assert read(tmp_path / "hard.png").pixels.any()

    def test_a_symbolic_link_is_written_through(self, tmp_path):
        if os.name != "posix":
            return  # making links takes privileges elsewhere
        (tmp_path / "sub").mkdir()
        write(tmp_path / "sub" / "a.png", pixels((5, 7)))
        (tmp_path / "link.png").symlink_to(Path("sub", "a.png"))
        write(tmp_path / "link.png", np.zeros((5, 7), np.uint8), force=True)
        assert (tmp_path / "link.png").is_symlink()
        assert not read(tmp_path / "sub" / "a.png").pixels.any()

    def test_outputs_are_checked_before_the_work(self, tmp_path):
        check_output(tmp_path / "a.png")
        write(tmp_path / "a.png", pixels((5, 7)))
        refused(lambda: check_output(tmp_path / "a.png"), "exists already")
        check_output(tmp_path / "a.png", force=True)
        refused(lambda: check_output(tmp_path / "a.gif", force=True), "a.gif")

    def test_permissions_are_ordinary_and_kept(self, tmp_path):
        if os.name != "posix":
            return  # there are no such permissions elsewhere
        (tmp_path / "other").touch()
        path = write(tmp_path / "a.png", pixels((5, 7)))
        assert path.stat().st_mode == (tmp_path / "other").stat().st_mode
        path.chmod(0o640)
        write(path, pixels((5, 7)), force=True)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


def denied(*_, **__):
    raise PermissionError(errno.EACCES, "Permission denied")


ENCODERS = {
    ".png": (imagecodecs, "png_encode"),
    ".jpg": (Image.Image, "save"),
    ".tif": (tiff.TiffWriter, "write"),
    ".npy": (np, "save"),
    ".nii": (nibabel.Nifti1Image, "to_filename"),
    ".mrc": (mrcfile, "new"),
}


class TestInterruptions:
    @pytest.mark.parametrize("suffix", ENCODERS)
    @pytest.mark.parametrize(
        "error", [KeyboardInterrupt, SystemExit, OSError(errno.ENOSPC, "full"), RuntimeError("?")]
    )
    def test_the_old_file_stays(self, tmp_path, monkeypatch, suffix, error):
        path = write(tmp_path / f"a{suffix}", pixels((8, 8), "uint8" if suffix != ".mrc" else "int16"))
        before = contents(tmp_path)

        def fails(*_, **__):
            (temporary,) = (found for found in tmp_path.iterdir() if found != path)
            temporary.write_bytes(b"half of it")
            raise error

        monkeypatch.setattr(*ENCODERS[suffix], fails)
        expected = FileError if isinstance(error, Exception) else error
        with pytest.raises(expected, match=None if expected is error else "cannot be written"):
            write(path, np.zeros((8, 8), "uint8" if suffix != ".mrc" else "int16"), force=True)
        assert contents(tmp_path) == before

    def test_a_full_disk(self, tmp_path, monkeypatch):
        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        refused(lambda: write(tmp_path / "a.png", pixels((5, 7))), "the disk is full", folder=tmp_path)

    @pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".npy", ".nii", ".nii.gz", ".mrc"])
    def test_a_disk_that_fills_up_in_the_middle(self, tmp_path, suffix):
        """A limit on the length of files cuts writes short, as a disk does on which there is little room."""
        pytest.importorskip("resource")  # not on Windows
        path = write(tmp_path / f"a{suffix}", pixels((8, 8)))
        before = contents(tmp_path)
        program = textwrap.dedent(
            """
            import resource, signal, sys
            import numpy as np
            from aniso import io

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))
            noise = np.random.default_rng(0).integers(0, 255, (200, 200)).astype(np.uint8)
            try:
                io.write(sys.argv[1], noise, force=True)
            except io.FileError as error:
                print(error)
            """
        )
        source = str(Path(aniso.__file__).parents[1])
        result = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": source},
        )  # fmt: skip
        assert re.search("cannot be written: (the disk is full|file too large)", result.stdout)
        assert contents(tmp_path) == before

    def test_the_last_moment(self, tmp_path, monkeypatch):
        path = write(tmp_path / "a.png", pixels((5, 7)))
        monkeypatch.setattr(os, "replace", denied)
        call = lambda: write(path, np.zeros((5, 7), np.uint8), force=True)  # noqa: E731
        refused(call, "may not write", folder=tmp_path)

    @pytest.mark.parametrize("suffix", [".png", ".tif", ".npy"])
    def test_killed_in_the_middle(self, tmp_path, suffix):
        """Another process is killed with half of the bytes written: nobody sees the half."""
        folder = tmp_path / "killed"
        folder.mkdir()
        path = write(folder / f"a{suffix}", pixels((50, 70)))
        before = path.read_bytes()
        program = textwrap.dedent(
            """
            import os, sys, time
            import numpy as np
            from aniso import io

            def slow(descriptor):
                # the file is complete but for its name; cut it, as if the bytes were still on their way
                os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
                print("half", flush=True)
                time.sleep(60)

            os.fsync = slow
            io.write(sys.argv[1], np.zeros((50, 70), np.uint8), force=True)
            """
        )
        source = str(Path(aniso.__file__).parents[1])
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]),
        }
        with subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "half\n"
            process.kill()
        assert path.read_bytes() == before
        assert read(path).pixels.any()
        (left,) = (found for found in folder.iterdir() if found != path)  # a kill leaves no time to tidy up
        assert left.name.startswith(".a-")
        left.unlink()


class TestExtras:
    @pytest.mark.parametrize(("suffix", "name"), [(".nii", "nibabel"), (".mrc", "mrcfile")])
    def test_what_is_not_installed_is_named(self, tmp_path, monkeypatch, suffix, name):
        MAKERS[suffix](tmp_path / f"a{suffix}")
        monkeypatch.setitem(sys.modules, name, None)
        refused(lambda: read(tmp_path / f"a{suffix}"), name, 'pip install "aniso[volumes]"')
        refused(
            lambda: write(tmp_path / f"b{suffix}", pixels((5, 7), "int16")),
            'pip install "aniso[volumes]"',
            folder=tmp_path,
        )

    def test_nothing_is_imported_before_it_is_used(self):
        program = "import sys, aniso.io; print(*sys.modules)"
        output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        heavy = {"PIL", "tifffile", "imagecodecs", "nibabel", "mrcfile", "numba"}
        assert not heavy.intersection(output.stdout.split())

    def test_pictures_say_what_they_are(self, tmp_path):
        picture = read(write(tmp_path / "a.png", pixels((5, 7, 4), "uint16")))
        assert repr(picture) == "<Picture: 5 × 7 pixels, 3 channels, uint16 PNG, with alpha>"
        with pytest.raises(dataclasses.FrozenInstanceError):
            picture.alpha = None  # type: ignore[misc]

    def test_a_picture_can_be_diffused_and_written(self, tmp_path):
        picture = read(write(tmp_path / "a.png", pixels((16, 16, 4), "uint16")))
        result = aniso.diffuse(picture.pixels, aniso.Homogeneous(), 1.0, channel_axis=picture.channel_axis)
        after = read(write(tmp_path / "b.png", result, like=picture))
        np.testing.assert_allclose(after.pixels, result, atol=0.5)
