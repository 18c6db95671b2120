"""Greedy decoding of many conversations at once, over one growing cache.

A `LiveBatch` holds a cache of keys and values. Each turn it is given the whole text of every conversation; what the
cache already holds is not encoded again, only what is new is read, and the replies are written token by token for
all rows together. Rows that are finished leave the batch. Interventions take part through `DecodingHook`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

from kbook.corpora.protocol import OBSERVATION_CUT
from kbook.models.bases import Base

NARROW_AT = 0.7
"""Share of a batch's rows still writing from which on the finished ones are no longer carried along."""


@dataclass(frozen=True)
class Pass:
    """One forward pass, as hooks see it.

    ``rows[i]`` names the conversation in row ``i`` (what the caller passed to `LiveBatch`). While *reading*,
    ``spans[i]`` gives the character range in ``texts[i]`` of each real token of the row, right-padded rows being
    shorter than the tensor; while *writing*, one token a row is fed and ``spans`` is empty.
    """

    reading: bool
    rows: Sequence[Any]
    texts: Sequence[str] = ()
    spans: Sequence[Sequence[tuple[int, int]]] = ()
    written: Sequence[Sequence[int]] = ()


class DecodingHook:
    """What an intervention may do while a model decodes. The default does nothing.

    Attributes:
        by_name: it knows rows by their names alone, so that finished rows may leave before a reply is over.
    """

    by_name: ClassVar[bool] = False

    def start(self, base: Base) -> None:
        """Called once before a cell is decoded."""

    def embeddings(self, step: Pass, values: torch.Tensor) -> torch.Tensor:
        """Change input embeddings. Shape: ``(rows, tokens, width)``."""
        return values

    def logits(self, step: Pass, values: torch.Tensor) -> torch.Tensor:
        """Change next-token logits before the choice. Shape: ``(rows, vocabulary)``, fp32."""
        return values

    @contextmanager
    def installed(self, base: Base) -> Iterator[None]:
        """Install hooks on the model's modules (activations) and take them off again."""
        yield


@dataclass(frozen=True)
class Reply:
    """One turn's text (cut before an observation line) and the smallest lead of the chosen over the second logit."""

    text: str
    margin: float
    n_tokens: int


class GrowingLayer(DynamicLayer):
    """A cache layer with room to spare: a token is written in place, not by copying all that came before."""

    spare = 128

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.room: list[torch.Tensor] = []
        length, new = self.get_seq_length(), (key_states, value_states)
        need = length + key_states.shape[-2]
        if not self.room or self.room[0].shape[-2] < need:
            self.room = [self._grown(n, old, need) for n, old in zip(new, (self.keys, self.values), strict=True)]
        for room, states in zip(self.room, new, strict=True):
            room[:, :, length:need] = states
        self.keys, self.values = (room[:, :, :need] for room in self.room)
        return self.keys, self.values

    def _grown(self, new: torch.Tensor, old: torch.Tensor | None, need: int) -> torch.Tensor:
        rows, heads, _, head = new.shape
        room = new.new_zeros((rows, heads, need + max(self.spare, need // 4), head))
        if old is not None and old.numel():
            room[:, :, : old.shape[-2]] = old
        return room

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        super().batch_select_indices(indices)
        self.room = []

    def part(self, indices: torch.Tensor) -> GrowingLayer:
        """A layer of some of the rows."""
        other = copy.copy(self)
        other.batch_select_indices(indices)
        return other

    def absorb(self, part: GrowingLayer, indices: torch.Tensor) -> None:
        """Take over what a part has been given since; the other rows have pads there, which nobody attends to."""
        length, need = self.get_seq_length(), part.get_seq_length()
        ours, theirs = cast("list[torch.Tensor]", [self.keys, self.values]), [part.keys, part.values]
        if not self.room or self.room[0].shape[-2] < need:
            self.room = [self._grown(old, old, need) for old in ours]
        for room, states in zip(self.room, theirs, strict=True):
            room[:, :, length:need] = 0
            room[indices, :, length:need] = cast(torch.Tensor, states)[:, :, length:]
        self.keys, self.values = (room[:, :, :need] for room in self.room)


@dataclass
class _Row:
    name: Any
    ids: list[int] = field(default_factory=list)  # tokens that the cache holds for this row, in order
    slots: list[int] = field(default_factory=list)  # and where


class LiveBatch:
    """Conversations that decode together.

    Args:
        base: the model.
        names: one hashable name a row, passed to hooks.
        hooks: interventions, in order.
        stop: a reply is cut before this text.
    """

    def __init__(
        self, base: Base, names: Sequence[Any], hooks: Sequence[DecodingHook] = (), stop: str = OBSERVATION_CUT
    ) -> None:
        self.base, self.hooks, self.stop = base, list(hooks), stop
        self.rows = [_Row(name) for name in names]
        self.cache = DynamicCache(config=base.model.config)
        self.reusable = all(type(layer) is DynamicLayer for layer in self.cache.layers)
        self._fresh_cache()
        self.ends = _end_tokens(base)
        self._pieces: dict[int, str] = {}

    def _fresh_cache(self) -> None:
        self.cache = DynamicCache(config=self.base.model.config)
        if self.reusable:  # sliding windows keep the stock layers and are read anew each turn
            self.cache.layers = [GrowingLayer() for _ in self.cache.layers]
        self.mask = torch.zeros((len(self.rows), 0), dtype=torch.long, device=self.base.device)
        for row in self.rows:
            row.ids, row.slots = [], []

    def twin(self, names: Sequence[Any]) -> LiveBatch:
        """A second batch, of the same conversations under other names, that has read what this one has."""
        other = copy.copy(self)
        other.cache, other.mask = copy.deepcopy(self.cache), self.mask.clone()
        other.rows = [_Row(name, list(r.ids), list(r.slots)) for name, r in zip(names, self.rows, strict=True)]
        return other

    def keep(self, indices: Sequence[int]) -> None:
        """Let all other rows leave the batch."""
        if len(indices) == len(self.rows):
            return
        chosen = torch.tensor(indices, dtype=torch.long, device=self.base.device)
        self.rows = [self.rows[i] for i in indices]
        self.mask = self.mask[chosen]
        if self.reusable and self.rows and self.mask.shape[1]:
            self.cache.batch_select_indices(chosen)

    @torch.no_grad()
    def reply(self, texts: Sequence[str], max_new_tokens: int) -> list[Reply]:
        """Continue each text greedily.

        Args:
            texts: whole conversation of each row so far, templates and all.
            max_new_tokens: of each reply.

        Returns:
            One `Reply` a row, cut before the stop text, an end token or the limit, whichever comes first.
        """
        with _embedding_hook(self) as reader:
            logits, step = self._read(texts, reader)
            return self._write(logits, step, texts, max_new_tokens, reader)

    @torch.no_grad()
    def read(self, texts: Sequence[str]) -> torch.Tensor:
        """Read the whole text of each conversation; logits of the next token. Shape: ``(rows, vocabulary)``."""
        with _embedding_hook(self) as reader:
            return self._read(texts, reader)[0]

    @torch.no_grad()
    def feed(self, blocks: Sequence[Sequence[int]]) -> torch.Tensor:
        """Go on with these tokens of each row, none for some but not for all; logits as in `read`."""
        with _embedding_hook(self) as reader:
            return self._forward(blocks, Pass(False, [row.name for row in self.rows]), reader)

    def _read(self, texts: Sequence[str], reader: _Reader) -> tuple[torch.Tensor, Pass]:
        if not self.reusable:
            self._fresh_cache()
        encoded = self.base.tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True)
        blocks, spans = [], []
        for i, (row, ids) in enumerate(zip(self.rows, encoded["input_ids"], strict=True)):
            kept = min(_common(row.ids, ids), len(ids) - 1)
            self.mask[i, row.slots[kept:]] = 0  # what the text no longer says is not attended to
            row.ids, row.slots = row.ids[:kept], row.slots[:kept]
            blocks.append(ids[kept:])
            spans.append(encoded["offset_mapping"][i][kept:])
        step = Pass(True, [r.name for r in self.rows], texts, spans, [[] for _ in self.rows])
        return self._forward(blocks, step, reader), step

    def _forward(self, blocks: Sequence[Sequence[int]], step: Pass, reader: _Reader) -> torch.Tensor:
        """Feed blocks of tokens; logits after the last one of each row. Shape: ``(rows, vocabulary)``."""
        width, start, device = max(map(len, blocks)), self.mask.shape[1], self.base.device
        # windows and recurrences must see a row's tokens in one piece, so where there are any, pads come first
        pads = [0 if self.reusable else width - len(block) for block in blocks]
        ends = [pad + len(block) for pad, block in zip(pads, blocks, strict=True)]
        padded = zip(pads, blocks, ends, strict=True)
        ids = torch.tensor([[0] * pad + list(block) + [0] * (width - end) for pad, block, end in padded])
        places = torch.arange(width)
        real = (places >= torch.tensor(pads)[:, None]) & (places < torch.tensor(ends)[:, None])
        before = torch.tensor([len(row.ids) - pad for row, pad in zip(self.rows, pads, strict=True)])
        positions = (places + before[:, None]).clamp(min=0)
        for row, block, pad, end in zip(self.rows, blocks, pads, ends, strict=True):
            row.ids.extend(block)
            row.slots.extend(range(start + pad, start + end))
        self.mask = torch.cat([self.mask, real.to(self.mask)], dim=1)
        last = torch.tensor(ends).sub(1).clamp(min=0)
        reader.step, reader.pads = step, pads
        hidden = self.base.model.base_model(
            input_ids=ids.to(device),
            attention_mask=self._attention(width),
            position_ids=positions.to(device),
            cache=self.cache,
            use_cache=True,
        ).last_hidden_state
        logits = self.base.model.get_output_embeddings()(hidden[torch.arange(len(blocks)), last.to(device)])
        return self._changed(step, logits.float())

    def _attention(self, width: int) -> torch.Tensor:
        """The mask of a pass; that of a single token is ready to be added, which spares the model the work."""
        if width > 1 or not self.reusable:
            return self.mask
        dtype = self.base.model.dtype
        blocked = torch.zeros_like(self.mask, dtype=dtype).masked_fill_(self.mask == 0, torch.finfo(dtype).min)
        return blocked[:, None, None]

    def _changed(self, step: Pass, logits: torch.Tensor) -> torch.Tensor:
        for hook in self.hooks:
            logits = hook.logits(step, logits)
        return logits

    def _write(
        self, logits: torch.Tensor, step: Pass, texts: Sequence[str], limit: int, reader: _Reader
    ) -> list[Reply]:
        written: list[list[int]] = [[] for _ in self.rows]
        margins = [float("inf")] * len(self.rows)
        places = list(range(len(self.rows)))  # the row of each line of `logits`
        open_rows = set(places)
        narrows = self.reusable and all(hook.by_name for hook in self.hooks)
        with ExitStack() as narrowings:
            for n in range(limit):
                top = logits.topk(2, dim=-1)
                lead = (top.values[:, 0] - top.values[:, 1]).tolist()
                for i, token, ahead in zip(places, top.indices[:, 0].tolist(), lead, strict=True):
                    if i in open_rows:
                        margins[i] = min(margins[i], ahead)
                        if self._takes(written[i], token):
                            open_rows.discard(i)
                if not open_rows or n == limit - 1:
                    break
                if narrows and len(open_rows) <= NARROW_AT * len(places):
                    narrowings.enter_context(self._narrowed([at for at, i in enumerate(places) if i in open_rows]))
                    places = [i for i in places if i in open_rows]
                blocks = [written[i][-1:] if i in open_rows else [] for i in places]
                names = [row.name for row in self.rows]
                step = Pass(False, names, [texts[i] for i in places], (), [written[i] for i in places])
                logits = self._forward(blocks, step, reader)
        return [Reply(self._text(ids), m, len(ids)) for ids, m in zip(written, margins, strict=True)]

    @contextmanager
    def _narrowed(self, indices: Sequence[int]) -> Iterator[None]:
        """Go on with some of the rows; afterwards all are there again, the others a few pads longer."""
        rows, mask, layers = self.rows, self.mask, cast(list[GrowingLayer], self.cache.layers)
        chosen = torch.tensor(indices, dtype=torch.long, device=self.base.device)
        self.rows, self.mask = [rows[i] for i in indices], mask[chosen]
        parts = [layer.part(chosen) for layer in layers]
        self.cache.layers = list(parts)
        try:
            yield
        finally:
            pads = mask.new_zeros((len(rows), self.mask.shape[1] - mask.shape[1]))
            pads[chosen] = self.mask[:, mask.shape[1] :]
            for whole, part in zip(layers, parts, strict=True):
                whole.absorb(part, chosen)
            self.rows, self.mask, self.cache.layers = rows, torch.cat([mask, pads], dim=1), list(layers)

    def _takes(self, written: list[int], token: int) -> bool:
        """Add a token to a reply, unless it ends it; tell whether the reply is over."""
        if token in self.ends:
            return True
        written.append(token)
        return self._stops(written)

    def _stops(self, ids: list[int]) -> bool:
        piece = self._pieces.get(ids[-1])
        if piece is None:
            piece = self._pieces[ids[-1]] = self.base.tokenizer.decode(ids[-1:])
        return self.stop[-1] in piece and self.stop in self.base.tokenizer.decode(ids[-16:])

    def _text(self, ids: list[int]) -> str:
        text = self.base.tokenizer.decode(ids, skip_special_tokens=True)
        return str(text).split(self.stop, 1)[0]


class _Reader:
    step: Pass
    pads: list[int]  # before each row's first token

    def aligned(self, values: torch.Tensor, sign: int) -> torch.Tensor:
        """Move each row's padding from its front to its end (``sign`` -1) or back again (1)."""
        if not any(self.pads):
            return values
        return torch.stack([row.roll(sign * pad, 0) for row, pad in zip(values, self.pads, strict=True)])


@contextmanager
def _embedding_hook(batch: LiveBatch) -> Iterator[_Reader]:
    reader = _Reader()

    def change(_module: Any, _inputs: Any, output: torch.Tensor) -> torch.Tensor:
        output = reader.aligned(output, -1)
        for hook in batch.hooks:
            output = hook.embeddings(reader.step, output)
        return reader.aligned(output, 1)

    handle = batch.base.model.get_input_embeddings().register_forward_hook(change)
    try:
        yield reader
    finally:
        handle.remove()


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _end_tokens(base: Base) -> set[int]:
    ends = base.model.generation_config.eos_token_id
    listed = ends if isinstance(ends, list) else [ends]
    return {e for e in (*listed, base.tokenizer.eos_token_id) if e is not None}
