"""channels: how an alert travels: as a signed webhook, as a message in a chat workspace, as mail.

Owns: what each channel's message looks like, and one attempt to send one.
Does not own: what is sent to whom and when (alerts' queue, jobs), which addresses may be called (outbound).
Invariants: nothing that a user typed is markup in any channel; a sealed secret is opened for one attempt only; every
attempt of a webhook is signed anew; an attempt ends as an outcome, whatever the receiver does.
Speaks to: alerts for messages and outcomes, credentials to open what is sealed, outbound.
"""

from gwd.channels.sender import ChannelSender
from gwd.channels.smtp import Mailer, MailServer

__all__ = ["ChannelSender", "MailServer", "Mailer"]
