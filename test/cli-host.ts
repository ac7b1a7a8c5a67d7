// Runs command lines for tests, one after the other or at once, in one process: starting it takes longer than most of them.
import { Readable, Writable } from 'node:stream'
import type { Terminal } from '../src/cli/output/terminal.ts'
import { runProgram } from '../src/cli/program.ts'
import { shippedVersion } from '../src/cli/shipped.ts'

export interface Line {
  readonly id: number
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly input: string
}

function collect(chunks: string[]): NodeJS.WriteStream {
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      chunks.push(String(chunk))
      done()
    },
  })
  return stream as NodeJS.WriteStream
}

process.on('message', async ({ id, args, env, input }: Line) => {
  const [out, err]: [string[], string[]] = [[], []]
  const terminal: Terminal = {
    env,
    stdin: Readable.from(input === '' ? [] : [Buffer.from(input)]) as unknown as NodeJS.ReadStream,
    stdout: collect(out),
    stderr: collect(err),
  }
  const code = await runProgram(args, { terminal, version: shippedVersion() })
  process.send?.({ id, code, stdout: out.join(''), stderr: err.join('') })
})
