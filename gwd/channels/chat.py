"""A message in a chat workspace, through its incoming webhook: Slack's shape, or the card of a Teams workflow.

Slack: `text` with blocks, `&`, `<` and `>` escaped, so that no name is a mention
(docs.slack.dev/messaging/formatting-message-text, read 2026-11-29). Teams: an adaptive card in an attachment
(learn.microsoft.com, "Post to a channel when a webhook request is received", read 2026-11-29). Its words stand in text
runs, which know no Markdown: those of a TextBlock would have to be escaped, and the app on phones shows the backslashes
(learn.microsoft.com, "Format cards in Teams"; microsoft/AdaptiveCards, 5590; both read 2026-11-29). Other servers
that take Slack's shape (Mattermost, Rocket.Chat) read `text`.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from gwd.alerts.queue import Message, Outcome
from gwd.alerts.service import AlertRecord
from gwd.channels.answers import outcome_of
from gwd.channels.text import LISTED, for_people, heading, severity, title, unlisted
from gwd.outbound import OutboundClient

ChatFormat = Literal["slack", "teams"]

_TEAMS_HOSTS: Final = (".logic.azure.com", ".api.powerplatform.com", ".webhook.office.com")
_COLOURS: Final = {"info": "accent", "warning": "warning", "critical": "attention"}
MAX_HEADER: Final = 150
MAX_SECTION: Final = 2_900
MAX_WORDS: Final = 2_000
"""Of one message, so that its link has room behind it."""


def format_of(url: str, given: str | None) -> ChatFormat:
    """The one that was named, or what the address tells."""
    if given is not None:
        return "teams" if given == "teams" else "slack"
    host = urlsplit(url).hostname or ""
    return "teams" if host.endswith(_TEAMS_HOSTS) else "slack"


async def send(client: OutboundClient, url: str, message: Message) -> Outcome:
    """One attempt."""
    shape = slack if format_of(url, message.addressee.chat_format) == "slack" else teams
    body = msgspec.json.encode(shape(message.alerts))
    return outcome_of(
        await client.post(url, body=body, headers={"content-type": "application/json"})
    )


def slack(alerts: Sequence[AlertRecord]) -> dict[str, Any]:
    """The body for Slack and those who follow it."""
    lines = [
        f"{_slack(alert.message[:MAX_WORDS])} <{_slack(alert.url)}|Open>"
        if len(alerts) == 1
        else f"• {_slack(alert.title)} <{_slack(alert.url)}|Open>"
        for alert in alerts[:LISTED]
    ]
    if more := unlisted(alerts):
        lines.append(more)
    level, text = severity(alerts), "\n".join(lines)
    return {
        "text": f"*{_slack(title(alerts))}*\n{text}",
        "blocks": [
            {
                "type": "header",
                "text": {
                    "type": "plain_text",
                    "text": heading(alerts)[:MAX_HEADER],
                    "emoji": False,
                },
            },
            {"type": "section", "text": {"type": "mrkdwn", "text": _cut(lines)}},
            {
                "type": "context",
                "elements": [
                    {"type": "mrkdwn", "text": f"{level} · {_slack(alerts[0].type)}"},
                ],
            },
        ],
    }


def teams(alerts: Sequence[AlertRecord]) -> dict[str, Any]:
    """The body for a Teams workflow."""
    texts = [
        for_people(alert.message[:MAX_WORDS])
        if len(alerts) == 1
        else f"{for_people(alert.title)} ({alert.url})"
        for alert in alerts[:LISTED]
    ]
    if more := unlisted(alerts):
        texts.append(more)
    above = _words(
        heading(alerts), weight="bolder", size="medium", color=_COLOURS[severity(alerts)]
    )
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [above, *map(_words, texts)],
        "actions": [{"type": "Action.OpenUrl", "title": "Open", "url": alerts[0].url}],
    }
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}


def _cut(lines: Sequence[str]) -> str:
    """As many whole lines as a section of Slack takes; a line alone is cut where it must be."""
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if kept and size > MAX_SECTION:
            break
        kept.append(line)
    return "\n".join(kept)[:MAX_SECTION]


def _slack(text: str) -> str:
    plain = for_people(text)
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _words(text: str, **style: str) -> dict[str, Any]:
    """A paragraph of a card, as it stands."""
    run = {"type": "TextRun", "text": text, **style}
    return {"type": "RichTextBlock", "inlines": [run]}
