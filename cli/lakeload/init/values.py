"""Values as YAML text that reads back as exactly them."""

from __future__ import annotations

import json
import re

from lakeload.config.document import resolved

_PLAIN = re.compile(r"[A-Za-z/](?:[A-Za-z0-9_./*@+-]|:(?=[A-Za-z0-9/:]))*")


def yaml_text(value: str) -> str:
    """Return text as YAML: plain where every reader takes it for text, else in double quotes."""
    if _PLAIN.fullmatch(value) and resolved(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)
