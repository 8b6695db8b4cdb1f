"""Values in the lines of YAML that messages give to copy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

_WORDS = ("null", "true", "false", "yes", "no", "on", "off")


def yaml_text(text: str) -> str:
    """Return a text as YAML reads it back, also within a list or a mapping in one line."""
    is_plain = re.fullmatch(r"[A-Za-z_][\w .()-]*(?<! )", text) is not None
    if is_plain and text.lower() not in _WORDS:
        return text
    return json.dumps(text, ensure_ascii=False)


def yaml_list(texts: Iterable[str]) -> str:
    """Return a list of texts in one line."""
    return f"[{', '.join(map(yaml_text, texts))}]"


def yaml_mapping(entries: Mapping[str, str]) -> str:
    """Return a mapping of texts in one line; `…` is left for the reader to fill in."""
    shown = (
        f"{yaml_text(key)}: {value if value == '…' else yaml_text(value)}"
        for key, value in entries.items()
    )
    return f"{{{', '.join(shown)}}}"
