#!/usr/bin/env python3
"""Side-by-side load on gateways in front of one fixed vendor, as a table; see README.md beside this file.

    python tests/bench/peers.py --quick                             direct, portkey, gwd; one pass
    python tests/bench/peers.py --quick --peers direct,litellm,gwd  other peers
    python tests/bench/peers.py --json out.json                     direct, portkey, litellm, gwd; three passes

Everything runs on loopback: the gateway on core 0; vendor and load on core 1. What is started here is stopped here.
"""

import argparse
import json
import statistics
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
if (
    __name__ == "__main__"
):  # as a script this file has its own folder, not the project, to import from
    sys.path.insert(0, str(PROJECT))

from tests.bench import upstream  # noqa: E402
from tests.bench.gateways import PEERS, Peer  # noqa: E402
from tests.bench.load import Bench, Numbers  # noqa: E402
from tests.bench.machine import WORK, Skip, log, stop, used  # noqa: E402
from tests.bench.table import table  # noqa: E402

READY_LIMIT_S = 90
REPORTED = (
    "rps_c32",
    "cpu_us_req_c32",
    "lat50_us",
    "sse_rps",
    "sse_cpu_us_req",
    "paced_cpu_us_event",
)


def main() -> int:
    options = parse_options()
    upstream.prepare()
    began_s = time.monotonic()
    raw: dict[str, list[Numbers]] = {name: [] for name in options.peers}
    skipped: dict[str, str] = {}
    nginx = upstream.start()
    try:
        for number in range(options.repeat):
            for name in options.peers:
                if name in skipped or time.monotonic() - began_s > options.budget:
                    continue
                try:
                    raw[name].append(measure(name, options, Bench(nginx.pid, options.calm)))
                except Skip as reason:
                    skipped[name] = str(reason)
                    log(name, "skipped:", reason)
                else:
                    seen = raw[name][-1]
                    log(
                        name,
                        f"pass {number + 1}:",
                        {k: round(seen[k], 1) for k in REPORTED if k in seen},
                    )
    finally:
        stop(nginx)
    add_latencies(raw)
    if options.json:
        options.json.write_text(json.dumps({"raw": raw, "skipped": skipped}, indent=1))
    print(f"\nmedian [min..max] of up to {options.repeat} passes, {options.secs} s a step\n")
    print(table({name: passes for name, passes in raw.items() if passes}))
    for name, why in skipped.items():
        print(f"\n{name}: skipped ({why})")
    print(f"\nwhole run {time.monotonic() - began_s:.0f} s")
    return 1 if "gwd" in skipped else 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    say = parser.add_argument
    say("--quick", action="store_true", help="portkey and gwd only, one pass")
    say("--peers", help=f"comma between: {','.join(PEERS)}")
    say("--gwd", type=Path, default=PROJECT, help="checkout of gwd (default: this one)")
    say("--secs", type=int, help="length of a step (default 3, quick 2)")
    say("--repeat", type=int, help="passes over all peers (default 3, quick 1)")
    say("--paced", type=int, default=100, help="connections of the paced load (0: none)")
    say("--calm", type=float, help="wait so many seconds for a quiet machine (default 3, quick 1)")
    say("--budget", type=int, help="begin no pass after so many seconds (default 420, quick 50)")
    say("--json", type=Path, help="write every number here")
    options = parser.parse_args()
    usual = "direct,portkey,gwd" if options.quick else "direct,portkey,litellm,gwd"
    options.peers = (options.peers or usual).split(",")
    if unknown := set(options.peers) - PEERS.keys():
        parser.error(f"no such peer: {', '.join(sorted(unknown))}")
    defaults = {"secs": (3, 2), "repeat": (3, 1), "calm": (3, 1), "budget": (420, 50)}
    for name, pair in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, pair[options.quick])
    return options


def measure(name: str, options: argparse.Namespace, bench: Bench) -> Numbers:
    """One pass over one peer: start, load, stop."""
    peer = PEERS[name](options.gwd)
    try:
        numbers = ready(name, peer)
        numbers |= latencies(name, peer, options, bench)
        numbers |= throughput(name, peer, options, bench)
        numbers["others_cores"] = max(0.0, *bench.others_cores)
        numbers["rss_after_mb"] = used(peer.process.pid)[1] if peer.process else 0
        return numbers
    finally:
        if peer.process is not None:
            stop(peer.process)


def latencies(name: str, peer: Peer, options: argparse.Namespace, bench: Bench) -> Numbers:
    """Before the heavy loads: some peers go on working after a load has ended."""
    bench.closed_loop(peer, "json", 8, 1 if options.quick else 2)  # warms up
    time.sleep(0.5)
    reported = bench.fixed_rate(peer, "json", 50, options.secs)
    if reported["err"]:
        log(name, "errors at 50 rps:", reported["err"])
    numbers = {"lat50_us": reported["p50"], "lat99_us": reported["p99"]}
    if "sse" in peer.models:
        numbers["sse_ttfb50_us"] = bench.fixed_rate(peer, "sse", 5, options.secs)["ttfb50"]
    return numbers


def throughput(name: str, peer: Peer, options: argparse.Namespace, bench: Bench) -> Numbers:
    numbers: Numbers = {}
    for connections in (32,) if options.quick else (32, 128):
        reported = bench.closed_loop(peer, "json", connections, options.secs)
        numbers |= {
            f"rps_c{connections}": reported["rps"],
            f"p50us_c{connections}": reported["p50"],
            f"p99us_c{connections}": reported["p99"],
            f"cpu_us_req_c{connections}": reported["cpu_us"],
            f"cores_c{connections}": reported["cores"],
        }
        if reported["bad"] or reported["err"]:
            log(name, f"{connections}: {reported['bad']} not 2xx, {reported['err']} socket errors")
    if "sse" not in peer.models:
        return numbers
    if options.paced and not options.quick:
        reported = bench.paced(peer, options.paced, options.secs)
        numbers |= {
            "paced_events_s": reported.get("events_s", 0),
            "paced_cpu_us_event": reported["cpu_us_event"],
            "paced_cores": reported["cores"],
        }
    reported = bench.closed_loop(peer, "sse", 32, options.secs)
    events_s = reported["rps"] * upstream.EVENTS
    return numbers | {
        "sse_rps": reported["rps"],
        "sse_events_s": events_s,
        "sse_cpu_us_req": reported["cpu_us"],
    }


def ready(name: str, peer: Peer) -> Numbers:
    """Wait for the first good answer; a peer that cannot stream is measured without."""
    for kind, model in peer.models.items():
        peer.bodies[kind] = WORK / f"body-{name}-{kind}.json"
        peer.bodies[kind].write_bytes(upstream.request_body(model, stream=kind != "json"))
    while b"quick brown fox" not in (answer := _post(peer, "json")):
        if peer.process is not None and peer.process.poll() is not None:
            raise Skip(f"its process ended with {peer.process.returncode}")
        if time.monotonic() - peer.started_s > READY_LIMIT_S:
            raise Skip(f"no good answer in {READY_LIMIT_S} s: {answer[:200]!r}")
        time.sleep(0.02)
    startup_s = time.monotonic() - peer.started_s
    stream = _post(peer, "sse")
    peer.stream_bytes = len(stream) + 7 * upstream.EVENTS  # with the framing of its chunks
    if b"[DONE]" not in stream or stream.count(b"data: ") < upstream.TOKENS:
        log(f"{name}: measured without streams: {stream[:120]!r}")
        del peer.models["sse"]
    time.sleep(1)
    idle_mb = used(peer.process.pid)[1] if peer.process else 0.0
    return {"startup_s": startup_s, "rss_idle_mb": idle_mb}


def _post(peer: Peer, kind: str) -> bytes:
    """The answer, or the trouble there was."""
    headers = {"content-type": "application/json", **peer.headers_for(kind)}
    request = urllib.request.Request(
        peer.address(kind), data=peer.bodies[kind].read_bytes(), headers=headers, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            body: bytes = reply.read()
            return body
    except urllib.error.HTTPError as error:
        return error.read()
    except OSError as error:
        return str(error).encode()


def add_latencies(raw: dict[str, list[Numbers]]) -> None:
    """What a gateway adds to the time of a call straight to the vendor."""
    direct = raw.get("direct") or []
    if not direct:
        return
    added = {"lat50_us": "add50_us", "lat99_us": "add99_us", "sse_ttfb50_us": "sse_addttfb_us"}
    floors = {name: statistics.median(one[name] for one in direct) for name in added}
    for name, passes in raw.items():
        for numbers in passes if name != "direct" else ():
            for measured, field in added.items():
                if measured in numbers:
                    numbers[field] = numbers[measured] - floors[measured]


if __name__ == "__main__":
    sys.exit(main())
