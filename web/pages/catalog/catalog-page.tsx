// The catalog: every type, and its definitions with the values that people look for.
import { Button, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { Noun } from '../../../src/api/noun.ts'
import { isObject, type Json, type JsonObject } from '../../../src/base/json.ts'
import { count } from '../../../src/base/sentences.ts'
import { queries } from '../../api/queries.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Empty, Page, Panel } from '../../parts/page.tsx'
import { TextFilter } from '../../parts/text-filter.tsx'
import { useMay } from '../../session/permissions.ts'
import { DefinitionForm } from './definition-form.tsx'

/** Definitions are few; a longer list is narrowed by its name. */
const SHOWN = 500
/** Fields beside the id. */
const COLUMNS = 5
const route = getRouteApi('/catalog')

export function CatalogPage() {
  const { type } = route.useSearch()
  const settings = useQuery(queries.settings())
  const types = settings.data?.types.filter(({ cluster, bookkeeping }) => !cluster && !bookkeeping) ?? []
  const noun =
    types.find(({ name }) => name === type) ?? types.find(({ delivery }) => delivery?.versions) ?? types[0]
  return (
    <Page
      title="Catalog"
      actions={
        noun && (
          <CopyAs
            call={{ method: 'GET', path: `/${noun.name}`, query: { limit: SHOWN } }}
            cli={`${noun.noun} list`}
          />
        )
      }
    >
      <Group gap="xs" component="nav" aria-label="Types">
        {types.map(({ name, noun: word }) => (
          <Button
            key={name}
            size="compact-sm"
            variant={name === noun?.name ? 'filled' : 'default'}
            aria-current={name === noun?.name ? 'page' : undefined}
            renderRoot={(props) => <Link to="/catalog" search={{ type: name }} {...props} />}
          >
            {word}
          </Button>
        ))}
      </Group>
      {noun && <Definitions key={noun.name} noun={noun} />}
    </Page>
  )
}

function Definitions({ noun }: { readonly noun: Noun }) {
  const { name, singular, description } = noun
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const query = useQuery(queries.documents(name, { offset: 0, limit: SHOWN }))
  const mayWrite = useMay('write') && (noun.methods?.includes('post') ?? true)
  const [isCreating, setCreating] = useState(false)
  const { q = '' } = search
  return (
    <>
      {isCreating && <DefinitionForm noun={noun} onClose={() => setCreating(false)} />}
      <Panel
        title={description}
        aside={
          <Group gap="xs" align="flex-end">
            <TextFilter
              label="Part of the id"
              value={q}
              onChange={(text) => void navigate({ search: { type: name, ...(text && { q: text }) } })}
            />
            {mayWrite && !isCreating && <Button onClick={() => setCreating(true)}>New {singular}</Button>}
          </Group>
        }
      >
        <Loaded query={query} lines={8}>
          {({ body, total = body.length }) => {
            const found = body.filter(({ id }) => String(id).includes(q))
            if (found.length === 0)
              return (
                <Empty title={q ? `No ${singular} has "${q}" in its id` : `There is no ${singular} yet`}>
                  <code>flux-resourceset-cli {noun.noun} create --help</code> says what one needs.
                </Empty>
              )
            const fields = columnsOf(noun, found)
            return (
              <>
                <Facts
                  label={description}
                  head={[singular, ...fields]}
                  rows={found.map((document) => ({
                    id: String(document.id),
                    cells: [
                      <Link key="id" to="/catalog/$type/$id" params={{ type: name, id: String(document.id) }}>
                        {String(document.id)}
                      </Link>,
                      ...fields.map((field) => textOf(document[field])),
                    ],
                  }))}
                />
                {total > body.length && (
                  <p>
                    The first {body.length} of {total}.
                  </p>
                )}
              </>
            )
          }}
        </Loaded>
      </Panel>
    </>
  )
}

/** The first fields that are plain values in any of the documents, in the order of the type. */
function columnsOf({ schema }: Noun, documents: readonly JsonObject[]): string[] {
  const isPlain = (value: Json | undefined): boolean =>
    value !== undefined && value !== null && !isObject(value)
  return Object.keys(schema.properties ?? {})
    .filter((field) => field !== 'id' && documents.some((document) => isPlain(document[field])))
    .slice(0, COLUMNS)
}

function textOf(value: Json | undefined): string {
  if (value === undefined || value === null) return ''
  if (Array.isArray(value))
    return value.map((each) => (isObject(each) ? JSON.stringify(each) : String(each))).join(', ')
  return isObject(value) ? count(Object.keys(value).length, 'value') : String(value)
}
