"""Sphinx configuration."""

import importlib.metadata
import shutil
import sys
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.errors import ConfigError

import pyengine

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

project = "pyengine"
author = "The pyengine developers"
copyright = "the pyengine developers"
release = version = pyengine.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
]
# Tables that pages include are no pages.
exclude_patterns = [
    "_build",
    "*_measured.md",
    "*/*_measured.md",
    "accuracy_by_mechanism.md",
]
nitpicky = True
nitpick_ignore_regex = [
    # Shorthands of numpydoc and types of other packages: the build reads no network, so there is no
    # inventory to link them to.
    ("py:class", r"array_like|optional|numpy\..*|np\..*|npt\..*|ndarray"),
    ("py:.*", r"mpmath\..*|matplotlib\..*|dp_accounting\..*|opacus\..*"),
    ("py:class", r"PrivacyRandomVariable|NeighboringRelation"),
]

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

autodoc_mock_imports = ["dp_accounting", "opacus"]  # bases of two classes
autodoc_typehints = "none"  # the docstrings say more than the types do
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_validation_checks = {"GL03", "GL05", "GL07", "PR01", "PR02", "PR03", "RT03", "SS03"}

html_theme = "furo"
html_title = f"pyengine {release}"


def formulas():
    """Return MathJax as one file, which draws formulas as SVG and needs no font and no network."""
    package = "sphinx-mathjax-offline"
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError as error:
        raise ConfigError(f"formulas need {package}: pip install '.[docs]'") from error
    return next(str(file.locate()) for file in files if file.name == "tex-svg-full.js")


html_static_path = [formulas(), "code.css"]
html_css_files = ["code.css"]
mathjax_path = "tex-svg-full.js"

templates_path = ["_templates"]
MOVED = {  # addresses of pages that are gone, and where what they said stands
    "quickstart": "tutorial.html",
    "statement": "report.html",
    "explore": "report.html#a-page-to-play-with",
    "gallery": "report.html#pictures",
    "verify": "tables.html#verify",
    "json": "tables.html#json",
    "audit": "attacks.html",
    "interop": "hosts.html#anything-else",
    "drop_in": "hosts.html",
    "guides/index": "cookbook.html",
    "guides/dp_sgd": "tutorial.html",
    "guides/opacus": "hosts.html#opacus",
    "guides/jax_privacy": "hosts.html#jax-privacy-and-dp-accounting",
    "guides/tf_privacy": "hosts.html#tensorflow-privacy",
    "guides/shuffled_loaders": "batch_selection.html#shuffled-batches",
    "guides/adaptive": "api/accounting.html",
    "guides/accountants": "accountants.html",
    "guides/budgets": "api/budgets.html",
    "guides/noise_multiplier": "api/noise_multiplier.html",
    "guides/tables": "tables.html",
    "schemes/index": "batch_selection.html",
    "schemes/random_allocation": "batch_selection.html#random-allocation",
    "schemes/without_replacement": "batch_selection.html#batches-without-replacement",
    "schemes/truncated_poisson": "batch_selection.html#truncated-poisson-samples",
    "schemes/groups": "batch_selection.html#several-records-of-a-user",
    "schemes/banded": "batch_selection.html#banded-matrices",
    "schemes/matrix": "batch_selection.html#fixed-orders-and-trees",
    "schemes/balls_in_bins": "batch_selection.html#random-bins-with-a-matrix",
    "schemes/shuffled": "batch_selection.html#shuffled-batches",
    "theory/accuracy": "accuracy.html",
    "theory/errata": "errata.html",
    "theory/directions": "theory/notation.html",
    "theory/certified": "theory/gaussian.html",
    "theory/lines": "theory/line.html",
    "theory/deformed_lines": "theory/laplace.html#deformed-lines",
    "theory/exact": "theory/finite.html",
    "theory/libm": "theory/arithmetic.html#other-libraries",
    "theory/spectral": "estimates.html",
    "theory/convolution": "theory/sector_laws.html",
}
html_additional_pages = dict.fromkeys(MOVED, "moved.html")
html_context = {"moved": MOVED}


def errors_in(name, document):
    """What a file of errors holds, on which a page depends from then on."""
    path = Path(__file__).parents[1] / "tests" / "data" / f"{name}.toml"
    document.settings.env.note_dependency(str(path))
    return tomllib.loads(path.read_text(encoding="utf-8"))


def error_in_budget(_name, _rawtext, text, _lineno, inliner, _options=None, _content=()):
    """The recorded error of ``section.key`` within a sentence."""
    section, key = text.split(".")
    return [nodes.Text(f"{errors_in('error_budget', inliner.document)[section][key]:g}")], []


class ErrorBudget(Directive):
    """Entries of the error budget and what was measured last, so that no figure is copied."""

    required_arguments = 1  # the section
    has_content = True  # one key a line; none for the whole section

    def run(self):
        section, measured = (self._section(name) for name in ("error_budget", "error_measured"))
        keys = [line.strip() for line in self.content if line.strip()] or sorted(section)
        group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in (3, 1, 1)), cols=3)
        rows = (self._row(nodes.literal(k, k), f"{section[k]:g}", f"{measured[k]:g}") for k in keys)
        body = nodes.tbody("", *rows)
        head = nodes.thead("", self._row(nodes.Text("test"), "recorded error", "measured last"))
        group += [head, body]
        return [nodes.table("", group)]

    def _section(self, name):
        return errors_in(name, self.state.document)[self.arguments[0]]

    @staticmethod
    def _row(first, *others):
        cells = (nodes.paragraph("", "", first), *(nodes.paragraph("", text) for text in others))
        return nodes.row("", *(nodes.entry("", cell) for cell in cells))


def make_pictures(_app):
    """Draw the pictures of the pages, unless they are newer than the package."""
    sys.path.insert(0, str(Path(__file__).parent / "figures"))
    import gallery
    import schemes

    sources = Path(pyengine.__file__).parent.rglob("*.py")
    newest = max(path.stat().st_mtime for path in sources)
    for script in (gallery, schemes):
        directory = Path(__file__).parent / f"_{script.__name__}"
        made = [path.stat().st_mtime for path in directory.glob("*.png")]
        own = Path(script.__file__).stat().st_mtime
        if len(made) < script.PICTURES or min(made) < max(newest, own):
            script.make(directory)


def copy_benchmarks(app, exception):
    """Put asv's pages beside the documentation, where `make bench-history` has made them."""
    pages = Path(__file__).parents[1] / "asv_bench" / "html"
    if exception is None and app.builder.name == "html" and pages.is_dir():
        shutil.copytree(pages, Path(app.outdir) / "benchmarks", dirs_exist_ok=True)


def setup(app):
    app.connect("builder-inited", make_pictures)
    app.connect("build-finished", copy_benchmarks)
    app.add_directive("error-budget", ErrorBudget)
    app.add_role("error-budget", error_in_budget)
    return {"parallel_read_safe": True}
