"""Who may ask POST /route/explain and /estimate about what."""

from tests.api.office import Office


async def test_a_key_or_workspace_that_is_not_the_callers_is_like_an_absent_one(
    busy_office: Office,
) -> None:
    office = busy_office
    key = office["inference"].caller
    assert key is not None
    ask = office.call
    for field, value in (("key_id", key.key_id), ("workspace_id", office.workspace_id)):
        body = {"model": "demo/chat", field: value}
        found = await ask("owner", "POST", "/route/explain", body)
        assert found.status_code == 200, found.text
        assert found.json()["data"]["credentials"] is None
        foreign = await ask("stranger", "POST", "/route/explain", body)
        absent = await ask(
            "stranger", "POST", "/route/explain", {**body, field: value[:-3] + "zzz"}
        )
        assert foreign.status_code == absent.status_code == 404
        assert foreign.json() == absent.json()
    of_management = office["owner"].caller
    assert of_management is not None
    body = {"model": "demo/chat", "key_id": of_management.key_id}
    assert (await ask("owner", "POST", "/route/explain", body)).status_code == 400
    for path in ("/route/explain", "/estimate"):
        assert (await ask("nobody", "POST", path, {"model": "demo/chat"})).status_code == 401
