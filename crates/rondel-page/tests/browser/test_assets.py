"""Rules for the files of the page that need no browser."""

import gzip
import hashlib
import re

import pytest
from conftest import HERE

pytestmark = pytest.mark.quick

ASSETS = HERE.parents[1] / "assets"
OWN = sorted(path for path in ASSETS.iterdir() if path.is_file())
ALL = sorted(path for path in ASSETS.rglob("*") if path.is_file())

# Ways in which a text could become markup or code.
FORBIDDEN = ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "createContextualFragment", "DOMParser", "setHTML", "srcdoc", "eval(", "new Function", "javascript:", "import("]


@pytest.mark.parametrize("path", [p for p in OWN if p.suffix in (".js", ".html")], ids=lambda p: p.name)
def test_texts_never_become_markup(path):
    text = path.read_text()
    assert not [word for word in FORBIDDEN if word in text]


def test_html_has_neither_inline_scripts_nor_styles():
    text = (ASSETS / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert "<style" not in text
    assert not re.search(r"\sstyle=", text)
    assert not re.search(r"\son[a-z]+=", text)


def test_document_names_three_files():
    """The program serves all modules as `main.js`. Theme and style come first: the one must not wait for the other."""
    text = (ASSETS / "index.html").read_text()
    assert re.findall(r'(?:src|href)="([^"#]+)"', text) == ["icon.svg", "theme.js", "style.css", "main.js"]


@pytest.mark.parametrize("path", OWN, ids=lambda p: p.name)
def test_nothing_is_loaded_from_elsewhere(path):
    assert not re.search(r"(?:https?:)?//(?!www\.w3\.org/(?:2000/svg|1999/xlink))[\w.-]+\.[a-z]{2,}/", path.read_text())


def test_vendored_files_are_those_of_the_release():
    listed = dict(reversed(line.split()) for line in (ASSETS / "vendor/SHA256SUMS").read_text().splitlines())
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (ASSETS / "vendor").iterdir() if path.name != "SHA256SUMS"}
    assert files == listed
    assert "MIT License" in (ASSETS / "vendor/uplot-LICENSE").read_text()


def test_whole_page_is_small():
    assert sum(len(gzip.compress(path.read_bytes())) for path in ALL) < 90_000
