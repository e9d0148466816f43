"""What is broken or too large is refused."""

import gzip
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import imagecodecs
import mrcfile
import nibabel
import numpy as np
import pytest
from PIL import Image

from aniso.io import formats, read, write
from tests.io.files import MAKERS, chunk, encoded, pixels, png, refused, saved, tiff, with_chunks

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
        tracemalloc.start()
        try:
            refused(lambda: read(path), "decompression bomb", "limit=None", folder=tmp_path)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 2e8  # the pixels would take far more

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
