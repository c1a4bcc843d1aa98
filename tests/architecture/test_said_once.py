"""What is said once stays said once: a key's field, and who writes lines of the audit trail."""

import re
from pathlib import Path

from gwd.api.route import LiveRoute, OpenRoute, Route
from gwd.api.routes import LIVE_ROUTES, OPEN_ROUTES, ROUTES
from gwd.core.fields import marked
from gwd.core.patches import FIXED
from gwd.keys.fields import CreateKey, PatchKey
from gwd.keys.key import OWN, Key
from gwd.keys.record import KeyRecord
from tests.support.answers import kind_of, structs_in

ROOT = Path(__file__).parents[2]
GWD = ROOT / "gwd"

WRITERS = {
    "api/perform.py",  # every request
    "jobs/topup.py",  # the node buys credit by itself
    "management/budgets.py",  # a raise that ended by the clock
    "management/revocations.py",  # what an older copy of the database did not know
    "management/time_repair.py",  # the machine's owner, at the command line
    "management/secrets.py",  # the machine's owner, at the command line
    "management/setup.py",
}
"""Who writes audit lines: one place for all requests, and what happens without one."""


def files_with(pattern: str) -> set[str]:
    wanted = re.compile(pattern)
    return {
        str(file.relative_to(GWD))
        for file in GWD.rglob("*.py")
        if wanted.search(file.read_text(encoding="utf-8"))
    }


def test_a_plain_field_of_a_key_stands_in_four_files_of_the_daemon() -> None:
    """The migration, the row, the input and the record; activity has a dimension of that name, too, and shows it."""
    elsewhere = ("activity/", "page/")
    found = {file for file in files_with(r"\bexternal_user\b") if not file.startswith(elsewhere)}
    assert found == {
        "store/migrations/0001_initial.py",
        "keys/key.py",
        "keys/fields.py",
        "keys/record.py",
    }


def test_marks_on_fields_are_on_fields_that_are_there() -> None:
    assert marked(Key, OWN) < set(Key.__struct_fields__)
    assert {"id", "hash", "label", "last_used_at"} < marked(Key, OWN)
    assert "limit_nano" not in marked(Key, OWN)
    changeable = set(CreateKey.__struct_fields__) - marked(CreateKey, FIXED)
    assert set(PatchKey.__struct_fields__) == changeable | {"disabled"}
    shown = set(KeyRecord.__struct_fields__)
    assert set(PatchKey.__struct_fields__) < shown, "whoever changes a field sees it"


def test_one_place_writes_the_audit_lines_of_requests() -> None:
    assert files_with(r"\baudit\.record\(") == WRITERS


def test_no_answer_that_shows_a_secret_shows_it_in_a_log() -> None:
    """The text of a value is what a log or a traceback would hold."""
    reported = []
    routes: tuple[Route | LiveRoute | OpenRoute, ...] = (*ROUTES, *LIVE_ROUTES, *OPEN_ROUTES)
    for answers in {route.answers for route in routes}:
        for struct in structs_in(answers):
            secret = [field.name for field in struct.fields if kind_of(field.type) == "secret"]
            if secret:
                values = dict.fromkeys(struct.cls.__struct_fields__) | dict.fromkeys(secret, "hush")
                reported.append((struct.cls.__name__, "hush" in repr(struct.cls(**values))))
    assert len(reported) >= 6
    assert [name for name, shown in reported if shown] == []
