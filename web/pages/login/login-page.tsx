// Logging in: with a token, or with the organisation's account where the service is set up for it.
import { Alert, Button, Checkbox, Divider, PasswordInput, Stack, Text, Title } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useEffect, useState } from 'react'
import type { CallerIdentity } from '../../../src/api/wire-types.ts'
import { send } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { ProblemNotice } from '../../parts/problem-notice.tsx'
import { beginOidcLogin, finishOidcLogin, isOidcReturn } from '../../session/oidc-login.ts'
import { logIn, useSession } from '../../session/session.ts'
import classes from './login-page.module.css'

export function LoginPage() {
  const client = useQueryClient()
  const settings = useQuery(queries.settings())
  const { ended } = useSession()
  const [token, setToken] = useState('')
  const [isRemembered, setRemembered] = useState(false)
  const login = settings.data?.login
  const enter = useMutation({
    mutationFn: async ({ given, remembered }: { given: string; remembered: boolean }) => {
      const { body } = await send<CallerIdentity>({ method: 'GET', path: '/whoami', token: given })
      client.setQueryData(queries.whoami().queryKey, body)
      logIn(given, remembered)
    },
  })
  const oidc = useMutation({ mutationFn: beginOidcLogin })
  const { mutate: finish, error: finishError } = useMutation({
    mutationFn: finishOidcLogin,
    onSuccess: (given) => enter.mutate({ given, remembered: false }),
  })
  useEffect(() => {
    if (login && isOidcReturn()) finish(login)
  }, [login, finish])
  const error = enter.error ?? oidc.error ?? finishError ?? settings.error
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    enter.mutate({ given: token.trim(), remembered: isRemembered })
  }
  return (
    <main className={classes.page}>
      <form className={classes.panel} onSubmit={submit}>
        <Stack gap="md">
          <div>
            <Title order={1}>flux-resourceset</Title>
            <Text size="sm" c="dimmed">
              The desired state of your fleet, and what it has become.
            </Text>
          </div>
          {ended && !error && (
            <Alert color="orange" variant="outline" role="status">
              {ended}
            </Alert>
          )}
          {error && <ProblemNotice error={error} title="That did not work" />}
          {login && (
            <>
              <Button size="sm" loading={oidc.isPending} onClick={() => oidc.mutate(login)}>
                Log in at {new URL(login.issuer).host}
              </Button>
              <Divider label="or" />
            </>
          )}
          <PasswordInput
            label="Token"
            description="A named token of the role viewer or more, or a shared one."
            value={token}
            onChange={({ currentTarget }) => setToken(currentTarget.value)}
            autoComplete="current-password"
            visibilityToggleButtonProps={{ 'aria-label': 'Show the token' }}
            data-autofocus
            required
            withAsterisk={false}
          />
          <Checkbox
            label="Remember it on this device"
            description="Otherwise it is forgotten with this tab."
            checked={isRemembered}
            onChange={({ currentTarget }) => setRemembered(currentTarget.checked)}
          />
          <Button type="submit" size="sm" variant={login ? 'default' : 'filled'} loading={enter.isPending}>
            Log in with the token
          </Button>
        </Stack>
      </form>
    </main>
  )
}
