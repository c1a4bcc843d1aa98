"""Every noun in the names of modules and classes is the field's word or stands in the table of words."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("pipeline", "upstream", "store", "ledger", "health")

# What a programmer, an accountant or an operator of services knows without a page of ours.
FIELD_WORDS = """
    account admission admitted after ahead already audit balance base broken cached connection counter counting credit
    database decompression dispatcher eligibility error failed failures field fields filter health held http inference
    instance json lock lost low model new no old only open page prompt proxy read redaction references refused rejected
    repair reply reports resolution resources retry routing row running service settlement sqlite store stored table
    tables timeouts timing tokens transaction unsupported upstream verification writer
"""


def parts(name: str) -> set[str]:
    """`SettleWait` and `settle_wait`: settle, wait."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", name).replace("_", " ")
    return {word for word in spaced.lower().split() if len(word) > 1}


def names() -> dict[str, str]:
    """Each name of a module or a public class, and where it is."""
    found = {}
    for room in ROOMS:
        for path in sorted((ROOT / "gwd" / room).rglob("*.py")):
            if path.stem == "__init__" or path.parent.name == "migrations":
                continue
            place = path.relative_to(ROOT).as_posix()
            found[path.stem] = place
            for name in re.findall(r"^class ([A-Z]\w+)", path.read_text("utf-8"), re.MULTILINE):
                found[name] = place
    return found


def test_every_noun_of_a_name_is_known_or_explained():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    table = page.split("## Words", 1)[1].split("\n## ", 1)[0]
    # Also the verbs, which are bold below the table.
    explained = parts(" ".join(re.findall(r"\*\*([^*]+)\*\*", table)).replace(",", " "))
    known = set(FIELD_WORDS.split()) | explained | {f"{word}s" for word in explained}
    unknown = {
        name: (place, sorted(parts(name) - known))
        for name, place in names().items()
        if parts(name) - known
    }
    assert unknown == {}, "name it by the field's word, or put it into the table"
