"""The widgets that the manifest names: one for each row of the table of verbs, and for diffusions."""

from __future__ import annotations

from aniso.explorer.choosing.choices import methods
from aniso.napari.filters import VerbWidget
from aniso.napari.structure import Structure as Structure

for _verb in methods().values():
    _class_name = _verb.name.capitalize()
    globals()[_class_name] = type(
        _class_name,
        (VerbWidget,),
        {"verb": _verb, "title": _class_name, "summary": _verb.summary, "__doc__": f"{_verb.summary}"},
    )
