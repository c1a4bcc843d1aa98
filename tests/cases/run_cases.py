#!/usr/bin/env python3
"""Play the case files against a gateway, from outside, and tell which assertions fail.

    python tests/cases/run_cases.py                           every case of open/ and ours/ beside this file
    python tests/cases/run_cases.py --only 001,047 -v         two cases, with every failing assertion
    python tests/cases/run_cases.py --kind money --core       by kind, the ones to run first
    python tests/cases/run_cases.py --base-url http://127.0.0.1:8080/api/v1 --management-key gwm_…

Needs nothing but Python. The daemon is run as `PYTHON -m gwd init --dir TMP --json` and
`PYTHON -m gwd serve --config TMP/gwd.toml --host 127.0.0.1 --port N`; fake vendors listen on loopback ports;
catalogue, money and key are made over the management API.

Every case gets a gateway of its own. Organizations are no clean border between cases (endpoint health, catalogue
and credentials are shared, and a management key cannot make keys for another organization), and a fresh process is:
a failing case cannot colour the next one. It stays fast because `--jobs` cases run side by side.
With --base-url the running gateway is cleared between cases instead (models test/*, budgets, balance), one case at a
time; cases that need a clock, a zone, an environment or a restart are skipped. Use a throw-away gateway.

The last line is `N passed, M failed` (`, K skipped`); exit status 1 if any failed, 2 for wrong usage.
"""

import argparse
import asyncio
import os
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[1]
if (
    __name__ == "__main__"
):  # as a script this file has its own folder, not the project, to import from
    sys.path.insert(0, str(PROJECT))

from tests.cases.caserunner.files import load_cases  # noqa: E402
from tests.cases.caserunner.gateway import Options  # noqa: E402
from tests.cases.caserunner.play import Result, run_case  # noqa: E402
from tests.cases.caserunner.stream import Json  # noqa: E402

VERDICTS = ("passed", "failed", "skipped")


def main() -> int:
    options = parse_options()
    numbers = {number.strip().zfill(3) for number in options.only.split(",") if number.strip()}
    cases = [
        case
        for case in load_cases(options.cases)
        if (not numbers or case["id"] in numbers)
        and (not options.kind or case["kind"] == options.kind)
        and (not options.core or case.get("core"))
    ]
    if not cases:
        print("no case fits the options", file=sys.stderr)
        return 2
    return asyncio.run(run_all(cases, options))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    say = parser.add_argument
    say("--project", type=Path, default=PROJECT, help="holds the gwd package (default: this one)")
    say("--python", help="its interpreter (default: PROJECT/.venv/bin/python, else this one)")
    say("--cases", type=Path, nargs="*", help="folders of case files (default: open/ and ours/)")
    say("--only", default="", help="case numbers, comma between")
    say("--kind", help="one kind, for example money")
    say("--core", action="store_true", help="only the cases marked core")
    say("--jobs", type=int, help="cases side by side (default: one per processor, at most 4)")
    say("--base-url", help="use this running gateway, http://HOST:PORT/api/v1")
    say("--management-key", help="its operator key")
    say("-v", "--verbose", action="store_true", help="every case, every failing assertion, the log")
    options = parser.parse_args()
    if bool(options.base_url) != bool(options.management_key):
        parser.error("--base-url and --management-key go together")
    options.project = options.project.resolve()
    own = options.project / ".venv" / "bin" / "python"
    options.python = options.python or (str(own) if own.exists() else sys.executable)
    options.jobs = 1 if options.base_url else options.jobs or min(4, os.cpu_count() or 1)
    return options


async def run_all(cases: list[Json], options: argparse.Namespace) -> int:
    places = asyncio.Semaphore(options.jobs)
    gateway = Options(options.project, options.python, options.base_url, options.management_key)

    async def in_its_place(case: Json) -> Result:
        async with places:
            return await run_case(case, gateway)

    running = [asyncio.create_task(in_its_place(case)) for case in cases]
    results = []
    for task in running:
        results.append(await task)
        report(results[-1], verbose=options.verbose)
    print_table(results)
    counts = Counter(result.verdict for result in results)
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}")
    return 1 if counts["failed"] else 0


def report(result: Result, *, verbose: bool) -> None:
    """One line per case that did not pass; verbose: everything that is known."""
    if result.verdict == "passed" and not verbose:
        return
    case = result.case
    reason = f": {result.reasons[0]}" if result.reasons else ""
    print(f"{result.verdict.upper():7} {case['id']} {case['slug']}{reason}")
    if verbose and result.verdict == "failed":
        print(f"      {case['title']}")
        for more in result.reasons[1:]:
            print(f"      also: {more}")
        if result.last_words:
            print(result.last_words)
    sys.stdout.flush()


def print_table(results: list[Result]) -> None:
    kinds = sorted({result.case["kind"] for result in results})
    width = max(map(len, kinds))
    print(f"\n{'kind':{width}} " + " ".join(f"{verdict:>7}" for verdict in VERDICTS))
    for kind in kinds:
        counts = Counter(result.verdict for result in results if result.case["kind"] == kind)
        print(f"{kind:{width}} " + " ".join(f"{counts[verdict]:7}" for verdict in VERDICTS))


if __name__ == "__main__":
    sys.exit(main())
