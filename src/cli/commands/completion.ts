// `completion`: scripts for shells, which ask `__complete` what could come next.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { SHELLS, type Shell } from '../input/shells.ts'

const FUNCTION = '_flux_resourceset_cli'

const SCRIPTS: Record<Shell, string> = {
  bash: `# ${PROGRAM} completion for bash
${FUNCTION}() {
  local word=\${COMP_WORDS[COMP_CWORD]} line
  COMPREPLY=()
  while IFS= read -r line; do
    [[ $line == "$word"* ]] && COMPREPLY+=("$line")
  done < <(${PROGRAM} __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" "$word" 2>/dev/null | cut -f1)
  if [[ \${#COMPREPLY[@]} -eq 0 ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$word"))
  elif [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace 2>/dev/null
  fi
}
complete -F ${FUNCTION} ${PROGRAM}
`,
  zsh: `#compdef ${PROGRAM}
# ${PROGRAM} completion for zsh
${FUNCTION}() {
  local -a found
  local line
  while IFS= read -r line; do
    found+=("\${\${line//:/\\\\:}/$'\\t'/:}")
  done < <(${PROGRAM} __complete -- "\${(@)words[2,CURRENT-1]}" "\${words[CURRENT]}" 2>/dev/null)
  if (( \${#found} )); then _describe '' found; else _files; fi
}
if [ "$funcstack[1]" = "${FUNCTION}" ]; then ${FUNCTION} "$@"; else compdef ${FUNCTION} ${PROGRAM}; fi
`,
  fish: `# ${PROGRAM} completion for fish
function ${FUNCTION}
  set -l words (commandline -opc)
  ${PROGRAM} __complete -- $words[2..] (commandline -ct) 2>/dev/null
end
complete -c ${PROGRAM} -f -a '(${FUNCTION})'
complete -c ${PROGRAM} -n '__fish_seen_subcommand_from apply diff batch create' -s f -l file -r -F
`,
}

export function defineCompletion(command: Command, { context: { terminal } }: Tools): void {
  command
    .argument('<shell>', SHELLS.join(', '))
    .addHelpText(
      'after',
      `\nIt completes commands, flags, and the ids that the server has.\n\nExamples:\n  source <(${PROGRAM} completion bash)\n  ${PROGRAM} completion zsh > "\${fpath[1]}/_${PROGRAM}"\n  ${PROGRAM} completion fish > ~/.config/fish/completions/${PROGRAM}.fish`,
    )
    .action((name: string) => {
      const shell = SHELLS.find((each) => each === name)
      if (!shell) throw usage(`there is completion for ${SHELLS.join(', ')}, not for "${name}"`)
      terminal.stdout.write(SCRIPTS[shell])
    })
}
