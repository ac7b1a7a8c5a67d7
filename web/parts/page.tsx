// The frame of every page: its title, what it says beside it, its actions; and panels below.
import { Group, Stack, Text, Title } from '@mantine/core'
import { type ReactNode, useEffect } from 'react'
import classes from './page.module.css'

interface PageProps {
  readonly title: string
  /** Beside the title: badges, a count, an age. */
  readonly aside?: ReactNode
  readonly actions?: ReactNode
  readonly children: ReactNode
}

export function Page({ title, aside, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · flux-resourceset`
  }, [title])
  return (
    <Stack gap="md" className={classes.page ?? ''}>
      <Group justify="space-between" gap="xs">
        <Group gap="sm">
          <Title order={1} className={classes.title ?? ''}>
            {title}
          </Title>
          {aside}
        </Group>
        <Group gap="xs">{actions}</Group>
      </Group>
      {children}
    </Stack>
  )
}

interface PanelProps {
  readonly title: string
  readonly aside?: ReactNode
  readonly children: ReactNode
}

export function Panel({ title, aside, children }: PanelProps) {
  return (
    <section className={classes.panel}>
      <Group justify="space-between" gap="xs" className={classes.head ?? ''}>
        <Title order={2}>{title}</Title>
        {aside}
      </Group>
      {children}
    </section>
  )
}

/** What stands where a list has nothing: why, and what brings something there. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <Stack gap={4} className={classes.empty ?? ''}>
      <Text size="sm" fw={600}>
        {title}
      </Text>
      {children && (
        <Text size="sm" c="dimmed">
          {children}
        </Text>
      )}
    </Stack>
  )
}
