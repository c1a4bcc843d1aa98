"""Vendors' exports: each form by its columns, and no file is a traceback."""

import random
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from gwctl.errors import CommandError
from gwctl.vendor_export import Wanted, read

DAY = date(2026, 11, 2)
FORMS = {
    "openai usage": (
        "start_time_iso,model,input_tokens,input_cached_tokens,output_tokens\n2026-11-02T00:00:00Z,m,1301.0,100,20\n",
        [1201, 100, 0, 20],
        None,
    ),
    "openai cost": (
        'start_time_iso,amount_value,amount_currency,line_item\n2026-11-02T00:00:00Z,0.125,usd,"m, cached input"\n',
        None,
        Decimal("0.125"),
    ),
    "openai old usage": (
        "timestamp,snapshot_id,n_context_tokens_total,n_generated_tokens_total\n1793577600,m,30,4\n",
        [30, 0, 0, 4],
        None,
    ),
    "anthropic usage": (
        "usage_date_utc,model_version,usage_input_tokens_no_cache,usage_input_tokens_cache_write_5m,"
        "usage_input_tokens_cache_write_1h,usage_input_tokens_cache_read,usage_output_tokens\n2026-11-02,m,1,2,3,4,5\n",
        [1, 4, 5, 5],
        None,
    ),
    "anthropic cost": (
        "usage_date_utc,model,cost_usd\n2026-11-02,m,0.12\n",
        None,
        Decimal("0.12"),
    ),
    "gemini BigQuery": (
        "usage_start_time,sku.description,usage.amount,cost\n"
        "2026-11-02 08:00:00 UTC,Gemini 2.5 Flash output token count text,7,0.5\n",
        [0, 0, 0, 7],
        Decimal("0.5"),
    ),
    "gemini report": (
        "Usage start date,SKU description,Usage amount,Unrounded subtotal ($)\n"
        "2026-11-02,Gemini 2.5 Flash input token count text,7,0.5\n",
        [7, 0, 0, 0],
        Decimal("0.5"),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_each_form_is_known_by_its_columns(tmp_path: Path, name: str) -> None:
    written, tokens, cost = FORMS[name]
    vendor, _, form = name.partition(" ")
    path = tmp_path / "export.csv"
    path.write_text(written, "utf-8-sig")
    export = read(path, vendor, Wanted())
    assert export.form.name == form
    ((day, _),) = export.models
    (counted,) = export.models.values()
    assert (day, counted.tokens, counted.cost) == (DAY, tokens, cost)


def test_unknown_columns_are_named_beside_the_known(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(CommandError) as caught:
        read(path, "openai", Wanted())
    assert caught.value.exit_code == 2
    assert "a, b" in str(caught.value.why)
    assert "input_tokens" in str(caught.value.do)


def test_no_file_is_a_traceback(tmp_path: Path) -> None:
    dice, path = random.Random(4), tmp_path / "export.csv"
    for name, (written, _, _) in FORMS.items():
        for _ in range(100):
            changed = bytearray(written.encode())
            for _ in range(dice.randint(1, 4)):
                changed[dice.randrange(len(changed))] = dice.choice(b'\x00\xff\n\r",;\t-9e.')
            path.write_bytes(changed)
            try:
                read(path, name.partition(" ")[0], Wanted())
            except CommandError:
                continue
