// `status`: which server this is, how it is, and what it holds.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { unmet } from '../failure.ts'
import { refuseNameOutput } from '../output/print.ts'
import type { Session } from '../session.ts'

export function defineStatus(command: Command, { run }: Tools): void {
  command
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} status\n  ${PROGRAM} status -o jsonpath='{.revision}'`)
    .action(
      run(async (session) => {
        refuseNameOutput(session)
        const { api, settings } = session
        const [ready, openapi] = await Promise.all([
          api.get('/ready', { expect: [503] }),
          api.get('/openapi.json'),
        ])
        const isReady = ready.status === 200
        const { mode, revision, age_seconds, reason } = ready.body
        const isDegraded = isReady && ready.body.status === 'degraded'
        const counts = isReady && mode === 'crud' ? await countAll(session) : {}
        const value = {
          server: api.url.href,
          ...(settings.context !== undefined && { context: settings.context }),
          version: openapi.body.info?.version,
          status: isReady ? ready.body.status : ready.body.message,
          mode,
          revision,
          ...(isDegraded && { age_seconds, reason }),
          documents: counts,
        }
        await session.print({
          value,
          human: ({ pairs }) =>
            pairs([
              ['Server:', value.context ? `${value.server} (context ${value.context})` : value.server],
              ['Version:', String(value.version)],
              ['Status:', isDegraded ? `degraded, ${age_seconds} s old: ${reason}` : String(value.status)],
              ['Mode:', String(mode ?? '')],
              ['Revision:', String(revision ?? '')],
              ...Object.entries(counts).map(([name, number]): [string, string] => [
                `${name}:`,
                number.toLocaleString('en'),
              ]),
            ]),
        })
        if (!isReady) throw unmet('the server is not ready')
      }),
    )
}

async function countAll({ api, nouns }: Session): Promise<Record<string, number>> {
  const counts = await Promise.all(
    nouns.map(async ({ name }): Promise<[string, number]> => {
      const { headers } = await api.get(`/${name}`, { query: { limit: 0 } })
      return [name, Number(headers['x-total-count'])]
    }),
  )
  return Object.fromEntries(counts)
}
