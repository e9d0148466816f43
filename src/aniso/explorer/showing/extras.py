"""What is shown next to the result: overlays, unknown pixels, details of large images, and the film."""

from __future__ import annotations

import asyncio

from aniso.explorer.computing.workers import Ticket
from aniso.explorer.page.tab import Tab
from aniso.explorer.showing import pictures, rendering
from aniso.explorer.showing.rendering import Shot

# Delay of overlays in seconds, so that they do not slow down the picture.
_PAUSE = 0.1
_NO_FILM = (
    "There is no scale space, because nothing was diffused. Choose a noise level above 0, or another method."
)


class Extras:
    """Computes what a tab shows in addition to the result."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab
        self._shown: frozenset[str] = frozenset()
        self._pause: asyncio.TimerHandle | None = None
        self._film_awaits_result = False

    def follow(self) -> None:
        """Update after a change: unknown pixels at once, overlays with a delay; the film is discarded."""
        self._film_awaits_result = False
        self._tab.film_worker.withdraw()
        if self._tab.choices.verb.fills:
            self._mark_unknown()
        else:
            self._tab.stage.drop("unknown")
        self.stop()
        self._pause = self._tab.loop.call_later(_PAUSE, self.overlay)

    def use_result(self) -> None:
        """Compute what depends on the result."""
        self.overlay()
        self.details()
        if self._film_awaits_result:
            self._film_awaits_result = False
            self.film()

    def stop(self) -> None:
        """Cancel what has not begun."""
        if self._pause is not None:
            self._pause.cancel()

    def before(self) -> None:
        """Publish the image itself."""
        tab, scene = self._tab, self._tab.scene
        if scene is not None:
            tab.submit(tab.side_worker, lambda ticket: tab.publish(rendering.before(scene), scene), "before")

    def details(self) -> None:
        """Publish the visible part of a large image, pixel by pixel."""
        tab, scene, view = self._tab, self._tab.scene, self._tab.view
        if scene is None or view is None or pictures.reduction(scene.shape) == 1:
            return
        result, difference, white = tab.result, tab.shows_difference, tab.white

        def still() -> bool:
            return tab.result is result and tab.shows_difference == difference

        def job(ticket: Ticket) -> None:
            image = None if result is None else result.image
            for shot in rendering.details(scene, image, view, difference=difference, white=white):
                ticket.progress(0, 1)
                tab.publish(shot, scene, still)

        tab.submit(tab.side_worker, job, "details")

    def show(self, name: str, shown: bool) -> None:
        """Show or hide an overlay: "ellipses" or "stopped"."""
        self._shown = self._shown | {name} if shown else self._shown - {name}
        if shown:
            self.overlay()

    def overlay(self) -> None:
        """Compute overlays and histogram for the steering model, if it is known."""
        tab, scene, wanted = self._tab, self._tab.scene, self._shown
        if scene is None or (tab.choices.verb.fills and tab.result is None):
            return  # unknown pixels come first
        try:
            call = tab.choices.call(scene)
        except (ValueError, TypeError):
            return  # the error is shown already
        steering = call.steering(tab.result.info if tab.result else None)
        if steering is None:
            return
        model, spacing = steering[0], call.options.get("spacing")

        def job(ticket: Ticket) -> None:
            gradients = rendering.gradients(scene, model.presmoothing, spacing)
            histogram = rendering.Histogram.of(gradients, getattr(model, "contrast", None))
            tab.post(tab.stage.tell, histogram=histogram.svg())
            if not wanted:
                return
            ticket.progress(0, 1)
            field = rendering.Field.of(scene, model, spacing)
            ticket.progress(0, 1)
            if "ellipses" in wanted:
                tab.post(tab.stage.tell, ellipses=field.ellipses(), spot=field.spot)
            if "stopped" in wanted:
                tab.publish(Shot("stopped", field.stopped(), scene.rectangle), scene)

        tab.submit(tab.side_worker, job, "overlays")

    def film(self) -> None:
        """Compute the scale space, once the steering model is known."""
        tab, scene, version = self._tab, self._tab.scene, self._tab.version
        if scene is None:
            return
        try:
            call = tab.choices.call(scene)
        except (ValueError, TypeError) as error:
            tab.fail(error, version)
            return
        steering = call.steering(tab.result.info if tab.result else None)
        if call.verb.has_scale_space and steering is None and tab.result is None:
            self._film_awaits_result = True
            return
        if steering is None or not call.verb.has_scale_space:
            tab.fail(ValueError(_NO_FILM), version)
            return

        def job(ticket: Ticket) -> None:
            for shot in rendering.film(scene, call, *steering, ticket):
                if version != tab.version:
                    return
                tab.publish(shot, scene, lambda: version == tab.version)

        tab.submit(tab.film_worker, job)

    def _mark_unknown(self) -> None:
        """Mark the unknown pixels."""
        tab, scene, choices = self._tab, self._tab.scene, self._tab.choices
        assert scene is not None

        def job(ticket: Ticket) -> None:
            tab.publish(rendering.unknown(scene, choices.unknown_here(scene)), scene)

        tab.submit(tab.side_worker, job, "unknown")
