"""What a verb chose, as data: it prints as a summary, filters further images, and can be saved."""

from __future__ import annotations

import inspect
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np

import aniso
from aniso import arrays, checks, engines, notebook
from aniso.arrays import is_tensor
from aniso.blocks.stages import Pipeline
from aniso.checks import Spacing
from aniso.dispatch import takes_arrays
from aniso.models import ImageDriven
from aniso.settings import Progress, Settings, check_progress, report_progress
from aniso.stencil import Stencil
from aniso.verbs import plan_json
from aniso.verbs.source import ImageSource, check_axis
from aniso.verbs.table import DIFFUSE, VERBS, Verb

__all__ = ["Plan"]

GREY, CONTRAST_UNIT = "grey values", "grey values per unit length"
_KINDS = {1: "signals", 2: "images", 3: "volumes"}


class _Same:
    """Stands for the axis of channels of the image for which a plan was made."""

    def __repr__(self) -> str:
        return "<as in the plan>"


SAME: Any = _Same()
#: What to do with labelled arrays, if results are on another grid.
UNKNOWN_COORDINATES = "image.to_numpy(): the coordinates of the finer grid are not known"


def describe(
    meaning: str,
    unit: str = "",
    *,
    low: float = -math.inf,
    high: float = math.inf,
    parts: tuple[str, ...] = (),
) -> Any:
    """Return a field of a plan that is printed, with its meaning, unit and range.

    A tuple has the names of its `parts` if they belong to `axes` of the plan in place of its channels.
    """
    return field(metadata={"meaning": meaning, "unit": unit, "range": (low, high), "parts": parts})


@dataclass(frozen=True, kw_only=True)
class Plan(ABC):
    """What a verb chose for an image: all that is needed to filter others in the same way.

    Plans are returned by the verbs with ``return_info=True``. They are data: equal plans give equal results,
    ``print(plan)`` shows a summary, and :meth:`to_json` and :meth:`from_json` save and restore them exactly.

    Examples
    --------
    >>> import aniso
    >>> image = aniso.samples.shapes(64, noise=20.0).image
    >>> clean, plan = aniso.denoise(image, return_info=True)
    >>> bool((plan.apply(image) == clean).all()), aniso.Plan.from_json(plan.to_json()) == plan
    (True, True)
    """

    #: Name of the verb.
    verb: ClassVar[str]
    #: Whether results have as many pixels as the image, at the same places.
    keeps_grid: ClassVar[bool] = True
    #: Whether all stages work on PyTorch tensors.
    on_tensors: ClassVar[bool] = False
    #: Whether unknown pixels are filled in before an image is filtered.
    fills_first: ClassVar[bool] = False
    _verbs: ClassVar[dict[str, type[Plan]]] = {}

    spacings: tuple[float, ...]
    channel_axis: int | None
    #: Number of channels; 1 without an axis of channels.
    channels: int
    stencil: Stencil

    def __post_init__(self) -> None:
        if not (1 <= len(self.spacings) <= 3 and all(0 < h < math.inf for h in self.spacings)):
            raise ValueError(f"a plan has one to three positive spacings, got {self.spacings}.")
        if self.channels < 1:
            raise ValueError(f"a plan is for at least one channel, got {self.channels}.")
        axes = len(self.spacings) + 1
        if self.channel_axis is not None and not -axes <= self.channel_axis < axes:
            raise ValueError(f"channel_axis of a plan for {axes} axes cannot be {self.channel_axis}.")
        for about in fields(self):
            value, (low, high) = getattr(self, about.name), about.metadata.get("range", (-math.inf, math.inf))
            if isinstance(value, int | float) and not low <= value <= high:
                raise ValueError(f"{about.name} of a plan must lie in [{low:g}, {high:g}], got {value:g}.")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "verb" in vars(cls):
            Plan._verbs[cls.verb] = cls

    @property
    def remark(self) -> str | None:
        """What a user should know about the result, e.g. why an image is left unchanged."""
        return None

    @property
    def unused(self) -> frozenset[str]:
        """The names of fields that mean nothing in this plan, and are not part of its summary."""
        return frozenset()

    @property
    def factors(self) -> tuple[int, ...]:
        """How many times finer results are, along each axis."""
        return (1,) * len(self.spacings)

    def __str__(self) -> str:
        """Return one line for each value."""
        rows = summary_rows([self])
        width = max(len(meaning) for meaning, _ in rows)
        return "\n".join(f"{meaning:<{width}}  {value}" for meaning, value in rows)

    @abstractmethod
    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float] | None:
        """Return the model that steered the diffusion and the diffusion time; None if nothing was diffused.

        `options` are those with which the verb was called.
        """

    @abstractmethod
    def pipeline(self, shape: tuple[int, ...], settings: Settings) -> Pipeline:
        """Return the stages that filter an array of this shape (without channels)."""

    def apply(
        self,
        image: Any,
        mask: Any = None,
        *,
        channel_axis: int | None = SAME,
        frame_axis: int | None = None,
        keep_nan: bool = False,
        engine: str | None = None,
        threads: int | None = None,
        progress: Progress = None,
    ) -> Any:
        """Filter another image in the same way; nothing is estimated from it.

        Parameters
        ----------
        image : array
            An image with as many axes and channels as the one for which the plan was made, of any size.
            Never modified. Dask arrays stay lazy.
        mask : array of bool, optional
            True (or 1) where a pixel is unknown, as for the verb; by default pixels that are NaN. Plans of
            verbs without masks take none. Tensors and Dask arrays with NaN need a mask.
        channel_axis : int, optional
            The axis of the channels; by default as in the image for which the plan was made.
        frame_axis : int, optional
            The axis of frames, which are filtered one by one. They share a mask, or it has this axis too.
        keep_nan : bool
            If True, unknown pixels are NaN in the result, for plans of `denoise` and `enhance`.
        engine, threads
            As for :func:`aniso.diffuse`.
        progress : bool or callable, optional
            True shows a bar on the terminal; a function is called as progress(done, 1.0).

        Returns
        -------
        array
            An array of the same kind and shape. The same bits for NumPy arrays and for Dask arrays.
        """
        axis = channel_axis
        if axis is SAME:
            is_batch = is_tensor(image) and frame_axis is None and image.ndim == len(self.spacings) + 2
            axis = None if is_batch else self.channel_axis  # that of an image, not of a batch
            if axis is not None and frame_axis is not None:  # that of a frame, not of all of them
                shape = tuple(np.shape(image))
                along, others = check_axis("frame_axis", frame_axis, shape), max(len(shape) - 1, 1)
                axis = axis % others + (along <= axis % others)
        options: Any = {"engine": engine, "threads": threads, "progress": progress}
        if keep_nan and not self.fills_first:
            raise ValueError(f"a plan of {self.verb} takes no keep_nan, got {keep_nan!r}. Leave it out.")
        if mask is None and self._runs_on_tensor(image, frame_axis, engine):
            return self._apply_to_tensor(image, axis, **options)
        if self.fills_first:
            options["keep_nan"] = keep_nan
        apply = _apply if self.keeps_grid else _apply_on_finer_grid
        return apply(image, self, mask, channel_axis=axis, frame_axis=frame_axis, **options)

    def check_source(self, image: Any, mask: Any, **options: Any) -> ImageSource:
        """Return an image to which the plan is applied, checked; options as for `fill_unknown`."""
        if mask is not None:
            raise ValueError(
                f"a plan of {self.verb} takes no mask. Fill in unknown pixels with aniso.inpaint first."
            )
        return ImageSource.check(image, options["channel_axis"], options["progress"], options["frame_axis"])

    def _runs_on_tensor(self, image: Any, frame_axis: int | None, engine: str | None) -> bool:
        name = engine or engines.default("torch")
        on_tensors = name in engines.ENGINES and engines.ENGINES[name].arrays == "torch"
        alone = frame_axis is None and len(self.spacings) > 1
        return self.on_tensors and on_tensors and is_tensor(image) and alone

    def _apply_to_tensor(
        self, image: Any, axis: int | None, engine: str | None, threads: int | None, progress: Progress
    ) -> Any:
        """Filter a tensor on its own device, all images of a batch at once."""
        check_progress(progress)
        layout = arrays.layout(image, axis, tensors=True)
        given = f"a tensor of shape {tuple(image.shape)} with channel_axis={axis}"
        self._check_axes(given, len(layout.shape), layout.start.shape[1])
        settings = self.settings(engine or engines.default_for(image), threads)
        with report_progress(progress, 1.0) as report:
            result = self.pipeline(layout.shape, settings).run(layout.start, report)
        return arrays.restore_image(layout, result)

    def settings(self, engine: str | None = None, threads: int | None = None) -> Settings:
        """Return the settings of all diffusions, except their schemes."""
        return Settings.check(
            len(self.spacings), stencil=self.stencil, spacing=self.spacings, engine=engine, threads=threads
        )

    def filter(self, source: ImageSource, settings: Settings, progress: Progress) -> Any:
        """Filter a checked array."""
        settings = self.fit_settings(source, settings)
        result = source.filter(lambda shape: self.pipeline(shape, settings), progress)
        self.remember(source, result)
        return result

    def remember(self, source: ImageSource, result: Any) -> None:
        """Keep small pictures of an image before and after, for notebooks; they are not part of the plan."""
        if not source.is_lazy:
            after = result if source.frame_axis is None else np.take(result, 0, source.frame_axis)
            pair = [notebook.thumbnail(each, source.channel_axis) for each in (source.array, after)]
            object.__setattr__(self, "_pictures", pair)

    def _repr_html_(self) -> str:
        shown = getattr(self, "_pictures", None)
        images = "" if shown is None else notebook.pictures(zip(("before", "after"), shown, strict=True))
        return images + notebook.table(summary_rows([self]))

    def fit_settings(self, source: ImageSource, settings: Settings) -> Settings:
        """Return the settings for an array, which is rejected if it has other axes or channels."""
        self.check_fit(source)
        if source.is_lazy and settings.threads is None:
            return replace(settings, threads=1)  # workers of Dask are threads themselves
        return settings

    def check_fit(self, source: ImageSource) -> None:
        """Reject arrays with another number of axes or channels."""
        self._check_axes(source, len(source.shape), len(source.channels))

    def _check_axes(self, source: object, axes: int, count: int) -> None:
        if axes != len(self.spacings):
            kind, counted = _KINDS[len(self.spacings)], "one axis" if axes == 1 else f"{axes} axes"
            channels = f" with {_count(self.channels)}" if self.channel_axis is not None else ""
            fault = (
                f"this plan of {self.verb} is for {kind}{channels}, got {source}, which has {counted} "
                "besides the channels."
            )
            if axes == len(self.spacings) + 1:
                remedy = " For a series of frames, give {}. Otherwise make a plan for such arrays,"
                raise _unfit(fault, remedy.format("frame_axis"), remedy.format("--frames or --slices"))
            raise _unfit(f"{fault} Make a plan for such arrays,")
        if count != self.channels:
            raise _unfit(
                f"this plan of {self.verb} is for {_count(self.channels)}, got {source}, which has "
                f"{_count(count)}. Make a plan for such images,"
            )

    def to_json(self) -> str:
        """Return the plan as JSON text, from which :meth:`from_json` makes an equal one."""
        values = plan_json.encode(self)
        del values["type"]
        return json.dumps(
            {"aniso": aniso.__version__, "verb": self.verb, **values}, indent=1, allow_nan=False
        )

    @staticmethod
    def from_json(text: str) -> Plan:
        """Return the plan of a text that :meth:`to_json` made.

        Raises
        ------
        ValueError
            If the text is not a plan, is damaged, or was made by another version of aniso, which might filter
            in another way.
        """
        values = plan_json.load(text)
        version, verb = values.pop("aniso", None), values.pop("verb", None)
        if version is None:
            raise ValueError(
                'the text is not a plan of aniso: it has no key "aniso". Give what to_json returned.'
            )
        if version != aniso.__version__:
            raise ValueError(
                f"the plan was made by aniso {version}, and this is {aniso.__version__}, which may filter in "
                "another way. Make the plan again."
            )
        for row in (*VERBS.values(), DIFFUSE):
            row.function  # noqa: B018 (its module defines the class of its plans)
        if not isinstance(verb, str) or verb not in Plan._verbs:
            raise ValueError(f"the plan is for {verb!r}, which is not one of {', '.join(Plan._verbs)}.")
        plan: Plan = plan_json.decode(Plan._verbs[verb], values, "plan")
        return plan


def _apply_plan(image: Any, plan: Plan, mask: Any, **options: Any) -> Any:
    """Filter an array; options are those of `Plan.apply`."""
    source = plan.check_source(image, mask, **options)
    return plan.filter(source, plan.settings(options["engine"], options["threads"]), options["progress"])


_apply_plan.__name__ = "Plan.apply"  # as errors name it
_apply = takes_arrays(dask=None)(_apply_plan)
_apply_on_finer_grid = takes_arrays(dask=None, labelled=UNKNOWN_COORDINATES)(_apply_plan)


def make_plan(
    verb: Verb,
    source: ImageSource,
    options: Mapping[str, Any],
    *,
    spacing: Spacing | None = None,
    engine: str | None = None,
    threads: int | None = None,
) -> Plan:
    """Return what a verb chooses for an array; `options` are its own parameters, with the stencil."""
    wishes = dict(options)
    parameters, public = (inspect.signature(one).parameters for one in (verb.choose, verb.function))
    known = {name for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY and name in public}
    given = {}
    if verb.takes("stencil"):
        given["stencil"] = wishes.pop("stencil", public["stencil"].default)
    for name in wishes:
        if name not in known:
            listed = ", ".join(sorted(known | ({"stencil"} if verb.takes("stencil") else set())))
            raise TypeError(f"a plan of {verb.name} has no parameter {name!r}. It has {listed}.")
    for name in known:
        if parameters[name].default is inspect.Parameter.empty and name not in wishes:
            raise TypeError(f"{verb.name} needs the parameter {name}. Give {name}=….")
    settings = Settings.check(len(source.shape), spacing=spacing, engine=engine, threads=threads, **given)
    plan: Plan = verb.choose(source, settings, **wishes)
    return plan


def note_spacing(plan: Plan, spacing: Spacing | None, note: Callable[[str, str], object]) -> None:
    """Note if a plan was made for another spacing than that of an image, which is not used then."""
    try:
        found = checks.axis_spacing(spacing, len(plan.spacings))
    except ValueError:
        return  # the number of axes is rejected later
    if found != plan.spacings:
        ours, others = (" × ".join(f"{h:.4g}" for h in each) for each in (plan.spacings, found))
        note("plan", f"the plan is for a spacing of {ours}, which is used in place of {others}")


def _unfit(fault: str, python: str = "", command: str = "") -> ValueError:
    return checks.make_error(
        ValueError,
        fault,
        python=f"{python} with return_info=True.".lstrip(),
        command=f"{command} with --save-plan.".lstrip(),
    )


def _count(channels: int) -> str:
    return "one channel" if channels == 1 else f"{channels} channels"


def summary_rows(plans: Sequence[Any]) -> list[tuple[str, str]]:
    """Return the meaning and the value of each described field; for several plans, the range of values."""
    rows = []
    for about in fields(plans[0]):
        if "meaning" not in about.metadata or all(about.name in plan.unused for plan in plans):
            continue
        words = _value_range([_named_value(plan, about) for plan in plans])
        unit = "" if words == "none" else about.metadata["unit"]
        rows.append((about.metadata["meaning"], f"{words} {unit}".rstrip()))
    remarks = {plan.remark for plan in plans} - {None}
    return [*rows, *(("note", remark) for remark in sorted(remarks))]


def _named_value(plan: Any, about: Field[Any]) -> Any:
    value, parts = getattr(plan, about.name), about.metadata["parts"]
    if not parts or getattr(plan, "axes", None) is None:
        return value
    return ", ".join(f"{name}: {format_value(part)}" for name, part in zip(parts, value, strict=False))


def summary_values(plan: Any) -> dict[str, Any]:
    """Return the described fields by name."""
    values = {about.name: getattr(plan, about.name) for about in fields(plan) if "meaning" in about.metadata}
    return values if plan.remark is None else values | {"note": plan.remark}


def format_value(value: Any) -> str:
    """Format a value: numbers with four digits, dataclasses by their summary or without their module."""
    if isinstance(summary := getattr(value, "summary", None), str):
        return summary
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else "none"
    if is_dataclass(value) and not isinstance(value, type):
        given = ((each.name, getattr(value, each.name)) for each in fields(value))
        inner = ", ".join(f"{name}={format_value(entry)}" for name, entry in given if entry is not None)
        return f"{type(value).__name__}({inner})"
    if isinstance(value, tuple):
        return ", ".join(map(format_value, value))
    return "none" if value is None else str(value)


def _value_range(values: Sequence[Any]) -> str:
    words = [format_value(value) for value in values]
    if len(set(words)) == 1:
        return words[0]
    if all(isinstance(value, int | float) for value in values):
        return f"{format_value(min(values))} to {format_value(max(values))}"
    return "differs from page to page"
