"""Every public name has a docstring that says what goes in, and an example that runs as a doctest."""

import inspect
import types
from typing import Any

import pytest

import aniso
import aniso.nn
from aniso.parameters import of_model
from aniso.verbs.table import VERBS

# What is exported for types and annotations, or to be read: described, but never called by a user.
NOT_CALLED = {f"aniso.verbs.plans.{name}" for name in aniso.plans.__all__ if name != "Plan"} | {
    "aniso.Plan",
    "aniso.io.FileError",
    "aniso.models.ImageDriven",
    "aniso.models.Model",
    "aniso.models.kinds",
    "aniso.models.TensorFormula",
    "aniso.samples.Sample",
    "aniso.schemes.Cycle",
    "aniso.schemes.Scheme",
}


def _members(module):
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isfunction(value) or inspect.isclass(value):
            yield f"{module.__name__}.{name}", value


def _public():
    modules = [getattr(aniso, name) for name in aniso.__all__]
    found: dict[Any, str] = {}
    for module in [aniso, *(m for m in modules if isinstance(m, types.ModuleType))]:
        for name, value in _members(module):
            found.setdefault(value, name)
    return sorted((name, value) for value, name in found.items())


PUBLIC = _public()
CALLED = [(name, value) for name, value in PUBLIC if name not in NOT_CALLED]


def _methods(cls):
    """Class methods and methods that the class itself defines and a user calls."""
    for name, member in vars(cls).items():
        if not name.startswith("_") and isinstance(member, classmethod):
            yield name, getattr(cls, name)


def _parameters(value):
    signature = inspect.signature(value)
    return [name for name in signature.parameters if name not in ("self", "cls")]


def _section(text, title):
    """The lines of a numpydoc section; empty if there is none."""
    lines = inspect.cleandoc(text).splitlines()
    for number, line in enumerate(lines[:-1]):
        if line.strip() == title and set(lines[number + 1].strip()) == {"-"}:
            rest = lines[number + 2 :]
            ends = [k for k, each in enumerate(rest[1:]) if each.strip() and set(each.strip()) == {"-"}]
            return rest[: ends[0]] if ends else rest
    return []


def _documented(text):
    """Names that the Parameters section explains; `sigma, rho : float` names two."""
    names = set()
    for line in _section(text, "Parameters"):
        if line and not line.startswith(" "):
            names |= {name.strip().lstrip("*") for name in line.split(" : ")[0].split(",")}
    return names


def test_the_walk_finds_what_there_is():
    names = {name for name, _ in PUBLIC}
    assert {"aniso.diffuse", "aniso.denoise", "aniso.EdgeEnhancing", "aniso.nn.DiffusionNet"} <= names
    assert {"aniso.samples.rings", "aniso.io.read", "aniso.stability.stable_step"} <= names
    assert names >= NOT_CALLED
    assert len(PUBLIC) > 50


@pytest.mark.parametrize(("name", "value"), PUBLIC, ids=[name for name, _ in PUBLIC])
def test_there_is_a_docstring_of_its_own(name, value):
    # dataclasses make one from the signature if there is none
    text = value.__doc__ or ""
    assert text.strip()
    assert not text.startswith(f"{value.__name__}(")
    first = text.strip().splitlines()[0]
    assert first.endswith((".", ":")), f"{name}: the first line is a sentence"


@pytest.mark.parametrize(("name", "value"), CALLED, ids=[name for name, _ in CALLED])
def test_every_parameter_is_explained(name, value):
    missing = set(_parameters(value)) - _documented(value.__doc__)
    assert not missing, f"{name} does not explain {', '.join(sorted(missing))}"


@pytest.mark.parametrize(("name", "value"), CALLED, ids=[name for name, _ in CALLED])
def test_there_is_an_example(name, value):
    assert any(">>>" in line for line in _section(value.__doc__, "Examples")), f"{name} has no example"


@pytest.mark.parametrize(
    ("name", "value"),
    [(n, v) for n, v in CALLED if inspect.isfunction(v)],
    ids=[n for n, v in CALLED if inspect.isfunction(v)],
)
def test_what_a_function_returns_is_described(name, value):
    if inspect.signature(value).return_annotation in (None, "None"):
        return
    text = value.__doc__
    assert _section(text, "Returns") or _section(text, "Yields"), f"{name} does not say what it returns"


@pytest.mark.parametrize(
    ("name", "method"),
    [(f"{n}.{m}", f) for n, v in CALLED if inspect.isclass(v) for m, f in _methods(v)],
    ids=[f"{n}.{m}" for n, v in CALLED if inspect.isclass(v) for m, _ in _methods(v)],
)
def test_other_ways_to_make_an_object_are_described(name, method):
    assert method.__doc__
    if _parameters(method):
        assert any(">>>" in line for line in _section(method.__doc__, "Examples")), f"{name} has no example"


def test_fields_of_models_carry_meaning_symbol_and_unit():
    models = [aniso.EdgeEnhancing, aniso.EdgeContinuing, aniso.CoherenceEnhancing, aniso.PeronaMalik]
    for model in models:
        for field in of_model(model).values():
            assert field.about.meaning, (model, field.name)
            assert field.about.symbol or field.about.switch, (model, field.name)


def test_a_missing_parameter_would_be_noticed():
    def half(first, second):
        """Half of it.

        Parameters
        ----------
        first : int
            Explained.

        Examples
        --------
        >>> 1
        1
        """

    assert set(_parameters(half)) - _documented(half.__doc__) == {"second"}
    assert not _section(half.__doc__, "Returns")
    assert _section(half.__doc__, "Examples") == [">>> 1", "1"]
    assert _section(half.__doc__, "Examples") == [">>> 1", "1"]


@pytest.mark.parametrize("name", [row.name for row in VERBS.values()])
def test_a_verb_names_its_plan_by_the_public_path(name):
    text = getattr(aniso, name).__doc__
    assert f"aniso.plans.{name.capitalize()}Plan" in text
    assert "aniso.verbs." not in text
