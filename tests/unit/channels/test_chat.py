"""Messages in chat workspaces: the shape of each, the same words, and lists that end."""

import msgspec
import pytest

from gwd.alerts import samples
from gwd.alerts.service import AlertRecord
from gwd.channels import chat
from gwd.channels.text import LISTED
from tests.unit.channels.test_mail import alert


def keys(count: int, name: str = "batch") -> list[AlertRecord]:
    return [alert("alert.key_limit", title=f"Key {name}-{number}") for number in range(count)]


def test_one_alert_for_slack() -> None:
    sent = chat.slack([alert("model.retired")])
    assert sent["text"].startswith("*[test] Acme Fast 1 is retired*\nacme/fast-1 is retired since")
    header, section, context = sent["blocks"]
    assert header["text"]["text"] == "[test] Acme Fast 1 is retired"
    assert " UTC. Requests to it go to acme/fast-2" in section["text"]["text"]
    assert section["text"]["text"].endswith("<https://gate.example/models/acme/fast-1|Open>")
    assert context["elements"][0]["text"] == "critical · model.retired"


def test_one_alert_for_teams() -> None:
    card = chat.teams([alert("model.retired")])["attachments"][0]["content"]
    heading, words = (block["inlines"][0] for block in card["body"])
    assert (heading["text"], heading["color"]) == ("[test] Acme Fast 1 is retired", "attention")
    assert words["text"].startswith("acme/fast-1 is retired since 2")
    assert card["actions"][0]["url"] == "https://gate.example/models/acme/fast-1"


def test_many_are_listed_and_the_rest_counted() -> None:
    many = keys(LISTED + 2)
    sent = chat.slack(many)
    assert sent["text"].splitlines()[0] == "*22 alerts of one kind: Key batch-0 …*"
    assert len(sent["text"].splitlines()) == LISTED + 2
    assert sent["text"].endswith("and 2 more")
    assert sent["blocks"][0]["text"]["text"] == "22 alerts of one kind"
    card = chat.teams(many)["attachments"][0]["content"]
    texts = [block["inlines"][0]["text"] for block in card["body"]]
    assert texts[0] == "22 alerts of one kind"
    assert texts[1] == "Key batch-0 (https://gate.example/keys/key_sample)"
    assert (len(texts), texts[-1]) == (LISTED + 2, "and 2 more")


def test_long_names_stay_within_what_slack_takes() -> None:
    sent = chat.slack(keys(LISTED, "x" * 300))
    header, section, _ = sent["blocks"]
    assert len(header["text"]["text"]) <= chat.MAX_HEADER
    assert len(section["text"]["text"]) <= chat.MAX_SECTION
    assert section["text"]["text"].endswith("|Open>")  # whole lines only
    [long] = keys(1, "y" * 5_000)
    header, section, _ = chat.slack([msgspec.structs.replace(long, message="z" * 5_000)])["blocks"]
    assert len(header["text"]["text"]) == chat.MAX_HEADER
    assert len(section["text"]["text"]) <= chat.MAX_SECTION
    assert section["text"]["text"].endswith("|Open>")


@pytest.mark.parametrize("type_", samples.TYPES)
def test_every_type_has_words_for_each_shape(type_: str) -> None:
    for shape in (chat.slack, chat.teams):
        text = msgspec.json.encode(shape([alert(type_)])).decode()
        assert alert(type_).url in text
        assert len(text) < 28_000  # what Teams takes


@pytest.mark.parametrize(
    ("url", "given", "wanted"),
    [
        ("https://hooks.slack.com/services/a", None, "slack"),
        ("https://chat.example.com/hooks/a", None, "slack"),
        ("https://chat.example.com/hooks/a", "teams", "teams"),
        ("https://prod-1.westeurope.logic.azure.com/workflows/a", None, "teams"),
        ("https://x.environment.api.powerplatform.com/powerautomate/a", None, "teams"),
        ("https://logic.azure.com.example.com/a", None, "slack"),
    ],
)
def test_the_shape_is_what_was_named_or_what_the_address_tells(
    url: str, given: str | None, wanted: str
) -> None:
    assert chat.format_of(url, given) == wanted
