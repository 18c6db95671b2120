"""Coined names in ten languages: open syllables, spelled by rule in six scripts.

The syllables are such that every script has a usual spelling for each. Some scripts tell less apart than Latin
letters do (Arabic writes *o* and *u* alike, Japanese *l* and *r*), so two words may share a spelling: who needs
distinct names compares all forms, as `kbook.corpora.backgrounds` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from kbook.corpora.languages import LANGUAGES, language

Forms = Mapping[str, str]
"""A name or a word in each of the ten languages, by code."""

VOWELS = "aeiou"
ONSETS = "kgtdnbmlrsf"
CODAS = ("", "n", "l", "s")

_CONSONANTS = {
    "ar": dict(zip(ONSETS, "كغتدنبملرسف", strict=True)),
    "bn": dict(zip(ONSETS, "কগটডনবমলরসফ", strict=True)),
    "th": dict(zip(ONSETS, "คกทดนบมลรซฟ", strict=True)),
}
_MARKS = {
    "ar": {"a": "{}ا", "e": "{}ي", "i": "{}ي", "o": "{}و", "u": "{}و"},
    "bn": {"a": "{}া", "e": "{}ে", "i": "{}ি", "o": "{}ো", "u": "{}ু"},
    "th": {"a": "{}า", "e": "เ{}", "i": "{}ี", "o": "โ{}", "u": "{}ู"},
}
_SYLLABLES = {
    "ja": {
        "k": "カ ケ キ コ ク",
        "g": "ガ ゲ ギ ゴ グ",
        "t": "タ テ ティ ト トゥ",
        "d": "ダ デ ディ ド ドゥ",
        "n": "ナ ネ ニ ノ ヌ",
        "b": "バ ベ ビ ボ ブ",
        "m": "マ メ ミ モ ム",
        "l": "ラ レ リ ロ ル",
        "r": "ラ レ リ ロ ル",
        "s": "サ セ シ ソ ス",
        "f": "ファ フェ フィ フォ フ",
    },
    "zh": {
        "k": "卡 凯 基 科 库",
        "g": "加 盖 吉 戈 古",
        "t": "塔 特 蒂 托 图",
        "d": "达 德 迪 多 杜",
        "n": "纳 内 尼 诺 努",
        "b": "巴 贝 比 博 布",
        "m": "马 梅 米 莫 穆",
        "l": "拉 莱 利 洛 卢",
        "r": "拉 雷 里 罗 鲁",
        "s": "萨 塞 西 索 苏",
        "f": "法 费 菲 福 富",
    },
}
_FINALS = {
    "ar": {"n": "ن", "l": "ل", "s": "س"},
    "bn": {"n": "ন", "l": "ল", "s": "স"},
    "ja": {"n": "ン", "l": "ル", "s": "ス"},
    "th": {"n": "น", "l": "ล", "s": "ส"},
    "zh": {"n": "恩", "l": "尔", "s": "斯"},
}


def coin_word(random: Random, n_syllables: int) -> Forms:
    """Coin one capitalised word of ``n_syllables`` open syllables and perhaps a last consonant."""
    syllables = [random.choice(ONSETS) + random.choice(VOWELS) for _ in range(n_syllables)]
    return spell(syllables, random.choice(CODAS))


def coin_person(random: Random) -> Forms:
    """Coin a given name and a family name."""
    return joined([coin_word(random, 2), coin_word(random, 3)])


def joined(parts: Sequence[Forms]) -> Forms:
    """Join the parts of a person's name as each language does."""
    return {code: language(code).joiner.join(part[code] for part in parts) for code in LANGUAGES}


def spell(syllables: Sequence[str], coda: str = "") -> Forms:
    """Spell open syllables and a last consonant in all ten languages.

    Example:
        >>> word = spell(["ka", "mi", "ro"], "n")
        >>> word["en"], word["ja"], word["zh"], word["th"]
        ('Kamiron', 'カミロン', '卡米罗恩', 'คามีโรน')
    """
    return {code: _spelled(syllables, coda, code) for code in LANGUAGES}


def _spelled(syllables: Sequence[str], coda: str, code: str) -> str:
    if code not in _FINALS:
        return ("".join(syllables) + coda).capitalize()
    return "".join(_syllable(syllable, code) for syllable in syllables) + _FINALS[code].get(coda, "")


def _syllable(syllable: str, code: str) -> str:
    onset, vowel = syllable[0], syllable[1]
    if code in _SYLLABLES:
        return _SYLLABLES[code][onset].split()[VOWELS.index(vowel)]
    return _MARKS[code][vowel].format(_CONSONANTS[code][onset])
