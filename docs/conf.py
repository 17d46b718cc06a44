import logging

import matplotlib.figure
from sphinx_gallery.scrapers import figure_rst

project = "marey"
author = copyright = "The marey developers"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
html_theme = "furo"
html_title = "marey"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
exclude_patterns = ["_build"]
myst_heading_anchors = 3

# A package of the theme turns on INFO of all loggers, which would print every step of
# every example.
logging.getLogger("marey").setLevel(logging.WARNING)


def save_figures(block, names, settings):
    """Save the figures that a block of an example made, which pyplot does not know."""
    code = block.content if hasattr(block, "content") else block[1]
    paths = []
    for name, value in names["example_globals"].items():
        if isinstance(value, matplotlib.figure.Figure) and f"{name} = " in code:
            paths.append(next(names["image_path_iterator"]))
            value.savefig(paths[-1], dpi=90, bbox_inches="tight")
    return figure_rst(paths, settings["src_dir"])


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": (save_figures,),
    "ignore_repr_types": r"matplotlib\.figure",  # a picture is there already
    "first_notebook_cell": "%matplotlib inline",
    "min_reported_time": 1e9,  # seconds; the times of one machine are not shown
    "write_computation_times": False,
}
suppress_warnings = ["config.cache"]  # the function above cannot be pickled
