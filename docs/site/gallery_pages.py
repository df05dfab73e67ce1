"""The gallery: pages of examples, with what they print and draw where they are run."""

import builtins
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

# By the name in the site: folder of the repository, heading, sentence.
GALLERIES = {
    "gallery": (
        "examples",
        "Examples",
        "Each is a program of its own: `python examples/NAME.py`. What they share, such"
        " as how they draw, lies beside them in files that begin with an underscore.",
    ),
    "notebooks": (
        "docs/notebooks",
        "Worked tasks",
        "Programs in cells, which editors run one by one; `python` runs them whole, and"
        " `sphinx_gallery_py2jupyter FILE.py` (extra `docs`) makes a notebook of one.",
    ),
}
# Examples that need ROS 2 or run for minutes are shown and not run.
COPIES = Path(__file__).parents[1] / "_build" / "galleries"
NOT_RUN = ("rclpy_controller", "rclpy_simulator", "quadruped_stand", "learn_reach")
# Those of packages that few need are run where their package is installed.
PACKAGES = {"casadi_swing": "casadi", "jax_rollout": "jax", "torch_training": "torch"}


def examples(folder):
    """Return the programs of a folder."""
    return sorted(path for path in folder.glob("*.py") if path.name[0] != "_")


def not_run():
    """Return the names of the examples that are shown and not run on this machine."""
    missing = [name for name, package in PACKAGES.items() if find_spec(package) is None]
    return [*NOT_RUN, *missing]


def title(path):
    """Return the first sentence of an example's docstring."""
    return path.read_text(encoding="utf-8").split('"""')[1].split("\n")[0].rstrip(".")


def prepare(source: Path, build: Path, root: Path, run: bool):
    """Write the pages, or what sphinx-gallery needs to; return options for Sphinx."""
    for name, (folder, heading, sentence) in GALLERIES.items():
        if not run:
            _write_pages(source / name, root / folder, f"# {heading}\n\n{sentence}\n")
            continue
        copy = build / "galleries" / name
        shutil.rmtree(copy, ignore_errors=True)
        # A folder with a README would be a gallery of its own.
        readme = shutil.ignore_patterns("README.md")
        shutil.copytree(root / folder, copy, ignore=readme)
        for path in examples(copy):
            _with_title(path)
        head = f"{heading}\n{'=' * len(heading)}\n\n{sentence.replace('`', '``')}\n"
        (copy / "GALLERY_HEADER.rst").write_text(head, encoding="utf-8")
    return ["-t", "gallery"] if run else []


def _with_title(path):
    """Turn the docstring into reStructuredText with a title, as sphinx-gallery asks."""
    name = title(path)
    start, doc, rest = path.read_text(encoding="utf-8").split('"""', 2)
    body = as_rst(doc.partition("\n")[2])
    cells = re.compile(r"(?<=^# %%\n)(?:# .*\n)+", re.MULTILINE)
    rest = cells.sub(lambda cell: _with_codes(cell[0]), rest)
    made = f'{start}r"""{name}\n{"=" * len(name)}\n\n{body}\n"""{rest}'
    path.write_text(made, encoding="utf-8")


def as_rst(doc):
    """Return a docstring's lines as reStructuredText: what is indented is literal."""
    lines, literal = [], False
    for line in doc.strip("\n").split("\n"):
        if line.startswith(" "):
            lines += [] if literal else ["", "::", ""]
            literal = True
        elif line:
            lines += [""] if literal else []
            literal = False
            line = _with_codes(re.sub(r"[*|]", r"\\\g<0>", line))
        lines.append(line)
    return "\n".join(lines)


def _with_codes(text):
    """Return text with codes as reStructuredText marks them."""
    return re.sub(r"`([^`]*)`", r"``\1``", text)


def name_file(gallery_conf, path):
    """Let an example know its file, as it does when Python runs it."""
    name = Path(path).name
    (builtins.__file__,) = map(str, COPIES.glob(f"*/{name}"))


def _write_pages(target, folder, head):
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
        f"{head}\n```{{toctree}}\n:titlesonly:\n\n{tree}\n```\n", encoding="utf-8"
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
