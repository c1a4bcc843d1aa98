"""What the words of a failed answer say, against its status: whose fault it was and of what kind.

Vendors disagree with their own status codes: an empty account is a 400, a 403 or a 429, a full context a 400 or a
500, an unknown model a 400. The rules look at the vendor's own words only, never at what it quotes: that may be the
caller's text. The one for refused proofs does, as it sends nothing anywhere else. All texts are in lower case.
"""

import re
from typing import Final

from gwd.core.errors import FaultDetail, FaultReason

Finding = tuple[FaultReason, FaultDetail | None]

_QUOTA: Final = (
    "insufficient_quota",
    "insufficient quota",
    "insufficient_user_quota",
    "exceeded your current quota",
    "exceeded_current_quota",
    "credit balance is too low",
    "credit balance too low",
    "payment required",
    "payment instrument",
    "billing_not_active",
    "billing not active",
    "account is not active",
    "billing hard limit",
    "billing_hard_limit",
    "spending limit",
    "spending_limit",
    "spend limit",
    "api usage limits",
    "usage_limit_reached",
    "out of credits",
    "insufficient credits",
    "insufficient_credits",
    "not have enough credits",
    "have any credits",
    "available credits",
    "monthly included credits",
    "insufficient balance",
    "insufficient_balance",
    "insufficient account balance",
    "balance is insufficient",
    "insufficient funds",
    "overdue balance",
    "accountoverdue",
    "arrearage",
    "account is in good standing",
    "free tier of the model has been exhausted",
    "余额不足",
    "额度不足",
    "欠费",
)
# Money, which no minute brings back.
_EMPTY_PURSE: Final = (
    "balance",
    "credits",
    "billing_",
    "payment",
    "spend",
    "insufficient_",
    "arrearage",
    "余额",
    "欠费",
)
# An allowance that is used up, in any order of the words; beside a word for a minute it is a throttle.
_ALLOWANCE: Final = re.compile(
    r"\b(?:quota|allowance|allotment)\b[^.]{0,60}\b(?:exceeded|exhausted|used up|reached|depleted|consumed)\b"
    r"|\b(?:exceeds?|exceeded|exhausted|used up|reached|hit|over|out of|depleted)\b[^.]{0,60}"
    r"\b(?:quota|allowance|allotment|subscription|usage limit|(?:daily|weekly|monthly|free|plan)\b[^.]{0,20}\blimit)\b"
    r"|\b(?:daily|weekly|monthly|subscription|plan)\b[^.]{0,20}\b(?:limit|quota|usage)\b[^.]{0,30}"
    r"\b(?:exceeded|exhausted|reached|used)\b"
    r"|\busage limit\b|\bper[- _](?:day|week|month)\b|额度"
)
_OF_A_MINUTE: Final = re.compile(
    r"per[ _-]?(?:minute|second|min\b|sec\b)|\b[rt]p[ms]\b|/(?:min|minute|sec|second)\b|每分钟|每秒"
)
# "Limit 30000, Requested 45000": no waiting makes room for this one, and others have as much as before.
_LIMIT_AND_ASKED: Final = re.compile(
    r"\blimit:? (\d[\d,]*)\b.{0,60}?\brequested:? (\d[\d,]*)", re.DOTALL
)
# Words that say it as an error code or under a status of that meaning; in other texts they may be the client's own.
_QUOTA_WORD: Final = ("billing",)
_POLICY_WORD: Final = ("moderation",)
_THROTTLED_CODE: Final = (
    "rate_limit",
    "ratelimit",
    "throttl",
    "too_many_requests",
    "resource_exhausted",
)
# A request above the tokens of a minute is refused as too large, though another account may take it.
_THROTTLED: Final = ("per minute (tpm)", "per min (tpm)")
_CONTEXT: Final = (
    "context_length_exceeded",
    "context length",
    "context window",
    "context_window_exceeded",
    "maximum context",
    "maximum model length",
    "max_model_len",
    "model_max_prompt_tokens_exceeded",
    "tokens_limit_reached",
    "prompt is too long",
    "prompt too long",
    "prompt exceeds max length",
    "maximum prompt length",
    "prompt token count of",
    "input is too long",
    "input tokens exceed",
    "maximum input length",
    "maximum allowed input length",
    "range of input length should be",
    "input length and … exceed",
    "too many tokens",
    "too many input tokens",
    "exceeded model token limit",
    "exceeds the maximum number of tokens",
    "reduce the length of the messages",
    "length of all messages is too long",
)
# A server that quotes its own fields.
_CONTEXT_QUOTED: Final = (
    "`inputs` tokens + `max_new_tokens` must be",
    "`inputs` must have less than",
)
# The words of a server that says it with status 500 too.
_CONTEXT_SIZE: Final = (
    "exceed_context_size",
    "available context size",
    "context size has been exceeded",
    "context size exceeded",
)
_POLICY: Final = (
    "content_policy",
    "content policy",
    "content_filter",
    "content management policy",
    "content filtering policy",
    "moderation system",
    "input was flagged",
    "new_sensitive",
    "safety system",
    "usage policy",
    "usage policies",
)
# In the whole message, without backticks: reasoning that another account made, that was changed on the way, or that
# stands alone.
_SIGNATURE: Final = (
    "invalid signature",
    "signature in thinking",
    "thinking.signature",
    "thought_signature",
    "thought signature",
    "thoughtsignature",
    "in redacted_thinking block",
    "redacted_thinking.data",
    "expected thinking or redacted_thinking",
    "blocks in the latest assistant message cannot be modified",
    "thinking blocks cannot be modified",
    "invalid_encrypted_content",
    "of type 'reasoning' was provided without",
    "item with id 'rs_",
)
_ENCRYPTED: Final = re.compile(
    r"encrypted[ _]content\b.*\b(?:verified|decrypted|parsed)|\b(?:decrypt|verify)\b.*encrypted[ _]content",
    re.DOTALL,
)
_OVERLOADED: Final = ("overloaded", "over capacity", "at capacity", "server_is_overloaded")
_AUTH: Final = (
    "invalid_api_key",
    "invalid api key",
    "api key not valid",
    "api key not found",
    "api key expired",
    "incorrect api key",
    "invalid x-api-key",
    "authentication_error",
    "deactivated account",
    "reported as leaked",
)
_WRONG_PLACE: Final = "user location is not supported"
# An account of ours that was switched off: a code such as account_deactivated, or a sentence.
_SWITCHED_OFF: Final = re.compile(
    r"\b(?:account|organi[sz]ation|project|team|workspace|api[ _]key)(?: (?:…|\S*[\d:-]\S*))?"
    r"(?:[ _](?:is|was|has been))?[ _](?:disabled|deactivated|restricted|suspended|banned|terminated)\b"
)
_NO_MODEL_CODE: Final = (
    "model_not_found",
    "model_not_exist",
    "model_not_supported",
    "model_not_available",
    "model_decommissioned",
    "unsupported_api_for_model",
    "unavailable_model",
    "unknown_model",
    "invalid_model",
)
# The model's name is ours, so a vendor that does not know it blames us. Only at the start: a sentence about the model
# and something the caller asked of it ("tools are not supported by this model") begins otherwise.
_NO_MODEL: Final = re.compile(
    r"(?:invalid params, )?(?:(?:the |this )?(?:requested |specified |provided )?(?:… )?model(?: name| id| identifier)?"
    r"(?::? (?:…|\S*[\d/:.-]\S*))?(?: is| was| has been| does)? "
    r"(?:not exist|not found|not supported|not available|invalid|disabled|decommissioned)\b"
    r"|(?:unknown|unavailable|unsupported|invalid) model(?: name| id)?\s*(?:[:,.…]|$)"
    r"|\S+ is not a valid model id\b|not found the model |unable to access model |invocation of model id "
    r"|no (?:allowed )?(?:endpoints|providers) (?:found|available|are available) for |模型不存在)"
)
# A complaint about a field, which names it: the client chose that name, so only the code tells of anything else.
_OF_A_FIELD: Final = re.compile(
    r"extra inputs? |extra fields? |extra_forbidden|additional propert|cannot find field"
    r"|(?:unknown|unrecogni[sz]ed|unexpected|unsupported) (?:request |keyword )?"
    r"(?:parameter|argument|field|name|property|key)\b|invalid (?:parameter|field|property)\b"
)
# A 403 or 404 speaks of the request where it names a part of it, whatever else it names: the next request may not
# hold such a part.
_OF_THE_REQUEST: Final = re.compile(
    r"\b(?:tools?|tool[ _](?:use|calls?|choice)|functions?|image|images|picture|pictures|photos?|vision|multi-?modal"
    r"|audio|videos?|speech|files?|pdfs?|documents?|attachments?|prompts?|conversations?|threads?|responses?"
    r"|previous_response(?:_id)?|vector stores?|containers?|items?|assistants?|skills?|sessions?|cached ?contents?"
    r"|batch(?:es)?|messages?|contents?|inputs?|parameters?|schemas?|structured outputs?|json|response_format"
    r"|streaming|stream|web[ _]search|grounding|cache[ _]control|prompt caching|reasoning|thinking|temperature"
    r"|prefill|logprobs|citations?|urls? (?:you|in)|system instructions?|developer instructions?)\b"
)
# An address that leads nowhere, or a place in front of the vendor that lets nobody in.
_OF_THE_ADDRESS: Final = re.compile(
    r"page not found|no route|unknown (?:url|path|route|endpoint)|invalid url|cannot (?:get|post)\b|/v\d"
    r"|url [^.]{0,20}not found|resource (?:was )?not found|endpoint (?:was )?not found|no handler|nosuchbucket"
)
_OF_THE_ACCOUNT: Final = re.compile(
    r"\b(?:models?|deployments?|accounts?|organi[sz]ations?|projects?|teams?|workspaces?|tenants?|tenancy|subscriptions?"
    r"|subscribe|plans?|tiers?|billing|quota|api[ _-]?keys?|keys?|credentials?|tokens?|scopes?|permissions?|access"
    r"|authori[sz](?:ed|ation)|unauthori[sz]ed|authenticat(?:ed|ion)|regions?|countr(?:y|ies)|territor(?:y|ies)"
    r"|locations?|ip(?: address)?|referr?er|origin|entitled|entitlement|verified|verify|licen[sc]ed?|gated|agreement"
    r"|terms|roles?|iam|data policy|whitelist(?:ed)?|allow-?list(?:ed)?|users?|caller|customers?|consumer"
    r"|service|api)\b|模型|账户|账号|权限"
)
_BARE: Final = re.compile(
    r"\W*(?:http )?(?:40[34]\W*)?(?:error\W*)?(?:not[ _]found|forbidden|denied|no)?\W*"
)
_ACCESS_CODE: Final = (
    "permission_denied",
    "permissiondenied",
    "access_denied",
    "accessdenied",
    "not_authorized",
    "unauthorized",
    "unsupported_country",
    "permission_error",
    "forbidden",
    "deploymentnotfound",
    "deployment_not_found",
    "invalid_api_key",
    "account",
    "organization",
    "project",
)
_QUOTED: Final = re.compile(r"""(?<!\w)(["'`]).*?\1(?!\w)|“.*?”""", re.DOTALL)
_INNER_MESSAGE: Final = re.compile(r'"error"\s*:\s*\{[^{}]*?"message"\s*:\s*"((?:[^"\\]|\\.)*)"')


def own_words(message: str) -> str:
    """The message without what it quotes; of an error that passes on another one, the inner message."""
    inner = _INNER_MESSAGE.search(message)
    return _QUOTED.sub("…", inner[1] if inner else message)


def is_throttled_code(codes: str) -> bool:
    """Whether the error's code or type says that it is a limit; in lower case."""
    return _any(_THROTTLED_CODE, codes)


def is_too_large_for_a_minute(said: str) -> bool:
    """Whether one request asked for more than a whole minute allows."""
    found = _LIMIT_AND_ASKED.search(said)
    return found is not None and _count(found[2]) > _count(found[1])


def _count(digits: str) -> int:
    return int(digits.replace(",", "")[:18] or "0")


def reason_by_words(status: int | None, codes: str, message: str, kind: str) -> Finding | None:
    """What code, type and message say of themselves; None leaves it to the status.

    `status` is None for an error inside an answer of status 200, `codes` are the error's code and type.
    """
    codes, message = codes.lower(), message.lower()
    said = own_words(message)
    of_us = "" if status in (None, 400, 422) and _OF_A_FIELD.search(said) else said
    return (
        _of_our_account(status, codes, of_us)
        or _of_the_request(status, codes, said, message)
        or _of_our_access(status, codes, of_us)
        or _of_the_vendor(status, kind, f"{codes} {said}")
    )


def _of_our_account(status: int | None, codes: str, said: str) -> Finding | None:
    """Money and rates."""
    wording = f"{codes} {said}"
    is_broken = status is not None and status >= 500
    account = status in (402, 403, 412, 429)
    if (account or is_broken or status in (None, 400)) and (
        _any(_QUOTA, wording) or _any(_QUOTA_WORD, wording if account else codes)
    ):
        if status == 429 and _OF_A_MINUTE.search(said) and not _any(_EMPTY_PURSE, wording):
            return "rate_limited", None
        return "quota_exhausted", None
    if status == 429 and _ALLOWANCE.search(said) and not _OF_A_MINUTE.search(said):
        return "quota_exhausted", None
    if (is_broken or status in (None, 400, 403, 413, 422)) and (
        _any(_THROTTLED_CODE, codes) or (status in (400, 413) and _any(_THROTTLED, said))
    ):
        return "rate_limited", None
    return None


def _of_the_request(status: int | None, codes: str, said: str, message: str) -> Finding | None:
    """What the caller alone can mend, or what goes on elsewhere or in another form."""
    wording = f"{codes} {said}"
    refused = status in (None, 400, 413, 422)
    if (refused and (_any(_CONTEXT, wording) or _any(_CONTEXT_QUOTED, message))) or (
        (refused or status == 500) and _any(_CONTEXT_SIZE, wording)
    ):
        return "bad_request", "context_length"
    whole = f"{codes} {message}".replace("`", "")
    if refused and (_any(_SIGNATURE, whole) or _ENCRYPTED.search(whole)):
        return "bad_request", "invalid_signature"
    if (refused or status == 403) and (
        _any(_POLICY, wording) or _any(_POLICY_WORD, wording if status == 403 else codes)
    ):
        return "bad_request", "content_policy"
    return None


def _of_our_access(status: int | None, codes: str, said: str) -> Finding | None:
    """Credentials and models."""
    if status in (None, 400, 403):
        if _any(_AUTH, codes) or _SWITCHED_OFF.search(codes):
            return "auth_invalid", None
        if _any(_AUTH, said) or _SWITCHED_OFF.search(said):
            return "auth_invalid", "by_words"
    if status in (None, 400, 422) and (_any(_NO_MODEL_CODE, codes) or _NO_MODEL.match(said)):
        return "model_access_denied", None
    if status in (403, 404):
        return _of_the_model_or_the_request(codes, said)
    if status == 400 and _WRONG_PLACE in said:
        return "model_access_denied", None
    return None


def _of_the_model_or_the_request(codes: str, said: str) -> Finding:
    """A refusal that speaks of the model or of our account, or else of something in this one request."""
    if _any(_NO_MODEL_CODE, codes) or _NO_MODEL.match(said) or _OF_THE_ADDRESS.search(said):
        return "model_access_denied", None
    if _OF_THE_REQUEST.search(said):
        return "bad_request", "elsewhere"
    if _OF_THE_ACCOUNT.search(said) or _BARE.fullmatch(said) or _any(_ACCESS_CODE, codes):
        return "model_access_denied", None
    return "bad_request", "elsewhere"


def _of_the_vendor(status: int | None, kind: str, wording: str) -> Finding | None:
    """Its own trouble, and what is left of errors without a status."""
    if status is not None and status < 500:
        return None
    if _any(_OVERLOADED, wording):
        return "overloaded", None
    if status is None and ("rate_limit" in wording or "rate limit" in wording):
        return "rate_limited", None
    if status is None and kind == "invalid_request_error":
        return "bad_request", None
    return None


def _any(words: tuple[str, ...], text: str) -> bool:
    return any(word in text for word in words)
