"""Make the plan of a verb from its options, wherever they come from."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from aniso.checks import Spacing
from aniso.settings import Settings
from aniso.verbs.plan import Plan
from aniso.verbs.source import ImageSource
from aniso.verbs.table import Verb


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
    assert verb.choose is not None
    wishes = dict(options)
    parameters, public = (inspect.signature(one).parameters for one in (verb.choose, verb.function))
    known = {name for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY and name in public}
    given = {}
    if verb.takes_stencil:
        given["stencil"] = wishes.pop("stencil", public["stencil"].default)
    for name in wishes:
        if name not in known:
            listed = ", ".join(sorted(known | ({"stencil"} if verb.takes_stencil else set())))
            raise TypeError(f"a plan of {verb.name} has no parameter {name!r}. It has {listed}.")
    for name in known:
        if parameters[name].default is inspect.Parameter.empty and name not in wishes:
            raise TypeError(f"{verb.name} needs the parameter {name}. Give {name}=….")
    settings = Settings.check(len(source.shape), spacing=spacing, engine=engine, threads=threads, **given)
    plan: Plan = verb.choose(source, settings, **wishes)
    return plan
