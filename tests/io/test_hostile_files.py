"""Headers that promise more than the file holds: refused before anything of that size is allocated."""

import gzip
import struct
import subprocess
import sys
import tracemalloc
import zlib

import nibabel
import numpy as np
import pytest

from aniso import io
from aniso.io.picture import FileError
from tests.cli.command_calls import aniso_command, noisy

_MEGABYTE = 1 << 20
_NSYMBT = 92  # where an MRC header gives the length of the extended one


def refuse(path, message, limit=io.LIMIT):
    """Reading must fail with this message, and must not allocate what the header promises."""
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=message):
            io.read(path, limit=limit)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * _MEGABYTE


class TestMrc:
    @pytest.fixture
    def path(self, tmp_path):
        return io.write(tmp_path / "volume.mrc", noisy((5, 5, 5), "float32"))

    def patched(self, path, form, place, *values):
        content = bytearray(path.read_bytes())
        struct.pack_into(form, content, place, *values)
        path.write_bytes(content)
        return path

    @pytest.mark.parametrize("limit", [io.LIMIT, None])
    def test_an_extended_header_of_2_gigabytes(self, path, limit):
        self.patched(path, "<i", _NSYMBT, 2**31 - 1)
        refuse(path, r"cut short \(.*2147483647 bytes of extended header and 500 of pixels", limit)

    def test_an_extended_header_of_big_endian_files(self, path):
        content = path.read_bytes()
        words = np.frombuffer(content[:1024], "<i4").astype(">i4").tobytes()
        machine = b"\x11\x11\0\0"
        path.write_bytes(words[:208] + b"MAP " + machine + words[216:] + content[1024:])
        assert io.read(path).shape == (5, 5, 5)
        refuse(self.patched(path, ">i", _NSYMBT, 2**31 - 1), "2147483647 bytes of extended header")

    @pytest.mark.parametrize(("place", "values"), [(_NSYMBT, (-5,)), (0, (-5, -5)), (4, (-5, -5))])
    def test_negative_sizes(self, path, place, values):
        refuse(self.patched(path, f"<{len(values)}i", place, *values), "negative sizes")

    def test_compressed_content_is_not_decompressed(self, tmp_path, path):
        """A gzip header with the marks of an MRC file in its additional field."""
        bomb = gzip.compress(path.read_bytes() + bytes(64 * _MEGABYTE), mtime=0)
        field = bytearray(1024)
        field[208 - 12 : 216 - 12] = b"MAP\0\x44\x44\0\0"
        flags = bytes([bomb[3] | 4])
        head = bomb[:3] + flags + bomb[4:10] + struct.pack("<H", len(field))
        (tmp_path / "bomb.mrc").write_bytes(head + field + bomb[10:])
        refuse(tmp_path / "bomb.mrc", "bomb.mrc")

    def test_a_file_that_ends_in_its_header(self, path):
        path.write_bytes(path.read_bytes()[:1000])
        refuse(path, "cut short")


class TestNifti:
    def content(self, offset, kind=nibabel.Nifti1Header, magic=b"n+1\0"):
        header = kind()
        header.set_data_shape((4, 4, 4))
        header.set_data_dtype(np.float32)
        header["magic"], header["vox_offset"] = magic, offset
        extension = b"\1\0\0\0" + struct.pack("<ii", 2**31 - 16, 6)
        return header.binaryblock + extension

    @pytest.mark.parametrize(
        ("kind", "magic"),
        [(nibabel.Nifti1Header, b"n+1\0"), (nibabel.Nifti2Header, b"n+2\0\r\n\x1a\n")],
    )
    def test_pixels_that_begin_far_behind(self, tmp_path, kind, magic):
        content = self.content(3 * 2**30, kind, magic) + bytes(1000)
        (tmp_path / "a.nii").write_bytes(content)
        refuse(tmp_path / "a.nii", "3.22 GB")
        refuse(tmp_path / "a.nii", r"cut short \(its pixels begin at byte 3221225472\)", None)
        (tmp_path / "a.nii.gz").write_bytes(gzip.compress(content))
        refuse(tmp_path / "a.nii.gz", "3.22 GB")

    def test_an_extension_that_unfolds(self, tmp_path):
        content = self.content(2**31 - 2**12) + bytes(32 * _MEGABYTE)
        (tmp_path / "a.nii.gz").write_bytes(gzip.compress(content))
        refuse(tmp_path / "a.nii.gz", "decompression bomb")

    @pytest.mark.parametrize("offset", [np.nan, np.inf, -352.0])
    def test_places_that_do_not_exist(self, tmp_path, offset):
        (tmp_path / "a.nii").write_bytes(self.content(offset) + bytes(1000))
        refuse(tmp_path / "a.nii", f"begin at byte {offset}")

    def test_pixels_after_a_long_gap_count(self, tmp_path):
        """The gap and the pixels together are what is unfolded."""
        (tmp_path / "a.nii.gz").write_bytes(gzip.compress(self.content(2**29)))
        refuse(tmp_path / "a.nii.gz", "decompression bomb", limit=2**29 - 1)

    def test_negative_shapes(self, tmp_path):
        path = io.write(tmp_path / "a.nii", noisy((4, 4, 4), "float32"))
        content = bytearray(path.read_bytes())
        struct.pack_into("<hh", content, 42, -4, -4)
        path.write_bytes(content)
        refuse(path, "shape|damaged")

    def test_a_file_that_ends_in_its_header(self, tmp_path):
        (tmp_path / "a.nii.gz").write_bytes(gzip.compress(self.content(352.0)[:300]))
        refuse(tmp_path / "a.nii.gz", "cut short")


class TestNpy:
    def saved(self, folder, version, length, header=b""):
        form = "<H" if version == 1 else "<I"
        content = b"\x93NUMPY" + bytes([version, 0]) + struct.pack(form, length) + header
        (folder / "a.npy").write_bytes(content + bytes(1500))
        return folder / "a.npy"

    @pytest.mark.parametrize(("version", "length"), [(1, 2**16 - 1), (2, 2**32 - 1), (3, 2**32 - 1)])
    def test_headers_that_are_longer_than_the_file(self, tmp_path, version, length):
        refuse(self.saved(tmp_path, version, length), f"its header should have {length} bytes")

    def test_negative_shapes(self, tmp_path):
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -3), }\n"
        refuse(self.saved(tmp_path, 1, len(header), header), r"negative shape \(-2, -3\)")

    def test_pickles(self, tmp_path):
        np.save(tmp_path / "a.npy", np.array([[None, 1]], dtype=object))
        refuse(tmp_path / "a.npy", "dtype object")


class TestTiff:
    """Chains of pages that would take hours."""

    def test_pages_without_tags(self, tmp_path):
        pages = [struct.pack("<HI", 0, 8 + 6 * (number + 1)) for number in range(20_000)]
        pages[-1] = struct.pack("<HI", 0, 0)
        (tmp_path / "a.tif").write_bytes(b"II*\0" + struct.pack("<I", 8) + b"".join(pages))
        refuse(tmp_path / "a.tif", "pages are empty")

    def test_pages_that_overlap(self, tmp_path):
        tags, content = 3000, bytearray(60_000)
        content[:8] = b"II*\0" + struct.pack("<I", 8)
        for number in range(1000):
            start = 8 + 6 * number
            struct.pack_into("<H", content, start, tags)
            struct.pack_into("<I", content, start + 2 + 12 * tags, start + 6)
        (tmp_path / "a.tif").write_bytes(content)
        refuse(tmp_path / "a.tif", "pages overlap")

    def test_a_strip_that_unfolds(self, tmp_path):
        strip = zlib.compress(bytes(64 * _MEGABYTE), 9)
        entries = [(256, 100), (257, 100), (258, 8), (259, 8), (262, 1), (273, 122), (277, 1), (278, 100)]
        entries.append((279, len(strip)))
        tags = b"".join(struct.pack("<HHII", code, 4, 1, value) for code, value in entries)
        page = struct.pack("<H", len(entries)) + tags + struct.pack("<I", 0)
        (tmp_path / "a.tif").write_bytes(b"II*\0" + struct.pack("<I", 8) + page + strip)
        refuse(tmp_path / "a.tif", "damaged")


def _chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")


class TestPng:
    """What libpng says about a file must not reach the terminal, and only pixels decide."""

    def inserted(self, path, *chunks, tail=b""):
        """Chunks after the header, and bytes after the compressed pixels."""
        io.write(path, noisy((9, 11)))
        content = path.read_bytes()
        start = content.index(b"IDAT")
        (length,) = struct.unpack(">I", content[start - 4 : start])
        pixels = _chunk(b"IDAT", content[start + 4 : start + 4 + length] + tail)
        path.write_bytes(content[:33] + b"".join(chunks) + pixels + _chunk(b"IEND", b""))

    ODD = (
        _chunk(b"pHYs", b"\0" * 3),
        _chunk(b"iCCP", b"\xff\xfe name\0\0nonsense"),
        _chunk(b"gAMA", b"\0" * 7),
        _chunk(b"hIST", b"\0" * 7),
        _chunk(b"tIME", b"\xff" * 7),
    )

    @pytest.mark.parametrize(("chunks", "tail"), [(ODD, b""), ((), b"more and more")])
    def test_odd_chunks_are_silent(self, tmp_path, caplog, chunks, tail):
        self.inserted(tmp_path / "a.png", *chunks, tail=tail)
        np.testing.assert_array_equal(io.read(tmp_path / "a.png").pixels, noisy((9, 11)))
        assert tail or not caplog.records  # chunks that do not decide on pixels are not decoded
        code = f"from aniso import io; io.read({str(tmp_path / 'a.png')!r})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert done.stderr == b""

    def test_damage_is_told_in_our_own_words(self, tmp_path):
        self.inserted(tmp_path / "a.png")
        content = (tmp_path / "a.png").read_bytes()
        start = content.index(b"IDAT")
        broken = content[: start - 4] + _chunk(b"IDAT", b"no pixels at all") + _chunk(b"IEND", b"")
        (tmp_path / "a.png").write_bytes(broken)
        done = aniso_command(tmp_path, "info", "a.png", "--no-estimate")
        assert "its pixels cannot be decoded" in " ".join(done.stderr.split())
        assert "PNG warning" not in done.stderr
        assert "libpng" not in done.stderr

    def test_an_unknown_critical_chunk(self, tmp_path):
        """By the standard an image that needs it cannot be decoded without."""
        self.inserted(tmp_path / "a.png", _chunk(b"ABCD", b"?"))
        with pytest.raises(FileError, match="cannot be decoded"):
            io.read(tmp_path / "a.png")
