"""Where results go, and what is refused before anything is computed or overwritten."""

import json
import os
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from aniso import io
from aniso.cli import commands
from aniso.io.formats import FORMATS
from aniso.io.picture import Picture
from tests.cli.command_calls import aniso_command, called, contents, noisy

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


class TestPlaces:
    def test_patterns(self, camera):
        io.write(camera / "b.tif", noisy())
        (camera / "out").mkdir()
        words = ("--time", 0, "-o", "out/{number}-{stem}-of-{folder}{suffix}")
        assert called(camera, "diffuse", "camera.png", "b.tif", *words).exit_code == 0
        assert {path.name for path in (camera / "out").iterdir()} == {"1-camera-of-..png", "2-b-of-..tif"}

    def test_another_kind_of_file(self, camera):
        assert called(camera, "diffuse", "camera.png", "--time", 0, "-o", "{stem}.tif").exit_code == 0
        np.testing.assert_array_equal(io.read(camera / "camera.tif").pixels, noisy())

    def test_a_folder_keeps_names(self, camera):
        (camera / "there").mkdir()
        for folder in ("there", "new/"):
            assert called(camera, "diffuse", "camera.png", "--time", 0, "-o", folder).exit_code == 0
            assert (camera / folder / "camera.png").is_file()

    def test_no_folder_is_made_for_nothing(self, camera):
        (camera / "camera.png").write_text("not an image", "utf-8")
        assert called(camera, "diffuse", "camera.png", "--time", 0, "-o", "new/").exit_code == 1
        assert not (camera / "new").exists()

    def test_a_file_that_looks_like_a_pattern(self, camera):
        (camera / "camera.png").rename(camera / "a[1]*.png")
        assert called(camera, "diffuse", "a[1]*.png", "--time", 0).exit_code == 0
        assert (camera / "a[1]*_diffused.png").is_file()

    def test_a_file_given_twice_is_read_once(self, camera):
        answer = called(camera, "diffuse", "camera.png", "*.png", "--time", 0, "--json")
        assert len(json.loads(answer.stdout)["results"]) == 1

    @pytest.mark.parametrize(
        ("words", "text"),
        [
            (("camera.png", "b.png", "-o", "one.png"), "is one file, but there are 2 inputs"),
            (("camera.png", "b.png", "-o", "{suffix}"), "gives all results the same name"),
            (("camera.png", "-o", "{stern}.png"), "is not a valid pattern. It may contain {stem}, {suffix}"),
            (("camera.png", "-o", "{stem.png"), "is not a valid pattern"),
            (("camera.png", "-o", "{}.png"), "is not a valid pattern"),
            (("camera.png", "more/camera.png", "-o", "out/"), "both camera.png and more"),
        ],
    )
    def test_refusals(self, camera, words, text):
        before = contents(camera)
        answer = called(camera, "denoise", *words)
        assert answer.exit_code == 2
        assert text in " ".join(answer.stderr.replace("│", " ").split())
        assert contents(camera) == before

    @pytest.mark.parametrize("place", ["scales.png", "{stem}.png"])
    def test_times_need_names(self, camera, place):
        answer = called(camera, "scale-space", "camera.png", "--times", "1,2", "-o", place)
        assert answer.exit_code == 2
        assert "{time}" in answer.stderr


class TestFolders:
    @pytest.mark.parametrize("place", ["new/", "new/{stem}.png", "new/of/{folder}/{stem}.png", "new/of/"])
    def test_they_are_made(self, camera, place):
        answer = called(camera, "diffuse", "camera.png", "--time", 1, "-o", place)
        assert answer.exit_code == 0, answer.output
        assert len(list((camera / "new").rglob("camera.png"))) == 1

    def test_the_examples_of_the_help_work_in_a_fresh_folder(self, camera):
        for example in commands.examples("scale-space"):
            words = example.replace("'", "").replace("16,64,256", "8").replace("16,64", "8").split()[1:]
            answer = called(camera, *words)
            assert answer.exit_code == 0, answer.output

    @pytest.mark.parametrize("place", ["new/of/", "new/of/{stem}.png"])
    def test_nothing_is_left_where_the_write_fails(self, camera, place, monkeypatch):
        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setitem(FORMATS, "PNG", replace(FORMATS["PNG"], write=full))
        answer = called(camera, "diffuse", "camera.png", "--time", 1, "-o", place)
        assert (answer.exit_code, "the disk is full" in answer.stderr) == (1, True)
        assert set(os.listdir(camera)) == {"camera.png"}

    def test_a_file_s_folder_is_not_made(self, camera):
        assert called(camera, "diffuse", "camera.png", "--time", 1, "-o", "nwe/a.png").exit_code == 1
        assert not (camera / "nwe").exists()


@pytest.mark.usefixtures("nothing_is_computed")
class TestBeforeComputing:
    @pytest.mark.parametrize(
        ("words", "text"),
        [
            (("diffuse", "float.tif", "--time", 1, "-o", "a.png"), "PNG files cannot hold float32 pixels"),
            (("denoise", "float.tif", "-o", "a.jpg"), "add --dtype uint8 if values are from 0 to 255"),
            (("denoise", "stack.tif", "-o", "a.png"), "PNG files hold one image (H, W)"),
            (("denoise", "camera.png", "--dtype", "uint16", "-o", "a.jpg"), "JPEG files cannot hold uint16"),
            (("denoise", "alpha.png", "-o", "a.jpg"), "JPEG files cannot store transparency"),
            (("denoise", "colour.png", "-o", "a.mrc"), "MRC files hold grey values"),
            (("scale-space", "stack.tif", "--times", "1", "-o", "a{time}.jpg"), "JPEG files hold one image"),
            (("upsample", "wide.png", "--factor", 8, "-o", "a.jpg"), "at most 65500 pixels along an axis"),
            (
                ("diffuse", "heights.npy", "--time", 1),
                "NaN or infinite, the first at index (1, 3, 4) (nan): a single one would spread over the "
                "whole image. Fill them in first, with aniso inpaint.",
            ),
            (("diffuse", "heights.npy", "--time", 1), "Fill them in first"),
            (("scale-space", "camera.png", "--times", "1", "-o", "there{time}.png"), "there1.png exists"),
            (("denoise", "camera.png", "-o", "camera.png/a/{stem}.png"), "its folder is not a folder"),
        ],
    )  # fmt: skip
    def test_refusals(self, camera, words, text):
        io.write(camera / "float.tif", noisy(dtype="float32"))
        io.write(camera / "stack.tif", Picture(noisy((2, 12, 14))))
        io.write(camera / "alpha.png", Picture(noisy((12, 14)), alpha=noisy((12, 14))))
        io.write(camera / "colour.png", noisy((12, 14, 3)))
        io.write(camera / "wide.png", np.zeros((2, 9000), np.uint8))
        io.write(camera / "there1.png", noisy((12, 14)))
        heights = noisy((2, 12, 14), "float32")
        heights[1, 3, 4] = np.nan
        np.save(camera / "heights.npy", heights)
        before = contents(camera)
        answer = called(camera, *words)
        assert answer.exit_code == 1
        assert text in answer.stderr
        assert answer.stderr.count("\n") == 1
        assert contents(camera) == before

    def test_a_package_that_is_missing(self, camera, monkeypatch):
        monkeypatch.setitem(sys.modules, "mrcfile", None)
        answer = called(camera, "denoise", "camera.png", "-o", "a.mrc")
        assert answer.exit_code == 1
        assert "MRC files need the package mrcfile" in answer.stderr

    if not ROOT:  # who may write everywhere

        def test_a_folder_that_may_not_be_written(self, camera):
            camera.chmod(0o555)
            try:
                answer = called(camera, "denoise", "camera.png")
            finally:
                camera.chmod(0o755)
            assert answer.exit_code == 1
            assert "this user may not write there" in answer.stderr

    @pytest.mark.parametrize(
        ("place", "text"),
        [
            ("result.gif", "result.gif does not have the suffix of an image format"),
            ("out/{stem}.txt", "out/camera.txt does not have the suffix"),
            ("results", "For a folder, write results/."),
        ],
    )
    def test_a_bad_suffix_is_a_usage_error(self, camera, place, text):
        before = contents(camera)
        answer = called(camera, "denoise", "camera.png", "-o", place)
        assert answer.exit_code == 2
        assert text in " ".join(answer.stderr.replace("│", " ").split())
        assert contents(camera) == before


class TestNoOverwriting:
    """Without --force, not even a file that appears while the result is computed."""

    @pytest.mark.parametrize("links", [True, False])
    @pytest.mark.parametrize("force", [True, False])
    def test_a_file_that_appears(self, camera, monkeypatch, force, links):
        write = FORMATS["PNG"].write

        def slow(path, picture):
            write(path, picture)
            (camera / "a.png").write_bytes(b"of somebody else")

        def no_links(*_, **__):
            raise OSError(1, "Operation not permitted")

        monkeypatch.setitem(FORMATS, "PNG", replace(FORMATS["PNG"], write=slow))
        if not links:
            monkeypatch.setattr(os, "link", no_links)
        words = ("diffuse", "camera.png", "--time", 1, "-o", "a.png", *(["--force"] if force else []))
        answer = called(camera, *words)
        if force:
            assert answer.exit_code == 0
            assert io.read(camera / "a.png").shape == (40, 44)
        else:
            assert answer.exit_code == 1
            assert "a.png exists already since a moment ago" in answer.stderr
            assert (camera / "a.png").read_bytes() == b"of somebody else"
        assert set(os.listdir(camera)) == {"camera.png", "a.png"}

    @pytest.mark.parametrize(
        "words",
        [
            ("scale-space", "a.png", "a1.png", "--times", "1,11", "-o", "out/{stem}{time}.png"),
            ("scale-space", "a.png", "--times", "1,2", "-o", "out{time}.png"),
            ("scale-space", "a.png", "--times", "10,16", "-o", "{stem}_{time:.1}.png"),
            ("diffuse", "a.png", "a1.png", "--time", "1", "-o", "{stem}_link.png"),
            ("diffuse", "a.png", "sym.png", "--time", "1", "-o", "{name}"),
            ("diffuse", "sym.png", "a.png", "--time", "1", "-o", "{name}"),
        ],
        ids=["times", "links-of-times", "short-times", "links", "input-link", "input-link-first"],
    )
    def test_two_results_in_one_file(self, tmp_path, nothing_is_computed, words):
        """Not even with --force: one of them would be lost."""
        for name in ("a", "a1"):
            io.write(tmp_path / f"{name}.png", noisy())
        for link, to in (("sym", "a"), ("out1", "one"), ("out2", "one"), ("a_link", "b"), ("a1_link", "b")):
            (tmp_path / f"{link}.png").symlink_to(f"{to}.png")
        before = contents(tmp_path)
        answer = called(tmp_path, *words, "--force")
        assert answer.exit_code == 2
        assert "would be written to" in " ".join(re.sub("[│╭╮╰╯─]", " ", answer.stderr).split())
        assert contents(tmp_path) == before

    def test_without_links_it_is_written_too(self, camera, monkeypatch):
        def no_links(*_, **__):
            raise OSError(95, "Operation not supported")

        monkeypatch.setattr(os, "link", no_links)
        assert called(camera, "diffuse", "camera.png", "--time", 0, "-o", "a.png").exit_code == 0
        assert set(os.listdir(camera)) == {"camera.png", "a.png"}


class TestInputs:
    def test_a_file_under_two_names_is_read_once(self, camera):
        words = ("./camera.png", "camera.png", f"../{camera.name}/camera.png", camera / "camera.png")
        answer = called(camera, "diffuse", *words, "--time", 0, "--json")
        assert (answer.exit_code, answer.stderr) == (0, "")
        assert [entry["input"] for entry in json.loads(answer.stdout)["results"]] == ["camera.png"]

    def test_a_link_is_a_file_of_its_own(self, camera):
        (camera / "link.png").symlink_to("camera.png")
        answer = called(camera, "diffuse", "camera.png", "link.png", "--time", 0)
        assert answer.exit_code == 0
        assert {"camera_diffused.png", "link_diffused.png"} <= set(os.listdir(camera))

    def test_a_circle_of_links(self, camera):
        (camera / "loop.png").symlink_to("loop.png")
        answer = called(camera, "diffuse", "loop.png", "--time", 0)
        assert (answer.exit_code, answer.stderr.count("\n")) == (1, 1)

    def test_a_name_like_an_option(self, camera):
        (camera / "camera.png").rename(camera / "-dash.png")
        answer = called(camera, "denoise", "-dash.png")
        assert (answer.exit_code, "write ./-dash.png" in answer.stderr) == (2, True)
        assert called(camera, "diffuse", "./-dash.png", "--time", 0).exit_code == 0

    @pytest.mark.skipif(sys.platform != "linux", reason="names are Unicode elsewhere")
    def test_a_name_that_is_not_unicode(self, camera):
        (camera / "camera.png").rename(camera / os.fsdecode(b"caf\xe9.png"))
        answer = aniso_command(
            camera, "diffuse", b"caf\xe9.png".decode("utf-8", "surrogateescape"), "--time", "0"
        )
        assert answer.returncode == 0, answer.stderr
        assert b"caf\xe9_diffused.png" in os.listdir(os.fsencode(camera))

    @pytest.mark.parametrize(
        "pattern",
        ["{stem.__class__}.png", "{stem!r}.png", "{stem:>9}.png", "{stem[0]}.png", "{number:{stem}}.png"],
    )
    def test_patterns_are_of_plain_names(self, camera, pattern):
        answer = called(camera, "diffuse", "camera.png", "--time", 0, "-o", pattern)
        assert (answer.exit_code, "is not a valid pattern" in " ".join(answer.stderr.split())) == (2, True)

    def test_a_name_that_is_too_long_is_found_at_once(self, camera, nothing_is_computed):
        answer = called(camera, "diffuse", "camera.png", "--time", 1, "-o", f"{300 * 'a'}.png")
        assert (answer.exit_code, "its name is too long" in answer.stderr) == (1, True)

    def test_numbers_may_have_leading_zeros(self, camera):
        words = ("diffuse", "camera.png", "--time", 0, "-o", "{number:03d}.png")
        assert called(camera, *words).exit_code == 0
        assert (camera / "001.png").is_file()
