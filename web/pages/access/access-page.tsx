// Who somebody is here, what each role may do, and the named tokens.
import { useQuery } from '@tanstack/react-query'
import { ROLE_MEANINGS, ROLES, scopeOf } from '../../../src/domain/access/grant.ts'
import { may, type Permission } from '../../../src/domain/access/permissions.ts'
import { queries } from '../../api/queries.ts'
import { Age } from '../../parts/age.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page, Panel } from '../../parts/page.tsx'
import { useMay } from '../../session/permissions.ts'
import { TokensPanel } from './tokens-panel.tsx'

/** The permissions that people ask about. */
const TOLD: Readonly<Partial<Record<Permission, string>>> = {
  poll: 'polls',
  read: 'reads the fleet',
  preview: 'previews',
  write: 'writes',
  bypass: 'bypasses freezes',
  admin: 'manages tokens',
}

export function AccessPage() {
  const mayManage = useMay('admin')
  return (
    <Page title="Access" actions={<CopyAs call={{ method: 'GET', path: '/whoami' }} cli="whoami" />}>
      <SelfPanel />
      {mayManage && <TokensPanel />}
      <RolesPanel />
    </Page>
  )
}

function SelfPanel() {
  const query = useQuery(queries.whoami())
  return (
    <Panel title="You">
      <Loaded query={query} lines={3}>
        {(identity) => (
          <Facts
            label="You"
            head={['What', 'Value']}
            rows={[
              { id: 'name', cells: ['Name in the audit', identity.name] },
              { id: 'via', cells: ['Known by', identity.via] },
              { id: 'role', cells: ['Role', `${identity.role}: ${ROLE_MEANINGS[identity.role]}`] },
              { id: 'scope', cells: ['Scope', scopeOf(identity) || 'no limit'] },
              {
                id: 'expires',
                cells: [
                  'Expires',
                  identity.expires_at ? <Age key="age" at={identity.expires_at} /> : 'not by itself',
                ],
              },
            ]}
          />
        )}
      </Loaded>
    </Panel>
  )
}

function RolesPanel() {
  const permissions = Object.keys(TOLD) as Permission[]
  return (
    <Panel title="Roles">
      <Facts
        label="Roles"
        head={['Role', 'In short', ...permissions.map((permission) => TOLD[permission] ?? permission)]}
        rows={ROLES.map((role) => ({
          id: role,
          cells: [
            role,
            ROLE_MEANINGS[role],
            ...permissions.map((permission) => (may({ role }, permission) ? 'yes' : 'no')),
          ],
        }))}
      />
    </Panel>
  )
}
