"""Tab completion: the script that a shell needs; what it offers is in `sweep.cli.candidates`."""

from __future__ import annotations

import argparse

from sim.base.errors import InputError, unknown
from sweep.cli.candidates import SHELLS
from sweep.cli.command import Command

_BASH = """\
# Tab completion of `python -m sweep` for bash. To have it in every shell:
#   python -m sweep completion bash >> ~/.bashrc
_python_m_sweep() {
    local line="${COMP_LINE:0:COMP_POINT}" at last found i
    local -a words
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    for ((at = 1; at < ${#words[@]} - 2; at++)); do
        [[ ${words[at]} == -m && ${words[at + 1]} == sweep ]] && break
    done
    ((at < ${#words[@]} - 2)) || return 0
    last="${words[${#words[@]} - 1]}"
    local cut="${last%"${last##*[=:]}"}"  # readline sees only what is after these
    while IFS= read -r found; do
        [[ -n $found ]] || continue
        [[ $found == *[=.]* ]] && compopt -o nospace 2> /dev/null
        COMPREPLY+=("${found#"$cut"}")
    done < <("${COMP_WORDS[0]}" -m sweep.cli.candidates "${words[@]:at + 2}" 2> /dev/null)
}
complete -o bashdefault -o default -F _python_m_sweep python python3
"""

_ZSH = """\
# Tab completion of `python -m sweep` for zsh. To have it in every shell, after compinit:
#   python -m sweep completion zsh >> ~/.zshrc
_python_m_sweep() {
    local at=${words[(i)sweep]}
    if (( at > 2 && at < CURRENT )) && [[ ${words[at - 1]} == -m ]]; then
        local -a found open
        found=(${(f)"$(${(Q)words[1]} -m sweep.cli.candidates "${(@)words[at + 1, CURRENT]}" \\
            2> /dev/null)"})
        open=(${(M)found:#*[=.]*})
        found=(${found:#*[=.]*})
        (( $#open )) && compadd -Q -S '' -a open
        (( $#found )) && compadd -Q -a found
        (( $#open + $#found )) && return 0
        compset -P '*='
        _files
        return
    fi
    (( $+functions[_python] )) || autoload -Uz _python
    _python 2> /dev/null || _files
}
compdef _python_m_sweep python python3
"""

_FISH = """\
# Tab completion of `python -m sweep` for fish. To have it in every shell:
#   python -m sweep completion fish > ~/.config/fish/conf.d/sweep.fish
function __python_m_sweep
    set -l words (commandline -opc)
    for at in (seq (count $words))
        set -l next (math $at + 1)
        if test "$words[$at]" = -m; and test "$words[$next]" = sweep
            set -l python $words[(math $at - 1)]
            set -e words[1..$next]
            $python -m sweep.cli.candidates $words (commandline -ct) 2> /dev/null
            return
        end
    end
end
for python in python python3
    complete -c $python -n 'string match -qr -- "-m sweep " (commandline -pc)' \\
        -a '(__python_m_sweep)'
end
"""

SCRIPTS = dict(zip(SHELLS, (_BASH, _ZSH, _FISH), strict=True))


def completion_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags: none."""
    parser.usage = f"{parser.prog} {'|'.join(SHELLS)}"
    parser.epilog = 'eval "$(python -m sweep completion bash)" has it in this shell'


def completion(command: Command) -> int:
    """Print the script with which a shell completes all this with Tab: bash, zsh or fish."""
    if command.overrides or len(command.names) != 1:
        raise InputError(f"completion takes a shell: {', '.join(SHELLS)}", rule="unknown shell")
    (shell,) = command.names
    if shell not in SCRIPTS:
        raise InputError(unknown("shell", shell, SHELLS), rule="unknown shell")
    print(SCRIPTS[shell], end="")
    return 0
