"""The configuration reference, docs/configuration.md, made from the models.

`python -m tests.reference` writes it.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from lakeload.config.model import Called
from lakeload.config.secret_names import SECRET_SETTINGS
from lakeload.config.secret_setting import SecretHeaders, SecretSetting
from lakeload.config.yaml_tree import MAX_BYTES, MAX_DEPTH, MAX_VALUES
from lakeload.documents.destination import Destination
from lakeload.documents.explain import LATER_KEYS, LATER_VALUES, sections
from lakeload.documents.pipeline import Pipeline, Table, pipeline_model
from lakeload.documents.spark import OWNED
from lakeload.sources.base import SourceSettings
from lakeload.sources.registry import SOURCES
from lakeload_jobs.contract.spec import TRACKING_COLUMNS
from lakeload_jobs.core.sizes import format_size
from lakeload_jobs.sources.files.formats.registry import FILE_FORMATS
from tests.prose import reflow

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
_INTRODUCTION = f"""\
# Configuration reference

All settings of your `destination.yml` and `pipeline.yml`, with types and defaults. Check your files
with `lakeload validate`, and write your first ones with [`lakeload init`](init.md):

```
lakeload validate destination.yml pipeline.yml   # every problem of every file
lakeload schema destination                      # JSON Schema for your editor
lakeload schema pipeline
```

Configuration files are YAML, UTF-8, at most {MAX_BYTES >> 20} MiB, {MAX_VALUES:,} values (aliases
expanded) and {MAX_DEPTH} levels deep.

- **Unknown keys, duplicate keys and settings that are not supported yet are errors.** You never set
  something silently that has no effect. You get a note if your file has the block of the other
  table format, which is ignored, or `destination_prefix` beside `namespace`.
- **Quote text that YAML readers take for something else**: `no`, `0123`, `1_000`, `2026-11-21`. It
  is rejected without quotes. Write booleans as `true` and `false`.
- **`${{NAME}}` and `${{NAME:-default}}`** are filled from your environment, in values that are not
  secret. As in a shell, the default also replaces an empty value. Write `$${{` for a literal `${{`.
- **Write secret settings as references**, never as values: `{{env: NAME}}`, `{{file: PATH}}` (one
  final newline is dropped), `{{aws_secret: NAME}}`, `{{aws_parameter: NAME}}`, or `${{NAME}}` for
  `{{env: NAME}}`. They are {", ".join(f"`{name}`" for name in sorted(SECRET_SETTINGS))}.
  With a master whose tasks run on other machines, you cannot use `env` and `file`.
- **Relative paths** are relative to the file that contains them.
"""


def reference_page() -> str:
    """Return the page as Markdown."""
    parts = [
        reflow(_INTRODUCTION),
        *_document("destination.yml", sections(Destination)),
        *_document("pipeline.yml", pipeline_sections()),
        _reader_options(),
        _spark_properties(),
        _later(),
        _VALIDATE_JSON,
    ]
    return "\n".join(parts)


def pipeline_sections() -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the mappings of a pipeline; with several types of source, those of each by its name."""
    sources = list(SOURCES.values())
    whole = pipeline_model(sources[0]) if len(sources) == 1 else Pipeline
    for path, section in sections(whole):
        if path == "destination" or path.startswith("destination."):
            continue
        if section is SourceSettings:
            for source in sources:
                for below, settings in sections(source.settings, path):
                    yield f"{below}` of type `{source.name}", settings
            continue
        yield path, section
        if section is Table:
            for source in sources:
                yield f"{path}` of a source of type `{source.name}", source.table


def _document(title: str, parts: Iterable[tuple[str, type[BaseModel]]]) -> Iterator[str]:
    yield f"## {title}\n"
    for path, section in parts:
        if path:
            yield f"### {title}: `{path}`\n"
        yield f"{_first_line(section)}\n\n{_table(section)}\n"


def _table(model: type[BaseModel]) -> str:
    rows = [
        f"| `{name}` | {type_name(field)} | {_default(field)} | {_meaning(field)} |"
        for name, field in model.model_fields.items()
    ]
    return "\n".join(["| key | type | default | meaning |", "|---|---|---|---|", *rows])


def type_name(field: FieldInfo) -> str:
    """Return what a field takes, in words."""
    annotation = field.annotation
    for mark in field.metadata:
        if isinstance(mark, Called):
            return mark.name
        if isinstance(mark, SecretSetting):
            return "secret reference"
        if isinstance(mark, SecretHeaders):
            return "mapping of names to secret references"
    low = next((mark.ge for mark in field.metadata if hasattr(mark, "ge")), None)
    high = next((mark.le for mark in field.metadata if hasattr(mark, "le")), None)
    name = _annotation_name(annotation)
    return name if low is None else f"{name}, {low} to {high}"


def _annotation_name(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is typing.Annotated:
        called = [mark.name for mark in arguments[1:] if isinstance(mark, Called)]
        return called[0] if called else _annotation_name(arguments[0])
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin in (typing.Union, types.UnionType):
        names = [_annotation_name(item) for item in arguments if item is not type(None)]
        return " or ".join(names)
    if origin is tuple:
        return f"list of {_annotation_name(arguments[0])}"
    if origin is dict:
        below = "" if arguments[1] is Any else f" to {_annotation_name(arguments[1])}"
        return f"mapping of text{below}" if below else "mapping"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "mapping"
    return {str: "text", int: "whole number", bool: "`true`, `false`"}[annotation]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    extra = field.json_schema_extra
    if isinstance(extra, dict) and "defaults" in extra:
        return str(extra["defaults"])
    value = field.default
    if value is None or value is PydanticUndefined or isinstance(value, BaseModel) or value == ():
        return "–"
    if value == TRACKING_COLUMNS:
        return "`ALL`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if "size" in type_name(field):
        return f"`{format_size(value).replace('.0 ', '')}`"
    return '`""`' if value == "" else f"`{value}`"


def _meaning(field: FieldInfo) -> str:
    about = field.description or _first_line(_model_of(field))
    return " ".join(about.split()).replace("|", "\\|")


def _model_of(field: FieldInfo) -> type[BaseModel]:
    annotation = field.annotation
    assert isinstance(annotation, type), "a field without description is a mapping"
    return annotation


def _first_line(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").split("\n", 1)[0]


def _reader_options() -> str:
    lines = [
        "## Reader options\n",
        "You can set these `options`. Names are compared without case, and unknown ones are",
        "rejected. Those of CSV are [lakeload's](csv-files.md#options) and Spark's names for",
        "them. All others are those of Spark 4.1's readers.\n",
        "| format | options |",
        "|---|---|",
    ]
    for file_format, known in FILE_FORMATS.items():
        lines.append(f"| `{file_format}` | {', '.join(f'`{name}`' for name in known.options)} |")
    return "\n".join(lines) + "\n"


def _spark_properties() -> str:
    lines = [
        "## Properties of Spark that are lakeload's own\n",
        "With `spark.conf` and `--conf` you can set any property except these, those below them,",
        "and any whose name or value looks like a secret.\n",
        "| property | why |",
        "|---|---|",
        *(f"| `{name.rstrip('.')}` | {why} |" for name, why in OWNED.items()),
    ]
    return "\n".join(lines) + "\n"


_OFF = (
    "`cursor` in `tables[]` of files without `mode: UPSERT`",
    "`spark.master` other than `local…` and `spark://…`",
)


def _later_settings() -> list[str]:
    """Return what is refused for now, for the reference page."""
    homes = {"Pipeline": "pipeline.yml", "Source": "`source`", "Table": "`tables[]`"}
    keys = [f"`{key}` in {homes[model]}" for model, named in LATER_KEYS.items() for key in named]
    values = [
        f"`{field}: {value}`" + (f" in {homes[model]}" if model in homes else " in destination.yml")
        for (model, field), named in LATER_VALUES.items()
        for value in named
    ]
    return [*values, *_OFF, *keys]


def _later() -> str:
    lines = [
        "## Not supported yet\n",
        "These settings are planned. You get an error if you use one:\n",
    ]
    return "\n".join([*lines, *(f"- {setting}" for setting in _later_settings())]) + "\n"


_VALIDATE_JSON = """\
## `lakeload validate --output json`

You get one document on stdout, and later versions only add fields. The exit code is 0 if none of
your files has an error, else 2.

```json
{
  "valid": false,
  "files": [{"file": "destination.yml", "kind": "destination", "valid": false}],
  "problems": [
    {
      "severity": "error",
      "code": "unknown-key",
      "file": "destination.yml",
      "line": 3,
      "column": 1,
      "length": 6,
      "key": "regoin",
      "message": "unknown key `regoin`",
      "hint": "did you mean `region`?",
      "docs": "error-codes/#unknown-key"
    }
  ]
}
```

| field | value |
|---|---|
| `severity` | `error`, `warning` or `note` |
| `kind` | `destination`, `pipeline` or null |
| `line`, `column` | counted from 1; null if the problem is that of the whole file |
| `key`, `length`, `hint` | can be null |
| `docs` | a link from the root of this site to the code's line in [error codes](error-codes.md) |

You never see the value of a secret setting in a message.

## `lakeload validate --output github`

Use it in a step of GitHub Actions. Each problem is a workflow command, which you see at its line in
your pull request, with the hint after the message. Notes become notices. GitHub annotates the first
ten errors, warnings and notices of a step. Its log and the exit code cover them all. `file` is
relative to the root of your repository.

```yaml
- run: pip install lakeload && lakeload validate --output github lake/*.yml
```
"""


if __name__ == "__main__":
    PAGE.write_text(reference_page(), encoding="utf-8")
