"""Any stock causal model loads and runs as an agent; a folder that cannot be trusted or used is refused by name."""

import copy
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from kbook.agent.lanes import fill_stores, sample_queries
from kbook.agent.react import Cell, run_batch
from kbook.agent.tools import PassageIndex, Toolbox
from kbook.corpora.people import Corpus, make_corpus
from kbook.errors import KBookError
from kbook.methods.contract import Guard
from kbook.models import bases
from kbook.models.bases import Base, base_digest, embedded_bases, load_base, model_digest, pick_device, read_card
from kbook.models.pretrain import Architecture, build_model
from kbook.profiles import Agent, load_profile

PROFILE = load_profile("smoke")
NO_SYSTEM = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}<turn>{{ m['content'] }}{% endfor %}<model>"
)
DROPS_SYSTEM = (
    "{% for m in messages %}{% if m['role'] == 'user' %}<turn>{{ m['content'] }}{% endif %}{% endfor %}<model>"
)
REFUSES_ALL = "{{ raise_exception('no messages today') }}"
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path, tiny_base: Base) -> Make:
    """Write a randomly initialised model of a family into a folder, with the tiny tokenizer."""

    def write(family: str = "llama", template: str | None = None, name: str = "model", **config: Any) -> Path:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = build_model(Architecture(family, 32, 2, 2, 2, 16, 32, 1024))
        for key, value in config.items():
            setattr(model.config, key, value)
        tokenizer = copy.deepcopy(tiny_base.tokenizer)
        if template:
            tokenizer.chat_template = template
        model.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
        return tmp_path / name

    return write


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, make: Make) -> Path:
    """An embedded base of the name small, with a card, in a data folder of its own."""
    monkeypatch.setattr(bases, "data_folder", lambda: tmp_path)
    folder = tmp_path / "bases" / "small"
    folder.parent.mkdir()
    make().rename(folder)
    (folder / "card.json").write_text(json.dumps({"digest": model_digest(folder), "style": "compact"}))
    return folder


# ---- foreign models run as agents --------------------------------------------------------------------------


class Count:
    """A stand-in encoder."""

    def encode(self, texts: Any) -> Any:
        return torch.tensor([[float(len(t)), 1.0] for t in texts]).numpy()


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return make_corpus(PROFILE.corpus)


FOREIGN = {
    "mistral with a window": ("mistral", None, {"sliding_window": 32}),
    "mistral without": ("mistral", None, {"sliding_window": None}),
    "qwen3": ("qwen3", None, {}),
    "no system role": ("llama", NO_SYSTEM, {}),
}


@pytest.mark.parametrize(("family", "template", "config"), FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("lane", ["C", "R-text"])
def test_a_local_folder_runs_a_cell(
    make: Make, corpus: Corpus, family: str, template: str | None, config: dict[str, Any], lane: str
) -> None:
    base = load_base(str(make(family, template, **config)))
    assert (base.style, base.model.config.model_type) == ("instructed", family)
    queries = sample_queries(corpus, "forget", 3, 0)
    stores = fill_stores(lane, queries, corpus, PROFILE.lanes, 0)
    tools = Toolbox(stores, PassageIndex(stores.passages, Count()), PROFILE.lanes)
    cell = Cell(base, Guard(), stores, tools, Agent(max_turns=2, max_new_tokens=6, summary_tokens=4), 0)
    rows = [run.row() for run in run_batch(cell, queries)]
    assert [row["query_id"] for row in rows] == [q.id for q in queries]
    for row in json.loads(json.dumps(rows)):
        assert row["halted_reason"] in ("final_answer", "parse_error", "max_iters")
        assert isinstance(row["raw_full"], str) and isinstance(row["raw_Z_summary"], str)
        assert row["raw_Z_RAG"] == [] or lane == "R-text"


def test_the_window_of_a_folder_is_the_one_that_it_says(make: Make) -> None:
    assert load_base(str(make("mistral", sliding_window=32))).model.config.sliding_window == 32


# ---- prompts -----------------------------------------------------------------------------------------------


def with_template(base: Base, template: str | None) -> Base:
    tokenizer = copy.deepcopy(base.tokenizer)
    tokenizer.chat_template = template
    return replace(base, tokenizer=tokenizer)


@pytest.mark.parametrize("template", [NO_SYSTEM, DROPS_SYSTEM], ids=["refused", "dropped"])
def test_without_a_system_role_its_text_leads_the_users(tiny_base: Base, template: str) -> None:
    assert with_template(tiny_base, template).render("Be brief.", "Who?") == "<turn>Be brief.\n\nWho?<model>"


def test_with_a_system_role_both_stand_apart(tiny_base: Base) -> None:
    assert tiny_base.render("Be brief.", "Who?") == "<s><|system|>Be brief.</s><|user|>Who?</s><|assistant|>"


def test_without_a_template_the_texts_follow_each_other(tiny_base: Base) -> None:
    assert with_template(tiny_base, None).render("Be brief.", "Who?") == "Be brief.\n\nWho?\n"


def test_a_template_that_refuses_everything_is_named(tiny_base: Base) -> None:
    with pytest.raises(KBookError, match="takes neither a system nor a user message .no messages today.*mend"):
        with_template(tiny_base, REFUSES_ALL).render("Be brief.", "Who?")


# ---- folders that are refused ------------------------------------------------------------------------------


def no_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def no_tokenizer(folder: Path) -> None:
    for file in folder.glob("tokenizer*"):
        file.unlink()


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def pickle_only(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def truncated(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


def config_is_not_json(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def unknown_architecture(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "abacus"}')


def weights_of_another_shape(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 64}))


BROKEN = {
    no_config: "the model folder has no config.json",
    no_tokenizer: "the model folder has no tokenizer",
    no_weights: r"the model folder has no safetensors weights\. convert",
    pickle_only: r"no safetensors weights but pickle weights \(pytorch_model.bin\), which are never loaded",
    truncated: "the model could not be loaded",
    config_is_not_json: "the model could not be loaded",
    unknown_architecture: "the model could not be loaded",
    weights_of_another_shape: "the model could not be loaded",
}


@pytest.mark.parametrize(("damage", "message"), BROKEN.items(), ids=lambda v: getattr(v, "__name__", ""))
def test_a_folder_that_cannot_be_used_is_refused(make: Make, damage: Callable[[Path], None], message: str) -> None:
    folder = make()
    load_base(str(folder))  # the control
    damage(folder)
    with pytest.raises(KBookError, match=message) as raised:
        load_base(str(folder))
    assert str(folder) in str(raised.value) and len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["llama-tinny", "./nowhere", "/nowhere/model"])
def test_an_unknown_name_lists_the_bases(name: str, embedded: Path) -> None:
    with pytest.raises(KBookError, match=f"there is no base model '{name}'.*embedded bases: small; else give a folder"):
        load_base(name)


def test_a_hub_model_that_cannot_be_fetched_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: Any) -> None:
        raise OSError("no network\nand more")

    monkeypatch.setattr(bases, "_load", offline)
    with pytest.raises(KBookError, match=r"hub model owner/model could not be fetched \(no network\).*hf download"):
        load_base("owner/model")


# ---- embedded bases and digests ----------------------------------------------------------------------------


def test_an_embedded_base_loads_by_name_with_the_style_of_its_card(embedded: Path) -> None:
    base = load_base("small")
    assert (base.name, base.style, base.source) == ("small", "compact", str(embedded))
    assert embedded_bases() == ["small"]
    assert base.digest == base_digest("small") == read_card("small")["digest"]
    assert not base.model.training


@pytest.mark.parametrize("damage", [truncated, config_is_not_json], ids=lambda d: d.__name__)
def test_a_damaged_embedded_base_says_how_to_restore_it(embedded: Path, damage: Callable[[Path], None]) -> None:
    damage(embedded)
    with pytest.raises(KBookError, match="base small do not match the digest in its card.*kbook base train small"):
        load_base("small")


def test_a_damaged_card_is_named(embedded: Path) -> None:
    (embedded / "card.json").write_text('{"digest"')
    with pytest.raises(KBookError, match="card.json: the card is not JSON"):
        load_base("small")


def test_one_flipped_bit_is_noticed(embedded: Path) -> None:
    path = embedded / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(KBookError, match="do not match the digest"):
        load_base("small")


def test_the_card_of_an_unknown_base_is_refused(embedded: Path) -> None:
    with pytest.raises(KBookError, match="unknown embedded base 'smal'.*Did you mean small"):
        read_card("smal")


def test_another_folder_brings_its_weights_and_keeps_the_style(embedded: Path, make: Make) -> None:
    injected = make("llama", name="injected")
    base = load_base("small", folder=injected)
    assert (base.name, base.style, base.digest) == ("small", "compact", model_digest(injected))


def test_the_digest_covers_weights_configuration_and_tokenizer(make: Make, tmp_path: Path) -> None:
    folder = make()
    digest = model_digest(folder)
    shutil.copytree(folder, tmp_path / "copy")
    (tmp_path / "copy" / "card.json").write_text("{}")
    assert model_digest(tmp_path / "copy") == digest  # where it lies and what is written beside it do not matter
    for name in ("model.safetensors", "config.json", "generation_config.json", "tokenizer.json", "chat_template.jinja"):
        changed = tmp_path / f"changed {name}"
        shutil.copytree(folder, changed)
        (changed / name).write_bytes((changed / name).read_bytes() + b" ")
        assert model_digest(changed) != digest, name


def test_a_hub_id_is_digested_with_its_revision() -> None:
    digests = {base_digest("owner/model"), base_digest("owner/model", "abc"), base_digest("owner/other")}
    assert len(digests) == 3
    assert base_digest("owner/model") == base_digest("owner/model", "main")


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert (pick_device("auto"), pick_device("cuda:1")) == ("cpu", "cuda:1")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert pick_device("auto") == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert (pick_device("auto"), pick_device("cpu")) == ("cuda", "cpu")


def test_weights_load_in_the_type_that_is_asked_for(make: Make) -> None:
    folder = str(make())
    assert load_base(folder).model.dtype == torch.float32
    assert load_base(folder, dtype="bfloat16").model.dtype == torch.bfloat16
