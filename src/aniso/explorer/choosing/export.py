"""Export of a result: as a Python program, and as a command."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np

import aniso
from aniso.explorer.choosing.choices import Call, Choices
from aniso.explorer.choosing.scene import Scene
from aniso.explorer.choosing.unknown_pixels import mask_line
from aniso.io.pages import is_volume
from aniso.models import ImageDriven, kinds
from aniso.parameters import of_model
from aniso.stencil import DeltaStencil


def output_name(call: Call, scene: Scene) -> str:
    """Return the name of the file with the result."""
    return f"{scene.source.stem}{_slice_name(scene)}_{call.verb.participle}{scene.suffix}"


def to_python(choices: Choices, scene: Scene) -> str:
    """Return a program that computes `result` and writes it to a file."""
    call = choices.call(scene)
    heading, lines = ["import aniso"], _image_lines(scene)
    if call.verb.fills:
        modules, line = _mask_line(choices, scene)
        heading = [*(f"import {name}" for name in modules), *([""] if modules else []), *heading]
        heading.append("import numpy as np")
        lines.append(f"unknown = {line}")
    words = ["image", *argument_words(call, "unknown" if call.verb.fills else None)]
    like = f", like={_like(scene)}" if _like(scene) else ""
    lines += [
        f"result = aniso.{call.verb.name}({', '.join(words)})",
        f"aniso.io.write({output_name(call, scene)!r}, result{like})",
    ]
    return "\n".join([*heading, "", *lines]) + "\n"


def to_command(choices: Choices, scene: Scene) -> str:
    """Return commands for a terminal that write the same file."""
    call = choices.call(scene)
    lines, file, code = [], scene.source.name, _image_lines(scene)
    if not scene.source.is_file or scene.is_slice:
        file = f"{scene.source.stem}{_slice_name(scene)}.npy"
        lines.append(_one_line([], code, f"np.save({file!r}, image)"))
    mask = f"{scene.source.stem}_mask.npy"
    if call.verb.fills:
        modules, line = _mask_line(choices, scene)
        lines.append(_one_line(modules, [*code, f"unknown = {line}"], f"np.save({mask!r}, unknown)"))
    words = ["aniso", call.verb.name, file]
    for name, value in call.options.items():
        words += ["--mask", mask] if name == "mask" else _option_words(name, value, file)
    if scene.whole:
        words += _volume_words(scene, file)
    target = output_name(call, scene)
    if not scene.source.is_file:
        target = f"{target.rpartition('.')[0]}.npy"
    return "\n".join([*lines, shlex.join([*words, "-o", target])]) + "\n"


def argument_words(call: Call, mask: str | None) -> list[str]:
    """Return the arguments of a call as they are written in Python; `mask` is an expression."""
    values = {} if mask is None else {"mask": mask}
    values |= {name: python_value(value) for name, value in call.options.items() if name != "mask"}
    by_place = {"model", *(name for name, each in call.verb.parameters.items() if each.required)}
    by_place |= {"mask"} if call.verb.fills else set()
    return [value if name in by_place else f"{name}={value}" for name, value in values.items()]


def _image_lines(scene: Scene) -> list[str]:
    """Return lines that define `image`."""
    place = f"[{':, ' * scene.axis}{scene.index}]" if scene.is_slice else ""
    if not scene.source.is_file:
        return [f"image = {scene.source.line}{place}"]
    if scene.filtered.dtype != scene.source.picture.pixels.dtype:
        place += f'.astype("{scene.image.dtype}")'
    return [f"picture = {scene.source.line}", f"image = picture.pixels{place}"]


def _like(scene: Scene) -> str:
    """Return the picture whose data type and profile the result gets; nothing for arrays of floats."""
    if scene.source.is_file and not scene.is_slice:
        return "picture"
    if scene.like.dtype.kind == "f" and scene.like.dtype == np.result_type(scene.filtered, np.float32):
        return ""
    axis = f", channel_axis={scene.channel_axis}" if scene.channel_axis is not None else ""
    dtype = f', dtype="{scene.like.dtype}"' if scene.like.dtype != scene.filtered.dtype else ""
    return f"aniso.io.Picture(image{axis}{dtype})"


def _mask_line(choices: Choices, scene: Scene) -> tuple[list[str], str]:
    """Return the standard modules that it needs, and an expression for the mask of `image`."""
    chosen, pixels = choices.chosen_unknown(scene), choices.random_pixels
    modules, terms = [], []
    if pixels is not None:
        terms.append(pixels.line(scene.extent))
    elif chosen is not None and chosen.any():
        terms.append(mask_line(chosen))
        modules = ["base64", "zlib"]
    if scene.filtered.dtype.kind == "f" and np.isnan(scene.filtered).any():
        terms.append("np.isnan(image)" + ("" if scene.channel_axis is None else ".any(axis=-1)"))
    if not terms:
        raise ValueError("there are no unknown pixels yet. Mark them with the brush, or choose “At random”.")
    return modules, terms[0] if len(terms) == 1 else " | ".join(f"({term})" for term in terms)


def _one_line(modules: list[str], code: list[str], last: str) -> str:
    """Return a call of Python for the shell."""
    program = "; ".join([f"import {', '.join([*modules, 'aniso'])}", "import numpy as np", *code, last])
    return f"python -c {shlex.quote(program)}"


def python_value(value: Any) -> str:
    """Return an expression for an argument."""
    text = repr(value)
    if isinstance(value, DeltaStencil):
        return f"aniso.DeltaStencil(alpha={value.alpha!r}, gamma={value.gamma!r})"
    if not hasattr(value, "__dataclass_fields__"):
        return text
    module = "aniso" if type(value).__name__ in aniso.__all__ else "aniso.models"
    return f"{module}.{text}"


def _model_words(model: ImageDriven) -> list[str]:
    words = ["--model", next(name for name, kind in kinds().items() if kind is type(model))]
    for name, parameter in of_model(model).items():
        value = getattr(model, name)
        if not parameter.about.switch or value != parameter.default:
            words += _option_words(name, value, "")
    return words


def _volume_words(scene: Scene, file: str) -> list[str]:
    """Return the options that make the command line treat a file as a volume, where they are needed."""
    picture = scene.source.picture
    grey = picture.channel_axis is None and file.endswith(".npy")
    words = ["--channel-axis", "none"] if grey and {3, 4} & {picture.shape[0], picture.shape[-1]} else []
    return words if is_volume(picture, None) else [*words, "--volume"]


def _option_words(name: str, value: Any, file: str) -> list[str]:
    if name == "model":
        return _model_words(value)
    if name == "stencil":
        return ["--alpha", repr(value.alpha), "--gamma", repr(value.gamma)]
    if name == "scheme":
        words = ["--scheme", type(value).__name__.lower()]
        return [*words, "--cycles", str(value.cycles)] if hasattr(value, "cycles") else words
    if name == "spacing":
        return ["--spacing", ",".join(map(repr, value))]
    if name == "channel_axis":
        # Other formats store it.
        return ["--channel-axis", str(value)] if file.endswith(".npy") else []
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    return [f"--{flag}", str(value)]


def _slice_name(scene: Scene) -> str:
    return f"_{'zyx'[scene.axis]}{scene.index}" if scene.is_slice else ""
