"""The site: Sphinx over these pages. `make docs` builds it; nothing in it asks another machine for anything."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_site"))

from odinfer import __version__

project = "odinfer"
author = "the authors of odinfer"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
extensions += ["languages", "pictures", "command_line", "reference", "accessible"]  # in _site
exclude_patterns = ["_build", "_site"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
# Every reference must lead somewhere, but for types of other libraries.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!odinfer\b).*|odinfer\.(progress|gp|model\.(?!model\b)\w+)\..*")]

# The reference: classes under the names that people import, members in the order of the source.
add_module_names = False
python_use_unqualified_type_names = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
default_role = "code"

html_theme = "furo"
html_title = "odinfer"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_show_sphinx = html_show_copyright = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"
