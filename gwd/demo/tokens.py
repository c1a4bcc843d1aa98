"""The token rule of the simulated vendor: one rule for prompts and for answers.

A token is a run of up to eight ASCII letters with the blank before it, a run of up to three
digits with the blank before it, a run of white space, or one single character of anything else.
The pieces of `split` joined together are the text again, and an answer is streamed one piece per
event, so the counts a caller is shown can be checked by hand.

Beside text: four tokens for each message, 765 for an image (85 when its detail is `low`), one for
every four bytes of a file that is sent along, 1000 for a file that is only named.
"""

import re

PER_MESSAGE = 4
IMAGE = 765
IMAGE_LOW_DETAIL = 85
NAMED_FILE = 1000

_TOKEN = re.compile(r" ?[A-Za-z]{1,8}| ?[0-9]{1,3}|\s+|.", re.DOTALL)


def split(text: str) -> list[str]:
    """The tokens of a text; joined they are the text."""
    return _TOKEN.findall(text)


def count(text: str) -> int:
    return len(_TOKEN.findall(text))


def count_file(encoded: str) -> int:
    """Tokens of a file sent as base64 (with or without the head of a data URL)."""
    payload = encoded.rpartition(",")[2]
    return max(1, len(payload) * 3 // 4 // 4)
