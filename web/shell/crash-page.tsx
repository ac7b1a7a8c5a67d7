// What stands in place of a page that failed, or that there is none of.
import { Button, Group, Text } from '@mantine/core'
import { type ErrorComponentProps, Link, useRouter } from '@tanstack/react-router'
import { Page } from '../parts/page.tsx'
import { ProblemNotice } from '../parts/problem-notice.tsx'

export function CrashPage({ error, reset }: ErrorComponentProps) {
  const router = useRouter()
  const again = (): void => {
    reset()
    void router.invalidate()
  }
  return (
    <Page title="This page failed">
      <ProblemNotice error={error} onRetry={again} />
    </Page>
  )
}

export function NotFoundPage() {
  return (
    <Page title="No such page">
      <Text>The address names no page of the console. Ctrl+K finds clusters and pages.</Text>
      <Group>
        <Button renderRoot={(props) => <Link to="/" {...props} />}>Go home</Button>
      </Group>
    </Page>
  )
}
