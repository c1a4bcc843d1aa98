"""The verbs that are the same for every noun, declared with one line each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from gwctl.changes import delete_record, update_record
from gwctl.records import Resource, list_records, show_record
from gwctl.session import Session
from gwctl.tree import Noun
from gwctl.values import arg


def add_list(noun: Noun, resource: Resource) -> None:
    """Declare `list` without filters."""

    def list_(session: Session) -> None:
        list_records(session, resource)

    list_.__doc__ = f"List {resource.noun} records."
    noun.verb("list", *_examples(noun, "list", "", "--all --json"), lists=True)(list_)


def add_show(noun: Noun, resource: Resource, example: str) -> None:
    """Declare `show NAME`."""

    def show(
        session: Session, reference: Annotated[str, arg("NAME", f"{resource.noun} name or id.")]
    ) -> None:
        show_record(session, resource, reference)

    show.__doc__ = f"Show one {resource.noun} with all its fields."
    noun.verb("show", *_examples(noun, f"show {example}", "", "--json"))(show)


def add_delete(noun: Noun, resource: Resource, example: str) -> None:
    """Declare `delete NAME`, which asks for the name."""

    def delete(
        session: Session, reference: Annotated[str, arg("NAME", f"{resource.noun} name or id.")]
    ) -> None:
        delete_record(session, resource, reference)

    delete.__doc__ = f"Delete {_one(resource)}; asks for its name unless --yes is given."
    noun.verb("delete", *_examples(noun, f"delete {example}", "", "--yes"), writes=True)(delete)


def add_switches(
    noun: Noun, resource: Resource, example: str, *, on: Mapping[str, Any], off: Mapping[str, Any]
) -> None:
    """Declare `enable` and `disable`, which patch the record."""
    for verb, change in (("disable", off), ("enable", on)):
        if not change:
            continue
        noun.verb(verb, *_examples(noun, f"{verb} {example}", "", "--dry-run"), writes=True)(
            _switch(resource, verb, change)
        )


def _switch(resource: Resource, verb: str, change: Mapping[str, Any]) -> Callable[..., None]:
    def switch(
        session: Session, reference: Annotated[str, arg("NAME", f"{resource.noun} name or id.")]
    ) -> None:
        update_record(session, resource, reference, change)

    switch.__doc__ = f"{verb.capitalize()} {_one(resource)}."
    return switch


def _one(resource: Resource) -> str:
    return f"{'an' if resource.noun[0] in 'aeio' else 'a'} {resource.noun}"


def _examples(noun: Noun, verb: str, *endings: str) -> Sequence[str]:
    return [f"gwctl {noun.name} {verb} {ending}".rstrip() for ending in endings]
