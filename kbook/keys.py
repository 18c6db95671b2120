"""The names of this book: cells, stored models, stored data, figures and tables.

A key's string, its folder and its row label in a table are one and the same, as in
`kbench/llama-tiny/R-text/eco/forget/seed=137`. No other module formats or parses a name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kbook.errors import KBookError, unknown_name

FIELDS = ("date_of_birth", "address", "occupation", "employer")
LANES = ("P", "C", "R-text", "R-struct")
CHANNELS = ("cot", "tool", "tool_wide", "rag", "answer", "summary")
SPLITS = ("forget", "retain")
OFFICIAL_CHANNELS = {
    "cot": "Z_CoT",
    "tool": "Z_tool",
    "tool_wide": "Z_tool_wide",
    "rag": "Z_RAG",
    "answer": "Z_answer",
    "summary": "Z_summary",
}

_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_SEED = re.compile(r"seed=(0|[1-9][0-9]{0,17})")
_STEM = re.compile(
    r"(?P<prefix>.+?)_(?P<lane>P|C|R-?text|R-?struct)_(?P<method>.+)_(?P<split>forget|retain)"
    r"_seed(?P<seed>[0-9]{1,18})"
)
_ARTIFACT = re.compile(r"(?P<kind>fig|tab)-(?P<chapter>[a-z0-9_]+)-(?P<slug>[a-z0-9]+(?:-[a-z0-9]+)*)")


@dataclass(frozen=True, order=True)
class CellKey:
    """Name one cell: base model x lane x method x split x seed (x variant) of a protocol.

    Raises:
        KBookError: a segment is empty or holds other characters than letters, digits and `. _ - +`
            (for a hub id or a folder use `base_segment`), or the seed is not an integer >= 0.
    """

    protocol: str
    base: str
    lane: str
    method: str
    split: str
    seed: int
    variant: str = ""

    def __post_init__(self) -> None:
        _check_segments(self, "protocol", "base", "lane", "method", "split")

    def __str__(self) -> str:
        parts = (self.protocol, self.base, self.lane, self.method, self.split)
        return "/".join(parts) + _tail(self.seed, self.variant)

    @classmethod
    def parse(cls, text: str) -> CellKey:
        """Read a cell key back from its string; exact inverse of `str`."""
        head, seed, variant = _split_tail(text, n_head=5, example="kbench/llama-tiny/P/none/forget/seed=0")
        protocol, base, lane, method, split = head
        return cls(protocol, base, lane, method, split, seed, variant)

    @property
    def path(self) -> Path:
        """The key as a relative folder."""
        return Path(*str(self).split("/"))

    def official_stem(self, prefix: str) -> str:
        """Write the file name (without suffix) that the public harness gives this cell.

        Raises:
            KBookError: the name could not be read back to the same cell, because of a variant (name it
                in the prefix) or of a prefix or method that itself looks like a lane.
        """
        stem = f"{prefix}_{self.lane}_{self.method}_{self.split}_seed{self.seed}"
        same = (prefix, self.lane, self.method, self.split, self.seed)
        match = _STEM.fullmatch(stem)
        if self.variant or match is None or _official(match) != OfficialName(*same):
            remedy = "Choose another prefix, and name a variant in the prefix"
            raise KBookError(f"the file name {stem!r} would not lead back to this cell", str(self), remedy)
        return stem


@dataclass(frozen=True, order=True)
class ModelKey:
    """Name one stored model (injected, unlearned …): `kbench/llama-tiny/model=inject-full/seed=0`.

    Raises:
        KBookError: as `CellKey`.
    """

    protocol: str
    base: str
    recipe: str
    seed: int
    variant: str = ""

    def __post_init__(self) -> None:
        _check_segments(self, "protocol", "base", "recipe")

    def __str__(self) -> str:
        return f"{self.protocol}/{self.base}/model={self.recipe}" + _tail(self.seed, self.variant)

    @classmethod
    def parse(cls, text: str) -> ModelKey:
        """Read a model key back from its string; exact inverse of `str`."""
        example = "kbench/llama-tiny/model=inject-full/seed=0"
        (protocol, base, model), seed, variant = _split_tail(text, n_head=3, example=example)
        if not model.startswith("model="):
            raise _malformed(text, example)
        return cls(protocol, base, model.removeprefix("model="), seed, variant)

    @property
    def path(self) -> Path:
        """The key as a relative folder."""
        return Path(*str(self).split("/"))


@dataclass(frozen=True, order=True)
class DataKey:
    """Name one stored product of the making of data: `cllpu/data=candidates/seed=0`.

    Raises:
        KBookError: as `CellKey`.
    """

    protocol: str
    name: str
    seed: int
    variant: str = ""

    def __post_init__(self) -> None:
        _check_segments(self, "protocol", "name")

    def __str__(self) -> str:
        return f"{self.protocol}/data={self.name}" + _tail(self.seed, self.variant)

    @classmethod
    def parse(cls, text: str) -> DataKey:
        """Read a data key back from its string; exact inverse of `str`."""
        example = "cllpu/data=candidates/seed=0"
        (protocol, data), seed, variant = _split_tail(text, n_head=2, example=example)
        if not data.startswith("data="):
            raise _malformed(text, example)
        return cls(protocol, data.removeprefix("data="), seed, variant)

    @property
    def path(self) -> Path:
        """The key as a relative folder."""
        return Path(*str(self).split("/"))


@dataclass(frozen=True, order=True)
class ArtifactKey:
    """Name one figure (`fig`) or table (`tab`): `fig-kbench_topology-shares`.

    It is at once Sphinx label, CSV name and image name, so it is lower case (Sphinx folds labels) and a
    chapter, which may hold `_`, holds no `-`.

    Raises:
        KBookError: the parts do not form such a name.
    """

    kind: str
    chapter: str
    slug: str

    def __post_init__(self) -> None:
        if not _ARTIFACT.fullmatch(str(self)):
            raise _malformed(str(self), "fig-kbench_topology-channel-shares")

    def __str__(self) -> str:
        return f"{self.kind}-{self.chapter}-{self.slug}"

    @classmethod
    def parse(cls, text: str) -> ArtifactKey:
        """Read an artifact key back from its string; exact inverse of `str`."""
        match = _ARTIFACT.fullmatch(text)
        if not match:
            raise _malformed(text, "fig-kbench_topology-channel-shares")
        return cls(**match.groupdict())


@dataclass(frozen=True, order=True)
class OfficialName:
    """What the public harness writes into the name of a transcript file; protocol and base are not in it."""

    prefix: str
    lane: str
    method: str
    split: str
    seed: int

    def cell(self, protocol: str, base: str, variant: str = "") -> CellKey:
        """Complete the name to a cell key."""
        return CellKey(protocol, base, self.lane, self.method, self.split, self.seed, variant)


AnyKey = CellKey | ModelKey | DataKey


def parse_key(text: str) -> AnyKey:
    """Read a cell key, a model key or a data key, whichever the string is."""
    if "/data=" in text:
        return DataKey.parse(text)
    return ModelKey.parse(text) if "/model=" in text else CellKey.parse(text)


def parse_official(stem: str) -> OfficialName:
    """Read `PREFIX_LANE_METHOD_SPLIT_seedN`, a lane written with or without its hyphen.

    Raises:
        KBookError: the name has another form.
    Source: the public K-Bench harness writes both spellings of a lane.
    """
    match = _STEM.fullmatch(stem)
    if match is None:
        raise _malformed(stem, "v77app_R-text_eco_forget_seed137", "transcript file name")
    return _official(match)


def base_segment(name: str) -> str:
    """Turn a base model's name, hub id or folder into the segment of a key: its last component.

    Example:
        >>> base_segment("meta-llama/Llama-3.1-8B-Instruct")
        'Llama-3.1-8B-Instruct'
    """
    return name.rstrip("/").rsplit("/", 1)[-1]


def check_name(kind: str, name: str, known: tuple[str, ...], where: str = "") -> str:
    """Return a lane, channel, split or field unchanged, or refuse it with its nearest neighbours.

    Raises:
        KBookError: the name is not among the known ones.
    """
    if name not in known:
        raise unknown_name(kind, name, known, where)
    return name


def _check_segments(key: AnyKey, *names: str) -> None:
    optional = ("variant",) if key.variant else ()
    for name in (*names, *optional):
        value = getattr(key, name)
        if not (isinstance(value, str) and _SEGMENT.fullmatch(value)):
            remedy = "Use letters, digits and . _ - + (at most 100), beginning with a letter or digit"
            raise KBookError(f"{value!r} cannot be the {name} of a key", type(key).__name__, remedy)
    if isinstance(key.seed, bool) or not isinstance(key.seed, int) or not 0 <= key.seed < 10**18:
        raise KBookError(f"the seed {key.seed!r} is not an integer >= 0", type(key).__name__, "Give such a seed")


def _tail(seed: int, variant: str) -> str:
    return f"/seed={seed}" + (f"/variant={variant}" if variant else "")


def _split_tail(text: str, n_head: int, example: str) -> tuple[list[str], int, str]:
    """Split `a/b/…/seed=N[/variant=V]` into its first `n_head` segments, the seed and the variant."""
    parts = text.split("/")
    head, tail = parts[:n_head], parts[n_head:]
    seed = _SEED.fullmatch(tail[0]) if tail else None
    variant = tail[1].removeprefix("variant=") if len(tail) == 2 else ""
    if len(head) != n_head or seed is None or tail[1:] != ([f"variant={variant}"] if variant else []):
        raise _malformed(text, example)
    return head, int(seed[1]), variant


def _official(match: re.Match[str]) -> OfficialName:
    lane = match["lane"].replace("Rtext", "R-text").replace("Rstruct", "R-struct")
    return OfficialName(match["prefix"], lane, match["method"], match["split"], int(match["seed"]))


def _malformed(text: str, example: str, what: str = "key") -> KBookError:
    return KBookError(f"{text!r} is not a {what}", remedy=f"Write it like {example}")
