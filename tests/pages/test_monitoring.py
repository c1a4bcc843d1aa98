"""The rules for Prometheus and the dashboard for Grafana ask for what a node that has served says of itself."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client.parser import text_string_to_metric_families

from gwd.api.metrics import FAMILIES
from gwd.core.errors import FaultReason
from gwd.demo import Behaviour
from gwd.health.record import State
from tests.architecture.test_pages import anchors
from tests.support import promql
from tests.support.node import Gateway, open_gateway
from tools.pages.errors import codes

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
RULES = EXAMPLES / "prometheus" / "rules.yml"
DASHBOARD = json.loads((EXAMPLES / "grafana" / "dashboard.json").read_text())
PROMTOOL = shutil.which("promtool")
# What Prometheus itself adds to every series; it calls a label of ours that is one of these `exported_…`.
ITS_OWN = {"instance", "job"}
# Labels whose values are closed sets.
VALUES = {
    "code": {code for code, _, _ in codes()},
    "status": {*get_args(State), "2xx", "4xx", "5xx"},
    "reason": {*get_args(FaultReason), "ok", "bad_request", "cancelled", "error_finish"},
    "method": {"POST", "GET"},
}


def rules() -> list[dict[str, Any]]:
    return [
        rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
    ]


def expressions() -> Iterator[tuple[str, str]]:
    """(where, expression)."""
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for annotation in DASHBOARD["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


async def served(gateway: Gateway) -> dict[str, set[str]]:
    """Name of a sample → its labels, on the page of a node to which everything has happened."""
    gateway.vendor.script.next(Behaviour(), Behaviour(status=500))
    for stream in (True, False):
        await gateway.chat(stream=stream)
    await gateway.chat(model="demo/nothing")
    await gateway.chat(headers={"authorization": "Bearer gwi_" + "0" * 49})
    await gateway.chat("x" * 10, model="demo/embed")
    gateway.vendor.script.next(Behaviour(prompt_tokens=90_000, completion_tokens=5))
    await gateway.chat(model="demo/chat-b")
    await gateway.at_rest()
    gateway.running.node.counters.connections_cut["slow"] += 1
    gateway.running.node.counters.heads_refused["framing"] += 1
    gateway.running.node.counters.shed["memory"] += 1
    gateway.running.node.counters.spans["sent"] += 1
    gateway.running.node.counters.content_log["failed"] += 1
    async with httpx.AsyncClient() as client:
        page = (await client.get(f"http://127.0.0.1:{gateway.running.port}/metrics")).text
    found: dict[str, set[str]] = {"up": set()}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


async def test_rules_and_dashboard_ask_for_what_there_is(tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    environment = {"GWD_BACKUP_DIRECTORY": str(copies)}
    async with open_gateway(tmp_path, environment=environment) as gateway:
        there = await served(gateway)
    wrong = []
    for where, expression in expressions():
        asked = promql.read(expression)
        labels = set(ITS_OWN)
        for metric, matchers in asked.metrics.items():
            if metric not in there:
                wrong.append((where, metric))
                continue
            own = {f"exported_{name}" if name in ITS_OWN else name for name in there[metric]}
            labels |= own
            for matcher in matchers:
                if matcher.label not in own | ITS_OWN:
                    wrong.append((where, f"{metric}{{{matcher.label}}}"))
                unknown = set(matcher.values) - VALUES.get(matcher.label, set(matcher.values))
                wrong += [(where, f"{matcher.label} is never {value}") for value in unknown]
        wrong += [(where, f"by {label}") for label in asked.grouped_by - labels]
    assert wrong == []


def test_a_metric_that_is_worth_an_alert_has_one() -> None:
    """All that docs/metrics.md says so of, but for two whose bound is the operator's own."""
    asked = {name for rule in rules() for name in promql.read(rule["expr"]).metrics}
    worth = {
        f"{family.name}_total" if family.kind == "counter" else family.name
        for family in FAMILIES
        if family.alert
    }
    assert worth - asked == {"gwd_upstream_in_flight", "gwd_keyring_age_seconds"}


def test_every_rule_says_what_and_leads_to_what_helps() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) > 20
    headings = anchors(ROOT / "docs" / "operations.md")
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning"), rule
        assert len(rule["annotations"]["summary"]) > 20, rule
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert (page, anchor) == ("docs/operations.md", rule["alert"].lower())
        assert anchor in headings


def test_labels_in_texts_are_labels_that_the_expression_leaves() -> None:
    for rule in rules():
        text = rule["annotations"]["summary"]
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= set(
            re.findall(r"\b\w+\b", rule["expr"])
        ) | ITS_OWN | {"exported_job"}, rule


def test_panels_are_named_apart_and_lie_beside_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    assert all(panel["title"] and panel["description"] for panel in panels())


def test_the_reader_of_expressions_sees_what_is_wrong() -> None:
    found = promql.read('sum by (a) (rate(x_total{b=~"c|d", e!="f"}[5m])) / y > 0.5')
    assert found.metrics == {
        "x_total": [promql.Matcher("b", "=~", ("c", "d")), promql.Matcher("e", "!=", ("f",))],
        "y": [],
    }
    assert found.grouped_by == {"a"}
    for wrong in ("sum(x", 'x{a"b"}', "rates(x[5m])", "x % y", "rate(x[5])"):
        with pytest.raises(ValueError, match=":"):
            promql.read(wrong)


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not here")
def test_every_rule_fires_and_is_silent_where_all_is_well() -> None:
    assert PROMTOOL is not None
    for words in (["check", "config", "prometheus.yml"], ["test", "rules", "rules_test.yml"]):
        done = subprocess.run(
            [PROMTOOL, *words],
            cwd=RULES.parent, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_rule_has_figures_at_which_it_fires() -> None:
    tests = yaml.safe_load((RULES.parent / "rules_test.yml").read_text())["tests"]
    fires = {
        each["alertname"]
        for test in tests
        for each in test["alert_rule_test"]
        if each["exp_alerts"]
    }
    quiet = {
        each["alertname"]
        for test in tests
        for each in test["alert_rule_test"]
        if not each["exp_alerts"]
    }
    assert fires == quiet == {rule["alert"] for rule in rules()}
