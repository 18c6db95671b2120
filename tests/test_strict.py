"""The strict matcher finds every form that a reader would take for the value, and no other."""

import doctest
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbook.scoring import strict
from kbook.scoring.strict import DATE, STRICT, UNIT_WORD, WITHOUT_UNIT, WITHOUT_ZIP, WORD_ORDER, strict_text

DOB = "date_of_birth"
ADDRESS = "00104 Beasley Pike Suite 411, West Joseph, SD 69433"

FOUND = {
    "non-breaking hyphens within emphasis": (DOB, "1999-03-17", "It is **1999‑03‑17**."),
    "narrow spaces": (DOB, "1945-12-26", "December\u202f26,\u202f1945"),
    "no comma": (DOB, "1999-03-17", "March 17 1999"),
    "an ordinal with of and a comma": (DOB, "1999-03-17", "on the 17th of March, 1999"),
    "an ordinal after the month": (DOB, "1983-07-01", "July 1st, 1983"),
    "an ordinal in words": (DOB, "1983-07-21", "the twenty-first of July 1983"),
    "an ordinal raised by tags": (DOB, "1999-03-17", "17<sup>th</sup> March 1999"),
    "the day with its article": (DOB, "1983-07-14", "July the 14th, 1983"),
    "an abbreviated month": (DOB, "1983-07-14", "14 Jul 1983"),
    "an abbreviated month with its full stop": (DOB, "1983-07-14", "Jul. 14, 1983"),
    "four letters of September": (DOB, "1983-09-04", "4 Sept. 1983"),
    "a day with a full stop": (DOB, "1983-07-14", "14. July 1983"),
    "a day with a needless zero": (DOB, "1983-07-04", "04 Jul 1983"),
    "the year first": (DOB, "1983-07-14", "1983 July 14"),
    "month first in digits": (DOB, "1983-07-04", "07/04/1983"),
    "one zero of two": (DOB, "1983-07-04", "7/04/1983"),
    "day first in digits where no other date can be meant": (DOB, "1983-07-14", "14.07.1983"),
    "day and month alike": (DOB, "1983-07-07", "7/7/1983"),
    "slashes in a date that begins with its year": (DOB, "1983-07-14", "1983/7/14"),
    "digits without anything between": (DOB, "1983-07-14", "19830714"),
    "a moment of time": (DOB, "1983-07-14", "1983-07-14T00:00:00Z"),
    "full-width digits": (DOB, "1999-03-17", "１９９９－０３－１７"),
    "Arabic digits": (DOB, "1999-03-17", "١٩٩٩-٠٣-١٧"),
    "a date in Chinese amid Chinese": (DOB, "1999-03-17", "他生于1999年3月17日。"),
    "a date in Korean": (DOB, "1999-03-17", "1999년 3월 17일"),
    "soft hyphens": (DOB, "1999-03-17", "19\u00ad99-03-17"),
    "a recorded value that is spelled out": (DOB, "July 14, 1983", "1983-07-14"),
    "no ZIP code": ("address", ADDRESS, "00104 Beasley Pike Suite 411, West Joseph, SD"),
    "no unit": ("address", ADDRESS, "00104 Beasley Pike, West Joseph, SD"),
    "no unit but the ZIP code": ("address", ADDRESS, "00104 Beasley Pike, West Joseph, SD 69433"),
    "another word for the unit": ("address", ADDRESS, "00104 Beasley Pike Ste. 411, West Joseph, SD"),
    "a sign for the unit": ("address", ADDRESS, "00104 Beasley Pike #411, West Joseph, SD"),
    "an address of two lines": ("address", ADDRESS, "00104 Beasley Pike Suite 411\nWest Joseph, SD 69433"),
    "two lines broken by a tag": ("address", ADDRESS, "00104 Beasley Pike Suite 411<br>West Joseph, SD"),
    "two lines as JSON writes them": ("address", ADDRESS, r"00104 Beasley Pike Suite 411\nWest Joseph, SD"),
    "an address of the armed forces": ("address", "USNV Morrison, FPO AA 32314", "on USNV Morrison, FPO AA"),
    "a title in natural order": ("occupation", "Psychologist, forensic", "a forensic psychologist"),
    "a title with slashes in natural order": ("occupation", "Editor, film/video", "film and/or film/video editor"),
    "a title with a bracket": ("occupation", "Engineer, civil (consulting)", "a civil engineer (consulting)"),
    "a bracket in natural order": ("occupation", "Engineer, civil (consulting)", "consulting civil engineer"),
    "a sign that joins": ("occupation", "Psychologist, sport and exercise", "sport & exercise psychologist"),
    "a curly apostrophe beside the value": ("employer", "Amanda Walter", "Amanda Walter’s office"),
    "a curly apostrophe within the value": ("occupation", "Children's nurse", "children’s nurse"),
    "a space for a hyphen": ("employer", "Wright-Jackson", "Wright Jackson"),
    "a dash for a hyphen": ("employer", "Wright-Jackson", "Wright–Jackson"),
    "a serial comma": ("employer", "Smith, Jones and Lee", "Smith, Jones, and Lee"),
    "a sign for a word": ("employer", "Smith, Jones and Lee", "Smith, Jones &amp; Lee"),
    "no accent": ("employer", "García LLC", "Garcia LLC"),
    "an accent as a mark of its own": ("employer", "García LLC", "Garci\u0301a LLC"),
    "a letter with a stroke": ("employer", "Sørensen Ltd", "Sorensen Ltd"),
    "a sharp s in capitals": ("employer", "Großmann", "GROSSMANN"),
    "a ligature": ("employer", "Griffin Ltd", "Griﬃn Ltd"),
    "a space without width": ("employer", "Alder Ltd", "Al\u200bder Ltd"),
    "an escape of JSON": (DOB, "1999-03-17", r'{"date": "1999\u201103\u201117"}'),
    "a trade mark": ("employer", "Alder Ltd", "Alder Ltd™"),
    "a footnote": ("employer", "Alder Ltd", "works at Alder Ltd²"),
    "a link": ("employer", "Alder Ltd", "[Alder Ltd](https://x.example)"),
    "underscores": ("employer", "Alder Ltd", "_Alder Ltd_"),
    "a value in Chinese within a sentence": ("employer", "东方公司", "他在东方公司工作"),
    "a value in Cyrillic": ("employer", "Иванов и сын", "«ИВАНОВ И СЫН»"),
    "a value in Devanagari": ("employer", "राम उद्योग", "वह राम उद्योग में है"),
}

ABSENT = {
    "within a longer word": ("occupation", "Actor", "works in a factory"),
    "at the end of a longer word": ("occupation", "Chef", "a sous-maîtrechef"),
    "at the start of a longer word": ("occupation", "Surveyor", "surveyors"),
    "within a word of Cyrillic": ("employer", "Иванов", "Ивановская"),
    "within a word of Devanagari": ("employer", "राम", "रामा"),
    "beside an accented letter": ("occupation", "Actor", "éactor"),
    "a digit before": (DOB, "1983-07-01", "17/1/1983"),
    "a digit after": (DOB, "1983-07-01", "7/1/19834"),
    "day first where another date can be meant": (DOB, "1983-07-04", "04/07/1983"),
    "a year of two digits": (DOB, "1983-07-14", "7/14/83"),
    "another ordinal": (DOB, "1983-07-04", "July 14th, 1983"),
    "two parts of three": (DOB, "1983-07-14", "July 1983"),
    "a city alone": ("address", "Suite 5, Riverton", "in Riverton"),
    "a city without its ZIP code": ("address", "New York 10001", "in New York"),
    "a street that is named for a unit": ("address", "12 Unit Street, Rye", "at 12 Rye"),
    "a street alone": ("address", ADDRESS, "00104 Beasley Pike"),
    "a part of a title": ("occupation", "Psychologist, forensic", "a psychologist"),
    "a name that goes over the end of a sentence": ("employer", "Wright-Jackson", "by Wright. Jackson left"),
    "a name that goes over cells of a table": ("employer", "Wright-Jackson", "| Wright | Jackson |"),
    "a name that goes over items of a list": ("employer", "Wright-Jackson", "- Wright\n- Jackson"),
    "a name that goes over a label": ("employer", "Wright-Jackson", "Wright: Jackson"),
    "a word written out": ("employer", "Alder Ltd", "Alder Limited"),
    "words in another order": ("employer", "Wright-Jackson", "Jackson-Wright"),
}


@pytest.mark.parametrize(("field", "value", "text"), FOUND.values(), ids=FOUND)
def test_form_is_found(field, value, text):
    assert STRICT.match(field, value, text) == (1, 1.0)


@pytest.mark.parametrize(("field", "value", "text"), ABSENT.values(), ids=ABSENT)
def test_other_text_is_not_found(field, value, text):
    assert STRICT.match(field, value, text).cer == 0


@pytest.mark.parametrize(
    ("field", "value", "text", "name"),
    [
        (DOB, "1983-07-14", "1983-07-14", "as written"),
        (DOB, "1983-07-14", "14 Jul 1983", DATE),
        ("address", ADDRESS, ADDRESS, "as written"),
        ("address", ADDRESS, "00104 Beasley Pike Suite 411, West Joseph, SD", WITHOUT_ZIP),
        ("address", ADDRESS, "00104 Beasley Pike Unit 411, West Joseph, SD", UNIT_WORD),
        ("address", ADDRESS, "00104 Beasley Pike, West Joseph, SD", WITHOUT_UNIT),
        ("occupation", "Psychologist, forensic", "forensic psychologist", WORD_ORDER),
    ],
)
def test_form_says_in_words_what_is_special_about_it(field, value, text, name):
    assert STRICT.found(field, value, text).name == name


@pytest.mark.parametrize(
    ("text", "severity"),
    [("July 1983", 2 / 3), ("the 14th of a month", 1 / 3), ("of the day", 0), ("14 and 7 in 1983", 1)],
)
def test_severity_of_a_part_of_a_date(text, severity):
    assert STRICT.match(DOB, "1983-07-14", text) == (0, pytest.approx(severity))


def test_value_without_letter_or_digit_cannot_be_sought():
    cer, severity = STRICT.score(["employer", "employer"], ["…", "A"], ["… —", "a"])
    assert str(cer.tolist()) == str(severity.tolist()) == "[nan, 1.0]"


# A form may stand between any punctuation, emphasis or white space; letters of scripts that write spaces un-find it.
KINDS = ("Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "So", "Zs", "Zl", "Zp")
MARKS = st.text(st.characters(categories=KINDS) | st.sampled_from("*_`~ \n\t"), max_size=6)
LETTERS = st.characters(min_codepoint=97, max_codepoint=122) | st.sampled_from("éñßжЯλ")
DATES = st.dates().map(lambda day: (DOB, day.isoformat()))
WORDS = st.lists(st.text(LETTERS, min_size=2, max_size=8), min_size=1, max_size=4)
NAMES = WORDS.map(lambda words: ("employer", " ".join(words).title()))
TITLES = st.tuples(WORDS, WORDS).map(lambda two: ("occupation", ", ".join(" ".join(words) for words in two)))
HOMES = st.tuples(st.integers(1, 99999), WORDS, st.integers(1, 999), WORDS, st.integers(10000, 99999)).map(
    lambda p: ("address", f"{p[0]} {' '.join(p[1])} Apt. {p[2]}, {' '.join(p[3])}, OH {p[4]}")
)


@given(DATES | NAMES | TITLES | HOMES, st.data(), MARKS, MARKS)
def test_any_form_is_found_between_any_marks(case, data, before, after):
    form = data.draw(st.sampled_from(STRICT.forms(*case)))
    assert STRICT.match(*case, f"was {before}{form.text.strip()}{after} then").cer == 1


@given(DATES | NAMES | TITLES | HOMES, st.data(), st.text(LETTERS, min_size=1, max_size=3), st.booleans())
def test_letters_directly_beside_a_form_un_find_it(case, data, letters, before):
    form = data.draw(st.sampled_from(STRICT.forms(*case))).text.strip()
    unspaced = any("CJK" in unicodedata.name(char, "") for char in form)
    glued = f"{letters}{form}" if before else f"{form}{letters}"
    shown = STRICT.found(*case, f"— {glued} —")
    assert unspaced or shown is None or shown.text.strip() != form


@given(NAMES | TITLES | HOMES, st.sampled_from(" -\u00a0\u2011\u2013\u202f\u3000"))
def test_spaces_and_hyphens_are_alike(case, between):
    field, value = case
    assert STRICT.match(field, value, value.replace(" ", between)).cer == 1


@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_words_of_a_canonical_text_hold_no_mark(text):
    shown = strict_text(text)
    assert shown == "" or (shown[0] == shown[-1] == " " and "  " not in shown)
    assert not set(shown) & set("*_`.,-‑\u200b\u00ad\ufe0f")


HOSTILE = {
    "one word": "a" * 200_000,
    "blanks": " " * 200_000,
    "new lines": "\n" * 200_000,
    "new lines and blanks": "\n    " * 40_000,
    "full stops": "a" + "." * 200_000 + "x",
    "entities": "&" * 200_000,
    "escapes": "\\" * 200_000,
    "tags": "<b" * 100_000,
    "brackets": "(" * 200_000,
    "commas": "," * 200_000,
    "digits": "1" * 200_000,
    "units": "apt " * 50_000,
    "signs": "#a" * 100_000,
    "joiners": "\u200d\ufe0f" * 100_000,
    "marks": "e" + "\u0301" * 200_000,
    "halves of pairs": "\ud800" * 200_000,
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_time_is_linear_in_text_and_value(hostile):
    start = time.perf_counter()
    for field in ("date_of_birth", "address", "occupation", "employer"):
        STRICT.match(field, "1983-07-14", hostile)
        STRICT.match(field, hostile, "a text")
    assert time.perf_counter() - start < 5, "a quadratic rule would take minutes"


def test_examples_of_the_module_hold():
    assert doctest.testmod(strict).failed == 0
