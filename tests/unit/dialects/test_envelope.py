"""The chat-style error envelope."""

import msgspec

from gwd.core.errors import BudgetExceeded, InternalError, InvalidValue, UpstreamFailed
from gwd.core.money import usd_json
from gwd.dialects.envelope import error_body


def _error(error: Exception) -> dict[str, object]:
    body = msgspec.json.decode(error_body(error, "req_1"))  # type: ignore[arg-type]
    assert set(body) == {"error"}
    found: dict[str, object] = body["error"]
    return found


def test_an_error_names_type_code_message_field_and_status():
    assert _error(InvalidValue("`n` must be 1", param="n")) == {
        "type": "invalid_request_error",
        "code": "invalid_value",
        "message": "`n` must be 1",
        "param": "n",
        "status": 400,
        "metadata": {},
    }


def test_metadata_may_hold_exact_money():
    error = BudgetExceeded("spent", metadata={"budget_limit": usd_json(1_500_000_000)})
    assert _error(error)["metadata"] == {"budget_limit": 1.5}


def test_a_500_is_generic_and_quotes_the_request():
    found = _error(InternalError("boom at line 3", metadata={"secret": 1}))
    assert "boom" not in str(found)
    assert "req_1" in str(found["message"])
    assert found["metadata"] == {}


def test_an_upstream_failure_keeps_its_text():
    assert _error(UpstreamFailed("vendor broke"))["message"] == "vendor broke"
