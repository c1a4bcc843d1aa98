"""Golden files of the embeddings dialect and of the OpenAI embeddings format."""

from pathlib import Path

import pytest

from gwd.core.request import Embed
from gwd.dialects.embeddings import DIALECT
from gwd.vendors.openai_embeddings import ADAPTER
from tests.golden import golden

REQUESTS = golden.inputs("requests/embeddings", ".json")
ANSWERS = golden.inputs("answers/openai_embeddings", ".json")
SERVED = [path for path in ANSWERS if path.stem != "error_mid_stream"]
FAULTS = golden.inputs("faults/openai_embeddings", ".http")
ASKED = golden.request(
    dialect="embeddings", family="openai_embeddings", body=Embed(inputs=("Hello",))
)
CROSSED = (
    *(
        path.relative_to(golden.ROOT).with_suffix(".openai_embeddings.json").as_posix()
        for path in REQUESTS
    ),
    *(
        golden.rendered_path(path, "embeddings").relative_to(golden.ROOT).as_posix()
        for path in SERVED
    ),
)


@pytest.mark.parametrize("path", REQUESTS, ids=golden.name_of)
def test_a_body_parses_to_its_request(path: Path, update_golden: bool):
    golden.check_request(DIALECT, path, update=update_golden)


@pytest.mark.parametrize("path", REQUESTS, ids=golden.name_of)
def test_floats_are_asked_for_whatever_the_client_wants(path: Path, update_golden: bool):
    to = golden.target("openai_embeddings")
    golden.check_build(DIALECT, ADAPTER, path, to, update=update_golden)


@pytest.mark.parametrize("path", ANSWERS, ids=golden.name_of)
def test_an_answer_decodes_to_its_vectors(path: Path, update_golden: bool):
    golden.check_answer(ADAPTER, path, update=update_golden, asked=ASKED)


@pytest.mark.parametrize("path", SERVED, ids=golden.name_of)
def test_a_client_gets_its_vectors(path: Path, update_golden: bool):
    golden.check_rendered(ADAPTER, DIALECT, path, update=update_golden, asked=ASKED)


@pytest.mark.parametrize("path", FAULTS, ids=golden.name_of)
def test_a_failed_answer_is_its_fault(path: Path, update_golden: bool):
    golden.check_fault(ADAPTER, path, update=update_golden)
