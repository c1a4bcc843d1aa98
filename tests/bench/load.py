"""Loads on one peer: closed loop (wrk), fixed rate (olc.py), paced streams (paced.py). All on the load core."""

import json
import os
import re
import resource
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.gateways import Peer
from tests.bench.machine import LOAD_CORE, WORK, busy_s, spawn, stop, used, wait_for_calm
from tests.bench.upstream import PORTS, TOOLS_PYTHON

HERE = Path(__file__).resolve().parent
GAP_MS = 20
Numbers = dict[str, Any]


@dataclass
class Bench:
    """What the loads share: the vendor's process, patience, and what others used during each step."""

    nginx: int
    calm_s: float
    others_cores: list[float] = field(default_factory=list)

    def closed_loop(self, peer: Peer, kind: str, connections: int, seconds: int) -> Numbers:
        """As many requests as so many connections get answered."""
        command = [
            *("wrk", "-t1", f"-c{connections}", f"-d{seconds}", "--timeout", "20s"),
            *("-s", str(WORK / "post.lua"), peer.address(kind)),
        ]
        headers = {**peer.headers_for(kind), "content-type": "application/json"}
        environment = {
            **os.environ,
            "HDRS": ";".join(f"{name}={value}" for name, value in headers.items()),
            "BODY": str(peer.bodies[kind]),
        }
        wait_for_calm(self.calm_s)
        before = self._clocks(peer)
        text = _run(command, seconds, environment)
        after = self._clocks(peer)
        machine_s, peer_s, ours_s = (b - a for a, b in zip(before, after, strict=True))
        self.others_cores.append((machine_s - peer_s - ours_s) / seconds)
        found = re.search(r"^\{.*\}$", text, re.MULTILINE)
        if found is None:
            return {
                "rps": 0.0,
                "bad": -1,
                "err": 0,
                "p50": 0,
                "p99": 0,
                "cpu_us": 0.0,
                "cores": 0.0,
            }
        reported = json.loads(found[0])
        if kind == "sse" and reported["n"] < 10 * connections:
            # A slow peer: what came of unfinished streams counts too.
            reported["n"] = max(reported["n"], reported["bytes"] / peer.stream_bytes)
        return {
            "rps": (reported["n"] - reported["bad"]) / reported["secs"],
            "bad": reported["bad"],
            "err": reported["err"],
            "p50": reported["p50"],
            "p99": reported["p99"],
            "cpu_us": peer_s / max(1, reported["n"]) * 1e6,
            "cores": peer_s / reported["secs"],
        }

    def fixed_rate(self, peer: Peer, kind: str, rate: int, seconds: int) -> Numbers:
        """A request at every tick, whether or not earlier ones are back."""
        wait_for_calm(self.calm_s)
        command = [str(TOOLS_PYTHON), str(HERE / "olc.py"), peer.address(kind), str(rate)]
        text = _run([*command, str(seconds), *_request(peer, kind)], seconds)
        reported: Numbers = json.loads(text.strip().splitlines()[-1])
        return reported

    def paced(self, peer: Peer, connections: int, seconds: int) -> Numbers:
        """Streams that the vendor sends one event at a time."""
        script = [str(TOOLS_PYTHON), str(HERE / "paced.py")]
        serve = ["serve", str(PORTS["paced"]), str(GAP_MS), str(WORK / "html" / "chat.sse")]
        upstream = spawn([*script, *serve], LOAD_CORE, "paced.log")
        try:
            time.sleep(0.6)
            load = ["load", peer.address("paced"), str(connections), str(seconds)]
            client = subprocess.Popen(
                ["taskset", "-c", LOAD_CORE, *script, *load, *_request(peer, "paced")],
                stdout=subprocess.PIPE,
                text=True,
            )
            reported, cpu_s = _follow(client, lambda: _cpu_s(peer))
        finally:
            stop(upstream)
        reported["cpu_us_event"] = cpu_s / max(1, reported.get("events", 0)) * 1e6
        reported["cores"] = cpu_s / seconds
        return reported

    def _clocks(self, peer: Peer) -> tuple[float, float, float]:
        """CPU seconds so far of the machine, the peer, and of what the bench itself runs."""
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        ours_s = children.ru_utime + children.ru_stime + used(self.nginx)[0]
        return busy_s(), _cpu_s(peer), ours_s


def _follow(client: subprocess.Popen[str], cpu_s: Callable[[], float]) -> tuple[Numbers, float]:
    """What the client tells at its end, and what was used between its START and STOP."""
    reported: Numbers = {}
    began_s = ended_s = 0.0
    assert client.stdout is not None
    with client.stdout as lines:
        for line in lines:
            if line.startswith("START"):
                began_s = cpu_s()
            elif line.startswith("STOP"):
                ended_s = cpu_s()
            elif line.startswith("{"):
                reported = json.loads(line)
    client.wait(10)
    return reported, ended_s - began_s


def _request(peer: Peer, kind: str) -> list[str]:
    headers = [f"{name}={value}" for name, value in peer.headers_for(kind).items()]
    return [str(peer.bodies[kind]), *headers]


def _run(command: list[str], seconds: int, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        ["taskset", "-c", LOAD_CORE, *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds + 60,
        check=False,
    )
    return done.stdout


def _cpu_s(peer: Peer) -> float:
    return used(peer.process.pid)[0] if peer.process else 0.0
