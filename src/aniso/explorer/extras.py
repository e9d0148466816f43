"""What is shown beside the result: overlays, unknown pixels, details of large images, and the film."""

from __future__ import annotations

import asyncio

from aniso.explorer import overlays, pictures, rendering, scrubbing
from aniso.explorer.rendering import Shot
from aniso.explorer.tab import Tab
from aniso.explorer.workers import Ticket

# Seconds after which overlays follow: they must not slow down the picture.
_PAUSE = 0.1
_NO_FILM = (
    "There is no scale space to play here: it needs a model that diffuses the whole image, as denoise, "
    "enhance and diffuse have it. Wait for the result, or choose one of them."
)


class Extras:
    """Computes for a tab what is not the result."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab
        self._shown: frozenset[str] = frozenset()
        self._gradients: overlays.Gradients | None = None
        self._pause: asyncio.TimerHandle | None = None

    def follow(self) -> None:
        """Something has changed: the veil at once, overlays after a while."""
        if self._tab.choices.method == "inpaint":
            self._veil()
        else:
            self._tab.stage.drop("unknown")
        self.stop()
        self._pause = self._tab.later(_PAUSE, self.overlay)

    def stop(self) -> None:
        """Do not begin with what waits."""
        if self._pause is not None:
            self._pause.cancel()

    def release(self) -> None:
        """Let go of everything."""
        self.stop()
        self._gradients = None

    def before(self) -> None:
        """The image itself."""
        tab, scene = self._tab, self._tab.scene
        if scene is not None:
            tab.submit(tab.side_worker, lambda ticket: tab.publish(rendering.before(scene), scene), "before")

    def details(self) -> None:
        """What is visible of a large image, pixel by pixel."""
        tab, scene, view = self._tab, self._tab.scene, self._tab.view
        if scene is None or view is None or pictures.reduction(scene.shape) == 1:
            return
        result = None if tab.result is None else tab.result.image

        def job(ticket: Ticket) -> None:
            for shot in rendering.details(scene, result, view, difference=tab.shows_difference):
                ticket.progress(0, 1)
                tab.publish(shot, scene)

        tab.submit(tab.side_worker, job, "details")

    def show(self, name: str, shown: bool) -> None:
        """Ellipses, or the map of stopped flow."""
        self._shown = self._shown | {name} if shown else self._shown - {name}
        if shown:
            self.overlay()

    def overlay(self) -> None:
        """Ellipses, map and histogram for the model that steers, as far as it is known."""
        tab, scene, wanted = self._tab, self._tab.scene, self._shown
        if scene is None or (tab.choices.method == "inpaint" and tab.result is None):
            return  # the veil of unknown pixels comes first
        try:
            call = tab.choices.call(scene)
        except (ValueError, TypeError):
            return  # this has been said where the result was asked for
        steering = call.steering(tab.result.info if tab.result else None)
        if steering is None:
            return
        model, spacing = steering[0], call.options.get("spacing")

        def job(ticket: Ticket) -> None:
            asked = scene, model.presmoothing, spacing
            gradients = self._gradients
            if gradients is None or not gradients.are_of(*asked):
                gradients = overlays.Gradients.of(*asked)
                tab.post(self._keep, gradients)
            histogram = overlays.Histogram.of(gradients, getattr(model, "contrast", None))
            tab.post(tab.stage.tell, histogram=histogram.svg())
            if not wanted:
                return
            ticket.progress(0, 1)
            field = overlays.Field.of(scene, model, spacing)
            ticket.progress(0, 1)
            if "ellipses" in wanted:
                tab.post(tab.stage.tell, ellipses=field.ellipses(), spot=field.spot)
            if "stopped" in wanted:
                height, width = scene.shape
                tab.publish(Shot("stopped", field.stopped(), (0, 0, width, height)), scene)

        tab.submit(tab.side_worker, job, "overlays")

    def film(self) -> None:
        """Compute the scale space."""
        tab, scene, version = self._tab, self._tab.scene, self._tab.version
        if scene is None:
            return
        call = tab.choices.call(scene)
        steering = call.steering(tab.result.info if tab.result else None)
        if steering is None or call.verb in ("inpaint", "upsample"):
            tab.stage.tell(error=_NO_FILM)
            return
        model, end = steering
        height, width = scene.shape

        def job(ticket: Ticket) -> None:
            for frame in scrubbing.frames(scene, call, model, end, ticket):
                if version != tab.version:
                    return
                facts = {"time": frame.time, "number": frame.number, "count": scrubbing.FRAMES}
                shot = Shot(f"frame{frame.number}", frame.picture, (0, 0, width, height), facts)
                tab.publish(shot, scene)

        tab.submit(tab.film_worker, job)

    def _veil(self) -> None:
        """Over the pixels to be filled in."""
        tab, scene, choices = self._tab, self._tab.scene, self._tab.choices
        assert scene is not None

        def job(ticket: Ticket) -> None:
            tab.publish(rendering.unknown(scene, choices.unknown(scene)), scene)

        tab.submit(tab.side_worker, job, "unknown")

    def _keep(self, gradients: overlays.Gradients) -> None:
        if self._tab.scene is gradients.scene:  # else it looks at something else by now, or is closed
            self._gradients = gradients
