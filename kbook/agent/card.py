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

from kbook.agent.abilities import Ability, as_records, measure
from kbook.files import write_atomic
from kbook.models.bases import CARD, base_folder, load_base, model_digest
from kbook.models.pretrain import RECIPES, train_base
from kbook.paths import store_folder

DATA = (
    "Documents about invented people of the pretraining world (kbook.corpora.documents): record look-ups, claims to "
    "verify, searches that find the person, others or nothing, biographies in the prompt, plain questions and answers. "
    "No person, address or employer of any corpus of this book is among them; the wordings of biographies, questions "
    "and the summary prompt are."
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
    abilities = measure(base)
    parameters = sum(p.numel() for p in base.model.parameters())
    _write(folder, card | {"parameters": parameters, "abilities": as_records(abilities)})
    return abilities


def _card(name: str, folder: Path, training: dict[str, Any]) -> dict[str, Any]:
    progress = training["progress"]
    return {
        "name": name,
        "digest": model_digest(folder),
        "style": "compact",
        "habits": asdict(RECIPES[name].habits),
        "license": "as the project",
        "data": DATA,
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


def report(abilities: Sequence[Ability]) -> str:
    """The abilities as lines of text, a miss marked."""
    lines = [f"{'task':<46} {'n':>4} {'format':>7} {'calls':>6} {'answer':>7}"]
    for a in abilities:
        calls = "" if a.tool_call is None else f"{a.tool_call:.3f}"
        mark = "" if a.passed else "  below what is required"
        lines.append(f"{a.task:<46} {a.n:>4} {a.valid_format:>7.3f} {calls:>6} {a.answer or 0:>7.3f}{mark}")
    return "\n".join(lines)
