"""How Sphinx builds the documentation of aniso."""

import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for gallery_order

project = "aniso"
author = "The aniso developers"
copyright = "2026, the aniso developers"
PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
release = version = PROJECT["version"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas without a network: a copy of MathJax goes into the pages
    "matplotlib.sphinxext.plot_directive",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.md5"]

# Pages
myst_enable_extensions = [
    "amsmath",
    "attrs_block",
    "attrs_inline",
    "colon_fence",
    "deflist",
    "dollarmath",
]
myst_heading_anchors = 3

# Reference
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings name the types, in words
python_use_unqualified_type_names = True
napoleon_google_docstring = False
napoleon_use_ivar = True  # or an attribute with a docstring of its own would be listed twice

# Figures made by code within a page
plot_formats = [("png", 160)]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_include_source = False

# Gallery: every script examples/gallery/plot_*.py is run, and a failing one fails the build
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"[/\\]plot_",
    "within_subsection_order": "gallery_order.place",
    "thumbnail_size": (500, 350),
    "notebook_extensions": set(),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": float("inf"),
    "abort_on_example_error": False,
}

# Look
html_theme = "furo"
html_title = f"aniso {release}"
html_static_path = ["_static"]
html_css_files = ["aniso.css"]
