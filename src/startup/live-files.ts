// Values from files other than the store: tokens, access rules and certificates, followed while the process runs.
import type { Logger } from 'pino'
import { UsageProblem } from '../base/usage-problem.ts'
import type { Config } from '../config/config.ts'
import { type AccessRules, NO_RULES, readAccessRules } from '../http/auth/access-rules.ts'
import { filesOf, readSharedTokens, type SharedTokens } from '../http/auth/shared-tokens.ts'
import { readTlsFiles, type TlsOptions } from '../http/tls/tls-files.ts'
import type { RegisteredTypes } from '../registry/build-types.ts'
import { followFiles, type Read } from '../runtime/follow-files.ts'

export interface LiveFiles {
  shared: SharedTokens
  rules: AccessRules
  readonly tls: TlsOptions | undefined
}

export function readLiveFiles(
  { readTokens, writeTokens, accessFile, tls }: Config,
  types: RegisteredTypes,
  log: Logger,
): LiveFiles {
  const readShared = () => readSharedTokens(readTokens, writeTokens)
  const readRules = () =>
    accessFile ? readAccessRules(accessFile, types) : ({ ok: true, value: NO_RULES } as const)
  const [shared, rules, secured] = [readShared(), readRules(), tls && readTlsFiles(tls)]
  if (!shared.ok || !rules.ok || secured?.ok === false) {
    throw new UsageProblem(
      ...[shared, rules, secured].flatMap((read) => (read?.ok === false ? read.problems : [])),
    )
  }
  if (shared.value.hasWeak)
    log.warn('a token of the environment is shorter than 16 characters: it can be guessed')
  const files: LiveFiles = { shared: shared.value.tokens, rules: rules.value, tls: secured?.value.options }
  follow(log, filesOf(readTokens, writeTokens), readShared, ({ tokens }) => {
    files.shared = tokens
  })
  follow(log, accessFile ? [accessFile] : [], readRules, (value) => {
    files.rules = value
  })
  return files
}

function follow<T>(
  log: Logger,
  paths: readonly string[],
  read: () => Read<T>,
  take: (value: T) => void,
): void {
  followFiles(paths, {
    read,
    take(value) {
      take(value)
      log.info({ files: paths }, 'changed files were reloaded')
    },
    refuse(problems) {
      log.error({ problems }, 'changed files cannot be used: their earlier content stays in use')
    },
  })
}
