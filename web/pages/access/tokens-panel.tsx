// Named tokens: made, rotated and revoked; a secret is shown once, where it was made.
import { Alert, Button, Code, CopyButton, Group, Text } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { IssuedToken, ShownToken } from '../../../src/api/wire-types.ts'
import { scopeOf } from '../../../src/domain/access/grant.ts'
import { pathOf, send } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { Age } from '../../parts/age.tsx'
import { inShell } from '../../parts/copy-as.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Empty, Panel } from '../../parts/page.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'
import { ProblemNotice } from '../../parts/problem-notice.tsx'
import { NewToken } from './new-token.tsx'

export function TokensPanel() {
  const query = useQuery(queries.tokens())
  const [isCreating, setCreating] = useState(false)
  const [issued, setIssued] = useState<IssuedToken>()
  const [action, setAction] = useState<Action>()
  return (
    <Panel title="Tokens" aside={!isCreating && <Button onClick={() => setCreating(true)}>New token</Button>}>
      {isCreating && <NewToken onClose={() => setCreating(false)} onIssued={setIssued} />}
      {issued && <Secret issued={issued} onClose={() => setIssued(undefined)} />}
      <Loaded query={query} lines={6}>
        {(tokens) =>
          tokens.length === 0 ? (
            <Empty title="No named tokens">Only those of the environment are in use.</Empty>
          ) : (
            <Facts
              label="Tokens"
              head={['Name', 'Role', 'Scope', 'Expires', 'Last used', 'Made', 'Actions']}
              rows={tokens.map((token) => ({
                id: token.id,
                cells: [
                  token.name,
                  token.role,
                  scopeOf(token) || 'no limit',
                  token.expires_at ? <Age key="expires" at={token.expires_at} /> : 'never',
                  <Age key="used" at={token.last_used_at} never="never" />,
                  <span key="made">
                    <Age at={token.created_at} /> by {token.created_by}
                  </span>,
                  <TokenActions key="actions" token={token} onIssued={setIssued} onRevoke={setAction} />,
                ],
              }))}
            />
          )
        }
      </Loaded>
      <PreviewDialog action={action} onClose={() => setAction(undefined)} />
    </Panel>
  )
}

interface TokenActionsProps {
  readonly token: ShownToken
  readonly onIssued: (issued: IssuedToken) => void
  readonly onRevoke: (action: Action) => void
}

function TokenActions({ token: { id, name }, onIssued, onRevoke }: TokenActionsProps) {
  const client = useQueryClient()
  const rotate = useMutation({
    mutationFn: async () =>
      (await send<IssuedToken>({ method: 'POST', path: pathOf('tokens', id, 'rotate'), body: {} })).body,
    onSuccess: async (issued) => {
      onIssued(issued)
      await client.invalidateQueries({ queryKey: ['tokens'] })
    },
  })
  const revoke: Action = {
    title: `Revoke token ${name}`,
    verb: 'Revoke',
    call: { method: 'DELETE', path: pathOf('tokens', id) },
    cli: `token revoke ${inShell(name)}`,
    isDestructive: true,
  }
  return (
    <>
      <Group gap={4} wrap="nowrap">
        <Button
          variant="default"
          size="compact-xs"
          loading={rotate.isPending}
          onClick={() => rotate.mutate()}
          aria-label={`Rotate ${name}`}
        >
          Rotate
        </Button>
        <Button
          variant="default"
          size="compact-xs"
          onClick={() => onRevoke(revoke)}
          aria-label={`Revoke ${name}`}
        >
          Revoke…
        </Button>
      </Group>
      {rotate.error && <ProblemNotice error={rotate.error} />}
    </>
  )
}

function Secret({ issued, onClose }: { readonly issued: IssuedToken; readonly onClose: () => void }) {
  return (
    <Alert
      color="orange"
      variant="outline"
      title={`The secret of ${issued.name}, shown this once`}
      withCloseButton
      closeButtonLabel="Hide the secret"
      onClose={onClose}
      m="sm"
    >
      <Group gap="xs">
        <Code>{issued.secret}</Code>
        <CopyButton value={issued.secret}>
          {({ copied, copy }) => (
            <Button variant="default" size="compact-xs" onClick={copy}>
              {copied ? 'Copied' : 'Copy the secret'}
            </Button>
          )}
        </CopyButton>
      </Group>
      {issued.old_secrets_expire_at && (
        <Text size="sm">
          Earlier secrets stay valid until {new Date(issued.old_secrets_expire_at).toLocaleString()}.
        </Text>
      )}
    </Alert>
  )
}
