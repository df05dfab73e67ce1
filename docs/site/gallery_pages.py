"""The gallery: pages of examples, with what they print and draw where they are run."""

import shutil
from pathlib import Path

HEAD = """# Examples

Each is a program of its own: `python examples/NAME.py`.
"""
# Examples that need ROS 2 or run for minutes are shown and not run.
NOT_RUN = ("rclpy_controller", "rclpy_simulator", "quadruped_stand")


def examples(folder):
    """Return the programs of a folder."""
    return sorted(path for path in folder.glob("*.py") if path.name[0] != "_")


def title(path):
    """Return the first sentence of an example's docstring."""
    return path.read_text(encoding="utf-8").split('"""')[1].split("\n")[0].rstrip(".")


def prepare(source: Path, build: Path, folder: Path, run: bool):
    """Write the pages, or what sphinx-gallery needs to; return options for Sphinx."""
    if not run:
        _write_pages(source / "gallery", folder)
        return []
    copy = build / "examples"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    for path in examples(copy):
        _with_title(path)
    (copy / "GALLERY_HEADER.rst").write_text(
        "Examples\n========\n\nEach is a program of its own: "
        "``python examples/NAME.py``.\n",
        encoding="utf-8",
    )
    return ["-t", "gallery"]


def _with_title(path):
    """Turn the first sentence of the docstring into a title, as sphinx-gallery asks."""
    text, name = path.read_text(encoding="utf-8"), title(path)
    start, doc, rest = text.split('"""', 2)
    body = doc.split("\n", 1)[1] if "\n" in doc else ""
    lines = f"{name}\n{'=' * len(name)}\n{body}"
    path.write_text(f'{start}r"""{lines}"""{rest}', encoding="utf-8")


def _write_pages(target, folder):
    """Write a page for each example, with its code."""
    target.mkdir()
    names = []
    for path in examples(folder):
        code = path.read_text(encoding="utf-8")
        page = f"# {title(path)}\n\n```python\n{code}\n```\n"
        (target / f"{path.stem}.md").write_text(page, encoding="utf-8")
        names.append(path.stem)
    tree = "\n".join(names)
    (target / "index.md").write_text(
        f"{HEAD}\n```{{toctree}}\n:titlesonly:\n\n{tree}\n```\n", encoding="utf-8"
    )


def new_pictures(block, block_vars, gallery_conf):
    """Return the pictures that an example has written into its folder (a scraper)."""
    from sphinx_gallery.scrapers import figure_rst

    folder = Path(block_vars["src_file"]).parent
    seen = gallery_conf.setdefault("pictures_seen", set())
    kinds = (".png", ".gif")
    shown = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in kinds and path not in seen:
            seen.add(path)
            target = Path(next(block_vars["image_path_iterator"]))
            target = target.with_suffix(path.suffix)
            shutil.copy(path, target)
            shown.append(str(target))
    return figure_rst(shown, gallery_conf["src_dir"])
