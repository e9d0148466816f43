"""Texts of functions, as they are or as formulas for the compiler.

They are made from tokens, not from syntax trees: before Python 3.12, :mod:`ast` fails at random if two
threads use it at the same time, and any thread that prints a traceback does.
"""

from __future__ import annotations

import functools
import inspect
import io
import itertools
import tokenize
from collections.abc import Mapping
from tokenize import TokenInfo
from types import ModuleType


@functools.cache
def body_text(module: ModuleType) -> str:
    """Return the text of all functions of a module."""
    return "\n\n".join(function.text() for function in _functions(module).values())


@functools.cache
def formulas_text(module: ModuleType) -> str:
    """Return the text of all functions of a module as formulas."""
    return "\n\n".join(function.formula() for function in _functions(module).values())


def formula_text(module: ModuleType, name: str, bound: Mapping[str, str], wrap_numbers: bool = True) -> str:
    """Return the text of one function as a formula; these arguments become the functions of these names."""
    return _functions(module)[name].formula(bound, wrap_numbers)


def check_names(*modules: ModuleType) -> None:
    """Raise if modules whose texts are joined define the same name twice: the last would win, silently."""
    owners: dict[str, str] = {}
    for module in modules:
        for name in _functions(module):
            if name in owners:
                raise ValueError(
                    f"{name} is defined in both {owners[name]} and {module.__name__}, whose texts are joined "
                    "into one kernel. Rename one of them."
                )
            owners[name] = module.__name__


class _Function:
    """A function at the top of a module, from its first decorator to the end of its last statement."""

    def __init__(self, module_text: str, row_starts: list[int], tokens: list[TokenInfo]) -> None:
        self._module_text, self._row_starts = module_text, row_starts
        self._tokens = tokens

    def text(self) -> str:
        """Return the function as it is."""
        return self._between(self._tokens[0].start, self._tokens[-1].start)

    def formula(self, bound: Mapping[str, str] | None = None, wrap_numbers: bool = True) -> str:
        """Return the function without annotations, inlined, with its numbers in the kernel's precision."""
        bound = bound or {}
        tokens = iter(self._tokens)
        assert next(tokens).string == "def"
        name, previous = next(tokens).string, next(tokens).string
        arguments, depth, is_closed = [], 1, False
        for token in tokens:
            if token.type in (tokenize.NL, tokenize.COMMENT):
                continue
            depth += (token.string in ("(", "[")) - (token.string in (")", "]"))
            is_closed |= depth == 0
            if depth == 0 and token.string == ":":
                break
            if depth == 1 and not is_closed:
                if token.string in ("=", "*", "**", "/"):
                    raise NotImplementedError(f"{name} must have plain arguments to be used as a formula")
                if token.type == tokenize.NAME and previous in ("(", ","):
                    arguments.append(token.string)
            previous = token.string
        text, end = f"@inlined\ndef {name}({', '.join(a for a in arguments if a not in bound)}):", token.end
        for token in tokens:
            new = None
            if token.type == tokenize.NUMBER and wrap_numbers:
                new = f"real({float(token.string)!r})"
            elif token.type == tokenize.NAME:
                new = bound.get(token.string)
            if new is not None:
                text, end = text + self._between(end, token.start) + new, token.end
        return text + self._between(end, token.start)

    def _between(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        first, last = (self._row_starts[row] + column for row, column in (start, end))
        return self._module_text[first:last]


@functools.cache
def _functions(module: ModuleType) -> dict[str, _Function]:
    """The functions at the top of a module, by name."""
    text = inspect.getsource(module)
    # Tokens count rows from 1.
    row_starts = [0, *itertools.accumulate(map(len, text.splitlines(keepends=True)), initial=0)]
    found, level, tokens = {}, 0, list[TokenInfo]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        level += (token.type == tokenize.INDENT) - (token.type == tokenize.DEDENT)
        if tokens or (level == 0 and token.start[1] == 0 and token.string in ("@", "def")):
            tokens.append(token)
        if tokens and level == 0 and token.type == tokenize.DEDENT:
            # Comments in front of the next function do not belong to this one.
            while tokens[-1].type != tokenize.NEWLINE:
                tokens.pop()
            for word, name in itertools.pairwise(tokens):
                if word.string == "def" and word.start[1] == 0:  # not a method of a class with a decorator
                    found[name.string] = _Function(text, row_starts, tokens)
            tokens = []
    return found
