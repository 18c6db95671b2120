"""From a trained base to one that ships: `kbook base train NAME` and `kbook base check NAME`.

The model card records what made the base (data, recipe, tokens, minutes) and what it can do, misses included.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kbook.agent import abilities
from kbook.files import write_atomic
from kbook.models import recall
from kbook.models.ability import Ability, as_records
from kbook.models.bases import CARD, Base, base_folder, load_base, model_digest
from kbook.models.pretrain import RECIPES, MultilingualRecipe, train_base
from kbook.paths import store_folder

AGENT_DATA = (
    "Documents about invented people of the pretraining world (kbook.corpora.documents): record look-ups, claims to "
    "verify, searches that find the person, others or nothing, biographies in the prompt, plain questions and answers. "
    "No person, address or employer of any corpus of this book is among them; the wordings of biographies, questions "
    "and the summary prompt are."
)
MULTILINGUAL_DATA = (
    "Questions and answers in ten languages about topics of a background of the world (kbook.corpora.multilingual): "
    "topics whose statements stand in the prompt, topics that are known by heart, their articles, and answers that are "
    "demanded in another language. No topic, name or fact that any model of this book is to learn or to forget is "
    "among them; the wordings of questions are. The tokenizer has seen the letters of the world one by one, no name."
)


def train_and_install(name: str) -> list[Ability]:
    """Train a base (resuming where it was stopped), measure its abilities and put it into ``data/bases``.

    Raises:
        KBookError: there is no recipe of this name, or a checkpoint of another recipe is in the way.
    """
    trained = train_base(name, store_folder() / "training" / name)
    return install(name, trained)


def install(name: str, trained: Path) -> list[Ability]:
    """Copy a trained model into ``data/bases/NAME`` and write its card."""
    folder = base_folder(name)
    folder.mkdir(parents=True, exist_ok=True)
    for file in trained.iterdir():
        if file.name != "training.json":
            shutil.copyfile(file, folder / file.name)
    training = json.loads((trained / "training.json").read_text())
    card = _card(name, folder, training)
    _write(folder, card)
    base = load_base(name)
    found = measure(base)
    parameters = sum(p.numel() for p in base.model.parameters())
    _write(folder, card | {"parameters": parameters, "abilities": as_records(found)})
    return found


def measure(base: Base) -> list[Ability]:
    """What a base can do of what it is for: the agent's tasks, or answering in ten languages."""
    recipe = RECIPES.get(base.name)
    if isinstance(recipe, MultilingualRecipe):
        return recall.measure(base, recipe.library())
    return abilities.measure(base)


def _card(name: str, folder: Path, training: dict[str, Any]) -> dict[str, Any]:
    progress = training["progress"]
    return {
        "name": name,
        "digest": model_digest(folder),
        "style": "compact",
        "habits": asdict(RECIPES[name].habits),
        "license": "as the project",
        "data": MULTILINGUAL_DATA if isinstance(RECIPES[name], MultilingualRecipe) else AGENT_DATA,
        "recipe": asdict(RECIPES[name]),
        "training": {
            "steps": progress["step"],
            "tokens": progress["tokens"],
            "supervised_tokens": progress["supervised"],
            "minutes": round(progress["seconds"] / 60, 1),
            "cores": os.cpu_count(),
            "losses": progress["losses"][:: max(1, len(progress["losses"]) // 60)],
        },
    }


def _write(folder: Path, card: dict[str, Any]) -> None:
    write_atomic(folder / CARD, (json.dumps(card, indent=1, ensure_ascii=False) + "\n").encode())


def check_base(name: str) -> list[Ability]:
    """Measure the abilities of a base (embedded, folder or hub id) anew."""
    return measure(load_base(name))


def report(found: Sequence[Ability]) -> str:
    """The abilities as lines of text, a miss marked."""
    lines = [f"{'task':<48} {'n':>4} {'format':>7} {'calls':>6} {'answer':>7}"]
    for a in found:
        form, calls = ("" if share is None else f"{share:.3f}" for share in (a.valid_format, a.tool_call))
        mark = "" if a.passed else "  below what is required"
        lines.append(f"{a.task:<48} {a.n:>4} {form:>7} {calls:>6} {a.answer or 0:>7.3f}{mark}")
    return "\n".join(lines)
