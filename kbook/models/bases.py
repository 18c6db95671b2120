"""Base models: the embedded ones, and any causal language model from a local folder or a hub id.

An embedded base lies in ``data/bases/NAME`` with a ``card.json`` that holds its digest, recipe, prompt style and
measured abilities. Everything else goes through the same `load_base`; only safetensors weights are read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from kbook.corpora.documents import Habits
from kbook.digests import digest_of, file_digest
from kbook.errors import KBookError, unknown_name
from kbook.paths import data_folder

CARD = "card.json"
_MODEL_FILES = (
    "*.safetensors",
    "config.json",
    "generation_config.json",
    "tokenizer*",
    "chat_template*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
)


@dataclass(frozen=True)
class Base:
    """A loaded model with its tokenizer.

    ``style`` says how the protocol is put to it (`corpora.protocol`), ``habits`` how an embedded base was trained to
    follow it.
    """

    name: str
    model: Any
    tokenizer: Any
    digest: str
    style: str
    source: str
    habits: Habits = Habits()

    @property
    def device(self) -> Any:
        return self.model.device

    def render(self, system: str, user: str) -> str:
        """The prompt of one exchange, up to where the assistant begins, by the model's own chat template.

        A template without a system role, whether it refuses the message or drops it, gets the system text at the
        head of the user's message; a model without any template gets plain text.

        Raises:
            KBookError: the template takes no user message either; mend it.
        """
        if not self.tokenizer.chat_template:
            return f"{system}\n\n{user}\n"
        try:
            text = self._template([{"role": "system", "content": system}, {"role": "user", "content": user}])
            if system.strip() in text:
                return text
        except Exception:  # templates raise jinja2's own error types, each in its own words
            pass
        try:
            return self._template([{"role": "user", "content": f"{system}\n\n{user}"}])
        except Exception as error:
            raise KBookError(
                f"the chat template of {self.name} takes neither a system nor a user message ({error})",
                where=self.source,
                remedy="mend chat_template in the model's tokenizer files",
            ) from error

    def _template(self, turns: Sequence[Mapping[str, str]]) -> str:
        return str(self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))


def embedded_bases() -> list[str]:
    """Names of the bases that the project ships."""
    return sorted(p.parent.name for p in (data_folder() / "bases").glob(f"*/{CARD}"))


def base_folder(name: str) -> Path:
    """Where an embedded base of this name lies (or would lie)."""
    return data_folder() / "bases" / name


def read_card(name: str) -> dict[str, Any]:
    """The model card of an embedded base."""
    if name not in embedded_bases():
        raise unknown_name("embedded base", name, embedded_bases())
    return _card(base_folder(name))


def _card(folder: Path | None) -> dict[str, Any]:
    path = folder / CARD if folder else None
    if path is None or not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_bytes()))
    except ValueError as error:
        raise KBookError(f"the card is not JSON ({error})", str(path), "restore it with `git checkout`") from None


def model_digest(folder: Path) -> str:
    """Digest of all weight, configuration and tokenizer files of a folder."""
    files = sorted({f for pattern in _MODEL_FILES for f in folder.glob(pattern)})
    return digest_of({f.name: file_digest(f) for f in files})


def base_digest(name: str, revision: str | None = None) -> str:
    """The digest that `load_base` gives a base, without loading it.

    Raises:
        KBookError: no such base, or a folder that lacks something (see `check_folder`).
    """
    local = _local_folder(name)
    if local is None:
        return digest_of({"id": name, "revision": revision or "main"})
    check_folder(local)
    return model_digest(local)


def load_base(
    name: str, *, device: str = "cpu", dtype: str = "float32", revision: str | None = None, folder: Path | None = None
) -> Base:
    """Load a base by embedded name, local folder or hub id.

    Args:
        name: ``llama-tiny``, a path, or ``owner/model``.
        device: ``cpu``, ``cuda``, ``mps`` or ``auto`` (an accelerator if there is one).
        dtype: torch dtype name of the weights.
        revision: of a hub model; part of its digest.
        folder: read the weights from here instead (an injected or unlearned copy of ``name``).

    Raises:
        KBookError: no such base; a folder without tokenizer, configuration or safetensors weights; a damaged
            embedded base; a hub model that cannot be fetched. Each says what to do.
    """
    local = folder or _local_folder(name)
    if local is not None:
        check_folder(local)
    digest, card = model_digest(folder) if folder else base_digest(name, revision), _card(_local_folder(name))
    if folder is None and card.get("digest", digest) != digest:
        raise KBookError(
            f"the files of base {name} do not match the digest in its card",
            where=str(local),
            remedy=f"restore them with `git checkout`, or train it again: `kbook base train {name}`",
        )
    try:
        model, tokenizer = _load(str(local or name), pick_device(device), dtype, None if local else revision)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise _not_loaded(name, error, local) from error
    if not tokenizer.is_fast:
        raise KBookError(
            f"{name} has no fast tokenizer", where=str(local or name), remedy="add its tokenizer.json to the folder"
        )
    habits = Habits(**card.get("habits", {}))
    return Base(name, model, tokenizer, digest, card.get("style", "instructed"), str(local or name), habits)


def pick_device(device: str) -> str:
    """Resolve ``auto`` to cuda, mps or cpu."""
    import torch

    if device != "auto":
        return device
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _load(path: str, device: str, dtype: str, revision: str | None) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(path, revision=revision or "main", padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(
        path, dtype=getattr(torch, dtype), use_safetensors=True, revision=revision or "main"
    )
    return model.eval().to(torch.device(device)), tokenizer


def _local_folder(name: str) -> Path | None:
    if base_folder(name).is_dir() and "/" not in name:
        return base_folder(name)
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if name.startswith((".", "~", "/")) or "/" not in name:
        raise KBookError(
            f"there is no base model {name!r}",
            remedy=f"embedded bases: {', '.join(embedded_bases()) or 'none'}; "
            "else give a folder or a hub id owner/model",
        )
    return None


def check_folder(folder: Path) -> None:
    """Refuse a model folder that cannot be loaded safely, naming what it lacks."""
    where = str(folder)
    if not (folder / "config.json").exists():
        raise KBookError("the model folder has no config.json", where, "give the folder that save_pretrained wrote")
    if not list(folder.glob("*.safetensors")):
        pickled = sorted(p.name for pattern in ("*.bin", "*.pt", "*.pth") for p in folder.glob(pattern))
        found = f" but pickle weights ({', '.join(pickled)}), which are never loaded" if pickled else ""
        raise KBookError(
            f"the model folder has no safetensors weights{found}",
            where,
            "convert it: load it where you trust it and call save_pretrained(folder, safe_serialization=True)",
        )
    if not any((folder / f).exists() for f in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        raise KBookError(
            "the model folder has no tokenizer", where, "copy tokenizer.json and tokenizer_config.json into it"
        )


def _not_loaded(name: str, error: Exception, local: Path | None) -> KBookError:
    if local is None:
        return KBookError(
            f"the hub model {name} could not be fetched ({_first_line(error)})",
            remedy="download it where there is a network (`hf download " + name + "`) and give its folder instead; "
            "gated models also need `hf auth login`",
        )
    return KBookError(f"the model could not be loaded ({_first_line(error)})", str(local), "check its files")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
