"""One call: what it may do, and what it did."""

import contextlib
import dis
import math
import re
import signal
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import aniso

OWN = str(Path(aniso.__file__).parent)
# What is promised to those who catch errors; and kinds of these that only a calculation gone wrong raises.
_PROMISED = (ValueError, TypeError, ImportError, OSError, ArithmeticError, NotImplementedError)
_SLIPPED = (
    OverflowError,
    ZeroDivisionError,
    FloatingPointError,
    UnicodeError,
    np.linalg.LinAlgError,
)
_SENTENCE = re.compile(r"\S.{14,}[.)…'\"]$", re.DOTALL)
_RAISE = dis.opmap["RAISE_VARARGS"]
PATIENCE = 120  # seconds, enough to compile, too


@dataclass
class Case:
    """A call, and what its result must be like; `check` says what is wrong with it."""

    call: Callable[[], Any]
    text: str
    check: Callable[[Any], str | None] = lambda result: None
    inputs: Sequence[Any] = field(default_factory=tuple)
    refused: Callable[[Any], bool] = lambda result: False  # of what answers in another way than by an error


@dataclass(frozen=True)
class Verdict:
    """What became of a case: "accepted", "refused", or "failed" with what is wrong."""

    kind: str
    fault: str = ""


class _TooLong(BaseException):
    """Not an Exception: whoever catches all of those must not catch this one."""


def judged(case: Case) -> Verdict:
    """Make the call."""
    before = [_bytes(array) for array in case.inputs]
    try:
        with _patience(PATIENCE), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "an image of shape")  # a warning that is meant
            result = case.call()
            fault = case.check(result)
    except _TooLong:
        return Verdict("failed", f"still running after {PATIENCE} s")
    except MemoryError:  # NumPy says how much there would have to be
        verdict = Verdict("refused")
    except Exception as error:
        fault = refusal_fault(error)
        verdict = Verdict("failed", fault) if fault else Verdict("refused")
    else:
        kind = "refused" if case.refused(result) else "accepted"
        verdict = Verdict("failed", fault) if fault else Verdict(kind)
    if verdict.kind != "failed" and before != [_bytes(array) for array in case.inputs]:
        return Verdict("failed", "an input was modified")
    return verdict


def refusal_fault(error: Exception) -> str:
    """What is wrong with an error, as an answer to somebody's mistake; "" if nothing is."""
    frame, _ = list(traceback.walk_tb(error.__traceback__))[-1]
    last = error.__traceback__
    assert last is not None
    while last.tb_next is not None:
        last = last.tb_next
    place = f"{frame.f_code.co_filename}:{last.tb_lineno}"
    told = f"{type(error).__name__}: {str(error)[:200]} ({place})"
    if not isinstance(error, _PROMISED) or isinstance(error, _SLIPPED):
        return told
    # An error of our own comes from the word `raise`; a function of C that is called fails in the same frame.
    if not frame.f_code.co_filename.startswith(OWN) or frame.f_code.co_code[last.tb_lasti] != _RAISE:
        return f"not our own error: {told}"
    if not _SENTENCE.match(str(error)):
        return f"not a sentence: {told}"
    return ""


def not_finite(result: Any) -> str | None:
    """A fault if an array, or a number, holds NaN or infinity."""
    if result is None or isinstance(result, str | bytes):
        return None
    array = np.asarray(result)
    if array.dtype.kind in "fc" and not np.isfinite(array).all():
        return f"the result holds {int((~np.isfinite(array)).sum())} values that are not finite"
    return None


def not_a_number(result: Any) -> str | None:
    """A fault if a number is NaN; infinity may be meant."""
    return "the result is NaN" if any(math.isnan(x) for x in np.ravel(result)) else None


@contextlib.contextmanager
def _patience(seconds: float):
    def stop(number, frame):
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _bytes(array: Any) -> Any:
    """What an array holds, to be compared."""
    if isinstance(array, np.ndarray) and array.dtype != object:
        return array.shape, array.strides, np.ma.getdata(array).tobytes()
    if type(array).__module__.startswith("torch"):
        array = array.detach()
        return tuple(array.shape), str(array.dtype), str(array.tolist())
    return repr(array)
