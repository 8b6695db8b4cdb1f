"""Text to copy, with what it is for; and how names and values are written in SQL."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import Literal

Language = Literal["sql", "sh", "hcl", "json", "properties", "python"]

_COMMENTS = {"sql": "--", "sh": "#", "hcl": "#", "properties": "#", "python": "#"}
_WIDTH = 78


@dataclass(frozen=True)
class Snippet:
    """Something to copy. `text` runs as it is once every `<PLACEHOLDER>` in it is replaced."""

    title: str
    text: str
    """'' where there is only something to do, which `why` says."""
    why: str
    """What it is for and what to mind; each line is a paragraph."""
    language: Language = "sql"
    commands: tuple[str, ...] = ()
    """What to run in a shell with the result."""

    @property
    def commented(self) -> str:
        """Return title, reason and commands as comments above the text.

        They fit 80 columns, but for long names and commands. JSON has no comments.
        """
        mark = _COMMENTS.get(self.language)
        if mark is None:
            return self.text
        lines = [self.title]
        for paragraph in self.why.splitlines():
            lines += textwrap.wrap(
                paragraph, _WIDTH - len(mark), break_long_words=False, break_on_hyphens=False
            )
        lines += [line for command in self.commands for line in command.splitlines()]
        comments = [f"{mark} {line}" for line in lines]
        return "\n".join([*comments, self.text] if self.text else comments)


def name(*parts: str) -> str:
    """Return an identifier as Athena's queries, Snowflake and DuckDB read it: `"a"."b"`.

    Parts that are blank are left out.
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts if part)


def ddl_name(*parts: str) -> str:
    """Return an identifier as Athena's DDL, which is Hive's, reads it."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts if part)


def text(value: str) -> str:
    """Return a SQL string in single quotes."""
    return "'" + value.replace("'", "''") + "'"


def ddl_text(value: str) -> str:
    """Return a string for Athena's DDL: Hive's joins two strings where a quote is doubled."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def snowflake_text(value: str) -> str:
    """Return a string for Snowflake, where a backslash in single quotes begins an escape."""
    return text(value.replace("\\", "\\\\"))


def properties_value(value: str) -> str:
    """Return a value as a Java properties file holds it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def words(value: str) -> str:
    """Return `value` in lower case with everything but letters and digits as one `_`."""
    return re.sub("[^a-z0-9]+", "_", value.lower()).strip("_")
