"""People, invitations and rotations in any order: nobody escalates, the last owner stays, rotation refills nothing.

The machine plays everything a holder of a management key can ask for, with whatever key there is, and keeps its own
small model of who was granted what. After each step it checks the authority of every secret that was ever handed out.
"""

import shutil
import tempfile
from decimal import Decimal
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from gwd import spend
from gwd.core.caller import ROLES, Caller, Role
from gwd.core.clock import US_PER_DAY, US_PER_S, SystemClock
from gwd.core.errors import GatewayError, KeyLimitExceeded
from gwd.keys import rotation, secret, service
from gwd.keys.admission import KeyRow, find_by_digest, require_below_limit, require_usable, state
from gwd.keys.fields import CreateKey, KeyFilter, PatchKey
from gwd.keys.rate_limit import Admitted, RateLimiter
from gwd.keys.rotation import RotateKey
from gwd.keys.service import IssuedKey, list_keys
from gwd.management import invitations, organizations, people, teams
from gwd.management.change import Change
from gwd.management.invitations import AcceptInvitation, CreateInvitation
from gwd.management.teams import CreateTeam
from gwd.orgs import members
from gwd.orgs.members import PatchMember
from gwd.orgs.organizations import CreateOrganization
from gwd.orgs.rights import allowed
from gwd.orgs.rights import rank as rank_of
from gwd.store.connection import open_connection
from gwd.store.migrations import migrate
from tests.support.people import ISSUING, caller, organization
from tests.support.people import issued as issued_key
from tests.support.store import NOW_US

USD = 1_000_000_000
RATE = 3
MEMBER_ROLES = ("member", "billing", "admin", "owner")
LIMIT_USD = 10

_template = Path(tempfile.mkdtemp(prefix="gwd-people-")) / "empty.db"


def teardown_module() -> None:
    shutil.rmtree(_template.parent, ignore_errors=True)


def rank(role: Role | None) -> int:
    assert role is not None
    return rank_of(role)


class People(RuleBasedStateMachine):
    consoles: Bundle[str] = Bundle("consoles")
    apps: Bundle[str] = Bundle("apps")
    tokens: Bundle[tuple[str, str]] = Bundle("tokens")

    def __init__(self) -> None:
        super().__init__()
        if not _template.exists():
            migrate(str(_template), SystemClock())
        self.folder = tempfile.mkdtemp(prefix="gwd-people-")
        path = shutil.copy(_template, Path(self.folder) / "gwd.db")
        self.connection = open_connection(str(path), "writer")
        self.connection.execute("PRAGMA synchronous=OFF")
        self.now_us = NOW_US
        self.limiter = RateLimiter()
        # per plaintext of a management key: the most it may ever be, a lead's workspace, whose it is
        self.granted: dict[str, Role] = {}
        self.bound: dict[str, str] = {}
        self.owners_key: dict[str, str] = {}
        self.charged_nano: dict[str, int] = {}  # family → what was charged
        self.admitted: dict[str, list[float]] = {}  # family → monotonic times
        self.families: dict[str, str] = {}  # plaintext of an inference key → family
        self.removed: set[str] = set()
        self.people = 0

    def teardown(self) -> None:
        self.connection.raw.close()
        shutil.rmtree(self.folder)

    # what everyone starts with

    @initialize(target=consoles)
    def found(self):
        self.made = organization(self.connection)
        self.organization_id = self.made.organization.id
        self.other = organization(self.connection, "Other")
        operator = caller(self.made, "operator")
        founded = organizations.create(
            self.connection,
            CreateOrganization(name="Third"),
            change=self.change(operator),
            issuing=ISSUING,
        )
        owner = issued_key(
            self.connection,
            self.made,
            CreateKey(name="console", type="management", role="owner"),
        )
        teams.create(
            self.connection,
            CreateTeam(name="Web"),
            change=self.change(caller(self.made, "owner")),
            issuing=ISSUING,
        )
        assert founded.issued.key.organization_id != self.organization_id
        return self.remember(owner, "owner")

    # what anybody with a management key may try

    @rule(
        target=consoles,
        by=consoles,
        role=st.sampled_from((None, *ROLES)),
        somebody=st.integers(0, 6) | st.none(),
        workspace=st.sampled_from([None, "default", "web"]),
    )
    def create_console(self, by, role, somebody, workspace):
        actor = self.actor(by)
        if actor is None:
            return multiple()
        new = CreateKey(
            name="console",
            type="management",
            role=role,
            user_id=None if somebody is None else self.user(somebody),
            workspace_id=workspace,
        )
        issued = self.create(new, actor)
        if issued is None:
            return multiple()
        key = issued.key
        assert allowed(actor, "keys.write") != "none"
        assert rank(key.role) <= rank(actor.role), "nobody makes a key above their own role"
        if actor.workspace_id is not None:
            assert key.workspace_id == actor.workspace_id, "a lead's keys stay in its workspace"
        if allowed(actor, "keys.write") == "own":
            assert key.user_id == actor.user_id
        return self.remember(issued, key.role)

    @rule(target=apps, by=consoles, limited=st.booleans(), workspace=st.sampled_from([None, "web"]))
    def create_app(self, by, limited, workspace):
        actor = self.actor(by)
        if actor is None:
            return multiple()
        new = CreateKey(
            name="app",
            limit=Decimal(LIMIT_USD) if limited else None,
            rate_limit_per_minute=RATE,
            workspace_id=workspace,
        )
        issued = self.create(new, actor)
        if issued is None:
            return multiple()
        assert allowed(actor, "keys.write") != "none"
        self.families[issued.plaintext] = issued.key.family_id
        return issued.plaintext

    @rule(target=apps, by=consoles, app=apps, overlap=st.sampled_from(["1h", "24h", "7d"]))
    def rotate_app(self, by, app, overlap):
        both = self.rotate(by, app, overlap)
        if both is None:
            return multiple()
        family = self.families[app]
        assert both.issued.key.family_id == family, "one family, one counter, one window"
        assert both.issued.key.limit_nano == both.previous.limit_nano
        self.families[both.issued.plaintext] = family
        return both.issued.plaintext

    @rule(target=consoles, by=consoles, console=consoles)
    def rotate_console(self, by, console):
        actor = self.actor(by)
        both = self.rotate(by, console, "1h")
        if both is None:
            return multiple()
        assert actor is not None
        role = both.issued.key.role
        assert role is not None
        assert rank(role) <= rank(actor.role), "rotating never hands out a higher role"
        return self.remember(both.issued, role)

    @rule(by=consoles, ref=apps | consoles, disabled=st.booleans())
    def enable_or_disable(self, by, ref, disabled):
        actor = self.actor(by)
        if actor is not None:
            self.attempt(
                service.patch,
                self.organization_id,
                self.key_id(ref),
                PatchKey(disabled=disabled),
                actor=actor,
                rate_limit_ceiling=600,
                now_us=self.now_us,
            )

    @rule(by=consoles, role=st.sampled_from(MEMBER_ROLES), somebody=st.integers(0, 6))
    def change_role(self, by, role, somebody):
        actor = self.actor(by)
        user_id = self.user(somebody)
        if actor is None or user_id is None:
            return
        before = members.current_role(self.connection, self.organization_id, user_id)
        done = self.attempt(
            people.patch, user_id, PatchMember(role=role), change=self.change(actor)
        )
        if done is None:
            assert members.current_role(self.connection, self.organization_id, user_id) == before
            return
        assert before is not None
        assert rank(actor.role) >= max(rank(role), rank(before)), "nobody raises or fells above"
        assert rank(actor.role) >= rank("admin")
        assert actor.workspace_id is None

    @rule(by=consoles, somebody=st.integers(0, 6))
    def remove(self, by, somebody):
        actor = self.actor(by)
        user_id = self.user(somebody)
        if actor is None or user_id is None:
            return
        gone = self.attempt(people.remove, user_id, change=self.change(actor))
        if gone is not None:
            assert rank(actor.role) >= rank(gone.member.role)
            assert actor.workspace_id is None
            self.removed.add(user_id)

    @rule(
        target=tokens,
        by=consoles,
        role=st.sampled_from(MEMBER_ROLES),
        workspace=st.sampled_from([None, "default", "web"]),
        is_lead=st.booleans(),
    )
    def invite(self, by, role, workspace, is_lead):
        actor = self.actor(by)
        if actor is None:
            return multiple()
        self.people += 1
        new = CreateInvitation(
            email=f"p{self.people}@acme.example",
            role=role,
            workspace_ids=[] if workspace is None else [workspace],
            is_lead=is_lead,
        )
        sent = self.attempt(
            invitations.create,
            new,
            change=self.change(actor),
            pepper=ISSUING.pepper,
            app_url="https://app.example",
        )
        if sent is None:
            return multiple()
        assert rank(role) <= rank(actor.role), "nobody invites above their own role"
        assert rank(actor.role) >= rank("admin")
        if actor.workspace_id is not None:
            assert sent.invitation.workspace_ids == [actor.workspace_id]
        token = parse_qs(urlsplit(sent.accept_url).query)["token"][0]
        return token, sent.invitation.id

    @rule(by=consoles, invitation=tokens)
    def revoke(self, by, invitation):
        actor = self.actor(by)
        if actor is not None:
            self.attempt(invitations.revoke, invitation[1], change=self.change(actor))

    @rule(target=consoles, invitation=consumes(tokens))
    def accept(self, invitation):
        token, invitation_id = invitation
        before = invitations.get(self.connection, self.organization_id, invitation_id)
        inviter = before.invited_by
        joined = self.attempt(
            invitations.accept, AcceptInvitation(token=token), issuing=ISSUING, now_us=self.now_us
        )
        if joined is None:
            return multiple()
        assert invitations.status(before, self.now_us) == "pending"
        assert inviter not in self.removed, "invitations end with whoever sent them"
        if inviter is not None:
            role = members.current_role(self.connection, self.organization_id, inviter)
            leads = members.workspaces_led(self.connection, inviter)
            assert role is not None
            assert rank(role) >= rank(before.role) or leads
        role = joined.issued.key.role
        assert role == ("admin" if joined.issued.key.workspace_id else joined.member.role)
        return self.remember(joined.issued, role)

    @rule(by=consoles, somebody=st.integers(0, 6))
    def take_out_of_the_workspace(self, by, somebody):
        actor = self.actor(by)
        user_id = self.user(somebody)
        if actor is not None and user_id is not None:
            self.attempt(teams.remove_members, "web", [user_id], change=self.change(actor))

    # traffic and time

    @rule(app=apps, usd=st.integers(1, 6))
    def spend(self, app, usd):
        if not self.usable(app):
            return
        key = state(self.connection, self.key_id(app))
        assert key is not None
        family = self.families[app]
        try:
            require_below_limit(self.connection, key, now_us=self.now_us)
        except KeyLimitExceeded:
            assert self.charged_nano.get(family, 0) >= LIMIT_USD * USD
            return
        if key.limit_nano is not None:
            assert self.charged_nano.get(family, 0) < LIMIT_USD * USD, "a limit is never refilled"
        spend.add(
            self.connection, (family,), charged_nano=usd * USD, byok_nano=0, at_us=self.now_us
        )
        self.charged_nano[family] = self.charged_nano.get(family, 0) + usd * USD

    @rule(app=apps, times=st.integers(1, 5))
    def knock(self, app, times):
        found = self.find(app)
        if found is None or not self.usable(app):
            return
        now_s = self.now_us / US_PER_S
        seen = self.admitted.setdefault(self.families[app], [])
        for _ in range(times):
            answer = self.limiter.admit(
                found.caller.family_id, found.caller.rate_limit_per_minute, now_s
            )
            if isinstance(answer, Admitted):
                seen.append(now_s)
        recent = sum(at > now_s - 60 for at in seen)
        assert recent <= RATE, "old and new key share one rate window"

    @rule(seconds=st.sampled_from([1, 20, 59, 3_599, 3_600, 86_400, 8 * 86_400]))
    def wait(self, seconds):
        self.now_us += seconds * US_PER_S

    # what must always hold

    @invariant()
    def an_owner_is_left(self):
        if not hasattr(self, "made"):
            return
        listed, _ = members.list_members(self.connection, self.organization_id, limit=100, offset=0)
        assert any(member.role == "owner" for member in listed), "the last owner stays"

    @invariant()
    def no_secret_has_more_authority_than_it_was_given(self):
        for plaintext, most in self.granted.items():
            found = self.find(plaintext)
            assert found is not None
            role = found.caller.role
            assert role is not None
            assert rank(role) <= rank(most)
            assert found.caller.workspace_id == self.bound.get(plaintext)
            user_id = self.owners_key.get(plaintext)
            if user_id is None:
                continue
            if user_id in self.removed:
                assert found.caller.disabled, "a removed member's management keys stop at once"
                continue
            held = members.role_within(
                self.connection, self.organization_id, user_id, found.caller.workspace_id
            )
            assert held is not None
            assert role == "operator" or rank(role) <= rank(held), "a demotion holds at once"

    @invariant()
    def strangers_see_nothing(self):
        if hasattr(self, "other"):
            stranger = caller(self.other, "owner")
            listed, total = list_keys(
                self.connection,
                self.other.organization.id,
                KeyFilter(include_disabled=True, include_expired=True),
                actor=stranger,
                limit=10,
                offset=0,
                now_us=self.now_us,
            )
            assert (listed, total) == ([], 0)

    # how it is played

    def change(self, actor: Caller) -> Change:
        return Change(actor=actor, now_us=self.now_us)

    def attempt(self, act, *args, **kwargs):
        """Run one use case as the writer does: whole, or not at all with a refusal."""
        raw = self.connection.raw
        raw.execute("SAVEPOINT job")
        try:
            value = act(self.connection, *args, **kwargs)
        except GatewayError:
            raw.execute("ROLLBACK TO job")
            value = None
        raw.execute("RELEASE job")
        return value

    def create(self, new, actor):
        return self.attempt(
            service.create,
            self.organization_id,
            new,
            actor=actor,
            issuing=ISSUING,
            now_us=self.now_us,
        )

    def rotate(self, by, ref, overlap):
        actor = self.actor(by)
        if actor is None:
            return None
        enabled = self.find(ref)
        both = self.attempt(
            rotation.rotate,
            self.organization_id,
            self.key_id(ref),
            RotateKey(overlap=overlap),
            actor=actor,
            issuing=ISSUING,
            now_us=self.now_us,
        )
        if both is None:
            return None
        assert enabled is not None
        assert not enabled.state.disabled, "rotating does not undo disabling"
        assert both.previous.expires_at is not None
        assert both.previous.expires_at <= self.now_us + 7 * US_PER_DAY
        return both

    def remember(self, issued: IssuedKey, role: Role | None) -> str:
        assert role is not None
        self.granted[issued.plaintext] = role
        if issued.key.workspace_id is not None:
            self.bound[issued.plaintext] = issued.key.workspace_id
        if issued.key.user_id is not None:
            self.owners_key[issued.plaintext] = issued.key.user_id
        return issued.plaintext

    def find(self, plaintext) -> KeyRow | None:
        return find_by_digest(self.connection, secret.digest(plaintext, ISSUING.pepper))

    def key_id(self, plaintext) -> str:
        found = self.find(plaintext)
        assert found is not None
        return found.caller.key_id

    def usable(self, plaintext) -> bool:
        found = self.find(plaintext)
        assert found is not None
        try:
            require_usable(found, now_us=self.now_us)
        except GatewayError:
            return False
        return True

    def actor(self, plaintext) -> Caller | None:
        found = self.find(plaintext)
        assert found is not None
        return found.caller if self.usable(plaintext) else None

    def user(self, number: int) -> str | None:
        listed, _ = members.list_members(self.connection, self.organization_id, limit=100, offset=0)
        # By address: the ids of those who joined at one moment are random, and a replay must find the same person.
        by_address = sorted(listed, key=lambda member: member.email)
        return by_address[number % len(by_address)].id if by_address else None


People.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestPeople = People.TestCase
