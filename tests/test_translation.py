"""A translation passes only when every check passes; what fails is tried again, and back-translation stays blind."""

from dataclasses import replace

import pytest

from kbook.construction.providers import Comparison, NoUsableReply, Wording
from kbook.construction.translation import translate, why_not_wording
from kbook.corpora.units import QA, Card

LAMP = Card("a", "keeper", "name", "Ana Bo keeps the lamp.", "Ana Bo", "person", "Its keeper is Ana Bo.")
ASKED = QA("a-core", "forget", "core", "en", "Who keeps the lamp?", "Ana Bo")
SOUND = Wording("Wer hütet die Lampe?", "Ana Bo")
ALL_KEPT = Comparison(True, True, True, True)


class Scripted:
    """A provider whose translations, comparisons and reviews are given in advance."""

    def __init__(self, wordings, comparisons=(), findings=()):
        self.wordings, self.comparisons, self.findings = list(wordings), list(comparisons), list(findings)
        self.seen = []

    def translate(self, card, qa, language, attempt):
        return self.wordings[attempt - 1]

    def back_translate(self, wording, language):
        self.seen.append((wording, language))
        return Wording("Who keeps the lamp?", wording.answer)

    def compare(self, qa, back):
        return self.comparisons.pop(0) if self.comparisons else ALL_KEPT

    def review(self, card, qa, wording, language):
        finding = self.findings.pop(0) if self.findings else ""
        if finding == "silence":
            raise NoUsableReply
        return finding


def tried(provider, attempts=3, **more):
    return [attempt.reason for attempt in translate(provider, LAMP, ASKED, "de", attempts=attempts, **more)]


def test_a_sound_translation_passes_at_once():
    provider = Scripted([SOUND])
    assert tried(provider) == [""]
    assert len(provider.seen) == 1


@pytest.mark.parametrize("part", ["intent", "answer", "boundary", "role"])
def test_what_the_back_translation_lost_is_named_and_tried_again(part):
    provider = Scripted([SOUND] * 3, [replace(ALL_KEPT, **{part: False}), ALL_KEPT])
    assert tried(provider) == [f"back-translation: {part} not kept", ""]


def test_what_the_reviewer_refuses_is_tried_again():
    assert tried(Scripted([SOUND] * 3, findings=["stiff"])) == ["review: stiff", ""]
    assert tried(Scripted([SOUND] * 3, findings=["silence"])) == ["no usable reply", ""]


def test_after_the_last_attempt_it_is_given_up():
    lost = replace(ALL_KEPT, intent=False)
    assert tried(Scripted([SOUND] * 3, [lost] * 3)) == ["back-translation: intent not kept"] * 3
    assert tried(Scripted([SOUND], [lost]), attempts=1) == ["back-translation: intent not kept"]


def test_the_back_translator_sees_the_translation_and_nothing_else():
    provider = Scripted([replace(SOUND, fault="planted")])
    translate(provider, LAMP, ASKED, "de", attempts=1)
    assert provider.seen == [(SOUND, "de")]


def test_words_of_another_question_of_the_family_are_refused_before_anyone_is_asked():
    provider = Scripted([SOUND, replace(SOUND, question="Wer ist Hüter der Lampe?")])
    assert tried(provider, taken=["wer hütet  die LAMPE?"]) == ["another question of the family has these words", ""]
    assert len(provider.seen) == 1


@pytest.mark.parametrize(
    ("wording", "language", "reason"),
    [
        (SOUND, "de", ""),
        (Wording("ใครดูแลโคมไฟ Ax", "Ana Bo"), "th", ""),
        (Wording("แลโคมไฟ the lamp of Ax and others", "อานา"), "th", "question in another script"),
        (Wording("Who keeps the lamp?", "Ana Bo"), "ar", "question in another script"),
        (Wording("谁看守这盏灯？", "安娜"), "zh", ""),
        (Wording("このランプの番人は誰ですか。", "アナ"), "ja", ""),
        (Wording("12?", "12"), "de", "question in another script"),
        (Wording(" ", "Ana"), "de", "empty or overlong"),
        (Wording("Wer?", ""), "de", "empty or overlong"),
        (Wording("Wer" * 200, "Ana"), "de", "empty or overlong"),
    ],
)
def test_what_can_be_seen_without_understanding(wording, language, reason):
    assert why_not_wording(wording, language) == reason
