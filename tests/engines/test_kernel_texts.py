"""Texts of kernels, and functions of the user that become part of them."""

import textwrap
from dataclasses import dataclass
from types import FunctionType, ModuleType

import numpy as np
import pytest

import aniso
from aniso.engines.cpu import function_texts, generate, user_functions
from aniso.engines.cpu.inner import InnerLibrary
from aniso.formulas.diffusivities import weickert_diffusivity
from aniso.models import ImageDriven, TensorFormula
from tests.engines import sample_formulas


class TestTexts:
    def test_a_formula(self):
        assert function_texts.formula_text(sample_formulas, "formula", {"slope": "steep"}) == textwrap.dedent(
            '''\
            @inlined
            def formula(x, y):
                """Half of x³, 0.5."""
                half = real(0.5) * x  # not 1
                return maximum(steep(half) * x[real(0.0)] - real(1e-12), -real(2.0) + y)'''
        )

    def test_a_body(self):
        text = function_texts.body_text(sample_formulas)
        assert text.startswith("def formula(\n    x: Any,  # 1\n")
        assert "@cache\ndef last() -> int:\n    return 1\n\ndef three_numbers(" in text
        assert "class" not in text
        assert "# A comment between" not in text

    def test_what_is_not_plain_is_refused(self):
        with pytest.raises(NotImplementedError, match="with_default must have plain arguments"):
            function_texts.formula_text(sample_formulas, "with_default", {})

    def test_names_that_two_modules_define_are_refused(self):
        function_texts.check_names(sample_formulas)
        with pytest.raises(
            ValueError, match=r"formula is defined in both .*sample_formulas and .*sample_form"
        ):
            function_texts.check_names(sample_formulas, sample_formulas)


@dataclass(frozen=True)
class Between(ImageDriven):
    """A model with three numbers and a function, whose arguments have names of their own."""

    surplus: tuple[float, ...] = ()

    def __post_init__(self):
        pass

    def tensor_formula(self, channels, values=None, ndim=2):
        numbers = (0.01, 1.0, 0.2, *self.surplus)
        return TensorFormula(sample_formulas.three_numbers, (weickert_diffusivity,), numbers)


class TestArguments:
    image = np.random.default_rng(0).normal(100, 20, (20, 24))

    def test_numbers_and_names_are_free(self):
        results = [aniso.diffuse(self.image, Between(), 2.0, engine=name) for name in ("cpu", "reference")]
        np.testing.assert_allclose(results[0], results[1], rtol=1e-12)

    def test_what_does_not_fit_is_refused(self):
        with pytest.raises(TypeError, match=r"must take 3 entries .* 1 functions and 4 numbers.*got 7"):
            aniso.diffuse(self.image, Between((1.0,)), 2.0, engine="cpu")


def make(constant, default=2.0):
    return lambda r, c=default: np.exp(-r * constant) / (1 + 0 * c)


class TestUserFunctions:
    def test_alike(self):
        assert user_functions.first_alike(make(1.0)) is user_functions.first_alike(make(1.0))

    @pytest.mark.parametrize("others", [(2.0,), (1,), (True,), (np.float32(1.0),), (1.0, 3.0), (-1.0,)])
    def test_not_alike(self, others):
        assert user_functions.first_alike(make(1.0)) is not user_functions.first_alike(make(*others))

    def test_signed_zeros_differ(self):
        assert user_functions.first_alike(make(0.0)) is not user_functions.first_alike(make(-0.0))

    def test_values_from_outside_count(self):
        first, same, other, array = (
            FunctionType(compile("lambda r: k * r", "<test>", "eval").co_consts[0], {"k": k})
            for k in (1.0, 1.0, 2.0, np.ones(1))
        )
        assert user_functions.first_alike(first) is first
        assert user_functions.first_alike(same) is first
        assert user_functions.first_alike(other) is other
        assert user_functions.first_alike(array) is array

    def test_what_may_change_is_not_shared(self):
        values = [1.0]

        def closure():
            return lambda r: values[0] * r

        def nested():
            return lambda r: (lambda s: s)(r)

        for maker in (closure, nested):
            function = maker()
            assert user_functions.first_alike(maker()) is not function
            assert user_functions.first_alike(function) is function
        assert user_functions.first_alike(np.exp) is np.exp

    def test_arrays_from_outside_are_not_compared(self):
        table = np.array([1.0, 0.5])

        def from_closure(r):
            return table[0] / (1 + table[1] * r)

        assert user_functions.first_alike(from_closure) is from_closure
        image = np.random.default_rng(0).normal(100, 20, (12, 14))
        model = aniso.PeronaMalik(contrast=9, diffusivity=from_closure)
        results = [aniso.diffuse(image, model, 1.0, engine=name) for name in ("cpu", "reference")]
        np.testing.assert_allclose(results[0], results[1], rtol=1e-10)

    def test_a_lambda_in_a_loop_is_compiled_once(self):
        from aniso.engines.cpu import generate

        before = generate._tensor_loops.cache_info().misses
        for _ in range(3):
            model = aniso.PeronaMalik(contrast=9, diffusivity=lambda r: 1 / (1 + 3 * r))
            aniso.diffuse(np.eye(5), model, 0.2, engine="cpu")
        assert generate._tensor_loops.cache_info().misses == before + 1


def test_functions_that_only_kernels_call_have_no_machine_code():
    text = """
@compiled
def add_twice(out, row, j):
    out[j] += row[j] + row[j]

@entry
def add_rows(out, row):
    for j in range(len(row)):
        add_twice(out, row, j)
"""
    module = ModuleType("aniso_rows")
    header = generate._header(np.dtype("float32"), False, 2, cache=False)
    generate._execute(header + text, "<test of inner functions>", module)
    out, row = np.ones(20, np.float32), np.arange(20, dtype=np.float32)
    module.add_rows(out, row)
    np.testing.assert_array_equal(out, 1 + 2 * row)
    (inner,), (kernel,) = (f.overloads.values() for f in (module.add_twice, module.add_rows))
    assert isinstance(inner.library, InnerLibrary)
    assert not isinstance(kernel.library, InnerLibrary)


def test_loops_over_rows_do_not_compare_the_addresses_of_rows():
    """Before a loop over rows that may overlap, the compiler compares the addresses of all of them."""
    text = textwrap.dedent(
        """\
        {}
        def double(out, o, row, r, n):
            for k in range(n):
                j = index(k)
                out[o + j] = 2 * row[r + j]

        @entry
        def kernel(out, row):
            double(out, index(0), row, index(0), len(row))
        """
    )
    compares = {}
    for decorator in ("@compiled", "@separate"):
        header = generate._header(np.dtype("float32"), False, 2, cache=False)
        module = ModuleType("aniso_test_rows")
        generate._execute(f"{header}\n{text.format(decorator)}", f"<{decorator}>", module)
        out, row = np.zeros(100, np.float32), np.arange(100, dtype=np.float32)
        module.kernel(out, row)
        np.testing.assert_array_equal(out, 2 * row)
        (compiled,) = module.kernel.overloads.values()
        compares[decorator] = "memcheck" in compiled.library.get_llvm_str()
    assert compares == {"@compiled": True, "@separate": False}
