"""Conditions in Spark SQL (`where`, `deleted_when`), as far as they can be checked without Spark.

Only what no version of Spark's parser accepts is a problem: a quote or bracket without its partner,
and an operator without something on both sides. Whatever this module cannot read, it accepts.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<operand> '(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*` | [\w.]+ )
    | (?P<quote> ['"`] )
    | (?P<other> <=> | <= | >= | <> | != | == | => | -> | :: | \|\| | [-=<>!+*/%&|^~(),\[\]] )
    )""",
    re.VERBOSE,
)
_BINARY = frozenset({"<=>", "<=", ">=", "<>", "!=", "==", "||", *"=<>/%&|^"})
"""Operators that need an operand on both sides."""
_UNFINISHED = _BINARY | {*"-+!~", "->"}
"""Tokens that cannot end a condition."""
_BEFORE_OPERAND = _UNFINISHED | {*"([,"}
_PARTNERS = {")": "(", "]": "["}
_UNREADABLE = re.compile(r"--|/\*|\\|\b(?:array|map|struct)\s*<|\b[rRxX]['\"]", re.IGNORECASE)
"""Comments, escapes, types with `<` and literals with a prefix."""


def condition_problem(sql: str) -> str | None:
    """Return what is wrong with a condition; None where Spark may accept it."""
    if _UNREADABLE.search(sql):
        return None
    opened: list[str] = []
    before = "("
    place, text = 0, sql.rstrip()
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            return None
        place = token.end()
        if quote := token["quote"]:
            return f"the quote {quote} is not closed"
        now = token["other"] or ""
        if now in _BINARY and before in _BEFORE_OPERAND:
            return f"there is nothing before `{now}`"
        if (now in _PARTNERS or now == ",") and before in _UNFINISHED:
            return f"there is nothing after `{before}`"
        if now in _PARTNERS.values():
            opened.append(now)
        elif now in _PARTNERS and (not opened or opened.pop() != _PARTNERS[now]):
            return f"`{now}` has no `{_PARTNERS[now]}`"
        before = now
    if before in _UNFINISHED:
        return f"there is nothing after `{before}`"
    return f"`{opened[-1]}` is not closed" if opened else None
