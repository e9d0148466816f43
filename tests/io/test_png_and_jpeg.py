"""PNG and JPEG: what is read is what was stored, with all that goes with it."""

import struct
import zlib

import imagecodecs
import numpy as np
import pytest
from PIL import Image

from aniso.io import Picture, read, write
from aniso.io.exif import with_orientation as exif_with_orientation
from tests.io.files import PROFILE, chunk, encoded, pixels, png, refused, saved, there_and_back, with_chunks


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
