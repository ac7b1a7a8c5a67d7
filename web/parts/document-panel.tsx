// A document, field by field; lists and objects as words.
import { Badge, Code, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { isObject, type Json } from '../../src/base/json.ts'
import { count } from '../../src/base/sentences.ts'
import { queries } from '../api/queries.ts'
import { Facts } from './facts.tsx'
import { Loaded } from './loaded.tsx'
import { Panel } from './page.tsx'

export function DocumentPanel({ type, id }: { readonly type: string; readonly id: string }) {
  const query = useQuery(queries.document(type, id))
  return (
    <Panel title="Document">
      <Loaded query={query}>
        {({ body }) => (
          <Facts
            label="Document"
            head={['Field', 'Value']}
            rows={Object.entries(body).map(([field, value]) => ({
              id: field,
              cells: [field, <Value key="value" value={value} />],
            }))}
          />
        )}
      </Loaded>
    </Panel>
  )
}

function Value({ value }: { readonly value: Json }) {
  if (Array.isArray(value))
    return <Words words={value.map((each) => (isObject(each) ? String(each.id) : String(each)))} />
  if (isObject(value)) return <Words words={Object.entries(value).map(([key, each]) => wordOf(key, each))} />
  return <Code>{String(value)}</Code>
}

function wordOf(key: string, value: Json): string {
  return isObject(value) ? `${key}: ${count(Object.keys(value).length, 'value')}` : `${key}=${value}`
}

function Words({ words }: { readonly words: readonly string[] }) {
  if (words.length === 0) return 'none'
  return (
    <Group gap={4}>
      {words.map((word) => (
        <Badge key={word} variant="default" radius="sm" fw={400}>
          {word}
        </Badge>
      ))}
    </Group>
  )
}
