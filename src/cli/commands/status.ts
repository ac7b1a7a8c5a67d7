// `status`: which server this is, how it is, what it holds, and what the clusters are doing.
import type { Command } from 'commander'
import type { FleetStatus } from '../../api/status-schema.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { unmet } from '../failure.ts'
import { findStatus, readStatus } from '../fleet/read-status.ts'
import { addStateFlags, type StateFlags } from '../input/state-flags.ts'
import { type Look, refuseNameOutput } from '../output/print.ts'
import { countsTable, statusTable } from '../output/status-table.ts'
import { clusterNoun } from '../server/nouns.ts'
import type { Session } from '../session.ts'

const ABOUT = `
contact: whether a cluster still polls; delivery: how much of its desired state it has applied; health: the state of its
components. Without evidence a state is unknown, never healthy. With a filter, the clusters are listed instead.`

export function defineStatus(command: Command, { run }: Tools): void {
  addStateFlags(command)
    .addHelpText(
      'after',
      `${ABOUT}\n\nExamples:\n  ${PROGRAM} status\n  ${PROGRAM} status --contact offline\n  ${PROGRAM} status -l environment=prod --health failed -o name\n  ${PROGRAM} status -o jsonpath='{.revision}'`,
    )
    .action(
      run((session, flags: StateFlags) =>
        Object.keys(flags).length > 0 ? listClusters(session, flags) : describeServer(session),
      ),
    )
}

async function listClusters(session: Session, flags: StateFlags): Promise<void> {
  const status = await readStatus(session, { query: { ...flags } })
  const { name } = clusterNoun(session.nouns)
  await session.print({
    value: status,
    names: status.clusters.map(({ cluster }) => `${name}/${cluster}`),
    human: (look) => (status.total === 0 ? '' : statusTable(look, status)),
  })
  if (status.total === 0 && session.format.kind === 'human') session.note('No clusters found.')
}

async function describeServer(session: Session): Promise<void> {
  refuseNameOutput(session)
  const { api, settings } = session
  const [ready, openapi] = await Promise.all([api.get('/ready', { expect: [503] }), api.get('/openapi.json')])
  const isReady = ready.status === 200
  const { mode, revision, age_seconds, reason } = ready.body
  const isDegraded = isReady && ready.body.status === 'degraded'
  const [documents, fleet] = await Promise.all([
    isReady && mode === 'crud' ? countAll(session) : {},
    isReady ? findStatus(session, { limit: 0 }) : undefined,
  ])
  const value = {
    server: api.url.href,
    ...(settings.context !== undefined && { context: settings.context }),
    version: openapi.body.info?.version,
    status: isReady ? ready.body.status : ready.body.message,
    mode,
    revision,
    ...(isDegraded && { age_seconds, reason }),
    documents,
    ...(fleet && { fleet: withoutClusters(fleet) }),
  }
  await session.print({ value, human: (look) => serverReport(look, value, fleet) })
  if (!isReady) throw unmet('the server is not ready')
}

interface Server {
  readonly server: string
  readonly context?: string
  readonly version: unknown
  readonly status: unknown
  readonly mode: unknown
  readonly revision: unknown
  readonly age_seconds?: unknown
  readonly reason?: unknown
  readonly documents: Readonly<Record<string, number>>
}

function serverReport(look: Look, server: Server, fleet: FleetStatus | undefined): string {
  const { age_seconds, reason } = server
  const isDegraded = age_seconds !== undefined
  const head = look.pairs([
    ['Server:', server.context ? `${server.server} (context ${server.context})` : server.server],
    ['Version:', String(server.version)],
    ['Status:', isDegraded ? `degraded, ${age_seconds} s old: ${reason}` : String(server.status)],
    ['Mode:', String(server.mode ?? '')],
    ['Revision:', String(server.revision ?? '')],
    ...Object.entries(server.documents).map(([name, number]): [string, string] => [
      `${name}:`,
      number.toLocaleString('en'),
    ]),
  ])
  return fleet && fleet.total > 0 ? `${head}\n${countsTable(look, fleet)}` : head
}

function withoutClusters({ clusters: _clusters, ...rest }: FleetStatus): Omit<FleetStatus, 'clusters'> {
  return rest
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
