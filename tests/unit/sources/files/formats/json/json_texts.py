"""Random JSON, written by Python's `json`, and the same with hostile changes."""

from __future__ import annotations

import json
import random
import re
from typing import Any

_SIGNS = [*b'{}[]:,"\\ \n\t\r0159-+.eEtrufalsnNI/bx\x00\x1f', 0xC3, 0xA9, 0xF0, 0xFF]
_TEXTS = ["", "x", 'q"', "\\", "\\\\", "{[}]", ":,", "é\n", "🚀", "\u2028", "a" * 40, "null", "7"]
_KEYS = ["a", "b", "c", 'k"', "k\\", "é", "{", "", "long key", "A"]
_NUMBERS = ["0", "-0", "1", "12", "1.10", "-2.50e-3", "1E5", "9" * 30, "0.1234567890123456789"]
_NUMBER = "number "
_MARKED = re.compile(f'"{_NUMBER}([^"]+)"')


def value(random_: random.Random, depth: int = 0) -> Any:
    """Return a random value; a number is a text that `written` writes as one."""
    kind = random_.random()
    if depth > 3 or kind < 0.55:
        if kind < 0.3:
            return random_.choice([*_TEXTS, *_NUMBERS, None, True, False])
        return f"{_NUMBER}{random_.choice(_NUMBERS)}"
    if kind < 0.8:
        return {
            random_.choice(_KEYS): value(random_, depth + 1) for _ in range(random_.randint(0, 3))
        }
    return [value(random_, depth + 1) for _ in range(random_.randint(0, 3))]


def record(random_: random.Random) -> dict[str, Any]:
    """Return a random record."""
    return {random_.choice(_KEYS): value(random_) for _ in range(random_.randint(0, 5))}


def written(random_: random.Random, records: list[dict[str, Any]], *, lines: bool) -> str:
    """Return records as one of the ways in which JSON is written."""
    encoder = {"ensure_ascii": random_.random() < 0.5}
    if random_.random() < 0.5:
        encoder["separators"] = (",", ":")  # type: ignore[assignment]
    indent = None if lines else random_.choice([None, 1, "\t"])
    texts = [
        _MARKED.sub(r"\1", json.dumps(record, indent=indent, **encoder))  # type: ignore[arg-type]
        for record in records
    ]
    if lines:
        return "".join(text + random_.choice(["\n", "\r\n", "\n\n", " \n"]) for text in texts)
    if random_.random() < 0.5:
        return random_.choice(["\n", "", " "]).join(texts)
    comma = random_.choice([",", " , ", ",\n"])
    return random_.choice(["[", " [\n"]) + comma.join(texts) + random_.choice(["]", "\n] \n"])


def mutated(random_: random.Random, content: bytes) -> bytes:
    """Return content with a few bytes changed, left out, doubled or added."""
    changed = bytearray(content)
    for _ in range(random_.randint(1, 3)):
        at = random_.randrange(len(changed) + 1)
        match random_.randrange(4):
            case 0:
                changed[at:at] = bytes([random_.choice(_SIGNS)])
            case 1:
                del changed[at : at + random_.randint(1, 3)]
            case 2:
                changed[at : at + 1] = bytes([random_.choice(_SIGNS)])
            case _:
                changed[at:at] = changed[at : at + random_.randint(1, 8)]
    return bytes(changed)
