// Keys: g and the key of a page goes there, and ? shows all of them. Nothing while somebody types.
import { Kbd, Modal, Table } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import { usePages } from './use-pages.ts'

/** Between `g` and the key of a page. */
const CHORD_MS = 1500

interface ShortcutsProps {
  readonly isShown: boolean
  readonly onShow: (isShown: boolean) => void
}

export function Shortcuts({ isShown, onShow }: ShortcutsProps) {
  const pages = usePages()
  useKeys(onShow)
  const rows = [
    { keys: ['Ctrl', 'K'], does: 'Find clusters, components, changes, rollouts and actions' },
    { keys: ['/'], does: 'The same' },
    ...pages.map(({ key, name }) => ({ keys: ['g', key], does: name })),
    { keys: ['?'], does: 'These keys' },
    { keys: ['Esc'], does: 'Close what is open' },
  ]
  return (
    <Modal opened={isShown} onClose={() => onShow(false)} title="Keys" centered>
      <Table>
        <Table.Tbody>
          {rows.map(({ keys, does }) => (
            <Table.Tr key={keys.join(' ')}>
              <Table.Td>
                {keys.map((key) => (
                  <Kbd key={key} size="xs" mr={4}>
                    {key}
                  </Kbd>
                ))}
              </Table.Td>
              <Table.Td>{does}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  )
}

function useKeys(onShow: (isShown: boolean) => void): void {
  const navigate = useNavigate()
  const pages = usePages()
  useEffect(() => {
    let begunAt = Number.NEGATIVE_INFINITY
    const onKey = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement
      const isTaken = event.ctrlKey || event.metaKey || event.altKey
      if (isTaken || target.closest('input, textarea, [contenteditable]')) return
      const page = pages.find(({ key }) => key === event.key)
      if (event.key === '?') onShow(true)
      else if (event.key === 'g') begunAt = event.timeStamp
      else if (page && event.timeStamp - begunAt < CHORD_MS) void navigate({ to: page.path })
      else begunAt = Number.NEGATIVE_INFINITY
    }
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  }, [navigate, pages, onShow])
}
