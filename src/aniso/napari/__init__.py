"""The napari plugin: a widget for each verb, for diffusions, and for the structure of an image.

- `target`: a layer as the library sees it, and what its result looks like as a layer
- `controls`: the Qt elements of parameters
- `widgets`: the widgets, generated from the tables of verbs and parameters
- `samples`: sample data

`napari.yaml` is the manifest. Choices, ranges of sliders, previews and threads are those of the explorer.
"""
