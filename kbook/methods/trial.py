"""Classes that do not keep the contract, and what a reader is told of each: for the chapter on methods of one's own."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from kbook.errors import KBookError
from kbook.methods.registry import make_method

_HEAD = "from kbook.methods.contract import Intervention, Parameters\nfrom kbook.methods.weights import TrainedMethod\n"
_NAMED = '    name, title, family, source = "mine", "Mine", "text", "a paper"\n'
_TRAINED = '    name, title, source = "mine", "Mine", "a paper"\n'

FAULTS = {
    "derived from nothing": "class Mine:\n    pass\n",
    "no name and no source": 'class Mine(Intervention):\n    title, family = "Mine", "text"\n',
    "the name of another method": "class Mine(Intervention):\n" + _NAMED.replace('"mine"', '"npo"'),
    "a family that there is not": "class Mine(Intervention):\n" + _NAMED.replace('"text"', '"magic"'),
    "lanes without a reason": "class Mine(Intervention):\n" + _NAMED + '    lanes = ("P",)\n',
    "edits weights, and has no edit": "class Mine(Intervention):\n" + _NAMED.replace('"text"', '"weights"'),
    "trains, and has no loss": "class Mine(TrainedMethod):\n" + _TRAINED,
    "does not parse": "class Mine(Intervention)\n" + _NAMED,
    "a package that is not installed": "import not_installed\nclass Mine(Intervention):\n" + _NAMED,
}
"""What is wrong → the text of a class below its imports."""


def told(text: str, name: str = "mine.py::Mine") -> str:
    """What is said of a class when it is asked for; "" where it keeps the contract.

    Args:
        text: of the file, below the imports of `Intervention`, `Parameters` and `TrainedMethod`.
        name: file and class.
    """
    file, _, attribute = name.partition("::")
    with TemporaryDirectory() as folder:
        path = Path(folder) / file
        path.write_text(_HEAD + text, encoding="utf-8")
        try:
            make_method(f"{path}::{attribute}")
        except KBookError as error:
            return str(error).replace(f"{folder}/", "")
    return ""


def refusals() -> list[dict[str, str]]:
    """What is wrong with each class of `FAULTS`, and what is said of it."""
    return [{"what is wrong": what, "what you are told": told(text)} for what, text in FAULTS.items()]
