// `version`: of this program and of the server.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { Failure } from '../failure.ts'

export function defineVersion(command: Command, { run }: Tools): void {
  command
    .option('--client', 'of this program only, without asking the server')
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} version\n  ${PROGRAM} version -o jsonpath='{.server}'`)
    .action(
      run(async (session, { client = false }: { client?: boolean }) => {
        const { api, version } = session
        let problem: Failure | undefined
        let server: string | undefined
        try {
          if (!client) server = (await api.get('/openapi.json')).body.info?.version
        } catch (error) {
          if (!(error instanceof Failure)) throw error
          problem = error
        }
        await session.print({
          value: { client: version, ...(server !== undefined && { server, url: api.url.href }) },
          human: ({ pairs }) =>
            pairs([
              ['Client:', version],
              ...(server === undefined ? [] : [['Server:', `${server} (${api.url.href})`] as const]),
            ]),
        })
        if (problem) throw problem
      }),
    )
}
