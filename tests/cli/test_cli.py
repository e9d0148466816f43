"""The command line, on real files: most of it in a process of its own, as people call it."""

import dataclasses
import functools
import importlib
import json
import re
import signal
import subprocess
import sys
import time
import zlib
from io import StringIO

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import aniso
from aniso import io, models
from aniso.cli import app, commands
from aniso.cli.jobs.reporting import Report
from aniso.cli.options import diffusion_options
from aniso.cli.options.shared import ReportingOptions, describe
from aniso.io.picture import Picture
from aniso.parameters import About, of_model
from tests.cli.command_calls import PROGRAM, WIDE, aniso_command, called, contents, noisy

COMMANDS = tuple(commands.summaries())


def roughness(pixels):
    """Mean absolute difference of neighbours."""
    return float(abs(np.diff(pixels.astype(np.float64), axis=-1)).mean())


@pytest.fixture
def camera(tmp_path):
    """A folder with a noisy grey image."""
    io.write(tmp_path / "camera.png", noisy())
    return tmp_path


def save_all_kinds(folder):
    """A file of each kind, and what it holds."""
    alpha8, alpha16 = (
        np.arange(40 * 44).reshape(40, 44).astype(np.uint8),
        (37 * np.arange(40 * 44).reshape(40, 44)).astype(np.uint16),
    )
    pictures = {
        "grey8.png": Picture(noisy()),
        "grey16.png": Picture(noisy(dtype="uint16")),
        "colour16.png": Picture(noisy((40, 44, 3), "uint16"), channel_axis=-1),
        "alpha8.png": Picture(noisy((40, 44, 3)), channel_axis=-1, alpha=alpha8),
        "alpha16.png": Picture(noisy(dtype="uint16"), alpha=alpha16),
        "colour.jpg": Picture(noisy((40, 44, 3)), channel_axis=-1, resolution=(72.0, 72.0)),
        "grey16.tif": Picture(noisy(dtype="uint16")),
        "colour16.tif": Picture(noisy((40, 44, 3), "uint16"), channel_axis=-1),
        "float.tif": Picture(noisy(dtype="float32")),
        "pages.tif": Picture(noisy((3, 40, 44), "uint16")),
        "plain.npy": Picture(noisy(dtype="float64")),
        "large.npy": Picture(noisy(dtype="int32")),
        "volume.nii.gz": Picture(noisy((2, 40, 44), "int16"), spacing=(2.0, 1.0, 1.0)),
        "map.mrc": Picture(noisy((2, 40, 44), "float32"), spacing=(3.0, 3.0, 3.0), unit="Å"),
    }
    for name, picture in pictures.items():
        io.write(folder / name, picture)
    return pictures


@pytest.fixture(scope="module")
def all_kinds(tmp_path_factory):
    """All kinds of files, denoised by one call of the command."""
    folder = tmp_path_factory.mktemp("kinds")
    pictures = save_all_kinds(folder)
    answer = aniso_command(folder, "denoise", *pictures, "-o", "out/", "--json")
    return folder, pictures, answer


class TestKindsOfFiles:
    def test_the_call(self, all_kinds):
        folder, pictures, answer = all_kinds
        assert answer.returncode == 0, answer.stderr
        summary = json.loads(answer.stdout)
        assert [entry["input"] for entry in summary["results"]] == list(pictures)
        assert summary["errors"] == []
        assert {path.name for path in (folder / "out").iterdir()} == set(pictures)
        assert "pages.tif has 3 pages, which are filtered one by one" in answer.stderr

    @pytest.mark.parametrize(
        "name",
        ["grey8.png", "grey16.png", "colour16.png", "alpha8.png", "alpha16.png", "colour.jpg", "grey16.tif",
         "colour16.tif", "float.tif", "pages.tif", "plain.npy", "large.npy", "volume.nii.gz", "map.mrc"],
    )  # fmt: skip
    def test_the_results(self, all_kinds, name):
        folder, pictures, _ = all_kinds
        before, after = io.read(folder / name), io.read(folder / "out" / name)
        assert set(pictures) == {entry.name for entry in folder.iterdir() if entry.is_file()}
        assert after.dtype == before.dtype
        assert after.pixels.shape == before.pixels.shape
        assert after.spacing == before.spacing
        grey = np.moveaxis(after.pixels, -1, 0) if after.channel_axis is not None else after.pixels
        old = np.moveaxis(before.pixels, -1, 0) if before.channel_axis is not None else before.pixels
        assert roughness(grey) < 0.6 * roughness(old)
        assert abs(float(grey.mean()) / float(old.mean()) - 1) < 0.02  # nothing wrapped, nothing scaled
        if before.alpha is None:
            assert after.alpha is None
        else:
            np.testing.assert_array_equal(after.alpha, before.alpha)

    @pytest.mark.parametrize("name", ["grey16.png", "colour16.tif", "pages.tif"])
    def test_the_same_as_in_python(self, all_kinds, name):
        folder, _, _ = all_kinds
        picture = io.read(folder / name)
        pages = picture.pixels if name == "pages.tif" else picture.pixels[np.newaxis]
        axis = None if picture.channel_axis is None else -1
        wanted = np.stack([aniso.denoise(page, channel_axis=axis) for page in pages])
        found = io.read(folder / "out" / name).pixels
        np.testing.assert_array_equal(found.reshape(wanted.shape), np.clip(np.rint(wanted), 0, 65535))

    def test_sixteen_bits_stay_sixteen_bits_where_nothing_happens(self, tmp_path):
        rng = np.random.default_rng(0)
        for name, shape in (("grey.png", (9, 11)), ("colour.png", (9, 11, 3)), ("colour.tif", (9, 11, 3))):
            io.write(tmp_path / name, rng.integers(0, 2**16, shape).astype(np.uint16))
        answer = aniso_command(tmp_path, "diffuse", "*.png", "*.tif", "--time", "0", "-q")
        assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
        for name in ("grey.png", "colour.png", "colour.tif"):
            before, after = (io.read(tmp_path / n) for n in (name, name.replace(".", "_diffused.")))
            assert after.dtype == np.uint16
            np.testing.assert_array_equal(after.pixels, before.pixels)


class TestVerbs:
    def test_denoise(self, camera):
        answer = aniso_command(camera, "denoise", "camera.png", "--noise", "13", "--threads", "1")
        assert answer.returncode == 0
        assert answer.stdout.startswith("camera.png → camera_denoised.png  (40 × 44 pixels, uint8, ")
        assert re.search(r"noise level +13 grey values", answer.stdout)
        assert answer.stderr == ""

    def test_enhance(self, tmp_path):
        io.write(tmp_path / "fingerprint.png", aniso.samples.fingerprint(64).image.clip(0, 255).astype("u1"))
        answer = called(tmp_path, "enhance", "fingerprint.png", "--wavelength", "9", "--json")
        (result,) = json.loads(answer.stdout)["results"]
        assert result["info"][0]["wavelength"] == 9.0
        assert (tmp_path / "fingerprint_enhanced.png").exists()

    def test_upsample(self, tmp_path):
        alpha = np.arange(48, dtype=np.uint8).reshape(6, 8)
        io.write(tmp_path / "photo.png", Picture(noisy((6, 8, 3)), -1, alpha, resolution=(100.0, 100.0)))
        assert called(tmp_path, "upsample", "3", "photo.png").exit_code == 0
        fine = io.read(tmp_path / "photo_x3.png")
        assert fine.shape == (18, 24)
        np.testing.assert_array_equal(fine.alpha, alpha.repeat(3, 0).repeat(3, 1))
        assert fine.resolution == pytest.approx((300, 300), rel=1e-3)

    def test_diffuse_as_in_python(self, camera):
        words = ("--model", "coherence-enhancing", "--contrast", 5, "--rho", 2, "--time", 3, "--alpha", 0.25)
        answer = called(
            camera, "diffuse", "camera.png", *words, "--scheme", "fed", "--cycles", 2, "-o", "a.npy"
        )
        assert answer.exit_code == 0, answer.output
        model = aniso.CoherenceEnhancing(contrast=5, rho=2)
        wanted = aniso.diffuse(noisy(), model, 3.0, stencil=aniso.DeltaStencil(0.25), scheme=aniso.FED(2))
        np.testing.assert_array_equal(np.load(camera / "a.npy"), np.clip(np.rint(wanted), 0, 255))

    @pytest.mark.parametrize("name", models.kinds())
    def test_every_model_runs(self, camera, name):
        answer = called(camera, "diffuse", "camera.png", "--model", name, "--time", 1, "--json")
        found = json.loads(answer.stdout)["model"]
        assert found.pop("name") == models.kinds()[name].__name__
        defaults = {field.name: field.default for field in dataclasses.fields(models.kinds()[name])}
        assert found == defaults

    def test_a_constant_tensor(self, camera):
        answer = called(camera, "diffuse", "camera.png", "--angle", 90, "--time", 4, "-o", "down.png")
        assert answer.exit_code == 0, answer.output
        wanted = aniso.diffuse(noisy(), aniso.FixedTensor.from_matrix([[1, 0], [0, 0]], (40, 44)), 4.0)
        found = io.read(camera / "down.png").pixels
        assert abs(found - np.rint(wanted)).max() <= 1

    def test_engines_and_spacing(self, camera):
        for name in ("cpu", "reference"):
            words = ("--time", 2, "--engine", name, "--spacing", "1,2", "--dtype", "float32")
            assert called(camera, "diffuse", "camera.png", *words, "-o", f"{name}.npy").exit_code == 0
        wanted = aniso.diffuse(noisy(), aniso.EdgeEnhancing(), 2.0, spacing=(1.0, 2.0))
        np.testing.assert_array_equal(np.load(camera / "cpu.npy"), wanted)
        np.testing.assert_allclose(np.load(camera / "reference.npy"), wanted, atol=1e-2)

    def test_scale_space(self, camera):
        answer = called(camera, "scale-space", "camera.png", "--times", "0,1,2.5")
        assert answer.exit_code == 0, answer.output
        assert {"camera_0.png", "camera_1.png", "camera_2.5.png"} <= set(contents(camera))
        np.testing.assert_array_equal(io.read(camera / "camera_0.png").pixels, noisy())
        wanted = aniso.diffuse(noisy(), aniso.EdgeEnhancing(), 1.0)
        np.testing.assert_array_equal(io.read(camera / "camera_1.png").pixels, np.rint(wanted))

    def test_a_scale_space_of_one_time(self, camera):
        assert (
            "camera.png at one time  (" in called(camera, "scale-space", "camera.png", "--times", "1,").stdout
        )

    def test_scale_space_of_pages(self, tmp_path):
        io.write(tmp_path / "scan.tif", Picture(noisy((2, 20, 24))))
        words = ("--times", "1,2", "-o", "{stem}-t{time}.npy", "--json", "--contrast", "4")
        answer = called(tmp_path, "scale-space", "scan.tif", *words)
        outputs = json.loads(answer.stdout)["results"][0]["outputs"]
        assert outputs == [{"time": 1.0, "output": "scan-t1.npy"}, {"time": 2.0, "output": "scan-t2.npy"}]
        assert np.load(tmp_path / "scan-t2.npy").shape == (2, 20, 24)

    def test_a_figure(self, camera):
        answer = called(camera, "scale-space", "camera.png", "--times", "0,4", "--figure", "-q")
        assert answer.exit_code == 0, answer.output
        figure = io.read(camera / "camera_scale-space.png")
        assert figure.channels == 3
        assert min(figure.shape) > 300

    def test_demo(self, tmp_path, monkeypatch):
        from aniso.cli.jobs import demonstration

        panel = demonstration.Panel(
            "panel", "a panel", "", np.full((demonstration._SIDE, demonstration._SIDE), 100.0, np.float32)
        )
        monkeypatch.setattr(
            demonstration, "BLOCKS", (lambda: demonstration.Block("Title", "call()", [panel]),)
        )
        assert "Wrote aniso-demo/demo.png" in called(tmp_path, "demo").stdout
        again = json.loads(called(tmp_path, "demo", "--json").stdout)
        assert again["results"] == [{"output": "aniso-demo-2/demo.png"}]
        (tmp_path / "file").write_text("mine")
        assert called(tmp_path, "demo", "-o", "file/folder").exit_code == 1

    def test_bench(self, tmp_path):
        answer = called(tmp_path, "bench", "--size", 64, "--rounds", 1, "--threads", 1, "--json")
        found = json.loads(answer.stdout)
        assert (found["size"], found["threads"], len(found["results"])) == (64, 1, 3)
        assert all(entry["megapixels_per_second"] > 0 for entry in found["results"])
        assert "64 × 64 pixels, float32, engine cpu, 1 thread\n" in called(
            tmp_path, "bench", "--size", 64, "--rounds", 1, "--threads", 1
        ).stdout  # fmt: skip


class TestInpaint:
    def mask(self, shape=(40, 44)):
        mask = np.zeros(shape, np.uint8)
        mask[..., 15:19, 20:30] = 255
        return mask

    @pytest.mark.parametrize("inverted", [False, True])
    def test_a_mask(self, tmp_path, inverted):
        io.write(tmp_path / "photo.png", noisy((40, 44, 3)))
        io.write(tmp_path / "mask.png", 255 - self.mask() if inverted else self.mask())
        words = ["--mask", "mask.png", *(["--invert"] if inverted else [])]
        assert called(tmp_path, "inpaint", "photo.png", *words).exit_code == 0
        found, known = io.read(tmp_path / "photo_inpainted.png").pixels, self.mask() == 0
        np.testing.assert_array_equal(found[known], noisy((40, 44, 3))[known])
        assert (found[~known] != noisy((40, 44, 3))[~known]).any()

    def test_a_value(self, tmp_path):
        image = noisy(dtype="uint16")
        image[5:9, 5:9] = 0
        io.write(tmp_path / "scan.tif", image)
        answer = called(tmp_path, "inpaint", "scan.tif", "--mask-value", 0, "--json")
        assert json.loads(answer.stdout)["results"][0]["info"][0]["unknown"] == 16
        assert io.read(tmp_path / "scan_inpainted.tif").pixels[5:9, 5:9].min() > 10000

    def test_nan_and_pages(self, tmp_path):
        stack = noisy((2, 40, 44), "float32")
        stack[1, 3:5, 3:5] = np.nan
        np.save(tmp_path / "stack.npy", stack)
        assert called(tmp_path, "inpaint", "stack.npy").exit_code == 0
        found = np.load(tmp_path / "stack_inpainted.npy")
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(found[0], stack[0])

    def test_a_mask_for_each_page_or_for_all(self, tmp_path):
        io.write(tmp_path / "scan.tif", Picture(noisy((2, 40, 44))))
        io.write(tmp_path / "one.png", self.mask())
        io.write(tmp_path / "each.tif", Picture(np.stack([self.mask(), 0 * self.mask()])))
        for name, unknown in (("one.png", [40, 40]), ("each.tif", [40, 0])):
            answer = called(tmp_path, "inpaint", "scan.tif", "--mask", name, "--json", "--force")
            found = [info["unknown"] for info in json.loads(answer.stdout)["results"][0]["info"]]
            assert found == unknown

    @pytest.mark.parametrize(
        ("words", "code", "text"),
        [
            ((), 1, "nothing to fill in: no pixel is NaN or infinite. Give --mask or --mask-value."),
            (("--mask", "empty.png"), 1, "empty.png marks no unknown pixels"),
            (("--mask", "small.png"), 1, "small.png has 5 × 5 pixels"),
            (("--mask", "missing.png"), 1, "missing.png does not exist"),
            (("--mask-value", "300"), 1, "no pixel has the value 300"),
            (("--mask", "small.png", "--mask-value", "0"), 2, "Give one of them"),
            (("--invert",), 2, "--invert needs a mask"),
            (("--tolerance", "0", "--mask", "small.png"), 2, "0 is out of range: must be above 0"),
        ],
    )
    def test_refusals(self, camera, words, code, text):
        io.write(camera / "empty.png", 0 * self.mask())
        io.write(camera / "small.png", np.ones((5, 5), np.uint8))
        before = contents(camera)
        answer = called(camera, "inpaint", "camera.png", *words)
        assert answer.exit_code == code
        assert text in answer.stderr
        assert contents(camera) == before


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (("denoise",), ("noise", "contrast", "time")),
        (("enhance",), ("noise", "wavelength", "contrast", "time")),
        (("inpaint",), ("contrast", "sigma", "rho")),
        (("upsample", 2), ("contrast", "sigma", "rho", "time")),
    ],
    ids=["denoise", "enhance", "inpaint", "upsample"],
)
def test_auto_is_as_if_an_option_were_left_out(tmp_path, command, options):
    image = noisy((24, 28), "float32")
    image[3, 4] = np.nan if command == ("inpaint",) else 0
    np.save(tmp_path / "image.npy", image)
    words = [word for option in options for word in (f"--{option}", "auto")]
    for output, given in (("plain.npy", []), ("auto.npy", words)):
        answer = called(tmp_path, *command, "image.npy", "-o", output, *given)
        assert answer.exit_code == 0, answer.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "auto.npy"), np.load(tmp_path / "plain.npy"))


class TestInfo:
    def test_for_people(self, tmp_path):
        alpha = np.full((40, 44), 255, np.uint8)
        io.write(tmp_path / "photo.tif", Picture(noisy((40, 44, 3)), -1, alpha, description="A square."))
        answer = aniso_command(tmp_path, "info", "photo.tif")
        assert answer.returncode == 0
        for line in (
            r"format +TIFF, uint8",
            r"size +40 × 44 pixels \(height × width\)",
            r"channels +3, with alpha",
            r"values +\d+ to \d+, mean \d",
            r"description +A square\.",
            r"noise +1[0-5]\.\d+ grey values",
            r"wavelength +\d",
        ):
            assert re.search(line, answer.stdout), line

    def test_for_machines(self, tmp_path):
        stack = noisy((3, 40, 44), "int16")
        io.write(tmp_path / "volume.nii.gz", Picture(stack, spacing=(2.0, 1.0, 0.5), unit="mm"))
        answer = called(tmp_path, "info", "volume.nii.gz", "--json")
        (found,) = json.loads(answer.stdout)["results"]
        assert (found["shape"], found["spacing"], found["unit"]) == ([3, 40, 44], [2.0, 1.0, 0.5], "mm")
        assert (found["least"], found["largest"]) == (stack.min(), stack.max())
        noise = aniso.estimates.noise_level(stack)
        assert found["estimates"]["noise"] == noise
        expected = aniso.estimates.wavelength(stack, noise=noise, spacing=(4, 2, 1))
        assert found["estimates"]["wavelength"] == expected
        answer = called(tmp_path, "info", "volume.nii.gz", "--json", "--slices")
        (found,) = json.loads(answer.stdout)["results"]
        assert found["estimates"]["noise"] == aniso.estimates.noise_level(stack[1])

    def test_volumes_consist_of_voxels(self, tmp_path):
        stack = noisy((9, 40, 44), "int16")
        io.write(tmp_path / "volume.nii.gz", Picture(stack, spacing=(2.0, 1.0, 1.0), unit="mm"))
        said = called(tmp_path, "info", "volume.nii.gz").stdout
        for line in (
            r"size +9 × 40 × 44 voxels \(depth × height × width\)\n",
            r"gradients +[\d.]+ grey values per voxel \(typical\)",
            r"wavelength +[\d.]+ voxels \(line",
            r"lengths +in units of the shortest side of a voxel\n",
        ):
            assert re.search(line, said), line
        assert "page" not in said
        assert "pixel" not in said
        said = called(tmp_path, "info", "volume.nii.gz", "--slices").stdout
        assert re.search(r"size +40 × 44 pixels \(height × width\)\n +pages +9\n", said)
        assert "voxel" not in said

    def test_without_estimates(self, tmp_path):
        np.save(tmp_path / "heights.npy", np.array([[1.0, np.nan], [2.0, 3.0]]))
        assert "some values are not finite" in called(tmp_path, "info", "heights.npy").stdout
        (found,) = json.loads(called(tmp_path, "info", "heights.npy", "--no-estimate", "--json").stdout)[
            "results"
        ]
        assert found["estimates"] == {}
        assert (found["unknown"], found["mean"]) == (1, 2.0)


class TestStencil:
    def test_as_in_python(self, tmp_path):
        words = ("--alpha", 0.3, "--gamma", 0.5, "--tensor", 1, -0.25, 0.5, "--spacing", "1,2", "--json")
        (found,) = json.loads(called(tmp_path, "stencil", *words).stdout)["results"]
        stencil = aniso.DeltaStencil(0.3, 0.5)
        fields = [np.full((5, 5), entry) for entry in (1.0, -0.25, 0.5)]
        entries = aniso.stencil.entries(fields[0], fields[1], fields[2], stencil, (1.0, 2.0))[:, :, 2, 2]
        np.testing.assert_allclose(found["entries"], entries, atol=1e-15)
        larger, smaller = found["eigenvalues"]
        bound = aniso.stability.spectral_bound(stencil, larger, smaller, (1.0, 2.0))
        assert found["stable_step"] == 2 / bound
        np.testing.assert_allclose(sum(found["eigenvalues"]), 1.5)

    def test_an_angle(self, tmp_path):
        words = ("--angle", 30, "--eigenvalues", 2, 1)
        (found,) = json.loads(called(tmp_path, "stencil", *words, "--json").stdout)["results"]
        np.testing.assert_allclose(found["eigenvalues"], [2, 1])
        _, vectors = np.linalg.eigh(found["tensor"])
        np.testing.assert_allclose(np.degrees(np.arctan(vectors[1, 1] / vectors[0, 1])), 30)

    def test_for_people(self, tmp_path):
        answer = called(tmp_path, "stencil", "--stencil", "nonnegativity", "--tensor", 1, 0.25, 0.5)
        assert "stencil                 α = 0, γ = 1\n" in answer.stdout
        assert "holds: no neighbour has a negative weight" in answer.stdout
        assert "     0.2500   0.2500   0.0000\n     0.7500  -2.5000   0.7500\n" in answer.stdout

    @pytest.mark.parametrize(
        ("words", "text"),
        [
            (("--stencil", "best"), "unknown stencil 'best'"),
            (("--stencil", "standard", "--alpha", "0.1"), "already sets α and γ"),
            (("--alpha", "0.6"), "0.6 is out of range: must be from 0 to 0.5"),
            (("--alpha", "0.4", "--beta", "0.5"), "beta must lie in"),
            (("--gamma", "0.5", "--beta", "0.1"), "both given"),
            (("--tensor", "1", "2", "1"), "has a negative eigenvalue"),
            (("--tensor", "1", "0", "nan"), "finite"),
            (("--tensor", "1", "0", "1", "--angle", "3"), "Remove --angle"),
            (("--spacing", "0"), "0 is out of range: must be above 0"),
            (("--spacing", "1,1,1"), "has 3 numbers"),
            (("--spacing", "file"), "reads no file"),
        ],
    )
    def test_refusals(self, tmp_path, words, text):
        answer = called(tmp_path, "stencil", *words)
        assert answer.exit_code == 2
        assert text in answer.stderr


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


class TestNpy:
    def test_channels(self, tmp_path):
        np.save(tmp_path / "last.npy", noisy((40, 44, 3), "float32"))
        np.save(tmp_path / "first.npy", np.moveaxis(noisy((40, 44, 3), "float32"), -1, 0))
        for name, axis in (("last", -1), ("first", 0)):
            words = ("--time", 2, "--contrast", 0.05, "--channel-axis", axis)
            assert called(tmp_path, "diffuse", f"{name}.npy", *words).exit_code == 0
        last, first = (np.load(tmp_path / f"{name}_diffused.npy") for name in ("last", "first"))
        np.testing.assert_array_equal(np.moveaxis(first, 0, -1), last)

    def test_colours_or_a_stack(self, tmp_path):
        np.save(tmp_path / "a.npy", noisy((40, 44, 3), "float32"))
        answer = called(tmp_path, "denoise", "a.npy")
        assert answer.exit_code == 1
        assert "Add --channel-axis -1 or --channel-axis none." in answer.stderr
        np.save(tmp_path / "stack.npy", noisy((3, 40, 44), "float32"))
        answer = called(tmp_path, "diffuse", "stack.npy", "--time", 0, "--channel-axis", "none")
        assert (answer.exit_code, "volume 3 × 40 × 44" in answer.stdout) == (0, True)

    def test_other_files_say_it_themselves(self, camera):
        answer = called(camera, "denoise", "camera.png", "--channel-axis", -1)
        assert (answer.exit_code, "--channel-axis is for NPY" in answer.stderr) == (1, True)
        assert called(camera, "denoise", "camera.png", "--channel-axis", "x").exit_code == 2

    def test_too_many_axes(self, tmp_path):
        np.save(tmp_path / "a.npy", np.zeros((2, 2, 8, 8)))
        answer = called(tmp_path, "denoise", "a.npy")
        assert (answer.exit_code, "has 4 axes" in answer.stderr) == (1, True)

    def test_signals(self, tmp_path):
        np.save(tmp_path / "signal.npy", noisy((1, 60), "float64")[0])
        assert called(tmp_path, "diffuse", "signal.npy", "--time", 2, "--contrast", 0.1).exit_code == 0
        wanted = aniso.diffuse(noisy((1, 60), "float64")[0], aniso.EdgeEnhancing(contrast=0.1), 2.0)
        np.testing.assert_array_equal(np.load(tmp_path / "signal_diffused.npy"), wanted)


class TestHints:
    def test_contrast_and_spacing(self, tmp_path):
        io.write(tmp_path / "volume.nii.gz", Picture(noisy(dtype="int16"), spacing=(2.0, 1.0), unit="mm"))
        answer = called(tmp_path, "diffuse", "volume.nii.gz", "--time", 1)
        assert "the default contrast 3.5 suits grey values from 0 to 255" in answer.stderr
        assert "measure 2 × 1 mm but are treated as square. Add --spacing file" in answer.stderr
        words = ("--time", 1, "--contrast", 900, "--spacing", "file", "--force")
        answer = called(tmp_path, "diffuse", "volume.nii.gz", *words)
        assert (answer.exit_code, answer.stderr) == (0, "")
        wanted = aniso.diffuse(noisy(dtype="int16"), aniso.EdgeEnhancing(900), 1.0, spacing=(2.0, 1.0))
        found = io.read(tmp_path / "volume_diffused.nii.gz").pixels
        np.testing.assert_array_equal(found, np.rint(wanted))

    def test_a_file_that_does_not_say(self, camera):
        answer = called(camera, "denoise", "camera.png", "--spacing", "file")
        assert (answer.exit_code, "does not store a pixel spacing" in answer.stderr) == (1, True)

    def test_dtype_and_alpha(self, tmp_path):
        alpha = np.full((40, 44), 128, np.uint8)
        io.write(tmp_path / "a.png", Picture(noisy(), alpha=alpha))
        for dtype, opacity in (("uint16", 32896), ("float32", np.float32(128 / 255))):
            words = ("--time", 1, "--dtype", dtype, "-o", f"{dtype}.tif")
            assert called(tmp_path, "diffuse", "a.png", *words).exit_code == 0
            found = io.read(tmp_path / f"{dtype}.tif")
            assert found.dtype == dtype
            np.testing.assert_array_equal(found.alpha, np.full((40, 44), opacity))
            assert found.pixels.max() < 256  # not scaled
        answer = called(tmp_path, "diffuse", "a.png", "--time", 1, "--dtype", "float32")
        assert (answer.exit_code, "PNG files cannot hold float32" in answer.stderr) == (1, True)


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
            ("note.txt", (), "note.txt has no suffix that stands for an image file"),
            ("folder.png", (), "folder.png is a folder"),
            ("camera.png", ("-o", "camera.png"), "camera.png exists already: it is the input itself"),
            (
                "camera.png",
                ("-o", "there.png"),
                "there.png exists already. Give another name, or add --force to overwrite it.",
            ),
            ("camera.png", ("-o", "nowhere/a.png"), "its folder does not exist"),
            ("tiny.npy", (), "Fill them in first, with aniso inpaint."),
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
        np.save(camera / "tiny.npy", np.array([[np.nan, 1.0], [2.0, 3.0]]))
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
        answer = aniso_command(camera, "denoise", "camera.png", "-o", "camera.png")
        assert (answer.returncode, answer.stdout) == (1, "")
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
        answer = aniso_command(camera, "diffuse", "*.png", "--time", "1", "-o", "out/", "--json")
        assert answer.returncode == 1
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
            (("denoise", "camera.png", "--noise", "-1"), "-1 is out of range: must be at least 0"),
            (("denoise", "camera.png", "--noise", "much"), "'much' is not a number"),
            (("denoise", "camera.png", "--time", "soon"), "'soon' is not a number or 'auto'"),
            (("denoise", "camera.png", "--contrast", "inf"), "inf is not a finite number"),
            (("denoise", "camera.png", "--threads", "0"), "--threads"),
            (("denoise", "camera.png", "--engine", "steam"), "--engine"),
            (("denoise", "camera.png", "--spacing", "1,-1"), "-1 is out of range: must be above 0"),
            (("upsample", "9", "camera.png"), "9 is out of range: must be from 1 to 8"),
            (("upsample", "camera.png", "2"), "'camera.png' is not an integer. Give the factor first"),
            (("diffuse", "camera.png"), "--time"),
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
        answer = aniso_command(camera, "denoise", "camera.png", "--quiet")
        assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
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


# The encoder stops in the middle, and says so.
SLOW = """
import dataclasses, sys, time
from aniso.io.formats import FORMATS
def write(path, picture):
    path.write_bytes(b"half a picture")
    print("writing", flush=True)
    time.sleep(60)
FORMATS["PNG"] = dataclasses.replace(FORMATS["PNG"], write=write)
from aniso.__main__ import main
main()
"""


class TestInterruptions:
    @pytest.mark.parametrize(
        ("number", "code"),
        [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129), (signal.SIGKILL, -9)],
    )
    def test_in_the_middle_of_a_write(self, camera, number, code):
        (camera / "result.png").write_bytes(b"the old result")
        before = contents(camera)
        words = ["diffuse", "camera.png", "--time", "1", "-o", "result.png", "--force"]
        with subprocess.Popen(
            [sys.executable, "-c", SLOW, *words], cwd=camera, env=WIDE, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # the tests may run under nohup
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert process.stdout.readline() == "writing\n"
            time.sleep(0.1)
            process.send_signal(number)
            _, errors = process.communicate(timeout=20)
        assert process.returncode == code
        after = contents(camera)
        if number == signal.SIGKILL:  # nobody could tidy up; the old file is there all the same
            after = {name: content for name, content in after.items() if not name.startswith(".")}
        else:
            assert errors == "aniso: interrupted; no file was left half-written.\n"
        assert after == before

    def test_in_the_middle_of_the_work(self, camera):
        np.save(camera / "large.npy", noisy((600, 600), "float32"))
        before = set(contents(camera))
        words = ["diffuse", "large.npy", "--time", "1e5", "--contrast", "0.1", "--threads", "2"]
        with subprocess.Popen([*PROGRAM, *words], cwd=camera, env=WIDE, stderr=subprocess.PIPE) as process:
            time.sleep(3)
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=20)
        assert (process.returncode, b"Traceback" in errors) == (143, False)
        assert set(contents(camera)) == before


class TestHelp:
    def test_nothing_prints_help(self):
        answer = aniso_command(".")
        assert answer.returncode == 2
        shown = answer.stdout + answer.stderr
        for name, summary in commands.summaries().items():
            assert re.search(rf"{name} +{re.escape(summary)}", shown)
        assert "aniso demo" in shown

    def test_version(self):
        assert aniso_command(".", "--version").stdout == f"aniso {aniso.__version__}\n"

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command_has_examples_that_can_be_called(self, name):
        answer = called(".", name, "--help")
        assert answer.exit_code == 0
        for example in commands.examples(name):
            assert example in answer.stdout
            assert example.startswith(f"aniso {name}")
        # Markup must not have eaten anything.
        assert "{stem}" in answer.stdout or name in ("explore", "info", "stencil", "demo", "bench")

    @pytest.mark.parametrize("name", ["diffuse", "scale-space"])
    def test_every_field_of_every_model_is_an_option(self, name):
        shown = " ".join(called(".", name, "--help").stdout.replace("│", " ").split())
        for title, kind in models.kinds().items():
            assert title in shown
            for field in of_model(kind).values():
                about = field.about
                assert f"--{field.name.replace('_', '-')}" in shown
                assert describe(about) in shown
                default = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
                default = {"True": "yes", "False": "no"}.get(default, default)
                assert re.search(rf"{re.escape(default)} \([a-z, -]*{title}", shown), (title, field.name)
                for choice in about.choices:
                    assert choice in shown

    def test_a_new_model_appears_by_itself(self, camera, monkeypatch):
        @dataclasses.dataclass(frozen=True)
        class SlowHeat(models.ImageDriven):
            """Slow heat: as it says."""

            thickness: float = About(
                symbol="d", unit="length", high=9.0, meaning="how thick the plate is"
            ).field(2.0)

            def tensor_formula(self, channels, values=None, ndim=2):
                return models.Homogeneous().tensor_formula(channels)

        monkeypatch.setattr(models.image_driven, "SlowHeat", SlowHeat, raising=False)
        monkeypatch.setattr(models.image_driven, "__all__", [*models.image_driven.__all__, "SlowHeat"])
        modules = ("aniso.cli.commands.diffuse", "aniso.cli.commands.scale_space")
        for name in modules:
            importlib.import_module(name)  # so that there is something to come back to
            monkeypatch.delitem(sys.modules, name)
        shown = " ".join(called(".", "diffuse", "--help").stdout.replace("│", " ").split())
        assert "slow-heat (as it says)" in shown
        assert (
            "--thickness NUMBER d in units of length: how thick the plate is. Values: from 0 to 9. "
            "Default: 2 (slow-heat)" in shown
        )
        words = ("--model", "slow-heat", "--thickness", 3, "--time", 1, "--json")
        answer = called(camera, "diffuse", "camera.png", *words)
        assert json.loads(answer.stdout)["model"] == {"name": "SlowHeat", "thickness": 3.0}
        for name in modules:
            monkeypatch.delitem(sys.modules, name, raising=False)

    @pytest.mark.parametrize(
        ("words", "heavy"),
        [
            (["--help"], ("numpy", "scipy", "numba", "torch", "PIL", "tifffile", "matplotlib")),
            # The options are those of the function, whose module imports NumPy.
            (["denoise", "--help"], ("scipy", "numba", "torch", "PIL", "tifffile", "matplotlib")),
            (["diffuse", "--help"], ("scipy", "numba", "torch", "PIL", "tifffile", "matplotlib")),
        ],
    )
    def test_help_imports_nothing_heavy(self, words, heavy):
        program = (
            "import sys; from aniso.__main__ import main\n"
            f"sys.argv[1:] = {words!r}\n"
            "try: main()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
        )
        answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=WIDE)
        loaded = set(answer.stderr.split())
        assert "typer" in loaded
        assert not loaded.intersection(heavy)

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_completion_scripts(self, shell, monkeypatch):
        monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
        answer = CliRunner().invoke(app, ["--show-completion", shell], prog_name="aniso")
        assert answer.exit_code == 0
        assert "_ANISO_COMPLETE" in answer.stdout

    def test_completion(self):
        def completed(*words):
            settings = {"_ANISO_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words)}
            settings["COMP_CWORD"] = str(len(words) - 1)
            answer = subprocess.run(PROGRAM, env={**WIDE, **settings}, capture_output=True, text=True)
            return answer.stdout.split()

        assert completed("aniso", "de") == ["denoise", "demo"]
        assert completed("aniso", "diffuse", "--min") == ["--min-diffusivity"]

    def test_installing_completion(self, tmp_path):
        settings = {**WIDE, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
        answer = subprocess.run(
            [*PROGRAM, "--install-completion", "bash"], env=settings, capture_output=True, text=True
        )
        assert answer.returncode == 0
        assert "aniso" in (tmp_path / ".bashrc").read_text("utf-8")


class Terminal(StringIO):
    """A terminal that remembers."""

    def isatty(self):
        return True


class TestProgress:
    def shown(self, monkeypatch, **wanted):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")
        with Report("denoise", ReportingOptions(**wanted)).progress("camera.png") as tell:
            tell(1, 4)
            time.sleep(0.3)
        return terminal.getvalue()

    def test_on_a_terminal(self, monkeypatch):
        text = self.shown(monkeypatch)
        assert "camera.png" in text
        assert "25%" in text
        assert "-:--:--" in text or re.search(r"\d:\d\d:\d\d", text)

    def test_quiet(self, monkeypatch):
        assert self.shown(monkeypatch, quiet=True) == ""

    def test_verbs_tell_it(self, camera, monkeypatch):
        told: list[float] = []
        monkeypatch.setattr(Report, "progress", telling(told))
        assert called(camera, "denoise", "camera.png").exit_code == 0
        assert told[-1] == 1.0
        assert told == sorted(told)
        assert len(told) > 3


def telling(told):
    import contextlib

    @contextlib.contextmanager
    def progress(self, title):
        yield lambda done, total: told.append(done / total)

    return progress


def test_usage_errors_of_options_are_typers():
    with pytest.raises(typer.BadParameter):
        diffusion_options.ModelOptions(
            model="homogeneous", **dict.fromkeys(diffusion_options._model_fields(), 1.0)
        ).chosen()


class TestNothingIsLostInSilence:
    def test_alpha_is_clipped_and_not_wrapped(self, tmp_path):
        alpha = np.full((20, 24), 255.0, np.float32)
        io.write(tmp_path / "float.tif", Picture(noisy((20, 24)).astype(np.float32), alpha=alpha))
        answer = called(tmp_path, "diffuse", "float.tif", "--time", "1", "--dtype", "uint8", "-o", "byte.tif")
        assert answer.exit_code == 0, answer.output
        assert np.all(io.read(tmp_path / "byte.tif").alpha == 255)

    def test_no_result_goes_to_another_input(self, tmp_path):
        for name in ("1.png", "2.png"):
            io.write(tmp_path / name, noisy())
        words = ("diffuse", "2.png", "1.png", "--time", "2", "-o", "{number}.png", "--force")
        answer = called(tmp_path, *words)
        assert answer.exit_code == 2
        assert "which is also an input" in " ".join(answer.output.replace("│", " ").split())
        np.testing.assert_array_equal(io.read(tmp_path / "1.png").pixels, noisy())

    def test_close_times_have_files_of_their_own(self, camera):
        answer = called(
            camera, "scale-space", "camera.png", "--times", "100.0001,100.0002", "--scheme", "fed"
        )
        assert answer.exit_code == 0, answer.output
        assert {"camera_100.0001.png", "camera_100.0002.png"} <= set(contents(camera))

    def test_an_empty_output_is_a_usage_error(self, camera):
        assert called(camera, "diffuse", "camera.png", "--time", "1", "-o", "").exit_code == 2


class TestVolumes:
    """Stacks that are volumes are filtered as such, with the shape of their voxels."""

    VOLUME = aniso.samples.balls((9, 14, 16), noise=20.0).image.clip(0, 255)

    @pytest.mark.parametrize(("name", "unit"), [("v.nii.gz", "mm"), ("v.mrc", "Å"), ("v.tif", "um")])
    def test_the_voxel_size_is_used_and_kept(self, tmp_path, name, unit):
        volume = self.VOLUME.astype(np.float32)
        io.write(tmp_path / name, Picture(volume, spacing=(6.0, 2.0, 2.0), unit=unit))
        answer = called(tmp_path, "denoise", name)
        assert answer.exit_code == 0, answer.stderr
        assert "(volume 9 × 14 × 16, spacing 3 × 1 × 1, float32" in answer.stdout
        found = io.read(tmp_path / name.replace("v.", "v_denoised."))
        assert found.spacing == pytest.approx((6.0, 2.0, 2.0))
        np.testing.assert_array_equal(found.pixels, aniso.denoise(volume, spacing=(3, 1, 1)))

    def test_slices_and_volume(self, tmp_path):
        io.write(tmp_path / "many.tif", Picture(self.VOLUME.astype(np.uint16)))
        io.write(tmp_path / "few.tif", Picture(self.VOLUME.astype(np.uint16)[:4]))
        for words, volume, note in (
            (["many.tif"], True, "filtered as one volume. Add --slices"),
            (["many.tif", "--slices"], False, "filtered one by one"),
            (["few.tif"], False, "filtered one by one. Add --volume"),
            (["few.tif", "--volume"], True, ""),
        ):
            answer = called(tmp_path, "diffuse", *words, "--time", 1, "--force")
            assert answer.exit_code == 0
            assert ("(volume " in answer.stdout) is volume
            assert note in " ".join(answer.stderr.split())

    def test_one_slice_is_an_image(self, tmp_path):
        io.write(tmp_path / "one.mrc", Picture(self.VOLUME.astype(np.float32)[:1]))
        answer = called(tmp_path, "diffuse", "one.mrc", "--time", 1)
        assert (answer.exit_code, "14 × 16 pixels" in answer.stdout) == (0, True)

    def test_all_verbs(self, tmp_path):
        np.save(tmp_path / "v.npy", self.VOLUME)
        io.write(tmp_path / "mask.png", Picture(np.eye(14, 16, dtype=np.uint8) * 255))
        lines = aniso.enhance(self.VOLUME, plates=False)
        assert called(tmp_path, "enhance", "v.npy", "--no-plates").exit_code == 0
        np.testing.assert_array_equal(np.load(tmp_path / "v_enhanced.npy"), lines)
        assert called(tmp_path, "upsample", 2, "v.npy").exit_code == 0
        assert np.load(tmp_path / "v_x2.npy").shape == (18, 28, 32)
        assert called(tmp_path, "inpaint", "v.npy", "--mask", "mask.png").exit_code == 0
        found, known = np.load(tmp_path / "v_inpainted.npy"), np.eye(14, 16) == 0
        np.testing.assert_array_equal(found[:, known], self.VOLUME[:, known])
        assert called(tmp_path, "scale-space", "v.npy", "--times", "1,2", "--figure").exit_code == 0
        answer = called(tmp_path, "diffuse", "v.npy", "--tensor", 1, 0, 1, "--time", 1)
        assert (answer.exit_code, "--slices" in answer.stderr) == (1, True)

    def test_spacing_may_be_given(self, tmp_path):
        np.save(tmp_path / "v.npy", self.VOLUME)
        answer = called(tmp_path, "diffuse", "v.npy", "--time", 1, "--spacing", "2,1,1")
        assert (answer.exit_code, "spacing 2 × 1 × 1" in answer.stdout) == (0, True)
        model = aniso.EdgeEnhancing()
        expected = aniso.diffuse(self.VOLUME, model, 1.0, spacing=(2, 1, 1))
        np.testing.assert_array_equal(np.load(tmp_path / "v_diffused.npy"), expected)
