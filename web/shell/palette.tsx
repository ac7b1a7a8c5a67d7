// The command palette: pages, and clusters by what is typed. Shortcuts lie beside it: g and the key of a page.

import { useDebouncedValue } from '@mantine/hooks'
import { Spotlight, type SpotlightActionData, type SpotlightActionGroupData } from '@mantine/spotlight'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { queries } from '../api/queries.ts'
import { Icon } from '../parts/icon.tsx'
import { usePages } from './use-pages.ts'

const TYPING_MS = 150
/** Between `g` and the key of a page. */
const CHORD_MS = 1500
const FOUND = 8

export function Palette() {
  const navigate = useNavigate()
  const pages = usePages()
  const [typed, setTyped] = useState('')
  const clusters = useFoundClusters(typed)
  useShortcuts()
  const actions: (SpotlightActionGroupData | SpotlightActionData)[] = [
    {
      group: 'Pages',
      actions: pages.map(({ path, name, icon, key }) => ({
        id: path,
        label: name,
        description: `g ${key}`,
        leftSection: <Icon name={icon} />,
        onClick: () => void navigate({ to: path }),
      })),
    },
    {
      group: 'Clusters',
      actions: clusters.map((cluster) => ({
        id: `cluster ${cluster}`,
        label: cluster,
        leftSection: <Icon name="fleet" />,
        onClick: () => void navigate({ to: '/clusters/$cluster', params: { cluster } }),
      })),
    },
  ]
  return (
    <Spotlight
      actions={actions}
      query={typed}
      onQueryChange={setTyped}
      shortcut={['mod + K', '/']}
      nothingFound="No page and no cluster has that name"
      highlightQuery
      scrollable
      maxHeight={420}
      searchProps={{
        placeholder: 'Search clusters and pages',
        'aria-label': 'Search clusters and pages',
        leftSection: <Icon name="search" />,
      }}
    />
  )
}

/** Clusters whose ids hold what was typed. */
function useFoundClusters(typed: string): string[] {
  const [text] = useDebouncedValue(typed.trim(), TYPING_MS)
  const found = useQuery({ ...queries.clusterNames(text, FOUND), enabled: text.length > 1 })
  return found.data ?? []
}

/** `g f` goes to the fleet; nothing while somebody types. */
function useShortcuts(): void {
  const navigate = useNavigate()
  const pages = usePages()
  useEffect(() => {
    let begunAt = Number.NEGATIVE_INFINITY
    const onKey = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        target.closest('input, textarea, [contenteditable]')
      )
        return
      const page = pages.find(({ key }) => key === event.key)
      if (event.key === 'g') begunAt = event.timeStamp
      else if (page && event.timeStamp - begunAt < CHORD_MS) void navigate({ to: page.path })
      else begunAt = Number.NEGATIVE_INFINITY
    }
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  }, [navigate, pages])
}
