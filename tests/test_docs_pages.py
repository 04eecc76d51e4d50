"""The pages for users: how many and long, what each recipe has, and where old addresses lead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
if not (DOCS / "index.md").exists():  # a package without its sources
    pytest.skip("the sources are not here", allow_module_level=True)

LARGEST = {"pages": 15, "words": 12_000, "README": 700, "release": 1_200, "recipes": 20}
# What people look for, and the page and heading of its main entry in the index: the built search
# shows main entries first.
SOUGHT = {
    "federated": "cookbook: Federated learning: what does my run promise a client?",
    "client": "cookbook: Federated learning: what does my run promise a client?",
    "guarantee": "tutorial: Get a guarantee",
    "hyperparameter": "cookbook: I tuned over 20 runs and publish the best",
    "resume": "cookbook: I resumed training with other batches",
    "checkpoint": "cookbook: I resumed training with other batches",
    "schedule": "cookbook: My noise decays. What is the ε of the schedule?",
    "shuffle": "batch_selection: Shuffled batches",
    "groups": "batch_selection: Several records of a user",
    "noise multiplier": "cookbook: What is the noise multiplier of my training code?",
    "audit": "attacks: Attacks and weaker adversaries",
    "counts": "attacks: Counts",
    "budget": "cookbook: How many steps does my budget still allow?",
    "TPR": "cookbook: Which numbers belong on a model card?",
    "model card": "cookbook: Which numbers belong on a model card?",
    "LaTeX": "cookbook: What do I put into my paper?",
    "histogram": "cookbook: I also released a histogram of the same data",
    "epochs": "cookbook: How does ε grow with the epochs?",
    "compare": "cookbook: Which of two runs is more private?",
    "adaptive": "cookbook: May I change noise or stop in view of what I see?",
    "plot": "report: Pictures",
    "Opacus": "hosts: Opacus",
    "dp_accounting": "hosts: JAX Privacy and dp-accounting",
    "riskcal": "hosts: riskcal",
    "prv_accountant": "hosts: prv_accountant",
}
RECIPES = re.split(r"^### ", (DOCS / "cookbook.md").read_text(encoding="utf-8"), flags=re.M)[1:]


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def words(text: str) -> int:
    """Words with a letter or a digit, code and tables included."""
    return sum(re.search(r"\w", word) is not None for word in text.split())


def user_pages() -> list[Path]:
    index = text_of(DOCS / "index.md")
    (listed,) = re.findall(r":caption: Use it\n\n(.*?)```", index, re.S)
    return [DOCS / "index.md", *(DOCS / f"{name}.md" for name in listed.split())]


@cache
def anchors(page: Path) -> frozenset[str]:
    """Of the headings, as MyST makes them, and as docutils does."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text_of(page), re.M):
        slug = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        found |= {slug, re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")}
    return frozenset(found)


def test_user_pages_are_few_and_short() -> None:
    pages = user_pages()
    assert 10 < len(pages) <= LARGEST["pages"]
    assert sum(words(text_of(page)) for page in pages) <= LARGEST["words"]
    assert words(text_of(ROOT / "README.md")) <= LARGEST["README"]


def test_releases_are_told_in_few_words() -> None:
    releases = re.split(r"^## ", text_of(ROOT / "CHANGELOG.md"), flags=re.M)[1:]
    for release in releases:
        assert words(release) <= LARGEST["release"], release[:20]
        assert set(re.findall(r"^### (.*)$", release, re.M)) <= {"Added", "Changed", "Fixed"}


def test_there_are_recipes_for_everyday_tasks() -> None:
    assert len(RECIPES) >= LARGEST["recipes"]
    assert len({recipe.splitlines()[0] for recipe in RECIPES}) == len(RECIPES)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.splitlines()[0])
def test_recipes_have_code_words_to_publish_and_a_trap(recipe: str) -> None:
    assert re.search(r"^```(python|sh)$", recipe, re.M)
    assert len(re.findall(r"^\*\*Write:\*\* ", recipe, re.M)) == 1
    assert len(re.findall(r"^\*\*Trap:\*\* ", recipe, re.M)) == 1


def test_every_page_has_one_title() -> None:
    for page in DOCS.rglob("*.md"):
        text = re.sub(r"^```.*?^```", "", text_of(page), flags=re.M | re.S)
        titles = re.findall(r"^# ", text, re.M)
        included = any(page.name in text_of(other) for other in DOCS.rglob("*.md") if other != page)
        assert len(titles) == 1 or (not titles and included), page


def main_entries() -> Iterator[tuple[str, str]]:
    """Main entries of the index, each with its page and the heading below it, or right above."""
    for page in user_pages():
        for found in re.finditer(r"(.*)\n\n```\{index\} (.*)\n```\n(?:\n#+ (.*))?", text_of(page)):
            above, entries, below = found.groups()
            for entry in entries.split(","):
                if entry.strip().startswith("!"):
                    yield entry.strip(" !"), f"{page.stem}: {below or above.lstrip('# ')}"


@pytest.mark.parametrize(("word", "place"), SOUGHT.items())
def test_what_people_look_for_is_found_where_it_is_answered(word: str, place: str) -> None:
    assert [where for entry, where in main_entries() if entry == word] == [place]


def moved() -> dict[str, str]:
    for node in ast.parse(text_of(DOCS / "conf.py")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MOVED":
            return dict(ast.literal_eval(node.value))
    raise AssertionError


@pytest.mark.parametrize(("old", "new"), moved().items())
def test_old_addresses_lead_to_pages_and_headings(old: str, new: str) -> None:
    name, _, anchor = new.partition("#")
    page = (DOCS / name).with_suffix(".md")
    assert not (DOCS / f"{old}.md").exists()
    assert page.exists()
    assert not anchor or anchor in anchors(page)


def test_what_is_said_of_measured_errors_is_what_was_measured() -> None:
    """Trust told of 2 refusals of 20, and of a largest error five times too small."""
    table = (DOCS / "accuracy_measured.md").read_text(encoding="utf-8")
    counts = re.match(r"\d+ points, (\d+) answers, (\d+) of them refused", table)
    assert counts
    asked, refused = map(int, counts.groups())
    above = [line.split("|") for line in table.splitlines() if "| above 1e-30 |" in line]
    largest = max(float(cells[6]) for cells in above)
    trust, accuracy = (
        (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("trust", "accuracy")
    )
    assert f"{refused} of {asked:,} random questions" in trust
    said = re.search(r"above 1e-30 the largest is (\S+),", trust)
    assert said
    assert float(said[1]) == largest
    assert f"none of {asked - refused:,} [errors]" in trust
    assert f"None of {asked - refused:,} errors" in accuracy
    assert f"- {refused} answers are refused" in accuracy
