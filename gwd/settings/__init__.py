"""settings: read once, from gwd.toml and the environment, checked whole, never looked up again.

Environment beats file: `GWD_<SECTION>_<NAME>`, or `GWD_<SECTION>_<NAME>_FILE` for a file that holds the value.
A variable `GWD_…` that is no setting stops the start as a misspelt key of the file does.
Owns: names, types, defaults, the rules between settings. Does not own: what rooms do with the values they are handed.
Speaks to: the commands, wiring and the handlers of the api; no room below ever sees it.
"""

from gwd.settings.merge import UNIX, load, otel_headers, smtp_password
from gwd.settings.sections import SECTIONS, Limits, Settings, StoreFiles, Timeouts, as_toml
from gwd.settings.source import SettingsError

__all__ = [
    "SECTIONS",
    "UNIX",
    "Limits",
    "Settings",
    "SettingsError",
    "StoreFiles",
    "Timeouts",
    "as_toml",
    "load",
    "otel_headers",
    "smtp_password",
]
