"""What the explorer computes, without a browser: previews, workers and films."""

import contextlib
import io
import threading
import time
from functools import partial
from typing import Any

import numpy as np
import pytest
from PIL import Image

import aniso
from aniso import noise
from aniso.engines.cpu.threads import ThreadTeam
from aniso.explorer.choosing.choices import Choices, methods
from aniso.explorer.choosing.scene import Part, View, block_means
from aniso.explorer.choosing.unknown_pixels import RandomPixels
from aniso.explorer.computing import previews
from aniso.explorer.computing.previews import Pace
from aniso.explorer.computing.workers import Stale, Ticket, Worker
from aniso.explorer.showing import rendering
from tests.explorer.sessions import afford, layers, scene_of
from tests.processes import PATIENCE


class TestPreviews:
    def test_a_small_image_is_computed_as_it_is(self, shapes):
        call = Choices("diffuse").call(shapes)
        quick = previews.rehearse(call, shapes)
        part = previews.part(shapes, View.of_all(shapes.shape), quick, afford(1e6))
        trial = previews.coarsen(quick, shapes, part)
        assert part == Part(0, 256, 0, 256, 1)
        assert previews.is_exact(call, part, shapes)
        assert np.array_equal(trial.slab.volume, shapes.image)

    def test_a_preview_that_takes_a_shortcut_is_not_the_result(self, shapes):
        everything = Part(0, 256, 0, 256, 1)
        for method, exact in {"denoise": True, "enhance": False, "inpaint": False, "upsample": True}.items():
            assert previews.is_exact(Choices(method).call(shapes), everything, shapes) == exact
        one = Choices("enhance").with_value("refine", False).call(shapes)
        assert previews.is_exact(one, everything, shapes)
        long = Choices("diffuse").with_value("scheme", "explicit").with_value("time", 50.0).call(shapes)
        assert not previews.is_exact(long, everything, shapes)
        assert not previews.is_exact(one, Part(0, 128, 0, 128, 2), shapes)

    def test_less_time_makes_it_coarser(self):
        scene = scene_of(np.zeros((512, 512)))
        call = Choices("diffuse").call(scene)
        view = View.of_all((512, 512))
        assert [previews.part(scene, view, call, afford(n)).factor for n in (3e5, 7e4, 2e4)] == [1, 2, 4]

    def test_large_images_preview_what_is_visible(self):
        scene = scene_of(np.zeros((4000, 6000), np.uint8))
        view = View(left=2000, top=1000, right=2400, bottom=1300, scale=2.0)
        part = previews.part(scene, view, Choices("diffuse").call(scene), afford(1e6))
        left, top, right, bottom = part.rectangle
        assert part.factor == 1
        assert 1900 < left <= 2000 < 2400 <= right < 2500
        assert 900 < top <= 1000 < 1300 <= bottom < 1400

    def test_no_finer_than_the_screen(self):
        scene = scene_of(np.zeros((4000, 6000), np.uint8))
        view = View(left=0, top=0, right=6000, bottom=4000, scale=0.2)
        assert previews.part(scene, view, Choices("diffuse").call(scene), afford(1e9)).factor == 5

    def test_upsampling_gets_a_smaller_part(self, shapes):
        call = Choices("upsample").call(shapes)
        part = previews.part(shapes, View.of_all(shapes.shape), call, afford(64 * 64))
        assert part.factor == 1
        assert part.pixels == pytest.approx(64 * 64, rel=0.05)

    @pytest.mark.parametrize("method", methods())
    def test_a_coarse_preview_resembles_the_result(self, method):
        scene = scene_of(aniso.samples.fingerprint(256, period=16.0, noise=15.0).image)
        call = Choices(method, model="edge-enhancing", random_pixels=RandomPixels(0.5)).call(scene)
        factor = 1 if method == "upsample" else 2
        part = Part(0, 256 // factor, 0, 256 // factor, factor)
        trial = previews.coarsen(previews.rehearse(call, scene), scene, part)
        result, _ = trial.call(trial.slab.volume, lambda done, total: None)
        full, _ = call(scene.image, lambda done, total: None)
        expected = block_means(full, full.shape[0] // result.shape[0])
        assert np.abs(result - expected).mean() < 0.35 * np.abs(expected - expected.mean()).mean()

    @pytest.mark.parametrize("given", [None, "poisson", "gaussian", 12.0])
    def test_the_noise_of_a_coarse_preview(self, given):
        ramp = np.tile(np.linspace(20.0, 200.0, 256), (256, 1))
        photons = scene_of(noise.PoissonGaussian(4.0).sample(ramp, np.random.default_rng(0)))
        white = scene_of(noise.Gaussian(9.0).sample(ramp, np.random.default_rng(0)))

        def option(scene):
            call = Choices("denoise").with_value("noise", given).call(scene)
            return previews.coarsen(call, scene, Part(0, 128, 0, 128, 2)).call.options["noise"]

        assert option(photons) == {None: "poisson", 12.0: 6.0}.get(given, given)
        assert option(white) == (
            pytest.approx(4.5, rel=0.05) if given is None else {12.0: 6.0}.get(given, given)
        )

    def test_the_pace_is_learned(self, shapes):
        call, pace = Choices("denoise").call(shapes), Pace()
        for _ in range(6):
            pace.record(call, 10_000, 0.001)
        fast = pace.affordable(call)
        for _ in range(6):
            pace.record(call, 10_000, 0.02)
        assert fast > 1.5 * pace.affordable(call)

    def test_coarse_previews_of_denoise_do_without_the_net(self):
        scene = scene_of(np.tile(aniso.samples.shapes(128, noise=20.0).image, (2, 2)))
        coarse, fine = Part(0, 64, 0, 64, 4), Part(0, 64, 0, 64, 1)
        own = {("denoise", "method"): "learned"}
        for values, part, method in (({}, coarse, "diffusion"), ({}, fine, None), (own, coarse, "learned")):
            call = previews.rehearse(Choices("denoise", values=values).call(scene), scene)
            trial = previews.coarsen(call, scene, part)
            assert trial.call.options.get("method") == method
            assert ("with method diffusion" in trial.words) == (method == "diffusion")
        pace = Pace()
        pace.record(call, 10_000, 0.001, factor=4)
        assert pace.affordable(call, 4) > 2 * pace.affordable(call, 1)


class TestWorkers:
    def test_stale_requests_are_dropped_and_never_queued(self):
        worker, begun, go_on, done = (
            Worker("test", interrupts=False),
            threading.Event(),
            threading.Event(),
            [],
        )

        def job(number):
            def run(ticket):
                begun.set()
                go_on.wait(PATIENCE)
                done.append(number)

            return run

        worker.submit(job(0))
        assert begun.wait(PATIENCE)
        for number in range(1, 100):
            worker.submit(job(number))
        go_on.set()
        worker.close()
        assert done == [0, 99]

    def test_a_new_request_ends_the_running_one(self):
        worker, begun, ended = Worker("test", interrupts=True), threading.Event(), []

        def endless(ticket):
            begun.set()
            try:
                while True:
                    ticket.progress(0.5, 1.0)
                    time.sleep(0.001)
            finally:
                ended.append("endless")

        worker.submit(endless)
        assert begun.wait(PATIENCE)
        worker.submit(lambda ticket: ended.append("new"))
        worker.close()
        assert ended == ["endless", "new"]

    def test_it_also_ends_between_the_tasks_of_a_diffusion(self):
        worker, begun, ended = Worker("test", interrupts=True), threading.Event(), []

        def task(number):
            begun.set()
            time.sleep(0.001)

        def job(ticket):
            with contextlib.closing(ThreadTeam(1)) as team:
                try:
                    team.run(task, 10**9)
                finally:
                    ended.append("long")

        worker.submit(job)
        assert begun.wait(PATIENCE)
        worker.withdraw()
        worker.submit(lambda ticket: ended.append("new"))
        worker.close()
        assert ended == ["long", "new"]

    def test_without_a_request_there_is_no_thread(self):
        worker = Worker("an idle one", interrupts=True)
        assert "an idle one" not in {thread.name for thread in threading.enumerate()}
        worker.withdraw()
        worker.close()

    def test_lanes_do_not_drop_each_other(self):
        worker, go_on, done = Worker("test", interrupts=True), threading.Event(), []

        def noted(lane, ticket):
            done.append(lane)

        worker.submit(lambda ticket: go_on.wait(PATIENCE), "first")
        for lane in ("a", "b", "a"):
            worker.submit(partial(noted, lane), lane)
        go_on.set()
        worker.close()
        assert sorted(done) == ["a", "b"]


class TestScrubbing:
    def test_frames_reach_the_end(self, shapes):
        call = Choices("diffuse").call(shapes)
        steering: Any = call.steering(None)
        model, end = steering
        ticket = Ticket()
        film = list(rendering.film(shapes, call, model, end, ticket, count=5))
        assert [shot.facts["time"] for shot in film] == pytest.approx([0, 10 / 16, 10 / 4, 90 / 16, 10])
        assert ticket.share == 1

    def test_a_film_of_a_volume_shows_its_slice(self):
        scene = layers(2)
        call = Choices("diffuse").with_value("time", 2.0).call(scene)
        model, end = call.options["model"], call.options["time"]
        film = list(rendering.film(scene, call, model, end, Ticket(), count=4))
        seen = [Image.open(io.BytesIO(shot.picture.content)) for shot in film]
        assert [(image.height, image.width) for image in seen] == [scene.shape] * 4

    def test_it_stops_when_nobody_looks(self, shapes):
        call, ticket = Choices("diffuse").call(shapes), Ticket()
        steering: Any = call.steering(None)
        model, end = steering
        frames = rendering.film(shapes, call, model, end, ticket)
        next(frames)
        ticket.withdraw()
        with pytest.raises(Stale):
            list(frames)
