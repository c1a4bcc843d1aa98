"""A mail: the same alerts as plain text and as HTML, which is readable on a dark screen and a narrow one.

The HTML is tables and inline styles, which is what mail programs understand; all that a user typed is escaped.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from html import escape
from typing import Final

from gwd.alerts.queue import Message
from gwd.alerts.service import AlertRecord
from gwd.channels.text import LISTED, for_people, heading, severity, title, unlisted
from gwd.core import links
from gwd.core.clock import US_PER_S

MAX_SUBJECT: Final = 200
_COLOURS: Final = {"info": "#3563a8", "warning": "#9a6700", "critical": "#b3261e"}

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
@media (prefers-color-scheme: dark) {{
  .page {{ background: #16181d !important; }}
  .card {{ background: #20232a !important; border-right-color: #363b45 !important; \
border-bottom-color: #363b45 !important; border-left-color: #363b45 !important; }}
  .info {{ border-top-color: #6ea3f0 !important; }}
  .warning {{ border-top-color: #e3a82f !important; }}
  .critical {{ border-top-color: #f2726b !important; }}
  .text {{ color: #e8e9ec !important; }}
  .quiet {{ color: #a5aab5 !important; }}
  .link {{ color: #9dc1ff !important; }}
  .rule {{ border-color: #363b45 !important; }}
}}
</style>
</head>
<body class="page" style="margin:0; padding:0; background:#f3f4f6;">
<table role="presentation" class="page" width="100%" cellpadding="0" cellspacing="0" style="background:#f3f4f6;">
<tr><td align="center" style="padding:24px 12px;">
<table role="presentation" class="card {severity}" width="100%" cellpadding="0" cellspacing="0" \
style="max-width:560px; background:#ffffff; border:1px solid #d9dce2; border-top:4px solid {colour}; \
border-radius:6px;">
<tr><td style="padding:24px; overflow-wrap:anywhere; word-break:break-word; \
font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;">
<p class="quiet" style="margin:0 0 8px; font-size:13px; color:#5b616e;">{level} · {organization}</p>
<h1 class="text" style="margin:0 0 12px; font-size:19px; line-height:1.35; color:#16181d;">{title}</h1>
{body}
</td></tr>
</table>
<p class="quiet" style="max-width:560px; margin:14px auto 0; font-size:12px; line-height:1.5; color:#5b616e; \
font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;">{why}
<a class="link" href="{settings}" style="color:#3563a8;">Change which alerts are mailed</a></p>
</td></tr>
</table>
</body>
</html>
"""
_ONE: Final = """\
<p class="text" style="margin:0 0 20px; font-size:15px; line-height:1.5; color:#16181d;">{message}</p>
<p style="margin:0;"><a class="link" href="{url}" style="font-size:15px; font-weight:600; color:#3563a8;">Open in the \
gateway</a></p>"""
_ROW: Final = """\
<p class="text rule" style="margin:0; padding:10px 0; border-top:1px solid #d9dce2; font-size:15px; line-height:1.45; \
color:#16181d;">{title}<br><a class="link" href="{url}" style="font-size:13px; color:#3563a8;">Open</a></p>"""
_MORE: Final = '<p class="quiet" style="margin:10px 0 0; font-size:14px; color:#5b616e;">{more}</p>'


def compose(
    message: Message, *, sender: str, organization: str, app_url: str, now_us: int
) -> EmailMessage:
    """The mail for one address. Its id is the delivery's, so that a second copy can be told from another alert."""
    alerts = message.alerts
    settings = links.notifications(app_url)
    why = _why(message, organization)
    mail = EmailMessage()
    mail["From"] = sender
    mail["To"] = message.addressee.address
    mail["Subject"] = _header(title(alerts))
    mail["Date"] = format_datetime(datetime.fromtimestamp(now_us / US_PER_S, UTC))
    mail["Message-ID"] = f"<{message.delivery_ids[0]}@{_domain(sender)}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Auto-Response-Suppress"] = "All"
    mail["X-GW-Event"] = message.type
    mail.set_content(_text(alerts, why, settings))
    mail.add_alternative(_html(alerts, organization, why, settings), subtype="html")
    return mail


def _header(text: str) -> str:
    """Text that stays text: what looks like an encoded word would be decoded, with the line breaks it may hold.

    Python without the mendings of CVE-2024-6923 and CVE-2026-1299 writes these breaks as headers of their own
    (github.com/python/cpython/issues/121650 and 144125, read 2026-11-29).
    """
    return text.replace("=?", "= ?")[:MAX_SUBJECT]


def _text(alerts: Sequence[AlertRecord], why: str, settings: str) -> str:
    if len(alerts) == 1:
        said = f"{for_people(alerts[0].message)}\n\n{alerts[0].url}\n"
    else:
        said = "\n".join(
            f"- {for_people(alert.title)}\n  {alert.url}\n" for alert in alerts[:LISTED]
        )
        if more := unlisted(alerts):
            said += f"\n{more}\n"
    return f"{heading(alerts)}\n\n{said}\n--\n{why}\nChange which alerts are mailed: {settings}\n"


def _html(alerts: Sequence[AlertRecord], organization: str, why: str, settings: str) -> str:
    if len(alerts) == 1:
        body = _ONE.format(
            message=escape(for_people(alerts[0].message)), url=escape(alerts[0].url, quote=True)
        )
    else:
        body = "\n".join(
            _ROW.format(title=escape(for_people(a.title)), url=escape(a.url, quote=True))
            for a in alerts[:LISTED]
        )
        if more := unlisted(alerts):
            body += _MORE.format(more=escape(more))
    level = severity(alerts)
    return _PAGE.format(
        title=escape(heading(alerts)),
        colour=_COLOURS[level],
        severity=level,
        level=level.capitalize(),
        organization=escape(organization),
        body=body,
        why=escape(why),
        settings=escape(settings, quote=True),
    )


def _why(message: Message, organization: str) -> str:
    if message.addressee.destination_id is not None:
        return f"This address is a destination for alerts of {organization}."
    return f"You get this because of your role in {organization}."


def _domain(sender: str) -> str:
    return sender.rstrip(">").rpartition("@")[2] or "localhost"
