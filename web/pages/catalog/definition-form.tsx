// A form from the schema of a type, your own types too: what differs becomes one previewed write.
import { Button, Group, NumberInput, Select, Stack, Switch, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Noun } from '../../../src/api/noun.ts'
import type { RolloutStarted } from '../../../src/api/rollout-schema.ts'
import type { Json, JsonObject } from '../../../src/base/json.ts'
import type { SchemaObject } from '../../../src/base/json-schema.ts'
import { DEFAULT_STRATEGY_ID } from '../../../src/domain/rollouts/strategy.ts'
import { pathOf } from '../../api/client.ts'
import { patchOf } from '../../api/patch-of.ts'
import { queries } from '../../api/queries.ts'
import { useStrategies } from '../../api/use-strategies.ts'
import { inShell } from '../../parts/copy-as.tsx'
import { JsonBox, parseJsonText } from '../../parts/json-box.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Panel } from '../../parts/page.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'

/** Where the schema of a type leaves it to the key. */
const ID: SchemaObject = { type: 'string', description: 'Its name, as clusters refer to it.' }

interface DefinitionFormProps {
  readonly noun: Noun
  /** A new one without it. */
  readonly id?: string
  readonly onClose: () => void
}

export function DefinitionForm({ noun, id, onClose }: DefinitionFormProps) {
  const query = useQuery({ ...queries.document(noun.name, id ?? ''), enabled: id !== undefined })
  if (id === undefined) return <Form noun={noun} base={{}} etag={undefined} onClose={onClose} />
  return (
    <Loaded query={query}>
      {({ body, etag }) => <Form noun={noun} id={id} base={body} etag={etag} onClose={onClose} />}
    </Loaded>
  )
}

interface FormProps extends DefinitionFormProps {
  readonly base: JsonObject
  readonly etag: string | undefined
}

function Form(props: FormProps) {
  // What was looked at stays while it is edited: what others write meanwhile is told when it is written.
  const [{ noun, id, base, etag }] = useState(props)
  const { onClose } = props
  const navigate = useNavigate()
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({})
  const [edited, setEdited] = useState<JsonObject>(base)
  const [action, setAction] = useState<Action>()
  const [strategy, setStrategy] = useState(AT_ONCE)
  const { id: ofId = ID, ...properties } = noun.schema.properties ?? {}
  const fields = Object.entries(id === undefined ? { id: ofId, ...properties } : properties)
  const isReadable = Object.values(texts).every((text) => text === '' || parseJsonText(text).ok)
  const set = (name: string, value: Json | undefined): void =>
    setEdited((before) => {
      const { [name]: _, ...others } = before
      return value === undefined ? others : { ...before, [name]: value }
    })
  return (
    <Panel title={id === undefined ? `New ${noun.singular}` : `Edit ${id}`}>
      <Stack gap="sm" p="sm">
        {fields.map(([name, schema]) => (
          <Field
            key={name}
            name={name}
            schema={schema}
            isRequired={name === 'id' || (noun.schema.required ?? []).includes(name)}
            value={edited[name]}
            text={texts[name]}
            onText={(text) => {
              setTexts((before) => ({ ...before, [name]: text }))
              const parsed = parseJsonText(text)
              if (text === '') set(name, undefined)
              else if (parsed.ok) set(name, parsed.value)
            }}
            onChange={(value) => set(name, value)}
          />
        ))}
        {id !== undefined && noun.delivery && <Course strategy={strategy} onChange={setStrategy} />}
        <Group gap="xs">
          <Button
            disabled={!isReadable}
            onClick={() => setAction(actionOf({ noun, id, base, etag }, edited, strategy))}
          >
            Preview
          </Button>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
        </Group>
      </Stack>
      <PreviewDialog<Partial<RolloutStarted>>
        action={action}
        onClose={() => setAction(undefined)}
        onDone={({ body: { rollout } }) => {
          onClose()
          if (rollout) void navigate({ to: '/rollouts/$rollout', params: { rollout: rollout.id } })
          if (id === undefined)
            void navigate({
              to: '/catalog/$type/$id',
              params: { type: noun.name, id: String(edited.id) },
            })
        }}
      />
    </Panel>
  )
}

/** In place of the name of a strategy. */
const AT_ONCE = ''

interface CourseProps {
  readonly strategy: string
  readonly onChange: (strategy: string) => void
}

function Course({ strategy, onChange }: CourseProps) {
  const names = new Set([DEFAULT_STRATEGY_ID, ...useStrategies().map(({ id }) => String(id))])
  return (
    <Select
      label="How clusters get it"
      data={[
        { value: AT_ONCE, label: 'all of them at once, at their next poll' },
        ...[...names].map((name) => ({ value: name, label: `wave by wave: the strategy ${name}` })),
      ]}
      value={strategy}
      onChange={(chosen) => onChange(chosen ?? AT_ONCE)}
      allowDeselect={false}
      maw={420}
    />
  )
}

function actionOf(
  { noun, id, base, etag }: Pick<FormProps, 'noun' | 'base' | 'etag'> & { readonly id: string | undefined },
  edited: JsonObject,
  strategy: string,
): Action {
  if (id === undefined)
    return {
      title: `Create ${noun.singular} ${edited.id ?? ''}`,
      verb: 'Create',
      call: { method: 'POST', path: pathOf(noun.name), body: edited },
    }
  return {
    title: `Change ${noun.singular} ${id}`,
    verb: strategy === AT_ONCE ? 'Save' : 'Start the rollout',
    call: {
      method: 'PATCH',
      path: pathOf(noun.name, id),
      query: { rollout: strategy },
      body: patchOf(base, edited),
      ifMatch: etag,
    },
    cli: `${noun.noun} patch ${inShell(id)} -p ${inShell(JSON.stringify(patchOf(base, edited)))}${strategy === AT_ONCE ? '' : ` --rollout ${inShell(strategy)}`}`,
    edited: { type: noun.name, id, base, mine: edited },
  }
}

interface FieldProps {
  readonly name: string
  readonly schema: SchemaObject
  readonly isRequired: boolean
  readonly value: Json | undefined
  /** What somebody typed into a box for JSON. */
  readonly text: string | undefined
  readonly onText: (text: string) => void
  readonly onChange: (value: Json | undefined) => void
}

function Field({ name, schema, isRequired, value, text, onText, onChange }: FieldProps) {
  const { description, default: fallback } = schema
  const kinds = [schema.type].flat().filter((kind) => kind !== 'null')
  const told = [description, fallback !== undefined && `Default: ${JSON.stringify(fallback)}.`]
    .filter(Boolean)
    .join(' ')
  const shared = { label: name, ...(told && { description: told }), required: isRequired }
  if (schema.enum)
    return (
      <Select
        {...shared}
        data={schema.enum.map(String)}
        value={value === undefined ? null : String(value)}
        onChange={(chosen) =>
          onChange(schema.enum?.find((each) => String(each) === chosen) as Json | undefined)
        }
        clearable={!isRequired}
      />
    )
  if (kinds.length === 1 && kinds[0] === 'boolean')
    return (
      <Switch
        label={name}
        {...(told && { description: told })}
        checked={(value ?? fallback) === true}
        onChange={({ currentTarget }) => onChange(currentTarget.checked)}
      />
    )
  if (kinds.length === 1 && (kinds[0] === 'integer' || kinds[0] === 'number'))
    return (
      <NumberInput
        {...shared}
        value={typeof value === 'number' ? value : ''}
        onChange={(number) => onChange(number === '' ? undefined : Number(number))}
        allowDecimal={kinds[0] === 'number'}
      />
    )
  if (kinds.length === 1 && kinds[0] === 'string')
    return (
      <TextInput
        {...shared}
        value={typeof value === 'string' ? value : ''}
        onChange={({ currentTarget }) =>
          onChange(currentTarget.value === '' ? undefined : currentTarget.value)
        }
        spellCheck={false}
      />
    )
  return (
    <JsonBox
      label={`${name} (JSON)`}
      description={told}
      value={text ?? (value === undefined ? '' : JSON.stringify(value, null, 2))}
      onChange={onText}
      minRows={2}
    />
  )
}
