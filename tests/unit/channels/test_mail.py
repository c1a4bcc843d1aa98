"""Mails as they are sent: kept whole for one alert and a digest; all of them readable wherever mail is read.

`mails/` holds what they are. After a change that is meant: delete the files, run this, look at the pages in a browser
(narrow and wide, light and dark), and commit them.
"""

import re
from email.message import EmailMessage
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from gwd.alerts import samples
from gwd.alerts.queue import Addressee, Message
from gwd.alerts.service import AlertRecord
from gwd.channels import mail
from gwd.channels.text import LISTED
from gwd.core.clock import iso
from tests.support.store import NOW_US

KEPT = Path(__file__).parent / "mails"
APP = "https://gate.example"
VOID = {"meta", "br"}


def alert(type_: str, **fields: str) -> AlertRecord:
    """A sample as it stands on record."""
    made = samples.sample(type_, app_url=APP, now_us=NOW_US)
    assert made is not None
    shown = {n: getattr(made, n) for n in AlertRecord.__struct_fields__ if hasattr(made, n)}
    record = AlertRecord(
        **{**shown, "id": "evt_1", "organization_id": "org_1", "created_at": iso(NOW_US)}
    )
    return msgspec.structs.replace(record, **fields)


def composed(*alerts: AlertRecord, destination_id: str | None = None) -> EmailMessage:
    message = Message(
        addressee=Addressee(
            organization_id="org_1",
            destination_id=destination_id,
            kind="email",
            address="ada@example.com",
        ),
        delivery_ids=tuple(f"dlv_{number}" for number in range(len(alerts))),
        alerts=alerts,
        type=alerts[0].type,
        attempt=0,
    )
    return mail.compose(
        message,
        sender="Gateway <gateway@example.com>",
        organization="Acme & Sons",
        app_url=APP,
        now_us=NOW_US,
    )


def digest(count: int) -> EmailMessage:
    keys = [
        alert("alert.key_limit", title=f"Key batch-{number} has used 80 % of its limit")
        for number in range(count)
    ]
    return composed(*keys, destination_id="dst_1")


def parts(sent: EmailMessage) -> tuple[str, str]:
    """Its plain text and its page."""
    plain, page = sent.get_body(("plain",)), sent.get_body(("html",))
    assert plain is not None
    assert page is not None
    return plain.get_content(), page.get_content()


@pytest.mark.parametrize("name", ["model.retired", "alert.key_limit", "digest"])
def test_a_mail_is_what_was_kept(name: str) -> None:
    sent = digest(LISTED + 2) if name == "digest" else composed(alert(name))
    made = {
        KEPT / f"{name}.{ending}": text
        for ending, text in zip(("txt", "html"), parts(sent), strict=True)
    }
    missing = {path: text for path, text in made.items() if not path.exists()}
    for path, text in missing.items():
        path.write_text(text)
    assert not missing, "written; look at them and commit them"
    assert {path: path.read_text() for path in made} == made


class Page(HTMLParser):
    """Every tag closed in order; what is loaded, and where links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.links: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self.open.append(tag)
        self.loads += [
            value for name, value in given.items() if name in ("src", "srcset", "background")
        ]
        self.loads += [tag] if tag in ("link", "script", "img", "iframe", "object", "form") else []
        self.links += [given["href"]] if "href" in given else []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("type_", [*samples.TYPES, "digest"])
def test_every_mail_stands_by_itself_and_fits_a_narrow_screen(type_: str) -> None:
    sent = digest(3) if type_ == "digest" else composed(alert(type_))
    text, html = parts(sent)
    page = Page(html)
    assert page.loads == []
    assert "url(" not in html
    assert "@import" not in html
    assert all(link.startswith(f"{APP}/") for link in page.links)
    assert "viewport" in html
    # No width but the card's own, which gives way; and a long word breaks.
    assert set(re.findall(r"(?<!max-)width[:=]\"?(\w+%?)", html.partition("</head>")[2])) == {
        "100%"
    }
    assert "overflow-wrap:anywhere" in html
    assert "prefers-color-scheme: dark" in html
    assert not re.search(r"\dT\d\d:", text)  # times as people write them
    assert "color:#" in html
    for link in page.links:
        assert link in text


def test_the_headers_say_who_what_and_that_nobody_need_answer() -> None:
    sent = composed(alert("alert.key_limit"))
    assert sent["Subject"] == "[test] Key ci has used 80 % of its limit"
    assert sent["Message-ID"] == "<dlv_0@example.com>"
    assert sent["Auto-Submitted"] == "auto-generated"
    assert sent["X-GW-Event"] == "alert.key_limit"
    assert digest(3)["Subject"].startswith("3 alerts of one kind: Key batch-0")
    assert len(composed(alert("alert.test", title="x" * 500))["Subject"]) <= mail.MAX_SUBJECT


def test_what_somebody_typed_is_text() -> None:
    nasty = '<b onclick="x()">&amp;\u202e\x00</b>\r\nBcc: eve@example.com'
    sent = composed(alert("alert.test", title=nasty, message=nasty))
    _, html = parts(sent)
    Page(html)
    assert "<b " not in html
    assert "&lt;b onclick=&quot;x()&quot;&gt;&amp;amp;" in html
    assert sent["Bcc"] is None
