"""Shell completion: small scripts that ask gwctl itself, and the answers."""

from collections.abc import Callable
from typing import Any

SCRIPTS = {
    "bash": """\
_gwctl() {
    local words="${COMP_WORDS[*]:1:COMP_CWORD-1}"
    COMPREPLY=($(compgen -W "$(GWCTL_COMPLETE="$words" gwctl 2>/dev/null)" \\
        -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _gwctl gwctl
""",
    "zsh": """\
#compdef gwctl
_gwctl() {
    local -a answers
    answers=("${(@f)$(GWCTL_COMPLETE="${words[2,CURRENT-1]}" gwctl 2>/dev/null)}")
    compadd -a answers
}
compdef _gwctl gwctl
""",
    "fish": """\
function __gwctl_complete
    set -l words (commandline -opc)
    GWCTL_COMPLETE="$words[2..]" gwctl 2>/dev/null
end
complete -c gwctl -f -a '(__gwctl_complete)'
""",
}

_COMMON = ("--json", "--jq", "--jsonl", "--quiet", "--profile", "--yes", "--debug", "--help")


def answers(root: Any, words: str, providers: Callable[[], list[str]]) -> list[str]:
    """What may follow these words: commands, the options of the command they name, or who an option can name.

    `providers` asks the gateway, and is called only behind an option that takes a provider.
    """
    command, context = root, None
    for word in words.split():
        if word.startswith("-") or not hasattr(command, "get_command"):
            continue
        found = command.get_command(context, word)
        if found is None:
            return []
        command = found
    if hasattr(command, "list_commands"):
        return list(command.list_commands(context))
    last = words.split()[-1]
    if any(
        last in parameter.opts and parameter.metavar == "PROVIDER" for parameter in command.params
    ):
        return providers()
    options = [name for parameter in command.params for name in parameter.opts if name[:2] == "--"]
    return [*options, *_COMMON]
