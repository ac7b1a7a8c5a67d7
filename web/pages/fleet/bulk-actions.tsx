// Offers a change of all clusters that the filter leaves; what it needs is loaded when somebody wants one.
import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { type FleetFilter, queries } from '../../api/queries.ts'
import { useMay } from '../../session/permissions.ts'

const BulkDialog = lazy(async () => ({ default: (await import('./bulk-dialog.tsx')).BulkDialog }))

interface BulkActionsProps {
  /** Without its order. */
  readonly filter: FleetFilter
  readonly total: number
}

/** Offered for a part of the fleet: whoever means all of it says so with a selector. */
export function BulkActions({ filter, total }: BulkActionsProps) {
  const mayWrite = useMay('write')
  const type = useQuery(queries.settings()).data?.types.find(({ cluster }) => cluster)
  const [isOpen, setOpen] = useState(false)
  if (!mayWrite || !type || total === 0 || Object.keys(filter).length === 0) return null
  const title = total === 1 ? 'Change all: 1 cluster' : `Change all ${total.toLocaleString('en')} clusters`
  return (
    <>
      <Button variant="default" onClick={() => setOpen(true)} aria-label={title}>
        Change all…
      </Button>
      {isOpen && (
        <Suspense>
          <BulkDialog filter={filter} type={type} title={title} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  )
}
