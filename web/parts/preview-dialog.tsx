// Every action of the console: a dry run first, what it does to which clusters, then the very plan that was looked at.
import { Alert, Button, Checkbox, Group, Modal, Stack, Text, Textarea } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { MAX_MESSAGE } from '../../src/api/limits.ts'
import type { Preview } from '../../src/api/wire-types.ts'
import { ApiProblem, type Call, type Reply, send } from '../api/client.ts'
import { ConflictReport, type EditedDocument } from './conflict-report.tsx'
import { CopyAs } from './copy-as.tsx'
import { Loaded } from './loaded.tsx'
import { PreviewReport } from './preview-report.tsx'
import { ProblemNotice } from './problem-notice.tsx'

export interface Action {
  /** As a sentence: `Delete cluster one`. */
  readonly title: string
  /** On the button: `Delete`. */
  readonly verb: string
  /** With `ifMatch`, where somebody else's change since must not be overwritten. */
  readonly call: Call
  readonly cli?: string
  readonly isDestructive?: boolean
  /** What `ifMatch` is about: where somebody was quicker, three versions of it are shown. */
  readonly edited?: EditedDocument
  /** Whether the reason goes into the body too, as `remark`. */
  readonly hasRemark?: boolean
}

interface PreviewDialogProps<T> {
  /** Undefined while nothing is asked. */
  readonly action: Action | undefined
  readonly onClose: () => void
  readonly onDone?: (reply: Reply<T>) => void
}

export function PreviewDialog<T>({ action, onClose, onDone }: PreviewDialogProps<T>) {
  return (
    <Modal opened={action !== undefined} onClose={onClose} title={action?.title} size="lg" centered>
      {action && <Steps<T> action={action} onClose={onClose} {...(onDone && { onDone })} />}
    </Modal>
  )
}

type StepsProps<T> = Omit<PreviewDialogProps<T>, 'action'> & { readonly action: Action }

function Steps<T>({ action, onClose, onDone }: StepsProps<T>) {
  const { verb, edited, isDestructive = false } = action
  const [message, setMessage] = useState('')
  const [confirmed, setConfirmed] = useState<readonly string[]>([])
  const { call, preview, write, lookAgain } = usePlan<T>(action, { message, confirmed }, async (reply) => {
    onDone?.(reply)
    onClose()
  })
  const isOutdated = write.error instanceof ApiProblem && [409, 412].includes(write.error.status)
  const again = (etag = call.ifMatch): void => {
    setConfirmed([])
    lookAgain(etag)
  }
  const refused = write.error ?? preview.error
  if (edited && refused instanceof ApiProblem && refused.status === 412)
    return <ConflictReport {...{ edited, error: refused, onCancel: onClose, onGoOn: again }} />
  return (
    <Stack gap="md">
      <Loaded query={asQuery(preview, again)} lines={5}>
        {(found) => (
          <>
            <PreviewReport preview={found} />
            {found.requires.length > 0 && (
              <Requirements preview={found} confirmed={confirmed} onChange={setConfirmed} />
            )}
            <Textarea
              label="Why"
              description="Stands in the audit beside your name."
              value={message}
              onChange={({ currentTarget }) => setMessage(currentTarget.value)}
              maxLength={MAX_MESSAGE}
              autosize
              minRows={2}
            />
            {write.error && (
              <ProblemNotice error={write.error} onRetry={isOutdated ? () => again() : undefined} />
            )}
            <Group justify="space-between">
              <CopyAs call={call} {...(action.cli !== undefined && { cli: action.cli })} />
              <Group gap="xs">
                <Button variant="default" onClick={onClose}>
                  Cancel
                </Button>
                <Button
                  {...(isDestructive && { color: 'red.8' })}
                  loading={write.isPending}
                  disabled={found.change_count === 0 || !isLifted(found, confirmed)}
                  onClick={() => write.mutate(found)}
                >
                  {verb}
                </Button>
              </Group>
            </Group>
          </>
        )}
      </Loaded>
    </Stack>
  )
}

interface Given {
  readonly message: string
  readonly confirmed: readonly string[]
}

/** The dry run of an action, and the write that is bound to what it found. */
function usePlan<T>(action: Action, { message, confirmed }: Given, onDone: (reply: Reply<T>) => void) {
  const client = useQueryClient()
  const [ifMatch, setIfMatch] = useState(action.call.ifMatch)
  const call: Call = { ...action.call, ifMatch }
  const preview = useMutation({
    mutationFn: async (etag: string | undefined) =>
      (await send<Preview>({ ...call, ifMatch: etag, query: { ...call.query, dry_run: true } })).body,
  })
  const write = useMutation({
    mutationFn: ({ plan }: Preview) => {
      const query = { ...call.query, plan, ...confirmationOf(confirmed) }
      const remark = message.trim()
      const isRemark = action.hasRemark && remark !== ''
      const body = isRemark ? { ...(call.body as object), remark } : call.body
      return send<T>({ ...call, body, message, query })
    },
    onSuccess: async (reply) => {
      await client.invalidateQueries()
      onDone(reply)
    },
  })
  const { mutate: look } = preview
  // biome-ignore lint/correctness/useExhaustiveDependencies: once; later looks are asked for
  useEffect(() => look(ifMatch), [look])
  const lookAgain = (etag: string | undefined): void => {
    write.reset()
    setIfMatch(etag)
    look(etag)
  }
  return { call, preview, write, lookAgain }
}

/** A dry run is asked for once, not kept: what it says is bound to the moment. */
function asQuery({ data, error }: { data: Preview | undefined; error: Error | null }, again: () => void) {
  return { data, error, refetch: async () => again() }
}

function confirmationOf(confirmed: readonly string[]): { confirm?: string; bypass?: boolean } {
  const confirm = confirmed.filter((name) => name !== BYPASS).join(',')
  return { ...(confirm !== '' && { confirm }), ...(confirmed.includes(BYPASS) && { bypass: true }) }
}

const BYPASS = 'bypass'

/** What the boxes stand for: each confirmation that is asked for, and passing what may be bypassed. */
function boxesOf({ requires, requires_confirmation }: Preview): string[] {
  const isBypassed = requires.some(({ lifted_by }) => lifted_by === 'bypass')
  return [...requires_confirmation, ...(isBypassed ? [BYPASS] : [])]
}

function isLifted(preview: Preview, confirmed: readonly string[]): boolean {
  const isFinal = preview.requires.some(({ lifted_by }) => lifted_by === undefined)
  return !isFinal && boxesOf(preview).every((box) => confirmed.includes(box))
}

const LABELS: Readonly<Record<string, string>> = {
  removals: 'I know that clusters lose what is listed above',
  finish: 'I know that this finishes the rollout at once',
  [BYPASS]: 'Do it all the same; the reason below goes into the audit',
}

interface RequirementsProps {
  readonly preview: Preview
  readonly confirmed: readonly string[]
  readonly onChange: (confirmed: readonly string[]) => void
}

function Requirements({ preview, confirmed, onChange }: RequirementsProps) {
  return (
    <Alert color="orange" variant="outline" title="The service asks before it does this">
      <Stack gap="xs">
        {preview.requires.map(({ message, kind }) => (
          <Text size="sm" key={`${kind} ${message}`}>
            {message}
          </Text>
        ))}
        <Checkbox.Group value={[...confirmed]} onChange={onChange}>
          <Stack gap="xs">
            {boxesOf(preview).map((box) => (
              <Checkbox key={box} value={box} label={LABELS[box] ?? `Confirm ${box}`} />
            ))}
          </Stack>
        </Checkbox.Group>
      </Stack>
    </Alert>
  )
}
