"""What is remembered of who served a conversation: for whom, how long, and how much of it."""

from types import SimpleNamespace
from typing import Any, Literal

from gwd.core.request import Embed, Generate, Message, Request, Sender, TextPart
from gwd.core.target import Credential, Target
from gwd.pipeline.plan import routing
from gwd.pipeline.plan.credential_choice import Turn
from gwd.pipeline.plan.stickiness import KEPT_S, Conversation, Stickiness, conversation_of
from tests.golden import golden

HERE = ("ep_1", "cred_1")
ROLES: tuple[Literal["system", "user", "assistant"], ...] = ("system", "user", "assistant", "user")


def target(endpoint_id: str = "ep_1", credential_id: str = "cred_1", model: str = "m/m") -> Target:
    credential = Credential(id=credential_id, secret="")
    return golden.target("openai_chat", endpoint_id=endpoint_id, model=model, credential=credential)


def asked(*texts: str, session_id: str | None = None) -> Request:
    """A system text, a question, an answer, a question: as many as there are texts."""
    messages = tuple(
        Message(role=role, parts=(TextPart(text=text),))
        for role, text in zip(ROLES, texts, strict=False)
    )
    return golden.request(body=Generate(messages=messages), sender=Sender(session_id=session_id))


def of(request: Request, **whose: Any) -> Conversation | None:
    usual: dict[str, Any] = {
        "organization_id": "org_1",
        "workspace_id": "ws_1",
        "family_id": "key_1",
    }
    return conversation_of(request, **{**usual, **whose})


class TestConversations:
    def test_a_session_is_one_for_its_workspace_and_for_no_other(self):
        request = asked("s", "q", session_id="abc")
        assert of(request) == of(asked("t", "r", session_id="abc"), family_id="key_2")
        others: list[dict[str, Any]] = [
            {"organization_id": "org_2"},
            {"workspace_id": "ws_2"},
            {"workspace_id": None},
        ]
        assert all(of(request, **whose) != of(request) for whose in others)
        assert of(asked("s", "q", session_id="abd")) != of(request)

    def test_without_a_session_it_is_known_by_how_it_begins(self):
        first = of(asked("s", "q"))
        assert of(asked("s", "q", "a", "next")) == first
        assert of(asked("s", "other")) != first
        assert of(asked("other", "q")) != first
        assert of(asked("s", "q"), family_id="key_2") != first
        assert of(asked("s", "q"), workspace_id=None) == first

    def test_a_prompt_cache_key_says_it_too(self):
        named: dict[str, Any] = {"extras": {"prompt_cache_key": "thread-1"}}
        found = of(golden.request(**named))
        assert of(golden.request(**named, body=asked("other", "words").body)) == found
        assert of(golden.request(**named), family_id="key_2") != found
        assert of(golden.request(extras={"prompt_cache_key": "thread-2"})) != found
        assert of(golden.request(extras={"prompt_cache_key": None})) == of(golden.request())

    def test_no_text_of_it_is_kept(self):
        for request in (
            asked("a secret", "another"),
            golden.request(extras={"prompt_cache_key": "a secret"}),
        ):
            found = of(request)
            assert found is not None
            assert isinstance(found[2], int)

    def test_only_the_beginnings_are_looked_at(self):
        assert of(asked("s" * 600, "q")) == of(asked("s" * 600 + "t", "q"))

    def test_embeddings_have_none(self):
        assert of(golden.request(body=Embed(inputs=("a",)))) is None

    def test_a_request_without_messages_has_one(self):
        assert of(asked()) is not None


class TestSeats:
    def test_it_is_kept_for_ten_minutes_after_the_last_answer(self):
        kept, conversation = Stickiness(), ("org_1", None, "abc")
        kept.note(conversation, target(), 100.0)
        assert kept.seat(conversation, "m/m", 100.0 + KEPT_S - 1) == HERE
        assert kept.seat(conversation, "m/m", 100.0 + KEPT_S) is None
        kept.note(conversation, target(), 500.0)
        assert kept.seat(conversation, "m/m", 500.0 + KEPT_S - 1) == HERE

    def test_each_model_has_its_own(self):
        kept, conversation = Stickiness(), ("org_1", None, "abc")
        kept.note(conversation, target(), 0.0)
        kept.note(conversation, target("ep_2", "cred_2", "m/n"), 0.0)
        assert kept.seat(conversation, "m/m", 1.0) == HERE
        assert kept.seat(conversation, "m/n", 1.0) == ("ep_2", "cred_2")
        assert kept.seat(conversation, "m/o", 1.0) is None

    def test_the_last_one_counts(self):
        kept, conversation = Stickiness(), ("org_1", None, "abc")
        kept.note(conversation, target("ep_2"), 0.0)
        kept.note(conversation, target(), 1.0)
        assert kept.seat(conversation, "m/m", 2.0) == HERE

    def test_the_oldest_go_where_there_are_too_many(self):
        kept = Stickiness(at_most=3)
        for number in range(5):
            kept.note(("org_1", None, number), target(), float(number))
        kept.note(("org_1", None, 2), target(), 5.0)
        kept.note(("org_1", None, 9), target(), 6.0)
        there = [n for n in range(10) if kept.seat(("org_1", None, n), "m/m", 6.0)]
        assert (there, len(kept)) == ([2, 4, 9], 3)

    def test_what_is_over_is_forgotten_little_by_little(self):
        kept = Stickiness()
        for number in range(100):
            kept.note(("org_1", None, number), target(), 0.0)
        sizes = []
        for number in range(100, 250):
            kept.note(("org_1", None, number), target(), KEPT_S)
            sizes.append(len(kept))
        assert (sizes[0], sizes[49], sizes[-1]) == (99, 50, 150)


class TestOrder:
    """Targets by name: its endpoint's, with a small letter for an own key, and `-` where it rests."""

    ORDERS = (
        ("A B C", "C", "C A B"),
        ("A B C", "A", "A B C"),
        ("A B C", "D", "A B C"),
        ("A B- C", "B", "A B- C"),
        ("a b A B", "B", "a b B A"),
        ("a b A B", "b", "b a A B"),
        ("a A B b", "b", "a A B b"),
        ("A1 A2 B", "A2", "A2 A1 B"),
        ("A1- A2 B", "A1", "A2 A1- B"),
        ("B A1 A2", "A3", "A1 B A2"),
    )

    def test_it_comes_first_of_its_kind_and_nothing_else_moves(self):
        found = {case: self.ordered(*case[:2]) for case in self.ORDERS}
        assert found == {case: case[2] for case in self.ORDERS}

    def test_an_endpoint_that_fails_often_is_not_preferred(self):
        assert self.ordered("A B", "B", outage="ep_B") == "A B"

    def ordered(self, names: str, seat: str, outage: str = "") -> str:
        kept, conversation = Stickiness(), ("org_1", None, "abc")
        kept.note(conversation, self.planned(seat).target, 0.0)
        health = SimpleNamespace(has_outage=lambda endpoint_id, _: endpoint_id == outage)
        plan_input: Any = SimpleNamespace(
            stickiness=kept, conversation=lambda: conversation, health=health, now_s=1.0
        )
        there = [
            routing._Found(
                self.planned(name),
                Turn.OWN if name[0].islower() else Turn.PLATFORM,
                (0, 0),
                9.0 if name[-1] == "-" else None,
            )
            for name in names.split()
        ]
        after = routing._sticky_first("m/m", there, plan_input)
        shown = {self.planned(name).target.credential.id: name for name in names.split()}
        return " ".join(shown[each.planned.target.credential.id] for each in after)

    def planned(self, name: str) -> routing.Planned:
        letter = name[0]
        credential = Credential(id=f"cred_{name.rstrip('-')}", secret="", byok=letter.islower())
        return routing.Planned(
            target=golden.target(
                "openai_chat",
                endpoint_id=f"ep_{letter.upper()}",
                model="m/m",
                credential=credential,
            ),
            hold_nano=1,
            list_price_nano=1,
            rank=0,
            forwarded_from=None,
            strategy="expiry_first",
            sort=None,
            eligible=3,
        )
