"""The package itself: light to import, typed, and its objects are values."""

import copy
import dataclasses
import importlib
import importlib.metadata
import importlib.resources
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import aniso

HEAVY = ("numba", "torch", "triton", "numpy", "scipy", "PIL", "matplotlib", "typer", "rich", "tifffile")


def modules_after(statement):
    """Names of all modules that a fresh interpreter holds after this statement."""
    program = f"import sys; {statement}; print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(output.stdout.split())


@pytest.mark.quick
def test_importing_loads_nothing_heavy():
    loaded = modules_after("import aniso, aniso as a; dir(a)")
    assert "aniso" in loaded
    assert not loaded.intersection(HEAVY)
    assert {name for name in loaded if name.startswith("aniso.")} == set()


def test_a_stencil_and_its_bound_need_neither_numba_nor_torch():
    loaded = modules_after(
        "import aniso; aniso.stability.stable_step(aniso.EdgeEnhancing(), aniso.DeltaStencil())"
    )
    assert "numpy" in loaded
    assert not loaded.intersection({"numba", "torch", "matplotlib", "typer", "rich", "PIL"})


@pytest.mark.quick
def test_the_version_is_that_of_the_metadata():
    assert aniso.__version__ == importlib.metadata.version("aniso")


def test_dir_lists_the_public_names():
    assert {*aniso.__all__, "__version__"} <= set(dir(aniso))


@pytest.mark.parametrize("name", aniso.__all__)
def test_every_public_name_resolves(name):
    value = getattr(aniso, name)
    assert value is getattr(aniso, name)
    assert getattr(value, "__doc__", None)


def test_the_public_surface_is_the_one_that_was_promised():
    promised = {
        *("EdgeEnhancing", "CoherenceEnhancing", "PeronaMalik", "Homogeneous", "FixedTensor"),
        *("DeltaStencil", "FreeStencil", "Explicit", "FED", "FSI", "diffuse", "scale_space"),
        *("EdgeContinuing", "inpaint", "upsample"),
        *("denoise", "enhance", "estimates", "scale_space_figure"),
        *("samples", "stability", "stencil"),
    }
    assert promised <= set(aniso.__all__)


@pytest.mark.parametrize(
    "module",
    [
        "stencil",
        "stability",
        "models",
        "samples",
        "schemes",
        "estimates",
        "verbs.denoise",
        "verbs.enhance",
        "figures",
        "verbs.inpaint",
        "verbs.plans",
        "verbs.upsample",
    ],
)
def test_every_name_that_a_module_exports_resolves(module):
    loaded = importlib.import_module(f"aniso.{module}")
    for name in loaded.__all__:
        assert hasattr(loaded, name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'aniso' has no attribute 'smooth'"):
        _ = aniso.smooth
    assert not hasattr(aniso, "_no_such_thing")


@pytest.mark.quick
def test_types_ship_with_the_package():
    assert (importlib.resources.files("aniso") / "py.typed").is_file()


VALUES = [
    aniso.DeltaStencil(),
    aniso.DeltaStencil(0.1, -0.7),
    aniso.DeltaStencil(1 / 3, beta=-1 / 7),
    *map(aniso.DeltaStencil.named, aniso.DeltaStencil.names()),
    aniso.Homogeneous(),
    aniso.EdgeEnhancing(contrast=2.5, sigma=0.0, diffusivity="charbonnier"),
    aniso.EdgeContinuing(contrast=2.5, rho=0.0),
    aniso.CoherenceEnhancing(rho=6),
    aniso.PeronaMalik(contrast=10),
    aniso.Explicit(),
    aniso.Explicit(step=0.1),
    aniso.FED(3),
    aniso.FSI(3),
]
ARRAYS = [
    aniso.FreeStencil(np.arange(12.0).reshape(3, 4)),
    aniso.FixedTensor.from_matrix([[1.0, 0.2], [0.2, 0.5]], (4, 5)),
    aniso.FixedTensor.from_matrix([[1.0]], (4,)),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_is_what_its_repr_says(value):
    assert eval(repr(value), {name: getattr(aniso, name) for name in aniso.__all__}) == value


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_equal_values_hash_alike(value):
    assert hash(copy.deepcopy(value)) == hash(value)
    assert len({value, copy.copy(value)}) == 1


@pytest.mark.parametrize("value", [*VALUES, *ARRAYS], ids=repr)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_value_survives_pickling(value, protocol):
    assert pickle.loads(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("value", [*VALUES, *ARRAYS], ids=repr)
def test_a_value_is_frozen(value):
    names = [field.name for field in dataclasses.fields(value)]
    for name in names or ["anything"]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, 0.0)


@pytest.mark.parametrize("value", ARRAYS, ids=repr)
def test_what_holds_an_array_is_not_hashable_and_says_its_size(value):
    with pytest.raises(TypeError, match="unhashable"):
        hash(value)
    assert " cells>" in repr(value)
    assert len(repr(value)) < 80


def test_arrays_are_copied_and_read_only():
    delta, tensor = np.zeros((3, 4)), np.zeros((2, 2, 3, 4))
    stencil, model = aniso.FreeStencil(delta), aniso.FixedTensor(tensor)
    delta[:], tensor[:] = 7.0, 7.0
    for array in (
        stencil.values,
        model.tensor,
        copy.deepcopy(stencil).values,
        pickle.loads(pickle.dumps(model)).tensor,
    ):
        assert not array.any()
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 1.0


def test_values_differ_where_their_parameters_do():
    assert aniso.DeltaStencil(0.4) != aniso.DeltaStencil(0.41)
    assert aniso.DeltaStencil(0.2, 0.0) != aniso.DeltaStencil(0.2, beta=0.1)
    assert aniso.DeltaStencil(0) == aniso.DeltaStencil(0.0)
    assert aniso.FreeStencil(np.zeros((2, 2))) != aniso.FreeStencil(np.ones((2, 2)))
    assert aniso.FreeStencil(np.zeros((2, 2))) != aniso.DeltaStencil()
    flat, steep = (aniso.FixedTensor.from_matrix(d * np.eye(2), (3, 3)) for d in (1.0, 2.0))
    assert flat != steep
    assert flat != aniso.Homogeneous()


def test_numpy_numbers_become_plain_ones():
    numbers: dict[str, Any] = {"alpha": np.float32(0.25), "gamma": np.int64(1)}
    assert repr(aniso.DeltaStencil(**numbers)) == "DeltaStencil(alpha=0.25, gamma=1.0, beta=None)"
