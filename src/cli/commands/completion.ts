// `completion`: scripts for shells, which ask `__complete` what could come next.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { SHELLS, type Shell } from '../input/shells.ts'

const FUNCTION = '_flux_resourceset_cli'
/** The second name of the program. */
const SHORT = 'frs'
/** What a file is typed after. */
const FILE_FLAGS =
  '^(-f|--(file|input|api-token-file|write-token-file|ca-file|client-cert|client-key|output-dir))$'

const SCRIPTS: Record<Shell, string> = {
  bash: `# ${PROGRAM} completion for bash
${FUNCTION}() {
  local word=\${COMP_WORDS[COMP_CWORD]} words=() each line last=-1
  # Bash makes three words of a=b.
  for each in "\${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if (( last >= 0 )) && [[ $each == = || \${words[last]} == ?*= ]]; then
      words[last]+=$each
    else
      words+=("$each")
      last=$((last + 1))
    fi
  done
  [[ $word == = ]] && word=
  local before=\${words[last]%"$word"}
  COMPREPLY=()
  while IFS= read -r line; do
    [[ $line == "$before$word"* ]] && COMPREPLY+=("\${line#"$before"}")
  done < <(${PROGRAM} __complete -- "\${words[@]}" 2>/dev/null | cut -f1)
  if [[ \${#COMPREPLY[@]} -eq 0 && \${COMP_WORDS[COMP_CWORD - 1]} =~ ${FILE_FLAGS} ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$word"))
  elif [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace 2>/dev/null
  fi
}
complete -F ${FUNCTION} ${PROGRAM} ${SHORT}
`,
  zsh: `#compdef ${PROGRAM} ${SHORT}
# ${PROGRAM} completion for zsh
${FUNCTION}() {
  local -a found
  local line
  while IFS= read -r line; do
    found+=("\${\${line//:/\\\\:}/$'\\t'/:}")
  done < <(${PROGRAM} __complete -- "\${(@)words[2,CURRENT-1]}" "\${words[CURRENT]}" 2>/dev/null)
  if (( \${#found} )); then _describe '' found
  elif [[ \${words[CURRENT-1]} =~ '${FILE_FLAGS}' ]]; then _files; fi
}
if [ "$funcstack[1]" = "${FUNCTION}" ]; then ${FUNCTION} "$@"; else compdef ${FUNCTION} ${PROGRAM} ${SHORT}; fi
`,
  fish: `# ${PROGRAM} completion for fish
function ${FUNCTION}
  set -l words (commandline -opc)
  ${PROGRAM} __complete -- $words[2..] (commandline -ct) 2>/dev/null
end
for name in ${PROGRAM} ${SHORT}
  complete -c $name -f -a '(${FUNCTION})'
  complete -c $name -n '__fish_seen_subcommand_from apply diff batch create update' -s f -l file -r -F
end
`,
  powershell: `# ${PROGRAM} completion for PowerShell
Register-ArgumentCompleter -Native -CommandName ${PROGRAM}, ${SHORT} -ScriptBlock {
  param($word, $ast, $position)
  $words = @($ast.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -lt $position } | ForEach-Object { "$_" })
  ${PROGRAM} __complete -- @words "$word" 2>$null | ForEach-Object {
    $name, $about = $_ -split "\`t", 2
    if (-not $about) { $about = $name }
    [System.Management.Automation.CompletionResult]::new($name, $name, 'ParameterValue', $about)
  }
}
`,
}

export function defineCompletion(command: Command, { context: { terminal } }: Tools): void {
  command
    .argument('<shell>', SHELLS.join(', '))
    .addHelpText(
      'after',
      `\nIt completes commands, flags, and what the server has: ids, labels, filters, revisions, deleted clusters for restore.\n\nExamples:\n  source <(${PROGRAM} completion bash)\n  ${PROGRAM} completion zsh > "\${fpath[1]}/_${PROGRAM}"\n  ${PROGRAM} completion fish > ~/.config/fish/completions/${PROGRAM}.fish\n  ${PROGRAM} completion powershell | Out-String | Invoke-Expression`,
    )
    .action((name: string) => {
      const shell = SHELLS.find((each) => each === name)
      if (!shell) throw usage(`there is completion for ${SHELLS.join(', ')}, not for "${name}"`)
      terminal.stdout.write(SCRIPTS[shell])
    })
}
