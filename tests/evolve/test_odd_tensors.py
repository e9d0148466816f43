"""PyTorch tensors that hold no values, or not one ordinary number per element, are refused clearly."""

import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import aniso
from aniso import arrays, estimates, io
from tests.nn.nn_registry import SPECIMENS, batch

EDGE = aniso.EdgeEnhancing(0.2, sigma=0.5)
_ORDINARY = "must be a dense tensor of ordinary numbers, got "


def quantized(tensor):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch is about to move them
        return torch.quantize_per_tensor(tensor.float(), 0.1, 0, torch.quint8)


def nested(tensor):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls them a prototype
        return torch.nested.nested_tensor([tensor, tensor])


def jagged(tensor):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = tensor.reshape(-1, tensor.shape[-1])
        return torch.nested.nested_tensor([rows, rows[:2]], layout=torch.jagged)


ODD = {
    "meta": (lambda tensor: tensor.to("meta"), "a tensor on the device meta"),
    "sparse": (lambda tensor: tensor.to_sparse(), "a tensor of layout torch.sparse_coo"),
    "mkldnn": (lambda tensor: tensor.float().to_mkldnn(), "a tensor of layout torch._mkldnn"),
    "quantized": (quantized, "a quantized tensor (torch.quint8)"),
    "nested": (nested, "a nested tensor"),
    "jagged": (jagged, "a nested tensor"),
    "float8": (lambda tensor: tensor.to(torch.float8_e4m3fn), "a tensor of dtype torch.float8_e4m3fn"),
    "float8_e5m2": (lambda tensor: tensor.to(torch.float8_e5m2), "a tensor of dtype torch.float8_e5m2"),
}
odd = pytest.mark.parametrize("kind", ODD)

FUNCTIONS: dict[str, Any] = {
    "diffuse": lambda image: aniso.diffuse(image, EDGE, 1.0),
    "diffuse, cpu": lambda image: aniso.diffuse(image, EDGE, 1.0, engine="cpu"),
    "scale_space": lambda image: aniso.scale_space(image, EDGE, [1.0]),
    "denoise": aniso.denoise,
    "enhance": aniso.enhance,
    "inpaint": lambda image: aniso.inpaint(image, mask=np.eye(12, dtype=bool)),
    "upsample": lambda image: aniso.upsample(image, 2),
    "noise_level": estimates.noise_level,
    "contrast": estimates.contrast,
    "wavelength": estimates.wavelength,
    "Picture": io.Picture,
    "FixedTensor": lambda entry: aniso.FixedTensor.from_entries(entry, entry, entry),
    "FreeStencil": aniso.FreeStencil,
}
IMAGE = torch.rand(12, 12, generator=torch.Generator().manual_seed(0))


def refused(what, name=""):
    return pytest.raises(TypeError, match=re.escape(f"{name}{_ORDINARY}{what}"))


@odd
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions(kind, function):
    make, what = ODD[kind]
    with refused(what):
        FUNCTIONS[function](make(IMAGE))


@odd
@pytest.mark.parametrize("verb", [aniso.denoise, aniso.enhance, aniso.upsample])
def test_batches(kind, verb):
    make, what = ODD[kind]
    with refused(what, "image "):
        verb(make(IMAGE[None, None]))


@pytest.mark.parametrize("kind", ["meta", "sparse", "nested"])
def test_masks(kind):
    make, what = ODD[kind]
    mask = make(IMAGE > 0.5)
    for image in (IMAGE, IMAGE.numpy()):
        with refused(what, "fixed "):
            aniso.diffuse(image, EDGE, 1.0, fixed=mask)
        with refused(what, "mask "):
            aniso.inpaint(image, mask=mask)
        with refused(what):
            aniso.inpaint(image, mask)


@odd
@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
def test_modules(kind, specimen):
    make, what = ODD[kind]
    module, (image, *others) = specimen.make(), specimen.inputs(batch())
    with refused(what, "the image "):
        module(make(image), *others)
    name = "noise " if specimen.name.startswith("kernels") else "the prediction "
    for other in others:
        with refused(what, name):
            module(image, make(other))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int64", "float16", "bfloat16", "float32", "float64"])
def test_ordinary_ones_are_not_refused(dtype):
    image = (IMAGE * 100).to(getattr(torch, dtype))
    arrays.check_tensor("image", image)
    assert aniso.diffuse(image, EDGE, 1.0).shape == (12, 12)
    assert aniso.denoise(image).shape == (12, 12)
