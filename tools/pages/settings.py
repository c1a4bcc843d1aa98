"""docs/settings.md: every setting with its variable, default, limits and line of explanation."""

from typing import Any, get_args

from msgspec import Meta
from msgspec.structs import FieldInfo

from gwd.settings.sections import SECTIONS, as_toml_value, description_of, fields_of
from tools.pages.markdown import page as whole
from tools.pages.markdown import table

_INTRODUCTION = """\
Settings stand in `gwd.toml`, which `gwd init` writes with every setting at its default. A variable in the environment
beats the file, `--host` and `--port` of `gwd serve` beat both. The same variable with `_FILE` behind its name takes the
value from a file. A name that is no setting stops the start with the nearest known name; so does a variable `GWD_…`
that is none. Settings are read at the start: a change waits for a restart. Whether mail arrives tells
`gwctl webhook test` of a mail address ([alerts.md](alerts.md#mail)).

`gwd` itself reads one more variable: `GWD_CONFIG`, the file or directory that `--config` names."""


def page() -> str:
    """The page."""
    parts = []
    for section, kind in SECTIONS.items():
        rows = [
            (
                f"`{name}`",
                f"`{as_toml_value(field.default)}`",
                _limits(field),
                f"{description_of(field)}<br>`GWD_{section}_{name}`".replace(
                    f"GWD_{section}_{name}", f"GWD_{section}_{name}".upper()
                ),
            )
            for name, field in fields_of(section).items()
        ]
        head = f"## `[{section}]`\n\n{kind.__doc__}"
        parts.append(f"{head}\n\n{table(('setting', 'default', 'may be', 'what it does'), rows)}")
    return whole("Settings", _INTRODUCTION, *parts)


def _limits(field: FieldInfo) -> str:
    """What the type allows, in words."""
    kind, metas = _unwrapped(field.type)
    if choices := [value for value in get_args(kind) if isinstance(value, str)]:
        return ", ".join(f"`{choice}`" for choice in choices)
    if kind is bool:
        return "`true`, `false`"
    if get_args(kind):
        return "list of texts"
    bounds: dict[str, Any] = {}
    for meta in metas:
        for name in ("gt", "ge", "le"):
            if getattr(meta, name) is not None:
                bounds[name] = getattr(meta, name)
    name = {int: "number", float: "number", str: "text"}[kind]
    if "gt" in bounds:
        return f"{name} above {bounds['gt']:,}, up to {bounds['le']:,}"
    if "ge" in bounds:
        return f"{bounds['ge']:,} to {bounds['le']:,}"
    return name


def _unwrapped(kind: Any) -> tuple[Any, list[Meta]]:
    """The plain type and everything that annotates it; a setting's own limits come last."""
    metas = list(getattr(kind, "__metadata__", ()))
    return getattr(kind, "__origin__", kind) if metas else kind, metas
