"""The grammar of numbers: what is read, what is refused, and what a refusal says; the same in both programs."""

from decimal import Decimal

import gwctl.numbers
import gwd.core.numbers

READ = {
    "50": "50", "12.50": "12.50", "1,250": "1250", "1,250.50": "1250.50", "12,345,678": "12345678", ".5": "0.5",
    "0.000001": "0.000001", "2.5e-7": "2.5e-7", "1E3": "1000", "007": "7", "-3": "-3", " 5 ": "5",
}  # fmt: skip
REFUSED = {
    "12,50": "12.50", "12,5": "12.5", "0,500": "0.500", "1,2345": "1.2345", "1,25,000": "125000",
    "1,250,00": "1250.00", "1.250,50": "1250.50", "1.250.000": "1250000", "1'250": "1250", "1\u2019250": "1250",
    "1 250": "1250", "1\u00a0250": "1250", "1_000": "1000", "\uff11\uff12": "12", "\u0661\u0662\u066b\u0665": "12.5",
    "+5": "5", "12,50 \u20ac": "12.50", "5 USD": "5", "$$5": "5", "1,,000": "1000",
    "": "", "abc": "", "5.": "", "12,": "", "--3": "", "NaN": "", "Infinity": "", "0x10": "", "1e3e3": "", "1/2": "",
    "1e9999": "", "1" * 29: "", "\u00b2": "", "\u2163": "", "5\n": "5", "9" * 300: "",
}  # fmt: skip


def test_both_programs_read_numbers_by_one_grammar() -> None:
    for module in (gwctl.numbers, gwd.core.numbers):
        wrong = {t: module.read(t) for t, value in READ.items() if module.read(t) != Decimal(value)}
        wrong |= {t: module.read(t) for t in REFUSED if module.read(t) is not None}
        assert wrong == {}
        hints = {t: module.hint(t) for t, m in REFUSED.items()}
        assert hints == {t: f"did you mean {m}?" if m else "" for t, m in REFUSED.items()}


def test_what_we_would_have_read_is_in_the_grammar() -> None:
    for text in REFUSED:
        reading = gwctl.numbers.meant(text)
        assert reading is None or reading == text or gwctl.numbers.read(reading) is not None
