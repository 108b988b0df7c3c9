"""What a question and an answer are, and which function answers which question."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
QUESTIONS = pathlib.Path(__file__).resolve().parents[1] / "QUESTIONS.md"
YES, NO, PARTLY, OPEN, SEEN = "yes", "no", "partly", "not answered", "seen"
PROBES = {}  # number: function(Probe) -> Answer


class NotAnswered(Exception):
    """Why a question cannot be answered here; str() goes into the table."""


class OutOfTime(NotAnswered):
    pass


class Answer:
    def __init__(self, verdict, seen):
        self.verdict, self.seen = verdict, seen


def probe(number):
    def register(function):
        PROBES[number] = function
        return function
    return register


def questions():
    """Number: text, from the table in the document, which is the one place that has them."""
    found = {}
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
        match = re.match(r"\| *(\d+) *\| *(.*?) *(?<!\\)\|", line)
        if match:
            found[int(match.group(1))] = match.group(2)
    return found
