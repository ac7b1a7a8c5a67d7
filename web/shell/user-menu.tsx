// Who is logged in and as what, light or dark, and the way out.
import { ActionIcon, Menu, Text, useMantineColorScheme } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { describeGrant, ROLE_MEANINGS } from '../../src/domain/access/grant.ts'
import { queries } from '../api/queries.ts'
import { Age } from '../parts/age.tsx'
import { Icon } from '../parts/icon.tsx'
import { logOut } from '../session/session.ts'

export function UserMenu() {
  const client = useQueryClient()
  const { data } = useQuery(queries.whoami())
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  return (
    <Menu position="bottom-end" width={260} withArrow>
      <Menu.Target>
        <ActionIcon variant="default" size="md" aria-label="You and your settings">
          <Icon name="user" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {data && (
          <Text size="sm" p="xs" component="div">
            <b>{data.name}</b>
            <Text size="xs" c="dimmed">
              {describeGrant(data)}: {ROLE_MEANINGS[data.role]}
            </Text>
            {data.expires_at && (
              <Text size="xs" c="dimmed" component="div">
                ends <Age at={data.expires_at} />
              </Text>
            )}
          </Text>
        )}
        <Menu.Divider />
        {(['auto', 'light', 'dark'] as const).map((scheme) => (
          <Menu.Item
            key={scheme}
            onClick={() => setColorScheme(scheme)}
            {...(scheme === colorScheme && { rightSection: '✓', 'aria-current': true })}
          >
            {scheme === 'auto'
              ? 'Colours as this device has them'
              : `${scheme === 'dark' ? 'Dark' : 'Light'} colours`}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item
          onClick={() => {
            logOut()
            client.clear()
          }}
        >
          Log out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
