"""The questions `init` asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError

from lakeload.config.credentials import Credentials
from lakeload.config.document import listed, quoted
from lakeload.config.model import Finding, first_finding
from lakeload.config.secret_names import shown
from lakeload.data import read_toml
from lakeload.documents.destination import Destination, region_findings
from lakeload.documents.iceberg import Catalog
from lakeload.documents.pipeline import Pipeline, Table
from lakeload.init.documents import Answers, Given, catalog_settings, format_traits, in_glue
from lakeload.sources.files.settings import table_of
from lakeload_jobs.contract import spec
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.sources.files.formats.registry import named_format


def value_finding(model: type[BaseModel], setting: str, value: str) -> Finding | None:
    """Say why text cannot be the value of a setting of `model`, or return None."""
    field = model.model_fields[setting]
    kind: Any = field.annotation
    if field.metadata:
        kind = Annotated[kind, *field.metadata]
    try:
        TypeAdapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        other = Finding(f"`{shown(value)}` cannot be the value of `{setting}`")
        return first_finding(error) or other
    return None


_AUTH: Mapping[str, tuple[str, ...]] = {
    "REST": ("CREDENTIAL", "TOKEN", "SIGV4", "NONE"),
    "NESSIE": ("NONE", "TOKEN"),
}
"""How the types of catalog that leave a choice can be told who asks; the first is the default."""


@dataclass(frozen=True)
class Question:
    """One choice, as questions.toml describes it."""

    name: str
    help: str
    text: str
    metavar: str = ""
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    catalog_setting: str = ""
    choices: str | Sequence[str] = ()
    default: str | None = None
    may_be_empty: bool = False
    asked: bool = True
    """Whether it is asked at a terminal; else there is the flag alone."""
    follows: str = ""
    """The question whose answer mostly decides this one."""
    setting: str = ""

    @property
    def flag(self) -> str:
        """The option that answers it."""
        return f"--{self.name.replace('_', '-')}"

    def applies(self, given: Given) -> bool:
        """Whether there is something to choose, after these answers."""
        if self.catalog_setting and self.catalog_setting not in catalog_settings(given):
            return False
        chosen = all(given.get(name) in values for name, values in self.only.items())
        return chosen and (self.name not in _APPLIES or _APPLIES[self.name](given))

    def choices_for(self, given: Given) -> tuple[str, ...]:
        """Return the answers to choose from; none where any text will do."""
        if self.name == "catalog_auth":
            return _AUTH[given["catalog"]]
        if isinstance(self.choices, str):
            return get_args(getattr(spec, self.choices))
        return tuple(self.choices)


def _identity(given: Given) -> str:
    if given.get("role_arn"):
        return "ROLE"
    if given.get("profile"):
        return "PROFILE"
    return "KEYS" if given.get("endpoint_url") else "DEFAULT"


def _reads_files(given: Given) -> bool:
    return not given.get("from_url")


_APPLIES: Mapping[str, Callable[[Given], bool]] = {
    "catalog": lambda given: format_traits(given).has_catalog and given["local"] == "NO",
    "glue_prefix": in_glue,
    **dict.fromkeys(("path", "source", "table", "primary_key"), _reads_files),
    "mode": lambda given: not format_traits(given).append_only,
}
_DEFAULTS: Mapping[str, Callable[[Given], str | None]] = {
    "credentials": _identity,
    "profile": lambda given: None if given["credentials"] == "PROFILE" else "",
    "catalog_auth": lambda given: _AUTH[given["catalog"]][0],
    "mode": lambda given: "" if given.get("from_url") else "APPEND",
    "source": lambda given: named_format(given.get("path", "")),
    "table": lambda given: table_of(given.get("path", "")),
}
_MODELS: Mapping[str, type[BaseModel]] = {
    model.__name__: model for model in (Destination, Credentials, Catalog, Pipeline, Table)
}
_QUESTIONS = read_toml(__package__, "questions.toml")
PANELS = {panel: tuple(Question(**one) for one in given) for panel, given in _QUESTIONS.items()}
"""The questions by the part of the help that lists their flags."""
QUESTIONS = tuple(question for panel in PANELS.values() for question in panel)
"""In the order they are asked; each sees the answers of those before it."""


Ask = Callable[[Question, tuple[str, ...], str | None, Finding | None], str]
"""Asks one question with its choices and default; the finding says what was wrong before."""


Doubt = Callable[[Question, str, Given], Finding | None]
"""Says why an answer, after the answers so far, is probably a slip; None where it is not."""


Defaults = Mapping[str, str | Callable[[Given], str | None]]
"""Answers that depend on the machine, by the names of the questions; a function of the answers so
far may know none."""


def interview(
    flags: Mapping[str, str | None],
    defaults: Defaults,
    ask: Ask | None,
    *,
    settled: Callable[[Question, Given], bool] = lambda question, given: False,
    doubt: Doubt = lambda question, value, known: None,
) -> Answers:
    """Return an answer to each question that applies: the flag, what was asked, or the default.

    `defaults` come before those of the questions; what is `settled` is not asked. Without `ask`,
    what has neither flag nor default is missing. An answer that is in `doubt` is asked for again.
    Raises `InvalidInput`, naming all missing flags
    at once.
    """
    # What a later flag says takes part in an earlier default: `--role-arn` makes it a role.
    known = {name: value for name, value in flags.items() if value is not None}
    missing: list[Question] = []
    for question in QUESTIONS:
        flag = flags.get(question.name)
        if not question.applies(known):
            if flag:
                raise _without_effect(question, known)
            known.pop(question.name, None)
            continue
        choices = question.choices_for(known)
        default = _default(question, known, defaults.get(question.name))
        if flag is not None:
            known[question.name] = _checked_flag(question, choices, flag, known)
        elif (
            ask is not None
            and question.asked
            and not _settled(question, known, default)
            and not settled(question, known)
        ):
            known[question.name] = _asked(question, choices, default, ask, known, doubt)
        elif default is None:
            if question.follows not in [item.name for item in missing]:
                missing.append(question)
        else:
            known[question.name] = default
    if missing:
        raise _missing(missing)
    return Answers(**known)


def _default(
    question: Question, known: Given, first: str | Callable[[Given], str | None] | None
) -> str | None:
    """Return the default after these answers, None for a question that needs an answer."""
    if value := first(known) if callable(first) else first:
        return value
    return _DEFAULTS[question.name](known) if question.name in _DEFAULTS else question.default


def _settled(question: Question, known: Mapping[str, str], default: str | None) -> bool:
    """A role's base profile has a flag, and so has the identity once `--role-arn` is given. Each
    table of a database has a mode of its own. To try something, defaults are enough."""
    if known["local"] == "YES" and default is not None:
        return True
    if question.name == "profile":
        return known["credentials"] == "ROLE"
    if question.name == "mode":
        return not _reads_files(known)
    return question.name == "credentials" and bool(known.get("role_arn") or known.get("profile"))


def _asked(
    question: Question,
    choices: tuple[str, ...],
    default: str | None,
    ask: Ask,
    known: Given,
    doubt: Doubt,
) -> str:
    finding: Finding | None = None
    while True:
        value = ask(question, choices, default, finding).strip()
        begun = [choice for choice in choices if value and choice.startswith(value.upper())]
        value = begun[0] if len(begun) == 1 else _choice(value, choices) or value
        finding = _finding(question, choices, value, known) or doubt(question, value, known)
        if finding is None:
            return value


def _checked_flag(question: Question, choices: tuple[str, ...], value: str, known: Given) -> str:
    value = _choice(value, choices) or value
    if finding := _finding(question, choices, value, known):
        raise InvalidInput(f"`{question.flag}`: {finding.message}", hint=finding.hint)
    return value


def _finding(
    question: Question, choices: tuple[str, ...], value: str, known: Given
) -> Finding | None:
    if choices:
        hint = did_you_mean(value, choices) or listed(choices)
        return None if value in choices else Finding(f"`{shown(value)}` is not a choice", hint)
    if not value.isprintable():
        return Finding(f"`{shown(value)}` holds a control character", "remove it")
    if value == "":
        return None if question.may_be_empty else Finding("this cannot be empty")
    if not question.setting or "${" in value:
        # A reference to the environment is checked with the whole document.
        return None
    model, setting = question.setting.split(".")
    found = value_finding(_MODELS[model], setting, value)
    if found is None and question.name == "region":
        # Whose region it is, an endpoint decides: that is no matter of the value alone.
        return next(region_findings({**known, "region": value}), None)
    return found


def _choice(value: str, choices: tuple[str, ...]) -> str | None:
    return next((choice for choice in choices if choice.lower() == value.lower()), None)


def _without_effect(question: Question, known: Mapping[str, str]) -> InvalidInput:
    given = [
        f"{item.flag} {known[item.name] if item.metavar else ''}".strip()
        for item in QUESTIONS
        if item.name in ("local", "credentials", "table_format", "catalog", "from_url")
        and known.get(item.name, "NO") not in ("", "NO")
    ]
    return InvalidInput(
        f"`{question.flag}` has no effect with `{' '.join(given)}`",
        hint="leave it out, or make another choice; `lakeload init --help` lists them",
    )


def _missing(questions: list[Question]) -> InvalidInput:
    flags = quoted([question.flag for question in questions])
    about = "\n".join(f"  {question.flag}  {question.text}" for question in questions)
    verb = "is" if len(questions) == 1 else "are"
    return InvalidInput(
        f"{flags} {verb} missing, and there is no terminal for questions", hint=f"give\n{about}"
    )
