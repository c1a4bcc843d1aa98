"""One attempt to hand over a mail: encryption, login, and a server that says no or goes away."""

from pathlib import Path

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from gwd.alerts.queue import Addressee, Message
from gwd.alerts.service import AlertRecord
from gwd.channels import mail
from gwd.channels.smtp import Mailer, MailServer
from tests.support.certificates import authority, server_tls
from tests.support.receivers import MailBox, open_mail_box

TO = "ada@acme.example"
PASSWORD = "correct horse"


def composed(title: str = "A title", *, to: str = TO, sender: str = "gw@gate.example"):
    alert = AlertRecord(
        id="evt_1",
        type="alert.key_limit",
        severity="warning",
        title=title,
        message=f"What happened: {title}",
        url="https://app.example/keys/key_1",
        data={},
        organization_id="org_1",
        created_at="2026-11-29T00:00:00Z",
    )
    addressee = Addressee(organization_id="org_1", destination_id=None, kind="email", address=to)
    message = Message(
        addressee=addressee, delivery_ids=("dlv_1",), alerts=(alert,), type=alert.type, attempt=0
    )
    return mail.compose(
        message, sender=sender, organization="Zürich AG", app_url="https://app.example", now_us=0
    )


def mailer(box: MailBox, **fields) -> Mailer:
    server = {"host": "localhost", "port": box.port, "tls": "none", "sender": "gw@gate.example"}
    return Mailer(MailServer(**{**server, **fields}))


def check(
    server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: LoginPassword
) -> AuthResult:
    """Accepts one password."""
    return AuthResult(success=data.password == PASSWORD.encode(), handled=False)


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A server's context that the machine trusts."""
    signer = authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(signer.file))
    return server_tls(tmp_path, by=signer)


async def test_starttls_with_a_login(trusted) -> None:
    options = {"tls_context": trusted, "require_starttls": True, "authenticator": check}
    async with open_mail_box(auth_required=True, **options) as box:
        good = mailer(box, tls="starttls", username="gw", password=PASSWORD)
        outcome = await good.send(composed(), TO)
        assert (outcome.error, outcome.response_status) == (None, 250)
        assert box.encrypted == [True]
        assert len(box.to(TO)) == 1
        wrong = mailer(box, tls="starttls", username="gw", password="sesame-open")
        outcome = await wrong.send(composed(), TO)
        assert outcome.response_status == 535
        assert "refused the user name or the password" in (outcome.error or "")
        assert "password_ref" in (outcome.error or "")
        assert "sesame" not in (outcome.error or "")
        plain = mailer(box, tls="none", username="gw", password=PASSWORD)
        outcome = await plain.send(composed(), TO)
        assert outcome.error is not None
        assert len(box.to(TO)) == 1


async def test_tls_from_the_first_byte(trusted) -> None:
    async with open_mail_box(tls=trusted) as box:
        outcome = await mailer(box, tls="tls").send(composed(), TO)
        assert outcome.error is None
        assert box.encrypted == [True]
        outcome = await mailer(box, tls="tls", host="127.0.0.1").send(composed(), TO)
        assert "certificate for another" in (outcome.error or "")


async def test_a_certificate_that_nobody_knows_is_not_accepted(tmp_path: Path) -> None:
    context = server_tls(tmp_path)
    async with open_mail_box(tls_context=context) as box:
        outcome = await mailer(box, tls="starttls").send(composed(), TO)
        assert "self-signed certificate" in (outcome.error or "")
        assert box.mails == []
    async with open_mail_box(tls=context) as box:
        outcome = await mailer(box, tls="tls").send(composed(), TO)
        assert "self-signed certificate" in (outcome.error or "")
        assert box.mails == []


async def test_a_server_without_starttls_gets_no_mail_in_the_clear() -> None:
    async with open_mail_box() as box:
        outcome = await mailer(box, tls="starttls").send(composed(), TO)
        assert "STARTTLS" in (outcome.error or "")
        assert box.mails == []


async def test_a_server_that_goes_away_or_says_later_is_a_failure_and_not_an_end() -> None:
    async with open_mail_box() as box:
        box.drops = 1
        box.answers = ["451 try again later", "554 no"]
        sender = mailer(box)
        outcomes = [await sender.send(composed(), TO) for _ in range(4)]
        assert [(o.error is None, o.response_status, o.is_final) for o in outcomes] == [
            (False, outcomes[0].response_status, False),
            (False, 451, False),
            (False, 554, False),
            (True, 250, False),
        ]
        assert "try again later" in (outcomes[1].error or "")
        assert len(box.to(TO)) == 1
    outcome = await sender.send(composed(), TO)
    assert f"localhost:{box.port}" in (outcome.error or "")


@pytest.mark.parametrize(
    "name",
    [
        "a\r\nBcc: all@acme.example",
        "a\nBcc: all@acme.example\n\nbody",
        "a\rBcc: all@acme.example",
        "a\u2028Bcc: all@acme.example",
        "a\x00b\x0b\x0c\x85",
        "Schlüssel für Zürich – 100 % ✓",
        "鍵の上限",
        "=?utf-8?q?=0ABcc:_all=40acme.example?=",
        "x" * 5_000,
        "ü" * 5_000,
        '"quoted" <all@acme.example>, b@acme.example',
        "\ud800 half a pair",
    ],
)
async def test_no_name_is_a_header(name: str) -> None:
    async with open_mail_box() as box:
        outcome = await mailer(box).send(composed(f"Key {name} is at 80 %"), TO)
        assert outcome.error is None
        assert [address for address, _ in box.mails] == [TO]
        [got] = box.to(TO)
        assert got["Bcc"] is None
        assert got["To"] == TO
        assert "\n" not in got["Subject"]
        assert len(got["Subject"]) <= mail.MAX_SUBJECT
        assert got["Subject"].startswith("Key ")
        body = got.get_body(("plain",))
        assert body is not None
        shown = "".join(c for c in name if c.isprintable())[:20]
        if name.isprintable():
            assert shown.replace("=?", "= ?") in got["Subject"]
            assert shown in body.get_content()


@pytest.mark.parametrize(
    "address",
    [
        "root,ada@acme.example",
        "a;b@acme.example",
        "<r>@acme.example",
        "a\nb@acme.example",
        "=?utf-8?q?=0abcc=3a_all=40acme.example?=@x.example",
    ],
)
async def test_one_address_is_one_recipient(address: str) -> None:
    """Of a version that took such addresses: nobody else gets the mail."""
    async with open_mail_box() as box:
        outcome = await mailer(box).send(composed(), address)
        assert "must be an address" in (outcome.error or "")
        assert box.mails == []


async def test_the_sender_may_have_a_name() -> None:
    async with open_mail_box() as box:
        sender = "Gâteway <gw@gate.example>"
        outcome = await mailer(box, sender=sender).send(composed(sender=sender), TO)
        assert outcome.error is None
        [got] = box.to(TO)
        assert got["From"] == sender
        assert got["Message-ID"] == "<dlv_1@gate.example>"
