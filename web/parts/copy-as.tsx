// The same view or action as a command: teaches the command line and the API, one click away.
import { Button, Code, CopyButton, Group, Popover, Stack, Text } from '@mantine/core'
import { type Call, urlOf } from '../api/client.ts'

interface CopyAsProps {
  /** What the console sends. */
  readonly call: Pick<Call, 'method' | 'path' | 'query' | 'body'>
  /** The command that does the same, without the program's name; left out where only the request itself says it. */
  readonly cli?: string
}

export function CopyAs({ call, cli }: CopyAsProps) {
  return (
    <Popover position="bottom-end" withArrow shadow="md" width="min(36rem, 92vw)" trapFocus>
      <Popover.Target>
        <Button variant="default">Copy as…</Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Copy as a command">
        <Stack gap="sm">
          <Command name="Command line" text={`flux-resourceset-cli ${cli ?? requestOf(call)}`} />
          <Command name="curl" text={curlOf(call)} />
          <Text size="xs" c="dimmed">
            Both take the credential from FLUX_API_TOKEN; it is in neither text.
          </Text>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}

function Command({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <Stack gap={4}>
      <Group justify="space-between">
        <Text size="xs" fw={600}>
          {name}
        </Text>
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button variant="subtle" size="compact-xs" onClick={copy} aria-label={`Copy for ${name}`}>
              {copied ? 'Copied' : 'Copy'}
            </Button>
          )}
        </CopyButton>
      </Group>
      <Code block tabIndex={0}>
        {text}
      </Code>
    </Stack>
  )
}

/** A batch is previewed, and asks; any other request is sent as it is. */
function requestOf({ method, path, query, body }: CopyAsProps['call']): string {
  const isBatch = method === 'POST' && path === '/batch'
  const command = isBatch
    ? 'batch -f -'
    : `api ${method === 'GET' ? '' : `${method} `}${inShell(urlOf(path, query))}`
  if (body === undefined) return command
  return `${command}${isBatch ? '' : ' --input -'} <<'END'\n${JSON.stringify(body, null, 2)}\nEND`
}

function curlOf({ method, path, query, body }: CopyAsProps['call']): string {
  return [
    `curl${method === 'GET' ? '' : ` -X ${method}`} -H "Authorization: Bearer $FLUX_API_TOKEN"`,
    ...(body === undefined
      ? []
      : [`-H 'Content-Type: application/json' -d ${inShell(JSON.stringify(body))}`]),
    inShell(window.location.origin + urlOf(path, query)),
  ].join(' \\\n  ')
}

/** A word of a shell, whatever is in it. */
export function inShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}
