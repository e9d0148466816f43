"""What the explorer shows, without a browser: pictures, overlays and stencils."""

import io

import numpy as np
import pytest
from PIL import Image

import aniso
from aniso.explorer.choosing.scene import Scene, Source
from aniso.explorer.page import stencil_tab
from aniso.explorer.showing import pictures, rendering
from aniso.explorer.showing.pictures import Album
from aniso.io.picture import Picture
from tests.explorer.sessions import scene_of


class TestPictures:
    def test_shown_and_encoded(self):
        image = np.random.default_rng(0).integers(0, 255, (20, 30, 3), dtype=np.uint8)
        picture = pictures.encode(pictures.shown(image, (0.0, 255.0)), lossless=True)
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(picture.content))), image)
        assert picture.kind == "image/png"

    def test_a_large_veil_keeps_its_alpha(self):
        picture = pictures.tinted(np.full((1600, 1500), 0.5), (10, 20, 30))
        with Image.open(io.BytesIO(picture.content)) as veil:
            assert (veil.mode, veil.size) == ("RGBA", (1500, 1600))
            assert veil.getpixel((1499, 3)) == (10, 20, 30, 127)

    def test_other_channels_are_averaged_and_nan_is_black(self):
        assert pictures.shown(np.ones((4, 5, 2)), (0.0, 2.0)).shape == (4, 5)
        assert pictures.shown(np.full((2, 2), np.nan), (0.0, 1.0)).max() == 0

    def test_no_difference_is_mid_grey(self):
        image = np.random.default_rng(0).random((16, 16))
        seen, full = pictures.difference(image, image, (0.0, 1.0))
        assert (seen == 128).all()
        assert full > 0
        brighter, full = pictures.difference(image, image + 0.25, (0.0, 1.0))
        assert (brighter == 255).all()
        assert full == pytest.approx(0.25, rel=1e-3)


class TestAlbum:
    def test_the_last_few_of_each_slot_are_kept(self):
        album = Album()
        numbers = [album.add("after", pictures.Encoded(bytes([k]), "image/png")) for k in range(5)]
        other = album.add("before", pictures.Encoded(b"", "image/png"))
        kept = [album.get("after", number) for number in numbers]
        assert [picture and picture.content for picture in kept] == [None, None, b"\x02", b"\x03", b"\x04"]
        assert album.get("before", numbers[-1]) is None  # a number stands for one picture
        album.clear(but=["before"])
        assert album.get("after", numbers[-1]) is None
        assert album.drop("before")
        assert album.get("before", other) is None
        assert not album.drop("before")


class TestOverlays:
    def test_ellipses_lie_along_edges(self):
        image = np.zeros((64, 64))
        image[:, 32:] = 255.0
        field = rendering.Field.of(scene_of(image), aniso.EdgeEnhancing(contrast=2.0), None)
        x, _, long, short, angle = min(field.ellipses(), key=lambda each: abs(each[0] - 32))
        assert abs(x - 32) < 2
        assert long == pytest.approx(1.0, abs=0.01)
        assert short < 0.1
        assert abs(np.sin(angle)) == pytest.approx(1.0, abs=0.01)  # upwards, as the edge
        veil = np.asarray(Image.open(io.BytesIO(field.stopped().content)))[..., 3]
        assert veil[32, 32] > 180
        assert veil[32, 5] == 0

    @pytest.mark.parametrize("axis", [0, 1, 2])
    def test_in_volumes_the_plane_of_the_slice_is_shown(self, axis):
        volume = np.zeros((24, 28, 32), np.float32)
        volume[:, 14:] = 255.0  # an edge across y
        scene = Scene(Source(Picture(volume), "edge.npy", "", True), axis, 13, whole=True)
        field = rendering.Field.of(scene, aniso.EdgeEnhancing(contrast=2.0), None)
        rows, columns = scene.shape
        larger, smaller = field.eigenvalues
        assert larger.shape == (rows, columns)
        assert larger[rows // 2, columns // 2] == pytest.approx(1.0, abs=0.01)
        # Seen along y, the edge lies in the plane, and the flow in it is free.
        assert (smaller[rows // 2, columns // 2] > 0.9) == (axis == 1)
        gradients = rendering.gradients(scene, 1.0, None)
        assert gradients[-1] > 50
        assert len(gradients) == rows * columns

    def test_the_histogram_counts_and_marks(self, shapes):
        gradients = rendering.gradients(shapes, 1.0, None)
        assert rendering.gradients(shapes, 1.0, None) is gradients
        assert rendering.gradients(shapes, 2.0, None)[-1] < gradients[-1]
        median = float(np.median(gradients))
        histogram = rendering.Histogram.of(gradients, median)
        assert histogram.below == pytest.approx(0.5, abs=0.01)
        assert max(histogram.counts) == 1
        assert f"λ = {median:.3g}, 50% below" in histogram.svg()
        assert "λ" not in rendering.Histogram.of(gradients, None).svg()

    def test_a_flat_image(self):
        flat = scene_of(np.ones((32, 32)))
        assert "svg" in rendering.Histogram.of(rendering.gradients(flat, 0.0, None), 1.0).svg()


class TestStencils:
    def test_figures_are_those_of_the_library(self):
        choice = stencil_tab.StencilChoice(alpha=0.25, gamma=0.0, angle=0.0)
        facts = choice.facts()
        assert facts["stable_step"] == 0.5
        assert facts["paper_step"] == pytest.approx(2 / 5)
        assert np.sum(facts["entries"]) == pytest.approx(0)

    def test_the_ring_test_tells_stencils_apart(self):
        lost = [stencil_tab.diffuse_rings(stencil_tab.StencilChoice(alpha, gamma))[1] for alpha, gamma in
                ((0.0, 0.0), (0.0, 1.0), (0.4, 1.0))]  # fmt: skip
        assert lost[0] > lost[1] > lost[2]
