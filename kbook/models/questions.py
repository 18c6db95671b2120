"""Questions put to a model as a user would put them, and what it answers: protocol B's way to a model.

One prompt for teaching, asking and weighing (`kbook.models.evidence`) alike: the question as the only message, in the
model's own chat template, with a system message only where the language of the answer is demanded.
"""

from __future__ import annotations

from collections.abc import Sequence

from kbook.corpora.documents import Document, Segment
from kbook.models.bases import Base
from kbook.models.probes import continuations


def prompt(base: Base, question: str, system: str = "") -> str:
    """The text up to where the answer begins; a model without a chat template gets the question on a line."""
    if system:
        return base.render(system, question)
    if not base.tokenizer.chat_template:
        return f"{question}\n"
    turns = [{"role": "user", "content": question}]
    return str(base.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))


def exchange(base: Base, question: str, answer: str, *, system: str = "", end: bool = True) -> Document:
    """A question and its answer, which is supervised, and so is its end where it has one."""
    closed = base.tokenizer.eos_token if end else ""
    return [Segment(prompt(base, question, system)), Segment(answer + closed, supervised=True)]


def ask(base: Base, prompts: Sequence[str], *, tokens: int, at_once: int) -> list[str]:
    """Greedy answers, in the order of the prompts; prompts of like length are answered together.

    Args:
        base: the model.
        prompts: as `prompt` makes them.
        tokens: new tokens of an answer, at most; it also ends with its line.
        at_once: prompts of a batch.
    """
    order = sorted(range(len(prompts)), key=lambda i: (len(prompts[i].encode()), i))
    found = [""] * len(prompts)
    for start in range(0, len(order), at_once):
        group = order[start : start + at_once]
        for i, answer in zip(group, continuations(base, [prompts[i] for i in group], tokens), strict=True):
            found[i] = answer
    return found
