"""Scenes and a tab without a browser, for tests."""

import asyncio
import threading

import numpy as np

import aniso
from aniso.explorer.choosing.scene import Scene, Source
from aniso.explorer.computing.previews import Pace
from aniso.explorer.page.session import Session
from aniso.io.picture import Picture
from tests.processes import PATIENCE


class Notes:
    """A stage that takes notes."""

    def __init__(self):
        self.shown, self.told = [], []

    def show(self, slot, number, rectangle, facts):
        self.shown.append((slot, rectangle, facts))

    def drop(self, *slots):
        pass

    def tell(self, **news):
        self.told.append(news)

    @property
    def error(self):
        said = [news["error"] for news in self.told if "error" in news]
        return said[-1] if said else None

    def slots(self):
        return {slot for slot, _, _ in self.shown}


def in_a_session(scenario):
    """Run a coroutine function with a session and its notes, and close the session."""

    async def run():
        notes = Notes()
        session = Session(notes, Pace())
        try:
            return await asyncio.wait_for(scenario(session, notes), PATIENCE)
        finally:
            session.close()

    return asyncio.run(run())


async def until(condition):
    while not condition():
        await asyncio.sleep(0.01)


async def idle(worker):
    """Wait until a worker has done all that it was asked for, and what came of it has happened."""
    done = threading.Event()
    worker.submit(lambda ticket: done.set(), "the end")
    await until(done.is_set)
    await asyncio.sleep(0)


def a_volume(seed=0, shape=(40, 48, 36)):
    pixels = np.random.default_rng(seed).normal(100, 20, shape).astype(np.float32)
    return Source(aniso.io.Picture(pixels), "volume.npy", "", True)


def scene_of(array, **options):
    return Scene(Source(Picture(array, **options), "array.npy", "nothing", True))


def layers(axis, index=20, shape=(36, 40, 44), **options):
    """A scene of folded layers, filtered as a volume."""
    volume = aniso.samples.layers(shape, noise=20.0).image.astype(np.float32)
    return Scene(Source(Picture(volume, **options), "layers.npy", "", True), axis, index, whole=True)


def afford(pixels):
    return lambda call, factor: pixels
