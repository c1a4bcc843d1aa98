"""The words of a failed answer say whose fault it was, as vendors word it."""

import pytest

from gwd.core.errors import Fault
from gwd.vendors import faults
from gwd.vendors.fault_words import own_words


def _fault(status: int | None, message: str, code: str = "") -> Fault:
    return faults.classify(status, {}, code=code, kind=None, message=message)


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "You have reached your specified API usage limits. You will regain access on", ""),
        (400, "Access denied, please make sure your account is in good standing.", "Arrearage"),
        (400, "Billing hard limit has been reached", "billing_hard_limit_reached"),
        (403, "Sorry, your account balance is insufficient", ""),
        (403, "The request failed because your account has an overdue balance.", ""),
        (403, "Your team has either used all available credits or reached its limit.", ""),
        (403, "Your newly created team doesn't have any credits yet.", ""),
        (403, "The free tier of the model has been exhausted.", "AllocationQuota.FreeTierOnly"),
        (412, "Account x-1 is suspended, possibly due to reaching the monthly spending limit", ""),
        (429, "Your account is not active, please check your billing details.", ""),
        (429, "Your account org-1 is suspended due to insufficient balance, please recharge", ""),
        (429, "余额不足或无可用资源包,请充值。", "1113"),
        (500, "insufficient balance (1008)", "api_error"),
    ],
)
def test_an_empty_account_of_ours(status: int, message: str, code: str):
    assert _fault(status, message, code).reason == "quota_exhausted"


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "This organization has been disabled.", "invalid_request_error"),
        (400, "Organization has been restricted.", "organization_restricted"),
        (400, "Your OpenAI account has been deactivated, please check your email", ""),
        (403, "This key is associated with a deactivated account.", "account_deactivated"),
        (403, "Your account was suspended. Contact support.", ""),
        (403, "Consumer 'api_key:AIza' refused: project 123-abc has been suspended.", ""),
        (400, "invalid api key (2049)", ""),
        (400, "API Key not found. Please pass a valid API key.", ""),
        (400, "API key expired. Please renew the API key.", "INVALID_ARGUMENT"),
        (None, "who are you", "authentication_error"),
    ],
)
def test_an_account_of_ours_that_is_switched_off(status: int | None, message: str, code: str):
    assert _fault(status, message, code).reason == "auth_invalid"


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (413, "Request too large for model `x`", "rate_limit_exceeded"),
        (413, "Request too large on tokens per minute (TPM): Limit 6000, Requested 9000", ""),
        (400, "Rate limit reached", "rate_limit_exceeded"),
        (403, "slow down", "ThrottlingException"),
        (500, "slow down", "rate_limit_exceeded"),
    ],
)
def test_a_throttled_account_under_another_status(status: int, message: str, code: str):
    assert _fault(status, message, code).reason == "rate_limited"


@pytest.mark.parametrize(
    "message",
    [
        "Model Not Exist",
        "Model does not exist. Please check it carefully.",
        "Model not found: x-2",
        "The model `x` does not exist or you do not have access to it.",
        "The model x-4.1 does not exist or your team has no access to it",
        "The requested model is not supported.",
        "The requested model 'a/b' is not supported by any provider you have enabled.",
        "The 'x' model is not supported when using this kind of account.",
        "The model `x` has been decommissioned and is no longer supported.",
        "The provided model identifier is invalid.",
        "Invalid model: x",
        "invalid params, unknown model 'x' (2013)",
        "Invalid model 'x'. Permitted models can be found in the documentation",
        "Unknown Model, please check the model code.",
        "Unavailable model: x",
        "a/b is not a valid model ID",
        "Not found the model x or Permission denied",
        "模型不存在，请检查模型代码",
    ],
)
def test_a_name_of_ours_that_the_vendor_does_not_know(message: str):
    assert _fault(400, message).reason == "model_access_denied"


@pytest.mark.parametrize(
    "code", ["model_not_found", "model_not_supported", "model_decommissioned", "invalid_model"]
)
def test_a_code_tells_of_an_unknown_model(code: str):
    assert _fault(400, "no", code).reason == "model_access_denied"


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "request (33 tokens) exceeds the available context size (32 tokens)", ""),
        (400, "too long", "exceed_context_size_error"),
        (500, "Context size has been exceeded.", "server_error"),
        (400, "The decoder prompt (length 9) is longer than the maximum model length of 8.", ""),
        (400, "The input (9 tokens) is longer than the model's context length (8 tokens).", ""),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 8. Given: 9 `inputs` tokens", ""),
        (422, "Input validation error: `inputs` must have less than 8 tokens. Given: 9", ""),
        (400, "input length and `max_tokens` exceed context limit: 9 + 1 > 8", ""),
        (400, "prompt too long; exceeded max context length by 9 tokens", ""),
        (400, "tokens to keep from the initial prompt is greater than the context length", ""),
        (400, "Input is too long for requested model.", ""),
        (400, "Input Tokens Exceeded: Number of input tokens exceeds maximum length.", ""),
        (400, "Prompt contains 9 tokens, too large for model with 8 maximum context length", ""),
        (400, "Range of input length should be [1, 8]", "invalid_parameter_error"),
        (400, "Your request exceeded model token limit: 8 (requested: 9)", ""),
        (400, "Prompt exceeds max length", "1261"),
        (400, "invalid params, context window exceeds limit (2013)", ""),
        (400, "This model's maximum prompt length is 8 but the request contains 9 tokens.", ""),
        (400, "Please reduce the length of the messages or completion.", ""),
        (400, "prompt token count of 9 exceeds the limit of 8", ""),
        (400, "Input tokens exceed the configured limit of 8 tokens.", ""),
        (413, "Request body too large for model. Max size: 8 tokens.", "tokens_limit_reached"),
        (400, "Input length 9 exceeds the maximum allowed input length of 8 tokens.", ""),
    ],
)
def test_a_full_context(status: int, message: str, code: str):
    fault = _fault(status, message, code)
    assert (fault.reason, fault.detail) == ("bad_request", "context_length")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("messages.1.content.0: Invalid `signature` in `thinking` block", ""),
        ("Invalid signature in thinking block", ""),
        ("messages.1.content.0.thinking.signature: Field required", ""),
        ("messages.1.content.0: Invalid `data` in `redacted_thinking` block", ""),
        (
            "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant"
            " message cannot be modified.",
            "",
        ),
        ("messages.5.content.0.type: Expected `thinking` or `redacted_thinking`, but found", ""),
        ("Corrupted thought signature.", "INVALID_ARGUMENT"),
        ("Unable to submit request because Thought signature is not valid.", ""),
        ("Function call is missing a thought_signature in functionCall parts.", ""),
        ("no", "invalid_encrypted_content"),
        ("The encrypted content for item rs_1 could not be verified.", ""),
        ("Reason: Encrypted content could not be decrypted or parsed.", ""),
        ("Could not decrypt the provided encrypted_content.", ""),
        ("Item 'rs_1' of type 'reasoning' was provided without its required following item.", ""),
    ],
)
def test_a_refused_proof(message: str, code: str):
    fault = _fault(400, message, code)
    assert (fault.reason, fault.detail) == ("bad_request", "invalid_signature")


@pytest.mark.parametrize(
    "message",
    [
        "Invalid value: 'rate limit exceeded'. Supported values are: 'low' and 'high'.",
        "Invalid schema for function 'x': \"insufficient balance\" is not of type 'object'.",
        "Invalid tool name `account suspended`",
        "Invalid value: 'it's an account suspended'.",
        '[{"loc":["body","messages"],"msg":"not a string","input":"invalid api key, no credits"}]',
        "Image input is not supported by this model",
        "This model does not support image input",
        "Function calling with this model is not supported",
        "The model output is invalid",
        "Unsupported parameter: 'temperature' is not supported with this model.",
        "Item with id 'msg_1' does not exist",
        "Previous response with id 'resp_1' not found.",
        "The tool account_lookup is not declared",
        "tokens per minute must be a number",
        "Unknown parameter: 'context_window'.",
        "'name' must have less than 64 characters",
        "Invalid value: 'the context length'.",
        "Invalid value: 'content_filter'.",
    ],
)
def test_the_callers_mistake_is_nothing_else(message: str):
    fault = _fault(400, message, "invalid_request_error")
    assert (fault.reason, fault.detail) == ("bad_request", None)


@pytest.mark.parametrize(
    "message",
    [
        "{}: Extra inputs are not permitted",
        "Unknown parameter: {}",
        "Unrecognized request argument supplied: {}",
        "body.{}: extra fields not permitted",
        "Completions.create() got an unexpected keyword argument {}",
        'Invalid JSON payload received. Unknown name "{}": Cannot find field.',
    ],
)
@pytest.mark.parametrize(
    "field", ["invalid_api_key", "insufficient_quota", "credit balance is too low", "x suspended"]
)
def test_a_name_that_the_caller_chose_tells_nothing_of_our_account(message: str, field: str):
    """Else one tenant's field would put a vendor key out of use for all."""
    assert _fault(400, message.format(field)).reason == "bad_request"
    assert _fault(422, message.format(field)).reason == "bad_request"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Conversation with id 'conv_x' not found.", "bad_request"),
        ("Previous response with id 'resp_x' not found.", "bad_request"),
        ("No such File object: file-abc", "bad_request"),
        ("Container with id 'cntr_1' not found.", "bad_request"),
        ("The model `x` does not exist", "model_access_denied"),
        ("model: claude-x", "model_access_denied"),
        ("The API deployment for this resource does not exist", "model_access_denied"),
        ("models/x is not found for API version v1beta", "model_access_denied"),
        ("Not Found", "model_access_denied"),
    ],
)
def test_a_404_is_about_the_model_unless_it_names_something_else(message: str, reason: str):
    assert _fault(404, message).reason == reason


def test_a_body_too_large_is_the_callers():
    assert _fault(413, "Request exceeds the maximum size", "request_too_large").reason == (
        "bad_request"
    )


def test_waiting_for_tokens_is_no_full_context():
    assert _fault(429, "Too many tokens, please wait before trying again.").reason == "rate_limited"


def test_an_error_inside_a_message_speaks():
    inner = '{"type":"error","error":{"type":"x","message":"Your credit balance is too low"}}'
    assert _fault(400, f"HTTP 400: {inner}").reason == "quota_exhausted"


def test_own_words_are_what_is_not_quoted():
    assert (
        own_words("The model's `x` and \"y z\" and 'it's' end") == "The model's … and … and … end"
    )
