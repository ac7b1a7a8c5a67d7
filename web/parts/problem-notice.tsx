// A refusal or a failure in the server's own words, with what to do next and the id under which its log has more.
import { Alert, Button, Code, Group, List, Stack, Text } from '@mantine/core'
import type { ReasonText } from '../../src/api/problem-reasons.ts'
import { REASON_TEXTS } from '../../src/api/problem-reasons.ts'
import { ApiProblem } from '../api/client.ts'

interface ProblemNoticeProps {
  readonly error: unknown
  readonly title?: string
  readonly onRetry?: (() => void) | undefined
}

export function ProblemNotice({ error, title, onRetry }: ProblemNoticeProps) {
  const problem = error instanceof ApiProblem ? error : undefined
  const details = problem?.body.details ?? []
  return (
    <Alert color="red" variant="outline" role="alert" title={title ?? headingOf(problem)}>
      <Stack gap="xs" align="flex-start">
        <Text size="sm">{sentence(error instanceof Error ? error.message : String(error))}</Text>
        {details.length > 0 && (
          <List size="sm">
            {details.map(({ path, message }) => (
              <List.Item key={`${path} ${message}`}>
                {path !== '' && <Code>{path}</Code>} {message}
              </List.Item>
            ))}
          </List>
        )}
        <Text size="sm">{nextStep(problem)}</Text>
        <Group gap="md">
          {onRetry && (
            <Button variant="default" onClick={onRetry}>
              Try again
            </Button>
          )}
          {problem?.requestId && (
            <Text size="xs" c="dimmed">
              request id <Code>{problem.requestId}</Code>
            </Text>
          )}
        </Group>
      </Stack>
    </Alert>
  )
}

function headingOf(problem: ApiProblem | undefined): string {
  if (!problem) return 'Something failed in this page'
  if (problem.status === 0) return 'No connection'
  return `${problem.status} ${(problem.body.error ?? 'error').replaceAll('_', ' ')}`
}

/** What the service advises for the reason; else what the status suggests. */
function nextStep(problem: ApiProblem | undefined): string {
  if (!problem) return 'Load the page again. When it fails again, report it with what you did.'
  const { error, reason } = problem.body
  const texts: Readonly<Record<string, Readonly<Record<string, ReasonText>>>> = REASON_TEXTS
  const advice = error && reason ? texts[error]?.[reason]?.advice : undefined
  if (advice) return sentence(advice.replaceAll('`', ''))
  if (problem.status === 0)
    return 'See whether the service runs and this machine reaches it. The console tries again.'
  if (problem.status === 403) return 'Ask an administrator for a wider role or scope.'
  if (problem.status >= 500)
    return 'Try again in a moment; the log of the service has more under the request id.'
  return 'Correct what it names, and try again.'
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`
}
