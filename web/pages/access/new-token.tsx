// Makes a named token: whose it is, what it may do, and until when.
import { Button, Group, Select, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { IssuedToken } from '../../../src/api/wire-types.ts'
import { ROLE_MEANINGS, ROLES, type Role, SCOPES } from '../../../src/domain/access/grant.ts'
import { send } from '../../api/client.ts'
import { CopyAs, inShell } from '../../parts/copy-as.tsx'
import { ProblemNotice } from '../../parts/problem-notice.tsx'

interface NewTokenProps {
  readonly onClose: () => void
  readonly onIssued: (issued: IssuedToken) => void
}

const LABELS = {
  cluster: 'Cluster',
  selector: 'Selector of clusters',
  types: 'Types, separated by commas',
} as const

export function NewToken({ onClose, onIssued }: NewTokenProps) {
  const client = useQueryClient()
  const [name, setName] = useState('')
  const [role, setRole] = useState<Role>('viewer')
  const [limits, setLimits] = useState<Readonly<Record<string, string>>>({})
  const [expires, setExpires] = useState('')
  const body = bodyOf(name, role, limits, expires)
  const create = useMutation({
    mutationFn: async () => (await send<IssuedToken>({ method: 'POST', path: '/tokens', body })).body,
    onSuccess: async (issued) => {
      onIssued(issued)
      onClose()
      await client.invalidateQueries({ queryKey: ['tokens'] })
    },
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        create.mutate()
      }}
    >
      <Group gap="sm" p="sm" align="flex-end">
        <TextInput
          label="Name"
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
          required
          spellCheck={false}
        />
        <Select
          label="Role"
          data={ROLES.map((each) => ({ value: each, label: `${each}: ${ROLE_MEANINGS[each]}` }))}
          value={role}
          onChange={(chosen) => setRole((chosen ?? role) as Role)}
          allowDeselect={false}
          w={300}
        />
        {SCOPES[role].map((limit) => (
          <TextInput
            key={limit}
            label={LABELS[limit]}
            value={limits[limit] ?? ''}
            onChange={({ currentTarget: { value } }) =>
              setLimits((before) => ({ ...before, [limit]: value }))
            }
            required={limit === 'cluster'}
            spellCheck={false}
          />
        ))}
        <TextInput
          label="Expires"
          type="date"
          value={expires}
          onChange={({ currentTarget }) => setExpires(currentTarget.value)}
        />
        <Button type="submit" loading={create.isPending} disabled={name.trim() === ''}>
          Create
        </Button>
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <CopyAs call={{ method: 'POST', path: '/tokens', body }} cli={cliOf(name, role, limits)} />
      </Group>
      {create.error && <ProblemNotice error={create.error} />}
    </form>
  )
}

function bodyOf(name: string, role: Role, limits: Readonly<Record<string, string>>, expires: string) {
  const given = SCOPES[role].flatMap((limit): [string, unknown][] => {
    const text = limits[limit]?.trim() ?? ''
    if (text === '') return []
    return [[limit, limit === 'types' ? text.split(',').map((each) => each.trim()) : text]]
  })
  return {
    name: name.trim(),
    role,
    ...Object.fromEntries(given),
    ...(expires !== '' && { expires_at: new Date(expires).toISOString() }),
  }
}

function cliOf(name: string, role: Role, limits: Readonly<Record<string, string>>): string {
  const flags = SCOPES[role]
    .filter((limit) => limits[limit])
    .map((limit) => ` --${limit} ${inShell(limits[limit] ?? '')}`)
  return `token create ${inShell(name.trim() || 'NAME')} --role ${role}${flags.join('')}`
}
