"""From flags and answers at a terminal to `Answers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakeload.config.model import Finding
from lakeload.config.secret_names import shown
from lakeload.config.wording import listed, quoted
from lakeload.documents.check_value import value_finding
from lakeload.init.answers import Answers
from lakeload.init.questions import QUESTIONS, Given, Question
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.core.names import did_you_mean

Ask = Callable[[Question, tuple[str, ...], str | None, Finding | None], str]
"""Asks one question with its choices and default; the finding says what was wrong before."""


Defaults = Mapping[str, str | Callable[[Given], str | None]]
"""Answers that depend on the machine, by the names of the questions; a function of the answers so
far may know none."""


def interview(flags: Mapping[str, str | None], defaults: Defaults, ask: Ask | None) -> Answers:
    """Return an answer to each question that applies: the flag, what was asked, or the default.

    `defaults` come before those of the questions. Without `ask`, what has neither flag nor
    default is missing. Raises `InvalidInput`, naming all missing flags at once.
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
        choices = question.choices(known)
        default = _default(defaults, question, known)
        if flag is not None:
            known[question.name] = _checked_flag(question, choices, flag)
        elif ask is not None and question.asked and not _settled(question, known):
            known[question.name] = _asked(question, choices, default, ask)
        elif default is None:
            if question.follows not in [item.name for item in missing]:
                missing.append(question)
        else:
            known[question.name] = default
    if missing:
        raise _missing(missing)
    return Answers(**known)


def _default(defaults: Defaults, question: Question, known: Given) -> str | None:
    found = defaults.get(question.name)
    return (found(known) if callable(found) else found) or question.default(known)


def _settled(question: Question, known: Mapping[str, str]) -> bool:
    """A role's base profile has a flag, and so has the identity once `--role-arn` is given."""
    if question.name == "profile":
        return known["credentials"] == "ROLE"
    return question.name == "credentials" and bool(known.get("role_arn") or known.get("profile"))


def _asked(question: Question, choices: tuple[str, ...], default: str | None, ask: Ask) -> str:
    finding: Finding | None = None
    while True:
        value = ask(question, choices, default, finding).strip()
        begun = [choice for choice in choices if value and choice.startswith(value.upper())]
        value = begun[0] if len(begun) == 1 else _choice(value, choices) or value
        finding = _finding(question, choices, value)
        if finding is None:
            return value


def _checked_flag(question: Question, choices: tuple[str, ...], value: str) -> str:
    value = _choice(value, choices) or value
    if finding := _finding(question, choices, value):
        raise InvalidInput(f"`{question.flag}`: {finding.message}", hint=finding.hint)
    return value


def _finding(question: Question, choices: tuple[str, ...], value: str) -> Finding | None:
    if choices:
        hint = did_you_mean(value, choices) or listed(choices)
        return None if value in choices else Finding(f"`{shown(value)}` is not a choice", hint)
    if not value.isprintable():
        return Finding(f"`{shown(value)}` holds a control character", "remove it")
    if value == "":
        return None if question.may_be_empty else Finding("this cannot be empty")
    if question.setting is None or "${" in value:
        # A reference to the environment is checked with the whole document.
        return None
    return value_finding(*question.setting, value)


def _choice(value: str, choices: tuple[str, ...]) -> str | None:
    return next((choice for choice in choices if choice.lower() == value.lower()), None)


def _without_effect(question: Question, known: Mapping[str, str]) -> InvalidInput:
    given = [
        f"{item.flag} {known[item.name]}"
        for item in QUESTIONS
        if item.name in ("credentials", "table_format", "catalog") and item.name in known
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
        f"{flags} {verb} missing, and there is no terminal to ask at", hint=f"give\n{about}"
    )
