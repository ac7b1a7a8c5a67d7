// `demo`: the workflows of the demo fleet, one command each.
import type { Command } from 'commander'
import { POLL_BASE } from '../../base/urls.ts'
import { ensureAssigned } from '../apply/ensure-assigned.ts'
import { patchValues } from '../apply/patch-values.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { addFieldFlags, readFieldFlags } from '../input/field-flags.ts'
import { collect } from '../input/option-parsers.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { fieldsOf, type Noun } from '../server/nouns.ts'

type Flags = WriteFlags & Readonly<Record<string, unknown>>

export function defineDemo(command: Command, tools: Tools): void {
  const { run, nouns } = tools
  const namespace = nouns.find(({ name }) => name === 'namespaces')
  if (namespace) defineAddNamespace(command, tools, namespace)

  const patch = command
    .command('patch-component')
    .description('Set values of a component on a cluster.')
    .argument('<cluster>', 'id of the cluster')
    .argument('<component>', 'id of the component')
    .option(
      '--set <key=value>',
      'set a value (repeatable); the key is taken as it is, dots included',
      collect,
    )
  addWriteFlags(patch)
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} demo patch-component demo-cluster-01 podinfo --set replicaCount=3 --set ui.message=Hello`,
    )
    .action(
      run((session, cluster: string, component: string, flags: WriteFlags & { set?: string[] }) =>
        patchValues(session, component, { ...flags, cluster: [cluster] }),
      ),
    )

  command
    .command('flux-namespaces')
    .description(
      'What Flux gets when a cluster polls its namespaces, by the DNS name that it phones home with.',
    )
    .argument('<dns>', 'DNS name of the cluster')
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} demo flux-namespaces demo-cluster-01.k8s.example.com`)
    .action(
      run(async (session, dns: string) => {
        if (dns === '' || dns.includes('/')) throw usage(`"${dns}" is not a DNS name`)
        const { body } = await session.api.get(`${POLL_BASE}/${encodeURIComponent(dns)}/namespaces`)
        await session.print({ value: body, human: () => `${JSON.stringify(body, null, 2)}\n` })
      }),
    )
}

function defineAddNamespace(command: Command, { run, nouns, program }: Tools, namespace: Noun): void {
  const add = command
    .command('add-namespace')
    .description('Create a namespace, or update it, and give it to a cluster.')
    .argument('<cluster>', 'id of the cluster')
    .argument('<namespace>', 'name of the namespace')
  const fields = addFieldFlags(add, fieldsOf(namespace, nouns), program)
  addWriteFlags(add)
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} demo add-namespace demo-cluster-01 demo-runtime --label team=platform --annotation owner=you`,
    )
    .action(
      run((session, cluster: string, id: string, flags: Flags) =>
        ensureAssigned(
          session,
          flags,
          namespace,
          { id, ...readFieldFlags(fields, flags) },
          { clusters: [cluster] },
        ),
      ),
    )
}
