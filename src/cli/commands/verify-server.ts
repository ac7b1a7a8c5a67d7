// `verify`: checks that the server's log of changes is whole.
import type { Command } from 'commander'
import { count } from '../../base/sentences.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { unmet } from '../failure.ts'
import { refuseNameOutput } from '../output/print.ts'
import { plain } from '../output/terminal.ts'

export function defineVerify(command: Command, { run }: Tools): void {
  command.addHelpText('after', `\nExits with 4 when it is not.\n\nExamples:\n  ${PROGRAM} verify`).action(
    run(async (session) => {
      refuseNameOutput(session)
      const { body } = await session.api.get('/revisions/verify')
      const { verified, revisions, documents, problems = [] } = body
      await session.print({
        value: body,
        human: () =>
          verified
            ? `The log is whole: ${count(revisions, 'revision')}, ${count(documents, 'document')}.\n`
            : problems
                .map(
                  (problem: unknown) =>
                    `${plain(typeof problem === 'string' ? problem : JSON.stringify(problem))}\n`,
                )
                .join(''),
      })
      if (!verified) throw unmet('the log is not whole')
    }),
  )
}
