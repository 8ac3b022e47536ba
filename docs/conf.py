"""The site and the man pages: ``.ci/docs`` builds both."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from rfh2.distribution import VERSION  # noqa: E402

project = "qpubsub"
release = version = VERSION
author = copyright = ""  # noqa: A001

extensions = ["myst_nb", "sphinx.ext.autodoc", "extension.site"]
exclude_patterns = ["extension"]
root_doc = "index"
nitpicky = False

myst_enable_extensions = ["deflist"]
# As GitHub and GitLab make them, so that a link to a heading works there and here.
myst_heading_anchors = 4
# "--json" is no dash.
smartquotes = False
# Fences of these pages that no lexer knows are shown as they are.
highlight_language = "none"

nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 60
# Nothing is loaded while somebody reads: no widgets, whose script has another host.
nb_ipywidgets_js = {}

autodoc_member_order = "bysource"
autodoc_typehints = "signature"

html_theme = "furo"
html_title = f"qpubsub {VERSION}"
html_show_sphinx = html_show_copyright = html_copy_source = False
man_show_urls = False
