"""What the command tells of files and stencils."""

import json
import re

import numpy as np
import pytest
from PIL import Image

import aniso
from aniso import io, noise
from aniso.io.picture import Picture
from tests.cli.command_calls import called, noisy


class TestInfo:
    def test_for_people(self, tmp_path):
        alpha = np.full((40, 44), 255, np.uint8)
        io.write(tmp_path / "photo.tif", Picture(noisy((40, 44, 3)), -1, alpha, description="A square."))
        answer = called(tmp_path, "info", "photo.tif")
        assert answer.exit_code == 0
        for line in (
            r"format +TIFF, uint8",
            r"size +40 × 44 pixels \(height × width\)",
            r"channels +3, with alpha",
            r"values +\d+ to \d+, mean \d",
            r"description +A square\.",
            r"noise +1[0-5]\.\d+ grey values",
            r"(kind|channel 1) +gaussian \(level 1[0-5]\.\d+, correlation 0\)",
            r"certainty +[01](\.\d+)? \(of the noise",
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
        estimate = noise.estimate(stack)
        (model,) = estimate.models
        assert found["estimates"]["noise"] == estimate.level
        assert found["estimates"]["certainty"] == estimate.certainty
        assert found["estimates"]["noise_models"] == [{"name": type(model).__name__, **vars(model)}]
        expected = aniso.estimates.wavelength(stack, noise=estimate.level, spacing=(4, 2, 1))
        assert found["estimates"]["wavelength"] == expected
        answer = called(tmp_path, "info", "volume.nii.gz", "--json", "--slices")
        (found,) = json.loads(answer.stdout)["results"]
        assert found["estimates"]["noise"] == noise.estimate(stack[1]).level

    def test_the_kind_of_noise(self, tmp_path):
        ramp = np.tile(np.linspace(20.0, 200.0, 128), (128, 1))
        random = np.random.default_rng(0)
        photons = noise.PoissonGaussian(2.0).sample(ramp, random)
        np.save(tmp_path / "photons.npy", photons)
        said = called(tmp_path, "info", "photons.npy").stdout
        assert re.search(r"kind +poisson \(gain [12]\.\d+, offset .*, read noise .*, correlation 0\)\n", said)
        colours = np.stack([photons, noise.Gaussian(9.0).sample(ramp, random)], axis=-1)
        np.save(tmp_path / "colours.npy", colours)
        said = called(tmp_path, "info", "colours.npy", "--channel-axis", "-1").stdout
        assert re.search(r"channel 1 +poisson \(gain .*\n +channel 2 +gaussian \(level [89]", said)

    def test_traces_of_compression(self, tmp_path):
        camera = aniso.samples.photograph("camera")[:256, :256].astype(float)
        worn = noise.Gaussian(15.0).sample(camera, np.random.default_rng(0)).clip(0, 255).astype(np.uint8)
        Image.fromarray(worn).save(tmp_path / "photo.jpg", quality=40)
        assert "compression  by JPEG: fine noise is missing\n" in called(tmp_path, "info", "photo.jpg").stdout
        io.write(tmp_path / "photo.png", worn)
        assert "compression" not in called(tmp_path, "info", "photo.png").stdout
        (found,) = json.loads(called(tmp_path, "info", "photo.jpg", "--json").stdout)["results"]
        assert found["estimates"]["compressed"] is True

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
