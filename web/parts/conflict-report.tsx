// Somebody was quicker: the document as it was looked at, as it is now, and as this change would make it, side by side.
import { Button, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { diffFields } from '../../src/base/diff.ts'
import { equalJson, isObject, type Json, type JsonObject } from '../../src/base/json.ts'
import { queries } from '../api/queries.ts'
import { Facts } from './facts.tsx'
import { Loaded } from './loaded.tsx'
import { ProblemNotice } from './problem-notice.tsx'

/** The document that a call changes, as it was when the change was made up. */
export interface EditedDocument {
  readonly type: string
  readonly id: string
  readonly base: JsonObject
  /** As the change would make it; undefined where it deletes it. */
  readonly mine: JsonObject | undefined
}

interface ConflictReportProps {
  readonly edited: EditedDocument
  readonly error: unknown
  readonly onCancel: () => void
  /** The same change, of the document with this ETag. */
  readonly onGoOn: (etag: string | undefined) => void
}

export function ConflictReport({ edited, error, onCancel, onGoOn }: ConflictReportProps) {
  const { type, id, base, mine } = edited
  const theirs = useQuery({ ...queries.document(type, id), refetchOnMount: 'always' })
  const read = theirs.isFetching ? { ...theirs, data: undefined, error: null } : theirs
  return (
    <Stack gap="md">
      <ProblemNotice error={error} />
      <Loaded query={read}>
        {({ body, etag }) => {
          const rows = threeWay(base, body, mine)
          const both = rows.filter(({ isConflict }) => isConflict).length
          return (
            <>
              <Text size="sm">
                {both === 0
                  ? 'They changed other fields than you: both changes go together.'
                  : `${both} ${both === 1 ? 'field was' : 'fields were'} changed by both: going on puts yours in place of theirs.`}
              </Text>
              <Facts
                label="Three-way difference"
                head={['Field', 'You looked at', 'It is now', 'You make it', '']}
                rows={rows.map(({ path, base, theirs, mine, isConflict }) => ({
                  id: path,
                  cells: [path || 'document', ...[base, theirs, mine].map(wordOf), isConflict ? 'both' : ''],
                }))}
              />
              <Group justify="flex-end" gap="xs">
                <Button variant="default" onClick={onCancel}>
                  Cancel
                </Button>
                <Button onClick={() => onGoOn(etag)}>Preview mine on top of it</Button>
              </Group>
            </>
          )
        }}
      </Loaded>
    </Stack>
  )
}

interface ThreeWay {
  readonly path: string
  readonly base: Json
  readonly theirs: Json
  readonly mine: Json
  readonly isConflict: boolean
}

function threeWay(base: JsonObject, theirs: JsonObject, mine: JsonObject | undefined): ThreeWay[] {
  const of = new Map(diffFields(byIds(base), byIds(theirs)).map((field) => [field.path, field]))
  const ours = new Map(diffFields(byIds(base), mine && byIds(mine)).map((field) => [field.path, field]))
  return [...new Set([...of.keys(), ...ours.keys()])].sort().map((path) => {
    const [their, our] = [of.get(path), ours.get(path)]
    const was = (their ?? our)?.before ?? null
    return {
      path,
      base: was,
      theirs: their ? their.after : was,
      mine: our ? our.after : was,
      isConflict: their !== undefined && our !== undefined && !equalJson(their.after, our.after),
    }
  })
}

/** Lists of references as objects, so that one of them is a field of its own. */
function byIds(document: JsonObject): JsonObject {
  const entries = Object.entries(document).map(([field, value]) => [
    field,
    Array.isArray(value) && value.length > 0 && value.every((each) => isObject(each) && 'id' in each)
      ? Object.fromEntries(value.map((each) => [String(each.id), each]))
      : value,
  ])
  return Object.fromEntries(entries) as JsonObject
}

function wordOf(value: Json): string {
  return value === null ? 'none' : JSON.stringify(value)
}
