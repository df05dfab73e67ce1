"""Configuration of the site for Sphinx; python docs/make_site.py uses it."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "dyn_ros"
author = "The dyn_ros developers"
version = release = version_of("dyn_ros")

extensions = ["myst_parser", "code_pages"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 4  # links to headings are checked, as GitHub writes them
exclude_patterns = ["code"]  # no pages of their own: code_pages.py shows them
nitpicky = True

html_theme = "furo"
html_title = "dyn_ros"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
pygments_style = "friendly"

if tags.has("gallery"):  # noqa: F821 - Sphinx defines tags
    from gallery_pages import COPIES, GALLERIES, not_run

    extensions.append("sphinx_gallery.gen_gallery")
    sphinx_gallery_conf = {
        "examples_dirs": [str(COPIES / name) for name in GALLERIES],
        "gallery_dirs": [str(COPIES.parent / "source" / name) for name in GALLERIES],
        "filename_pattern": rf"/(?!({'|'.join(not_run())})\.py)[^/]*\.py$",
        "image_scrapers": ("matplotlib", "gallery_pages.new_pictures"),
        "reset_modules": ("matplotlib", "gallery_pages.name_file"),
        "ignore_pattern": "(^|/)_",  # of names, in some releases of paths
        "download_all_examples": False,
        "remove_config_comments": True,
        "default_thumb_file": str(COPIES.parents[1] / "images" / "arm.gif"),
        "show_memory": False,
        "write_computation_times": False,  # its page loads from a network
        "show_signature": False,
        "min_reported_time": 1e9,
        "within_subsection_order": "FileNameSortKey",
    }
