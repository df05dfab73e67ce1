"""Build the documentation as HTML: docs/_build/html/index.html.

    python docs/make_site.py [--gallery]

Pages of the repository are copied to docs/_build/source, where pages that are made from
solvers, docstrings and tables join them; Sphinx reads that folder. Warnings are errors,
links between pages and to headings are checked, and no page may load anything from a
network. With --gallery the examples run, and their pages show what they print and draw;
without it they are shown as they are. Needs the extra `docs`.
"""

import argparse
import re
import shutil
import sys
from pathlib import Path, PurePosixPath

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
BUILD = DOCS / "_build"
SOURCE, HTML = BUILD / "source", BUILD / "html"
# Pages that lie elsewhere in the repository, by their names in the site.
OTHERS = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "dyn_plugins/README.md": "writing_a_solver.md",
    "tests/README.md": "tests.md",
    "docs/solvers.md": "solver_pages/index.md",
}
# Folders of pages, each of which gets a list of them: title, sentence.
FOLDERS = {
    "docs/sources": (
        "Equations of the sources",
        "Where the code implements each equation.",
    ),
    "docs/reference": ("Files and parameters", "Keys, ranges and units."),
}
MADE = ("docs/solvers.md",)  # the site has longer ones
MADE_FOLDERS = ("docs/solver_pages/", "docs/api/")
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
_LOADED = re.compile(
    r"""(?:src|data-src)=["'](?:https?:)?//|<link[^>]+href=["']https?:"""
)

sys.path.insert(0, str(DOCS / "site"))


def pages():
    """Return the pages of the repository: their paths, and names in the site."""
    own = {
        path.relative_to(ROOT).as_posix(): path.relative_to(DOCS).as_posix()
        for path in sorted(DOCS.rglob("*.md"))
        if BUILD not in path.parents
    }
    return {**own, **OTHERS}


def place_of(path, names):
    """Return where a file of the repository lies in the site."""
    if path in FOLDERS:
        return f"{PurePosixPath(path).name}/index.md"
    if path.startswith(MADE_FOLDERS):
        return path.removeprefix("docs/")
    return names.get(path) or f"code/{path}"


def with_links(text, path, names):
    """Return a page with its links as they are in the site, and the files they name."""
    here, files = PurePosixPath(place_of(path, names)).parent, []

    def moved(match):
        target = match[2]
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        file = (ROOT / path).parent.joinpath(target).resolve()
        if path.startswith(MADE_FOLDERS) and "/" not in target:
            return match[0]  # to a page beside it
        if not file.is_relative_to(ROOT) or not file.exists():
            raise SystemExit(f"{path}: there is no '{target}'")
        name = file.relative_to(ROOT).as_posix()
        if file.suffix in (".gif", ".jpg", ".png", ".svg"):
            place = file.relative_to(DOCS).as_posix()
        else:
            place = place_of(name, names)
            if place.startswith("code/") and file.suffix == ".md":
                place += ".txt"  # no page of the site, which Sphinx would look for
            files.extend([name] if place.startswith("code/") else [])
        return f"{match[1]}{relative(place, here)}{match[3]}"

    return _LINK.sub(moved, text), files


def relative(place, here):
    """Return a path as seen from a folder, both within the site."""
    parts, base = PurePosixPath(place).parts, here.parts
    while base and parts[:1] == base[:1]:
        parts, base = parts[1:], base[1:]
    return "/".join((*[".."] * len(base), *parts))


def stage():
    """Write the folder that Sphinx reads."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    names, codes = pages(), set()
    texts = made_pages()
    for path in names:
        if path != "README.md" and path not in MADE:
            texts[path] = (ROOT / path).read_text(encoding="utf-8")
    texts["docs/index.md"] = without_empty_globs(texts["docs/index.md"])
    for path, text in texts.items():
        name = place_of(path, names)
        text, files = with_links(text, path, names)
        target = SOURCE / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        codes.update(files)
    for name in codes:
        if (ROOT / name).is_dir():
            raise SystemExit(f"a page links to the folder {name}: link to a file")
        target = SOURCE / "code" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix == ".md":
            target = target.with_suffix(".md.txt")
        shutil.copy(ROOT / name, target)
    shutil.copytree(DOCS / "images", SOURCE / "images")
    for path, (title, sentence) in FOLDERS.items():
        folder = SOURCE / PurePosixPath(path).name
        listed = "\n".join(sorted(page.stem for page in folder.glob("*.md")))
        tree = f"```{{toctree}}\n:titlesonly:\n\n{listed}\n```"
        page = f"# {title}\n\n{sentence}\n\n{tree}\n"
        (folder / "index.md").write_text(page, encoding="utf-8")


def without_empty_globs(text):
    """Return a page without patterns in its lists of pages that no page fits (yet)."""
    lines = text.split("\n")
    kept = [x for x in lines if not x.endswith("*") or list(DOCS.glob(f"{x}.md"))]
    return "\n".join(kept)


def made_pages():
    """Return the pages that are made of solvers and docstrings, as if in docs/."""
    import api_pages
    import solver_pages

    made = (("solver_pages", solver_pages), ("api", api_pages))
    return {
        f"docs/{folder}/{name}": text
        for folder, module in made
        for name, text in module.pages().items()
    }


def loaded_from_elsewhere():
    """Return the pages that load something from a network."""
    return [
        path.relative_to(HTML).as_posix()
        for path in HTML.rglob("*.html")
        if _LOADED.search(path.read_text(encoding="utf-8"))
    ]


def build(gallery=False):
    """Build the site; return an exit status."""
    from sphinx.cmd.build import main as sphinx

    stage()
    import gallery_pages

    options = gallery_pages.prepare(SOURCE, BUILD, ROOT, run=gallery)
    shutil.rmtree(HTML, ignore_errors=True)
    status = sphinx(
        ["-b", "html", "-W", "--keep-going", "-q", "-E", "-d", str(BUILD / "doctrees")]
        + ["-c", str(DOCS / "site"), *options, str(SOURCE), str(HTML)]
    )
    strangers = loaded_from_elsewhere()
    for page in strangers:
        print(f"{page} loads something from a network", file=sys.stderr)
    if not (status or strangers):
        print(HTML / "index.html")
    return status or bool(strangers)


def main():
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gallery", action="store_true", help="run the examples")
    return build(parser.parse_args().gallery)


if __name__ == "__main__":
    sys.exit(main())
