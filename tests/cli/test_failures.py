"""Files and calls that are refused: one sentence, one exit code, and nothing written."""

import functools
import json
import re
import zlib

import numpy as np
import pytest
import typer

import aniso
from aniso import checks, io
from aniso.cli.options import diffusion_options
from aniso.io.picture import FileError, Picture
from tests.cli.command_calls import aniso_command, called, contents, noisy


def bomb():
    """A PNG of 2·10⁹ pixels in a few bytes."""

    def chunk(kind, body):
        return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")

    header = (45000).to_bytes(4, "big") * 2 + bytes([8, 0, 0, 0, 0])
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


class TestFailures:
    @pytest.mark.parametrize(
        ("name", "words", "text"),
        [
            ("cut.png", (), "cut.png is cut short"),
            ("bomb.png", (), "decompression bomb or a damaged header. If it is genuine, add --no-limit."),
            ("text.png", (), "text.png is not a PNG file"),
            ("empty.png", (), "empty.png is empty"),
            ("missing.png", (), "missing.png does not exist"),
            ("nothing*.png", (), "nothing*.png does not exist"),
            ("note.txt", (), "note.txt does not have the suffix of an image format"),
            ("folder.png", (), "folder.png is a folder"),
            ("camera.png", ("-o", "camera.png"), "camera.png exists already: it is the input itself"),
            (
                "camera.png",
                ("-o", "there.png"),
                "there.png exists already. Give another name, or add --force to overwrite it.",
            ),
            ("camera.png", ("-o", "nowhere/a.png"), "its folder does not exist"),
        ],
    )
    def test_one_sentence_and_nothing_written(self, camera, name, words, text):
        whole = (camera / "camera.png").read_bytes()
        (camera / "cut.png").write_bytes(whole[: len(whole) // 2])
        (camera / "bomb.png").write_bytes(bomb())
        (camera / "text.png").write_text("not an image", "utf-8")
        (camera / "empty.png").touch()
        (camera / "note.txt").write_text("a note", "utf-8")
        (camera / "there.png").write_bytes(b"precious")
        (camera / "folder.png").mkdir()
        before = contents(camera)
        answer = called(camera, "denoise", name, *words)
        assert answer.exit_code == 1
        assert text in answer.stderr
        assert answer.stderr.startswith("aniso: ")
        assert answer.stderr.count("\n") == 1
        assert answer.stdout == ""
        assert contents(camera) == before

    def test_force(self, camera):
        before = (camera / "camera.png").read_bytes()
        answer = called(camera, "denoise", "camera.png", "-o", "camera.png")
        assert (answer.exit_code, answer.stdout) == (1, "")
        assert answer.stderr == (
            "aniso: camera.png exists already: it is the input itself, which would be replaced. Give another "
            "name, or add --force to overwrite it.\n"
        )
        assert (camera / "camera.png").read_bytes() == before
        assert called(camera, "denoise", "camera.png", "-o", "camera.png", "--force").exit_code == 0
        assert (camera / "camera.png").read_bytes() != before

    def test_a_broken_file_among_others(self, camera):
        whole = (camera / "camera.png").read_bytes()
        (camera / "broken.png").write_bytes(whole[:300])
        io.write(camera / "zebra.png", noisy(seed=1))
        answer = called(camera, "diffuse", "*.png", "--time", "1", "-o", "out/", "--json")
        assert answer.exit_code == 1
        summary = json.loads(answer.stdout)
        assert [entry["input"] for entry in summary["results"]] == ["camera.png", "zebra.png"]
        assert [entry["input"] for entry in summary["errors"]] == ["broken.png"]
        assert answer.stderr.startswith("aniso: broken.png ")
        assert sorted(path.name for path in (camera / "out").iterdir()) == ["camera.png", "zebra.png"]
        answer = called(camera, "diffuse", "*.png", "--time", "1", "-o", "out/", "--force")
        assert answer.stderr.endswith("2 done, 1 failed: broken.png\n")

    def test_debug_tells_where(self, camera):
        (camera / "text.png").write_text("not an image", "utf-8")
        answer = aniso_command(camera, "denoise", "text.png", "--debug")
        assert answer.returncode == 1
        assert "Traceback (most recent call last)" in answer.stderr

    def test_what_nobody_expected(self, camera, monkeypatch):
        @functools.wraps(aniso.denoise)
        def broken(*_, **__):
            raise KeyError("nothing")

        monkeypatch.setattr(aniso, "denoise", broken)
        answer = called(camera, "denoise", "camera.png")
        assert answer.exit_code == 1
        assert answer.stderr == (
            "aniso: camera.png: unexpected KeyError: 'nothing'. Add --debug for the traceback.\n"
        )


class TestUsage:
    @pytest.mark.parametrize(
        ("words", "text"),
        [
            (("denoise", "camera.png", "--strength", "3"), "No such option: --strength"),
            (("denoise", "camera.png", "--noise", "-1"), "at least 0 and finite, got '-1'"),
            (("denoise", "camera.png", "--noise", "much"), "one of the kinds gaussian, poisson"),
            (("denoise", "camera.png", "--time", "soon"), "'soon' is not a number or 'auto'"),
            (("denoise", "camera.png", "--contrast", "inf"), "inf is not a finite number"),
            (("denoise", "camera.png", "--threads", "0"), "--threads"),
            (("denoise", "camera.png", "--engine", "steam"), "--engine"),
            (("denoise", "camera.png", "--spacing", "1,-1"), "-1 is out of range: must be above 0"),
            (("upsample", "camera.png", "--factor", "9"), "9 is out of range: must be from 1 to 8"),
            (("upsample", "camera.png", "--factor", "two"), "'two' is not an integer. Give e.g. 2, or 3,1,1"),
            (("upsample", "camera.png", "--factor", "2,0"), "0 is out of range: must be from 1 to 8"),
            (("upsample", "2", "camera.png"), "upsample needs --factor N or --isotropic, or a plan"),
            (("upsample", "camera.png", "--factor", "2", "--isotropic"), "can be given, not both"),
            (("diffuse", "camera.png"), "--time"),
            (("diffuse", "camera.png", "--time", "1e8"), "also take --scheme fed, whose steps are longer"),
            (("diffuse", "camera.png", "--time", "-2"), "-2 is out of range: must be at least 0"),
            (("diffuse", "camera.png", "--time", "1", "--model", "magic"), "--model"),
            (
                ("diffuse", "camera.png", "--time", "1", "--contrast", "0"),
                "0 is out of range: must be above 0",
            ),
            (("diffuse", "camera.png", "--time", "1", "--rho", "2"), "the model edge-enhancing has no --rho"),
            (
                ("diffuse", "camera.png", "--time", "1", "--step", "0.6"),
                "exceeds 0.5, the largest stable step",
            ),
            (
                ("diffuse", "camera.png", "--time", "1", "--cycles", "2"),
                "has no --cycles. Remove it, or add --scheme fed",
            ),
            (("diffuse", "camera.png", "--time", "1", "--scheme", "fed", "--step", "1"), "has no --step"),
            (("diffuse", "camera.png", "--time", "1", "--angle", "3", "--sigma", "1"), "Remove --sigma"),
            (("scale-space", "camera.png", "--times", "4,1"), "times must increase"),
            (("scale-space", "camera.png", "--times", "a"), "'a' is not a number"),
            (("scale-space", "camera.png", "--times", "1 4"), "Separate times by commas"),
            (("dream",), "No such command 'dream'"),
            (("denois", "camera.png"), "No such command 'denois'. Did you mean 'denoise'"),
        ],
    )
    def test_exit_code_2(self, camera, words, text):
        before = contents(camera)
        answer = called(camera, *words)
        assert answer.exit_code == 2
        assert text in " ".join(answer.stderr.replace("│", " ").split())
        assert answer.stdout == ""
        assert contents(camera) == before

    def test_in_a_process_of_its_own(self, camera):
        answer = aniso_command(camera, "denoise", "camera.png", "--strength", "3")
        assert (answer.returncode, answer.stdout) == (2, "")
        assert "No such option: --strength" in answer.stderr
        assert "Traceback" not in answer.stderr

    def test_quiet(self, camera):
        answer = called(camera, "denoise", "camera.png", "--quiet")
        assert (answer.exit_code, answer.stdout, answer.stderr) == (0, "", "")
        assert (camera / "camera_denoised.png").is_file()
        answer = called(camera, "denoise", "camera.png", "-q")
        assert (answer.exit_code, answer.stderr.count("\n")) == (1, 1)

    def test_json_has_no_nan(self, tmp_path):
        io.write(tmp_path / "flat.png", np.full((20, 20), 7, np.uint8))
        answer = called(tmp_path, "denoise", "flat.png", "--json")

        def refused(word):
            raise AssertionError(word)

        summary = json.loads(answer.stdout, parse_constant=refused)
        assert summary["results"][0]["info"][0]["contrast"] is None
        assert (summary["command"], summary["version"]) == ("denoise", aniso.__version__)


def test_usage_errors_of_options_are_typers():
    with pytest.raises(typer.BadParameter):
        diffusion_options.ModelOptions(
            model="homogeneous", **dict.fromkeys(diffusion_options._model_fields(), 1.0)
        ).chosen()


# Ways of Python to say what to do; none of them helps at a prompt.
PYTHON = re.compile(
    r"numpy|astype|\bNone\b|~|dataclasses|channel_axis|[a-z_]=[A-Z0-9]|\(\)|like=|force=|limit="
)


class TestAdvice:
    @pytest.mark.parametrize(
        ("words", "advice"),
        [
            (("diffuse", "nan.npy", "--time", "1"), "with aniso inpaint"),
            (("upsample", "nan.npy", "--factor", "2"), "with aniso inpaint"),
            (("diffuse", "bool.npy", "--time", "1"), "Convert it to numbers first"),
            (("denoise", "flat.npy", "--channel-axis", "7"), "Give --channel-axis, e.g. -1, or none"),
            (("diffuse", "camera.png", "--time", "1", "--step", "3"), "Use --step 0.5 or less, or leave"),
            (("diffuse", "camera.png", "--time", "1", "--angle", "3", "--step", "3"), "or leave it out"),
            (("inpaint", "camera.png", "--mask", "all.png"), "perhaps --invert was meant"),
            (("inpaint", "nan.npy", "--mask", "some.png"), "Mark them in the mask, too"),
            (("inpaint", "allnan.npy"), "nothing to fill in from"),
            (("denoise", "camera.png", "--spacing", "1,2,3"), "Give e.g. --spacing 2,1"),
            (("denoise", "camera.png", "-o", "camera.png"), "or add --force to overwrite it"),
            (("denoise", "float.npy", "-o", "a.png"), "or add --dtype uint8"),
            (("denoise", "alpha.png", "-o", "a.jpg"), "in an image editor"),
            (("denoise", "stack.npy", "-o", "a.png"), "add --channel-axis"),
            (("scale-space", "two.npy", "--channel-axis", "0", "--times", "1", "--figure"), "Leave --figure"),
            (("enhance", "camera.png", "--wavelength", "900"), "Give the distance between lines"),
            (("stencil", "--spacing", "1e300"), "Choose another unit of length"),
            (("diffuse", "camera.png", "--time", "1e25", "--scheme", "fed"), "Take more cycles"),
            (("diffuse", "camera.png", "--time", "1", "--angle", "inf"), "inf is not a finite number"),
            (("diffuse", "camera.png", "--time", "1", "--spacing", "1e-320"), "another unit of length"),
            (("denoise", "."), "Name files in it, such as '*.png'"),
            (("denoise", ""), "the name of a file is empty"),
        ],
    )  # fmt: skip
    def test_it_is_for_the_command_line(self, camera, words, advice):
        nan, image = noisy((12, 14), "float32"), noisy((12, 14), "float32")
        nan[2, 3] = np.nan
        mask = np.zeros((12, 14), np.uint8)
        mask[5:7] = 255
        for name, array in {
            "nan": nan, "bool": image > 0.5, "flat": image, "float": image, "allnan": nan * np.nan,
            "stack": np.stack([image] * 5), "two": np.stack([image] * 2),
        }.items():  # fmt: skip
            np.save(camera / f"{name}.npy", array)
        io.write(camera / "all.png", np.full((40, 44), 255, np.uint8))
        io.write(camera / "some.png", mask)
        io.write(camera / "alpha.png", Picture(mask, alpha=mask))
        answer = called(camera, *words)
        assert answer.exit_code in (1, 2)
        said = " ".join(re.sub("[│╭╮╰╯─]", " ", answer.stderr).split())
        assert advice in said
        assert not PYTHON.search(said), said

    def test_python_has_its_own(self, tmp_path):
        io.write(tmp_path / "a.png", noisy())
        with pytest.raises(FileError, match="force=True") as caught:
            io.write(tmp_path / "a.png", noisy())
        assert "force=True" not in checks.on_command_line(caught.value)
        assert checks.on_command_line(ValueError("as it is")) == "as it is"
