// The command palette: pages and actions, and what the service has under the text that is typed.
import { useMantineColorScheme } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Spotlight, type SpotlightActionData, type SpotlightActionGroupData } from '@mantine/spotlight'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Icon } from '../parts/icon.tsx'
import { useMay } from '../session/permissions.ts'
import { logOut } from '../session/session.ts'
import { Shortcuts } from './shortcuts.tsx'
import { useFound } from './use-found.ts'
import { usePages } from './use-pages.ts'

const SEARCHED = 'Search clusters, components, changes and actions'

export function Palette() {
  const [typed, setTyped] = useState('')
  const [isHelping, help] = useDisclosure(false)
  const groups: (SpotlightActionGroupData | SpotlightActionData)[] = [
    { group: 'Pages', actions: usePageActions() },
    ...useFoundActions(typed),
    { group: 'Actions', actions: useCommands(help.open) },
  ]
  return (
    <>
      <Spotlight
        actions={groups}
        query={typed}
        onQueryChange={setTyped}
        shortcut={['mod + K', '/']}
        nothingFound="Nothing has that name"
        highlightQuery
        scrollable
        maxHeight={420}
        searchProps={{
          placeholder: SEARCHED,
          'aria-label': SEARCHED,
          leftSection: <Icon name="search" />,
        }}
      />
      <Shortcuts isShown={isHelping} onShow={(isShown) => (isShown ? help.open() : help.close())} />
    </>
  )
}

function usePageActions(): SpotlightActionData[] {
  const navigate = useNavigate()
  return usePages().map(({ path, name, icon, key }) => ({
    id: path,
    label: name,
    description: `g ${key}`,
    leftSection: <Icon name={icon} />,
    onClick: () => void navigate({ to: path }),
  }))
}

function useFoundActions(typed: string): SpotlightActionGroupData[] {
  const navigate = useNavigate()
  const { clusters, definitions, rollouts, revision } = useFound(typed)
  return [
    {
      group: 'Clusters',
      actions: clusters.map((cluster) => ({
        id: `cluster ${cluster}`,
        label: cluster,
        leftSection: <Icon name="fleet" />,
        onClick: () => void navigate({ to: '/clusters/$cluster', params: { cluster } }),
      })),
    },
    {
      group: 'Catalog',
      actions: definitions.map(({ type, noun, id }) => ({
        id: `${type} ${id}`,
        label: id,
        description: noun,
        leftSection: <Icon name="catalog" />,
        onClick: () => void navigate({ to: '/catalog/$type/$id', params: { type, id } }),
      })),
    },
    {
      group: 'Rollouts',
      actions: rollouts.map(({ id, name, state }) => ({
        id: `rollout ${id}`,
        label: name,
        description: `${id} · ${state}`,
        leftSection: <Icon name="rollouts" />,
        onClick: () => void navigate({ to: '/rollouts/$rollout', params: { rollout: id } }),
      })),
    },
    {
      group: 'Changes',
      actions: (revision === undefined ? [] : [revision]).map((number) => ({
        id: `revision ${number}`,
        label: `Change #${number}`,
        leftSection: <Icon name="changes" />,
        onClick: () => void navigate({ to: '/changes/$revision', params: { revision: number } }),
      })),
    },
  ]
}

function useCommands(showKeys: () => void): SpotlightActionData[] {
  const client = useQueryClient()
  const navigate = useNavigate()
  const mayWrite = useMay('write')
  const { setColorScheme } = useMantineColorScheme()
  const leave = (): void => {
    logOut()
    client.clear()
  }
  return [
    ...(mayWrite
      ? [
          {
            id: 'new rollout',
            label: 'Start a rollout',
            onClick: () => void navigate({ to: '/rollouts/new' }),
          },
        ]
      : []),
    { id: 'map', label: 'Heat map', onClick: () => void navigate({ to: '/fleet', search: { map: true } }) },
    { id: 'light', label: 'Light colours', onClick: () => setColorScheme('light') },
    { id: 'dark', label: 'Dark colours', onClick: () => setColorScheme('dark') },
    { id: 'auto', label: 'Colours as this device has them', onClick: () => setColorScheme('auto') },
    { id: 'keys', label: 'Show the keys', description: '?', onClick: showKeys },
    { id: 'leave', label: 'Log out', onClick: leave },
  ]
}
