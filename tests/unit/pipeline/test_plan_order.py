"""The plan of random requests over random catalogs, credentials and rests, against the rules said once more, plainly.

The rules: endpoints that the request or its organization leaves out are gone; of the rest own vendor keys come first,
by the request's `order` and then their own; the platform's keys follow their endpoints' order; own keys marked as a
fallback come last. What rests comes after all that is awake, what is closed not at all.
"""

import random
import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gwd.catalog.lifecycle import Lifecycle
from gwd.catalog.snapshot import Catalog, Endpoint, Model
from gwd.core.cost import Price
from gwd.core.money import fee_nano
from gwd.core.name_patterns import patterns_of
from gwd.core.request import Generate, Message, Preferences, Request, TextPart
from gwd.core.target import Flags
from gwd.core.vendor_format import VendorFormat
from gwd.credentials.service import VendorKey
from gwd.health.health import Health
from gwd.orgs.settings import OrganizationState, Settings
from gwd.orgs.settings import policy as organization_policy
from gwd.pipeline.plan.plan_input import Asker, OwnKeys, PlanInput
from gwd.pipeline.plan.routing import MAX_TARGETS, Plan, Refusal, plan
from gwd.pipeline.plan.stickiness import Stickiness
from gwd.pricing.hold import measure

NOW_US = 1_000_000
NOW_S = 50.0
PROVIDERS = ("alpha", "beta", "gamma")
TAGS = tuple(f"{slug}{variant}" for slug in PROVIDERS for variant in ("", "/eu", "/us"))
MODELS = ("demo/one", "demo/two", "other/three")
ADDRESSES = ("https://here.example", "https://there.example")
NAMES = st.sampled_from((*PROVIDERS, *TAGS, "Provider ALPHA", "Beta", "GAMMA/EU", "nobody"))
FEE_BPS = 525


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """The usual value in nine cases of ten: a case with everything odd plans nothing."""
    return st.sampled_from((usual,) * (9 * len(others)) + others)


class Rested(msgspec.Struct, frozen=True):
    """A rest as planning sees it."""

    until_s: float
    is_closed: bool
    reason: str = "rate_limited"


class FixedHealth(Health):
    """Health that says what a case says."""

    def __init__(self, case: "Case") -> None:
        super().__init__()
        self._case = case

    def rest(self, endpoint_id: str, credential_id: str, now_s: float) -> Any:
        return self._case.rests.get(f"{endpoint_id} {credential_id}")

    def has_outage(self, endpoint_id: str, now_s: float) -> bool:
        return endpoint_id in self._case.sick

    def median_throughput(self, endpoint_id: str, now_s: float) -> float | None:
        return self._case.speeds.get(endpoint_id)

    def median_ttft_s(self, endpoint_id: str, now_s: float) -> float | None:
        return self._case.speeds.get(endpoint_id)


class FixedSeats(Stickiness):
    """Who served the conversation last, per model."""

    def __init__(self, case: "Case") -> None:
        super().__init__()
        self._case = case

    def seat(self, conversation: Any, model: str, now_s: float) -> tuple[str, str] | None:
        return self._case.seats.get(model)


class Everybody(frozenset[str]):
    """Every name is a provider's: none that a case makes up is refused."""

    def __contains__(self, name: object) -> bool:
        return True


class Picks(random.Random):
    """The weighted pick takes the place that a case names."""

    place = 0

    def choices(  # type: ignore[override]
        self, population: Sequence[Any], *_: Any, **__: Any
    ) -> list[Any]:
        return [population[self.place % len(population)]]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A request and all that its plan depends on."""

    endpoints: list[Endpoint]
    platform: list[VendorKey]
    own: list[VendorKey]
    rests: dict[str, Rested]
    sick: set[str]
    speeds: dict[str, float]
    models: list[str]
    preferences: Preferences
    organization: Settings
    asker: Asker
    pick: int
    seats: dict[str, tuple[str, str]]


def _price(prompt_pico: int, completion_pico: int) -> Price:
    return Price(
        version="v",
        prompt_pico=prompt_pico,
        completion_pico=completion_pico,
        cache_read_pico=prompt_pico,
        cache_write_5m_pico=prompt_pico,
        cache_write_1h_pico=prompt_pico,
        reasoning_pico=completion_pico,
    )


MODEL_LISTS = {
    patterns_of(words): words
    for words in (("demo/*",), ("other/three",), ("demo/one", "x"), ("*/t*", "demo/o*e"), ())
}
"""Lists of models that a key may be for, as they are read and as they are written."""


@st.composite
def endpoint(draw: st.DrawFn, number: int) -> Endpoint:
    tag = draw(st.sampled_from(TAGS))
    provider = tag.partition("/")[0]
    price = _price(draw(st.integers(0, 6)) * 1_000, draw(st.integers(0, 6)) * 1_000)
    return Endpoint(
        id=f"ep_{number}",
        model=draw(st.sampled_from(MODELS)),
        provider=provider,
        provider_name=f"Provider {provider}",
        tag=tag,
        format=VendorFormat(name="openai_chat"),
        base_url=draw(st.sampled_from(ADDRESSES)) + "/v1",
        origin=draw(mostly(*ADDRESSES)),
        headers={},
        auth="bearer",
        upstream_model="m",
        context_length=100_000,
        max_completion_tokens=8_000,
        supported_parameters=frozenset(),
        flags=Flags(),
        weight=draw(st.sampled_from((0.5, 1.0, 3.0))),
        is_live=draw(mostly(True, False)),
        dated_prices=((0, price),),
    )


@st.composite
def vendor_key(draw: st.DrawFn, number: int, *, own: bool) -> VendorKey:
    limits: dict[str, Any] = {
        "is_fallback": False,
        "is_required": False,
        "workspace_id": None,
        "allowed_models": None,
        "allowed_api_key_hashes": None,
        "allowed_user_ids": None,
    }
    if own:
        limits = {
            "is_fallback": draw(st.sampled_from((False, False, True))),
            "is_required": draw(mostly(False, True)),
            "workspace_id": draw(mostly(None, "ws_1", "ws_2")),
            "allowed_models": draw(mostly(None, *MODEL_LISTS)),
            "allowed_api_key_hashes": draw(mostly(None, ("hash_1",), ("hash_2", "hash_3"), ())),
            "allowed_user_ids": draw(mostly(None, ("ann",), ("bob", "cleo"))),
        }
    return VendorKey(
        id=f"{'own' if own else 'pk'}_{number}",
        organization_id="org" if own else None,
        provider=draw(st.sampled_from(PROVIDERS)),
        origin=draw(mostly(*ADDRESSES)),
        secret=draw(mostly(f"secret {number}", None)),
        problem=None,
        sort_order=draw(st.integers(-1, 2)),
        expires_at_us=draw(st.sampled_from((None, NOW_US + 5, NOW_US + 9, NOW_US))),
        updated_at_us=0,
        **limits,
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    endpoints = [draw(endpoint(n)) for n in range(draw(st.integers(3, 9)))]
    platform = [draw(vendor_key(n, own=False)) for n in range(draw(st.integers(2, 6)))]
    own = [draw(vendor_key(n, own=True)) for n in range(draw(st.sampled_from((0, 3, 6, 9))))]
    pairs = [f"{e.id} {k.id}" for e in endpoints for k in (*platform, *own)]
    resting = draw(st.sets(st.sampled_from(pairs), max_size=20))
    until = st.integers(51, 60).map(float)
    ids = st.sampled_from([e.id for e in endpoints])
    names = st.lists(NAMES, max_size=3).map(tuple)
    model = st.sampled_from([f"{m}{suffix}" for m in MODELS for suffix in ("", ":nitro", ":floor")])
    return Case(
        endpoints=endpoints,
        platform=platform,
        own=own,
        rests={pair: Rested(draw(until), draw(st.booleans())) for pair in sorted(resting)},
        sick=draw(st.sets(ids)),
        speeds=draw(st.dictionaries(ids, st.sampled_from((1.0, 2.0, 3.0)))),
        models=draw(st.lists(model, min_size=2, max_size=4, unique=True)),
        preferences=Preferences(
            order=draw(names),
            only=draw(mostly((), ("alpha", "beta"), ("Provider GAMMA",), ("alpha/eu",))),
            ignore=draw(mostly((), ("alpha",), ("Beta/EU", "nobody"))),
            allow_fallbacks=draw(mostly(True, False)),
            sort=draw(st.sampled_from((None, None, "price", "throughput", "latency"))),
            partition=draw(st.sampled_from(("model", "none"))),
        ),
        organization=Settings(
            allowed_providers=draw(mostly(None, ["alpha", "beta/eu"])),
            ignored_providers=draw(mostly([], ["gamma/us"])),
            default_provider_sort=draw(st.sampled_from((None, None, "price"))),
            byok_fee_bps=FEE_BPS,
        ),
        asker=Asker(
            family_id=draw(st.sampled_from(("fam_1", "fam_2"))),
            workspace_id=draw(st.sampled_from((None, "ws_1", "ws_2"))),
            user_id=draw(st.sampled_from((None, "ann", "bob"))),
        ),
        pick=draw(st.integers(0, 8)),
        seats=draw(
            st.dictionaries(
                st.sampled_from(MODELS),
                st.sampled_from([(e.id, k.id) for e in endpoints for k in (*platform, *own)]),
            )
        ),
    )


FAMILIES = {"hash_1": "fam_1", "hash_2": "fam_2"}


def planned(case: Case) -> Plan | Refusal:
    """What the gateway plans."""
    models = {
        name: Model(
            id=name,
            name=name,
            vendor="Demo",
            description=None,
            family=None,
            aliases=(),
            context_length=100_000,
            max_completion_tokens=8_000,
            default_max_tokens=None,
            supported_parameters=(),
            input_modalities=("text",),
            output_modalities=("text",),
            is_moderated=False,
            released_at_us=None,
            created_at_us=0,
            life=Lifecycle(deprecated_at_us=None, retired_at_us=None, successor=None),
            endpoints=tuple(e for e in case.endpoints if e.model == name),
        )
        for name in MODELS
    }
    rng = Picks()
    rng.place = case.pick
    plan_input = PlanInput(
        catalog=Catalog(
            revision=1,
            models=models,
            aliases={},
            families={},
            keyless={},
            provider_names=Everybody(),
        ),
        vendor_keys={p: tuple(k for k in case.platform if k.provider == p) for p in PROVIDERS},
        own_keys=OwnKeys(
            by_provider={p: tuple(k for k in case.own if k.provider == p) for p in PROVIDERS},
            families=FAMILIES,
        ),
        asker=case.asker,
        organization=OrganizationState(case.organization, 1, False),
        policies=tuple(filter(None, (organization_policy(case.organization),))),
        sort=case.organization.default_provider_sort,
        health=FixedHealth(case),
        stickiness=FixedSeats(case),
        conversation=("org", "fam", 1),
        now_us=NOW_US,
        now_s=NOW_S,
        rng=rng,
        default_output_bound=1_000,
    )
    message = Message(role="user", parts=(TextPart(text="hello"),))
    request = Request(
        dialect="chat_completions",
        family="openai_chat",
        models=tuple(case.models),
        body=Generate(messages=(message,)),
        preferences=case.preferences,
        body_bytes=5,
    )
    return plan(request, plan_input, measure(request))


# --- the rules, said once more


def named(e: Endpoint, name: str) -> bool:
    return name.lower() in {e.provider, e.tag, e.provider_name.lower()}


def place_in(order: Sequence[str], e: Endpoint) -> int:
    return min((n for n, name in enumerate(order) if named(e, name)), default=len(order))


def mixed_price(e: Endpoint) -> int:
    price = e.dated_prices[0][1]
    assert price is not None
    return (3 * price.prompt_pico + price.completion_pico) // 4


def takes_part(e: Endpoint, case: Case) -> bool:
    wanted, settings_ = case.preferences, case.organization
    allowed = settings_.allowed_providers
    lists: list[Sequence[str]] = [*([allowed] if allowed is not None else []), wanted.only or TAGS]
    if any(not any(named(e, name) for name in names) for names in lists):
        return False
    if any(named(e, name) for name in (*wanted.ignore, *settings_.ignored_providers)):
        return False
    if wanted.order and not wanted.allow_fallbacks:
        return any(named(e, name) for name in wanted.order)
    return e.is_live


def is_meant(key: VendorKey, model: str, asker: Asker) -> bool:
    if key.workspace_id not in (None, asker.workspace_id):
        return False
    if key.allowed_models is not None and not [
        pattern
        for pattern in MODEL_LISTS[key.allowed_models]
        if re.fullmatch(pattern.replace("*", ".*"), model)
    ]:
        return False
    if key.allowed_user_ids is not None and asker.user_id not in key.allowed_user_ids:
        return False
    families = [FAMILIES.get(name) for name in key.allowed_api_key_hashes or ()]
    return key.allowed_api_key_hashes is None or asker.family_id in families


def keys_of(e: Endpoint, case: Case) -> tuple[list[VendorKey], list[VendorKey], list[VendorKey]]:
    """(own ones, the platform's, own ones that are a fallback) that a call can carry, each in its order."""

    def usable(key: VendorKey) -> bool:
        rest = case.rests.get(f"{e.id} {key.id}")
        return (
            key.secret is not None
            and key.origin == e.origin
            and (key.expires_at_us is None or key.expires_at_us > NOW_US)
            and not (rest is not None and rest.is_closed)
        )

    own = [k for k in case.own if k.provider == e.provider and is_meant(k, e.model, case.asker)]
    own.sort(key=lambda k: k.sort_order)
    platform = [k for k in case.platform if k.provider == e.provider]
    never = 2**60
    platform.sort(
        key=lambda k: (never if k.expires_at_us is None else k.expires_at_us, k.sort_order)
    )
    if any(k.is_required for k in own):
        platform = []
    return (
        [k for k in own if usable(k) and not k.is_fallback],
        [k for k in platform if usable(k)],
        [k for k in own if usable(k) and k.is_fallback],
    )


def in_order(endpoints: list[Endpoint], sort: str | None, case: Case) -> list[Endpoint]:
    """Listed ones, then sorted, or healthy ones with one picked, then sick ones."""
    order = case.preferences.order
    by_price = sorted(endpoints, key=lambda e: (mixed_price(e), -e.weight))
    listed = sorted(
        (e for e in endpoints if place_in(order, e) < len(order)),
        key=lambda e: place_in(order, e),
    )
    rest = [e for e in by_price if e not in listed]
    if sort == "price":
        return listed + rest
    if sort is not None:
        sign = -1 if sort == "throughput" else 1
        measured = [e for e in rest if e.id in case.speeds]
        measured.sort(key=lambda e: sign * case.speeds[e.id])
        return listed + measured + [e for e in rest if e.id not in case.speeds]
    healthy = [e for e in endpoints if e in rest and e.id not in case.sick]
    picked = [healthy[case.pick % len(healthy)]] if healthy else []
    others = [e for e in rest if e not in picked and e in healthy]
    return listed + picked + others + [e for e in rest if e.id in case.sick]


Pair = tuple[str, str]


def rest_of(pair: Pair, case: Case) -> float | None:
    rest = case.rests.get(" ".join(pair))
    return None if rest is None else rest.until_s


def in_turns(endpoints: list[Endpoint], case: Case) -> list[Pair]:
    """The targets of endpoints in their order: own keys, the platform's, own fallbacks."""
    order = case.preferences.order

    def own(column: int) -> list[Pair]:
        found = [
            ((place_in(order, e), key.sort_order, n, m), (e.id, key.id))
            for n, e in enumerate(endpoints)
            for m, key in enumerate(keys_of(e, case)[column])
        ]
        return [pair for _, pair in sorted(found)]

    first = own(0)
    awake = [pair for pair in first if rest_of(pair, case) is None]
    late = first[first.index(awake[3]) + 1 :] if len(awake) > 3 else []
    platform = [(e.id, key.id) for e in endpoints for key in keys_of(e, case)[1]]
    return [*first[: len(first) - len(late)], *platform, *late, *own(2)]


def seat_first(pairs: list[Pair], seat: Pair | None, case: Case) -> list[Pair]:
    """Who served the conversation last moves to the head of its kind, if it is awake and well."""
    own = {key.id: key for key in case.own}

    def kind(pair: Pair) -> str:
        key = own.get(pair[1])
        return "platform" if key is None else "fallback" if key.is_fallback else "own"

    if seat is None or seat[0] in case.sick:
        return pairs
    there = [pair for pair in pairs if pair[0] == seat[0] and rest_of(pair, case) is None]
    if not there:
        return pairs
    chosen = seat if seat in there else there[0]
    before = pairs[: pairs.index(chosen)]
    of_its_kind = [*takewhile(lambda pair: kind(pair) == kind(chosen), before[::-1])]
    others = [pair for pair in pairs if pair != chosen]
    place = len(before) - len(of_its_kind)
    return [*others[:place], chosen, *others[place:]]


def resting_last(pairs: list[Pair], case: Case) -> list[Pair]:
    awake = [pair for pair in pairs if rest_of(pair, case) is None]
    resting = sorted(
        (pair for pair in pairs if pair not in awake), key=lambda pair: rest_of(pair, case) or 0
    )
    room = max(MAX_TARGETS - len(resting), MAX_TARGETS // 2)
    return (awake[:room] + resting)[:MAX_TARGETS] if resting else awake[:MAX_TARGETS]


def restated(case: Case) -> tuple[list[Pair], dict[str, int]]:
    """The targets in order, and how many endpoints of each model could serve."""
    wanted = case.preferences
    found: list[Pair] = []
    eligible: dict[str, int] = {}
    usable_of: dict[str, list[Endpoint]] = {}
    for name in dict.fromkeys(each.partition(":")[0] for each in case.models):
        suffix = next(each for each in case.models if each.partition(":")[0] == name)
        own_sort = {"nitro": "throughput", "floor": "price"}.get(suffix.partition(":")[2])
        sort = wanted.sort or own_sort or case.organization.default_provider_sort
        usable = [
            e
            for e in case.endpoints
            if e.model == name and e.is_live and takes_part(e, case) and any(keys_of(e, case))
        ]
        usable_of[name] = usable
        eligible[name] = len(usable)
        targets = in_turns(in_order(usable, sort, case), case)
        if not (wanted.order or wanted.sort or own_sort):
            targets = seat_first(targets, case.seats.get(name), case)
        if not wanted.allow_fallbacks and not wanted.order:
            targets = resting_last(targets, case)[:1]
        found += targets
    if wanted.sort and wanted.partition == "none":
        kept = set(found)
        there = {endpoint_id for endpoint_id, _ in found}
        pool = [e for usable in usable_of.values() for e in usable if e.id in there]
        found = [pair for pair in in_turns(in_order(pool, wanted.sort, case), case) if pair in kept]
    return resting_last(found, case), eligible


@settings(max_examples=200, deadline=None)
@given(cases())
def test_a_plan_is_what_the_rules_say(case: Case) -> None:
    answer = planned(case)
    expected, eligible = restated(case)
    if isinstance(answer, Refusal):
        assert expected == []
        return
    found = [(p.target.endpoint_id, p.target.credential.id) for p in answer.targets]
    assert found == expected
    own = {key.id: key for key in case.own}
    for each in answer.targets:
        credential = each.target.credential
        assert credential.byok is (credential.id in own)
        assert each.eligible == eligible[each.target.model]
        if credential.byok:
            assert credential.fee_bps == FEE_BPS
            assert credential.is_required is own[credential.id].is_required


@settings(max_examples=50, deadline=None)
@given(cases())
def test_an_own_key_holds_its_fee_of_what_the_platform_s_key_would_hold(case: Case) -> None:
    free = msgspec.structs.replace(case, own=[], rests={})
    with_own = msgspec.structs.replace(case, rests={})
    plans = [planned(free), planned(with_own)]
    of_platform = {
        p.target.endpoint_id: p.hold_nano
        for each in plans
        if isinstance(each, Plan)
        for p in each.targets
        if not p.target.credential.byok
    }
    assert isinstance(plans[1], Plan | Refusal)
    for p in plans[1].targets if isinstance(plans[1], Plan) else ():
        held_nano = of_platform.get(p.target.endpoint_id)
        if p.target.credential.byok and held_nano is not None:
            assert p.hold_nano == fee_nano(held_nano, FEE_BPS)
