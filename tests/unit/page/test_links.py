"""Every alert leads to a page that is there."""

import re
from urllib.parse import urlsplit

from gwd.alerts import samples
from gwd.page import table
from tests.support.store import NOW_US

APP = "https://gate.example/app"


def test_every_type_of_alert_leads_to_a_page():
    nowhere = []
    for type_ in samples.TYPES:
        made = samples.sample(type_, app_url=APP, now_us=NOW_US)
        assert made is not None
        url = made.url
        assert url.startswith(f"{APP}/"), type_
        path = urlsplit(url).path.removeprefix("/app")
        if table.page_at(path) is None:
            nowhere.append((type_, url))
    assert nowhere == []


def test_a_path_has_one_page_and_one_act():
    paths = [page.path for page in table.pages()]
    assert len(paths) == len(set(paths))
    acts = [act.path for act in table.acts()]
    assert len(acts) == len(set(acts))
    forms = {act.form for act in table.acts()} - {None}
    assert forms <= set(paths)
    assert not [path for path in (*paths, *acts) if re.search(r"[^a-z0-9/<>:_-]", path)]
