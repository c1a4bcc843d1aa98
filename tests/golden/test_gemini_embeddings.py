"""Golden files of Gemini's embeddings, and of clients of the embeddings dialect at models that speak it."""

from pathlib import Path

import msgspec
import pytest

from gwd.core.errors import UnsupportedInput
from gwd.core.request import Embed, Request
from gwd.dialects.embeddings import DIALECT
from gwd.vendors.base import UndecodableError
from gwd.vendors.gemini import ADAPTER
from gwd.vendors.gemini.embeddings import MAX_BATCH
from tests.golden import golden

TO = golden.target("gemini")
# Numbers of tokens mean something to one vendor only.
REFUSED = "full__tokens.json"
REQUESTS = [p for p in golden.inputs("requests/embeddings", ".json") if p.name != REFUSED]
ANSWERS = golden.inputs("answers/gemini_embeddings", ".json")
SERVED = [path for path in ANSWERS if path.stem != "error_mid_stream"]


def asked(*inputs: str) -> Request:
    return golden.request(
        dialect="embeddings", family="openai_embeddings", body=Embed(inputs=inputs or ("Hello",))
    )


CROSSED = (
    *(p.relative_to(golden.ROOT).with_suffix(".gemini.json").as_posix() for p in REQUESTS),
    *(golden.rendered_path(p, "embeddings").relative_to(golden.ROOT).as_posix() for p in SERVED),
)


@pytest.mark.parametrize("path", REQUESTS, ids=golden.name_of)
def test_texts_go_upstream_as_one_batch(path: Path, update_golden: bool):
    golden.check_build(DIALECT, ADAPTER, path, TO, update=update_golden)


@pytest.mark.parametrize("path", ANSWERS, ids=golden.name_of)
def test_an_answer_decodes_to_its_vectors(path: Path, update_golden: bool):
    golden.check_answer(ADAPTER, path, update=update_golden, asked=asked())


@pytest.mark.parametrize("path", SERVED, ids=golden.name_of)
def test_a_client_gets_its_vectors(path: Path, update_golden: bool):
    golden.check_rendered(ADAPTER, DIALECT, path, update=update_golden, asked=asked())


def test_tokens_are_refused():
    body = (golden.ROOT / "requests/embeddings" / REFUSED).read_bytes()
    with pytest.raises(UnsupportedInput, match="text"):
        ADAPTER.build(DIALECT.parse(body, {}), TO)


def test_a_batch_is_as_long_as_the_vendor_takes_it():
    most = ADAPTER.build(asked(*["a"] * MAX_BATCH), TO)
    assert len(msgspec.json.decode(most.body)["requests"]) == MAX_BATCH
    with pytest.raises(UnsupportedInput, match=str(MAX_BATCH)):
        ADAPTER.build(asked(*["a"] * (MAX_BATCH + 1)), TO)


@pytest.mark.parametrize("body", [b'{"embeddings":[]}', b"{}", b"<html>", b'{"embeddings":[{}]}'])
def test_an_answer_without_a_vector_for_each_text_is_undecodable(body: bytes):
    with pytest.raises(UndecodableError):
        ADAPTER.decode(body, asked(), TO)
