// Says that the credential ends soon, while there is still time to do something about it.
import { Alert, Button, Group, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { queries } from '../api/queries.ts'
import { useServerNow } from '../api/server-clock.ts'
import { Age } from '../parts/age.tsx'
import { logOut } from '../session/session.ts'

/** Enough to finish what one is at. */
const NOTICE_MS = 10 * 60_000

export function ExpiryNotice() {
  const { data } = useQuery(queries.whoami())
  const now = useServerNow()
  const end = data?.expires_at
  const left = end === undefined ? Number.POSITIVE_INFINITY : Date.parse(end) - now
  const isOver = left <= 0
  useEffect(() => {
    if (isOver) logOut('Your session has ended.')
  }, [isOver])
  if (left > NOTICE_MS || isOver) return null
  return (
    <Alert color="orange" variant="outline" m="sm" role="status">
      <Group justify="space-between">
        <Text size="sm" component="span">
          Your session ends <Age at={end} />. Log in again to go on after that.
        </Text>
        <Button variant="default" onClick={() => logOut('Log in again to go on where you were.')}>
          Log in again
        </Button>
      </Group>
    </Alert>
  )
}
