"""The notebooks of the documentation: each is executed, and prints what is stored in it.

With RONDEL_DOCS=write the outputs are stored. A cell runs as in a notebook: its last expression is displayed. That needs
neither a kernel nor its packages; commands that begin with % or !, and await outside of functions are not supported.
"""

import ast
import contextlib
import io
import json
import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
PICTURE = "image/svg+xml"


def execute(source, place, names):
    """The outputs of a cell, as a notebook stores them."""
    tree = ast.parse(source, place)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, place, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), place, "eval"), names)
    outputs = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if value is not None:
        # The text of a picture states its size only.
        data = {PICTURE: lines(value._repr_svg_())} if hasattr(value, "_repr_svg_") else {"text/plain": lines(repr(value))}
        outputs.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return outputs


def lines(text):
    return text.splitlines(keepends=True)


def without_pictures(outputs):
    """The outputs for comparison: pictures are as the command draws them, numbers of executions any."""
    return [
        {
            **{name: value for name, value in output.items() if name != "execution_count"},
            "data": {form: None if form == PICTURE else text for form, text in output.get("data", {}).items()},
        }
        for output in outputs
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_prints_what_it_stores(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    book = json.loads(path.read_text())
    names = {"__name__": "__main__"}
    count = 0
    for number, cell in enumerate(book["cells"]):
        if cell["cell_type"] != "code":
            continue
        count += 1
        outputs = execute("".join(cell["source"]), f"{path.name}, cell {number}", names)
        if os.environ.get("RONDEL_DOCS") == "write":
            cell["execution_count"] = count
            cell["outputs"] = [{**output, "execution_count": count} if "data" in output else output for output in outputs]
        else:
            assert without_pictures(outputs) == without_pictures(cell["outputs"]), f"cell {number}"
    if os.environ.get("RONDEL_DOCS") == "write":
        path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n")
    assert count >= 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_a_small_page(path):
    text = path.read_text()
    book = json.loads(text)
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert book["cells"][0]["source"][0].startswith("# ")
    ids = [cell["id"] for cell in book["cells"]]
    assert len(set(ids)) == len(ids)
    assert len(text) < 150_000
    for folder in ("/tmp/", "/home/", str(ROOT)):
        assert folder not in text


def test_links_of_notebooks_have_targets():
    import re

    count = 0
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text())["cells"]
        text = "".join(line for cell in cells if cell["cell_type"] == "markdown" for line in cell["source"])
        for target in re.findall(r"\]\(([^)#]+)", text):
            count += 1
            assert (path.parent / target).exists(), f"{path.name}: {target}"
    assert count >= 6


def test_all_notebooks_are_listed():
    page = (ROOT / "docs/notebooks/README.md").read_text()
    assert len(NOTEBOOKS) == 3
    assert all(f"({path.name})" in page for path in NOTEBOOKS)
