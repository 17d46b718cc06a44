import warnings

project = "marey"
author = "The marey developers"
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
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "copyfile_regex": r".*\.rst",
    "download_all_examples": True,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1e9,  # times of one machine
}
# sphinx-gallery keeps its own settings unpicklable, which Sphinx reports.
suppress_warnings = ["config.cache"]
warnings.filterwarnings("ignore", category=UserWarning, module="matplotlib")
