"""The matcher `strict`: finds what a careful reader would, and only that.

A text is read as a sequence of words. White space, hyphens, quotes, emphasis and other punctuation only separate
words, whichever character writes them; so `**1999‑03‑17**` shows 1999-03-17, and `Actor` is not in `factory`. A
sentence end, a colon, a bar of a table, an empty line and a new item of a list are breaks that no form spans.

Decisions:
    - Letters are compared without case, accents and compatibility variants (full-width digits, ligatures); what
      cannot be seen (zero-width characters, soft hyphens) is not there; `&` is `and`.
    - Scripts that do not write spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) have no word boundaries:
      each of their characters is a word. Everywhere else a letter or digit beside a form un-finds it.
    - A date in digits is read month first, as the published rule reads it. Day first counts only where the day
      is above 12, so that no other date can be meant: `14/07/1983` shows 1983-07-14, `04/07/1983` shows only
      1983-04-07. A year of two digits shows no date.
    - An address may lack its ZIP code, and then its unit; but a city alone is no address: what is left holds a
      number or at least four words.
    - `Psychologist, forensic` may be written in natural order.
    - A synonym, an abbreviation written out (`Ltd`, `SD`) or a plural is another word, hence no form; units
      (`Apt. 9`, `Apartment 9`, `#9`) and months (`Jul`) are the exceptions.

Example:
    >>> STRICT.match("date_of_birth", "1999-03-17", "born on the **17th of March, 1999**")
    Match(cer=1, severity=1.0)
    >>> STRICT.match("occupation", "Actor", "works in a factory")
    Match(cer=0, severity=0.0)
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import lru_cache
from itertools import pairwise, product

from kbook.scoring.forms import AS_WRITTEN, MONTHS, Form, Forms, Matcher, calendar_date

DATE, WITHOUT_ZIP, WITHOUT_UNIT = "date spelling", "without ZIP code", "without unit"
UNIT_WORD, WORD_ORDER = "word for the unit", "word order"

_BREAK = "|"
_UNSPACED = ("CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_LETTERS = dict(zip("øłđðħŧıæœþ", ("o", "l", "d", "d", "h", "t", "i", "ae", "oe", "th"), strict=True))
_FILLERS = "\u034f\u115f\u1160\u3164\uffa0"  # letters and marks that nobody sees

_ENTITY = re.compile(r"&(?:amp|nbsp|quot|apos|lt|gt|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[nrt](?![a-z]))")
_TAG = re.compile(r"</?(?:(br)|b|i|u|s|em|strong|sup|sub|mark|code|span)\s?/?>", re.IGNORECASE)
_NEW_ITEM = re.compile(r"\n[ \t]*(?=\n|[-*+•] )")
_CLOCK = re.compile(r"(?<=[0-9])t(?=[0-9]{2}\.[0-9]{2})")
_ABBREVIATIONS = frozenset(
    "apt ste no st rd dr mr mrs ms jr sr inc ltd co corp jan feb mar apr jun jul aug sep sept oct nov dec".split()
)

_FIRST_DAY_ALONE = 13  # from this day on, a date in digits can be written day first
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
_ORDINALS += [f"twenty {word}" for word in _ORDINALS[:9]] + ["thirtieth", "thirty first"]
_JOINING = frozenset(("of", "the", "day"))

_ZIP = re.compile(r"\b[0-9]{5}(?:-[0-9]{4})?\s*$")
_UNIT_WORDS = ("apt", "apartment", "suite", "ste", "unit")
_UNIT = re.compile(
    rf"(?:\b(?:{'|'.join(_UNIT_WORDS)})\b\.?\s*#?|#)\s*([A-Z]\b|[A-Z]*[0-9][\w-]*)", re.IGNORECASE | re.ASCII
)
_LEAST_WORDS = 4  # of an address that is left without any number
_QUALIFIER = re.compile(r"\(([^()]*)\)")


class _Table(dict[int, str]):
    """For `str.translate`: how each character is read, asked once when it first comes up."""

    def __init__(self, read: Callable[[str], str]) -> None:
        self._read = read

    def __missing__(self, code: int) -> str:
        self[code] = shown = self._read(chr(code))
        return shown


def _signs_apart(char: str) -> str:
    """Signs that stand for letters or digits (`™`, a footnote's `²`) stay words of their own."""
    kind = unicodedata.category(char)
    return f" {char} " if kind[0] == "S" or kind == "No" else char


def _folded(char: str) -> str:
    """A lower-case character of a decomposed text."""
    kind = unicodedata.category(char)
    if kind == "Cf" or char in _FILLERS or "VARIATION SELECTOR" in unicodedata.name(char, ""):
        return ""
    if kind[0] == "M":
        return "" if _is_accent(char) else char
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    if char.isalnum():
        unspaced = unicodedata.name(char, "").startswith(_UNSPACED)
        return f" {char} " if unspaced else _LETTERS.get(char, char)
    return {"&": " and ", "|": _BREAK, "。": _BREAK}.get(char) or ("." if char in ".!?;:" else " ")


def _is_accent(mark: str) -> bool:
    """Accents of Latin, Greek and Cyrillic, points of Hebrew and Arabic; vowel signs are letters."""
    kind = unicodedata.combining(mark)
    return 10 <= kind <= 36 or kind >= 200


_SIGNS, _FOLD = _Table(_signs_apart), _Table(_folded)


def strict_text(text: str) -> str:
    """The words of a text between single spaces, with `|` where a break is; "" for a text without words.

    Example:
        >>> strict_text("**Amanda Walter’s** son. Born 1999‑03‑17")
        ' amanda walter s son | born 1999 03 17 '
    """
    shown = _plain(text)
    if not shown.isascii():
        shown = unicodedata.normalize("NFKD", shown.translate(_SIGNS))
    shown = shown.casefold().translate(_FOLD)
    if "." in shown:
        shown = _CLOCK.sub(" ", shown) if ":" in text else shown
        shown = "".join(_stops_read(shown.split(".")))
    if _BREAK in shown:
        shown = shown.replace(_BREAK, f" {_BREAK} ")
    words = " ".join(shown.split())
    return f" {words} " if words else ""


def _stops_read(pieces: list[str]) -> Iterator[str]:
    """The pieces between full stops; a break goes where a stop ends a sentence, a space where it does not.

    It ends one after a word that is no abbreviation and no single letter, before white space or the end.
    """
    for piece, after in pairwise(pieces):
        word = piece.rsplit(None, 1)[-1] if piece[-1:].isalpha() and not after[:1].strip() else ""
        ends = len(word) > 1 and word not in _ABBREVIATIONS
        yield f"{piece} {_BREAK} " if ends else f"{piece} "
    yield pieces[-1]


def _plain(text: str) -> str:
    """Undo what a page or a JSON writer does to a text: entities, escapes, inline tags; mark items of lists."""
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if "\\" in text:
        text = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else "\n", text)
    if "<" in text:
        text = _TAG.sub(lambda tag: " " if tag[1] else "", text)
    return _NEW_ITEM.sub(f" {_BREAK} ", text) if "\n" in text else text


@lru_cache(maxsize=65536)
def strict_forms(field: str, value: str) -> Forms:
    """The forms of a value under the strict matcher, as written first; none for a value without letter or digit."""
    names: dict[str, str] = {}
    for text, name in _SPELLINGS.get(field, _as_written)(value):
        names.setdefault(text, name)
    return Forms(_form(text, name) for text, name in names.items())


def _form(text: str, name: str) -> Form:
    words = frozenset(text.split()) - {_BREAK}
    return Form(text, words - _JOINING if name == DATE else words, name)


def _as_written(value: str) -> Iterator[tuple[str, str]]:
    """A value itself; where it holds a break, also without."""
    shown = strict_text(value)
    for text in (shown, _spaced(word for word in shown.split() if word != _BREAK)):
        if text.strip(f" {_BREAK}"):
            yield text, AS_WRITTEN


def _spaced(words: Iterator[str]) -> str:
    return f" {' '.join(words)} "


def _dates(value: str) -> Iterator[tuple[str, str]]:
    yield from _as_written(value)
    day = read_date(value)
    if day is not None:
        yield from ((strict_text(text), DATE) for text in (*_in_words(day), *_in_digits(day)))


def read_date(value: str) -> date | None:
    """The date that a value names without doubt: year, month and day in digits, or a month by its name; else None."""
    words = strict_text(value).split()
    if len(words) != 3 or not all(word.isascii() for word in words):
        return None
    months = [word for word in words if word in _MONTH_NUMBERS]
    digits = [int(word) for word in words if re.fullmatch("[0-9]{1,4}", word)]
    if len(months) == 1 and len(digits) == 2:
        year, day = max(digits), min(digits)
        return calendar_date(year, _MONTH_NUMBERS[months[0]], day) if year > 31 else None
    return calendar_date(*digits) if len(digits) == 3 and len(words[0]) == 4 else None


def _month_words(name: str) -> tuple[str, ...]:
    """The ways of writing a month: its name, three letters of it, and `sept`."""
    name = name.casefold()
    return (name, name[:3], "sept") if name == "september" else tuple(dict.fromkeys((name, name[:3])))


_MONTH_NUMBERS = {spelling: number for number, name in enumerate(MONTHS, 1) for spelling in _month_words(name)}


def _in_words(day: date) -> Iterator[str]:
    year = f"{day.year:04}"
    ordinals = (f"{day.day}{_suffix(day.day)}", _ORDINALS[day.day - 1])
    for month in _month_words(MONTHS[day.month - 1]):
        for number in (f"{day.day}", f"{day.day:02}", *ordinals):
            yield from (f"{month} {number} {year}", f"{number} {month} {year}", f"{year} {month} {number}")
            yield from (f"{number} of {month} {year}", f"{month} {number} of {year}")
        for number in ordinals:
            yield from (f"{month} the {number} {year}", f"{number} day of {month} {year}")


def _suffix(number: int) -> str:
    teens = 10 < number % 100 < 14
    return "th" if teens else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _in_digits(day: date) -> Iterator[str]:
    year, months, days = f"{day.year:04}", _padded(day.month), _padded(day.day)
    for month, number in product(months, days):
        yield from (f"{year} {month} {number}", f"{month} {number} {year}")
        if day.day >= _FIRST_DAY_ALONE or day.day == day.month:
            yield f"{number} {month} {year}"
        yield from (f"{year}年{month}月{number}日", f"{year}년 {month}월 {number}일")
    yield f"{year}{day.month:02}{day.day:02}"


def _padded(number: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys((str(number), f"{number:02}")))


def _addresses(value: str) -> Iterator[tuple[str, str]]:
    """An address, without its ZIP code, with another word for its unit, and without unit."""
    yield from _as_written(value)
    short = _ZIP.sub("", value)
    variants = [(short, WITHOUT_ZIP)]
    if _UNIT.search(short):
        variants += [(_UNIT.sub(rf"{word} \1", short), UNIT_WORD) for word in (*_UNIT_WORDS, "")]
        variants += [(_UNIT.sub("", short), WITHOUT_UNIT)]
    for variant, name in variants:
        text = strict_text(variant)
        if any(map(str.isdecimal, text)) or len(text.split()) >= _LEAST_WORDS:
            yield text, name


def _titles(value: str) -> Iterator[tuple[str, str]]:
    """A title, and where a comma or a bracket inverts it also in natural order."""
    yield from _as_written(value)
    bare = _QUALIFIER.sub(" ", value)
    note = " ".join(_QUALIFIER.findall(value))
    head, _, rest = bare.partition(",")
    orders = [f"{note} {rest} {head}", f"{rest} {note} {head}", f"{rest} {head} {note}"] if rest or note else []
    for order in orders:
        text = strict_text(order)
        if text.strip(f" {_BREAK}"):
            yield text, WORD_ORDER


_SPELLINGS = {"date_of_birth": _dates, "address": _addresses, "occupation": _titles}


def _held(shown: str, words: Sequence[str]) -> set[str]:
    return {word for word in words if f" {word} " in shown}


STRICT = Matcher("strict", strict_text, strict_forms, _held)
