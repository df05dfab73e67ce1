"""The pages of the documentation, and the programs that their blocks make."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "dyn_plugins/README.md",
    *(f"docs/{path.name}" for path in sorted(DOCS.glob("*.md"))),
]
TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
CONTINUED = "# continued\n"  # how a block begins that goes on from the one before it


def blocks(page, language):
    """Return the blocks of a page in a language."""
    return re.findall(rf"```{language}\n(.*?)```", TEXTS[page], re.DOTALL)


def programs(language):
    """Return the programs of the pages by `page:line`.

    A program is a block, and the continued ones after it: pairs of line and code.
    """
    made = {}
    for page, text in TEXTS.items():
        program = []
        for match in re.finditer(rf"```{language}\n(.*?)```", text, re.DOTALL):
            line, code = text.count("\n", 0, match.start(1)), match[1]
            if not code.startswith(CONTINUED):
                program = made[f"{page}:{line + 1}"] = []
            program.append((line, code))
    return made
